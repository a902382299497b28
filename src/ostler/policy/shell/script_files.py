"""Evaluates shell scripts that a command line runs from the workspace, like the command line itself."""

import os
import re
import stat
from itertools import islice

from ostler.policy.shell.command_call import NO_STDIN, CommandCall
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.file_changes import MAY_BE_CHANGED, is_project_program, script_may_be_changed

MAX_SCRIPT_LENGTH = 131072  # in bytes
MAX_SCRIPTS = 50  # that a pattern can match
_START_LENGTH = 512  # in bytes
_SHELL_SHEBANG = re.compile(r"#!\s*(?:/usr/bin/env\s+(?:-S\s+)?)?(?:/\S*/)?(?:ba|da|z|k|mk|a)?sh\b")
_UNREADABLE = "runs a script that cannot be analysed"
_UNKNOWN_SCRIPT = "runs a script whose name is known only at run time"


def read_script(path: str) -> str | None:
    """Return the text of a script, or None if it is binary or too long. Raises `OSError` if it is not a file."""
    data = _read_bytes(path, MAX_SCRIPT_LENGTH + 1)
    return None if len(data) > MAX_SCRIPT_LENGTH or b"\0" in data else data.decode("utf-8", "replace")


def _read_bytes(path: str, limit: int) -> bytes:
    """Read the start of a regular file, without waiting for the writer of a pipe."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path} is not a regular file")
        return file.read(limit)


def shell_script_reason(call: CommandCall, script: ExpandedWord, args: list[ExpandedWord], *, inline: bool) -> str:
    """Evaluate a script file that a shell runs, with its arguments; `inline` runs it in the same shell.

    Returns why it needs approval if its text is not known. The evaluator records its effects.
    """
    if script.from_output or (script.tainted and script.starts_unknown):
        return _UNKNOWN_SCRIPT
    if not script.literal and not script.tainted:  # from the environment
        return ""
    paths = list(call.shell.resolve_paths(script.text))
    if not script.exact:
        from glob import iglob

        paths = [match for path in paths for match in islice(iglob(path.replace(UNKNOWN_TEXT, "*")), MAX_SCRIPTS + 1)]
    if len(paths) > MAX_SCRIPTS:
        return _UNREADABLE
    if script_may_be_changed(call, script.text):
        return MAY_BE_CHANGED
    for path in paths:
        try:
            text = call.evaluator.read_script(path)
        except (OSError, ValueError):
            continue
        if text is None:
            return _UNREADABLE
        _evaluate_script(call, path, text, args, inline)
    return ""


def program_reason(call: CommandCall) -> str:
    """Evaluate a program of the workspace that is a shell script, such as `./build.sh`."""
    changes = call.earlier_changes if is_project_program(call) else frozenset()
    for path in call.shell.resolve_paths(call.path):
        try:
            text = call.evaluator.read_script(path)
        except (OSError, ValueError):
            if changes and ("other" in changes or path.endswith(".sh")):
                return MAY_BE_CHANGED
            continue
        is_script = path.endswith(".sh") or (text is not None and is_shell_script(path, text))
        if is_script and changes:
            return MAY_BE_CHANGED
        if "other" in changes:
            call.unknown_reason = "an earlier part of the command line may replace it"
        if text is not None and is_shell_script(path, text):
            _evaluate_script(call, path, text, call.args, inline=False)
        elif path.endswith(".sh"):
            return _UNREADABLE
        elif text is None and is_shell_script(path, _read_start(path)):
            call.unknown_reason = "it is a shell script that is too long to analyse"
    return ""


def is_binary(path: str) -> bool:
    """Return whether a file is not text."""
    return _read_start(path) == "#!"


def _read_start(path: str) -> str:
    """Return the start of a file that is not read as a whole, or the text of another language if it is binary."""
    try:
        data = _read_bytes(path, _START_LENGTH)
    except (OSError, ValueError):  # ValueError: the path has a NUL byte
        return ""
    return "#!" if b"\0" in data else data.decode("utf-8", "replace")


def is_shell_script(path: str, text: str) -> bool:
    """Return whether a program is a shell script; without a `#!` line, a shell runs an executable text file itself."""
    if text.startswith("#!"):
        return bool(_SHELL_SHEBANG.match(text))
    return path.endswith(".sh") or ("\0" not in path and os.access(path, os.X_OK))


def _evaluate_script(call: CommandCall, path: str, text: str, args: list[ExpandedWord], inline: bool) -> None:
    is_known = all(arg.exact for arg in args)
    positional = tuple(arg.text for arg in args) if is_known else None
    with call.evaluator.inside_script(path, call) as is_new:
        if not is_new:
            return
        if inline:
            exported = call.shell.exported
            call.evaluator.evaluate_inline(text, call.shell, NO_STDIN)
            call.shell.exported = exported  # what a script sets is allowed with the script
        else:
            call.evaluator.evaluate_text(text, call.shell, call.stdin, positional)
