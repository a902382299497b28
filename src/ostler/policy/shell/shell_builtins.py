"""Handlers for shells and for builtins that run text, change directory or set variables."""

import os
import re
from collections.abc import Callable, Sequence

from ostler.policy.shell import arithmetic, one_liners, reevaluation
from ostler.policy.shell.command_call import NO_STDIN, CommandCall, CommandHandler
from ostler.policy.shell.escapes import decode_ansi_c
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.option_parser import ParsedOptions, parse_options
from ostler.policy.shell.program_table import group
from ostler.policy.shell.script_files import shell_script_reason
from ostler.policy.shell.simple_command import exported_assignments
from ostler.policy.shell.startup_files import ShellOptions, env_script, home_reason, parse_shell_options

_STDIN_PATHS = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_FD_PATH = re.compile(r"/dev/fd/|/proc/[^/]+/fd/")
_TRUSTED_SOURCE = re.compile(
    r"(?:ssh-agent|dircolors|lesspipe|tset|resize|register-python-argcomplete)\b[\w\s./-]*"
    r"|[\w./-]+ (?:completions?|shellenv|hook|init|activate|env|docker-env|shell-hook|complete|export|alias|--alias)\b"
    r"[\w\s=/.-]*"
    r"|conda shell\.\w+ hook"
)
_ZSH_CODE = re.compile(r"\((?:e|\+)\W|(?:^|[;&|\s])=\w")
_EVALUATES_TESTS = frozenset({"zsh", "ksh", "ksh93", "mksh", "lksh"})
_UNKNOWN_COMMANDS = "runs commands that are known only at run time"


def script_reason(call: CommandCall, script: ExpandedWord, check_text: Callable[[str], None]) -> str:
    """Return why running a script needs approval, or an empty string. Known text is passed to `check_text`."""
    if script.text in _STDIN_PATHS:
        return stdin_reason(call, check_text)
    if _FD_PATH.match(script.text) and not script.piped:
        return "runs the content of an open file descriptor"
    try:
        text = script.source_text if script.piped else call.written_text(script)
    except KeyError:
        return ""
    if text is None:
        return "" if _TRUSTED_SOURCE.fullmatch(script.origin) else "runs a script that the same command line creates"
    check_text(text)
    return ""


def stdin_reason(call: CommandCall, check_text: Callable[[str], None]) -> str:
    """Return why running the standard input needs approval; like `script_reason`."""
    if call.stdin.kind == "pipe":
        return "runs the content of a pipe"
    if call.stdin.kind == "text":
        if call.stdin.tainted and UNKNOWN_TEXT in call.stdin.text:
            return _UNKNOWN_COMMANDS
        check_text(call.stdin.text)
        if call.stdin.echoed:
            check_text(decode_ansi_c(call.stdin.text))
    return ""


def _shell(call: CommandCall) -> str:
    options = parse_shell_options(call.name, call.args)
    flags, rest = options.flags, options.rest
    if call.name == "zsh" and any(_ZSH_CODE.search(arg.text) for arg in rest[:1]):
        return "has code in a file pattern"
    if "n" in flags and "c" not in flags:
        return ""

    def evaluate(text: str) -> None:
        call.evaluate_text(text, NO_STDIN, None)

    if reason := _startup_reason(call, options):
        return reason
    if "c" in flags:
        if (
            call.name in {"nu", "xonsh", "scsh"}
            and rest
            and (reason := one_liners.danger_reason("other", rest[0].text, call))
        ):
            return reason
        if rest:
            positional = [arg.text for arg in rest[2:]]
            has_unknown = any(UNKNOWN_TEXT in text for text in positional)
            call.shell.tests_evaluate = call.name in _EVALUATES_TESTS
            call.evaluate_text(rest[0].text, positional=None if has_unknown else tuple(positional))
            call.shell.tests_evaluate = False
        return ""
    if rest and "s" not in flags:
        if rest[0].starts_unknown and " " in "".join(arg.text for arg in rest[1:2]):  # the first word may be an option
            evaluate(rest[1].text)
        return script_reason(call, rest[0], evaluate) or _script_file_reason(call, rest[0], rest[1:])
    if call.stdin.kind == "file":
        return shell_script_reason(call, ExpandedWord(call.stdin.text), rest, inline=False)
    return stdin_reason(call, evaluate)


