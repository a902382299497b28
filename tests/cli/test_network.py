"""Nothing is contacted but the model that was configured: every connection of the process is written down."""

import pytest

from ostler.testing.model_server import calls, text

SPY = """
import os, sys

def hear(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        told = f"connect {arguments[1][0]} {arguments[1][1]}"
    elif event == "socket.getaddrinfo":
        told = f"name {arguments[0]}"
    else:
        return
    with open(os.environ["SPY_LOG"], "a") as log:
        log.write(told + "\\n")

sys.addaudithook(hear)
"""
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@pytest.fixture
def spied(ostler, tmp_path):
    """The command line under a spy; gives what it contacted."""
    (tmp_path / "spy").mkdir()
    (tmp_path / "spy" / "sitecustomize.py").write_text(SPY)
    log = tmp_path / "contacted"

    def run(*arguments):
        log.write_text("")
        env = {"PYTHONPATH": str(tmp_path / "spy"), "SPY_LOG": str(log)}
        return ostler(*arguments, env=env), [line.split() for line in log.read_text().splitlines()]

    return run


@pytest.mark.req("DX-3")
def test_a_run_talks_to_its_model_alone(spied, models):
    with models.playing(calls([("list", {})]), text("Done.")) as server:
        done, contacted = spied("run", "--base-url", server.base_url, "--model", "scripted", "look")
        port = str(server.port)
    assert done.code == 0, done.stderr
    assert [words[1:] for words in contacted if words[0] == "connect"], "the spy heard nothing"
    assert {tuple(words[1:]) for words in contacted if words[0] == "connect"} == {("127.0.0.1", port)}
    assert {words[1] for words in contacted if words[0] == "name"} <= LOOPBACK


@pytest.mark.req("DX-3")
@pytest.mark.parametrize("command", [["demo"], ["doctor"], ["sessions", "list"], ["tool", "list"], ["config", "show"]])
def test_without_a_model_nobody_beyond_this_machine_is_contacted(spied, command):
    _, contacted = spied(*command)
    assert {words[1] for words in contacted} <= LOOPBACK
