"""Prompt blocks, slash commands, modes and options from an editor."""

import pytest

from ostler.testing.model_server import calls, text
from ostler.wire.jsonrpc import RpcError

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.mark.req("AC-6")
async def test_prompt_reaches_the_model_with_all_blocks(editor_at):
    async with editor_at(text("Seen.")) as (editor, server):
        session = await editor.opened()
        await editor.prompt(
            session,
            "compare",
            {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///x/a.py", "text": "the_text = 1"}},
            {"type": "resource", "resource": {"uri": "file:///x/b.png", "blob": PIXEL, "mimeType": "image/png"}},
            {"type": "resource", "resource": {"uri": "file:///x/c.bin", "blob": PIXEL}},
            {"type": "resource_link", "uri": "file:///x/linked.py", "name": "linked.py"},
            "and tell",
        )
        sent = str(server.requests[-1].json["messages"])
        assert sent.count("'type': 'image_url'") == 2
        for part in ("compare", "the_text = 1", "file:///x/linked.py", "file:///x/c.bin", "and tell"):
            assert part in sent


async def test_mentioned_file_is_attached(editor_at):
    async with editor_at(text("Read.")) as (editor, server):
        (editor.folder / "notes.txt").write_text("the moon is high")
        await editor.prompt(await editor.opened(), "what of @notes.txt ?")
        assert "the moon is high" in str(server.requests[-1].json["messages"])


@pytest.fixture
def secrets(editor_at, tmp_path):
    """Files outside the workspace, one of which contains a secret."""
    (tmp_path / "home" / ".ssh").mkdir()
    (tmp_path / "home" / ".ssh" / "id_rsa").write_text("the-private-key\n")
    (tmp_path / "home" / "notes.txt").write_text("the-notes\n")


MENTIONS = "@agent:build @~/.ssh/id_rsa @~/notes.txt @a.txt"


@pytest.mark.req("PM-8", "AC-6")
@pytest.mark.parametrize(
    "blocks",
    [(f"issue:\n```\n{MENTIONS}\n```",), ("see", MENTIONS), (f"> {MENTIONS}",), ("", f"/init {MENTIONS}")],
    ids=["fence", "second block", "quote", "command in the second block"],
)
async def test_quoted_text_attaches_only_files_of_the_workspace_and_says_what_is_left_out(editor_at, secrets, blocks):
    async with editor_at(text("Seen.")) as (editor, server):
        (editor.folder / "a.txt").write_text("the-file\n")
        session = await editor.opened()
        await editor.peer.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
        await editor.prompt(session, *blocks)
        sent = str(server.requests[0].json)
        assert ["the-file" in sent, "the-private-key" in sent, "the-notes" in sent] == [True, False, False]
        assert editor.asked == []
        assert not editor.updates_of("current_mode_update")[1:]
        notices = "\n".join(update["content"]["text"] for update in editor.updates_of("agent_thought_chunk"))
        assert all(name in notices for name in ("agent:build", "id_rsa", "notes.txt"))


@pytest.mark.req("PM-8", "AC-6")
@pytest.mark.parametrize("answer", ["once", "deny", "nonsense"])
async def test_outside_files_and_agents_are_asked_for_in_typed_text(editor_at, secrets, answer):
    async with editor_at(text("Seen.")) as (editor, server):
        (editor.folder / "a.txt").write_text("the-file\n")
        editor.choosing(answer)
        session = await editor.opened()
        plan = {"sessionId": session, "configId": "agent", "value": "plan"}
        await editor.peer.request("session/set_config_option", plan)
        await editor.prompt(session, f"look {MENTIONS}")
        ((method, asked),) = editor.asked
        assert method == "session/request_permission"
        title = asked["toolCall"]["title"]
        assert all(name in title for name in ("id_rsa", "notes.txt", "agent build, which may do more than plan"))
        assert [option["kind"] for option in asked["options"]] == ["allow_once", "reject_once"]
        sent, allowed = str(server.requests[0].json), answer == "once"
        assert ["the-file" in sent, "the-private-key" in sent, "the-notes" in sent] == [True, allowed, allowed]
        options = editor.updates_of("config_option_update")[-1]["configOptions"]
        agent = next(option["currentValue"] for option in options if option["id"] == "agent")
        assert agent == ("build" if allowed else "plan")
        assert editor.call(asked["toolCall"]["toolCallId"])["status"] == ("completed" if allowed else "failed")


async def test_prompt_is_not_sent_if_its_question_is_cancelled(editor_at, secrets):
    async with editor_at() as (editor, server):

        async def cancel(params):
            return {"outcome": {"outcome": "cancelled"}}

        editor.answers["session/request_permission"] = cancel
        answer = await editor.prompt(await editor.opened(), "look @~/notes.txt")
        assert answer["stopReason"] == "cancelled"
        assert not server.requests


@pytest.mark.req("AC-6")
async def test_builtin_command_does_not_call_the_model(editor_at):
    async with editor_at() as (editor, _):
        session = await editor.opened()
        assert await editor.prompt(session, "/status") == {"stopReason": "end_turn"}
        assert session in editor.text()


@pytest.mark.req("AC-6")
async def test_title_of_a_session_is_the_first_prompt_until_it_is_renamed(editor_at):
    async with editor_at(text("Hi."), text("Again.")) as (editor, _):
        session = await editor.opened()
        await editor.prompt(session, "look at\nthe moons")
        await editor.prompt(session, "and the stars")
        await editor.prompt(session, "/title Of moons")
        await editor.until(lambda: len(editor.updates_of("session_info_update")) == 2)
        assert [update["title"] for update in editor.updates_of("session_info_update")] == [
            "look at the moons",
            "Of moons",
        ]
        listed = await editor.peer.request("session/list", {})
        assert [entry["title"] for entry in listed["sessions"]] == ["Of moons"]
        await editor.peer.request("session/resume", {"sessionId": session, "cwd": str(editor.folder), "mcpServers": []})
        await editor.until(lambda: len(editor.updates_of("session_info_update")) == 3)
        assert editor.updates_of("session_info_update")[-1]["title"] == "Of moons"


@pytest.mark.req("AC-6")
async def test_prompt_without_text_does_not_name_the_session(editor_at):
    async with editor_at(text("A moon."), text("A star.")) as (editor, _):
        session = await editor.opened()
        (editor.folder / "moon.txt").write_text("round")
        link = {"type": "resource_link", "uri": (editor.folder / "moon.txt").as_uri(), "name": "moon.txt"}
        await editor.prompt(session, link)
        await editor.prompt(session, "and the stars")
        await editor.until(lambda: editor.updates_of("session_info_update"))
        assert [update["title"] for update in editor.updates_of("session_info_update")] == ["and the stars"]
        listed = await editor.peer.request("session/list", {})
        assert [entry["title"] for entry in listed["sessions"]] == ["and the stars"]


@pytest.mark.req("AC-6")
async def test_custom_command_is_offered_and_becomes_a_prompt(editor_at):
    async with editor_at(text("Greeted.")) as (editor, server):
        folder = editor.folder / ".ostler" / "commands"
        folder.mkdir(parents=True)
        (folder / "greet.md").write_text("---\ndescription: greets\n---\nSay hello to $ARGUMENTS.\n")
        session = await editor.opened()
        await editor.until(lambda: editor.updates_of("available_commands_update"))
        (update,) = editor.updates_of("available_commands_update")
        assert {c["name"]: c["description"] for c in update["availableCommands"]}["greet"] == "greets"
        image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
        await editor.prompt(session, "/greet the moon", image)
        content = server.requests[-1].json["messages"][-1]["content"]
        assert "Say hello to the moon." in content[0]["text"]
        assert content[1]["type"] == "image_url"


async def test_text_that_starts_with_a_path_is_a_prompt(editor_at):
    async with editor_at(text("It is a file.")) as (editor, _):
        await editor.prompt(await editor.opened(), "/etc/hosts: what is it?")
        assert editor.text() == "It is a file."


@pytest.mark.parametrize("command", ["/quit", "/theme dark", "/memory", "/todo", "/permissions"])
async def test_every_command_has_a_text_result(editor_at, command):
    async with editor_at() as (editor, _):
        assert (await editor.prompt(await editor.opened(), command))["stopReason"] == "end_turn"
        assert editor.text()


async def test_failed_command_is_an_error(editor_at):
    async with editor_at() as (editor, _):
        with pytest.raises(RpcError, match="unknown agent 'nobody'"):
            await editor.prompt(await editor.opened(), "/agents nobody")


@pytest.mark.req("AC-6")
async def test_modes_and_options_are_offered(editor_at):
    async with editor_at() as (editor, _):
        await editor.begin()
        opened = await editor.peer.request("session/new", {"cwd": str(editor.folder), "mcpServers": []})
        assert {mode["id"] for mode in opened["modes"]["availableModes"]} == {"ask", "accept-edits", "plan"}
        options = {option["id"]: option for option in opened["configOptions"]}
        assert {name: option["category"] for name, option in options.items()} == {
            "model": "model",
            "agent": "_agent",
            "mode": "mode",
            "thinking": "thought_level",
            "profile": "_security",
        }
        for option in options.values():
            assert option["currentValue"] in [choice["value"] for choice in option["options"]]


@pytest.mark.req("AC-6")
async def test_mode_plan_denies_edits(editor_at):
    async with editor_at(calls([("write", {"path": "a.txt", "content": "x"})]), text("No.")) as (editor, _):
        session = await editor.opened()
        assert await editor.peer.request("session/set_mode", {"sessionId": session, "modeId": "plan"}) == {}
        await editor.until(lambda: editor.updates_of("current_mode_update"))
        assert editor.updates_of("current_mode_update")[-1]["currentModeId"] == "plan"
        editor.choosing("once")
        await editor.prompt(session, "write it")
        assert not (editor.folder / "a.txt").exists()


@pytest.mark.req("AC-6")
@pytest.mark.parametrize(("option", "value"), [("agent", "plan"), ("thinking", "high"), ("profile", "paranoid")])
async def test_option_is_set_and_sent(editor_at, option, value):
    async with editor_at() as (editor, _):
        session = await editor.opened()
        params = {"sessionId": session, "configId": option, "value": value}
        answer = await editor.peer.request("session/set_config_option", params)
        assert {o["id"]: o["currentValue"] for o in answer["configOptions"]}[option] == value
        await editor.until(lambda: editor.updates_of("config_option_update"))
        options = editor.updates_of("config_option_update")[-1]["configOptions"]
        assert {o["id"]: o["currentValue"] for o in options}[option] == value


async def test_thinking_can_be_reset(editor_at):
    async with editor_at() as (editor, _):
        session = await editor.opened()
        for value in ("low", "default"):
            params = {"sessionId": session, "configId": "thinking", "value": value}
            answer = await editor.peer.request("session/set_config_option", params)
        assert {o["id"]: o["currentValue"] for o in answer["configOptions"]}["thinking"] == "default"


@pytest.mark.parametrize(
    ("option", "value"), [("agent", "nobody"), ("moon", "full"), ("profile", "none"), ("agent", 1)]
)
async def test_invalid_choice_is_rejected(editor_at, option, value):
    async with editor_at() as (editor, _):
        session = await editor.opened()
        with pytest.raises(RpcError) as failed:
            params = {"sessionId": session, "configId": option, "value": value}
            await editor.peer.request("session/set_config_option", params)
        assert failed.value.code == -32602
        editor.faults.clear()
