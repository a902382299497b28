"""Updates as events without a process: recorded conversations of real agents, and what they are shown as."""

import json
from pathlib import Path

import pytest

from ostler.backends.acp.serving import choice
from ostler.backends.acp.showing import display
from ostler.backends.acp.telling import Teller
from ostler.backends.acp.watch import Watch
from ostler.vocabulary.events import MessageDone, Notice, TodosChanged, ToolCalled, ToolFinished
from ostler.vocabulary.permission import Decision
from ostler.wire.acp import PermissionOption, ToolCallFields, ToolContent
from ostler.wire.acp_calls import PermissionRequest
from ostler.wire.acp_read import read
from ostler.wire.acp_updates import read_update

FRAMES = Path(__file__).parents[2] / "data" / "acp" / "frames"


def told(name):
    """All the events that a recorded conversation becomes."""
    events, asked = [], {}
    teller = Teller(name, "/W/repo", events.append, Watch())
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
            teller.update(read_update(frame["params"]["update"]))
        elif method == "session/request_permission":
            teller.tool_call(read(PermissionRequest, frame["params"]).tool_call)
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
    teller = Teller("x", "/w", events.append, Watch())
    begun = {"sessionUpdate": "tool_call", "toolCallId": "call_1", "status": "completed"}
    for title in ("first", "second"):
        teller.begin_turn()
        teller.update(read_update({**begun, "title": title, "rawOutput": title}))
        teller.update(read_update({**begun, "title": "again", "rawOutput": "again"}))
        teller.finish_turn()
        teller.update(read_update({**begun, "title": "late"}))
    called = [(event.title, event.call.id) for event in events if isinstance(event, ToolCalled)]
    finished = [(event.result.for_model, event.result.call_id) for event in events if isinstance(event, ToolFinished)]
    assert [title for title, _ in called] == ["first", "second"] == [text for text, _ in finished]
    assert [call_id for _, call_id in called] == [call_id for _, call_id in finished]
    assert len({call_id for _, call_id in called}) == 2


def test_plans_and_notices_of_any_kind():
    events = []
    teller = Teller("x", "/w", events.append, Watch())
    entries = [{"content": "a", "priority": "urgent", "status": "dreaming"}]
    teller.update(read_update({"sessionUpdate": "plan", "entries": entries}))
    teller.update(read_update({"sessionUpdate": "notice", "severity": "warning", "title": "T", "description": "D"}))
    teller.update(read_update({"sessionUpdate": "compaction_update", "status": "x"}))
    teller.update(read_update({"sessionUpdate": "tool_call"}))
    (todo,) = events[0].items
    assert isinstance(events[0], TodosChanged)
    assert (todo.content, todo.status, todo.priority) == ("a", "pending", "medium")
    assert [(event.level, event.text) for event in events[1:2]] == [("warning", "T: D")]
    assert "compaction_update" in events[2].text
    teller.begin_turn()
    teller.update(read_update({"sessionUpdate": "tool_call"}))
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
        (Decision("allow", by="person", lasts="project", option_id="aa"), ALL, "aa"),
        (Decision("allow", by="person", lasts="once", option_id="aa"), ALL, "ao"),
        (Decision("deny", by="person", option_id="ao"), ALL, "ro"),
        (Decision("deny", by="person", option_id="ra"), ALL, "ra"),
    ],
)
def test_an_option_is_chosen_by_its_kind(decision, options, expected):
    outcome = choice(decision, options)["outcome"]
    assert outcome.get("optionId") == expected
    assert outcome["outcome"] == ("selected" if expected else "cancelled")


@pytest.mark.req("PM-5")
def test_a_long_change_is_shown_whole_to_whoever_is_asked():
    after = "".join(f"line {n}\n" for n in range(2000))
    call = ToolCallFields("c", content=(ToolContent("diff", path="/W/repo/x", new_text=after),))
    (shown,) = display(call, "/W/repo").blocks
    assert (shown.cut, shown.diff.count("\n+line")) == (False, 2000)
