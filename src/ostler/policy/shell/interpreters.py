"""Interpreters: finds the program text in their options, or on their standard input, and has it judged."""

import re
from collections.abc import Callable
from itertools import pairwise

import msgspec

from ostler.policy.danger import listed
from ostler.policy.shell import awk, sed, snippets, strangers
from ostler.policy.shell.args import HOLE, Arg
from ostler.policy.shell.call import NO_FEED, Call, Handler
from ostler.policy.shell.options import parse
from ostler.policy.shell.shells import run_script, run_stdin


class _Found(msgspec.Struct):
    """The program texts given on the command line, the flags, and the operands."""

    code: list[Arg]
    flags: str
    operands: list[Arg]
    module: str = ""


def _scan(args: list[Arg], code: str, valued: str, glued: str, module: str = "") -> _Found:
    """Options of interpreters: `code` and `valued` letters take the rest or the next word, `glued` ones the rest."""
    found = _Found([], "", [])
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg.text[:1] != "-" or len(arg.text) == 1 or arg.text == "--":
            found.operands = rest if arg.text == "--" else [arg, *rest]
            break
        if arg.text.startswith("--"):
            found.flags += " " + arg.text
            continue
        for at, letter in enumerate(arg.text[1:], 2):
            found.flags += letter
            if letter in code or letter in valued:
                value = Arg(arg.text[at:]) if arg.text[at:] else rest.pop(0) if rest else Arg("")
                if letter in code:
                    found.code.append(value)
                if letter in module:
                    found.module = value.text
                break
            if letter in glued:
                break
            if letter in "l0C" and arg.text[at : at + 1].isdigit():
                continue
        if found.module:
            found.operands = rest
            break
        if found.code and code == "c":  # what follows Python's -c is the program's own
            break
    return found


def _by_source(call: Call, found: _Found, judge: Callable[[str], str]) -> str:
    """Judge the code given, else the script, else the standard input."""
    reasons: list[str] = []

    def note(text: str) -> None:
        reasons.append(judge(text))

    if found.code:
        note("\n".join(arg.text for arg in found.code))
    elif found.operands:
        reasons.append(run_script(call, found.operands[0], note))
        if found.operands[0].opens_unknown and len(found.operands) > 1:  # an option, for all we know
            note(found.operands[1].text.strip(HOLE))
    else:
        reasons.append(run_stdin(call, note))
    return next(filter(None, reasons), "")


def _python(call: Call) -> str:
    from ostler.policy.shell import pycode  # brings in the whole syntax of Python

    found = _scan(call.args, "c", "WXQm", "", module="m")
    if found.module:
        return _python_module(call, found)
    if re.search(r"V|h|--version|--help", found.flags) and not found.code:
        return ""
    return _by_source(call, found, lambda text: _magic(text, call) or pycode.judge(text, call))


def _magic(text: str, call: Call) -> str:
    """Lines for the shell that begin with ! or %, as only IPython has them."""
    for line in (
        re.findall(r"^\s*(?:!+|%+(?=rm|mv|cp|sx|system|ba?sh))(.*)", text, re.M)
        if call.name.startswith("ipython")
        else ()
    ):
        call.text(line.removeprefix("system ").removeprefix("sx "), NO_FEED)
    return ""


def _python_module(call: Call, found: _Found) -> str:
    from ostler.policy.shell import pycode

    texts = [arg.text for arg in found.operands]
    if found.module in {"ostler", "pip", "poetry", "uv", "hatch", "pytest", "virtualenv", "IPython"}:
        call.run([Arg(found.module.lower()), *found.operands])
    elif found.module in {"code", "asyncio"}:
        return _by_source(call, _Found([], "", []), lambda text: pycode.judge(text, call))
    elif found.module == "pdb" and {"-h", "--help"} & set(texts):
        return ""
    elif found.module in {"timeit", "pdb"}:
        return pycode.judge("\n".join(text for text in texts if text[:1] != "-" and not text.isdigit()), call)
    elif found.module in {"zipfile", "tarfile"}:
        options = parse(found.operands)
        return "unpacks files over those that are there" if options.has("e", "extract") else _made(call, found)
    elif found.module == "json.tool":
        return call.overwrites_any(parse(found.operands).operands[1:2])
    elif found.module == "venv":
        return "empties a folder" if "--clear" in texts else ""
    elif found.module in {"lib2to3", "gzip"}:
        return "changes files in place" if {"-w", "-d"} & set(texts) or found.module == "gzip" else ""
    return ""


