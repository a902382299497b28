"""Run the tutorial: every `sh` block, in order, in one folder and with a scripted model."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ostler.testing.model_server import calls, text

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
FIX = {"path": "stats.py", "old": "(len(values) - 1)", "new": "len(values)"}
DOCSTRING = {"path": "stats.py", "old": "values):\n", "new": 'values):\n    """Return the mean."""\n'}
REPLIES = (
    calls([("read", {"path": "stats.py"})]),
    text("It divides by the wrong number."),
    calls([("read", {"path": "stats.py"})]),
    calls([("edit", FIX)]),
    text("Fixed."),
    text("I changed the divisor."),
    calls([("read", {"path": "stats.py"})]),
    calls([("edit", DOCSTRING)]),
    text("Added."),
    text("It is fine."),
)
KEYS = {"ostler chat": "y\n"}  # the user's answer to the approval request


def read_steps():
    """Return the script of each `sh` block; a `text` block is typed into the command before it."""
    blocks = re.findall(r"^```(sh|text)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    steps = []
    for kind, content in blocks:
        if kind == "sh":
            steps.append([content, ""])
        else:
            steps[-1][1] = content + KEYS[steps[-1][0].strip()]
    return steps


@pytest.mark.timeout(200)
def test_the_commands_of_the_tutorial_do_what_it_says(ostler, models):
    steps = read_steps()
    folder = ostler.workspace
    states = []
    with models.playing(*REPLIES) as server:
        environment = ostler.environment({"OSTLER_BASE_URL": server.base_url, "OSTLER_MODEL": "scripted"})
        for script, typed in steps:
            command = re.sub(r"(?m)(^|\| )ostler\b", rf"\1{shlex.quote(sys.executable)} -P -m ostler", script)
            done = subprocess.run(
                ["bash", "-eo", "pipefail", "-c", command],
                cwd=folder,
                env=environment,
                input=typed,
                capture_output=True,
                text=True,
                check=False,
                timeout=90,
            )
            assert done.returncode == 0, script + done.stdout + done.stderr
            folder = ostler.home / "first-steps"
            fixed = "(len(values) - 1)" not in (folder / "stats.py").read_text()
            states.append((script.splitlines()[0].split('"')[0].strip(), fixed))
    assert states == [
        ("mkdir ~/first-steps && cd ~/first-steps", False),
        ("ostler run", False),
        ("ostler chat", True),
        ("ostler undo --list", False),
        ("ostler redo", True),
        ("ostler sessions list", True),
        ("ostler run --continue", True),
        ("ostler run --write -o json", True),
        ("cat stats.py | ostler run -o simple", True),
    ]
    assert json.loads((folder / "result.json").read_text())["exit"] == 0
    assert "Return the mean." in (folder / "stats.py").read_text()
