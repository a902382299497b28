"""An agent's process on the test bench: spoken to frame by frame, every frame of its held to the protocol's schema."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ostler.app.conformance.check import CheckFailed
from ostler.app.conformance.fake_client import CAPABILITIES, FakeClientServices
from ostler.core.errors import ToolError, UsageError
from ostler.processes.helper_programs import HelperProgram, open_program
from ostler.wire.acp_validator import AcpValidator
from ostler.wire.jsonrpc import METHOD_NOT_FOUND, FrameDirection, JsonRpcPeer, Params, PeerClosed, RpcError

Answer = Literal["allow", "reject", "cancel"]
_CHUNK = 256 * 1024
_STDERR_TAIL = 2000
ALLOW_KINDS, REJECT_KINDS = ("allow_once", "allow_always"), ("reject_once", "reject_always")


class AgentUnderTest(msgspec.Struct, frozen=True):
    """What is put to the test, and how patiently."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    prompt: str
    timeout: float = 60.0


class Observations:
    """What was seen of the agent over the whole suite."""

    def __init__(self) -> None:
        self.frames = 0
        self.faults: dict[str, int] = {}
        self.junk: list[bytes] = []
        self.unoffered: list[str] = []

    def add_fault(self, message: str) -> None:
        self.faults[message] = self.faults.get(message, 0) + 1


class AgentDriver:
    """One process from its start to its end. It is offered `props` or nothing, and its asks are answered as told."""

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
            raise UsageError(f"the agent cannot be started: {failure.fault.message}", hint=failure.fault.hint) from None
        self.peer = JsonRpcPeer(self.send_raw, self, mirror=self._mirror, on_invalid_line=self._on_junk)
        self._reader_task = asyncio.ensure_future(self._read())

    async def initialize(self) -> None:
        """The usual beginning."""
        capabilities = CAPABILITIES if self.client_services else {}
        self.agent_info = await self.request("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})

    async def stop(self) -> None:
        """End it and all it started."""
        await self._program.stop()
        self._reader_task.cancel()
        await asyncio.wait({self._reader_task})
        await self.peer.aclose()

    @property
    def is_alive(self) -> bool:
        return self.peer.closed is None

    # -- what a check does -----------------------------------------------------------------------------------------

    async def request(self, method: str, params: Params) -> Any:
        """The answer; an error of the agent's is an `RpcError`, its silence or end a failed check."""
        try:
            async with asyncio.timeout(self.target.timeout):
                return await self.peer.request(method, params)
        except TimeoutError:
            raise CheckFailed(f"{method} was not answered within {self.target.timeout:g} s") from None
        except PeerClosed:
            raise CheckFailed(f"the agent ended before it answered {method}{self._stderr_hint()}") from None

    async def expect_error(self, method: str, params: Params) -> RpcError:
        """The error that a wrong request must be answered with."""
        try:
            answer = await self.request(method, params)
        except RpcError as error:
            return error
        raise CheckFailed(f"{method} was answered with {_shorten(answer)}, an error was due")

    async def new_session(self, **extra: Any) -> dict[str, Any]:
        opened = await self.request("session/new", {"cwd": self.target.cwd, "mcpServers": [], **extra})
        if not isinstance(opened, dict) or not isinstance(opened.get("sessionId"), str) or not opened["sessionId"]:
            raise CheckFailed(f"session/new gave no sessionId but {_shorten(opened)}")
        self.session_ids.add(opened["sessionId"])
        return opened

    async def prompt(self, session: str, *blocks: dict[str, Any]) -> str:
        """The stop reason of a turn."""
        content = [*blocks] or [text_block(self.target.prompt)]
        answer = await self.request("session/prompt", {"sessionId": session, "prompt": content})
        reason = answer.get("stopReason") if isinstance(answer, dict) else None
        if not isinstance(reason, str):
            raise CheckFailed(f"session/prompt was answered without a stopReason: {_shorten(answer)}")
        return reason

    def send_raw(self, data: bytes) -> None:
        """Bytes as they are; none when its input was ended."""
        if not (self._input_closed or self._program.stdin.is_closing()):
            self._program.stdin.write(data)

    async def send_in_chunks(self, request_id: str, method: str, params: Params, size: int = 7) -> None:
        """A request under an id of the check's own, in pieces that end anywhere, also within a character."""
        line = msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}) + b"\n"
        self._checker.check_line("client", line)
        for at in range(0, len(line), size):
            self.send_raw(line[at : at + size])
            await self._program.stdin.drain()
            await asyncio.sleep(0.001)

    async def exits_within(self, seconds: float) -> bool:
        """Close its input; whether it and all it started were gone within that time."""
        self._input_closed = True
        with contextlib.suppress(OSError):
            self._program.stdin.write_eof()
        await self._program.wait(seconds)
        return not self._program.is_running

    async def wait_until(self, condition: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait for something to be so; whether it came to be."""
        try:
            async with asyncio.timeout(self.target.timeout if timeout is None else timeout):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def update_kinds(self, session: str) -> list[str]:
        """The kinds of updates a session has had."""
        return [str(update.get("sessionUpdate")) for named, update in self.updates if named == session]

    # -- what the agent does ---------------------------------------------------------------------------------------

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
        wanted = ALLOW_KINDS if self.permission_answer == "allow" else REJECT_KINDS
        options = params.get("options")
        found = {option.get("kind"): option.get("optionId") for option in options or () if isinstance(option, dict)}
        chosen = next((found[kind] for kind in wanted if kind in found), None)
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
        for told in self._checker.check_line("agent", line):
            if not (self.sent_junk and told.startswith("the error that answers nothing")):
                self.observations.add_fault(told)

    def _record_response(self, line: bytes) -> None:
        """Answers by their id as it came, for checks that ask by hand."""
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            frame = msgspec.json.decode(line)
            if isinstance(frame, dict) and isinstance(frame.get("id"), str) and "method" not in frame:
                self.responses[frame["id"]] = frame
                self._changed.set()

    def _on_junk(self, line: bytes) -> None:
        """An error without an id is the answer to junk of ours; anything else is none of the protocol's."""
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
        said = self._stderr.decode("utf-8", "replace").strip()
        return f"; its last words: {said.splitlines()[-1]}" if said else ""


def text_block(content: str) -> dict[str, Any]:
    """A block of words."""
    return {"type": "text", "text": content}


def _shorten(value: Any) -> str:
    shown = msgspec.json.encode(value).decode()
    return shown if len(shown) <= 120 else f"{shown[:119]}…"
