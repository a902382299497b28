"""What an editor says and chooses: blocks of a prompt, slash commands, modes and options."""

import pytest

from ostler.testing.model_server import calls, text
from ostler.wire.jsonrpc import RpcError

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.mark.req("AC-6")
async def test_a_prompt_reaches_the_model_with_all_its_blocks(editor_at):
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
        for wanted in ("compare", "the_text = 1", "file:///x/linked.py", "file:///x/c.bin", "and tell"):
            assert wanted in sent


async def test_a_file_mentioned_in_the_words_comes_along(editor_at):
    async with editor_at(text("Read.")) as (editor, server):
        (editor.folder / "notes.txt").write_text("the moon is high")
        await editor.prompt(await editor.opened(), "what of @notes.txt ?")
        assert "the moon is high" in str(server.requests[-1].json["messages"])


@pytest.mark.req("AC-6")
async def test_a_command_of_ours_answers_without_a_model(editor_at):
    async with editor_at() as (editor, _):
        session = await editor.opened()
        assert await editor.prompt(session, "/status") == {"stopReason": "end_turn"}
        assert session in editor.text()


@pytest.mark.req("AC-6")
async def test_a_title_is_told_and_listed(editor_at):
    async with editor_at(text("Hi.")) as (editor, _):
        session = await editor.opened()
        await editor.prompt(session, "hello")
        await editor.prompt(session, "/title Of moons")
        await editor.until(lambda: editor.told("session_info_update"))
        assert editor.told("session_info_update")[-1]["title"] == "Of moons"
        (listed,) = (await editor.peer.request("session/list", {}))["sessions"]
        assert listed["title"] == "Of moons"


@pytest.mark.req("AC-6")
async def test_a_command_from_a_file_is_offered_and_becomes_a_prompt(editor_at):
    async with editor_at(text("Greeted.")) as (editor, server):
        folder = editor.folder / ".ostler" / "commands"
        folder.mkdir(parents=True)
        (folder / "greet.md").write_text("---\ndescription: greets\n---\nSay hello to $ARGUMENTS.\n")
        session = await editor.opened()
        await editor.until(lambda: editor.told("available_commands_update"))
        (told,) = editor.told("available_commands_update")
        assert {c["name"]: c["description"] for c in told["availableCommands"]}["greet"] == "greets"
        image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
        await editor.prompt(session, "/greet the moon", image)
        content = server.requests[-1].json["messages"][-1]["content"]
        assert "Say hello to the moon." in content[0]["text"]
        assert content[1]["type"] == "image_url"


async def test_words_that_begin_with_a_path_are_words(editor_at):
    async with editor_at(text("It is a file.")) as (editor, _):
        await editor.prompt(await editor.opened(), "/etc/hosts: what is it?")
        assert editor.text() == "It is a file."


@pytest.mark.parametrize("command", ["/quit", "/theme dark", "/memory", "/todo", "/permissions"])
async def test_every_command_comes_to_words(editor_at, command):
    async with editor_at() as (editor, _):
        assert (await editor.prompt(await editor.opened(), command))["stopReason"] == "end_turn"
        assert editor.text()


async def test_a_command_that_cannot_be_says_why(editor_at):
    async with editor_at() as (editor, _):
        with pytest.raises(RpcError, match="unknown agent 'nobody'"):
            await editor.prompt(await editor.opened(), "/agents nobody")


@pytest.mark.req("AC-6")
async def test_modes_and_options_are_offered(editor_at):
    async with editor_at() as (editor, _):
        await editor.begin()
        opened = await editor.peer.request("session/new", {"cwd": str(editor.folder), "mcpServers": []})
        assert {mode["id"] for mode in opened["modes"]["availableModes"]} >= {"build", "plan"}
        options = {option["id"]: option for option in opened["configOptions"]}
        assert {name: option["category"] for name, option in options.items()} == {
            "model": "model",
            "agent": "mode",
            "thinking": "thought_level",
            "profile": "_security",
        }
        for option in options.values():
            assert option["currentValue"] in [choice["value"] for choice in option["options"]]


@pytest.mark.req("AC-6")
async def test_a_mode_is_an_agent_and_holds(editor_at):
    async with editor_at(calls([("write", {"path": "a.txt", "content": "x"})]), text("No.")) as (editor, _):
        session = await editor.opened()
        assert await editor.peer.request("session/set_mode", {"sessionId": session, "modeId": "plan"}) == {}
        await editor.until(lambda: editor.told("current_mode_update"))
        assert editor.told("current_mode_update")[-1]["currentModeId"] == "plan"
        editor.choosing("once")
        await editor.prompt(session, "write it")
        assert not (editor.folder / "a.txt").exists()


@pytest.mark.req("AC-6")
@pytest.mark.parametrize(("option", "value"), [("agent", "plan"), ("thinking", "high"), ("profile", "paranoid")])
async def test_an_option_is_set_and_told(editor_at, option, value):
    async with editor_at() as (editor, _):
        session = await editor.opened()
        params = {"sessionId": session, "configId": option, "value": value}
        answer = await editor.peer.request("session/set_config_option", params)
        assert {o["id"]: o["currentValue"] for o in answer["configOptions"]}[option] == value
        await editor.until(lambda: editor.told("config_option_update"))
        told = editor.told("config_option_update")[-1]["configOptions"]
        assert {o["id"]: o["currentValue"] for o in told}[option] == value


async def test_thinking_can_be_left_to_the_model_again(editor_at):
    async with editor_at() as (editor, _):
        session = await editor.opened()
        for value in ("low", "default"):
            params = {"sessionId": session, "configId": "thinking", "value": value}
            answer = await editor.peer.request("session/set_config_option", params)
        assert {o["id"]: o["currentValue"] for o in answer["configOptions"]}["thinking"] == "default"


@pytest.mark.parametrize(
    ("option", "value"), [("agent", "nobody"), ("moon", "full"), ("profile", "none"), ("agent", 1)]
)
async def test_what_is_no_choice_is_refused(editor_at, option, value):
    async with editor_at() as (editor, _):
        session = await editor.opened()
        with pytest.raises(RpcError) as failed:
            params = {"sessionId": session, "configId": option, "value": value}
            await editor.peer.request("session/set_config_option", params)
        assert failed.value.code == -32602
        editor.faults.clear()
