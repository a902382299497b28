"""The state of a shell between two commands, as commands that set it again.

Each command of a shell session runs in a process of its own. The folder, variables and functions that it leaves are
written before the next command, as part of it, so that the permission check sees everything that runs.
"""

import os
import re
import secrets
import shlex
from collections.abc import Iterator

import msgspec

MAX_STATE_CHARACTERS = 16_384
# Runs the command in its first argument and reports the state at its end, also after `exit`.
_REPORTING_SCRIPT = """
__ostler_before=$(declare -p)
__ostler_command=$1
set --
trap '{ __ostler_status=$?; set +eux; trap - EXIT; } 2>/dev/null
printf "\\n%s begin\\n%s\\n%s after\\n" "MARK" "$__ostler_before" "MARK"
unset __ostler_before __ostler_command; declare -p; printf "%s functions\\n" "MARK"; declare -f
printf "%s folder\\n%s\\n%s end %s\\n" "MARK" "$PWD" "MARK" "$__ostler_status"' EXIT
eval "$__ostler_command"
"""
_OWN_NAMES = re.compile(
    r"(?:__ostler_.*|BASH.*|_|PWD|OLDPWD|SHLVL|RANDOM|SRANDOM|SECONDS|LINENO|PIPESTATUS|FUNCNAME|GROUPS|DIRSTACK|PPID"
    r"|EUID|UID|SHELLOPTS|COMP_WORDBREAKS|HISTCMD|OPTIND|OPTERR|OPTARG|EPOCH.*|COLUMNS|LINES|REPLY)"
)
_DECLARATION = re.compile(r"declare (-[-A-Za-z]+) ([A-Za-z_][A-Za-z0-9_]*)(?:=(.*))?", re.DOTALL)


class KeptShellState(msgspec.Struct, frozen=True):
    """What a shell keeps. `folder` is absolute; empty: where it started. `is_complete`: nothing was too large."""

    folder: str = ""
    variables: tuple[str, ...] = ()
    functions: str = ""
    is_complete: bool = True

    def prefix(self, root: str) -> str:
        """Return the lines to put before the next command."""
        lines = [*self.variables, self.functions.rstrip("\n")]
        if self.folder and self.folder != root:
            inside = self.folder.startswith(f"{root}/")
            lines.insert(0, f"cd {shlex.quote(os.path.relpath(self.folder, root) if inside else self.folder)}")
        return "".join(f"{line}\n" for line in lines if line)


class CommandEnd(msgspec.Struct, frozen=True):
    """The end of a command as the script reports it. `state` is None if the report is incomplete."""

    output: str
    status: int
    state: KeptShellState | None


def make_mark() -> str:
    """Return a mark for the report of one command, which its output cannot contain by chance or because a file does."""
    return f"__ostler_{secrets.token_hex(16)}__"


def reporting_script(mark: str) -> str:
    """Return the script that runs a command and then reports its state, with a mark at each part."""
    return _REPORTING_SCRIPT.replace("MARK", mark)


def read_end(output: str, mark: str) -> CommandEnd | None:
    """Return the end of a command if its output has the report of the script; None if it still runs."""
    end = re.search(rf"^{mark} end (\d+)$", output, re.MULTILINE)
    if end is None:
        return None
    shown, begun, report = output[: end.start()].partition(f"\n{mark} begin\n")
    rest = output[end.end() :].removeprefix("\n")  # of processes in the background
    parts = re.split(rf"^{mark} (?:after|functions|folder)\n", report, flags=re.MULTILINE)
    if not begun or len(parts) != 4:
        return CommandEnd(shown + rest, int(end[1]), None)
    return CommandEnd(shown + rest, int(end[1]), _make_state(*parts))


def without_report(output: str, mark: str) -> str:
    """Return the output of a command without a report that has only partly arrived."""
    return output.partition(f"\n{mark} begin\n")[0]


def _make_state(before: str, after: str, functions: str, folder: str) -> KeptShellState:
    folder = folder.removesuffix("\n")
    old, new = dict(_declarations(before)), dict(_declarations(after))
    changed = [_assignment(text) for name, text in new.items() if old.get(name) != text]
    removed = [f"unset {name}" for name in old if name not in new]
    if len(functions) + sum(map(len, changed)) > MAX_STATE_CHARACTERS:
        return KeptShellState(folder, is_complete=False)
    return KeptShellState(folder, (*removed, *changed), functions)


def _declarations(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each variable; a value may have several lines."""
    for record in re.split(r"\n(?=declare -)", text.strip("\n")):
        match = _DECLARATION.fullmatch(record)
        if match and "r" not in match[1] and not _OWN_NAMES.fullmatch(match[2]):
            yield match[2], record


def _assignment(record: str) -> str:
    match = _DECLARATION.fullmatch(record)
    if match is None or match[3] is None or match[1] not in ("--", "-x"):
        return record
    return f"{'export ' if match[1] == '-x' else ''}{match[2]}={match[3]}"
