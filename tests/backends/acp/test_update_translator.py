"""Updates as events without a process: recorded conversations of real agents, and what they are shown as."""

import json
from pathlib import Path

import pytest

from ostler.backends.acp.client_requests import select_option
from ostler.backends.acp.observer import AcpObserver
from ostler.backends.acp.tool_call_display import make_display
from ostler.backends.acp.update_translator import UpdateTranslator
from ostler.core.events import MessageDone, Notice, TodosChanged, ToolCalled, ToolFinished
from ostler.core.permission import Decision
from ostler.wire.acp import PermissionOption, ToolCallContent, ToolCallFields
from ostler.wire.acp_decode import decode_lenient
from ostler.wire.acp_requests import RequestPermissionRequest
from ostler.wire.acp_updates import decode_update

FRAMES = Path(__file__).parents[2] / "data" / "acp" / "frames"


def told(name):
    """All the events that a recorded conversation becomes."""
    events, asked = [], {}
    teller = UpdateTranslator(name, "/W/repo", events.append, AcpObserver())
    for line in (FRAMES / f"{name}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        frame = entry["frame"]
        method = frame.get("method")
        if entry["dir"] == "->" and "id" in frame and method:
            asked[frame["id"]] = method
            if method == "session/prompt":
                teller.begin_turn()
            elif method == "session/load":
                teller.phase = "replay"
        elif entry["dir"] == "->":
            continue
        elif method == "session/update":
            teller.translate(decode_update(frame["params"]["update"]))
        elif method == "session/request_permission":
            teller.apply_tool_call(decode_lenient(RequestPermissionRequest, frame["params"]).tool_call)
        elif asked.get(frame.get("id")) in ("session/prompt", "session/load"):
            teller.finish_turn()
    return events


@pytest.mark.req("AC-7", "AC-2")
@pytest.mark.parametrize("name", ["claude-old", "gemini", "opencode", "pi", "qwen"])
def test_a_recorded_conversation_becomes_proper_events(name):
    events = told(name)
    words = [event.message.text for event in events if isinstance(event, MessageDone)]
    assert any("MOCK-FINAL-OK" in text for text in words)
    assert any("SECOND-OK" in text for text in words)
    called = [event.call.id for event in events if isinstance(event, ToolCalled)]
    finished = [event.result.call_id for event in events if isinstance(event, ToolFinished)]
    assert called
    assert len(finished) == len(set(finished)) >= 1
    for call_id in finished:
        at = next(i for i, e in enumerate(events) if isinstance(e, ToolCalled) and e.call.id == call_id)
        assert at < next(i for i, e in enumerate(events) if isinstance(e, ToolFinished) and e.result.call_id == call_id)


@pytest.mark.req("AC-7")
def test_quirks_that_were_seen_on_the_wire():
    gemini = [event for event in told("gemini") if isinstance(event, ToolCalled)]
    assert gemini[0].title == "cat README.md > copied.txt"  # first heard of in a permission request
    banner = [event.text for event in told("pi") if isinstance(event, Notice)]
    assert banner  # pi says something before the first prompt
    shown = [e.result.for_human.blocks for e in told("pi") if isinstance(e, ToolFinished)]
    assert any(block.text == "(no output)" for blocks in shown for block in blocks)  # a terminal of the agent's own


def test_an_id_that_comes_again_in_a_later_turn_is_another_call():
    """Models behind agents number their calls anew in every turn."""
    events = []
    teller = UpdateTranslator("x", "/w", events.append, AcpObserver())
    begun = {"sessionUpdate": "tool_call", "toolCallId": "call_1", "status": "completed"}
    for title in ("first", "second"):
        teller.begin_turn()
        teller.translate(decode_update({**begun, "title": title, "rawOutput": title}))
        teller.translate(decode_update({**begun, "title": "again", "rawOutput": "again"}))
        teller.finish_turn()
        teller.translate(decode_update({**begun, "title": "late"}))
    called = [(event.title, event.call.id) for event in events if isinstance(event, ToolCalled)]
    finished = [(event.result.for_model, event.result.call_id) for event in events if isinstance(event, ToolFinished)]
    assert [title for title, _ in called] == ["first", "second"] == [text for text, _ in finished]
    assert [call_id for _, call_id in called] == [call_id for _, call_id in finished]
    assert len({call_id for _, call_id in called}) == 2


def test_plans_and_notices_of_any_kind():
    events = []
    teller = UpdateTranslator("x", "/w", events.append, AcpObserver())
    entries = [{"content": "a", "priority": "urgent", "status": "dreaming"}]
    teller.translate(decode_update({"sessionUpdate": "plan", "entries": entries}))
    teller.translate(
        decode_update({"sessionUpdate": "notice", "severity": "warning", "title": "T", "description": "D"})
    )
    teller.translate(decode_update({"sessionUpdate": "compaction_update", "status": "x"}))
    teller.translate(decode_update({"sessionUpdate": "tool_call"}))
    (todo,) = events[0].items
    assert isinstance(events[0], TodosChanged)
    assert (todo.content, todo.status, todo.priority) == ("a", "pending", "medium")
    assert [(event.level, event.text) for event in events[1:2]] == [("warning", "T: D")]
    assert "compaction_update" in events[2].text
    teller.begin_turn()
    teller.translate(decode_update({"sessionUpdate": "tool_call"}))
    assert len(events) == 3  # a call outside a turn, or without an id, is none


def option(option_id, kind):
    return PermissionOption(option_id, option_id, kind)


ALL = [
    option("aa", "allow_always"),
    option("ao", "allow_once"),
    option("ra", "reject_always"),
    option("ro", "reject_once"),
]


@pytest.mark.req("PM-4", "AC-2")
@pytest.mark.parametrize(
    ("decision", "options", "expected"),
    [
        (Decision("allow"), ALL, "ao"),
        (Decision("deny"), ALL, "ro"),
        (Decision("allow"), ALL[:1], "aa"),
        (Decision("deny"), ALL[2:3], "ra"),
        (Decision("deny"), ALL[:2], None),
        (Decision("allow"), ALL[2:], None),
        (Decision("allow"), [option("x", "brand_new")], None),
        (Decision("allow"), [], None),
        (Decision("cancel"), ALL, None),
        (Decision("allow", by="person", scope="project", option_id="aa"), ALL, "aa"),
        (Decision("allow", by="person", scope="once", option_id="aa"), ALL, "ao"),
        (Decision("deny", by="person", option_id="ao"), ALL, "ro"),
        (Decision("deny", by="person", option_id="ra"), ALL, "ra"),
    ],
)
def test_an_option_is_chosen_by_its_kind(decision, options, expected):
    outcome = select_option(decision, options)["outcome"]
    assert outcome.get("optionId") == expected
    assert outcome["outcome"] == ("selected" if expected else "cancelled")


@pytest.mark.req("PM-5")
def test_a_long_change_is_shown_whole_to_whoever_is_asked():
    after = "".join(f"line {n}\n" for n in range(2000))
    call = ToolCallFields("c", content=(ToolCallContent("diff", path="/W/repo/x", new_text=after),))
    (shown,) = make_display(call, "/W/repo").blocks
    assert (shown.truncated, shown.diff.count("\n+line")) == (False, 2000)
