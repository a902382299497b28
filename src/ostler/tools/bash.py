"""The tool that runs a shell command in the workspace, in the foreground or behind."""

import re
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from ostler.core.display import Display, DisplayFields, DisplayText
from ostler.core.errors import ToolError
from ostler.core.permission import Need, Permission
from ostler.core.protocols import BackgroundJob, BackgroundJobs, CommandRequest, CommandResult, ToolContext, Workspace
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool

if TYPE_CHECKING:
    from ostler.policy.shell import Analysis

# Without a terminal they wait for keys for ever; other full-screen programs see it and end.
_INTERACTIVE_EDITORS = frozenset({"vim", "vi", "nvim", "view", "vimdiff", "rvim", "rview", "vim.basic", "vim.tiny"})
_BATCH_OPTIONS = ("-c", "-e", "-E", "-S", "-s", "+", "-h", "--")
SAFE_DEVICES = ("/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/urandom")


class BashParams(msgspec.Struct):
    command: Annotated[str, msgspec.Meta(description="the command line")] = ""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=3600, description="seconds")] = 120.0
    reason: Annotated[str, msgspec.Meta(description="why, for the person who is asked")] = ""
    background: Annotated[bool, msgspec.Meta(description="let it go on by itself; gives a job")] = False
    network: Annotated[bool, msgspec.Meta(description="it needs the network")] = False
    action: Annotated[
        Literal["run", "list", "read", "stop"], msgspec.Meta(description="list jobs, or read or stop one")
    ] = "run"
    job: Annotated[str, msgspec.Meta(description="which job")] = ""
    wait: Annotated[float, msgspec.Meta(ge=0, le=60, description="seconds to wait for a job's end when reading")] = 0.0


class BashTool(BaseTool[BashParams]):
    name = "bash"
    kind = "execute"
    reach = "commands"
    params = BashParams

    def __init__(self, danger_patterns: tuple[str, ...] = (), blacklist_patterns: tuple[str, ...] = ()) -> None:
        self._danger_patterns = danger_patterns
        self._blacklist_patterns = blacklist_patterns

    async def permission(self, params: BashParams, workspace: Workspace) -> Permission:
        if params.action != "run":
            return Permission(f"{params.action} background jobs")
        if not params.command.strip():
            raise ToolError("there is no command; give one as `command`", code="bad_arguments")
        if "\0" in params.command:
            raise ToolError("a command cannot contain a zero byte; remove it", code="bad_arguments")
        from ostler.policy.shell import analyse  # brings a parser along that only commands need

        analysis = analyse(
            params.command,
            cwd=workspace.root,
            danger_patterns=self._danger_patterns,
            blacklist_patterns=self._blacklist_patterns,
        )
        _reject_interactive_editor(analysis)
        needs = await _needs(params, analysis, workspace)
        return Permission(f"run {params.command}", needs, _preview(params, analysis), reason=params.reason)

    async def run(self, params: BashParams, context: ToolContext) -> ToolResult:
        if params.action != "run":
            return await _run_job_action(params, context.workspace.jobs)

        def show(text: str) -> None:
            context.progress(Display(params.command, (DisplayText(text, "output"),)))

        running = CommandRequest(params.command, params.timeout, on_output=show, network=params.network)
        if params.background:
            job = await context.workspace.jobs.start(running)
            return ToolResult("", "ok", f"Started job {job}.", Display(f"job {job}"), {"job": job})
        ran = await context.workspace.run(running)
        shown = Display(
            _exit_summary(params, ran), (DisplayText(output, "output"),) if (output := _combined_output(ran)) else ()
        )
        data = {**msgspec.to_builtins(ran), "command": params.command}
        return ToolResult("", "ok" if ran.exit_code == 0 else "failed", _result_text(params, ran), shown, data)


def _reject_interactive_editor(analysis: "Analysis") -> None:
    for part in analysis.commands:
        name = part.words[0].rpartition("/")[2] if part.words else ""
        if name in _INTERACTIVE_EDITORS and not any(word.startswith(_BATCH_OPTIONS) for word in part.words[1:]):
            message = f"{name} waits for keys, and there is no terminal here; change the file with edit or write"
            raise ToolError(message, code="needs_terminal")


