"""Tool that runs a shell command in the foreground or as a background job."""

import os
import re
from collections.abc import Iterable, Sequence
from glob import iglob
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from ostler.core.commands import BackgroundJob, BackgroundJobs, CommandRequest, CommandResult
from ostler.core.display import Display, DisplayFields, DisplayText
from ostler.core.errors import WRITE_DENIED, Fault, ToolError
from ostler.core.permission import Need, Permission
from ostler.core.protocols import ResolvedPath, ToolContext, Workspace
from ostler.core.tools import ResultStatus, ToolResult
from ostler.tools.base_tool import BaseTool

if TYPE_CHECKING:
    from ostler.policy.shell import Analysis, SimpleCommand

# Without a terminal, these editors wait for input forever; other full-screen programs exit.
_INTERACTIVE_EDITORS = frozenset({"vim", "vi", "nvim", "view", "vimdiff", "rvim", "rview", "vim.basic", "vim.tiny"})
_BATCH_OPTIONS = ("-c", "-e", "-E", "-S", "-s", "+", "-h", "--")
_TEMPORARY_FOLDERS = ("/tmp/", "/var/tmp/", "/dev/shm/")  # outside the workspace, so asked about as such
_MAX_MATCHES = 1000  # of a file pattern, as files that may be read
_MAX_VISIBLE = 100  # files outside the workspace that a pattern makes visible in the sandbox
READ_ONLY_NOTE = "[the workspace was read-only; if the command must write there, call bash again with write: true]"
SAFE_DEVICES = ("/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/urandom")


class BashParams(msgspec.Struct, eq=False, weakref=True):
    command: Annotated[str, msgspec.Meta(description="the command line")] = ""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=3600, description="seconds")] = 120.0
    reason: Annotated[str, msgspec.Meta(description="reason, shown to the user")] = ""
    background: Annotated[bool, msgspec.Meta(description="run as a background job")] = False
    network: Annotated[bool, msgspec.Meta(description="needs network access")] = False
    write: Annotated[bool, msgspec.Meta(description="must write in the workspace")] = False
    action: Annotated[
        Literal["run", "list", "read", "stop"], msgspec.Meta(description="list jobs, or read or stop one")
    ] = "run"
    job: Annotated[str, msgspec.Meta(description="job id")] = ""
    wait: Annotated[float, msgspec.Meta(ge=0, le=60, description="seconds to wait for a job's end on read")] = 0.0


class CheckedCommand(NamedTuple):
    """What a command needs, and the paths outside the workspace that it may read if this is allowed.

    The sandbox hides home directories except for these paths. They are resolved when the needs are, because a
    symlink may lead elsewhere later.
    """

    permission: Permission
    readable: tuple[str, ...]


