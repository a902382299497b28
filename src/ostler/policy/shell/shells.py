"""Shells and the builtins that run text, move about, or set variables."""

import re
from collections.abc import Callable

from ostler.policy.danger import listed
from ostler.policy.shell import snippets
from ostler.policy.shell.args import HOLE, Arg
from ostler.policy.shell.call import NO_FEED, Call, Handler
from ostler.policy.shell.escapes import ansi_c
from ostler.policy.shell.options import parse

_STDIN = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_OPEN_FILE = re.compile(r"/dev/fd/|/proc/[^/]+/fd/")
_TRUSTED = re.compile(
    r"(?:ssh-agent|dircolors|lesspipe|tset|resize|register-python-argcomplete)\b[\w\s./-]*"
    r"|[\w./-]+ (?:completions?|shellenv|hook|init|activate|env|docker-env|shell-hook|complete|export|alias|--alias)\b"
    r"[\w\s=/.-]*"
    r"|conda shell\.\w+ hook"
)
_ZSH_CODE = re.compile(r"\((?:e|\+)\W|(?:^|[;&|\s])=\w")
_UNKNOWN_TEXT = "runs text as commands that is known only when it runs"


def run_script(call: Call, script: Arg, judge: Callable[[str], None]) -> str:
    """Why running a script file must be asked for; text that is known is judged."""
    if script.text in _STDIN:
        return run_stdin(call, judge)
    if _OPEN_FILE.match(script.text) and not script.piped:
        return "runs whatever comes through an open file"
    try:
        text = script.source if script.piped else call.wrote(script)
    except KeyError:
        return ""
    if text is None:
        return "" if _TRUSTED.fullmatch(script.origin) else "runs a script that this very line makes"
    judge(text)
    return ""


def run_stdin(call: Call, judge: Callable[[str], None]) -> str:
    """Why running what comes through the standard input must be asked for."""
    if call.feed.kind == "pipe":
        return "runs whatever comes through a pipe"
    if call.feed.kind == "text":
        judge(call.feed.text)
        if call.feed.echoed:
            judge(ansi_c(call.feed.text))
    return ""


def _shell(call: Call) -> str:
    flags, rest, first = _shell_options(call.args)
    if call.name == "zsh" and any(_ZSH_CODE.search(arg.text) for arg in rest[:1]):
        return "holds code in a file pattern"
    if "n" in flags and "c" not in flags:
        return ""

    def judge(text: str) -> None:
        call.text(text, NO_FEED, None)

    for script in first:
        if why := run_script(call, script, judge):
            return why
    if "c" in flags:
        if call.name in {"nu", "xonsh", "scsh"} and rest and (why := snippets.judge("other", rest[0].text, call)):
            return why
        if rest:
            positional = [arg.text for arg in rest[2:]]
            dynamic = any(HOLE in text for text in positional)
            call.text(rest[0].text, positional=None if dynamic else tuple(positional))
        return ""
    if rest and "s" not in flags:
        if rest[0].opens_unknown and " " in "".join(arg.text for arg in rest[1:2]):  # an option, for all we know
            judge(rest[1].text)
        return run_script(call, rest[0], judge)
    return run_stdin(call, judge)


def _shell_options(args: list[Arg]) -> tuple[str, list[Arg], list[Arg]]:
    """The letters given, the words after the options, and scripts that run before all else."""
    flags = ""
    first: list[Arg] = []
    rest = list(args)
    while rest and rest[0].text[:1] in {"-", "+"} and len(rest[0].text) > 1:
        text = rest.pop(0).text
        if text == "--":
            break
        if text in {"--rcfile", "--init-file"} and rest:
            first.append(rest.pop(0))
        elif text in {"--command", "--commands"}:  # as fish and nu have it
            flags += "c"
        elif not text.startswith("--"):
            flags += text[1:] if text[0] == "-" else ""
            del rest[: sum(letter in "oO" for letter in text[1:])]
    return flags, rest, first


def _eval(call: Call) -> str:
    args = call.args[1:] if call.args[:1] and call.args[0].text == "--" else call.args
    if len(args) == 1 and args[0].text == HOLE and _TRUSTED.fullmatch(args[0].origin):
        return ""
    if any(not arg.literal for arg in args):
        return _UNKNOWN_TEXT
    call.walk.text_here(" ".join(arg.text for arg in args), call.scope, call.feed)
    return ""


def _source(call: Call) -> str:
    if not call.args:
        return ""
    return run_script(call, call.args[0], lambda text: call.walk.text_here(text, call.scope, NO_FEED))


def _trap(call: Call) -> str:
    args = [arg for arg in call.args if arg.text != "--"]
    if len(args) > 1 and args[0].text not in {"-", "", "-p", "-l"}:
        call.walk.text_here(args[0].text, call.scope, NO_FEED)
    return ""


def _alias(call: Call) -> str:
    for arg in call.args:
        name, equals, value = arg.text.partition("=")
        if equals and not re.fullmatch(
            rf"{re.escape(name)}(?: -[a-zA-Z]+)*", value
        ):  # a name for the very same command
            call.text(value, NO_FEED, None)
            call.scope.aliases[name] = value
    return ""


# where the shell stands


