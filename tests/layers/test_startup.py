"""Holds start-up to its promise: `--version` and `--help` import next to nothing, the package itself does nothing."""

import re
import socket
import subprocess
import sys

import pytest

import ostler

IMPORT_LINE = re.compile(r"import time:\s+\d+ \|\s+\d+ \|\s*([\w.]+)$", re.MULTILINE)
CHEAP = {  # `collections.abc` is how the house spells its types, and this is all it brings along
    *("_collections", "_operator", "collections", "collections.abc"),
    *("itertools", "keyword", "operator", "reprlib", "types"),
}
OURS = re.compile(r"ostler(\.cli(\.\w+)?)?")
MOST_OF_OURS = 5  # the package, the entry, the command table: never the commands themselves

# Runs before the import: whatever starts something, writes, listens or connects is told on stderr.
WATCH = """
import sys
def watch(event, args):
    loud = event.split(".")[0] in {"socket", "subprocess", "signal", "shutil", "tempfile"}
    changes = event in {"os.system", "os.fork", "os.mkdir", "os.remove", "os.rename", "os.putenv", "os.chdir"}
    writes = event == "open" and set(args[1] or "") & set("wax+")
    if loud or changes or writes:
        sys.stderr.write(f"{event} {args}\\n")
sys.addaudithook(watch)
"""


def python(folder, *args, **variables):
    """A fresh interpreter in an empty folder that is also its home; bytecode is not written."""
    env = {"HOME": str(folder), "LANG": "C.UTF-8", **variables}
    command = [sys.executable, "-P", "-B", *args]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL
    )


def imported(done) -> set[str]:
    assert done.returncode == 0, done.stderr
    return set(IMPORT_LINE.findall(done.stderr))


@pytest.fixture
def floor(tmp_path) -> set[str]:
    """What the interpreter imports by itself, also to run a module by name."""
    (tmp_path / "blank.py").touch()
    seen = imported(python(tmp_path, "-X", "importtime", "-m", "blank", PYTHONPATH=str(tmp_path)))
    assert {"site", "runpy"} <= seen
    return seen


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_a_flag_that_only_prints_imports_next_to_nothing(tmp_path, floor, flag):
    done = python(tmp_path, "-X", "importtime", "-m", "ostler", flag)
    extra = imported(done) - floor - CHEAP
    ours = {name for name in extra if OURS.fullmatch(name)}
    assert extra - ours == set()
    assert "ostler" in ours
    assert len(ours) <= MOST_OF_OURS, ours
    assert "ostler" in done.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "blank.py"]


def test_version_prints_the_version(tmp_path):
    done = python(tmp_path, "-m", "ostler", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert ostler.__version__ in done.stdout.split()


def test_importing_the_package_imports_nothing_else(tmp_path):
    bare = imported(python(tmp_path, "-X", "importtime", "-c", "pass"))
    assert imported(python(tmp_path, "-X", "importtime", "-c", "import ostler")) - bare == {"ostler"}


def test_importing_the_package_does_nothing(tmp_path):
    done = python(tmp_path, "-c", WATCH + "import ostler")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_the_watch_would_tell(tmp_path):
    """The check above can fail: a write and a socket are both reported."""
    busy = "\nimport socket\nsocket.socket().close()\nopen('f', 'w').close()"
    told = python(tmp_path, "-c", WATCH + busy).stderr
    assert "socket.__new__" in told
    assert "open ('f', 'w'" in told


def test_nothing_that_the_prompt_can_do_without_is_imported_before_it_is_there(tmp_path):
    code = "import sys, ostler.cli.chat, ostler.app.chat, ostler.frontends.repl.line_editor; print(*sys.modules)"
    done = python(tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr
    late = (
        "commands",
        "workspace",
        "tools",
        "models",
        "policy",
        "backends",
        "journal",
        "app.session_manager",
        "app.command_services",
    )
    assert not {name for name in done.stdout.split() if name.startswith(tuple(f"ostler.{room}" for room in late))}


# Runs the program until it sends its first request to a model, and tells what it has read until then.
UNTIL_ASKED = """
import os, socket, sys
plain = socket.socket.send
def send(self, data, *more):
    if bytes(data[:5]) == b"POST ":
        sys.stdout.write(" ".join(sys.modules))
        sys.stdout.flush()
        os._exit(0)
    return plain(self, data, *more)
socket.socket.send = send
from ostler.__main__ import main
sys.exit(main())
"""
MOST_BEFORE_A_REQUEST = 285  # modules of ours; each costs a quarter of a millisecond, whatever is in it
LATER = (  # what only an answer, a call, a change or a quieter moment needs
    *("h11", "yaml", "shutil", "sqlite3", "tree_sitter", "re2", "pathspec", "prompt_toolkit"),
    *("ostler.rendering.blocks", "ostler.rendering.tool_calls", "ostler.rendering.markdown", "ostler.policy.shell"),
    *("ostler.text.redact", "ostler.text.secret_shapes", "ostler.text.secret_pairs", "ostler.text.secret_value_span"),
    *(
        "ostler.models.dialects.text_calls",
        "ostler.models.stream_reply",
        "ostler.xnl.parser",
        "ostler.tools.git_repo",
        "ostler.tools.stat",
    ),
    *(
        "ostler.workspace.change_steps",
        "ostler.workspace.checkpoints",
        "ostler.workspace.checkpoint_db",
        "ostler.knowledge.checks",
    ),
)


def test_only_what_a_request_needs_is_imported_before_it_goes_out(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as nobody:  # whose listening is enough to be sent something
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
        done = python(tmp_path, "-c", UNTIL_ASKED, "run", "--base-url", url, "--model", "m", "--api-key", "k", "hello")
    assert done.returncode == 0, done.stderr
    read = done.stdout.split()
    assert set(LATER).isdisjoint(read), set(LATER) & set(read)
    ours = [name for name in read if name.startswith("ostler.")]
    assert "ostler.models.openai_request" in ours
    assert len(ours) <= MOST_BEFORE_A_REQUEST, len(ours)
