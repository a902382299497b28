"""Finds the files that a shell runs when it starts: those of its options, and those that variables name."""

import re

import msgspec

from ostler.policy.shell.command_call import CommandCall
from ostler.policy.shell.expanded_words import ExpandedWord
from ostler.policy.shell.shell_state import home_folder

_FILE_OPTIONS = frozenset({"rcfile", "init-file", "config", "env-config", "rc"})  # bash, and nu, xonsh, elvish
_COMMAND_OPTIONS = frozenset({"command", "commands"})  # fish and nu
_LOGIN_OPTIONS = {"login": "l", "interactive": "i", "posix": ""}
_READS_HOME_IF_INTERACTIVE = frozenset({"sh", "bash", "rbash", "dash", "ash", "ksh", "ksh93", "mksh", "yash", "posh"})
_HOME_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "ZDOTDIR")
_ENV_SHELLS = _READS_HOME_IF_INTERACTIVE | {"zsh"}
_LONG_OPTION = re.compile(r"--?([a-z][a-z-]+)(=.*)?", re.DOTALL)


class ShellOptions(msgspec.Struct):
    """The options of a shell: letters, the words after them, start-up scripts, and commands to run at the start."""

    flags: str = ""
    rest: list[ExpandedWord] = []
    scripts: list[ExpandedWord] = []
    commands: list[ExpandedWord] = []


def parse_shell_options(name: str, args: list[ExpandedWord]) -> ShellOptions:
    found = ShellOptions(rest=list(args))
    rest = found.rest
    while rest and rest[0].text[:1] in {"-", "+"} and len(rest[0].text) > 1:
        arg = rest.pop(0)
        if arg.text == "--":
            break
        long = _LONG_OPTION.fullmatch(arg.text)
        option = long[1] if long else ""
        if option in _FILE_OPTIONS or option == "init-command" or (name == "fish" and arg.text[:2] == "-C"):
            value = _value(arg, rest, long)
            (found.scripts if option in _FILE_OPTIONS else found.commands).extend(value)
        elif arg.text.startswith("--") and option in _COMMAND_OPTIONS:
            found.flags += "c"
            if long and long[2]:
                rest.insert(0, msgspec.structs.replace(arg, text=long[2][1:]))
        elif arg.text.startswith("--"):
            found.flags += _LOGIN_OPTIONS.get(option, "")
        else:
            found.flags += arg.text[1:] if arg.text[0] == "-" else ""
            del rest[: sum(letter in "oO" for letter in arg.text[1:])]
    return found


def _value(arg: ExpandedWord, rest: list[ExpandedWord], long: re.Match[str] | None) -> list[ExpandedWord]:
    """Return the value of an option: after `=`, attached to the letter, or the next word."""
    attached = (long[2] or "")[1:] if long else arg.text[2:]
    return [msgspec.structs.replace(arg, text=attached)] if attached else [rest.pop(0)] if rest else []


def is_interactive(options: ShellOptions, call: CommandCall) -> bool:
    has_code = "c" in options.flags or "s" in options.flags or bool(options.rest) or call.stdin.kind != "none"
    return "i" in options.flags or not has_code


def home_reason(call: CommandCall, options: ShellOptions) -> str:
    """Return why a shell needs approval: this line sets the folder from which it reads start-up files."""
    reads_home = call.name not in _READS_HOME_IF_INTERACTIVE or "l" in options.flags or is_interactive(options, call)
    for name in _HOME_VARIABLES if reads_home else ():
        if name in call.shell.variables and call.shell.lookup(name) != home_folder():
            return f"runs the start-up files of a folder that {name} names"
    return ""


def env_script(call: CommandCall, options: ShellOptions) -> str | None:
    """Return the script that ENV names, if this line sets it and the shell runs it. It is empty if it is not known."""
    if "ENV" not in call.shell.variables or call.name not in _ENV_SHELLS or not is_interactive(options, call):
        return None
    value = call.shell.lookup("ENV")
    return value if isinstance(value, str) else ""
