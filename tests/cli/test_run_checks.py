"""The check after edits in `ostler run`."""

import json

import pytest

from ostler.testing.model_server import calls, text


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def run_with_check(ostler, models, validation, path, replies):
    (ostler.home / ".ostler").mkdir(exist_ok=True)
    (ostler.home / ".ostler" / "config.json").write_text(json.dumps({"validation": validation}))
    write = calls([("write", {"path": path, "content": "x = 1\n"})])
    with models.playing(write, *replies) as server:
        done = ostler("run", "-o", "json", "--write", *at(server), "go")
        return json.loads(done.stdout), [json.dumps(request.json["messages"]) for request in server.requests]


FAILS = {"checks": {"python": "echo broken by you; exit 1"}}


@pytest.mark.req("EN-6")
@pytest.mark.parametrize(
    ("validation", "path"),
    [
        ({**FAILS, "enabled": False}, "a.py"),
        (FAILS, "README.md"),
        (FAILS, "docs/a.rst"),
        (FAILS, "notes.txt"),
    ],
    ids=["switched off", "Markdown", "docs", "text"],
)
def test_no_check_if_disabled_or_only_docs_changed(ostler, models, validation, path):
    summary, sent = run_with_check(ostler, models, validation, path, [text("done")])
    assert len(sent) == 2 and "broken by you" not in "".join(sent)
    assert (summary["answer"], summary["notices"]) == ("done", [])


@pytest.mark.req("EN-6")
def test_failure_is_sent_to_the_model_a_few_times(ostler, models):
    again = [[text("fixed"), calls([("write", {"path": "a.py", "content": f"x = {n}\n"})])] for n in range(2, 5)]
    replies = [reply for pair in again for reply in pair] + [text("fixed")]
    summary, sent = run_with_check(ostler, models, FAILS, "a.py", replies)
    assert [request.count("after your edits") for request in sent] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert (summary["reason"], summary["exit"], summary["error"]["code"]) == ("failed", 1, "check_failed")
    assert "the check still fails after 3 repair attempts" in summary["error"]["message"]


@pytest.mark.req("EN-6")
def test_giving_up_is_reported(ostler, models):
    summary, sent = run_with_check(ostler, models, FAILS, "a.py", [text("done"), text("I cannot fix it")])
    assert (summary["reason"], summary["exit"], summary["error"]["code"]) == ("failed", 1, "check_failed")
    assert "the check still fails and the model made no further changes" in summary["error"]["message"]
    assert len(sent) == 3


@pytest.mark.req("EN-6")
def test_check_that_cannot_run_is_reported_once(ostler, models):
    summary, sent = run_with_check(
        ostler, models, {"checks": {"python": "no-such-checker-here"}}, "a.py", [text("done")]
    )
    assert len(sent) == 2
    assert "could not run" in summary["notices"][-1]


@pytest.mark.req("EN-6", "PM-2")
def test_denied_check_is_reported(ostler, models):
    (ostler.workspace / ".ostler").mkdir()
    (ostler.workspace / ".ostler" / "config.json").write_text(json.dumps({"permission": {"bash": "deny"}}))
    summary, sent = run_with_check(ostler, models, {"checks": {"python": "true"}}, "a.py", [text("done")])
    assert len(sent) == 2 and "could not run" in summary["notices"][-1]