def _made(call: Call, found: _Found) -> str:
    options = parse(found.operands)
    return call.overwrites_any(options.operands[:1]) if options.has("c", "create") else ""


def _perl(call: Call) -> str:
    perl = call.name == "perl"
    found = _scan(call.args, "eE" if perl else "e", "MmI" if perl else "rICE", "iFxdDV" if perl else "iFxKW")
    language = "perl" if perl else "ruby"
    if "i" in re.sub(r" --\S*", "", found.flags):
        return "changes files in place"
    if any(re.search(r"^\s*[|>]|\|\s*$", arg.text) for arg in found.operands):
        return "opens a pipe by the name of a file"
    if not perl and {"-run", "un"} & set(call.texts()) and "httpd" not in call.texts():
        return "ruby's un library copies, moves and deletes files"
    modules = re.findall(r"-[Mm](\S+)", " ".join(call.texts())) if perl else []
    return _by_source(call, found, lambda text: snippets.judge(language, "\n".join([text, *modules]), call))


def _node(call: Call) -> str:
    args = [Arg("-e", arg.glob) if arg.text in {"-pe", "-ep"} else arg for arg in call.args]
    options = parse(args, "eprC", ("eval", "print", "require", "import", "loader"), early=True)
    code = options.values("e", "p", "eval", "print")
    packages = [arg for arg in call.args if arg.text.startswith("npm:")]
    for arg in packages[:1]:
        call.run(call.args[call.args.index(arg) :])
    fetched = any(re.match(r"https?://", arg.text) for arg in call.args)
    if fetched and any(re.match(r"-A$|--allow-(?:all|run|write|ffi)", text) for text in call.texts()):
        return "runs a program from elsewhere that may do what you may"
    if options.operands[:1] and options.operands[0].text in {"run", "test", "install", "add", "x", "build", "eval"}:
        code = parse(options.operands[1:]).operands[:1] if options.operands[0].text == "eval" else code
        if not code:
            return ""
    if options.has("version", "v", "help", "h", "check", "c"):
        return ""
    found = _Found(code, "", options.operands)
    return _by_source(call, found, lambda text: snippets.judge("node", text, call))


def _php(call: Call) -> str:
    found = _scan(call.args, "rRBE", "fdczSt", "")
    if {"f", "S", "v", "m", "i", "l"} & set(found.flags):
        return ""
    return _by_source(call, found, lambda text: snippets.judge("php", text, call))


def _lua(call: Call) -> str:
    found = _scan(call.args, "e", "lW", "")
    return "" if "v" in found.flags else _by_source(call, found, lambda text: snippets.judge("lua", text, call))


_LANGUAGES = frozenset(
    listed(
        "R Rscript julia octave octave-cli ghc ghci runghc runhaskell scala scala-cli amm groovy groovysh kotlin"
        " kotlinc"
        " expect guile racket sbcl clisp ecl ccl abcl gsi csi chez scheme mit-scheme chibi-scheme emacs emacsclient"
        " elixir iex"
        " mix swift osascript gnuplot dc jrunscript jjs jshell raku perl6 ocaml utop lftp tclsh wish m4 clojure clj bb"
        " lein nim crystal erl escript swipl gprolog maxima gp sage matlab wolframscript csharp csi.exe"
        " dotnet-script fsi"
        " fsharpi coffee qjs fennel janet hy kak ngs picolisp newlisp io factor gforth pike rexx flask gdb lldb"
    )
)
_GIVEN_BY_WORD = frozenset({"eval", "e", "runner", "r"})  # `crystal eval code`
_CALLS = frozenset({"-f", "--funcall", "-F"})


