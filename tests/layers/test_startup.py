"""Check start-up: `--version` and `--help` import few modules, importing the package has no side effects."""

import re
import socket
import subprocess
import sys

import pytest

import ostler
from ostler.core.tool_declarations import tool_declarations

IMPORT_LINE = re.compile(r"import time:\s+\d+ \|\s+\d+ \|\s*([\w.]+)$", re.MULTILINE)
CHEAP = {  # `collections.abc` and what it imports
    *("_collections", "_operator", "collections", "collections.abc"),
    *("itertools", "keyword", "operator", "reprlib", "types"),
}
OURS = re.compile(r"ostler(\.cli(\.\w+)?)?")
MAX_OWN_MODULES = 5  # the package, the entry point and the command table, but no command

# Runs before the import and reports on stderr whatever starts a process, writes a file or uses a socket.
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
    """Run a new interpreter in an empty folder, which is also its home, without writing bytecode."""
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
    """The modules that the interpreter itself imports to run a module by name."""
    (tmp_path / "blank.py").touch()
    seen = imported(python(tmp_path, "-X", "importtime", "-m", "blank", PYTHONPATH=str(tmp_path)))
    assert {"site", "runpy"} <= seen
    return seen


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_printing_flag_imports_few_modules(tmp_path, floor, flag):
    done = python(tmp_path, "-X", "importtime", "-m", "ostler", flag)
    extra = imported(done) - floor - CHEAP
    ours = {name for name in extra if OURS.fullmatch(name)}
    assert extra - ours == set()
    assert "ostler" in ours
    assert len(ours) <= MAX_OWN_MODULES, ours
    assert "ostler" in done.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "blank.py"]


def test_version_prints_the_version(tmp_path):
    done = python(tmp_path, "-m", "ostler", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert ostler.__version__ in done.stdout.split()


def test_importing_the_package_imports_nothing_else(tmp_path):
    bare = imported(python(tmp_path, "-X", "importtime", "-c", "pass"))
    assert imported(python(tmp_path, "-X", "importtime", "-c", "import ostler")) - bare == {"ostler"}


@pytest.mark.invariant("R2")
def test_importing_the_package_has_no_side_effects(tmp_path):
    done = python(tmp_path, "-c", WATCH + "import ostler")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_side_effects_are_reported(tmp_path):
    """The check above can fail: a write and a socket are both reported."""
    busy = "\nimport socket\nsocket.socket().close()\nopen('f', 'w').close()"
    reported = python(tmp_path, "-c", WATCH + busy).stderr
    assert "socket.__new__" in reported
    assert "open ('f', 'w'" in reported


def test_chat_prompt_opens_before_other_packages_are_imported(tmp_path):
    code = "import sys, ostler.cli.chat, ostler.app.chat, ostler.frontends.repl.line_editor; print(*sys.modules)"
    done = python(tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr
    late = (
        "interaction.dispatcher",
        "interaction.services",
        "workspace",
        "tools",
        "models",
        "policy",
        "backends",
        "journal",
        "app.session_manager",
        "app.command_services",
    )
    assert not {name for name in done.stdout.split() if name.startswith(tuple(f"ostler.{package}" for package in late))}


def test_full_screen_client_draws_before_other_packages_are_imported(tmp_path):
    code = "import sys, ostler.app.tui, ostler.app.tui_projects, ostler.frontends.tui.frontend; print(*sys.modules)"
    done = python(tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr
    late = (
        "app.chat",
        "app.command_services",
        "app.session_manager",
        "backends",
        "frontends.repl.chat",
        "frontends.repl.frontend",
        "frontends.tui.session_controller",
        "interaction.builtin_commands",
        "interaction.dispatcher",
        "models",
        "tools",
        "workspace",
    )
    assert not {name for name in done.stdout.split() if name.startswith(tuple(f"ostler.{package}" for package in late))}


# Runs the program until it sends its first request to a model, and prints the modules imported so far.
UNTIL_FIRST_REQUEST = """
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
MAX_BEFORE_A_REQUEST = 279  # own modules without the tools; each takes a quarter of a millisecond to import
LATER = (  # modules that are needed only for an answer, a call or a change
    *("h11", "yaml", "shutil", "sqlite3", "re2", "pathspec", "prompt_toolkit"),
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


@pytest.mark.invariant("R3")
def test_only_modules_for_the_request_are_imported_before_it_is_sent(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:  # it accepts the connection and never answers
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        done = python(
            tmp_path, "-c", UNTIL_FIRST_REQUEST, "run", "--base-url", url, "--model", "m", "--api-key", "k", "hello"
        )
    assert done.returncode == 0, done.stderr
    modules = done.stdout.split()
    assert set(LATER).isdisjoint(modules), set(LATER) & set(modules)
    ours = [name for name in modules if name.startswith("ostler.")]
    assert "ostler.models.openai_request" in ours
    tools = {f"ostler.tools.{name}" for name in tool_declarations()}
    others = [name for name in ours if name not in tools]
    assert len(others) <= MAX_BEFORE_A_REQUEST, len(others)
