"""An agent's process on the test bench: spoken to frame by frame, every frame of its held to the protocol's schema."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ostler.app.comply.check import Unmet
from ostler.app.comply.props import OFFERED, Props
from ostler.processes.programs import Program, open_program
from ostler.vocabulary.errors import ToolFailure, UsageError
from ostler.wire.acp_check import Checker
from ostler.wire.jsonrpc import METHOD_NOT_FOUND, Direction, Params, Peer, PeerGone, RpcError

Answer = Literal["allow", "reject", "cancel"]
_CHUNK = 256 * 1024
_TAIL = 2000
ALLOWS, REJECTS = ("allow_once", "allow_always"), ("reject_once", "reject_always")


class Subject(msgspec.Struct, frozen=True):
    """What is put to the test, and how patiently."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    prompt: str
    patience: float = 60.0


class Seen:
    """What was seen of the agent over the whole suite."""

    def __init__(self) -> None:
        self.frames = 0
        self.faults: dict[str, int] = {}
        self.junk: list[bytes] = []
        self.uninvited: list[str] = []

    def fault(self, told: str) -> None:
        self.faults[told] = self.faults.get(told, 0) + 1


class Bench:
    """One process from its start to its end. It is offered `props` or nothing, and its asks are answered as told."""

    def __init__(self, subject: Subject, seen: Seen, props: Props | None = None) -> None:
        self.subject = subject
        self.seen = seen
        self.props = props
        self.answers: Answer = "reject"
        self.updates: list[tuple[str, dict[str, Any]]] = []
        self.asked: list[Params] = []
        self.on_ask: Callable[[], None] = lambda: None
        self.refused: list[dict[str, Any]] = []
        self.told: dict[str, Any] = {}
        self.opened: set[str] = set()
        self.sent_junk = False
        self._ended = False
        self.by_id: dict[Any, dict[str, Any]] = {}
        self._checker = Checker()
        self._changed = asyncio.Event()
        self._errors = b""
        self._program: Program
        self._reading: asyncio.Task[None]
        self.peer: Peer

    async def start(self) -> None:
        try:
            self._program = await open_program(
                self.subject.argv, cwd=self.subject.cwd, env=self.subject.env, on_errors=self._heard
            )
        except ToolFailure as failure:
            raise UsageError(f"the agent cannot be started: {failure.fault.message}", hint=failure.fault.hint) from None
        self.peer = Peer(self.raw, self, mirror=self._mirror, junk=self._junk)
        self._reading = asyncio.ensure_future(self._read())

    async def initialize(self) -> None:
        """The usual beginning."""
        capabilities = OFFERED if self.props else {}
        self.told = await self.request("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})

    async def stop(self) -> None:
        """End it and all it started."""
        await self._program.stop()
        self._reading.cancel()
        await asyncio.wait({self._reading})
        await self.peer.aclose()

    @property
    def alive(self) -> bool:
        return self.peer.gone is None

    # -- what a check does -----------------------------------------------------------------------------------------

    async def request(self, method: str, params: Params) -> Any:
        """The answer; an error of the agent's is an `RpcError`, its silence or end a failed check."""
        try:
            async with asyncio.timeout(self.subject.patience):
                return await self.peer.request(method, params)
        except TimeoutError:
            raise Unmet(f"{method} was not answered within {self.subject.patience:g} s") from None
        except PeerGone:
            raise Unmet(f"the agent ended before it answered {method}{self._last_words()}") from None

    async def refusal(self, method: str, params: Params) -> RpcError:
        """The error that a wrong request must be answered with."""
        try:
            answer = await self.request(method, params)
        except RpcError as error:
            return error
        raise Unmet(f"{method} was answered with {_short(answer)}, an error was due")

    async def new(self, **more: Any) -> dict[str, Any]:
        opened = await self.request("session/new", {"cwd": self.subject.cwd, "mcpServers": [], **more})
        if not isinstance(opened, dict) or not isinstance(opened.get("sessionId"), str) or not opened["sessionId"]:
            raise Unmet(f"session/new gave no sessionId but {_short(opened)}")
        self.opened.add(opened["sessionId"])
        return opened

    async def prompt(self, session: str, *blocks: dict[str, Any]) -> str:
        """The stop reason of a turn."""
        content = [*blocks] or [text(self.subject.prompt)]
        answer = await self.request("session/prompt", {"sessionId": session, "prompt": content})
        reason = answer.get("stopReason") if isinstance(answer, dict) else None
        if not isinstance(reason, str):
            raise Unmet(f"session/prompt was answered without a stopReason: {_short(answer)}")
        return reason

    def raw(self, data: bytes) -> None:
        """Bytes as they are; none when its input was ended."""
        if not (self._ended or self._program.stdin.is_closing()):
            self._program.stdin.write(data)

    async def by_hand(self, number: str, method: str, params: Params, size: int = 7) -> None:
        """A request under an id of the check's own, in pieces that end anywhere, also within a character."""
        line = msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + b"\n"
        self._checker.look("client", line)
        for at in range(0, len(line), size):
            self.raw(line[at : at + size])
            await self._program.stdin.drain()
            await asyncio.sleep(0.001)

    async def ended(self, seconds: float) -> bool:
        """Close its input; whether it and all it started were gone within that time."""
        self._ended = True
        with contextlib.suppress(OSError):
            self._program.stdin.write_eof()
        await self._program.wait(seconds)
        return not self._program.running

    async def until(self, so: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait for something to be so; whether it came to be."""
        try:
            async with asyncio.timeout(self.subject.patience if seconds is None else seconds):
                while not so():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def kinds(self, session: str) -> list[str]:
        """The kinds of updates a session has had."""
        return [str(update.get("sessionUpdate")) for named, update in self.updates if named == session]

    # -- what the agent does ---------------------------------------------------------------------------------------

    def requested(self, method: str, params: Params) -> Awaitable[Any]:
        self._changed.set()
        if method == "session/request_permission":
            self.asked.append(params)
            self.on_ask()
            return self._decide(params)
        if self.props and method.startswith(("fs/", "terminal/")):
            return self.props.serve(method, params)
        if method.startswith(("fs/", "terminal/", "elicitation/")):
            self.seen.uninvited.append(method)
        raise RpcError(METHOD_NOT_FOUND, "Method not found")

    def notified(self, method: str, params: Params) -> None:
        update = params.get("update")
        if method == "session/update" and isinstance(update, dict):
            self.updates.append((str(params.get("sessionId")), update))
        self._changed.set()

    async def _decide(self, params: Params) -> Any:
        if self.answers == "cancel":
            return {"outcome": {"outcome": "cancelled"}}
        wanted = ALLOWS if self.answers == "allow" else REJECTS
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

    def _mirror(self, direction: Direction, line: bytes) -> None:
        if direction == "out":
            self._checker.look("client", line)
            return
        self.seen.frames += 1
        self._note(line)
        for told in self._checker.look("agent", line):
            if not (self.sent_junk and told.startswith("the error that answers nothing")):
                self.seen.fault(told)

    def _note(self, line: bytes) -> None:
        """Answers by their id as it came, for checks that ask by hand."""
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            frame = msgspec.json.decode(line)
            if isinstance(frame, dict) and isinstance(frame.get("id"), str) and "method" not in frame:
                self.by_id[frame["id"]] = frame
                self._changed.set()

    def _junk(self, line: bytes) -> None:
        """An error without an id is the answer to junk of ours; anything else is none of the protocol's."""
        with contextlib.suppress(msgspec.DecodeError):
            frame = msgspec.json.decode(line)
            if isinstance(frame, dict) and frame.get("id") is None and isinstance(frame.get("error"), dict):
                self.refused.append(frame["error"])
                self._changed.set()
                return
        self.seen.junk.append(line)

    def _heard(self, data: bytes) -> None:
        self._errors = (self._errors + data)[-_TAIL:]

    def _last_words(self) -> str:
        said = self._errors.decode("utf-8", "replace").strip()
        return f"; its last words: {said.splitlines()[-1]}" if said else ""


def text(said: str) -> dict[str, Any]:
    """A block of words."""
    return {"type": "text", "text": said}


def _short(value: Any) -> str:
    shown = msgspec.json.encode(value).decode()
    return shown if len(shown) <= 120 else f"{shown[:119]}…"
