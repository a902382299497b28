"""Tool for the shell sessions that an Agent Zero server uses over its connector."""

import asyncio
import os
import time
from typing import Literal
from weakref import WeakKeyDictionary

import msgspec

from ostler.core.commands import BackgroundJobs, CommandRequest
from ostler.core.display import Display, DisplayFields, DisplayText
from ostler.core.errors import WRITE_DENIED, Fault, ToolError
from ostler.core.permission import Need, Permission
from ostler.core.protocols import ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.text.lazy_regex import lazy_regex
from ostler.text.sanitise import sanitise
from ostler.text.truncate import HeadTail
from ostler.tools.bash import BashParams, BashTool
from ostler.tools.protocol.protocol_tool import ProtocolTool
from ostler.tools.protocol.shell_state import KeptShellState, make_mark, read_end, reporting_script, without_report

MAX_SESSIONS = 16
MAX_INPUT_CHARACTERS = 65_536
MAX_SECONDS = 600.0
_POLL_SECONDS = 0.1
_OUTPUT_BYTES = 256 * 1024
_DIALOG = lazy_regex(r"(?i:y/n|yes/no)|[:?]\s*$")


class ShellTimeouts(msgspec.Struct, frozen=True):
    """After how many seconds the server gets the output of a command that still runs.

    `first` is without any output, `between` after the last output, `dialog` after output that looks like a question,
    and `total` in any case.
    """

    first: float = 30.0
    between: float = 15.0
    total: float = 180.0
    dialog: float = 5.0


class ConnectorShellParams(msgspec.Struct, eq=False, weakref=True):
    action: Literal["run", "input", "output", "reset"]
    session: int = 0
    command: str = ""
    reset: bool = False
    timeouts: ShellTimeouts = ShellTimeouts()


class _ShellSession:
    """One shell session: what its last command left, and the command that runs in it, if any."""

    def __init__(self) -> None:
        self.state = KeptShellState()
        self.job = ""
        self.command = ""
        self.sent: list[str] = []  # text for the running command
        self.mark = make_mark()  # of the report at the end of the running command
        self.read_only = False  # the command runs with the workspace read-only
        self.exit_code: int | None = None
        self.note = ""
        self.all_jobs: list[str] = []  # processes in the background outlive their command
        self._output = _new_buffer()
        self._position = 0  # in the log of the running command
        self._earlier_state = self.state

    def begin(self, job: str, command: str, mark: str, *, read_only: bool) -> None:
        self.job, self.command, self.mark, self.read_only = job, command, mark, read_only
        self._earlier_state = self.state
        self.sent, self.exit_code, self.note = [], None, ""
        self.all_jobs.append(job)
        self._output, self._position = _new_buffer(), 0

    def forget_output(self) -> None:
        self._output = _new_buffer()

    @property
    def was_denied_a_write(self) -> bool:
        """Whether the command failed because the workspace was read-only."""
        if not self.read_only or self.job or not self.exit_code:
            return False
        from ostler.workspace.write_denials import mentions_denied_write  # imported late: most commands may write

        return any(mentions_denied_write(self.output, sandbox) for sandbox in ("bubblewrap", "landlock"))

    def forget_command(self) -> None:
        """Set the state before the last command again, because that may run once more."""
        self.state = self._earlier_state

    @property
    def output(self) -> str:
        return without_report(self._output.text(), self.mark)

    async def read(self, jobs: BackgroundJobs) -> int:
        """Take the new output of the running command and notice its end. Return how many bytes arrived."""
        _, job = await jobs.read(self.job, 0)
        new = _read_from(job.log, self._position)
        self._position += len(new)
        self._output.feed(new)
        end = read_end(self._output.text(), self.mark) if new else None
        if end is not None:
            self._end(end.status)
            self._output = _new_buffer()
            self._output.feed(end.output.encode("utf-8", "replace"))
            if end.state is not None:
                self.state = end.state
            if end.state is None or not end.state.is_complete:
                self.note = "its variables and functions are too large to be kept"
        elif job.state != "running":
            self._end(job.exit_code)
        return len(new)

    def _end(self, status: int | None) -> None:
        self.job, self.exit_code = "", status


