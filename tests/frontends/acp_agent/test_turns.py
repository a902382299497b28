"""Turns in an editor: text, tool calls, approval requests, stop reasons."""

import asyncio

import pytest

from ostler.testing.model_server import calls, status, text
from ostler.wire.jsonrpc import RpcError

THINKING = text("I am thinking", chunks=4).stall_after(3)


@pytest.mark.req("AC-6")
async def test_text_is_streamed_with_one_id_per_message(editor_at):
    async with editor_at(text("Hello there.")) as (editor, _):
        session = await editor.opened()
        answer = await editor.prompt(session, "hi")
        assert answer["stopReason"] == "end_turn"
        assert editor.text() == "Hello there."
        assert len({u["messageId"] for u in editor.updates_of("agent_message_chunk")}) == 1


@pytest.mark.req("AC-6")
async def test_commands_are_sent_after_the_session_response(editor_at):
    async with editor_at() as (editor, _):
        session = await editor.opened()
        assert editor.updates == []
        await editor.until(lambda: editor.updates_of("available_commands_update"))
        ((session_id, update),) = editor.updates
        assert session_id == session
        names = {command["name"] for command in update["availableCommands"]}
        assert {"status", "compact", "undo"} <= names
        assert not {"quit", "new"} & names


@pytest.mark.req("AC-6")
async def test_read_call_has_kind_location_and_result(editor_at):
    async with editor_at(calls([("read", {"path": "a.txt", "line": 2})]), text("Done.")) as (editor, _):
        (editor.folder / "a.txt").write_text("one\ntwo\n")
        session = await editor.opened()
        await editor.prompt(session, "look")
        (started,) = editor.updates_of("tool_call")
        call = editor.call(started["toolCallId"])
        assert (call["kind"], call["status"], call["title"]) == ("read", "completed", "read a.txt")
        assert call["locations"] == [{"path": str(editor.folder / "a.txt"), "line": 2}]
        assert call["rawInput"] == {"path": "a.txt", "line": 2}


@pytest.mark.req("AC-6", "PM-5")
async def test_write_needs_approval_and_shows_its_diff(editor_at):
    async with editor_at(calls([("edit", {"path": "a.txt", "old": "two", "new": "2"})]), text("Done.")) as (editor, _):
        (editor.folder / "a.txt").write_text("one\ntwo\n")
        editor.choosing("once")
        session = await editor.opened()
        await editor.prompt(session, "change it")
        ((_, asked),) = editor.asked
        assert asked["sessionId"] == session
        assert [option["kind"] for option in asked["options"]] == [
            *("allow_once", "allow_always", "allow_always", "allow_always", "reject_once"),
        ]
        diff = {"type": "diff", "path": str(editor.folder / "a.txt"), "oldText": "one\ntwo\n", "newText": "one\n2\n"}
        assert asked["toolCall"]["content"] == [diff]
        assert (asked["toolCall"]["kind"], asked["toolCall"]["title"]) == ("edit", "edit a.txt")
        call = editor.call(asked["toolCall"]["toolCallId"])
        assert (call["status"], call["content"]) == ("completed", [diff])
        assert (editor.folder / "a.txt").read_text() == "one\n2\n"


@pytest.mark.req("AC-6", "PM-7")
async def test_denied_call_fails_and_the_turn_continues(editor_at):
    replies = calls([("write", {"path": "a.txt", "content": "x"})]), text("As you say.")
    async with editor_at(*replies) as (editor, server):
        editor.choosing("deny")
        session = await editor.opened()
        answer = await editor.prompt(session, "write it")
        assert answer["stopReason"] == "end_turn"
        assert editor.call(editor.asked[0][1]["toolCall"]["toolCallId"])["status"] == "failed"
        assert not (editor.folder / "a.txt").exists()
        assert "denied" in str(server.requests[-1].json["messages"][-1])


@pytest.mark.req("AC-6", "PM-6")
async def test_approval_for_the_session_is_remembered(editor_at):
    first, second = (calls([("write", {"path": "a.txt", "content": word})]) for word in ("one", "two"))
    async with editor_at(first, text("Once."), second, text("Twice.")) as (editor, _):
        editor.choosing("session")
        session = await editor.opened()
        await editor.prompt(session, "write")
        await editor.prompt(session, "again")
        assert len(editor.asked) == 1
        assert (editor.folder / "a.txt").read_text() == "two"


