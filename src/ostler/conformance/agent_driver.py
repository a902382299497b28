"""Starts an agent process, talks to it frame by frame and validates every frame."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ostler.conformance.check import CheckFailed
from ostler.conformance.fake_client import CAPABILITIES, FakeClientServices
from ostler.core.errors import ToolError, UsageError
from ostler.processes.helper_programs import HelperProgram, open_program
from ostler.wire.acp_validator import AcpValidator
from ostler.wire.jsonrpc import METHOD_NOT_FOUND, FrameDirection, JsonRpcPeer, Params, PeerClosed, RpcError

Answer = Literal["allow", "reject", "cancel"]
_CHUNK = 256 * 1024
_STDERR_TAIL = 2000
ALLOW_KINDS, REJECT_KINDS = ("allow_once", "allow_always"), ("reject_once", "reject_always")


class AgentUnderTest(msgspec.Struct, frozen=True):
    """The agent to test; `timeout` applies to each answer."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    prompt: str
    timeout: float = 60.0


class Observations:
    """Observations about the agent over the whole suite."""

    def __init__(self) -> None:
        self.frames = 0
        self.faults: dict[str, int] = {}
        self.junk: list[bytes] = []
        self.unoffered: list[str] = []

    def add_fault(self, message: str) -> None:
        self.faults[message] = self.faults.get(message, 0) + 1