class BashTool(BaseTool[BashParams]):
    name = "bash"
    params = BashParams
    unlisted = ("write",)
    runs_read_only = True

    def __init__(self, danger_patterns: tuple[str, ...] = (), blacklist_patterns: tuple[str, ...] = ()) -> None:
        self._danger_patterns = danger_patterns
        self._blacklist_patterns = blacklist_patterns
        self._readable: WeakKeyDictionary[BashParams, tuple[str, ...]] = WeakKeyDictionary()

    async def permission(self, params: BashParams, workspace: Workspace) -> Permission:
        if params.action != "run":
            return Permission(f"{params.action} background jobs")
        permission, self._readable[params] = await self.check(params, workspace)
        return permission

    async def check(self, params: BashParams, workspace: Workspace, cwd: str = "") -> CheckedCommand:
        """Return what a command needs and may read that starts in a folder, the workspace if it is empty.

        Raises `ToolError` for one that cannot run.
        """
        if not params.command.strip():
            raise ToolError("there is no command; give one as `command`", code="bad_arguments")
        if "\0" in params.command:
            raise ToolError("a command cannot contain a zero byte; remove it", code="bad_arguments")
        from ostler.policy.shell import analyse  # imports a parser that only commands need

        analysis = analyse(
            params.command,
            cwd=cwd or workspace.root,
            danger_patterns=self._danger_patterns,
            blacklist_patterns=self._blacklist_patterns,
        )
        _reject_interactive_editor(analysis)
        in_sandbox, may_run_read_only = await workspace.is_sandboxed(), not (params.write or params.network)
        outside = _find_outside(analysis, workspace)
        needs = _needs(params, analysis, workspace, outside, in_sandbox)
        read_only_needs: tuple[Need, ...] = ()
        if may_run_read_only and not in_sandbox and await workspace.has_sandbox():
            read_only_needs = _needs(params, analysis, workspace, outside, in_sandbox=True)
        permission = Permission(
            f"run {params.command}",
            needs,
            _preview(params, analysis),
            reason=params.reason,
            may_run_read_only=may_run_read_only,
            read_only_needs=read_only_needs,
        )
        return CheckedCommand(permission, _readable_paths(analysis, outside))

    async def run(self, params: BashParams, context: ToolContext) -> ToolResult:
        if params.action != "run":
            return await _run_job_action(params, context.workspace.jobs)

        def show(text: str) -> None:
            context.progress(Display(params.command, (DisplayText(text, "output"),)))

        request = CommandRequest(
            params.command,
            params.timeout,
            on_output=show,
            network=params.network,
            read_only=context.read_only,
            readable=self._readable.get(params, ()),
        )
        if params.background:
            job = await context.workspace.jobs.start(request)
            note = f"\n{READ_ONLY_NOTE}" if context.read_only else ""
            return ToolResult("", "ok", f"Started job {job}.{note}", Display(f"job {job}"), {"job": job})
        result = await context.workspace.run(request)
        display = Display(
            _exit_summary(params, result),
            (DisplayText(output, "output"),) if (output := _combined_output(result)) else (),
        )
        data = {**msgspec.to_builtins(result), "command": params.command}
        is_denied = data.pop("write_denied")
        status: ResultStatus = "ok" if result.exit_code == 0 else "failed"
        text = _result_text(params, result)
        if context.read_only and (is_denied or status == "failed"):
            text = f"{text}\n{READ_ONLY_NOTE}"
        fault = Fault(WRITE_DENIED, "the workspace was read-only") if is_denied and status == "failed" else None
        return ToolResult("", status, text, display, data, fault=fault)


def _reject_interactive_editor(analysis: "Analysis") -> None:
    for part in analysis.commands:
        name = part.words[0].rpartition("/")[2] if part.words else ""
        if name in _INTERACTIVE_EDITORS and not any(word.startswith(_BATCH_OPTIONS) for word in part.words[1:]):
            message = f"{name} is interactive, and there is no terminal; change the file with edit or write"
            raise ToolError(message, code="needs_terminal")


def _preview(params: BashParams, analysis: "Analysis") -> Display:
    fields = [("command", params.command)]
    if params.reason:
        fields.append(("reason (the model's)", params.reason))
    if analysis.reason:
        fields.append(("impact", analysis.reason))
    if params.network:
        fields.append(("network", "the command can access the network"))
    return Display(params.command, (DisplayFields(tuple(fields)),))


