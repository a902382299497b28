"""Runs one prompt with an ACP agent, non-interactively, and returns the exit status."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ostler import __version__
from ostler.app import acp_listings
from ostler.app.acp_agent_config import find_agent, read_mcp_servers
from ostler.app.acp_backend import AcpParts, OfferedServices
from ostler.app.acp_flags import AcpFlags
from ostler.app.acp_frames import FrameWriter
from ostler.app.acp_live_check import LiveProtocolCheck
from ostler.app.acp_mentions import prompt_blocks
from ostler.app.acp_output import OutputStream, print_status
from ostler.app.acp_policy import acp_policy
from ostler.app.acp_text_output import LabelledOutput, PlainOutput
from ostler.app.acp_trust import project_file
from ostler.app.project_paths import workspace_path
from ostler.app.session_workspace import SessionShell, SessionWorkspace
from ostler.app.trusted_settings import count_untrusted, load_settings
from ostler.backends.acp.agent_client import AcpAgentClient
from ostler.backends.acp.backend import AcpBackend, AcpSessionPlan
from ostler.backends.acp.process import Launch, start_agent
from ostler.core.errors import UsageError
from ostler.core.events import Notice, PermissionDecided, TurnEnded
from ostler.core.prompt import Prompt
from ostler.core.protocols import Turn
from ostler.journal.memory_journal import MemoryJournal
from ostler.session.session import LocalSession
from ostler.wire.acp_requests import ClientCapabilities
from ostler.wire.jsonrpc import METHOD_NOT_FOUND, FrameDirection, Mirror, Params, RpcError

COMMANDS_TIMEOUT = 2.0
DENIED = 4
TIMED_OUT = 124
INTERRUPTED = 130


def run_acp(flags: AcpFlags) -> int:
    """Run the prompt or the listings and return the exit status."""
    return asyncio.run(_AcpRun(flags).run())


class _AcpRun:
    """One run. A signal or the timeout cancels the running turn, or the whole task if there is no turn."""

    def __init__(self, flags: AcpFlags) -> None:
        self._flags = flags
        self._cwd = workspace_path(flags.cwd)
        self._settings = load_settings(self._cwd, trust=flags.trust)
        if (
            not flags.settings
            and count_untrusted(self._cwd, self._settings)
            and (file := project_file(self._cwd)).is_file()
        ):
            self._print_status(
                f"{file} is ignored until you trust it: run `ostler trust`, or pass --trust-project to use it once"
            )
        self._agent = find_agent(flags.agent, flags.settings, self._cwd, self._settings)
        self._out = OutputStream(sys.stdout, self._on_write_error)
        self._output = _make_output(flags.output, self._out)
        self._checks = LiveProtocolCheck(self._print_status) if flags.check else None
        self._turn: Turn | None = None
        self._backend: AcpBackend | None = None
        self._stop_code = 0
        self._write_error: OSError | None = None
        self._task: asyncio.Task[Any] | None = None
        self._aborting: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> int:
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop, INTERRUPTED)
        if self._flags.timeout:
            self._timer = loop.call_later(self._flags.timeout, self._stop, TIMED_OUT)
        try:
            code = await self._run()
            self._out.flush()
        except asyncio.CancelledError:
            if not self._stop_code:
                raise
            code = self._stop_code
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.remove_signal_handler(number)
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
            entry = self._agent.entry
            self._output.write_client_event(
                "client/selected_agent", {"name": self._agent.name, "command": entry.command}
            )
        if not (flags.prompt or flags.list_modes or flags.list_commands):
            return await self._run_without_session()
        return await self._run_with_session()

    # -- without a session -----------------------------------------------------------------------------------------

    async def _run_without_session(self) -> int:
        process = await start_agent(self._launch(), _NoSessionHandler(), mirror=self._mirror())
        try:
            agent = AcpAgentClient(process)
            await agent.initialize(ClientCapabilities(), __version__)
            await self._print_listings(agent)
        finally:
            self._stop_timer()
            self._out.flush()
            await process.stop()
        return 0

    async def _print_listings(self, agent: AcpAgentClient) -> None:
        if self._flags.list_caps:
            self._print_listing(acp_listings.capabilities(agent))
        if self._flags.list_sessions:
            _require_capability(agent, "list", "list its sessions")
            self._print_listing(acp_listings.sessions(agent, await agent.list_sessions(str(self._cwd))))
        if self._flags.delete_session:
            _require_capability(agent, "delete", "delete sessions")
            await agent.delete_session(self._flags.delete_session)

    def _print_status(self, line: str) -> None:
        print_status(line, self._flags.program)

    def _print_listing(self, listing: acp_listings.Listing) -> None:
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
        flags = self._flags
        parts = AcpParts(
            self._plan(),
            self._workspace(),
            self._settings,
            OfferedServices(flags.files, flags.terminal, network=True, answers=flags.answers),
            self._output,
            self._mirror(),
        )
        self._backend = parts.backend
        session = LocalSession(
            backend=parts.backend,
            tools=parts.tools,
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
            await session.open(version=__version__, backend=f"acp:{self._agent.name}", options={})
            self._print_warnings(session)
            await self._prepare(parts.backend)
            return await self._run_prompt(session, parts.backend) if flags.prompt else 0
        finally:
            self._stop_timer()
            self._out.flush()  # the agent may take seconds to exit
            await session.aclose()

    def _print_warnings(self, session: LocalSession) -> None:
        for event in session.events():
            if isinstance(event, Notice) and event.level != "info":
                self._print_status(event.text)

    def _stop_timer(self) -> None:
        """Stop the timeout: the result is known, and the time that the agent takes to exit does not count."""
        if self._timer:
            self._timer.cancel()

    async def _prepare(self, backend: AcpBackend) -> None:
        """Save the session id and print the listings, before the prompt is sent."""
        flags = self._flags
        if flags.save_session and (flags.fork or not flags.resume):
            _save_session_id(flags.save_session, backend.agent_session_id)
        await self._print_listings(backend.agent)
        if flags.list_modes:
            self._print_listing(acp_listings.modes(backend.agent, backend.options.modes))
        if flags.list_commands:
            await self._list_commands(backend)

    async def _list_commands(self, backend: AcpBackend) -> None:
        """Print the slash commands, which agents send shortly after the session is opened."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(backend.updates.commands_received.wait(), COMMANDS_TIMEOUT)
        commands = backend.updates.commands
        if not isinstance(self._output, FrameWriter):
            self._print_lines(acp_listings.commands(backend.agent, commands))
        elif not commands:
            update = {"sessionUpdate": "available_commands_update", "availableCommands": []}
            self._output.write_client_event("session/update", {"sessionId": backend.agent_session_id, "update": update})

    async def _run_prompt(self, session: LocalSession, backend: AcpBackend) -> int:
        if isinstance(self._output, PlainOutput):
            self._output.start_turn()
        prompt = Prompt("prompt", prompt_blocks(self._flags.prompt, str(self._cwd)))
        self._turn = session.start(prompt)
        try:
            ended = await self._turn.wait()
        finally:
            self._turn = None
        if isinstance(self._output, PlainOutput):
            self._output.end_turn()
        if isinstance(self._output, LabelledOutput):
            self._output.write_usage(backend.response.usage if backend.response else None)
        code = self._exit_code(ended, backend)
        denied = any(isinstance(e, PermissionDecided) and e.decision.answer == "deny" for e in session.events())
        return DENIED if code == 0 and denied and self._flags.fail_on_deny else code

    def _exit_code(self, ended: TurnEnded, backend: AcpBackend) -> int:
        """Return the exit status. A completed turn is a success; an unusual stop reason is only printed."""
        if self._stop_code:
            return self._stop_code
        if backend.response is None:
            self._print_status(str(ended.fault) if ended.fault else "the turn failed")
            return 1
        if backend.response.stop_reason != "end_turn":
            self._print_status(f"{self._agent.name} stopped early: {backend.response.stop_reason or 'no stop reason'}")
        return INTERRUPTED if ended.reason == "cancelled" else 0

    # -- parts of a run ----------------------------------------------------------------------------------------

    def _launch(self) -> Launch:
        entry = self._agent.entry
        return Launch(entry.command, entry.args, self._agent.environment(os.environ), str(self._cwd), self._agent.name)

    def _plan(self) -> AcpSessionPlan:
        flags = self._flags
        more = tuple(server for file in flags.mcp for server in read_mcp_servers(file))
        return AcpSessionPlan(
            self._launch(),
            __version__,
            (*self._agent.mcp_servers, *more),
            self._directories(),
            flags.resume,
            flags.fork,
            flags.login,
            supports_elicitation=False,
            required_options=flags.options,
        )

    def _directories(self) -> tuple[str, ...]:
        return tuple(str(_resolve_folder(name)) for name in self._flags.directories)

    def _workspace(self) -> SessionWorkspace:
        flags, root = self._flags, str(self._cwd)
        sandbox = self._settings.config.security.sandbox
        shell = SessionShell(root, writable=flags.write or flags.yolo, sandbox=sandbox)
        workspace = SessionWorkspace(root, shell, read_anywhere=flags.yolo)
        workspace.grant_folders(self._directories())
        return workspace

    def _mirror(self) -> Mirror | None:
        observers = [self._output.mirror] if isinstance(self._output, FrameWriter) else []
        observers += [self._checks.on_line] if self._checks else []
        if not observers:
            return None

        def mirror(direction: FrameDirection, line: bytes) -> None:
            for on_line in observers:
                on_line(direction, line)

        return mirror


class _NoSessionHandler:
    """The client side of a connection without a session, which serves no requests."""

    def handle_request(self, method: str, params: Params) -> Awaitable[Any]:
        raise RpcError(METHOD_NOT_FOUND, f"method {method!r} is not supported by this client")

    def handle_notification(self, method: str, params: Params) -> None:
        """Ignore it: there is no session."""


def _make_output(output: str, out: OutputStream) -> FrameWriter | PlainOutput:
    makers: dict[str, Callable[[OutputStream], FrameWriter | PlainOutput]] = {
        "text": LabelledOutput,
        "simple": PlainOutput,
    }
    return makers.get(output, FrameWriter)(out)


def _require_capability(agent: AcpAgentClient, capability: str, action: str) -> None:
    if not agent.info.agent_capabilities.can(capability):
        raise UsageError(f"{agent.name} cannot {action}")


def _save_session_id(name: str, session_id: str) -> None:
    try:
        Path(name).write_text(f"{session_id}\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write --save-session {name}: {(error.strerror or '').lower()}") from None


def _resolve_folder(name: str) -> Path:
    path = Path(name).expanduser().resolve()
    if not path.is_dir():
        raise UsageError(f"--add-dir {name}: no such folder")
    return path
