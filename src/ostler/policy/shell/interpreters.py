"""Handlers for interpreters: find the code in options, scripts or standard input and check it."""

import re
from collections.abc import Callable
from itertools import pairwise

import msgspec

from ostler.policy.danger_tables import split_names
from ostler.policy.shell import awk, one_liners, sed, unknown_programs
from ostler.policy.shell.command_call import NO_STDIN, CommandCall, CommandHandler
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.option_parser import parse_options
from ostler.policy.shell.program_table import group
from ostler.policy.shell.runtime_values import prints_only_names
from ostler.policy.shell.shell_builtins import script_reason, stdin_reason


class _InterpreterArgs(msgspec.Struct):
    """The parsed command line of an interpreter: code, flags, operands and Python module."""

    code: list[ExpandedWord]
    flags: str
    operands: list[ExpandedWord]
    module: str = ""


def _parse_args(
    args: list[ExpandedWord], code_letters: str, value_letters: str, attached_letters: str, module_letters: str = ""
) -> _InterpreterArgs:
    """Parse the options of an interpreter.

    Code and value letters take the rest of the word or the next word as value, attached letters only the rest.
    """
    parsed = _InterpreterArgs([], "", [])
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg.text[:1] != "-" or len(arg.text) == 1 or arg.text == "--":
            parsed.operands = rest if arg.text == "--" else [arg, *rest]
            break
        if arg.text.startswith("--"):
            parsed.flags += " " + arg.text
            continue
        for index, letter in enumerate(arg.text[1:], 2):
            parsed.flags += letter
            if letter in code_letters or letter in value_letters:
                value = (
                    ExpandedWord(arg.text[index:]) if arg.text[index:] else rest.pop(0) if rest else ExpandedWord("")
                )
                if letter in code_letters:
                    parsed.code.append(value)
                if letter in module_letters:
                    parsed.module = value.text
                break
            if letter in attached_letters:
                break
        if parsed.module:
            parsed.operands = rest
            break
        if parsed.code and code_letters == "c":  # arguments after Python's -c belong to the program
            break
    return parsed


def _source_reason(call: CommandCall, parsed: _InterpreterArgs, check_text: Callable[[str], str]) -> str:
    """Check the given code, else the script file, else the standard input."""
    reasons: list[str] = []

    def check(text: str) -> None:
        reasons.append(check_text(text))

    if parsed.code:
        if any(arg.tainted and not prints_only_names(arg) for arg in parsed.code):
            reasons.append("runs code that is known only at run time")
        check("\n".join(arg.text for arg in parsed.code))
    elif parsed.operands:
        reasons.append(script_reason(call, parsed.operands[0], check))
        if parsed.operands[0].starts_unknown and len(parsed.operands) > 1:  # the first word may be an option
            check(parsed.operands[1].text.strip(UNKNOWN_TEXT))
    else:
        reasons.append(stdin_reason(call, check))
    return next(filter(None, reasons), "")


def _python(call: CommandCall) -> str:
    from ostler.policy.shell import python_code  # imports `ast`, which is slow

    parsed = _parse_args(call.args, "c", "WXQm", "", module_letters="m")
    if parsed.module:
        return _python_module_reason(call, parsed)
    if re.search(r"V|h|--version|--help", parsed.flags) and not parsed.code:
        return ""
    return _source_reason(
        call, parsed, lambda text: _evaluate_ipython_magic(text, call) or python_code.danger_reason(text, call)
    )


def _evaluate_ipython_magic(text: str, call: CommandCall) -> str:
    """Evaluate the shell lines of IPython code, which start with `!` or `%`."""
    for line in (
        re.findall(r"^\s*(?:!+|%+(?=rm|mv|cp|sx|system|ba?sh))(.*)", text, re.M)
        if call.name.startswith("ipython")
        else ()
    ):
        call.evaluate_text(line.removeprefix("system ").removeprefix("sx "), NO_STDIN)
    return ""


def _python_module_reason(call: CommandCall, parsed: _InterpreterArgs) -> str:
    from ostler.policy.shell import python_code

    texts = [arg.text for arg in parsed.operands]
    if parsed.module in {"ostler", "pip", "poetry", "uv", "hatch", "pytest", "virtualenv", "IPython"}:
        call.evaluate_argv([ExpandedWord(parsed.module.lower()), *parsed.operands])
    elif parsed.module in {"code", "asyncio"}:
        return _source_reason(call, _InterpreterArgs([], "", []), lambda text: python_code.danger_reason(text, call))
    elif parsed.module == "pdb" and {"-h", "--help"} & set(texts):
        return ""
    elif parsed.module in {"timeit", "pdb"}:
        return python_code.danger_reason(
            "\n".join(text for text in texts if text[:1] != "-" and not text.isdigit()), call
        )
    elif parsed.module in {"zipfile", "tarfile"}:
        options = parse_options(parsed.operands)
        return (
            "may overwrite existing files when unpacking"
            if options.has("e", "extract")
            else _archive_reason(call, parsed)
        )
    elif parsed.module == "json.tool":
        return call.any_overwrite_reason(parse_options(parsed.operands).operands[1:2])
    elif parsed.module == "venv":
        return "empties a folder" if "--clear" in texts else ""
    elif parsed.module in {"lib2to3", "gzip"}:
        return "changes files in place" if {"-w", "-d"} & set(texts) or parsed.module == "gzip" else ""
    return ""