def _needs(
    params: BashParams, analysis: "Analysis", workspace: Workspace, outside: "_OutsidePaths", in_sandbox: bool
) -> tuple[Need, ...]:
    from ostler.policy.shell import SimpleCommand
    from ostler.policy.shell.rule_patterns import suggest_rule_pattern

    parts = analysis.commands or (SimpleCommand(params.command, (), literal=False, paths=()),)
    # With network access, a command can send data and change remote systems, which the sandbox does not prevent.
    sandboxed = in_sandbox and not params.network
    read_only = sandboxed and workspace.is_read_only_command(params.command)
    needs = [
        Need(
            "bash",
            part.text,
            danger=analysis.command_danger(part),
            reason=part.unknown_reason or analysis.reason,
            rule_pattern=suggest_rule_pattern(part.words) if part.literal else "",
            sandboxed=sandboxed,
            read_only=read_only,
        )
        for part in parts
    ]
    needs += [
        Need(
            "bash",
            text,
            rule_pattern=" ".join((*part.assignments, suggest_rule_pattern(part.words))) if part.literal else "",
            sandboxed=sandboxed,
            read_only=read_only,
        )
        for part in parts
        if part.assignments and (text := " ".join((*part.assignments, part.text)))
    ]
    places = [workspace.resolve(path) for path in analysis.redirected_paths]
    needs += [
        Need("write", place.display_path, rule_pattern=place.display_path, sandboxed=sandboxed)
        for place in places
        if place.in_workspace or not place.absolute.startswith(_TEMPORARY_FOLDERS)
    ]
    if not in_sandbox:
        needs += [Need("write", path) for path in dict.fromkeys(analysis.temporary_paths)]
    needs += [
        Need("bash", f"with words known only at run time: {part.text}", sandboxed=sandboxed, read_only=read_only)
        for part in parts
        if part.has_runtime_words or (part.has_variable_words and not in_sandbox)
    ]
    too_many = "outside the workspace: too many files to check for links:"
    needs += [Need("bash", f"{too_many} {name}") for name in outside.unchecked]
    needs += _outside_needs(outside.places)
    needs += _read_needs(analysis, parts, workspace)
    if params.network:
        needs.append(Need("network", params.command))
    return tuple(needs)


class _OutsidePaths(NamedTuple):
    """The paths that a command names outside the workspace, and the patterns with too many files to check for links."""

    places: dict[str, ResolvedPath]
    unchecked: list[str]


def _find_outside(analysis: "Analysis", workspace: Workspace) -> _OutsidePaths:
    parts = analysis.commands
    linked, unchecked = _linked_paths(parts)
    named = {*linked, *analysis.input_paths, *analysis.written_paths, *(path for part in parts for path in part.paths)}
    places = {path: workspace.resolve(path) for path in sorted(named)}
    outside = {
        path: place
        for path, place in places.items()
        if not (place.in_workspace or path in SAFE_DEVICES or place.absolute in SAFE_DEVICES)
    }
    return _OutsidePaths(outside, unchecked)


def _readable_paths(analysis: "Analysis", outside: _OutsidePaths) -> tuple[str, ...]:
    """Return the existing paths that the needs of a command name, and the files that their patterns match there."""
    found: list[str] = []
    for path, place in outside.places.items():
        folder, name = os.path.split(path)
        found += [os.path.join(os.path.realpath(folder), name), place.absolute]
    for pattern in {pattern for part in analysis.commands for pattern in part.patterns} & outside.places.keys():
        start = os.path.dirname(outside.places[pattern].absolute.partition("*")[0].partition("?")[0].partition("[")[0])
        matches = (os.path.realpath(match) for match in islice(iglob(pattern), _MAX_VISIBLE))
        found += [match for match in matches if match.startswith(f"{start.rstrip('/')}/")]
    return tuple(path for path in dict.fromkeys(found) if os.path.lexists(path))


def _outside_needs(outside: dict[str, ResolvedPath]) -> list[Need]:
    """Return a need for each place outside the workspace that a path leads to, so that rules name the place."""
    needs: dict[str, Need] = {}
    for path, place in outside.items():
        reason = "" if place.absolute == os.path.normpath(path) else f"{path} leads to {place.absolute}"
        needs.setdefault(place.absolute, Need("bash", f"outside the workspace: {place.absolute}", reason=reason))
    return list(needs.values())


_SHOW_ONLY_NAMES = frozenset({"ls", "stat", "test", "[", "realpath", "basename", "dirname", "cd", "touch"})


