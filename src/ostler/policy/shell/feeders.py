"""Commands that run others on what they find or read: xargs, find, parallel, make."""

import re

from ostler.policy.danger import listed
from ostler.policy.shell.args import HOLE, Arg
from ostler.policy.shell.call import NO_FEED, Call, Handler
from ostler.policy.shell.files import removes_root
from ostler.policy.shell.options import Options, parse
from ostler.policy.shell.shells import run_script, run_stdin


def _xargs(call: Call) -> str:
    options = parse(call.args, "aIdELnPs", _XARGS_LONGS, early=True)
    command = options.operands or [Arg("echo")]
    marker = options.value("I", "replace")
    mark = marker.text if marker is not None else "{}" if options.has("i", "replace") else ""
    items = _items(call, options)
    if mark:
        for item in items:
            call.run([Arg(arg.text.replace(mark, item), arg.glob) for arg in command], NO_FEED)
    else:
        call.run([*command, *(Arg(item) for item in items)], NO_FEED)
    return ""


_XARGS_LONGS = ("arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var", "eof")


def _items(call: Call, options: Options) -> list[str]:
    """What xargs would read: the words of a known text, else one that is not known."""
    if call.feed.kind != "text" or options.has("a", "arg-file"):
        return [HOLE]
    text = call.feed.text
    if options.has("I", "i", "replace", "d", "delimiter", "0", "null"):
        items = re.split("\0" if options.has("0", "null") else "\n", text)
    else:
        items = re.sub(r"['\"\\]", "", text).split()
    return [item for item in items if item][:32] or [HOLE]


def _find(call: Call) -> str:
    why = ""
    args = call.args
    at = 0
    while at < len(args):
        word = args[at].text
        if word in {"-exec", "-execdir", "-ok", "-okdir"}:
            stop = next((i for i in range(at + 1, len(args)) if args[i].text in {";", "+"}), len(args))
            _find_runs(call, args[at + 1 : stop], elsewhere=word.endswith("dir"))
            at = stop
        elif word == "-delete":
            why = "deletes what it finds"
            _refuse_root(call)
        elif word in {"-fprint", "-fprint0", "-fls", "-fprintf"}:
            why = why or call.overwrites_any(args[at + 1 : at + 2])
        at += 1
    return why


def _find_runs(call: Call, argv: list[Arg], elsewhere: bool) -> None:
    scope = call.scope.fork()
    scope.cwd = () if elsewhere else scope.cwd
    if argv:
        call.walk.run([Arg(arg.text.replace("{}", HOLE), arg.glob) for arg in argv], scope, NO_FEED)
    if argv and argv[0].text.rpartition("/")[2] == "rm":
        _refuse_root(call)


def _refuse_root(call: Call) -> None:
    """Deny deleting everything from the root on, when nothing narrows it down."""
    tests = {arg.text for arg in call.args if re.match(r"-[a-z]", arg.text)}
    if tests <= {"-delete", "-exec", "-execdir", "-depth", "-print", "-mount", "-xdev", "-rf", "-f", "-r", "-fr"}:
        starts = [arg for arg in call.args if arg.text.startswith("/") or arg.text == "."]
        pretended = Call(call.walk, call.scope, "rm", "rm", [Arg("-r"), *starts[:1]], NO_FEED)
        if removes_root(pretended):
            call.walk.deny("deletes the whole file system")


def _fd(call: Call) -> str:
    texts = call.texts()
    for at, text in enumerate(texts):
        name, _, value = text.partition("=")
        if name in {"-x", "-X", "--exec", "--exec-batch"}:
            rest = [Arg(value)] * bool(value) + call.args[at + 1 :]
            argv = [Arg(re.sub(r"\{(?:|/|//|\.|/\.)\}", HOLE, arg.text), arg.glob) for arg in rest]
            call.run([*argv, Arg(HOLE)], NO_FEED)
            break
    return ""


def _parallel(call: Call) -> str:
    options = parse(call.args, "jaISNnLPd", _PARALLEL_LONGS, early=True)
    if options.has("dry-run", "dryrun"):
        return ""
    words = [arg.text for arg in options.operands]
    cut = next((at for at, word in enumerate(words) if word.startswith(":::")), len(words))
    command, given = words[:cut], words[cut + 1 :]
    if command:
        text = re.sub(r"\{[^ }]*\}", HOLE, " ".join(command))
        call.text(text if HOLE in text else f"{text} {HOLE}", NO_FEED)
        return ""
    for text in given:
        call.text(text, NO_FEED)
    return "" if given else run_stdin(call, lambda text: call.text(text, NO_FEED))


_PARALLEL_LONGS = listed("jobs arg-file max-args delay joblog results colsep retries timeout sshlogin")


def _make(call: Call) -> str:
    """make: its recipes are files, but text given to it is not."""
    options = parse(call.args, "fCIjloWE", ("file", "makefile", "directory", "eval", "include-dir", "jobs"))
    for text in options.values("eval", "E"):
        recipes(call, text.text)
    for arg in options.operands:
        name, equals, value = arg.text.partition("=")
        if equals and ("$(" in value or name == "SHELL" or (" " in value and value[0] != "-")):
            recipes(call, f"\t{value}")
    files = options.values("f", "file", "makefile") or [Arg("Makefile"), Arg("makefile"), Arg("GNUmakefile")]
    reasons = [run_script(call, arg, lambda text: recipes(call, text)) for arg in files]
    return next(filter(None, reasons), "")


def recipes(call: Call, text: str) -> None:
    """Judge the commands in the text of a makefile."""
    for target in re.findall(r"\$\(file\s+(>[^,)]*)", text):
        call.text(target, NO_FEED)
    for command in re.findall(r"\$\(shell\s+([^()]*(?:\([^()]*\)[^()]*)*)\)", text):
        call.text(command, NO_FEED)
    for line in re.sub(r"\\\n", " ", text).splitlines():
        found = re.match(r"\t[@+-]*(.+)|[^=#\t][^=]*?:[^=;]*;\s*[@+-]*(.+)|[\w.]+\s*!=\s*(.+)", line)
        if found:
            call.text((found.group(1) or found.group(2) or found.group(3)).replace("$$", "$"), NO_FEED, None)


HANDLERS: dict[str, Handler] = {
    "xargs": _xargs,
    "find": _find,
    **dict.fromkeys(("fd", "fdfind"), _fd),
    **dict.fromkeys(("parallel", "sem"), _parallel),
    **dict.fromkeys(("make", "gmake", "bmake"), _make),
}