def _archive_reason(call: CommandCall, parsed: _InterpreterArgs) -> str:
    options = parse_options(parsed.operands)
    return call.any_overwrite_reason(options.operands[:1]) if options.has("c", "create") else ""


def _perl(call: CommandCall) -> str:
    is_perl = call.name == "perl"
    parsed = _parse_args(
        call.args, "eE" if is_perl else "e", "MmI" if is_perl else "rICE", "iFxdDV" if is_perl else "iFxKW"
    )
    language = "perl" if is_perl else "ruby"
    if "i" in re.sub(r" --\S*", "", parsed.flags):
        return "changes files in place"
    if any(re.search(r"^\s*[|>]|\|\s*$", arg.text) for arg in parsed.operands):
        return "opens a pipe through a file name"
    if not is_perl and {"-run", "un"} & set(call.arg_texts()) and "httpd" not in call.arg_texts():
        return "ruby's un library copies, moves and deletes files"
    modules = re.findall(r"-[Mm](\S+)", " ".join(call.arg_texts())) if is_perl else []
    return _source_reason(
        call, parsed, lambda text: one_liners.danger_reason(language, "\n".join([text, *modules]), call)
    )


def _node(call: CommandCall) -> str:
    args = [ExpandedWord("-e", arg.is_glob) if arg.text in {"-pe", "-ep"} else arg for arg in call.args]
    options = parse_options(args, "eprC", ("eval", "print", "require", "import", "loader"), stop_at_operand=True)
    code = options.values("e", "p", "eval", "print")
    packages = [arg for arg in call.args if arg.text.startswith("npm:")]
    for arg in packages[:1]:
        call.evaluate_argv(call.args[call.args.index(arg) :])
    is_downloaded = any(re.match(r"https?://", arg.text) for arg in call.args)
    if is_downloaded and any(re.match(r"-A$|--allow-(?:all|run|write|ffi)", text) for text in call.arg_texts()):
        return "runs a downloaded program with your permissions"
    if options.operands[:1] and options.operands[0].text in {"run", "test", "install", "add", "x", "build", "eval"}:
        code = parse_options(options.operands[1:]).operands[:1] if options.operands[0].text == "eval" else code
        if not code:
            return ""
    if options.has("version", "v", "help", "h", "check", "c"):
        return ""
    parsed = _InterpreterArgs(code, "", options.operands)
    return _source_reason(call, parsed, lambda text: one_liners.danger_reason("node", text, call))


def _php(call: CommandCall) -> str:
    parsed = _parse_args(call.args, "rRBE", "fdczSt", "")
    if {"f", "S", "v", "m", "i", "l"} & set(parsed.flags):
        return ""
    return _source_reason(call, parsed, lambda text: one_liners.danger_reason("php", text, call))


def _lua(call: CommandCall) -> str:
    parsed = _parse_args(call.args, "e", "lW", "")
    return (
        ""
        if "v" in parsed.flags
        else _source_reason(call, parsed, lambda text: one_liners.danger_reason("lua", text, call))
    )


_EVAL_SUBCOMMANDS = frozenset({"eval", "e", "runner", "r"})  # `crystal eval code`
_FUNCALL_OPTIONS = frozenset({"-f", "--funcall", "-F"})


def _other_language(call: CommandCall) -> str:
    """Handle a language that is checked only for dangerous words."""
    texts = call.arg_texts()
    if {"--version", "--help"} & set(texts):
        return ""
    language = "gdb" if call.name in {"gdb", "lldb"} else "other"
    if "--args" in texts:
        call.evaluate_argv(call.args[texts.index("--args") + 1 :])
    code = unknown_programs.code_texts(call)
    if call.name.startswith("emacs"):
        code += [function for option, function in pairwise(texts) if option in _FUNCALL_OPTIONS]
    operands = parse_options(call.args).operands
    if operands and (operands[0].text in _EVAL_SUBCOMMANDS or operands[0].text[:1] == "("):
        code += [arg.text for arg in operands[operands[0].text in _EVAL_SUBCOMMANDS : 3]]
    code += [arg.source_text for arg in call.args if arg.source_text is not None]
    if language == "gdb":
        code += call.stdin.text.splitlines()
    reasons = [one_liners.danger_reason(language, text, call) for text in code if text]
    has_input = call.stdin.kind == "text" or (
        call.stdin.kind == "pipe" and call.name != "dc"
    )  # dc usually reads numbers
    if not code and has_input and language == "other":
        reads_input = call.stdin.kind == "text" or not [arg for arg in operands if arg.text != "-"]
        reasons.append(
            stdin_reason(call, lambda text: reasons.append(one_liners.danger_reason(language, text, call)))
            if reads_input
            else ""
        )
    return next(filter(None, reasons), "")