def _cd(call: Call) -> str:
    folders = [arg for arg in call.args if not re.fullmatch(r"-[LPe@]+|--", arg.text)]
    target = folders[0].text if folders else "~"
    if target in {"~", "-"}:
        known = call.scope.lookup("HOME" if target == "~" else "OLDPWD")
        target = known if isinstance(known, str) else HOLE
    if len(call.scope.cwd) == 1:
        call.scope.assign("OLDPWD", call.scope.cwd[0])
    if (folders and folders[0].glob) or "CDPATH" in call.scope.vars:
        target = HOLE
    places = call.walk.places
    paths = call.scope.places(target)
    there = bool(paths) and all(path in places.made or places.is_folder(path) for path in paths)
    call.scope.change_folder(target, there)
    return ""


def _pushd(call: Call) -> str:
    call.scope.stack.append(call.scope.cwd)
    if call.args and call.args[0].text[:1] not in {"+", "-"}:
        return _cd(call)
    call.scope.cwd = ()
    return ""


def _popd(call: Call) -> str:
    call.scope.cwd = call.scope.stack.pop() if call.scope.stack else ()
    return ""


# variables and arguments


def _set(call: Call) -> str:
    texts = call.texts()
    while texts and re.match(r"[-+](?!-)\w", texts[0]):
        del texts[: 2 if texts[0] in {"-o", "+o"} else 1]
    if texts:
        given = texts[1:] if texts[0] == "--" else texts
        call.scope.positional = tuple(given)
    return ""


def _shift(call: Call) -> str:
    count = call.args[0].text if call.args else "1"
    if call.scope.positional is not None:
        call.scope.positional = call.scope.positional[int(count) :] if re.fullmatch(r"\d{1,6}", count) else None
    return ""


def _declare(call: Call) -> str:
    for arg in call.args:
        name, equals, value = arg.text.partition("=")
        call.walk.evaluated(name)
        if equals:
            call.walk.assigned(name.rstrip("+"), value, call.scope)
            call.scope.assign(name.rstrip("+"), value if name[-1:] != "+" else None)
    options = parse(call.args)
    return "makes one variable stand for another" if options.has("n") and call.name != "export" else ""


def _read(call: Call) -> str:
    options = parse(call.args, "adinNptuCcOs" if call.name != "read" else "adinNptu")
    for callback in options.values("C"):
        call.text(callback.text)
    for arg in [*options.operands, *(options.values("a"))]:
        call.walk.evaluated(arg.text)
        if arg.text.isidentifier():
            call.walk.assigned(arg.text, None, call.scope)
            call.scope.assign(arg.text, None)
    return ""


def _printf(call: Call) -> str:
    if len(call.args) > 1 and call.args[0].text == "-v":
        name = call.args[1].text
        call.walk.evaluated(name)
        call.walk.assigned(name, None, call.scope)
        call.scope.assign(name, None)
    return ""


def _unset(call: Call) -> str:
    for arg in call.args:
        call.walk.evaluated(arg.text)
        call.scope.vars.pop(arg.text, None)
    return ""


def _evaluating(call: Call) -> str:
    for arg in call.args:
        call.walk.evaluated(arg.text)
    return ""


# other builtins


def _completion(call: Call) -> str:
    options = parse(call.args, "ACFGWXPSo")
    for command in options.values("C"):
        call.text(command.text)
    for words in options.values("W"):
        if "$(" in words.text or "`" in words.text:
            call.text(f': "{words.text}"')
    return ""


def _loads(call: Call) -> str:
    risky = {"enable": "f", "hash": "p", "bind": "x", "fc": "es"}[call.name]
    return "changes what a command name means" if parse(call.args, "fpx").has(*risky) else ""


def _kill(call: Call) -> str:
    texts = call.texts()
    if texts[:1] == ["-0"] or texts[:2] in (["-s", "0"], ["-n", "0"]):
        return ""  # only asks whether somebody is there
    if texts[:1] and texts[0].startswith("-") and texts[0] != "--":
        texts = texts[2 if texts[0] in {"-s", "-n"} else 1 :]
    if {"-1", "1", "0"} & set(texts):
        return "ends every process"
    return "ends whoever runs it" if any(arg.origin == "$PPID" for arg in call.args) else ""


def _pkill(call: Call) -> str:
    options = parse(call.args, "uUgGPtsF", ("user", "euid", "uid", "group", "parent", "signal"))
    return "" if options.has("0", "l", "list", "V", "version") else "ends every process of a name"


def _at(call: Call) -> str:
    options = parse(call.args, "fqt")
    if options.has("l", "c", "V"):
        return ""
    if options.has("d", "r"):
        return "deletes waiting jobs"

    def judge(text: str) -> None:
        call.text(text, NO_FEED, None)

    script = options.value("f")
    return run_script(call, script, judge) if script else run_stdin(call, judge)


def _crontab(call: Call) -> str:
    options = parse(call.args, "u")
    return "replaces the table of timed jobs" if options.operands or call.feed.kind != "none" else ""


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(
        listed(
            "sh bash dash zsh ksh ksh93 mksh ash rbash fish csh tcsh yash osh ysh oil xonsh nu elvish posh"
            " rc es sash scsh ion"
        ),
        _shell,
    ),
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
    **dict.fromkeys(("let", "test", "[", "wait"), _evaluating),
    **dict.fromkeys(("complete", "compgen"), _completion),
    **dict.fromkeys(("enable", "hash", "bind", "fc"), _loads),
    "kill": _kill,
    **dict.fromkeys(("pkill", "killall"), _pkill),
    **dict.fromkeys(("at", "batch"), _at),
    "crontab": _crontab,
}
