"""Only the configured model is contacted: an audit hook records every connection."""

import pytest

from ostler.testing.model_server import calls, text

SPY = """
import os, sys

def on_event(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        entry = f"connect {arguments[1][0]} {arguments[1][1]}"
    elif event == "socket.getaddrinfo":
        entry = f"name {arguments[0]}"
    else:
        return
    with open(os.environ["SPY_LOG"], "a") as log:
        log.write(entry + "\\n")

sys.addaudithook(on_event)
"""
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@pytest.fixture
def run_recorded(ostler, tmp_path):
    """Return a function that runs the command line and gives its result and the contacted addresses."""
    (tmp_path / "spy").mkdir()
    (tmp_path / "spy" / "sitecustomize.py").write_text(SPY)
    log = tmp_path / "contacted"

    def run(*arguments):
        log.write_text("")
        env = {"PYTHONPATH": str(tmp_path / "spy"), "SPY_LOG": str(log)}
        return ostler(*arguments, env=env), [line.split() for line in log.read_text().splitlines()]

    return run


@pytest.mark.req("DX-3")
def test_run_contacts_only_its_model(run_recorded, models):
    with models.playing(calls([("list", {})]), text("Done.")) as server:
        done, contacted = run_recorded("run", "--base-url", server.base_url, "--model", "scripted", "look")
        port = str(server.port)
    assert done.code == 0, done.stderr
    assert [entry[1:] for entry in contacted if entry[0] == "connect"], "nothing was recorded"
    assert {tuple(entry[1:]) for entry in contacted if entry[0] == "connect"} == {("127.0.0.1", port)}
    assert {entry[1] for entry in contacted if entry[0] == "name"} <= LOOPBACK


@pytest.mark.req("DX-3")
@pytest.mark.parametrize("command", [["demo"], ["doctor"], ["sessions", "list"], ["tool", "list"], ["config", "show"]])
def test_commands_without_a_model_contact_only_this_machine(run_recorded, command):
    _, contacted = run_recorded(*command)
    assert {entry[1] for entry in contacted} <= LOOPBACK
