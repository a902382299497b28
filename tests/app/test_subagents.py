"""Child sessions: approval requests, interrupted tasks and nesting."""

import asyncio
import json
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

import ostler as package
from ostler.core.events import ChildEnded, ChildProgress, ChildStarted, PermissionAsked, ToolFinished
from ostler.core.permission import Decision
from ostler.core.sessions import SetOption
from ostler.journal.file_journal import read_journal
from ostler.models.anthropic_request import messages_body
from ostler.models.model_types import ModelRequest
from ostler.models.openai_request import ServerQuirks, chat_body
from ostler.testing.scripted_model import ScriptedCall, ScriptedLine, ScriptedModel

sys.path.insert(0, str(Path(__file__).parents[1] / "backends" / "engine"))
from test_interrupted_history import check_anthropic, check_openai  # beside the engine's tests

TASK = ScriptedCall("task", {"prompt": "write x", "agent": "general", "title": "write"})
WRITE = ScriptedCall("write", {"path": "x.txt", "content": "x"})


@pytest.mark.req("EN-4", "PM-5")
@pytest.mark.parametrize("answer", ["allow", "deny"])
@pytest.mark.invariant("P14")
async def test_approval_request_of_a_child_is_asked_in_the_parent(work, answer):
    titles = []

    async def approve(ask: PermissionAsked):
        titles.append(ask.permission.title)
        return Decision(answer, by="person")

    model = ScriptedModel(
        [ScriptedLine(calls=(TASK,)), ScriptedLine(calls=(WRITE,)), ScriptedLine("tried"), ScriptedLine("done")]
    )
    async with package.open_session(str(work), model=model, ask=approve) as conversation:
        turn = await conversation.run("have a subagent write x")
    model.finish()
    assert [title for title in titles if "x.txt" in title and title.startswith("general: ")]
    assert (work / "x.txt").exists() is (answer == "allow")
    assert turn.answer == "done"
    kinds = [type(event) for event in turn.events if isinstance(event, ChildStarted | PermissionAsked | ChildEnded)]
    assert kinds == [ChildStarted, PermissionAsked, ChildEnded]


@pytest.mark.req("EN-4", "PM-5")
async def test_some_hunks_of_a_childs_change_can_be_allowed(work):
    before = "".join(f"line {n}\n" for n in range(20))
    (work / "x.txt").write_text(before)
    edits = [{"old": "line 2\n", "new": "two\n"}, {"old": "line 17\n", "new": "seventeen\n"}]
    edit = ScriptedCall("edit", {"path": "x.txt", "edits": edits})

    async def approve(ask: PermissionAsked):
        return Decision("allow", by="person", hunks=(1,) if ask.permission.by_hunk else None)

    model = ScriptedModel(
        [ScriptedLine(calls=(TASK,)), ScriptedLine(calls=(edit,)), ScriptedLine("tried"), ScriptedLine("done")]
    )
    async with package.open_session(str(work), model=model, ask=approve) as conversation:
        await conversation.run("have a subagent edit x")
    assert (work / "x.txt").read_text() == before.replace("line 2\n", "two\n")


@pytest.mark.req("EN-4")
async def test_interrupted_task_returns_all_texts(work):
    look = ScriptedCall("list", {})
    lines = [
        ScriptedLine(calls=(TASK,)),
        ScriptedLine("The fault is in a.py.", calls=(look,)),
        ScriptedLine("Now I", error="gone"),
        ScriptedLine("ok"),
    ]
    model = ScriptedModel(lines)
    async with package.open_session(str(work), model=model, write=True) as conversation:
        turn = await conversation.run("go")
    (task,) = [item.result for item in turn.tools if item.call.tool == "task"]
    assert task.status == "failed" and "The fault is in a.py." in task.for_model


@pytest.mark.req("EN-4", "EN-2")
async def test_cancelled_turn_keeps_the_childs_output(work):
    never = asyncio.Event()
    lines = [ScriptedLine(calls=(TASK,)), ScriptedLine("half of\nthe an", pause=never), ScriptedLine("and now whole")]
    model = ScriptedModel(lines)
    async with package.open_session(str(work), model=model, write=True) as conversation:
        async with aclosing(conversation.stream("go")) as stream:
            async for event in stream:
                if isinstance(event, ChildProgress) and len(model.requests) == 2:
                    await asyncio.sleep(0)
                    break
        events = conversation.session.events()
        (result,) = [event.result for event in events if isinstance(event, ToolFinished)]
        (child,) = [event for event in events if isinstance(event, ChildStarted)]
        assert [event.reason for event in events if isinstance(event, ChildEnded)] == ["cancelled"]
        assert result.status == "cancelled" and "interrupted" in result.for_model
        await conversation.run("go on")
    request = model.requests[-1]
    for system, history in ((request.system, request.history), _history_of(work, child.child_id)):
        body = ModelRequest(system or "s", history, ())
        check_openai(chat_body("m", body, ServerQuirks(), {}))
        check_anthropic(messages_body("m", body, 1000, {}))
    assert "was interrupted" in json.dumps(str(request.history))


def _history_of(work, session_id):
    """Return the system prompt and history of a further request of the child."""
    from ostler.backends.engine.history import fold_history
    from ostler.core.events import TurnStarted
    from ostler.core.prompt import Prompt, TextContent

    (journal,) = work.parent.rglob(f"{session_id}/*.jsonl")
    events = [envelope.event for envelope in read_journal(journal)]
    return "s", fold_history([*events, TurnStarted("next", Prompt("next", (TextContent("and now?"),)))])


@pytest.mark.req("EN-4")
@pytest.mark.invariant("S9")
async def test_child_cannot_start_children(work):
    lines = [ScriptedLine(calls=(TASK,)), ScriptedLine(calls=(TASK,)), ScriptedLine("could not"), ScriptedLine("done")]
    model = ScriptedModel(lines)
    async with package.open_session(str(work), model=model) as conversation:
        turn = await conversation.run("go")
    assert len([event for event in turn.events if isinstance(event, ChildStarted)]) == 1
    assert "are not available in this session" in str(model.requests[2].history[-1])


BASH = ScriptedCall("bash", {"command": "python3 -c \"open('y.txt', 'w')\""})


@pytest.mark.req("EN-4", "PM-2")
@pytest.mark.parametrize(("first", "then"), [("build", "plan"), ("plan", "build")])
@pytest.mark.invariant("P14")
async def test_switch_of_the_agent_during_a_turn_never_widens_a_running_child(work, first, then):

    async def approve(ask: PermissionAsked):
        return ask.permission.title.startswith("delegate to general") or Decision("deny", by="person")

    switched = asyncio.Event()
    model = ScriptedModel(
        [
            ScriptedLine(calls=(TASK,)),
            ScriptedLine("I write.", calls=(BASH, WRITE), pause=switched),
            ScriptedLine("tried"),
            ScriptedLine("done"),
        ]
    )
    async with (
        package.open_session(str(work), model=model, ask=approve, agent=first) as conversation,
        aclosing(conversation.stream("have a subagent write")) as events,
    ):
        async for event in events:
            if isinstance(event, ChildProgress) and len(model.requests) == 2 and not switched.is_set():
                await conversation.session.apply(SetOption("agent", then))
                switched.set()
    assert switched.is_set() and len(model.requests) == 4
    assert not (work / "x.txt").exists() and not (work / "y.txt").exists()
