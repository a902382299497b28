"""Runs one prompt with an ACP agent, non-interactively, and returns the exit status."""

import asyncio
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ostler.core.errors import UsageError
from ostler.core.events import Notice, PermissionDecided, TurnEnded
from ostler.core.prompt import Prompt
from ostler.core.protocols import Turn
from ostler.frontends.acp_cli import listings
from ostler.frontends.acp_cli.agent_host import AgentBackend, AgentHost, ConnectedAgent
from ostler.frontends.acp_cli.flags import AcpFlags
from ostler.frontends.acp_cli.frames import FrameWriter
from ostler.frontends.acp_cli.live_check import LiveProtocolCheck
from ostler.frontends.acp_cli.mentions import prompt_blocks
from ostler.frontends.acp_cli.output import OutputStream
from ostler.frontends.acp_cli.text_output import LabelledOutput, PlainOutput
from ostler.interaction.signals import ALL_STOP_SIGNALS, handled_signals
from ostler.session.session import LocalSession
from ostler.text.stderr import notify
from ostler.wire.jsonrpc import FrameDirection, Mirror

COMMANDS_TIMEOUT = 2.0
DENIED = 4
TIMED_OUT = 124
INTERRUPTED = 130


class AcpCliRun:
    """One run. A signal or the timeout cancels the running turn, or the whole task if there is no turn."""

    def __init__(self, flags: AcpFlags, agent: AgentHost) -> None:
        self._flags = flags
        self._agent = agent
        self._out = OutputStream(sys.stdout, self._on_write_error)
        self._output = _make_output(flags.output, self._out)
        self._checks = LiveProtocolCheck(self._print_status) if flags.check else None
        self._turn: Turn | None = None
        self._backend: AgentBackend | None = None
        self._stop_code = 0
        self._write_error: OSError | None = None
        self._task: asyncio.Task[Any] | None = None
        self._aborting: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> int:
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        if self._flags.timeout:
            self._timer = loop.call_later(self._flags.timeout, self._stop, TIMED_OUT)
        try:
            with handled_signals(dict.fromkeys(ALL_STOP_SIGNALS, lambda: self._stop(INTERRUPTED))):
                code = await self._run()
            self._out.flush()
        except asyncio.CancelledError:
            if not self._stop_code:
                raise
            code = self._stop_code
        finally:
            if self._aborting:
                await asyncio.wait({self._aborting})
        if self._write_error:
            raise self._write_error
        if self._stop_code == TIMED_OUT:
            self._print_status(f"{self._agent.name} did not finish within {self._flags.timeout:g} s")
        return self._checks.exit_code(code) if self._checks else code

    def _stop(self, code: int) -> None:
        """Cancel the turn; on a second signal kill the agent without waiting for it."""
        again, self._stop_code = self._stop_code, self._stop_code or code
        if self._turn and not again:
            self._turn.cancel("timeout" if code == TIMED_OUT else "cancelled")
        elif self._turn and self._backend:
            self._aborting = asyncio.ensure_future(self._backend.kill())
        elif self._task:
            self._task.cancel()

    def _on_write_error(self, error: OSError) -> None:
        self._write_error = error
        self._stop(INTERRUPTED)

    async def _run(self) -> int:
        flags = self._flags
        if isinstance(self._output, FrameWriter):
            self._output.write_client_event(
                "client/selected_agent", {"name": self._agent.name, "command": self._agent.command}
            )
        if not (flags.text or flags.list_modes or flags.list_commands):
            return await self._run_without_session()
        return await self._run_with_session()

    # -- without a session -----------------------------------------------------------------------------------------

    async def _run_without_session(self) -> int:
        async with self._agent.connect(self._mirror()) as agent:
            await self._print_listings(agent)
            self._stop_timer()
            self._out.flush()
        return 0

    async def _print_listings(self, agent: ConnectedAgent) -> None:
        if self._flags.list_caps:
            self._print_listing(listings.capabilities(agent))
        if self._flags.list_sessions:
            _require_capability(agent, "list", "list its sessions")
            self._print_listing(listings.sessions(agent, await agent.list_sessions(self._agent.cwd)))
        if self._flags.delete_session:
            _require_capability(agent, "delete", "delete sessions")
            await agent.delete_session(self._flags.delete_session)

    def _print_status(self, line: str) -> None:
        notify(line, self._flags.program)

    def _print_listing(self, listing: listings.Listing) -> None:
        lines, method, params = listing
        if isinstance(self._output, FrameWriter):
            self._output.write_client_event(method, params)
        else:
            self._print_lines(lines)

    def _print_lines(self, lines: list[str]) -> None:
        from ostler.text.sanitise import sanitise

        self._out.write("".join(f"{sanitise(line)}\n" for line in lines))

    # -- with a session --------------------------------------------------------------------------------------------

    async def _run_with_session(self) -> int:
        opened = self._agent.make_session(self._output, self._mirror())
        session, self._backend = opened.session, opened.backend
        try:
            await opened.open()
            self._print_warnings(session)
            await self._prepare(opened.backend)
            return await self._run_prompt(session, opened.backend) if self._flags.text else 0
        finally:
            self._stop_timer()
            self._out.flush()  # the agent may take seconds to exit
            await session.aclose()

    def _print_warnings(self, session: LocalSession, first: int = 0) -> None:
        for event in session.events()[first:]:
            if isinstance(event, Notice) and event.level != "info":
                self._print_status(event.text)

    def _stop_timer(self) -> None:
        """Stop the timeout: the result is known, and the time that the agent takes to exit is not limited."""
        if self._timer:
            self._timer.cancel()

    async def _prepare(self, backend: AgentBackend) -> None:
        """Save the session id and print the listings, before the prompt is sent."""
        flags = self._flags
        if flags.save_session and (flags.fork or not flags.resume):
            _save_session_id(flags.save_session, backend.agent_session_id)
        await self._print_listings(backend.agent)
        if flags.list_modes:
            self._print_listing(listings.modes(backend.agent, backend.options.modes))
        if flags.list_commands:
            await self._list_commands(backend)

    async def _list_commands(self, backend: AgentBackend) -> None:
        """Print the slash commands, which agents send shortly after the session is opened."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(backend.updates.commands_received.wait(), COMMANDS_TIMEOUT)
        commands = backend.updates.commands
        if not isinstance(self._output, FrameWriter):
            self._print_lines(listings.commands(backend.agent, commands))
        elif not commands:
            update = {"sessionUpdate": "available_commands_update", "availableCommands": []}
            self._output.write_client_event("session/update", {"sessionId": backend.agent_session_id, "update": update})

    async def _run_prompt(self, session: LocalSession, backend: AgentBackend) -> int:
        if isinstance(self._output, PlainOutput):
            self._output.start_turn()
        blocks, notices = prompt_blocks(self._flags.prompt, self._agent.cwd, self._flags.piped)
        for notice in notices:
            self._print_status(notice)
        before = len(session.events())
        self._turn = session.start(Prompt("prompt", blocks))
        try:
            ended = await self._turn.wait()
        finally:
            self._turn = None
            self._print_warnings(session, before)
        if isinstance(self._output, PlainOutput):
            self._output.end_turn()
        if isinstance(self._output, LabelledOutput):
            self._output.write_usage(backend.response.usage if backend.response else None)
        code = self._exit_code(ended, backend)
        denied = any(isinstance(e, PermissionDecided) and e.decision.answer == "deny" for e in session.events())
        return DENIED if code == 0 and denied and self._flags.fail_on_deny else code

    def _exit_code(self, ended: TurnEnded, backend: AgentBackend) -> int:
        """Return the exit status. A completed turn is a success; an unusual stop reason is only printed."""
        if self._stop_code:
            return self._stop_code
        if backend.response is None:
            self._print_status(str(ended.fault) if ended.fault else "the turn failed")
            return 1
        if backend.response.stop_reason != "end_turn":
            self._print_status(f"{self._agent.name} stopped early: {backend.response.stop_reason or 'no stop reason'}")
        return INTERRUPTED if ended.reason == "cancelled" else 0

    def _mirror(self) -> Mirror | None:
        observers = [self._output.mirror] if isinstance(self._output, FrameWriter) else []
        observers += [self._checks.on_line] if self._checks else []
        if not observers:
            return None

        def mirror(direction: FrameDirection, line: bytes) -> None:
            for on_line in observers:
                on_line(direction, line)

        return mirror


def _make_output(output: str, out: OutputStream) -> FrameWriter | PlainOutput:
    makers: dict[str, Callable[[OutputStream], FrameWriter | PlainOutput]] = {
        "text": LabelledOutput,
        "simple": PlainOutput,
    }
    return makers.get(output, FrameWriter)(out)


def _require_capability(agent: ConnectedAgent, capability: str, action: str) -> None:
    if not agent.info.agent_capabilities.can(capability):
        raise UsageError(f"{agent.name} cannot {action}")


def _save_session_id(name: str, session_id: str) -> None:
    try:
        Path(name).write_text(f"{session_id}\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write --save-session {name}: {(error.strerror or '').lower()}") from None