_POWERSHELL = re.compile(
    r"\b(?:Remove|Clear|Move|Rename|Stop|Restart|Reset|Format(?!-(?:Table|List|Wide|Hex|Custom)\b)|Disable|Uninstall|Unregister|Invoke|Copy|Suspend)-\w+"
    r"|\b(?:Set|Add|Out)-(?:Content|Item|ItemProperty|File|Acl|ExecutionPolicy|Location)\b|Start-Process|Add-Type"
    r"|\b(?:rm|del|erase|rd|ri|rmdir|mv|move|mi|ren|rni|cp|copy|cpi|sc|clc|kill|spps|iex|saps|start|ni|tee)\b|::|>"
    r"|\.Delete|&\s*[\"'$({]",
    re.IGNORECASE,
)
_DOS = re.compile(
    r"(?:^|[&|(]|\bdo\b)\s*@?(?:del|erase|rd|rmdir|move|ren|rename|format|copy|xcopy|robocopy|shutdown|taskkill|reg"
    r"|attrib"
    r"|icacls|takeown|cipher|diskpart|bcdedit|sc|net|schtasks|wmic|vssadmin|mklink|start|call|rm|mv)\b|>",
    re.IGNORECASE,
)


_CMDLET = re.compile(r"[A-Za-z]+-[A-Za-z]+")


def _windows(call: CommandCall) -> str:
    """Handle cmd and PowerShell: all words after the command option form one text."""
    pattern = _DOS if call.name.startswith("cmd") else _POWERSHELL
    texts = call.arg_texts()
    for index, text in enumerate(texts):
        name = text.lower().lstrip("-/") if text[:1] in {"-", "/"} else ""
        if name and pattern is _POWERSHELL and "encodedcommand".startswith(name):
            return "runs an encoded script"
        starts_command = name[:1] in {"c", "k"} if pattern is _DOS else bool(name) and "command".startswith(name)
        is_command = not name and (" " in text or bool(_CMDLET.fullmatch(text)))
        if starts_command or is_command:
            rest = texts[index + 1 :]
            text = " ".join(
                [text[2:], *rest] if pattern is _DOS and starts_command else rest if starts_command else [text, *rest]
            )
            call.evaluate_words(*text.split())
            return _pattern_reason(text, pattern)
    reasons: list[str] = []
    unknown = stdin_reason(call, lambda text: reasons.append(_pattern_reason(text, pattern)))
    return unknown or "".join(reasons)


def _pattern_reason(text: str, pattern: re.Pattern[str]) -> str:
    if UNKNOWN_TEXT in text:
        return "runs code that is known only at run time"
    match = pattern.search(text)
    return f"runs a script that changes files or starts programs ({match.group().strip()[:20]})" if match else ""


def _awk(call: CommandCall) -> str:
    options = parse_options(
        call.args,
        "FvfieElW",
        ("field-separator", "assign", "file", "include", "source", "load", "exec"),
        stop_at_operand=True,
    )
    if any(arg.text.startswith("inplace") for arg in options.values("i", "include")):
        return "changes files in place"
    programs = options.values("e", "source")
    if not programs and not options.has("f", "file", "E", "exec"):
        programs = options.operands[:1]
    reasons = [awk.danger_reason(arg.text, call) for arg in programs]
    for arg in options.values("f", "file", "E"):
        reasons.append(script_reason(call, arg, lambda text: reasons.append(awk.danger_reason(text, call))))
    return next(
        filter(
            None, [*reasons, call.any_overwrite_reason(options.values("pretty-print", "dump-variables", "profile"))]
        ),
        "",
    )


def _sed(call: CommandCall) -> str:
    options = parse_options(call.args, "efl", ("expression", "file", "line-length"))
    if options.has("i", "in-place"):
        return "changes files in place"
    scripts = options.values("e", "expression")
    if not scripts and not options.has("f", "file"):
        scripts = options.operands[:1]
    reasons = [sed.danger_reason("\n".join(arg.text for arg in scripts), call)]
    for arg in options.values("f", "file"):
        reasons.append(script_reason(call, arg, lambda text: reasons.append(sed.danger_reason(text, call))))
    return next(filter(None, reasons), "")


HANDLERS: dict[str, CommandHandler] = {
    **dict.fromkeys(group("python-interpreters"), _python),
    **dict.fromkeys(("perl", "ruby", "jruby", "irb", "pry"), _perl),
    **dict.fromkeys(("node", "nodejs", "deno", "bun", "tsx", "ts-node"), _node),
    "php": _php,
    **dict.fromkeys(("lua", "luajit", "texlua"), _lua),
    **dict.fromkeys(group("other-languages"), _other_language),
    **dict.fromkeys(("pwsh", "powershell", "cmd", "cmd.exe"), _windows),
    **dict.fromkeys(split_names("awk gawk mawk nawk original-awk goawk frawk"), _awk),
    **dict.fromkeys(("sed", "gsed", "ssed"), _sed),
}
