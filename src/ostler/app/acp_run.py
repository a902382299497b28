"""One prompt to somebody's agent without a person: from the settings to the exit status."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ostler import __version__
from ostler.app import acp_lists
from ostler.app.acp_agents import find_agent, read_mcp
from ostler.app.acp_backend import AgentJoin, Offer
from ostler.app.acp_checks import Checks
from ostler.app.acp_flags import AcpFlags
from ostler.app.acp_frames import FrameMirror
from ostler.app.acp_mentions import prompt_blocks
from ostler.app.acp_out import Out
from ostler.app.acp_policy import acp_policy
from ostler.app.acp_saying import say
from ostler.app.acp_text import MarkedText, SimpleText
from ostler.app.acp_trust import project_file
from ostler.app.folders import workspace
from ostler.app.grounds import SessionGround, Shell
from ostler.app.trusting import load_settings, waiting
from ostler.backends.acp.agent import Agent
from ostler.backends.acp.backend import AcpBackend, Plan
from ostler.backends.acp.process import Launch, start_agent
from ostler.journal.memory import MemoryJournal
from ostler.session.session import Session
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.events import PermissionDecided, TurnEnded
from ostler.vocabulary.prompt import Prompt
from ostler.vocabulary.seams import Turn
from ostler.wire.acp_calls import ClientCapabilities
from ostler.wire.jsonrpc import METHOD_NOT_FOUND, Direction, Mirror, Params, RpcError

COMMANDS_WAIT = 2.0
DENIED = 4
TIMED_OUT = 124
INTERRUPTED = 130


def play(flags: AcpFlags) -> int:
    """The exit status; errors are raised."""
    return asyncio.run(_Play(flags).run())


class _Play:
    """One run. A signal or the time limit ends the turn if one runs, else whatever is being waited for."""

    def __init__(self, flags: AcpFlags) -> None:
        self._flags = flags
        self._cwd = workspace(flags.cwd)
        self._settings = load_settings(self._cwd, trust=flags.trust)
        if not flags.settings and waiting(self._cwd, self._settings) and (file := project_file(self._cwd)).is_file():
            say(f"{file} waits for trust: `ostler trust` shows it, --trust-project takes it into account once")
        self._found = find_agent(flags.agent, flags.settings, self._cwd, self._settings)
        self._out = Out(sys.stdout, self._unwritable)
        self._show = _show(flags.output, self._out)
        self._checks = Checks(say) if flags.check else None
        self._turn: Turn | None = None
        self._backend: AcpBackend | None = None
        self._ending = 0
        self._unwritten: OSError | None = None
        self._task: asyncio.Task[Any] | None = None
        self._breaking: asyncio.Future[None] | None = None

    async def run(self) -> int:
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end, INTERRUPTED)
        if self._flags.timeout:
            loop.call_later(self._flags.timeout, self._end, TIMED_OUT)
        try:
            code = await self._run()
            self._out.flush()
        except asyncio.CancelledError:
            if not self._ending:
                raise
            code = self._ending
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.remove_signal_handler(number)
            if self._breaking:
                await asyncio.wait({self._breaking})
        if self._unwritten:
            raise self._unwritten
        if self._ending == TIMED_OUT:
            say(f"{self._found.name} did not finish within {self._flags.timeout:g} s")
        return self._checks.code(code) if self._checks else code

    def _end(self, code: int) -> None:
        """Gently the first time; a second signal does not wait for the agent to let go."""
        again, self._ending = self._ending, self._ending or code
        if self._turn and not again:
            self._turn.cancel("timeout" if code == TIMED_OUT else "cancelled")
        elif self._turn and self._backend:
            self._breaking = asyncio.ensure_future(self._backend.break_off())
        elif self._task:
            self._task.cancel()

    def _unwritable(self, error: OSError) -> None:
        self._unwritten = error
        self._end(INTERRUPTED)

    async def _run(self) -> int:
        flags = self._flags
        if isinstance(self._show, FrameMirror):
            entry = self._found.entry
            self._show.remark("client/selected_agent", {"name": self._found.name, "command": entry.command})
        if not (flags.prompt or flags.list_modes or flags.list_commands):
            return await self._without_session()
        return await self._with_session()

    # -- without a session -----------------------------------------------------------------------------------------

    async def _without_session(self) -> int:
        process = await start_agent(self._launch(), _Nobody(), mirror=self._mirror())
        try:
            agent = Agent(process)
            await agent.initialize(ClientCapabilities(), __version__)
            await self._tell_of(agent)
        finally:
            await process.stop()
        return 0

    async def _tell_of(self, agent: Agent) -> None:
        if self._flags.list_caps:
            self._tell(acp_lists.capabilities(agent))
        if self._flags.list_sessions:
            _need(agent, "list", "list its sessions")
            self._tell(acp_lists.sessions(agent, await agent.list_sessions(str(self._cwd))))
        if self._flags.delete_session:
            _need(agent, "delete", "delete sessions")
            await agent.delete_session(self._flags.delete_session)

    def _tell(self, told: acp_lists.Told) -> None:
        lines, method, params = told
        if isinstance(self._show, FrameMirror):
            self._show.remark(method, params)
        else:
            self._lines(lines)

    def _lines(self, lines: list[str]) -> None:
        from ostler.text.sanitise import sanitise

        self._out.write("".join(f"{sanitise(line)}\n" for line in lines))

    # -- with a session --------------------------------------------------------------------------------------------

    async def _with_session(self) -> int:
        flags = self._flags
        join = AgentJoin(
            self._plan(),
            self._ground(),
            self._settings,
            Offer(flags.files, flags.terminal, network=True, answers=flags.answers),
            self._show,
            self._mirror(),
        )
        self._backend = join.backend
        session = Session(
            backend=join.backend,
            tools=join.tools,
            journal=MemoryJournal("acp-run"),
            policy=acp_policy(
                self._settings,
                write=flags.write,
                yolo=flags.yolo,
                directories=self._directories(),
                policy_file=flags.policy,
            ),
            cwd=str(self._cwd),
        )
        try:
            await session.open(version=__version__, backend=f"acp:{self._found.name}", options={})
            await self._prepare(join.backend)
            return await self._prompt(session, join.backend) if flags.prompt else 0
        finally:
            await session.aclose()

    async def _prepare(self, backend: AcpBackend) -> None:
        """What comes before the prompt: the id to keep, the lists to print."""
        flags = self._flags
        if flags.save_session and (flags.fork or not flags.resume):
            _save(flags.save_session, backend.far_session)
        await self._tell_of(backend.agent)
        if flags.list_modes:
            self._tell(acp_lists.modes(backend.agent, backend.options.modes))
        if flags.list_commands:
            await self._list_commands(backend)

    async def _list_commands(self, backend: AcpBackend) -> None:
        """Agents tell their commands a moment after the session is open."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(backend.teller.commands_told.wait(), COMMANDS_WAIT)
        found = backend.teller.commands
        if not isinstance(self._show, FrameMirror):
            self._lines(acp_lists.commands(backend.agent, found))
        elif not found:
            update = {"sessionUpdate": "available_commands_update", "availableCommands": []}
            self._show.remark("session/update", {"sessionId": backend.far_session, "update": update})

    async def _prompt(self, session: Session, backend: AcpBackend) -> int:
        if isinstance(self._show, SimpleText):
            self._show.begin()
        prompt = Prompt("prompt", prompt_blocks(self._flags.prompt, str(self._cwd)))
        self._turn = session.start(prompt)
        try:
            ended = await self._turn.wait()
        finally:
            self._turn = None
        if isinstance(self._show, SimpleText):
            self._show.finish()
        if isinstance(self._show, MarkedText):
            self._show.used(backend.answer.usage if backend.answer else None)
        code = self._code(ended, backend)
        denied = any(isinstance(e, PermissionDecided) and e.decision.answer == "deny" for e in session.past())
        return DENIED if code == 0 and denied and self._flags.fail_on_deny else code

    def _code(self, ended: TurnEnded, backend: AcpBackend) -> int:
        """A turn that came to its end is a success, whatever the agent stopped for; what it stopped for is told."""
        if self._ending:
            return self._ending
        if backend.answer is None:
            say(str(ended.fault) if ended.fault else "the turn failed")
            return 1
        if backend.answer.stop_reason != "end_turn":
            say(f"{self._found.name} stopped for this reason: {backend.answer.stop_reason or 'none given'}")
        return INTERRUPTED if ended.reason == "cancelled" else 0

    # -- what it is made of ----------------------------------------------------------------------------------------

    def _launch(self) -> Launch:
        entry = self._found.entry
        return Launch(entry.command, entry.args, self._found.environment(os.environ), str(self._cwd), self._found.name)

    def _plan(self) -> Plan:
        flags = self._flags
        more = tuple(server for file in flags.mcp for server in read_mcp(file))
        return Plan(
            self._launch(),
            __version__,
            (*self._found.mcp_servers, *more),
            self._directories(),
            flags.resume,
            flags.fork,
            flags.login,
            elicits=False,
            wanted=flags.options,
        )

    def _directories(self) -> tuple[str, ...]:
        return tuple(str(_folder(name)) for name in self._flags.directories)

    def _ground(self) -> SessionGround:
        flags, root = self._flags, str(self._cwd)
        sandbox = self._settings.config.security.sandbox
        shell = Shell(root, writable=flags.write or flags.yolo, sandbox=sandbox)
        ground = SessionGround(root, shell, read_anywhere=flags.yolo)
        ground.grant_folders(self._directories())
        return ground

    def _mirror(self) -> Mirror | None:
        hearers = [self._show.mirror] if isinstance(self._show, FrameMirror) else []
        hearers += [self._checks.hear] if self._checks else []
        if not hearers:
            return None

        def mirror(direction: Direction, line: bytes) -> None:
            for hear in hearers:
                hear(direction, line)

        return mirror


class _Nobody:
    """The client side of a conversation without a session: there is nothing to ask it for."""

    def requested(self, method: str, params: Params) -> Awaitable[Any]:
        raise RpcError(METHOD_NOT_FOUND, f"this client has no method {method!r}")

    def notified(self, method: str, params: Params) -> None:
        """There is no session to be told of."""


def _show(output: str, out: Out) -> FrameMirror | SimpleText:
    makers: dict[str, Callable[[Out], FrameMirror | SimpleText]] = {"text": MarkedText, "simple": SimpleText}
    return makers.get(output, FrameMirror)(out)


def _need(agent: Agent, what: str, told: str) -> None:
    if not agent.told.agent_capabilities.can(what):
        raise UsageError(f"{agent.name} cannot {told}")


def _save(name: str, session_id: str) -> None:
    try:
        Path(name).write_text(f"{session_id}\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--save-session {name} cannot be written: {(error.strerror or '').lower()}") from None


def _folder(name: str) -> Path:
    path = Path(name).expanduser().resolve()
    if not path.is_dir():
        raise UsageError(f"--add-dir {name}: there is no such folder")
    return path
