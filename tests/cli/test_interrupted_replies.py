"""Text that was on the screen survives the end of the process."""

import json
import os
import signal
import time

import pytest
from tests.conftest import at
from tests.streaming_run import Pace, running

from ostler.testing.model_server import text


def journal_records(ostler):
    (path,) = (ostler.home / ".ostler").rglob("journal.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def saved_text(ostler):
    """Return the saved parts of the reply that is being streamed."""
    events = [record["event"] for record in journal_records(ostler)]
    return "".join(event.get("text", "") for event in events if event["type"] == "partial_reply")


def wait_until_saved(ostler, expected):
    deadline = time.monotonic() + 30
    while expected not in saved_text(ostler):
        assert time.monotonic() < deadline
        os.sched_yield()


@pytest.mark.req("SE-1", "CL-6")
def test_text_on_the_screen_survives_kill_9(ostler, models):
    pace = Pace()
    parts = ["The first words, ", "then more words, ", "and never these."]
    size = max(map(len, parts))
    reply = text("".join(part.ljust(size) for part in parts), chunks=3)
    with (
        models.playing(reply.paced_by(pace.wait)) as server,
        running(ostler, "-o", "simple", *at(server), "tell me") as screen,
    ):
        pace.step(2)
        screen.wait_for("more words")
        wait_until_saved(ostler, "more words")
        os.killpg(screen.process.pid, signal.SIGKILL)
        screen.process.wait(timeout=30)
        pace.step(10)
    assert "then more words" in ostler("sessions", "show", "last").stdout
    with models.playing(text("Going on.")) as server:
        done = ostler("run", "--continue", *at(server), "continue")
        sent = server.requests[0].json["messages"]
    assert done.code == 0
    assert [message["role"] for message in sent[-3:]] == ["user", "assistant", "user"]
    assert sent[-2]["content"].startswith("The first words,")
    assert "never these" not in str(sent)
    shown = ostler("sessions", "show", "last").stdout
    assert shown.count("then more words") == 1
    for form in ("markdown", "html"):
        exported = ostler("sessions", "export", "last", "--format", form)
        assert exported.stdout.count("then more words") == 1, exported.stderr
    assert "then more words" in next((ostler.home / ".ostler").rglob("history.xnl")).read_text()
    assert "then more" in ostler("sessions", "search", "more words").stdout
