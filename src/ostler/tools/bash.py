"""The tool that runs a shell command in the workspace, in the foreground or behind."""

import re
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from ostler.tools.declared import Declared
from ostler.vocabulary.display import Display, Fields, Note
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.permission import Need, Permission
from ostler.vocabulary.seams import Ground, Job, Jobs, Ran, Running, ToolContext
from ostler.vocabulary.tools import ToolResult

if TYPE_CHECKING:
    from ostler.policy.shell import Analysis

# Without a terminal they wait for keys for ever; other full-screen programs see it and end.
_WAIT_FOR_KEYS = frozenset({"vim", "vi", "nvim", "view", "vimdiff", "rvim", "rview", "vim.basic", "vim.tiny"})
_WITHOUT_KEYS = ("-c", "-e", "-E", "-S", "-s", "+", "-h", "--")
HARMLESS = ("/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/urandom")


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


class Bash(Declared[BashParams]):
    name = "bash"
    kind = "execute"
    params = BashParams

    def __init__(self, danger_patterns: tuple[str, ...] = (), blacklist_patterns: tuple[str, ...] = ()) -> None:
        self._danger = danger_patterns
        self._blacklist = blacklist_patterns

    async def permission(self, params: BashParams, ground: Ground) -> Permission:
        if params.action != "run":
            return Permission(f"{params.action} background jobs")
        if not params.command.strip():
            raise ToolFailure("there is no command; give one as `command`", code="bad_arguments")
        if "\0" in params.command:
            raise ToolFailure("a command cannot contain a zero byte; remove it", code="bad_arguments")
        from ostler.policy.shell import analyse  # brings a parser along that only commands need

        analysis = analyse(
            params.command, cwd=ground.root, danger_patterns=self._danger, blacklist_patterns=self._blacklist
        )
        _refuse_waiting_for_keys(analysis)
        needs = await _needs(params, analysis, ground)
        return Permission(f"run {params.command}", needs, _preview(params, analysis), reason=params.reason)

    async def run(self, params: BashParams, context: ToolContext) -> ToolResult:
        if params.action != "run":
            return await _job(params, context.ground.jobs)

        def show(text: str) -> None:
            context.progress(Display(params.command, (Note(text, "output"),)))

        running = Running(params.command, params.timeout, on_output=show, network=params.network)
        if params.background:
            job = await context.ground.jobs.start(running)
            return ToolResult("", "ok", f"Started job {job}.", Display(f"job {job}"), {"job": job})
        ran = await context.ground.run(running)
        shown = Display(_ending(params, ran), (Note(output, "output"),) if (output := _output(ran)) else ())
        data = {**msgspec.to_builtins(ran), "command": params.command}
        return ToolResult("", "ok" if ran.exit_code == 0 else "failed", _report(params, ran), shown, data)


def _refuse_waiting_for_keys(analysis: "Analysis") -> None:
    for part in analysis.commands:
        name = part.words[0].rpartition("/")[2] if part.words else ""
        if name in _WAIT_FOR_KEYS and not any(word.startswith(_WITHOUT_KEYS) for word in part.words[1:]):
            message = f"{name} waits for keys, and there is no terminal here; change the file with edit or write"
            raise ToolFailure(message, code="needs_terminal")


def _preview(params: BashParams, analysis: "Analysis") -> Display:
    fields = [("command", params.command)]
    if params.reason:
        fields.append(("reason (the model's)", params.reason))
    if analysis.why:
        fields.append(("impact", analysis.why))
    if params.network:
        fields.append(("network", "it may reach other machines"))
    return Display(params.command, (Fields(tuple(fields)),))


async def _needs(params: BashParams, analysis: "Analysis", ground: Ground) -> tuple[Need, ...]:
    from ostler.policy.shell import Simple
    from ostler.policy.shell.arity import always_pattern

    parts = analysis.commands or (Simple(params.command, (), literal=False, paths=()),)
    # With the network it can tell others what it reads, and change what is theirs: the sandbox does not hold that.
    confined = not params.network and await ground.confined()
    needs = [
        Need(
            "bash",
            part.text,
            danger=analysis.danger(part),
            why=part.stranger or analysis.why,
            always=always_pattern(part.words) if part.literal else "",
            confined=confined,
        )
        for part in parts
    ]
    named = {*analysis.writes, *(path for part in parts for path in part.paths)}
    outside = sorted(path for path in named if not ground.place(path).inside)
    needs += [Need("bash", f"outside the workspace: {path}") for path in outside if path not in HARMLESS]
    if params.network:
        needs.append(Need("network", params.command))
    return tuple(needs)


async def _job(params: BashParams, jobs: Jobs) -> ToolResult:
    if params.action == "list":
        standing = jobs.list()
        text = "\n".join(_standing(job) for job in standing) or "There are no jobs."
        return ToolResult("", "ok", text, Display(f"{len(standing)} jobs"), msgspec.to_builtins(standing))
    if not params.job.strip():
        known = ", ".join(job.id for job in jobs.list()) or "none"
        raise ToolFailure(f"which job? give `job` to {params.action} it; there are: {known}", code="bad_arguments")
    name = _meant(params.job, jobs)
    if params.action == "stop":
        job = await jobs.stop(name)
        return ToolResult("", "ok", _standing(job), Display(_standing(job)), msgspec.to_builtins(job))
    text, job = await jobs.read(name, params.wait)
    shown = Display(_standing(job), (Note(text, "output"),) if text else ())
    return ToolResult("", "ok", f"{text or '(nothing new)'}\n[{_standing(job)}]", shown, msgspec.to_builtins(job))


def _meant(said: str, jobs: Jobs) -> str:
    """The job that a number is short for, as in `1`, `%1` and `job 1`; else what was said."""
    number = re.fullmatch(r"(?:job|bg|[%#])?[ _-]?0*(\d{1,9})", said.strip().lower())
    named = f"bg{number[1]}" if number else said
    return named if any(job.id == named for job in jobs.list()) else said


def _standing(job: Job) -> str:
    ended = f" {job.exit_code}" if job.exit_code is not None else ""
    return f"{job.id}: {job.state}{ended} after {job.seconds:.1f} s: {job.command}"


def _output(ran: Ran) -> str:
    return "\n".join(part.rstrip("\n") for part in (ran.stdout, ran.stderr) if part.strip())


def _ending(params: BashParams, ran: Ran) -> str:
    if ran.timed_out:
        return f"timed out after {params.timeout:g} s"
    return f"exit {ran.exit_code}" if ran.exit_code is not None else "killed"


def _report(params: BashParams, ran: Ran) -> str:
    parts = [part for part in (_output(ran), f"[whole output: {ran.spill}]" if ran.spill else "") if part]
    if ran.exit_code != 0:
        parts.append(f"[{_ending(params, ran)}]")
    return "\n".join(parts) or "(no output)"
