"""An editor's end of the wire, in this process: every frame either side sends is held to the protocol's schema."""

import asyncio

from ostler.frontends.acp_agent.handler import AcpAgentHandler
from ostler.wire.acp_validator import AcpValidator
from ostler.wire.jsonrpc import METHOD_NOT_FOUND, JsonRpcPeer, RpcError

NOTHING = {}
UNSTABLE = ("session/fork",)


class EditorEnd:
    """Asks the agent, keeps what it says, and answers what it asks by name."""

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
        found = self._checker.check_line(speaker, line)
        self.faults += [f"{speaker}: {told}" for told in found if not any(name in told for name in UNSTABLE)]

    # -- what the agent wants ----------------------------------------------------------------------------------

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

    # -- what a test wants -------------------------------------------------------------------------------------

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
        """Every permission is answered with this option."""

        async def answer(params):
            return {"outcome": {"outcome": "selected", "optionId": option_id}}

        self.answers["session/request_permission"] = answer

    def told(self, kind, session=None):
        """The updates of one kind."""
        return [u for s, u in self.updates if u["sessionUpdate"] == kind and session in (None, s)]

    def text(self, session=None):
        return "".join(u["content"]["text"] for u in self.told("agent_message_chunk", session))

    def call(self, call_id):
        """A tool call as it stands after all that was told of it."""
        told = [u for _, u in self.updates if u.get("toolCallId") == call_id]
        return {name: value for update in told for name, value in update.items() if value is not None}

    async def until(self, so):
        async with asyncio.timeout(30):
            while not so():
                self._changed.clear()
                await self._changed.wait()

    async def aclose(self):
        await self.agent.aclose()
        await self.agent.peer.aclose()
        await self.peer.aclose()