def _other(call: Call) -> str:
    """A language that is known by its words alone."""
    texts = call.texts()
    if {"--version", "--help"} & set(texts):
        return ""
    language = "gdb" if call.name in {"gdb", "lldb"} else "other"
    if "--args" in texts:
        call.run(call.args[texts.index("--args") + 1 :])
    code = strangers.code_texts(call)
    if call.name.startswith("emacs"):
        code += [after for before, after in pairwise(texts) if before in _CALLS]
    operands = parse(call.args).operands
    if operands and (operands[0].text in _GIVEN_BY_WORD or operands[0].text[:1] == "("):
        code += [arg.text for arg in operands[operands[0].text in _GIVEN_BY_WORD : 3]]
    code += [arg.source for arg in call.args if arg.source is not None]
    if language == "gdb":
        code += call.feed.text.splitlines()
    reasons = [snippets.judge(language, text, call) for text in code if text]
    fed = call.feed.kind == "text" or (call.feed.kind == "pipe" and call.name != "dc")  # numbers, for all we know
    if not code and fed and language == "other":
        reads = call.feed.kind == "text" or not [arg for arg in operands if arg.text != "-"]
        reasons.append(
            run_stdin(call, lambda text: reasons.append(snippets.judge(language, text, call))) if reads else ""
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


def _windows(call: Call) -> str:
    """cmd and PowerShell: all words after the option that begins a command are one text."""
    pattern = _DOS if call.name.startswith("cmd") else _POWERSHELL
    texts = call.texts()
    for at, text in enumerate(texts):
        name = text.lower().lstrip("-/") if text[:1] in {"-", "/"} else ""
        if name and pattern is _POWERSHELL and "encodedcommand".startswith(name):
            return "runs a program text in disguise"
        begins = name[:1] in {"c", "k"} if pattern is _DOS else bool(name) and "command".startswith(name)
        bare = not name and (" " in text or bool(_CMDLET.fullmatch(text)))
        if begins or bare:
            rest = texts[at + 1 :]
            text = " ".join([text[2:], *rest] if pattern is _DOS and begins else rest if begins else [text, *rest])
            call.run_texts(*text.split())
            return _by_words(text, pattern)
    reasons: list[str] = []
    unknown = run_stdin(call, lambda text: reasons.append(_by_words(text, pattern)))
    return unknown or "".join(reasons)


def _by_words(text: str, pattern: re.Pattern[str]) -> str:
    if HOLE in text:
        return "runs a program text that is known only when it runs"
    found = pattern.search(text)
    return f"runs a script that changes files or starts programs ({found.group().strip()[:20]})" if found else ""


def _awk(call: Call) -> str:
    options = parse(
        call.args, "FvfieElW", ("field-separator", "assign", "file", "include", "source", "load", "exec"), early=True
    )
    if any(arg.text.startswith("inplace") for arg in options.values("i", "include")):
        return "changes files in place"
    profile = [arg for arg in options.values("pretty-print", "dump-variables", "profile")]
    programs = options.values("e", "source")
    if not programs and not options.has("f", "file", "E", "exec"):
        programs = options.operands[:1]
    reasons = [awk.judge(arg.text, call) for arg in programs]
    for arg in options.values("f", "file", "E"):
        reasons.append(run_script(call, arg, lambda text: reasons.append(awk.judge(text, call))))
    return next(filter(None, [*reasons, call.overwrites_any(profile)]), "")


def _sed(call: Call) -> str:
    options = parse(call.args, "efl", ("expression", "file", "line-length"))
    if options.has("i", "in-place"):
        return "changes files in place"
    scripts = options.values("e", "expression")
    if not scripts and not options.has("f", "file"):
        scripts = options.operands[:1]
    reasons = [sed.judge("\n".join(arg.text for arg in scripts), call)]
    for arg in options.values("f", "file"):
        reasons.append(run_script(call, arg, lambda text: reasons.append(sed.judge(text, call))))
    return next(filter(None, reasons), "")


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(listed("python python2 python3 pypy pypy3 ipython bpython ptpython micropython jython"), _python),
    **dict.fromkeys(("perl", "ruby", "jruby", "irb", "pry"), _perl),
    **dict.fromkeys(("node", "nodejs", "deno", "bun", "tsx", "ts-node"), _node),
    "php": _php,
    **dict.fromkeys(("lua", "luajit", "texlua"), _lua),
    **dict.fromkeys(_LANGUAGES, _other),
    **dict.fromkeys(("pwsh", "powershell", "cmd", "cmd.exe"), _windows),
    **dict.fromkeys(listed("awk gawk mawk nawk original-awk goawk frawk"), _awk),
    **dict.fromkeys(("sed", "gsed", "ssed"), _sed),
}
