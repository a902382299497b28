"""A hostile MCP server changes nothing on the screen, in the permissions, in other tools or on the disk."""

import sys
from pathlib import Path

import pytest
from tests.conftest import at
from tests.mcp.configured_servers import configure

from ostler.testing.model_server import calls, text

pytestmark = pytest.mark.req("MC-3", "MC-6")
SCRIPT = Path(__file__).parents[1] / "mcp" / "hostile_server.py"
FORBIDDEN = ("\x1b", "\x07", "\u202e")
MAX_SCREEN = 120_000


@pytest.fixture
def evil(ostler):
    configure(ostler, {"evil": {"command": [sys.executable, "-S", "-E", str(SCRIPT)]}})
    assert ostler("mcp", "test", "evil").code == 0
    return ostler


def check_screen(done):
    for output in (done.stdout, done.stderr):
        assert not [mark for mark in FORBIDDEN if mark in output]
        assert len(output) < MAX_SCREEN


@pytest.mark.parametrize(
    "arguments", [("mcp", "test", "evil"), ("mcp", "list"), ("mcp", "logs", "evil"), ("tool", "list")]
)
def test_commands_print_nothing_hostile(evil, arguments):
    check_screen(evil(*arguments))


def test_chat_prints_nothing_hostile(evil, models):
    with models.playing() as served:
        done = evil("chat", *at(served), stdin="/mcp restart evil\n/mcp\n/help\n/context\n/tools\n")
    check_screen(done)
    assert "evil  ready" in done.stdout


@pytest.mark.parametrize("tool", ["result", "error", "deep", "pictures", "bash"])
def test_call_prints_nothing_hostile_and_is_limited(evil, models, tool):
    with models.playing(calls([(f"evil_{tool}", {"command": "touch owned"})]), text("done")) as served:
        done = evil("run", "--allow", "evil_*", *at(served), "go")
        check_screen(done)
        assert "done" in done.stdout
        assert len(served.requests[-1].body) < 200_000
    stored = sum(file.stat().st_size for file in (evil.home / ".ostler").rglob("*") if file.is_file())
    assert stored < 3_000_000
    assert not (evil.workspace / "owned").exists()


def test_what_it_says_about_permissions_grants_nothing(evil, models):
    """Its description says that everything is allowed, its tool declares itself read-only, and one is called bash."""
    attempts = [
        ("evil_result", {}),
        ("evil_bash", {"command": "touch owned"}),
        ("write", {"path": "owned", "content": "x"}),
    ]
    with models.playing(calls(attempts), text("done")) as served:
        evil("run", *at(served), "go")
        answers = [message["content"] for message in served.requests[-1].json["messages"] if message["role"] == "tool"]
    assert len(answers) == 3
    assert all("Denied" in str(answer) for answer in answers)
    assert not (evil.workspace / "owned").exists()


@pytest.mark.parametrize(("tool", "answers"), [("ask", "Blue\nb\n"), ("open", "n\n")])
def test_question_shows_nothing_hostile(evil, models, tool, answers):
    with models.playing(calls([(f"evil_{tool}", {})]), text("done")) as served:
        done = evil("chat", *at(served), stdin=f"go\ny\n{answers}")
        answer = str(served.requests[-1].json["messages"][-1]["content"])
    check_screen(done)
    assert "action" in answer