class ConnectorShellTool(ProtocolTool[ConnectorShellParams]):
    """Runs commands in shell sessions, which keep their folder, variables and functions.

    Text for a running command is judged like a command, together with what it already got.
    """

    name = "connector_shell"
    kind = "execute"
    reach = "commands"
    params = ConnectorShellParams
    runs_read_only = True

    def __init__(self, bash: BashTool) -> None:
        self._bash = bash
        self._sessions: dict[int, _ShellSession] = {}
        self._judged: WeakKeyDictionary[ConnectorShellParams, str] = WeakKeyDictionary()
        self._readable: WeakKeyDictionary[ConnectorShellParams, tuple[str, ...]] = WeakKeyDictionary()

    async def permission(self, params: ConnectorShellParams, workspace: Workspace) -> Permission:
        if params.action == "run":
            command = self._judged[params] = self._full_command(params, workspace)
            permission, self._readable[params] = await self._bash.check(BashParams(command=command), workspace)
            return permission
        if params.action == "input":
            return await self._input_permission(params, workspace)
        return Permission(f"{params.action} of shell session {params.session}")

    async def _input_permission(self, params: ConnectorShellParams, workspace: Workspace) -> Permission:
        """Return the needs of the text as a command, alone and after what was sent before, and of the text as such.

        No sandbox makes the text itself harmless, because only the program knows what it means.
        """
        session, text = self._running(params.session), params.command
        if len(text) > MAX_INPUT_CHARACTERS:
            raise ToolError("the text is too long", code="bad_arguments")
        self._judged[params] = session.job
        needs = {Need("bash", f"text for a running program: {text}"): None}
        for command in dict.fromkeys((text, "\n".join((*session.sent, text)))):
            if command.strip():
                judged = await self._bash.permission(BashParams(command=command), workspace)
                needs |= dict.fromkeys(msgspec.structs.replace(need, rule_pattern="") for need in judged.needs)
        fields = (("text", text), ("for", session.command))
        title = f"send text to a running program: {text}"
        return Permission(title, tuple(needs), Display(text, (DisplayFields(fields),)))

    async def run(self, params: ConnectorShellParams, context: ToolContext) -> ToolResult:
        jobs = context.workspace.jobs
        if params.action == "reset" or params.reset:
            await self._stop(params.session, jobs)
        if params.action == "reset":
            return _result(params, _ShellSession(), "Terminal session has been reset.")
        if params.action == "run":
            return await self._run_command(params, context)
        if params.action == "input":
            session = self._running(params.session)
            self._check_unchanged(params, session.job)
            session.forget_output()
            jobs.write(session.job, params.command.rstrip("\n") + "\n")
            session.sent.append(params.command)
            return await self._watch(params, session, context)
        existing = self._sessions.get(params.session)
        if existing is None:
            return _result(params, _ShellSession(), f"Session {params.session} has run no command.")
        return await self._watch(params, existing, context)

    async def _run_command(self, params: ConnectorShellParams, context: ToolContext) -> ToolResult:
        session = self._session(params.session)
        if session.job:
            await session.read(context.workspace.jobs)
        if session.job:
            return _result(params, session, f"Session {params.session} still runs a command; wait, or reset it.")
        command = self._full_command(params, context.workspace)
        self._check_unchanged(params, command)
        mark = make_mark()
        request = CommandRequest(
            command,
            interactive=True,
            script=reporting_script(mark),
            read_only=context.read_only,
            readable=self._readable.get(params, ()),
        )
        job = await context.workspace.jobs.start(request)
        session.begin(job, params.command, mark, read_only=context.read_only)
        result = await self._watch(params, session, context)
        if not session.was_denied_a_write:
            return result
        session.forget_command()
        return msgspec.structs.replace(result, fault=Fault(WRITE_DENIED, "the workspace was read-only"))

    async def _watch(self, params: ConnectorShellParams, session: _ShellSession, context: ToolContext) -> ToolResult:
        """Wait for the end of the running command or for one of the timeouts. Cancelling stops the command."""
        jobs, timeouts = context.workspace.jobs, params.timeouts
        started = last = time.monotonic()
        shown = False
        try:
            while session.job:
                if await session.read(jobs):
                    last, shown = time.monotonic(), True
                    context.progress(Display(session.command, (DisplayText(session.output, "output"),)))
                if session.job and (message := _reason_to_return(session, timeouts, started, last, shown)):
                    return _result(params, session, message)
                if session.job:
                    await asyncio.sleep(_POLL_SECONDS)
        except asyncio.CancelledError:
            await self._stop_job(session, jobs)
            raise
        notes = [session.note] if session.note else []
        notes += ["the workspace was read-only"] if session.was_denied_a_write else []
        note = f" Note: {'; '.join(notes)}." if notes else ""
        return _result(params, session, f"Session {params.session} completed.{note}")

    def _full_command(self, params: ConnectorShellParams, workspace: Workspace) -> str:
        """Return the command after the state of its session, which is what is judged and runs."""
        if not params.command.strip():
            raise ToolError("there is no command", code="bad_arguments")
        session = self._sessions.get(params.session)
        if session is None or params.reset:
            return params.command
        folder = session.state.folder
        if folder and not os.path.isdir(folder):
            hint = "reset the session"
            raise ToolError(f"the folder of the shell session, {folder}, no longer exists", code="not_found", hint=hint)
        return session.state.prefix(workspace.root) + params.command

    def _check_unchanged(self, params: ConnectorShellParams, current: str) -> None:
        if self._judged.get(params) != current:
            raise ToolError("the shell session changed before this was allowed; request it again", code="changed")

    def _session(self, number: int) -> _ShellSession:
        if number not in self._sessions and len(self._sessions) >= MAX_SESSIONS:
            raise ToolError(f"there are already {MAX_SESSIONS} shell sessions; reset one", code="too_many")
        return self._sessions.setdefault(number, _ShellSession())

    def _running(self, number: int) -> _ShellSession:
        session = self._sessions.get(number)
        if session is None or not session.job:
            raise ToolError(f"session {number} is not awaiting input; run a command", code="no_input")
        return session

    async def _stop(self, number: int, jobs: BackgroundJobs) -> None:
        """Stop all processes of a session and forget its state."""
        session = self._sessions.pop(number, None)
        for job in session.all_jobs if session else ():
            await jobs.stop(job)

    async def _stop_job(self, session: _ShellSession, jobs: BackgroundJobs) -> None:
        job, session.job = session.job, ""
        if job:
            await jobs.stop(job)