def _script_file_reason(call: CommandCall, script: ExpandedWord, args: list[ExpandedWord], inline: bool = False) -> str:
    """Evaluate a script in the file system, unless its text is known from this command line."""
    if script.piped or script.text in _STDIN_PATHS:
        is_file = script.text in _STDIN_PATHS and call.stdin.kind == "file"
        return shell_script_reason(call, ExpandedWord(call.stdin.text), args, inline=inline) if is_file else ""
    try:
        call.written_text(script)
    except KeyError:
        return shell_script_reason(call, script, args, inline=inline)
    return ""


def _startup_reason(call: CommandCall, options: ShellOptions) -> str:
    """Evaluate what a shell runs when it starts. Return why that needs approval if it is not known."""
    for command in options.commands:
        call.evaluate_text(command.text, NO_STDIN, None)
    named = env_script(call, options)
    if named is not None and (not named or UNKNOWN_TEXT in named):
        return "runs a start-up file that is known only at run time"
    for script in [*options.scripts, *([ExpandedWord(named)] if named else [])]:
        reason = script_reason(call, script, lambda text: call.evaluate_text(text, NO_STDIN, None))
        if reason := reason or _script_file_reason(call, script, []):
            return reason
    return home_reason(call, options)


def _eval(call: CommandCall) -> str:
    args = call.args[1:] if call.args[:1] and call.args[0].text == "--" else call.args
    if len(args) == 1 and args[0].text == UNKNOWN_TEXT and _TRUSTED_SOURCE.fullmatch(args[0].origin):
        return ""
    if any(not arg.literal for arg in args):
        return _UNKNOWN_COMMANDS
    call.evaluator.evaluate_inline(" ".join(arg.text for arg in args), call.shell, call.stdin)
    return ""


def _source(call: CommandCall) -> str:
    if not call.args:
        return ""
    script = call.args[0]
    reason = script_reason(call, script, lambda text: call.evaluator.evaluate_inline(text, call.shell, NO_STDIN))
    return reason or _script_file_reason(call, script, call.args[1:], inline=True)


def _trap(call: CommandCall) -> str:
    args = [arg for arg in call.args if arg.text != "--"]
    if len(args) > 1 and args[0].text not in {"-", "", "-p", "-l"}:
        call.check_text(args[0].text)
        call.evaluator.run_text_later(args[0].text, call.shell)
        call.evaluator.evaluate_inline(args[0].text, call.shell, NO_STDIN)
    return ""


def _alias(call: CommandCall) -> str:
    for arg in call.args:
        name, equals, value = arg.text.partition("=")
        if equals and not re.fullmatch(rf"{re.escape(name)}(?: -[a-zA-Z]+)*", value):  # an alias of the same command
            call.evaluate_text(value, NO_STDIN, None)
            call.shell.aliases[name] = value
    return ""


# the working directory


def _cd(call: CommandCall) -> str:
    folders = [arg for arg in call.args if not re.fullmatch(r"-[LPe@]+|--", arg.text)]
    target = folders[0].text if folders else "~"
    if target in {"~", "-"}:
        value = call.shell.lookup("HOME" if target == "~" else "OLDPWD")
        target = value if isinstance(value, str) else UNKNOWN_TEXT
    if len(call.shell.cwd) == 1:
        call.shell.assign("OLDPWD", call.shell.cwd[0])
    if (folders and folders[0].is_glob) or "CDPATH" in call.shell.variables:
        target = UNKNOWN_TEXT
    filesystem = call.evaluator.filesystem
    paths = call.shell.resolve_paths(target)
    exists = bool(paths) and all(path in filesystem.created_folders or filesystem.is_folder(path) for path in paths)
    call.shell.change_folder(target, exists)
    return ""


def _pushd(call: CommandCall) -> str:
    call.shell.directory_stack.append(call.shell.cwd)
    if call.args and call.args[0].text[:1] not in {"+", "-"}:
        return _cd(call)
    call.shell.cwd = ()
    return ""


