"""The `task` tool in `ostler run`: child sessions with the parent's restrictions."""

import json

import pytest

from ostler.testing.model_server import calls, text


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def events_of(done):
    return [record["event"] for record in map(json.loads, done.stdout.splitlines()) if "event" in record]


def of_type(events, kind):
    return [event for event in events if event["type"] == kind]


@pytest.mark.req("EN-4")
def test_child_has_its_own_context_and_journal(ostler, models):
    (ostler.workspace / "a.txt").write_text("alpha\n")
    with models.playing(
        calls([("task", {"prompt": "what is in a.txt?", "agent": "explore", "title": "look"})]),
        calls([("read", {"path": "a.txt"})]),
        text("a.txt says alpha"),
        text("it is alpha"),
    ) as server:
        done = ostler("run", "-o", "jsonl", *at(server), "please find out")
        first, child, _, last = (request.json for request in server.requests)
    assert "task" in [tool["function"]["name"] for tool in first["tools"]]
    assert "task" not in [tool["function"]["name"] for tool in child["tools"]]
    assert "please find out" not in json.dumps(child["messages"]) and "what is in a.txt?" in json.dumps(child)
    assert "a.txt says alpha" in json.dumps(last["messages"][-1])
    events = events_of(done)
    (started,), (ended,) = of_type(events, "child_started"), of_type(events, "child_ended")
    assert (started["agent"], started["title"], ended["reason"]) == ("explore", "look", "done")
    assert any(progress["last"] == "read" for progress in of_type(events, "child_progress") if "last" in progress)
    (journal,) = ostler.home.rglob(f"{started['child_id']}/*.jsonl")
    assert '"parent_id"' in journal.read_text()


@pytest.mark.req("EN-4", "PM-2")
@pytest.mark.parametrize(
    ("parent", "child", "written"),
    [("build", "general", True), ("build", "explore", False), ("plan", "general", False)],
)
def test_child_has_no_more_permissions_than_its_parent(ostler, models, parent, child, written):
    hostile = [("write", {"path": "x", "content": "x"}), ("bash", {"command": "echo x >> x"})]
    with models.playing(
        calls([("task", {"prompt": "write x", "agent": child})]), calls(hostile), text("tried"), text("ok")
    ) as server:
        ostler("run", "--write", "--profile", "god_mode", "--agent", parent, *at(server), "go")
    assert (ostler.workspace / "x").exists() is written


@pytest.mark.req("EN-4")
def test_unusable_subagent_is_reported_to_the_model(ostler, models):
    with models.playing(calls([("task", {"prompt": "go", "agent": "plan"})]), text("ok")) as server:
        ostler("run", *at(server), "go")
        sent = json.dumps(server.requests[1].json["messages"][-1])
    assert "cannot be used as a subagent" in sent and "general" in sent


@pytest.mark.req("EN-4", "EN-5")
def test_interrupted_child_returns_its_output(ostler, models):
    with models.playing(
        calls([("task", {"prompt": "count", "agent": "brief"})]),
        calls([("list", {})], text="one so far"),
        text("ok"),
    ) as server:
        folder = ostler.home / ".ostler" / "agents"
        folder.mkdir(parents=True)
        (folder / "brief.md").write_text("---\ndescription: one step\nmode: subagent\nmax_steps: 1\n---\nBe brief.\n")
        done = ostler("run", "-o", "jsonl", *at(server), "go")
        sent = json.dumps(server.requests[2].json["messages"][-1])
    assert "interrupted: limit (1 step)" in sent and "one so far" in sent
    assert of_type(events_of(done), "child_ended")[0]["reason"] == "limit"


@pytest.mark.req("EN-4")
def test_task_tool_is_not_offered_without_subagents(ostler, models):
    (ostler.home / ".ostler").mkdir()
    (ostler.home / ".ostler" / "config.json").write_text('{"limits": {"subagents": 0}}')
    with models.playing(text("ok")) as server:
        ostler("run", *at(server), "go")
        names = [tool["function"]["name"] for tool in server.requests[0].json["tools"]]
    assert "read" in names and "task" not in names


@pytest.mark.req("EN-4")
def test_tasks_of_one_reply_run_in_parallel(ostler, models):
    tasks = [("task", {"prompt": f"part {n}", "agent": "explore"}) for n in (1, 2)]
    with models.playing(calls(tasks), text("a part"), text("a part"), text("ok")) as server:
        done = ostler("run", "-o", "jsonl", *at(server), "go")
    kinds = [event["type"] for event in events_of(done) if event["type"] in ("child_started", "child_ended")]
    assert kinds == ["child_started", "child_started", "child_ended", "child_ended"]


@pytest.mark.req("MD-8")
def test_child_usage_is_counted_once(ostler, models):
    with models.playing(
        calls([("task", {"prompt": "look", "agent": "explore"})]).with_usage(1000, 10),
        text("found").with_usage(500, 5),
        text("done").with_usage(2000, 20),
    ) as server:
        done = ostler("run", "-o", "jsonl", *at(server), "go")
    usage = of_type(events_of(done), "usage_reported")
    assert [(use["tokens_in"], bool(use.get("child_id"))) for use in usage] == [
        (1000, False),
        (500, True),
        (2000, False),
    ]
    stats = ostler("sessions", "stats").stdout
    (line,) = [line for line in stats.splitlines() if line.startswith("scripted")]
    assert line.split()[1:4] == ["3", "3500", "35"]
