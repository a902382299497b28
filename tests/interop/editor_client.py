"""An editor with the official Python SDK; prints what it saw as JSON. Run by a Python that has the SDK."""

import asyncio
import json
import os
import sys

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, ClientCapabilities, RequestPermissionResponse


class Client:
    def __init__(self):
        self.updates = []
        self.asked = 0

    def on_connect(self, connection):
        pass

    async def session_update(self, session_id, update, **_):
        self.updates.append(update.session_update)

    async def request_permission(self, options, session_id, tool_call, **_):
        self.asked += 1
        once = next(option for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=once.option_id))


async def main(cwd, *command):
    client = Client()
    async with spawn_agent_process(client, *command, env=dict(os.environ), cwd=cwd) as (agent, process):
        await agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=ClientCapabilities())
        opened = await agent.new_session(cwd=cwd, mcp_servers=[])

        def send(text):
            return agent.prompt(session_id=opened.session_id, prompt=[text_block(text)])

        first = await send("Write the word hello into the file x.txt in this folder.")
        turn = asyncio.ensure_future(send("Count slowly from one to two thousand."))
        await asyncio.sleep(0.3)
        await agent.cancel(session_id=opened.session_id)
        second = await turn
        listed = await agent.list_sessions(cwd=cwd)
    seen = {
        "updates": client.updates,
        "asked": client.asked,
        "listed": len(listed.sessions),
        "code": process.returncode,
    }
    seen |= {"first": {"stopReason": first.stop_reason}, "second": {"stopReason": second.stop_reason}}
    sys.stdout.write(json.dumps(seen) + "\n")


asyncio.run(main(*sys.argv[1:]))
