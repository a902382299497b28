"""Commands, jobs and patches as other vocabularies ask for them, turned into ours."""

import re
import shlex
from typing import Any

from ostler.tools.aliases import take_out
from ostler.vocabulary.errors import ToolFailure
from ostler.vocabulary.seams import Ground
from ostler.vocabulary.tool_names import fold

Given = dict[str, Any]
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)?", re.IGNORECASE)
_LONGEST_SECONDS = 3600
_ACTIONS = {
    **dict.fromkeys(("kill", "terminate", "cancel", "end"), "stop"),
    **dict.fromkeys(("output", "poll", "tail", "status", "get"), "read"),
    **dict.fromkeys(("start", "execute", "exec"), "run"),
}


def bash(given: Given, called: str) -> Given:
    """Milliseconds as seconds, words as a command line, a folder as a `cd`."""
    milliseconds = take_out(given, "timeoutms", "timeoutmillis", "timeoutmilliseconds", "yieldtimems")
    if milliseconds is not None:
        given["timeout"] = _seconds(milliseconds, "ms")
    elif given.get("timeout") is not None:
        given["timeout"] = _seconds(given["timeout"], "s" if called == "bash" else "")
    words = given.get("command")
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
        given["command"] = _command_line(words)
    _run_by(given, take_out(given, "runtime"))
    folder = take_out(given, "cwd", "workdir", "workingdirectory", "workingdir", "directory", "dir")
    if isinstance(folder, str) and folder not in ("", ".", "./") and isinstance(given.get("command"), str):
        given["command"] = f"cd {shlex.quote(folder)} && {given['command']}"
    take_out(given, "session", "allowrunning")  # of which terminal; each command has one of its own
    action = given.get("action")
    if isinstance(action, str):
        given["action"] = _ACTIONS.get(fold(action), action)
    return given


def _run_by(given: Given, runtime: Any) -> None:
    """Code for another interpreter than the shell is handed to that one, and never read as a command line."""
    if runtime is None or fold(str(runtime)) in ("terminal", "shell", "bash", ""):
        return
    program = {"python": "python3 -c", "nodejs": "node -e", "node": "node -e"}.get(fold(str(runtime)))
    if program is None:
        raise ToolFailure(f"runtime is {runtime!r:.40}; it can be terminal, python or nodejs", code="bad_arguments")
    if isinstance(given.get("command"), str):
        given["command"] = f"{program} {shlex.quote(given['command'])}"


def _seconds(value: Any, unit: str) -> Any:
    """A time in seconds. Without a unit it is in milliseconds when it would be a long time in seconds: all
    vocabularies but ours count so, and none of them waits for less than one second."""
    found = _DURATION.fullmatch(str(value).strip())
    if not found:
        return value
    number, said = float(found[1]), (found[2] or unit).lower()
    if not said:
        said = "ms" if number >= 1000 else "s"
    if said.startswith(("ms", "milli")) or (not found[2] and number > _LONGEST_SECONDS):
        number /= 1000
    elif said.startswith("m"):
        number *= 60
    return min(number, _LONGEST_SECONDS) if number > 0 else 120.0


def _command_line(words: list[str]) -> str:
    if len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh", "zsh") and re.fullmatch(r"-l?i?c", words[1]):
        return words[2]
    return words[0] if len(words) == 1 else shlex.join(words)


async def shell(given: Given, ground: Ground) -> tuple[str, Given]:
    """Words for a command, unless they call for a patch, which is a tool here."""
    words = given.get("command")
    if isinstance(words, list) and len(words) == 2 and words[0] in ("apply_patch", "applypatch"):
        return "patch", {"patch": words[1]}
    return "bash", given


async def apply_patch(given: Given, ground: Ground) -> tuple[str, Given]:
    words = given.get("patch")
    if isinstance(words, list) and len(words) == 2 and words[0] in ("apply_patch", "applypatch"):
        return "patch", {**given, "patch": words[1]}
    return "patch", given


async def bash_output(given: Given, ground: Ground) -> tuple[str, Given]:
    """All it printed, whichever lines were wanted."""
    take_out(given, "filter")
    return "bash", {**given, "action": "read"}


async def kill_shell(given: Given, ground: Ground) -> tuple[str, Given]:
    return "bash", {**given, "action": "stop"}
