"""Long sessions: opening, scrolling and streaming touch only what is visible."""

import time

import pytest
from tests.frontends.tui.tui_user import full_screen, say
from tests.stored_examples import STORED

from ostler.core.events import (
    Envelope,
    MessageDone,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from ostler.core.message import Message, ThoughtPart
from ostler.core.prompt import TextContent
from ostler.core.tools import Display, ToolCall, ToolResult
from ostler.frontends.tui.strips import StripMaker
from ostler.frontends.tui.transcript import model as model_module
from ostler.frontends.tui.transcript.entries import KINDS
from ostler.frontends.tui.transcript.model import TranscriptModel
from ostler.frontends.tui.transcript.viewport import Viewport
from ostler.journal.memory_journal import MemoryJournal
from ostler.journal.records import ListRecords
from ostler.session.transcript import CallBlock, Transcript
from ostler.testing.session_fixture import make_prompt
from ostler.wire.event_codec import decode_event

TURNS = 5000


def stored(turns=TURNS):
    """Events of a session with a prompt and an answer in each turn."""
    events = []
    for number in range(turns):
        events += [
            TurnStarted(f"t{number}", make_prompt(f"question {number}", f"p{number}")),
            MessageDone(Message(f"m{number}", (TextContent(f"Answer **{number}**.\n\n- one\n- two\n"),))),
            TurnEnded(f"t{number}", "done"),
        ]
    return [Envelope(seq, 0.0, event) for seq, event in enumerate(events, 1)]


def make_model(envelopes):
    from rich.style import Style

    model = TranscriptModel(StripMaker(Style(), {}))
    records = ListRecords(envelopes)
    model.load(records, len(records))
    return model


@pytest.mark.req("TU-7")
async def test_ten_thousand_messages_open_within_a_second(open_session):
    journal = MemoryJournal("session-1")
    for envelope in stored():
        journal.append(envelope)
    session = await open_session(journal=journal)
    started = time.perf_counter()
    model = make_model([])
    model.load(session.records(), session.records().index_after(session.opened_after_seq))
    rows = Viewport(model).rows(40)
    assert time.perf_counter() - started < 1.0
    assert len(rows) == 40


@pytest.mark.req("TU-7", "TU-10")
def test_only_visible_entries_are_rendered(monkeypatch):
    rendered = []
    render = model_module.render_screen_block
    monkeypatch.setattr(
        model_module, "render_screen_block", lambda block, *args: (rendered.append(block.id), render(block, *args))[1]
    )
    model = make_model(stored())
    viewport = Viewport(model)
    viewport.rows(40)
    assert len(set(rendered)) < 60
    rendered.clear()
    viewport.rows(30)  # only the height changed
    assert not rendered
    viewport.set_columns(50)
    viewport.rows(30)
    assert 0 < len(set(rendered)) < 60


@pytest.mark.req("TU-10")
@pytest.mark.parametrize("is_live", [True, False])
def test_resize_wraps_only_the_visible_part_of_a_long_message(monkeypatch, is_live):
    text = "\n\n".join(f"paragraph {number} with words that are wrapped in a narrow window" for number in range(3000))
    model = make_model([])
    for start in range(0, len(text), 1000):
        model.apply(Envelope(1, 0.0, TextDelta("m", text[start : start + 1000])))
    while model.advance():
        pass
    if not is_live:
        model.apply(Envelope(2, 0.0, MessageDone(Message("m", (TextContent(text),)))))
    viewport = Viewport(model)
    viewport.rows(30)
    rendered = []
    render = model_module.render_section
    monkeypatch.setattr(model_module, "render_section", lambda *args: (rendered.append(args[1].text), render(*args))[1])
    viewport.scroll(-101)
    top = viewport.rows(30)[0].strip.text.strip("● \n")
    rendered.clear()
    viewport.rows(20)
    assert not rendered, "a change of height wraps nothing"
    for columns in range(70, 30, -1):
        rendered.clear()
        viewport.set_columns(columns)
        rows = viewport.rows(30)
        assert 0 < len(rendered) < 4
        assert rows[0].strip.text.split()[:2] == top.split()[:2], "the line at the top stays"


PARAGRAPHS = [f"paragraph {number} with *words* that are wrapped in a narrow window" for number in range(300)]


@pytest.mark.req("TU-10")
@pytest.mark.parametrize("start", ["", "\n\n\n\n\n"])
@pytest.mark.parametrize("thought", ["", "Some\nreasoning."])
@pytest.mark.parametrize("end", ["done", "interrupted"])
@pytest.mark.parametrize("scrolled", [-10, -101, -400])
@pytest.mark.sampled(every=4)
def test_line_at_the_top_stays_when_the_message_ends(start, thought, end, scrolled):
    model = make_model(stored(1))
    text = start + "\n\n".join(PARAGRAPHS)
    if thought:
        model.apply(Envelope(1, 0.0, ThoughtDelta("m", thought)))
    model.apply(Envelope(1, 0.0, TextDelta("m", text[:-2000])))
    while model.advance():
        pass
    viewport = Viewport(model)
    viewport.rows(30)
    viewport.scroll(scrolled)
    top = viewport.rows(30)[0].strip.text
    model.apply(Envelope(1, 0.0, TextDelta("m", text[-2000:])))
    while model.advance():
        pass
    assert viewport.rows(30)[0].strip.text == top, "the section at the top was completed"
    if end == "done":
        reasoning = [ThoughtPart(thought)] if thought else []
        model.apply(Envelope(2, 0.0, MessageDone(Message("m", (*reasoning, TextContent(text))))))
    else:
        model.apply(Envelope(2, 0.0, TurnEnded("t", "cancelled")))
    assert viewport.rows(30)[0].strip.text == top
    assert not viewport.following


@pytest.mark.req("TU-10")
@pytest.mark.parametrize("scrolled", [-100, -101, -102, -103])
def test_line_at_the_top_is_the_same_after_many_resizes(scrolled):
    model = make_model([])
    model.apply(Envelope(1, 0.0, TextDelta("m", "\n\n".join(PARAGRAPHS))))
    while model.advance():
        pass
    viewport = Viewport(model)
    viewport.set_columns(30)
    viewport.rows(30)
    viewport.scroll(scrolled)
    top = next(row.strip.text for row in viewport.rows(30) if row.strip.text.strip())
    for columns in (*range(31, 120, 7), 30):
        viewport.set_columns(columns)
        viewport.rows(30)
    assert next(row.strip.text for row in viewport.rows(30) if row.strip.text.strip()) == top


@pytest.mark.req("TU-10")
def test_folded_entry_stays_at_the_top():
    model = make_model(stored(40))
    output = "\n".join(f"output {number}" for number in range(100))
    model.apply(Envelope(200, 0.0, ToolCalled(ToolCall("c", "bash", {"command": "seq"}))))
    model.apply(Envelope(201, 0.0, ToolFinished(ToolResult("c", "ok", output, Display(output)))))
    call = len(model.entries) - 1
    model.apply(Envelope(202, 0.0, MessageDone(Message("m", (TextContent("\n\n".join(PARAGRAPHS)),)))))
    model.toggle_fold(call)
    viewport = Viewport(model)
    viewport.rows(30)
    viewport.scroll_to(call, 60)
    assert "output 5" in viewport.rows(30)[0].strip.text
    model.toggle_fold(call)
    assert viewport.rows(30)[0].entry == call


@pytest.mark.req("TU-10")
def test_row_of_a_long_entry_is_shown():
    model = make_model([])
    model.apply(Envelope(2, 0.0, MessageDone(Message("m", (TextContent("\n\n".join(PARAGRAPHS)),)))))
    viewport = Viewport(model)
    viewport.rows(30)
    viewport.scroll_to(0, 400)
    assert any("paragraph 200 " in row.strip.text for row in viewport.rows(30))


@pytest.mark.req("TU-10")
def test_everything_can_be_reached_and_nothing_is_thrown_away():
    model = make_model(stored(700))
    viewport = Viewport(model)
    seen = {row.strip.text.strip() for row in viewport.rows(20)}
    for _ in range(700):
        viewport.scroll(-19)
        seen.update(row.strip.text.strip() for row in viewport.rows(20))
    assert {f"> question {number}" for number in range(700)} <= seen
    assert sum(entry.blocks is not None for entry in model.entries) <= model_module.MAX_DECODED


@pytest.mark.req("TU-7")
async def test_stream_of_many_chunks_is_shown_completely(open_session):
    text = "\n".join(f"line {number} with some words" for number in range(600))
    session = await open_session([say(text)])
    async with full_screen(session) as user:
        await user.type("go")
        await user.wait_for("line 599")
    assert user.transcript.count("with some words") == 600


@pytest.mark.req("TU-10")
def test_every_stored_event_that_adds_a_block_is_shown_in_a_resumed_session():
    examples = [decode_event(line) for line in (STORED / "events.jsonl").read_bytes().splitlines()]
    blocks = {event.__struct_config__.tag: Transcript().apply(event) for event in examples if event.persisted}
    shown = {tag for tag, block in blocks.items() if block and not isinstance(block, CallBlock)}
    assert shown <= KINDS.keys()
