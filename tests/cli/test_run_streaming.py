"""`ostler run` prints words as they arrive: the server sends each chunk only after the one before was read."""

import os
import re
import signal

import pytest
from tests.conftest import at
from tests.streaming_run import Pace, running

from ostler.testing.model_server import calls, sse_reply, text

WORDS = [f"word{number} " for number in range(10)]
ESCAPES = re.compile(r"\x1b\[[\d;]*m")
KEY = "sk-planted-0123456789abcdef"


@pytest.mark.req("CL-6", "MD-4")
@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize("form", ["text", "simple"])
def test_each_chunk_is_printed_before_the_next_is_sent(ostler, models, form, terminal):
    pace = Pace()
    with (
        models.playing(text("".join(WORDS), chunks=len(WORDS)).paced_by(pace.wait)) as server,
        running(ostler, "-o", form, *at(server), "hi", terminal=terminal) as screen,
    ):
        for word in WORDS:
            pace.step()
            screen.wait_for(word.strip())
        pace.step(10)
        shown = ESCAPES.sub("", screen.read_all())
    line = "".join(WORDS).rstrip()
    if form == "simple":
        assert shown.rstrip("\n").rstrip() == line
    else:
        rows = "word0 word1 word2 word3 word4 word5 word6 word7 word8 word9"
        assert " ".join(shown.split()) == f"● {rows} ↑ ANSWER"
    assert (screen.process.returncode, shown[-1]) == (0, "\n")


@pytest.mark.req("CL-6")
def test_complete_line_is_printed_before_the_next_is_sent(ostler, models):
    pace = Pace()
    with (
        models.playing(text("one\ntwo\n", chunks=2).paced_by(pace.wait)) as server,
        running(ostler, "-o", "simple", *at(server), "hi") as screen,
    ):
        pace.step()
        screen.wait_for("one\n")
        pace.step(10)
        assert screen.read_all() == "one\ntwo\n"


@pytest.mark.req("CL-6", "CL-8")
def test_simple_output_is_the_text_of_all_messages(ostler, models):
    with models.playing(calls([("list", {})], text="Looking.\n\n"), text("\nNothing\n\nhere.\n")) as server:
        done = ostler("run", "-o", "simple", *at(server), "look")
    assert (done.code, done.stdout) == (0, "Looking.\nNothing\n\nhere.\n")


@pytest.mark.req("CL-6")
@pytest.mark.parametrize("form", ["text", "simple"])
def test_cancelled_reply_ends_with_a_newline(ostler, models, form):
    pace = Pace()
    with (
        models.playing(text("one two", chunks=2).paced_by(pace.wait)) as server,
        running(ostler, "-o", form, *at(server), "hi") as screen,
    ):
        pace.step()
        screen.wait_for("one ")
        os.kill(screen.process.pid, signal.SIGINT)
        shown = screen.read_all()
        pace.step(10)
    expected = {"text": "● one \n  [truncated]\n✗ cancelled\n", "simple": "one \n"}
    assert (shown, screen.process.returncode) == (expected[form], 130)


@pytest.mark.req("CL-6", "CL-8")
@pytest.mark.parametrize("form", ["text", "simple"])
def test_closed_pipe_ends_the_run_without_a_traceback(ostler, models, form):
    pace = Pace()
    with (
        models.playing(text("one two three", chunks=3).paced_by(pace.wait)) as server,
        running(ostler, "-o", form, *at(server), "hi") as screen,
    ):
        pace.step()
        screen.wait_for("one")
        reader, writer = os.pipe()
        os.dup2(reader, screen._stream)  # closes the pipe's reading end
        os.close(reader)
        os.close(writer)
        pace.step(10)
        screen.process.wait(timeout=30)
        assert "Traceback" not in screen.process.stderr.read().decode()


@pytest.mark.req("CL-6", "MD-4")
def test_reasoning_is_not_printed(ostler, models):
    chunk = {"choices": [{"index": 0, "delta": {"content": "<think>Hidden."}}]}
    more = [{"choices": [{"index": 0, "delta": {"content": part}}]} for part in (" words</th", "ink>Shown", ".")]
    with models.playing(sse_reply(chunk, *more)) as server:
        done = ostler("run", "-o", "simple", *at(server), "hi")
    assert done.stdout == "Shown.\n"


@pytest.mark.req("CL-6", "MD-6")
@pytest.mark.parametrize(
    "call",
    [
        '<tool_call>{"name": "list", "arguments": {}}</tool_call>',
        '```json\n{"name": "list", "arguments": {}}\n```',
    ],
)
def test_call_in_streamed_text_is_not_printed(ostler, models, call):
    replies = [text(f"Looking.\n{call}", chunks=30), text("Done.")]
    with models.playing(*replies) as server:
        done = ostler("run", "-o", "simple", "--dialect", "text", *at(server), "look")
    assert done.stdout == "Looking.\nDone.\n"


@pytest.mark.req("CL-6", "PM-7")
@pytest.mark.parametrize("form", ["text", "simple"])
@pytest.mark.parametrize("chunks", [2, 9, 40])
def test_split_secrets_and_escapes_are_not_printed(ostler, models, form, chunks):
    reply = f"The key is {KEY}, \x1b]0;title\x07and \x1b[31mred\x1b[0m."
    with models.playing(text(reply, chunks=chunks)) as server:
        done = ostler("run", "-o", form, *at(server), "hi", env={"OSTLER_API_KEY": KEY})
    assert "The key is ***WITHHELD-BY-OSTLER***, and red." in done.stdout
    assert "\x1b" not in done.stdout
