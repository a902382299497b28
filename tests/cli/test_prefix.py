"""Every request starts with the bytes of the previous one, so that prefix caches work."""

import json
from itertools import pairwise

import pytest

from ostler.testing.model_server import calls, text

pytestmark = pytest.mark.req("MD-9")

TOMORROW = """
import datetime, time
_real = time.time
time.time = lambda: _real() + 86_400
class _Later(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + datetime.timedelta(days=1)
datetime.datetime = _Later
"""


def at(server, *more):
    return ["--base-url", server.base_url, "--model", "scripted", *more]


def sent(server):
    """Return the request bodies without closing brackets and cache markers."""
    bodies = [request.body.replace(b',"cache_control":{"type":"ephemeral"}', b"") for request in server.requests]
    return [body.rstrip(b"]}") for body in bodies]


def prefix_kept(bodies):
    return [later.startswith(earlier) for earlier, later in pairwise(bodies)]


def prefix_before_prompt(server):
    """Return the first request up to the user's prompt."""
    body = server.requests[0].body
    return body[: body.index(b'"role":"user"')]


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize("dialect", ["native", "xnl", "text"])
@pytest.mark.invariant("M1", "M2")
@pytest.mark.sampled(every=3)
def test_prefix_over_calls_and_resume(ostler, models, kind, dialect):
    (ostler.workspace / "a.txt").write_text("alpha\n")
    flags = ["--api-kind", kind, "--dialect", dialect]
    looks = [("read", {"path": "a.txt"}), ("list", {}), ("read", {"path": "nothing.txt"})]
    with models.playing(
        calls(looks), calls([("bash", {"command": "ls"})], text="so"), text("one"), text("two")
    ) as server:
        ostler("run", *at(server, *flags), "look")
        ostler("run", "-c", *at(server, *flags), "and again")
    assert prefix_kept(sent(server)) == [True] * 3
    assert server.connections <= 4, "each run uses one connection for requests and one to fetch the context window"


def test_prefix_over_midnight(ostler, models, tmp_path):
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "sitecustomize.py").write_text(TOMORROW)
    env = {"PYTHONPATH": str(tmp_path / "later")}
    with models.playing(text("one"), text("two")) as server:
        ostler("run", *at(server), "look")
        ostler("run", "-c", *at(server), "again", env=env)
    assert prefix_kept(sent(server)) == [True]
    journal = next(path for path in ostler.home.rglob("*.jsonl") if "sessions" in str(path))
    times = [json.loads(line)["time"] for line in journal.read_text().splitlines()]
    assert times[-1] - times[0] > 80_000, "the clock was not moved"


def test_prefix_over_a_change_of_the_servers_models(ostler, models):
    with models.playing(text("one"), models=["scripted"]) as first:
        ostler("run", *at(first), "look")
    with models.playing(text("two"), models=["another", "scripted", "third"]) as second:
        ostler("run", "-c", *at(second), "again")
    assert prefix_kept([*sent(first), *sent(second)]) == [True]


def test_prefix_over_a_change_of_frontend(ostler, models):
    with models.playing(text("one"), text("two"), text("three")) as server:
        ostler("run", "-o", "json", *at(server), "look")
        session = next(ostler.home.rglob("sessions/*/*.jsonl")).parent.name
        ostler("chat", "--resume", session, *at(server), stdin="again\n")
        ostler("run", "-c", "-o", "simple", *at(server), "and again")
    assert prefix_kept(sent(server)) == [True, True]


@pytest.mark.invariant("M2")
def test_prefix_over_a_change_of_workspace_and_rules(ostler, models):
    (ostler.workspace / "AGENTS.md").write_text("Use tabs.\n")
    with models.playing(text("one"), text("two")) as server:
        ostler("run", *at(server), "look")
        (ostler.workspace / "AGENTS.md").write_text("Use spaces.\n")
        (ostler.workspace / "new.txt").write_text("new\n")
        ostler("run", "-c", *at(server), "again")
    assert prefix_kept(sent(server)) == [True]


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_sessions_of_a_folder_share_the_prefix(ostler, models, tmp_path, kind):
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "sitecustomize.py").write_text(TOMORROW)
    bodies = []
    for prompt, env in (("one thing", {}), ("another", {}), ("a third", {"PYTHONPATH": str(tmp_path / "later")})):
        with models.playing(text("done")) as server:
            ostler("run", *at(server, "--api-kind", kind), prompt, env=env)
        bodies.append(prefix_before_prompt(server))
        (ostler.workspace / f"{len(bodies)}.txt").write_text(prompt)
    assert len(set(bodies)) == 1
    assert b"Workspace: " in bodies[0]


def test_explain_cache(ostler, models):
    with models.playing(calls([("list", {})]), text("done")) as server:
        done = ostler("run", "--explain-cache", *at(server), "look")
    lines = [line for line in done.stdout.splitlines() if "prefix of request" in line]
    assert len(lines) == 2
    assert "the first request" in lines[0] and "bytes of request 1" in lines[1]
