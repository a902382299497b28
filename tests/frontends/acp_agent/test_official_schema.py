"""Validates everything the agent sends against the official schema with an independent validator."""

import asyncio
import json
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from ostler.testing.model_server import calls, text

SCHEMA = Path(__file__).parents[2] / "data" / "acp" / "schema.json"
TODOS = [{"content": "look", "status": "in_progress"}]


@cache
def definition(name):
    whole = json.loads(SCHEMA.read_text())
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": whole["$defs"]})


SAID = {"session/update": "SessionNotification", "session/request_permission": "RequestPermissionRequest"}


@pytest.mark.req("AC-6")
async def test_conversation_matches_the_official_schema(editor_at):
    script = (
        calls([("todowrite", {"todos": TODOS}), ("read", {"path": "a.txt"})], text="First I look."),
        calls([("edit", {"path": "a.txt", "old": "one", "new": "1"}), ("bash", {"command": "cat a.txt"})]),
        text("Done.", thought="Hm.").with_usage(100, 10),
    )
    async with editor_at(*script) as (editor, _):
        (editor.folder / "a.txt").write_text("one\n")
        editor.choosing("once")
        answers = {"InitializeResponse": await editor.begin()}
        place = {"cwd": str(editor.folder), "mcpServers": []}
        answers["NewSessionResponse"] = opened = await editor.peer.request("session/new", place)
        session = opened["sessionId"]
        answers["PromptResponse"] = await editor.prompt(session, "go")
        params = {"sessionId": session, "configId": "thinking", "value": "low"}
        answers["SetSessionConfigOptionResponse"] = await editor.peer.request("session/set_config_option", params)
        answers["ListSessionsResponse"] = await editor.peer.request("session/list", {})
        load = {**place, "sessionId": session}
        answers["LoadSessionResponse"] = await editor.peer.request("session/load", load)
        await asyncio.sleep(0)
        for name, answer in answers.items():
            definition(name).validate(answer)
        frames = [json.loads(line) for line in editor.frames]
        said = [frame for frame in frames if "method" in frame]
        for frame in said:
            definition(SAID[frame["method"]]).validate(frame["params"])
        kinds = {frame["params"]["update"]["sessionUpdate"] for frame in said if frame["method"] == "session/update"}
        assert kinds >= {
            *("agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan", "usage_update"),
            *("config_option_update", "available_commands_update", "user_message_chunk"),
        }
