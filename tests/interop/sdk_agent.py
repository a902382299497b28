"""An agent with the official Python SDK that makes every client request once; run by a Python that has the SDK."""

import asyncio

from acp import run_agent, update_agent_message_text
from acp.schema import (
    AgentCapabilities,
    InitializeResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ToolCallUpdate,
)

OPTIONS = [
    PermissionOption(option_id="y", name="Yes", kind="allow_once"),
    PermissionOption(option_id="n", name="No", kind="reject_once"),
]


class Agent:
    def on_connect(self, client):
        self.client = client

    async def initialize(self, protocol_version, **more):
        return InitializeResponse(protocol_version=1, agent_capabilities=AgentCapabilities())

    async def new_session(self, cwd, mcp_servers=None, **more):
        self.cwd = cwd
        return NewSessionResponse(session_id="s1")

    async def prompt(self, session_id, prompt, **more):
        client, place = self.client, {"session_id": session_id}
        prompt_text = " ".join(getattr(block, "text", "") for block in prompt)
        read = await client.read_text_file(**place, path=f"{self.cwd}/README.md", line=1, limit=1)
        terminal = await client.create_terminal(**place, command="echo", args=["hi"])
        place["terminal_id"] = terminal.terminal_id
        await client.wait_for_terminal_exit(**place)
        output = (await client.terminal_output(**place)).output
        await client.release_terminal(**place)
        call = ToolCallUpdate(tool_call_id="c1", title="Edit", kind="edit")
        answer = await client.request_permission(session_id=session_id, tool_call=call, options=OPTIONS)
        text = f"{prompt_text}|{read.content.strip()}|{output.strip()}|{answer.outcome.option_id}"
        await client.session_update(session_id, update_agent_message_text(text))
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id, **more):
        pass


asyncio.run(run_agent(Agent()))
