"""An agent's program and the conversation on its streams: started, spoken to, and ended without anything left."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ostler.processes.programs import Program, open_program
from ostler.text.sanitise import sanitise
from ostler.vocabulary.errors import BackendError, JournalError, ToolFailure, UsageError
from ostler.wire.jsonrpc import Handler, Mirror, Peer, PeerGone, Sayable

MOST_UNSENT = 64 * 1024 * 1024
_CHUNK = 256 * 1024
_TAIL = 4096
_TOLD_LINES = 12
_EXIT_WAIT = 1.0  # how long an agent that closed its output may take to end, so that its exit code can be told
_LEAVE_WAIT = 0.5  # how long it may take to leave by itself when its input ends


class Launch(msgspec.Struct, frozen=True):
    """How to start an agent; `env` is its whole environment."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    name: str = "the agent"

    @property
    def argv(self) -> Sequence[str]:
        return (self.command, *self.args)


class AgentProcess:
    """A running agent. Whatever ends the conversation, what was asked fails with a sentence that says why."""

    def __init__(self, launch: Launch, program: Program) -> None:
        self.launch = launch
        self.peer: Peer
        self._program = program
        self._errors = b""
        self._junk = b""
        self._reading: asyncio.Task[None]
        self._why = ""
        self._leaving = False

    def heard(self, data: bytes) -> None:
        """What it prints as errors; the end of it is told when it dies."""
        self._errors = (self._errors + data)[-_TAIL:]

    async def request(self, method: str, params: Sayable, timeout: float | None = None) -> Any:
        """An answer, `RpcError`, or a `BackendError` that says how the agent ended or what it did not answer."""
        try:
            async with asyncio.timeout(timeout):
                return await self.peer.request(method, params)
        except TimeoutError:
            told = f"{self.launch.name} did not answer {method} within {timeout:g} s"
            raise BackendError(f"{told}{self.last_words()}", code="timeout") from None
        except PeerGone as gone:
            await asyncio.wait({self._reading}, timeout=2 * _EXIT_WAIT)
            raise BackendError(self._why or str(gone), code="agent_gone") from None

    async def stop(self) -> None:
        """Let it leave by itself if it does so at once, else end it and everything it started."""
        if self._program.running and not self._leaving:
            self._leaving = True
            with contextlib.suppress(OSError):
                self._program.stdin.write_eof()
            await self._program.wait(_LEAVE_WAIT)
        await self._program.stop()
        self._reading.cancel()
        await asyncio.wait({self._reading})
        await self.peer.aclose()

    def send(self, line: bytes) -> None:
        writer = self._program.stdin
        if self._leaving or writer.is_closing():
            return
        if writer.transport.get_write_buffer_size() > MOST_UNSENT:
            self._why = f"{self.launch.name} no longer reads what it is sent"
            self.peer.end(self._why)
        else:
            writer.write(line)

    def took_for_junk(self, line: bytes) -> None:
        self._junk = line[:_TAIL]

    async def read(self) -> None:
        """Feed the peer until the agent's output ends, then find out why it did; no end of this leaves it waiting."""
        try:
            await self._feed()
        except JournalError as error:
            self._why = self._why or f"what {self.launch.name} said could not be kept: {error}"
        finally:
            self.peer.end(self._why or "the conversation was broken off")

    async def _feed(self) -> None:
        with contextlib.suppress(OSError):
            while not self.peer.gone and (data := await self._program.stdout.read(_CHUNK)):
                self.peer.feed(data)
        if self.peer.gone:
            self._why = self._why or f"{self.launch.name} broke the protocol: {self.peer.gone}"
            return
        code = await self._program.wait(_EXIT_WAIT)
        self._why = self._why or self._ending(code)
        self.peer.end(self._why)

    def _ending(self, code: int | None) -> str:
        name = self.launch.name
        if code is None and self._program.running:
            return f"{name} closed its output but goes on{self.last_words()}"
        ended = f"{name} ended" if code is None else f"{name} ended with exit code {code}"
        return f"{ended}{self.last_words()}"

    def last_words(self) -> str:
        """The end of what it printed as errors, else a line that was no frame."""
        said = sanitise((self._errors or self._junk).decode("utf-8", "replace")).strip()
        return "; its last words: " + "\n".join(said.splitlines()[-_TOLD_LINES:]) if said else ""


async def start_agent(
    launch: Launch,
    handler: Handler,
    *,
    mirror: Mirror | None = None,
    on_junk: Callable[[bytes], None] | None = None,
) -> AgentProcess:
    """Start the program in a tree of its own; `UsageError` when there is no such program."""
    early = bytearray()
    holder: list[AgentProcess] = []

    def errors(data: bytes) -> None:
        if holder:
            holder[0].heard(data)
        else:
            early.extend(data)

    try:
        program = await open_program(launch.argv, cwd=launch.cwd, env=launch.env, on_errors=errors)
    except ToolFailure as failure:
        raise UsageError(f"{launch.name} cannot be started: {failure.fault.message}", hint=failure.fault.hint) from None
    process = AgentProcess(launch, program)
    process.heard(bytes(early))
    holder.append(process)

    def junk(line: bytes) -> None:
        process.took_for_junk(line)
        if on_junk:
            on_junk(line)

    process.peer = Peer(process.send, handler, mirror=mirror, junk=junk)
    process._reading = asyncio.ensure_future(process.read())
    return process