def _popd(call: CommandCall) -> str:
    call.shell.cwd = call.shell.directory_stack.pop() if call.shell.directory_stack else ()
    return ""


# variables and arguments


def _set(call: CommandCall) -> str:
    texts = call.arg_texts()
    call.shell.exports_all |= bool(texts) and bool(re.match(r"-(?!-)\w*a", texts[0]) or "allexport" in texts)
    while texts and re.match(r"[-+](?!-)\w", texts[0]):
        del texts[: 2 if texts[0] in {"-o", "+o"} else 1]
    if texts:
        arguments = texts[1:] if texts[0] == "--" else texts
        call.shell.positional = tuple(arguments)
    return ""


def _shift(call: CommandCall) -> str:
    count = call.args[0].text if call.args else "1"
    if call.shell.positional is not None:
        call.shell.positional = call.shell.positional[int(count) :] if re.fullmatch(r"\d{1,6}", count) else None
    return ""


def _declare(call: CommandCall) -> str:
    options = parse_options(call.args)
    reasons = ["makes a variable refer to another" if options.has("n") and call.name != "export" else ""]
    for arg in call.args:
        name, equals, value = arg.text.partition("=")
        call.evaluator.check_array_index(name)
        if name[:1] not in {"-", "+"}:
            reasons.append(_declaration_reason(call, arg, options))
        if equals:
            call.evaluator.check_assignment(name.rstrip("+"), value, call.shell)
            call.shell.assign(name.rstrip("+"), value if name[-1:] != "+" else None, tainted=arg.tainted)
        name = name.rstrip("+")
        if name.isidentifier() and (equals or name in call.shell.variables or name not in os.environ):
            is_exported = call.name == "export" or options.has("x")
            call.shell.exported = exported_assignments(call.shell, [name], exports=is_exported)
    return next(filter(None, reasons), "")


def _declaration_reason(call: CommandCall, arg: ExpandedWord, options: ParsedOptions) -> str:
    """Check a declared variable whose name, index or value the shell evaluates again."""
    shell = call.shell
    name, _, value = arg.text.partition("=")
    if call.name in {"export", "readonly"} and arg.tainted and UNKNOWN_TEXT in name:  # takes plain names only
        shell.tainted |= {arithmetic.ANY_VARIABLE}
        return ""
    if reason := reevaluation.name_reason(arg, shell):
        return reason
    if options.has("A"):
        shell.associative |= {name}
    if options.has("i"):
        shell.integers |= {name}
    if name in shell.integers and value:
        return reevaluation.expression_reason(ExpandedWord(value, tainted=arg.tainted), shell)
    is_array = options.has("a", "A") or isinstance(shell.lookup(name), tuple)
    if arg.array == "unsafe index" and name not in shell.associative:
        return arithmetic.REASON
    if is_array and (arg.tainted or re.search(r"[$`]", value)) and not arg.array:
        return "expands the value of an array again, which can run commands"
    return reevaluation.command_variable_reason(name, [arg]) if arg.tainted else ""


def _read(call: CommandCall) -> str:
    options = parse_options(call.args, "dnOsuCc" if call.name in {"mapfile", "readarray"} else "adinNptu")
    call.evaluate_texts(options.values("C"))
    for arg in [*options.operands, *(options.values("a"))]:
        call.evaluator.check_array_index(arg.text)
        name = arg.text.partition("[")[0]
        if name.isidentifier():
            call.evaluator.check_assignment(name, None, call.shell)
            call.shell.assign(name, None)
            call.shell.exported = exported_assignments(call.shell, [name])
            if name in call.shell.integers:
                return arithmetic.REASON
    return _names_reason(call, [*options.operands[call.name == "getopts" :], *options.values("a")])


def _names_reason(call: CommandCall, names: Sequence[ExpandedWord]) -> str:
    return next(filter(None, [reevaluation.name_reason(arg, call.shell) for arg in names]), "")