@pytest.mark.req("AC-6", "PM-5")
async def test_label_of_a_lasting_answer_says_what_it_covers(editor_at):
    change = calls([("write", {"path": "a1.txt", "content": "x"})])
    run = calls([("bash", {"command": "git push origin main && npm run build > log.txt", "write": True})])
    async with editor_at(change, run, text("Done.")) as (editor, _):
        editor.choosing("deny")
        await editor.prompt(await editor.opened(), "go")
        first, second = [params for method, params in editor.asked if method == "session/request_permission"]
        assert [option["name"] for option in first["options"]] == [
            "Allow once",
            "Allow write a1.txt in this session",
            "Allow all edits in this workspace, in this session",
            "Always allow write a1.txt in this project",
            "Deny",
        ]
        rules = "run git push *, run npm run build *, write log.txt"
        assert second["options"][1]["name"] == f"Allow {rules} in this session"


@pytest.mark.req("AC-6", "PM-5")
async def test_rules_that_are_too_long_for_a_label_are_listed(editor_at):
    command = " && ".join(f"tool{number} --with-a-long-option-name" for number in range(9))
    async with editor_at(calls([("bash", {"command": command, "write": True})]), text("Done.")) as (editor, _):
        editor.choosing("deny")
        await editor.prompt(await editor.opened(), "go")
        ((_, asked),) = editor.asked
        assert asked["options"][1]["name"] == "Allow the 9 listed rules in this session"
        listed = asked["toolCall"]["content"][-1]["content"]["text"]
        assert all(f"- bash: tool{number} " in listed for number in range(9))


@pytest.mark.req("SH-3")
async def test_dangerous_command_can_only_be_allowed_once(editor_at):
    async with editor_at(calls([("bash", {"command": "rm -r x"})]), text("Fine.")) as (editor, _):
        editor.choosing("deny")
        await editor.prompt(await editor.opened(), "go")
        ((_, asked),) = editor.asked
        assert [option["kind"] for option in asked["options"]] == ["allow_once", "reject_once"]


@pytest.mark.parametrize("answer", [None, {}, {"outcome": {"outcome": "selected", "optionId": "no such"}}, 7])
async def test_invalid_answer_of_the_editor_is_a_denial(editor_at, answer):
    async with editor_at(calls([("write", {"path": "a.txt", "content": "x"})]), text("Fine.")) as (editor, _):

        async def say(params):
            return answer

        if answer is not None:
            editor.answers["session/request_permission"] = say
        await editor.prompt(await editor.opened(), "go")
        editor.faults.clear()  # the editor's answers are invalid here
        assert not (editor.folder / "a.txt").exists()


@pytest.mark.req("AC-6")
async def test_todos_are_a_plan(editor_at):
    todos = [{"content": "look", "status": "in_progress", "priority": "high"}, {"content": "mend"}]
    async with editor_at(calls([("todowrite", {"todos": todos})]), text("Planned.")) as (editor, _):
        await editor.prompt(await editor.opened(), "plan")
        (plan,) = editor.updates_of("plan")
        assert plan["entries"] == [
            {"content": "look", "priority": "high", "status": "in_progress"},
            {"content": "mend", "priority": "medium", "status": "pending"},
        ]


@pytest.mark.req("AC-6")
async def test_cancel_while_the_model_replies(editor_at):
    async with editor_at(THINKING) as (editor, _):
        session = await editor.opened()
        turn = asyncio.ensure_future(editor.prompt(session, "go"))
        await editor.until(lambda: editor.text())
        editor.peer.notify("session/cancel", {"sessionId": session})
        assert (await turn)["stopReason"] == "cancelled"


@pytest.mark.req("AC-6")
async def test_cancel_during_an_approval_request(editor_at):
    async with editor_at(calls([("write", {"path": "a.txt", "content": "x"})]), text("Again.")) as (editor, _):

        async def cancel(params):
            editor.peer.notify("session/cancel", {"sessionId": params["sessionId"]})
            return {"outcome": {"outcome": "cancelled"}}

        editor.answers["session/request_permission"] = cancel
        session = await editor.opened()
        assert (await editor.prompt(session, "go"))["stopReason"] == "cancelled"
        assert not (editor.folder / "a.txt").exists()
        (started,) = editor.updates_of("tool_call")
        assert editor.call(started["toolCallId"])["status"] == "failed"
        assert (await editor.prompt(session, "go on"))["stopReason"] == "end_turn"


