"""Decides what a command may do to the scripts and makefiles that a later part of the line runs."""

import re
from typing import Literal

from ostler.policy.shell.command_call import CommandCall
from ostler.policy.shell.expanded_words import ExpandedWord
from ostler.policy.shell.option_parser import parse_options
from ostler.policy.shell.program_table import group, known_programs, rows

# "environment" makes a virtual environment, "build" runs the tools of the project, "other" can replace any file
ChangeKind = Literal["", "environment", "build", "other"]
MAY_BE_CHANGED = "runs a script that an earlier part of the command line may create or change"
UNREAD_TASKS = "an earlier part of the command line may change the file with its commands"
_ACTIVATION_SCRIPT = re.compile(r"(?:.*/)?(?:bin|Scripts)/activate(?:\.\w+)?")

_LOOKERS = group("harmless") | group("compilers") | group("changes-no-file")
_BUILDERS = (group("package-managers") - group("no-builders")) | group("builders")
_ENVIRONMENT_MODULES = frozenset({"venv", "virtualenv", "pip", "ensurepip"})
_BUILD_MODULES = frozenset({"pytest", "unittest", "build", "poetry", "uv", "hatch", "mypy", "ruff", "black", "tox"})
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_SYSTEM_PATH = re.compile(r"/(?:usr|opt|bin|sbin|snap|nix)/")
_GIT_VALUED = ("git-dir", "work-tree", "namespace", "exec-path", "config-env")


def change_kind(call: CommandCall) -> ChangeKind:
    """Return what a command may do to files whose names the analysis does not record."""
    texts = call.arg_texts()
    if texts in (["--version"], ["--help"], ["-V"], ["-v"]):
        return ""
    if is_project_program(call):
        return "" if _is_shell_script(call) else "build"
    if call.name in _LOOKERS or call.name in rows("wrapper"):
        return ""
    if call.name in {"git", "hub"}:
        verb = next(iter(parse_options(call.args, "Cc", _GIT_VALUED, stop_at_operand=True).operands), ExpandedWord(""))
        return "" if verb.text in {*group("git-changes-no-file"), ""} or texts[-2:] == ["stash", "list"] else "other"
    if next((text for text in texts if text[:1] != "-"), "") in group("read-verbs"):
        return ""
    return _tool_kind(call, texts)


def _tool_kind(call: CommandCall, texts: list[str]) -> ChangeKind:
    if _PYTHON.fullmatch(call.name):
        module = texts[1] if texts[:1] == ["-m"] and len(texts) > 1 else ""
        return "environment" if module in _ENVIRONMENT_MODULES else "build" if module in _BUILD_MODULES else "other"
    if call.name in {"virtualenv", "pip", "pip3"} or (call.name == "uv" and texts[:1] in (["venv"], ["pip"])):
        return "environment"
    is_known = (
        call.name in known_programs() and call.name not in group("replacers") and not call.name.startswith("git-")
    )
    return "build" if call.name in _BUILDERS or is_known else "other"


def is_project_program(call: CommandCall) -> bool:
    """Return whether a program is run by a path that is not one of the system."""
    return "/" in call.path and not _SYSTEM_PATH.match(call.path)


def _is_shell_script(call: CommandCall) -> bool:
    """Return whether the program is a script whose commands were evaluated one by one."""
    from ostler.policy.shell.script_files import is_shell_script

    for path in call.shell.resolve_paths(call.path):
        try:
            text = call.evaluator.read_script(path)
        except (OSError, ValueError):
            continue
        return text is not None and is_shell_script(path, text)
    return False


def script_may_be_changed(call: CommandCall, script: str) -> bool:
    """Return whether an earlier part of the line may have created or changed a shell script."""
    ignored = {"environment"} if _ACTIVATION_SCRIPT.fullmatch(script) else set()
    return bool(call.earlier_changes - ignored)
