"""Decides what a command may do to the scripts and makefiles that a later part of the line runs."""

import re
from typing import Literal

from ostler.policy import danger_programs as programs
from ostler.policy.danger_tables import split_names
from ostler.policy.shell.command_call import CommandCall
from ostler.policy.shell.expanded_words import ExpandedWord
from ostler.policy.shell.known_programs import load_known_programs
from ostler.policy.shell.option_parser import parse_options
from ostler.policy.shell.tool_specs import COMPILERS
from ostler.policy.shell.wrapper_specs import WRAPPER_SPECS

# "environment" makes a virtual environment, "build" runs the tools of the project, "other" can replace any file
ChangeKind = Literal["", "environment", "build", "other"]
MAY_BE_CHANGED = "runs a script that an earlier part of the command line may create or change"
UNREAD_TASKS = "an earlier part of the command line may change the file with its commands"
_ACTIVATION_SCRIPT = re.compile(r"(?:.*/)?(?:bin|Scripts)/activate(?:\.\w+)?")

# programs that change no file, or only files that the analysis records by name
_NAMED_LOOKERS = frozenset(
    split_names(
        "date uname whoami id hostname printenv pwd df du free uptime base32 base64 xxd bc dc nproc arch getconf"
        " locale tty groups logname users rg ag ack fd fdfind find xargs parallel awk gawk mawk nawk sed gsed sort"
        " uniq tac rev shuf numfmt tsort b3sum shasum md5 sha224sum sha384sum zcat bzcat xzcat less more most man"
        " info clear reset curl kill pkill killall chmod chown chgrp rm rmdir unlink mkdir mktemp mkfifo sync ulimit"
        " umask jobs bg fg disown times hash builtin command exec exit return break continue getopts alias dirs"
        " shopt setopt emulate cp gcp install ginstall ln link tee truncate split csplit dd history test [ [[ (( let"
        " wait trap env flock ssh autossh mosh nc ncat netcat lsblk lscpu lsusb lspci vmstat iostat ss netstat ip"
        " ifconfig route watch getent tmux screen fswatch inotifywait entr sh bash dash zsh ksh ksh93 mksh ash rbash"
        " fish csh tcsh yash eval . source cd chdir pushd popd set shift export declare typeset local readonly read"
        " mapfile readarray printf unset enable bind complete compgen compopt"
    )
)
_LOOKERS = programs.HARMLESS_PROGRAMS | COMPILERS | _NAMED_LOOKERS
_BUILDERS = (programs.PACKAGE_MANAGERS - {"svn", "hg", "jj", "gh", "module", "java", "kubectl"}) | frozenset(
    split_names("make gmake bmake cmake pytest py.test rake npx pnpx pipx uvx gem corepack nvm fnm")
)
_ENVIRONMENT_MODULES = frozenset({"venv", "virtualenv", "pip", "ensurepip"})
_BUILD_MODULES = frozenset({"pytest", "unittest", "build", "poetry", "uv", "hatch", "mypy", "ruff", "black", "tox"})
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_GIT_LOOKS = frozenset(
    split_names(
        "status log diff show branch add commit push fetch remote config rev-parse ls-files ls-tree ls-remote grep"
        " blame annotate describe tag shortlog reflog cat-file rev-list init help version for-each-ref name-rev"
        " merge-base count-objects check-ignore check-attr show-ref symbolic-ref var whatchanged show-branch diff-tree"
        " diff-index diff-files cherry range-diff gc fsck"
    )
)
_SYSTEM_PATH = re.compile(r"/(?:usr|opt|bin|sbin|snap|nix)/")
_REPLACERS = frozenset(
    split_names(
        "atool aunpack unar dtrx cookiecutter copier chezmoi stow degit tiged giget ansible-playbook ansible-pull asar"
        " apktool binwalk basher bpkg repo quilt mr vcs yadm dvc yeoman yo plop hygen"
    )
)
_GIT_VALUED = ("git-dir", "work-tree", "namespace", "exec-path", "config-env")
_READ_VERBS = frozenset(split_names("list ls show info status get describe view search ps logs inspect version"))


def change_kind(call: CommandCall) -> ChangeKind:
    """Return what a command may do to files whose names the analysis does not record."""
    texts = call.arg_texts()
    if texts in (["--version"], ["--help"], ["-V"], ["-v"]):
        return ""
    if is_project_program(call):
        return "" if _is_shell_script(call) else "build"
    if call.name in _LOOKERS or call.name in WRAPPER_SPECS:
        return ""
    if call.name in {"git", "hub"}:
        verb = next(iter(parse_options(call.args, "Cc", _GIT_VALUED, stop_at_operand=True).operands), ExpandedWord(""))
        return "" if verb.text in {*_GIT_LOOKS, ""} or texts[-2:] == ["stash", "list"] else "other"
    if next((text for text in texts if text[:1] != "-"), "") in _READ_VERBS:
        return ""
    return _tool_kind(call, texts)


def _tool_kind(call: CommandCall, texts: list[str]) -> ChangeKind:
    if _PYTHON.fullmatch(call.name):
        module = texts[1] if texts[:1] == ["-m"] and len(texts) > 1 else ""
        return "environment" if module in _ENVIRONMENT_MODULES else "build" if module in _BUILD_MODULES else "other"
    if call.name in {"virtualenv", "pip", "pip3"} or (call.name == "uv" and texts[:1] in (["venv"], ["pip"])):
        return "environment"
    is_known = call.name in load_known_programs() and call.name not in _REPLACERS and not call.name.startswith("git-")
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