async def test_cancel_directly_after_the_prompt(editor_at):
    async with editor_at() as (editor, _):
        session = await editor.opened()
        turn = asyncio.ensure_future(editor.prompt(session, "go"))
        await asyncio.sleep(0)
        editor.peer.notify("session/cancel", {"sessionId": session})
        assert (await turn)["stopReason"] == "cancelled"


async def test_cancel_without_a_turn_is_ignored(editor_at):
    async with editor_at(text("Still here.")) as (editor, _):
        session = await editor.opened()
        editor.peer.notify("session/cancel", {"sessionId": session})
        editor.peer.notify("session/cancel", {"sessionId": "nobody"})
        assert (await editor.prompt(session, "go"))["stopReason"] == "end_turn"


async def test_cancelled_request_cancels_the_turn(editor_at):
    async with editor_at(THINKING, text("Next.")) as (editor, _):
        session = await editor.opened()
        turn = asyncio.ensure_future(editor.prompt(session, "go"))
        await editor.until(lambda: editor.text())
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        while True:
            try:
                assert (await editor.prompt(session, "next"))["stopReason"] == "end_turn"
                return
            except RpcError as error:
                assert "still running" in error.message


async def test_one_turn_at_a_time(editor_at):
    async with editor_at(THINKING) as (editor, _):
        session = await editor.opened()
        turn = asyncio.ensure_future(editor.prompt(session, "go"))
        await editor.until(lambda: editor.text())
        with pytest.raises(RpcError, match="still running"):
            await editor.prompt(session, "and this")
        editor.peer.notify("session/cancel", {"sessionId": session})
        await turn


@pytest.mark.req("AC-5")
async def test_model_error_is_one_sentence(editor_at):
    async with editor_at(status(401, "bad key")) as (editor, _):
        with pytest.raises(RpcError) as failed:
            await editor.prompt(await editor.opened(), "go")
        assert "key" in failed.value.message
        assert "Traceback" not in str(failed.value.data)


async def test_limit_is_a_stop_reason(editor_at):
    async with editor_at(calls([("list", {})]), max_steps=1) as (editor, _):
        assert (await editor.prompt(await editor.opened(), "go"))["stopReason"] == "max_turn_requests"


@pytest.mark.req("AC-6")
async def test_usage_is_sent(editor_at):
    async with editor_at(text("Hi.").with_usage(11, 3)) as (editor, _):
        answer = await editor.prompt(await editor.opened(), "go")
        assert answer["usage"] == {"totalTokens": 14, "inputTokens": 11, "outputTokens": 3}
        assert editor.updates_of("usage_update")[-1]["used"] > 0


@pytest.mark.req("AC-6")
async def test_two_sessions_in_parallel(editor_at):
    async with editor_at(THINKING, text("Quick.")) as (editor, _):
        slow, quick = await editor.opened(), await editor.new()
        turn = asyncio.ensure_future(editor.prompt(slow, "go"))
        await editor.until(lambda: editor.text(slow))
        assert (await editor.prompt(quick, "go"))["stopReason"] == "end_turn"
        assert editor.text(quick) == "Quick."
        editor.peer.notify("session/cancel", {"sessionId": slow})
        assert (await turn)["stopReason"] == "cancelled"


@pytest.mark.req("AC-6", "SH-1")
async def test_command_output_is_shown_while_it_runs(editor_at):
    command = "echo first; while [ ! -e go ]; do sleep 0.05; done; echo second; while [ ! -e on ]; do sleep 0.05; done"
    async with editor_at(calls([("bash", {"command": command})]), text("Done.")) as (editor, _):
        editor.choosing("once")
        session = await editor.opened()
        turn = asyncio.ensure_future(editor.prompt(session, "go"))

        def shown():
            contents = [
                item["content"]["text"]
                for u in editor.updates_of("tool_call_update")
                for item in u.get("content") or ()
            ]
            return contents[-1] if contents else ""

        await editor.until(lambda: "first" in shown())
        (editor.folder / "go").touch()
        await editor.until(lambda: "second" in shown())
        assert shown() == "```\nfirst\nsecond\n```"
        (editor.folder / "on").touch()
        await turn
