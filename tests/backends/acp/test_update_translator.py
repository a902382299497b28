"""Updates become events: recorded connections of real agents, and how calls are displayed."""

import json
from pathlib import Path

import pytest

from ostler.backends.acp.client_requests import select_option
from ostler.backends.acp.tool_call_display import make_display
from ostler.backends.acp.update_translator import UpdateTranslator
from ostler.core.events import MessageDone, Notice, TodosChanged, ToolCalled, ToolFinished
from ostler.core.permission import Decision
from ostler.wire.acp import PermissionOption, ToolCallContent, ToolCallFields
from ostler.wire.acp_decode import decode_lenient
from ostler.wire.acp_observer import AcpObserver
from ostler.wire.acp_requests import RequestPermissionRequest
from ostler.wire.acp_updates import decode_update

FRAMES = Path(__file__).parents[2] / "data" / "acp" / "frames"


def events_of(name):
    """Return all events of a recorded connection."""
    events, methods = [], {}
    translator = UpdateTranslator(name, "/W/repo", events.append, AcpObserver())
    for line in (FRAMES / f"{name}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        frame = entry["frame"]
        method = frame.get("method")
        if entry["dir"] == "->" and "id" in frame and method:
            methods[frame["id"]] = method
            if method == "session/prompt":
                translator.begin_turn()
            elif method == "session/load":
                translator.phase = "replay"
        elif entry["dir"] == "->":
            continue
        elif method == "session/update":
            translator.translate(decode_update(frame["params"]["update"]))
        elif method == "session/request_permission":
            translator.apply_tool_call(decode_lenient(RequestPermissionRequest, frame["params"]).tool_call)
        elif methods.get(frame.get("id")) in ("session/prompt", "session/load"):
            translator.finish_turn()
    return events


@pytest.mark.req("AC-7", "AC-2")
@pytest.mark.parametrize("name", ["claude-old", "gemini", "opencode", "pi", "qwen"])
def test_recorded_connection_becomes_events(name):
    events = events_of(name)
    texts = [event.message.text for event in events if isinstance(event, MessageDone)]
    assert any("MOCK-FINAL-OK" in text for text in texts)
    assert any("SECOND-OK" in text for text in texts)
    called = [event.call.id for event in events if isinstance(event, ToolCalled)]
    finished = [event.result.call_id for event in events if isinstance(event, ToolFinished)]
    assert called
    assert len(finished) == len(set(finished)) >= 1
    for call_id in finished:
        index = next(i for i, e in enumerate(events) if isinstance(e, ToolCalled) and e.call.id == call_id)
        assert index < next(
            i for i, e in enumerate(events) if isinstance(e, ToolFinished) and e.result.call_id == call_id
        )


@pytest.mark.req("AC-7")
def test_quirks_of_real_agents():
    gemini = [event for event in events_of("gemini") if isinstance(event, ToolCalled)]
    assert gemini[0].title == "cat README.md > copied.txt"  # first announced in a permission request
    banner = [event.text for event in events_of("pi") if isinstance(event, Notice)]
    assert banner  # pi sends text before the first prompt
    displayed = [e.result.for_human.blocks for e in events_of("pi") if isinstance(e, ToolFinished)]
    assert any(
        block.text == "(no output)" for blocks in displayed for block in blocks
    )  # one of the agent's own terminals


def test_call_id_reused_in_a_later_turn_is_another_call():
    """Models behind agents restart their numbering in every turn."""
    events = []
    translator = UpdateTranslator("x", "/w", events.append, AcpObserver())
    update = {"sessionUpdate": "tool_call", "toolCallId": "call_1", "status": "completed"}
    for title in ("first", "second"):
        translator.begin_turn()
        translator.translate(decode_update({**update, "title": title, "rawOutput": title}))
        translator.translate(decode_update({**update, "title": "again", "rawOutput": "again"}))
        translator.finish_turn()
        translator.translate(decode_update({**update, "title": "late"}))
    called = [(event.title, event.call.id) for event in events if isinstance(event, ToolCalled)]
    finished = [(event.result.for_model, event.result.call_id) for event in events if isinstance(event, ToolFinished)]
    assert [title for title, _ in called] == ["first", "second"] == [text for text, _ in finished]
    assert [call_id for _, call_id in called] == [call_id for _, call_id in finished]
    assert len({call_id for _, call_id in called}) == 2


def test_plans_and_notices():
    events = []
    translator = UpdateTranslator("x", "/w", events.append, AcpObserver())
    entries = [{"content": "a", "priority": "urgent", "status": "dreaming"}]
    translator.translate(decode_update({"sessionUpdate": "plan", "entries": entries}))
    translator.translate(
        decode_update({"sessionUpdate": "notice", "severity": "warning", "title": "T", "description": "D"})
    )
    translator.translate(decode_update({"sessionUpdate": "compaction_update", "status": "x"}))
    translator.translate(decode_update({"sessionUpdate": "tool_call"}))
    (todo,) = events[0].items
    assert isinstance(events[0], TodosChanged)
    assert (todo.content, todo.status, todo.priority) == ("a", "pending", "medium")
    assert [(event.level, event.text) for event in events[1:2]] == [("warning", "T: D")]
    assert "compaction_update" in events[2].text
    translator.begin_turn()
    translator.translate(decode_update({"sessionUpdate": "tool_call"}))
    assert len(events) == 3  # a call outside a turn or without an id is ignored


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
def test_option_is_selected_by_kind(decision, options, expected):
    outcome = select_option(decision, options)["outcome"]
    assert outcome.get("optionId") == expected
    assert outcome["outcome"] == ("selected" if expected else "cancelled")


@pytest.mark.req("PM-5")
def test_long_diff_is_displayed_completely():
    after = "".join(f"line {n}\n" for n in range(2000))
    call = ToolCallFields("c", content=(ToolCallContent("diff", path="/W/repo/x", new_text=after),))
    (block,) = make_display(call, "/W/repo").blocks
    assert (block.truncated, block.diff.count("\n+line")) == (False, 2000)