class AgentDriver:
    """One process of the agent.

    It is offered `client_services` if they are set; permission requests get `permission_answer`.
    """

    def __init__(
        self, target: AgentUnderTest, observations: Observations, client_services: FakeClientServices | None = None
    ) -> None:
        self.target = target
        self.observations = observations
        self.client_services = client_services
        self.permission_answer: Answer = "reject"
        self.updates: list[tuple[str, dict[str, Any]]] = []
        self.permission_requests: list[Params] = []
        self.on_permission_request: Callable[[], None] = lambda: None
        self.parse_errors: list[dict[str, Any]] = []
        self.agent_info: dict[str, Any] = {}
        self.session_ids: set[str] = set()
        self.sent_junk = False
        self._input_closed = False
        self.responses: dict[Any, dict[str, Any]] = {}
        self._checker = AcpValidator()
        self._changed = asyncio.Event()
        self._stderr = b""
        self._program: HelperProgram
        self._reader_task: asyncio.Task[None]
        self.peer: JsonRpcPeer

    async def start(self) -> None:
        try:
            self._program = await open_program(
                self.target.argv, cwd=self.target.cwd, env=self.target.env, on_stderr=self._on_stderr
            )
        except ToolError as failure:
            raise UsageError(f"cannot start the agent: {failure.fault.message}", hint=failure.fault.hint) from None
        self.peer = JsonRpcPeer(self.send_raw, self, mirror=self._mirror, on_invalid_line=self._on_junk)
        self._reader_task = asyncio.ensure_future(self._read())

    async def initialize(self) -> None:
        """Send the usual `initialize` request and store the answer."""
        capabilities = CAPABILITIES if self.client_services else {}
        self.agent_info = await self.request("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})

    async def stop(self) -> None:
        """Stop the agent and all processes that it started."""
        await self._program.stop()
        self._reader_task.cancel()
        await asyncio.wait({self._reader_task})
        await self.peer.aclose()

    @property
    def is_alive(self) -> bool:
        return self.peer.closed is None

    # -- for the checks --------------------------------------------------------------------------------------------

    async def request(self, method: str, params: Params) -> Any:
        """Return the answer. Raises `RpcError` for an error answer, `CheckFailed` on timeout or if the agent exits."""
        try:
            async with asyncio.timeout(self.target.timeout):
                return await self.peer.request(method, params)
        except TimeoutError:
            raise CheckFailed(f"{method} was not answered within {self.target.timeout:g} s") from None
        except PeerClosed:
            raise CheckFailed(f"the agent exited before it answered {method}{self._stderr_hint()}") from None

    async def expect_error(self, method: str, params: Params) -> RpcError:
        """Return the error answer to an invalid request. Raises `CheckFailed` if there is a result."""
        try:
            answer = await self.request(method, params)
        except RpcError as error:
            return error
        raise CheckFailed(f"{method} was answered with {_shorten(answer)} instead of an error")

    async def expect_answer(self, **extra: Any) -> None:
        """Send a request that every agent knows. Raises `CheckFailed` if there is neither a result nor an error."""
        with contextlib.suppress(RpcError):
            self.note_session(await self.request("session/new", self.session_params(**extra)))

    def session_params(self, **extra: Any) -> dict[str, Any]:
        return {"cwd": self.target.cwd, "mcpServers": [], **extra}

    def note_session(self, opened: Any) -> bool:
        """Remember the id of a new session. Return False if there is none."""
        session_id = opened.get("sessionId") if isinstance(opened, dict) else None
        if not isinstance(session_id, str) or not session_id:
            return False
        self.session_ids.add(session_id)
        return True

    async def new_session(self, **extra: Any) -> dict[str, Any]:
        opened = await self.request("session/new", self.session_params(**extra))
        if not self.note_session(opened):
            raise CheckFailed(f"session/new was answered without a sessionId: {_shorten(opened)}")
        return dict(opened)

    async def new_session_id(self) -> str:
        return str((await self.new_session())["sessionId"])

    async def prompt(self, session: str, *blocks: dict[str, Any]) -> str:
        """Send a prompt and return the stop reason of the turn."""
        content = [*blocks] or [text_block(self.target.prompt)]
        answer = await self.request("session/prompt", {"sessionId": session, "prompt": content})
        reason = answer.get("stopReason") if isinstance(answer, dict) else None
        if not isinstance(reason, str):
            raise CheckFailed(f"session/prompt was answered without a stopReason: {_shorten(answer)}")
        return reason

    def send_raw(self, data: bytes) -> None:
        """Write bytes to the agent, unless its input was closed."""
        if not (self._input_closed or self._program.stdin.is_closing()):
            self._program.stdin.write(data)

    async def send_in_chunks(
        self, request_id: str, method: str, params: Params, size: int = 7, line_end: bytes = b"\n"
    ) -> None:
        """Send a request in small chunks, which may split a character."""
        line = msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}) + line_end
        self._checker.check_line("client", line)
        for start in range(0, len(line), size):
            self.send_raw(line[start : start + size])
            await self._program.stdin.drain()
            await asyncio.sleep(0.001)

    async def exits_within(self, seconds: float) -> bool:
        """Close the input. Return whether the agent and all its processes exited in time."""
        self._input_closed = True
        with contextlib.suppress(OSError):
            self._program.stdin.write_eof()
        await self._program.wait(seconds)
        return not self._program.is_running

    async def wait_until(self, condition: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until the condition holds. Return False on timeout."""
        try:
            async with asyncio.timeout(self.target.timeout if timeout is None else timeout):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def wake(self) -> None:
        """Make `wait_until` check its condition again."""
        self._changed.set()

    def update_kinds(self, session: str) -> list[str]:
        """Return the kinds of updates that a session received."""
        return [str(update.get("sessionUpdate")) for session_id, update in self.updates if session_id == session]

    # -- from the agent --------------------------------------------------------------------------------------------

    def handle_request(self, method: str, params: Params) -> Awaitable[Any]:
        self._changed.set()
        if method == "session/request_permission":
            self.permission_requests.append(params)
            self.on_permission_request()
            return self._decide(params)
        if self.client_services and method.startswith(("fs/", "terminal/")):
            return self.client_services.serve(method, params)
        if method.startswith(("fs/", "terminal/", "elicitation/")):
            self.observations.unoffered.append(method)
        raise RpcError(METHOD_NOT_FOUND, "Method not found")

    def handle_notification(self, method: str, params: Params) -> None:
        update = params.get("update")
        if method == "session/update" and isinstance(update, dict):
            self.updates.append((str(params.get("sessionId")), update))
        self._changed.set()

    async def _decide(self, params: Params) -> Any:
        if self.permission_answer == "cancel":
            return {"outcome": {"outcome": "cancelled"}}
        kinds = ALLOW_KINDS if self.permission_answer == "allow" else REJECT_KINDS
        options = params.get("options")
        found = {option.get("kind"): option.get("optionId") for option in options or () if isinstance(option, dict)}
        chosen = next((found[kind] for kind in kinds if kind in found), None)
        if chosen is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    async def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := await self._program.stdout.read(_CHUNK):
                self.peer.feed(data)
                self._changed.set()
        self.peer.end("its output ended")
        self._changed.set()

    def _mirror(self, direction: FrameDirection, line: bytes) -> None:
        if direction == "out":
            self._checker.check_line("client", line)
            return
        self.observations.frames += 1
        self._record_response(line)
        for fault in self._checker.check_line("agent", line):
            if not (self.sent_junk and fault.startswith("the error that answers nothing")):
                self.observations.add_fault(fault)

    def _record_response(self, line: bytes) -> None:
        """Store answers by id, for requests sent with `send_in_chunks`."""
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            frame = msgspec.json.decode(line)
            if isinstance(frame, dict) and isinstance(frame.get("id"), str) and "method" not in frame:
                self.responses[frame["id"]] = frame
                self._changed.set()

    def _on_junk(self, line: bytes) -> None:
        """Store an error without id, which answers an invalid line; report anything else as junk."""
        with contextlib.suppress(msgspec.DecodeError):
            frame = msgspec.json.decode(line)
            if isinstance(frame, dict) and frame.get("id") is None and isinstance(frame.get("error"), dict):
                self.parse_errors.append(frame["error"])
                self._changed.set()
                return
        self.observations.junk.append(line)

    def _on_stderr(self, data: bytes) -> None:
        self._stderr = (self._stderr + data)[-_STDERR_TAIL:]

    def _stderr_hint(self) -> str:
        text = self._stderr.decode("utf-8", "replace").strip()
        return f"; last stderr output: {text.splitlines()[-1]}" if text else ""


def text_block(content: str) -> dict[str, Any]:
    """Return a text content block."""
    return {"type": "text", "text": content}


def _shorten(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 120 else f"{text[:119]}…"
