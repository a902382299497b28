"""The states of MCP servers: recorded in the session, shown by `/mcp`, and their part of the context."""

import json

import pytest
from tests.conftest import at
from tests.mcp.configured_servers import configure, server

from ostler.testing.model_server import calls, text

pytestmark = pytest.mark.req("MC-4", "SE-4")


def recorded_states(ostler, name):
    files = list((ostler.home / ".ostler").rglob("journal.jsonl"))
    assert len(files) == 1
    events = [json.loads(line)["event"] for line in files[0].read_text().splitlines()]
    return [event for event in events if event["type"] == "server_state_changed" and event["name"] == name]


def test_start_is_recorded_in_the_session(ostler, models):
    configure(ostler, {"one": server(ostler, "one")}, permission={"one_*": "allow"})
    with models.playing(calls([("one_echo", {"text": "hi"})]), text("done")) as served:
        ostler("run", *at(served), "go")
    states = recorded_states(ostler, "one")
    assert [state["state"] for state in states] == ["starting", "ready"]
    assert (states[-1]["detail"], states[-1]["tools"]) == ("one 1.0 (MCP 2026-07-28)", 13)


def test_server_that_is_not_started_is_recorded_with_its_known_tools(ostler, models):
    configure(ostler, {"one": server(ostler, "one"), "off": server(ostler, "off", enabled=False)})
    assert ostler("mcp", "test", "one").code == 0
    with models.playing(text("done")) as served:
        ostler("run", *at(served), "go")
    assert [(state["state"], state["tools"]) for state in recorded_states(ostler, "one")] == [("stopped", 13)]
    assert [state["state"] for state in recorded_states(ostler, "off")] == ["disabled"]


def test_crash_and_restart_are_recorded(ostler, models):
    configure(ostler, {"one": server(ostler, "one")}, permission={"one_*": "allow"})
    script = [calls([("one_crash", {})]), calls([("one_echo", {"text": "back"})]), text("done")]
    with models.playing(*script) as served:
        ostler("run", *at(served), "go")
    states = recorded_states(ostler, "one")
    assert [state["state"] for state in states] == ["starting", "ready", "failed", "ready"]
    assert "ended with exit code 7" in states[2]["detail"]
    assert "ostler mcp logs one" in states[2]["detail"]


def test_failing_server_is_recorded_once_however_often_it_is_called(ostler, models):
    configure(ostler, {"bad": server(ostler, "bad", "--mode", "exit")})
    with models.playing(calls([("bad_x", {})]), calls([("bad_x", {})]), text("done")) as served:
        ostler("run", *at(served), "go")
    assert [state["state"] for state in recorded_states(ostler, "bad")] == ["starting", "failed"]


def test_unusable_entry_is_recorded_as_failed(ostler, models):
    configure(ostler, {"old": {"type": "sse", "url": "http://127.0.0.1:9/sse"}})
    with models.playing(text("done")) as served:
        done = ostler("run", *at(served), "go")
    (state,) = recorded_states(ostler, "old")
    assert (state["state"], "sse" in state["detail"]) == ("failed", True)
    assert done.stdout.count("server old failed") == 1


def test_context_shows_the_tools_and_instructions_of_servers(ostler, models):
    entry = server(ostler, "one", "--instructions", "Use echo. " * 50)
    configure(ostler, {"one": entry}, permission={"one_*": "allow"})
    assert ostler("mcp", "test", "one").code == 0
    with models.playing(calls([("one_echo", {"text": "hi"})]), text("done")) as served:
        done = ostler("chat", *at(served), stdin="go\n/context\n")
    rows = [line.strip() for line in done.stdout.splitlines()]
    assert any(row.startswith("MCP tools (13 tools)") for row in rows)
    assert any(row.startswith("MCP instructions") for row in rows)