def _reason_to_return(session: _ShellSession, timeouts: ShellTimeouts, started: float, last: float, shown: bool) -> str:
    """Return the message for a command that is not waited for any longer; empty while it is."""
    now = time.monotonic()
    silent = now - last
    if now - started > min(timeouts.total, MAX_SECONDS):
        return f"The command still runs after {min(timeouts.total, MAX_SECONDS):g} seconds; get its output, or reset."
    if not shown:
        too_long = silent > timeouts.first
        return f"The command still runs after {timeouts.first:g} seconds without output." if too_long else ""
    if silent > timeouts.between:
        return f"The command still runs; it has printed nothing for {timeouts.between:g} seconds."
    if silent > timeouts.dialog and _looks_like_question(session.output):
        return "The command still runs and may be waiting for input."
    return ""


def _looks_like_question(output: str) -> bool:
    return any(_DIALOG.search(line.strip()[-200:]) for line in output.rstrip().splitlines()[-2:])


def _result(params: ConnectorShellParams, session: _ShellSession, message: str) -> ToolResult:
    output = sanitise(session.output).strip("\n")
    code = session.exit_code
    data = {"session": params.session, "message": message, "running": bool(session.job), "exit_code": code}
    failed = not session.job and code not in (None, 0)
    summary = f"exit {code}" if code is not None else message
    blocks = (DisplayText(output, "output"),) if output else ()
    return ToolResult("", "failed" if failed else "ok", output, Display(summary, blocks), data)


def _read_from(path: str, position: int) -> bytes:
    with open(path, "rb") as log:
        log.seek(position)
        return log.read()


def _new_buffer() -> HeadTail:
    return HeadTail(_OUTPUT_BYTES // 2, _OUTPUT_BYTES // 2)
