"""`python -m tasks.pictures`: generate the pictures of the docs from the real output of the program."""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyte.screens import Char

from ostler.testing.model_server import ScriptedModelServer, ScriptedReply, calls, text
from tasks.terminal import ProgramTerminal, draw

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
PICTURE = PICTURES / "demo.svg"
OSTLER = (sys.executable, "-P", "-m", "ostler")
DEMO_SIZE, SCREEN_SIZE = (100, 120), (116, 34)
F4, F5 = "\x1bOS", "\x1b[15~"
GREET = '''"""Greets people."""

import sys


def greet(name):
    """Return a greeting."""
    return "Hello, " + name


if __name__ == "__main__":
    print(greet(sys.argv[1]))
'''
ANSWER = """The greeting is built in `greet.py`. Two things can go wrong:

| input | result | expected |
|-------|--------|----------|
| `" Ada "` | Hello,  Ada | Hello, Ada! |
| `""` | Hello, | Hello, world! |

I would strip the name and fall back to *world*:

```python
def greet(name: str) -> str:
    return f"Hello, {name.strip() or 'world'}!"
```
"""
TODOS = (("Read greet.py", "completed"), ("Strip the name", "in_progress"), ("Run the tests", "pending"))
REPLIES = (
    text(ANSWER).with_usage(9_200, 210),
    calls(
        [
            ("todowrite", {"todos": [{"content": content, "status": state} for content, state in TODOS]}),
            ("read", {"path": "greet.py"}),
        ]
    ).with_usage(9_900, 120),
    calls(
        [
            (
                "edit",
                {
                    "path": "greet.py",
                    "old_string": '    return "Hello, " + name\n',
                    "new_string": '    name = name.strip() or "world"\n    return f"Hello, {name}!"\n',
                },
            )
        ]
    ).with_usage(11_400, 160),
)


def screen_rows(terminal: ProgramTerminal) -> list[list[Char]]:
    """Return the visible rows without empty rows at the end."""
    rows = terminal.rows
    while rows and not "".join(char.data for char in rows[-1]).strip():
        rows.pop()
    return rows


def demo_picture() -> str:
    """Run the recorded demo and return its picture, with a fixed name for the temporary folder."""
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with ProgramTerminal([*OSTLER, "demo", "--recording"], env, str(ROOT), DEMO_SIZE) as terminal:
        terminal.wait_for_end()
        drawn = draw(screen_rows(terminal), "ostler demo in a terminal")
    return re.sub(r"/[^\s<]*/ostler-demo-\w+", "/tmp/ostler-demo", drawn)


def full_screen_pictures() -> Iterator[tuple[str, str]]:
    """Use the full-screen client with a scripted model. Yield names and pictures."""
    with tempfile.TemporaryDirectory() as folder, _playing(REPLIES) as base_url:
        project = _make_project(Path(folder) / "greetings")
        env = _environment(Path(folder) / "home")
        command = [*OSTLER, "tui", "--base-url", base_url, "--model", "scripted"]
        with ProgramTerminal(command, env, str(project), SCREEN_SIZE) as terminal:
            yield from _scenes(terminal)


def _scenes(terminal: ProgramTerminal) -> Iterator[tuple[str, str]]:
    terminal.wait_for("Type what you want done", "ready")
    terminal.send("What can go wrong in greet.py?\r")
    terminal.wait_for("strip() or", "done in")
    terminal.send(F4)
    terminal.wait_for("EVENTS")
    yield "full-screen", _drawn(terminal, "the full-screen client with an answer and its panel")
    terminal.send(F4)
    terminal.send("Fix it.\r")
    terminal.wait_for("needs your approval", "Tab: other diff view")
    yield "approval", _drawn(terminal, "an approval request with a diff in two columns")
    terminal.send(F5)
    terminal.wait_for("Sessions of all projects")
    yield "sessions", _drawn(terminal, "the overview of all sessions")


def _drawn(terminal: ProgramTerminal, title: str) -> str:
    terminal.wait_until_calm()
    return draw(terminal.rows, title)


def _make_project(folder: Path) -> Path:
    folder.mkdir()
    (folder / "greet.py").write_text(GREET)
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Start"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=folder, check=True)
    return folder


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": str(home), "OSTLER_HOME": str(home / ".ostler"), "PYTHONUTF8": "1"}


@contextmanager
def _playing(replies: Sequence[ScriptedReply]) -> Iterator[str]:
    """Run a scripted model server in a thread. Yield its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = ScriptedModelServer(*replies)
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
    try:
        yield server.base_url
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def words(svg: str) -> list[str]:
    """Return the words of a picture without durations and times, to compare pictures."""
    shown = re.sub(r"<[^>]+>", "\n", svg)
    return re.sub(
        r"\d{4}-\d\d-\d\dT\S+|in\s\d+\.\d+s|\d\d:\d\d:\d\d|\d+\stok/s|in\s\d+\ss\b|\d+\smin", "…", shown
    ).split()


def main() -> None:
    """Write all pictures."""
    PICTURES.mkdir(exist_ok=True)
    PICTURE.write_text(demo_picture(), encoding="utf-8")
    for name, picture in full_screen_pictures():
        (PICTURES / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
