"""Commands, jobs and patches as other vocabularies ask for them, turned into ours."""

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
    """Milliseconds as seconds, words as a command line, a folder as a `cd`."""
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
    pop_argument(arguments, "session", "allowrunning")  # of which terminal; each command has one of its own
    action = arguments.get("action")
    if isinstance(action, str):
        arguments["action"] = _ACTIONS.get(normalize_name(action), action)
    return arguments


def _wrap_for_runtime(arguments: Arguments, runtime: Any) -> None:
    """Code for another interpreter than the shell is handed to that one, and never read as a command line."""
    if runtime is None or normalize_name(str(runtime)) in ("terminal", "shell", "bash", ""):
        return
    program = {"python": "python3 -c", "nodejs": "node -e", "node": "node -e"}.get(normalize_name(str(runtime)))
    if program is None:
        raise ToolError(f"runtime is {runtime!r:.40}; it can be terminal, python or nodejs", code="bad_arguments")
    if isinstance(arguments.get("command"), str):
        arguments["command"] = f"{program} {shlex.quote(arguments['command'])}"


def _to_seconds(value: Any, unit: str) -> Any:
    """A time in seconds. Without a unit it is in milliseconds when it would be a long time in seconds: all
    vocabularies but ours count so, and none of them waits for less than one second."""
    found = _DURATION.fullmatch(str(value).strip())
    if not found:
        return value
    number, said = float(found[1]), (found[2] or unit).lower()
    if not said:
        said = "ms" if number >= 1000 else "s"
    if said.startswith(("ms", "milli")) or (not found[2] and number > _MAX_SECONDS):
        number /= 1000
    elif said.startswith("m"):
        number *= 60
    return min(number, _MAX_SECONDS) if number > 0 else 120.0


def _command_line(words: list[str]) -> str:
    if len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh", "zsh") and re.fullmatch(r"-l?i?c", words[1]):
        return words[2]
    return words[0] if len(words) == 1 else shlex.join(words)


async def translate_shell(arguments: Arguments, workspace: Workspace) -> tuple[str, Arguments]:
    """Words for a command, unless they call for a patch, which is a tool here."""
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
    """All it printed, whichever lines were wanted."""
    pop_argument(arguments, "filter")
    return "bash", {**arguments, "action": "read"}


async def translate_kill_shell(arguments: Arguments, workspace: Workspace) -> tuple[str, Arguments]:
    return "bash", {**arguments, "action": "stop"}
