"""The check after edits through `ostler run`: when it runs, when it does not, and what is said where it could not."""

import json

import pytest

from ostler.testing.model_server import calls, text


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def play(ostler, models, validation, path, replies):
    (ostler.home / ".ostler").mkdir(exist_ok=True)
    (ostler.home / ".ostler" / "config.json").write_text(json.dumps({"validation": validation}))
    wrote = calls([("write", {"path": path, "content": "x = 1\n"})])
    with models.playing(wrote, *replies) as server:
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
def test_no_check_where_none_is_wanted_or_only_docs_changed(ostler, models, validation, path):
    summary, sent = play(ostler, models, validation, path, [text("done")])
    assert len(sent) == 2 and "broken by you" not in "".join(sent)
    assert (summary["answer"], summary["notices"]) == ("done", [])


@pytest.mark.req("EN-6")
def test_a_failure_goes_back_to_the_model_a_few_times(ostler, models):
    again = [[text("mended"), calls([("write", {"path": "a.py", "content": f"x = {n}\n"})])] for n in range(2, 5)]
    replies = [reply for pair in again for reply in pair] + [text("mended")]
    summary, sent = play(ostler, models, FAILS, "a.py", replies)
    assert [request.count("after your edits") for request in sent] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert summary["notices"][-1] == "the check still fails after 3 repair attempts"


@pytest.mark.req("EN-6")
def test_a_model_that_gives_up_is_said(ostler, models):
    summary, sent = play(ostler, models, FAILS, "a.py", [text("done"), text("I cannot mend it")])
    assert summary["notices"][-1] == "the check still fails and the model made no further changes"
    assert len(sent) == 3


@pytest.mark.req("EN-6")
def test_a_check_that_cannot_run_is_told_and_not_repeated(ostler, models):
    summary, sent = play(ostler, models, {"checks": {"python": "no-such-checker-here"}}, "a.py", [text("done")])
    assert len(sent) == 2
    assert "could not run" in summary["notices"][-1]


@pytest.mark.req("EN-6", "PM-2")
def test_a_rule_that_denies_it_holds_and_is_said_at_the_end(ostler, models):
    (ostler.workspace / ".ostler").mkdir()
    (ostler.workspace / ".ostler" / "config.json").write_text(json.dumps({"permission": {"bash": "deny"}}))
    summary, sent = play(ostler, models, {"checks": {"python": "true"}}, "a.py", [text("done")])
    assert len(sent) == 2 and "could not run" in summary["notices"][-1]