def _printf(call: CommandCall) -> str:
    if len(call.args) > 1 and call.args[0].text == "-v":
        name = call.args[1].text
        call.evaluator.check_array_index(name)
        call.evaluator.check_assignment(name, None, call.shell)
        call.shell.assign(name.partition("[")[0], None)
        call.shell.exported = exported_assignments(call.shell, [name.partition("[")[0]])
        return _names_reason(call, call.args[1:2])
    return ""


def _unset(call: CommandCall) -> str:
    for arg in call.args:
        call.evaluator.check_array_index(arg.text)
        call.shell.variables.pop(arg.text, None)
    return _names_reason(call, [arg for arg in call.args if arg.text[:1] != "-"])


def _evaluating_builtin(call: CommandCall) -> str:
    for arg in call.args:
        call.evaluator.check_array_index(arg.text)
    if call.name == "let":
        return next(filter(None, [reevaluation.expression_reason(arg, call.shell) for arg in call.args]), "")
    if call.name == "wait":
        names = parse_options(call.args, "p").values("p")
        for arg in names:
            call.shell.assign(arg.text, None)
        return _names_reason(call, names)
    return reevaluation.test_command_reason(call.args, call.shell)


# other builtins


def _completion(call: CommandCall) -> str:
    options = parse_options(call.args, "ACFGWXPSo")
    call.evaluate_texts(options.values("C"))
    for words in options.values("W"):
        if words.tainted or "$(" in words.text or "`" in words.text:
            call.evaluate_text(f': "{words.text}"')
    return ""


def _redefining_builtin(call: CommandCall) -> str:
    risky = {"enable": "f", "hash": "p", "bind": "x", "fc": "es"}[call.name]
    return "changes what a command name means" if parse_options(call.args, "fpx").has(*risky) else ""


def _kill(call: CommandCall) -> str:
    texts = call.arg_texts()
    if texts[:1] == ["-0"] or texts[:2] in (["-s", "0"], ["-n", "0"]):
        return ""  # only checks whether the process exists
    if texts[:1] and texts[0].startswith("-") and texts[0] != "--":
        texts = texts[2 if texts[0] in {"-s", "-n"} else 1 :]
    if {"-1", "1", "0"} & set(texts):
        return "kills every process"
    return "kills its parent process" if any(arg.origin == "$PPID" for arg in call.args) else ""


def _pkill(call: CommandCall) -> str:
    options = parse_options(call.args, "uUgGPtsF", ("user", "euid", "uid", "group", "parent", "signal"))
    return "" if options.has("0", "l", "list", "V", "version") else "kills all processes with this name"


def _at(call: CommandCall) -> str:
    options = parse_options(call.args, "fqt")
    if options.has("l", "c", "V"):
        return ""
    if options.has("d", "r"):
        return "deletes scheduled jobs"

    def evaluate(text: str) -> None:
        call.evaluate_text(text, NO_STDIN, None)

    script = options.value("f")
    return script_reason(call, script, evaluate) if script else stdin_reason(call, evaluate)


def _crontab(call: CommandCall) -> str:
    options = parse_options(call.args, "u")
    return "replaces the crontab" if options.operands or call.stdin.kind != "none" else ""


HANDLERS: dict[str, CommandHandler] = {
    **dict.fromkeys(group("shells"), _shell),
    "eval": _eval,
    **dict.fromkeys((".", "source"), _source),
    "trap": _trap,
    "alias": _alias,
    **dict.fromkeys(("cd", "chdir"), _cd),
    "pushd": _pushd,
    "popd": _popd,
    "set": _set,
    "shift": _shift,
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly"), _declare),
    **dict.fromkeys(("read", "mapfile", "readarray", "getopts"), _read),
    "printf": _printf,
    "unset": _unset,
    **dict.fromkeys(("let", "test", "[", "wait"), _evaluating_builtin),
    **dict.fromkeys(("complete", "compgen"), _completion),
    **dict.fromkeys(("enable", "hash", "bind", "fc"), _redefining_builtin),
    "kill": _kill,
    **dict.fromkeys(("pkill", "killall"), _pkill),
    **dict.fromkeys(("at", "batch"), _at),
    "crontab": _crontab,
}