def _preview(params: BashParams, analysis: "Analysis") -> Display:
    fields = [("command", params.command)]
    if params.reason:
        fields.append(("reason (the model's)", params.reason))
    if analysis.reason:
        fields.append(("impact", analysis.reason))
    if params.network:
        fields.append(("network", "it may reach other machines"))
    return Display(params.command, (DisplayFields(tuple(fields)),))


async def _needs(params: BashParams, analysis: "Analysis", workspace: Workspace) -> tuple[Need, ...]:
    from ostler.policy.shell import SimpleCommand
    from ostler.policy.shell.rule_patterns import suggest_rule_pattern

    parts = analysis.commands or (SimpleCommand(params.command, (), literal=False, paths=()),)
    # With the network it can tell others what it reads, and change what is theirs: the sandbox does not hold that.
    confined = not params.network and await workspace.is_sandboxed()
    needs = [
        Need(
            "bash",
            part.text,
            danger=analysis.command_danger(part),
            reason=part.unknown_reason or analysis.reason,
            rule_pattern=suggest_rule_pattern(part.words) if part.literal else "",
            sandboxed=confined,
        )
        for part in parts
    ]
    named = {*analysis.written_paths, *(path for part in parts for path in part.paths)}
    outside = sorted(path for path in named if not workspace.resolve(path).in_workspace)
    needs += [Need("bash", f"outside the workspace: {path}") for path in outside if path not in SAFE_DEVICES]
    if params.network:
        needs.append(Need("network", params.command))
    return tuple(needs)


async def _run_job_action(params: BashParams, jobs: BackgroundJobs) -> ToolResult:
    if params.action == "list":
        standing = jobs.list()
        text = "\n".join(_describe_job(job) for job in standing) or "There are no jobs."
        return ToolResult("", "ok", text, Display(f"{len(standing)} jobs"), msgspec.to_builtins(standing))
    if not params.job.strip():
        known = ", ".join(job.id for job in jobs.list()) or "none"
        raise ToolError(f"which job? give `job` to {params.action} it; there are: {known}", code="bad_arguments")
    name = _resolve_job_id(params.job, jobs)
    if params.action == "stop":
        job = await jobs.stop(name)
        return ToolResult("", "ok", _describe_job(job), Display(_describe_job(job)), msgspec.to_builtins(job))
    text, job = await jobs.read(name, params.wait)
    shown = Display(_describe_job(job), (DisplayText(text, "output"),) if text else ())
    return ToolResult("", "ok", f"{text or '(nothing new)'}\n[{_describe_job(job)}]", shown, msgspec.to_builtins(job))


def _resolve_job_id(name: str, jobs: BackgroundJobs) -> str:
    """The job that a number is short for, as in `1`, `%1` and `job 1`; else what was said."""
    number = re.fullmatch(r"(?:job|bg|[%#])?[ _-]?0*(\d{1,9})", name.strip().lower())
    named = f"bg{number[1]}" if number else name
    return named if any(job.id == named for job in jobs.list()) else name


def _describe_job(job: BackgroundJob) -> str:
    ended = f" {job.exit_code}" if job.exit_code is not None else ""
    return f"{job.id}: {job.state}{ended} after {job.seconds:.1f} s: {job.command}"


def _combined_output(result: CommandResult) -> str:
    return "\n".join(part.rstrip("\n") for part in (result.stdout, result.stderr) if part.strip())


def _exit_summary(params: BashParams, result: CommandResult) -> str:
    if result.timed_out:
        return f"timed out after {params.timeout:g} s"
    return f"exit {result.exit_code}" if result.exit_code is not None else "killed"


def _result_text(params: BashParams, result: CommandResult) -> str:
    parts = [
        part
        for part in (_combined_output(result), f"[whole output: {result.output_file}]" if result.output_file else "")
        if part
    ]
    if result.exit_code != 0:
        parts.append(f"[{_exit_summary(params, result)}]")
    return "\n".join(parts) or "(no output)"