def _read_needs(analysis: "Analysis", parts: "Sequence[SimpleCommand]", workspace: Workspace) -> list[Need]:
    """Return a need for each file of the workspace that a command names, because it may show the content."""
    parts = [part for part in parts if not _SHOW_ONLY_NAMES.intersection(part.words[:1])]
    named = [*analysis.input_paths, *analysis.script_paths, *(path for part in parts for path in part.paths)]
    matched = [path for part in parts for pattern in part.patterns for path in _first_matches(pattern)]
    written = set(analysis.redirected_paths)
    places = [workspace.resolve(path) for path in dict.fromkeys((*named, *matched)) if path not in written]
    subjects = dict.fromkeys(place.display_path for place in places if place.in_workspace)
    return [Need("read", subject, rule_pattern=subject, implied=True) for subject in subjects if subject != "."]


def _first_matches(pattern: str) -> Iterable[str]:
    return () if pattern.endswith("/**") else islice(iglob(pattern), _MAX_MATCHES)


def _linked_paths(parts: "Sequence[SimpleCommand]") -> tuple[list[str], list[str]]:
    """Return the links that the file patterns of the commands match, and the patterns with too many files to check."""
    from ostler.policy.shell.path_patterns import links_below

    linked: list[str] = []
    unchecked: list[str] = []
    for pattern in dict.fromkeys(pattern for part in parts for pattern in part.patterns):
        try:
            linked += links_below(pattern)
        except OverflowError:
            unchecked.append(pattern)
    return linked, unchecked


async def _run_job_action(params: BashParams, jobs: BackgroundJobs) -> ToolResult:
    if params.action == "list":
        all_jobs = jobs.list()
        text = "\n".join(_describe_job(job) for job in all_jobs) or "There are no jobs."
        return ToolResult("", "ok", text, Display(f"{len(all_jobs)} jobs"), msgspec.to_builtins(all_jobs))
    if not params.job.strip():
        known = ", ".join(job.id for job in jobs.list()) or "none"
        raise ToolError(f"{params.action} needs `job`; jobs: {known}", code="bad_arguments")
    job_id = _resolve_job_id(params.job, jobs)
    if params.action == "stop":
        job = await jobs.stop(job_id)
        return ToolResult("", "ok", _describe_job(job), Display(_describe_job(job)), msgspec.to_builtins(job))
    text, job = await jobs.read(job_id, params.wait)
    display = Display(_describe_job(job), (DisplayText(text, "output"),) if text else ())
    return ToolResult(
        "", "ok", f"{text or '(no new output)'}\n[{_describe_job(job)}]", display, msgspec.to_builtins(job)
    )


def _resolve_job_id(name: str, jobs: BackgroundJobs) -> str:
    """Return the id of the job that `1`, `%1` or `job 1` means, or the name unchanged."""
    number = re.fullmatch(r"(?:job|bg|[%#])?[ _-]?0*(\d{1,9})", name.strip().lower())
    job_id = f"bg{number[1]}" if number else name
    return job_id if any(job.id == job_id for job in jobs.list()) else name


def _describe_job(job: BackgroundJob) -> str:
    exit_code = f" {job.exit_code}" if job.exit_code is not None else ""
    return f"{job.id}: {job.state}{exit_code} after {job.seconds:.1f} s: {job.command}"


def _combined_output(result: CommandResult) -> str:
    return "\n".join(part.rstrip("\n") for part in (result.stdout, result.stderr) if part.strip())


def _exit_summary(params: BashParams, result: CommandResult) -> str:
    if result.timed_out:
        return f"timed out after {params.timeout:g} s"
    return f"exit {result.exit_code}" if result.exit_code is not None else "killed"


def _result_text(params: BashParams, result: CommandResult) -> str:
    parts = [
        part
        for part in (_combined_output(result), f"[full output: {result.output_file}]" if result.output_file else "")
        if part
    ]
    if result.exit_code != 0:
        parts.append(f"[{_exit_summary(params, result)}]")
    return "\n".join(parts) or "(no output)"
