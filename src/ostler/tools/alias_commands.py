"""Translates command, job and patch calls of other agents' tools."""

import re
import shlex
from typing import Any

from ostler.core.errors import ToolError
from ostler.core.protocols import Workspace
from ostler.core.tool_aliases import normalize_name
from ostler.tools.aliases import pop_argument

Arguments = dict[str, Any]
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)?", re.IGNORECASE)
_MAX_SECONDS = 3600
_ACTIONS = {
    **dict.fromkeys(("kill", "terminate", "cancel", "end"), "stop"),
    **dict.fromkeys(("output", "poll", "tail", "status", "get"), "read"),
    **dict.fromkeys(("start", "execute", "exec"), "run"),
}


def convert_bash(arguments: Arguments, called_as: str) -> Arguments:
    """Convert milliseconds to seconds, a list of words to a command line, and a folder to a `cd`."""
    milliseconds = pop_argument(arguments, "timeoutms", "timeoutmillis", "timeoutmilliseconds", "yieldtimems")
    if milliseconds is not None:
        arguments["timeout"] = _to_seconds(milliseconds, "ms")
    elif arguments.get("timeout") is not None:
        arguments["timeout"] = _to_seconds(arguments["timeout"], "s" if called_as == "bash" else "")
    words = arguments.get("command")
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
        arguments["command"] = _command_line(words)
    _wrap_for_runtime(arguments, pop_argument(arguments, "runtime"))
    folder = pop_argument(arguments, "cwd", "workdir", "workingdirectory", "workingdir", "directory", "dir")
    if isinstance(folder, str) and folder not in ("", ".", "./") and isinstance(arguments.get("command"), str):
        arguments["command"] = f"cd {shlex.quote(folder)} && {arguments['command']}"
    pop_argument(arguments, "session", "allowrunning")  # every command gets its own terminal
    action = arguments.get("action")
    if isinstance(action, str):
        arguments["action"] = _ACTIONS.get(normalize_name(action), action)
    return arguments


def _wrap_for_runtime(arguments: Arguments, runtime: Any) -> None:
    """Wrap code for Python or Node in a command that runs it."""
    if runtime is None or normalize_name(str(runtime)) in ("terminal", "shell", "bash", ""):
        return
    program = {"python": "python3 -c", "nodejs": "node -e", "node": "node -e"}.get(normalize_name(str(runtime)))
    if program is None:
        raise ToolError(f"runtime is {runtime!r:.40}; it can be terminal, python or nodejs", code="bad_arguments")
    if isinstance(arguments.get("command"), str):
        arguments["command"] = f"{program} {shlex.quote(arguments['command'])}"


def _to_seconds(value: Any, unit: str) -> Any:
    """Convert a duration to seconds.

    A number from 1000 without a unit means milliseconds, as in the tools of all other agents.
    """
    match = _DURATION.fullmatch(str(value).strip())
    if not match:
        return value
    number, unit = float(match[1]), (match[2] or unit).lower()
    if not unit:
        unit = "ms" if number >= 1000 else "s"
    if unit.startswith(("ms", "milli")) or (not match[2] and number > _MAX_SECONDS):
        number /= 1000
    elif unit.startswith("m"):
        number *= 60
    return min(number, _MAX_SECONDS) if number > 0 else 120.0


def _command_line(words: list[str]) -> str:
    if len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh", "zsh") and re.fullmatch(r"-l?i?c", words[1]):
        return words[2]
    return words[0] if len(words) == 1 else shlex.join(words)


async def translate_shell(arguments: Arguments, workspace: Workspace) -> tuple[str, Arguments]:
    """Translate a shell call; a call of `apply_patch` becomes the patch tool."""
    words = arguments.get("command")
    if isinstance(words, list) and len(words) == 2 and words[0] in ("apply_patch", "applypatch"):
        return "patch", {"patch": words[1]}
    return "bash", arguments


async def translate_apply_patch(arguments: Arguments, workspace: Workspace) -> tuple[str, Arguments]:
    words = arguments.get("patch")
    if isinstance(words, list) and len(words) == 2 and words[0] in ("apply_patch", "applypatch"):
        return "patch", {**arguments, "patch": words[1]}
    return "patch", arguments


async def translate_bash_output(arguments: Arguments, workspace: Workspace) -> tuple[str, Arguments]:
    """Translate to reading a job; a filter for lines is ignored."""
    pop_argument(arguments, "filter")
    return "bash", {**arguments, "action": "read"}


async def translate_kill_shell(arguments: Arguments, workspace: Workspace) -> tuple[str, Arguments]:
    return "bash", {**arguments, "action": "stop"}
