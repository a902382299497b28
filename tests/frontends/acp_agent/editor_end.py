"""The editor's side of a connection in this process; every frame is validated against the protocol's schema."""

import asyncio

from ostler.frontends.acp_agent.handler import AcpAgentHandler
from ostler.wire.acp_validator import AcpValidator
from ostler.wire.jsonrpc import METHOD_NOT_FOUND, JsonRpcPeer, RpcError

NOTHING = {}
UNSTABLE = ("session/fork",)


class EditorEnd:
    """Sends requests to the agent, records its messages, and answers its requests by method."""

    def __init__(self, folder, manager, workspaces):
        self.folder = folder
        self.updates = []
        self.asked = []
        self.answers = {}
        self.faults = []
        self.frames = []
        self._changed = asyncio.Event()
        self._checker = AcpValidator()
        self._loop = asyncio.get_running_loop()
        self.agent = AcpAgentHandler(manager, workspaces, "0")
        self.agent.peer = JsonRpcPeer(self._from_agent, self.agent, is_server=True)
        self.peer = JsonRpcPeer(self._to_agent, self)

    def _to_agent(self, line):
        self._check("client", line)
        self._loop.call_soon(self.agent.peer.feed, line)

    def _from_agent(self, line):
        self.frames.append(line)
        self._check("agent", line)
        self._loop.call_soon(self.peer.feed, line)

    def _check(self, speaker, line):
        problems = self._checker.check_line(speaker, line)
        self.faults += [f"{speaker}: {text}" for text in problems if not any(name in text for name in UNSTABLE)]

    # -- messages of the agent ---------------------------------------------------------------------------------

    def handle_request(self, method, params):
        self.asked.append((method, params))
        self._changed.set()
        answer = self.answers.get(method)
        if answer is None:
            raise RpcError(METHOD_NOT_FOUND, "no")
        return answer(params)

    def handle_notification(self, method, params):
        assert method == "session/update"
        self.updates.append((params["sessionId"], params["update"]))
        self._changed.set()

    # -- helpers for tests -------------------------------------------------------------------------------------

    async def begin(self, capabilities=NOTHING):
        return await self.peer.request("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})

    async def new(self, folder=None):
        opened = await self.peer.request("session/new", {"cwd": str(folder or self.folder), "mcpServers": []})
        return opened["sessionId"]

    async def opened(self, capabilities=NOTHING):
        await self.begin(capabilities)
        return await self.new()

    async def prompt(self, session, *blocks):
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        return await self.peer.request("session/prompt", {"sessionId": session, "prompt": content})

    def choosing(self, option_id):
        """Answer every permission request with this option."""

        async def answer(params):
            return {"outcome": {"outcome": "selected", "optionId": option_id}}

        self.answers["session/request_permission"] = answer

    def told(self, kind, session=None):
        """Return the updates of one kind."""
        return [u for s, u in self.updates if u["sessionUpdate"] == kind and session in (None, s)]

    def text(self, session=None):
        return "".join(u["content"]["text"] for u in self.told("agent_message_chunk", session))

    def call(self, call_id):
        """Return a tool call after all its updates."""
        updates = [u for _, u in self.updates if u.get("toolCallId") == call_id]
        return {name: value for update in updates for name, value in update.items() if value is not None}

    async def until(self, condition):
        async with asyncio.timeout(30):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def aclose(self):
        await self.agent.aclose()
        await self.agent.peer.aclose()
        await self.peer.aclose()
