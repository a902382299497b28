"""Commands that run others on what they find or read: xargs, find, parallel, make."""

import re

from ostler.policy.danger_tables import split_names
from ostler.policy.shell.command_call import NO_STDIN, CommandCall, CommandHandler
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.file_commands import removes_root
from ostler.policy.shell.option_parser import ParsedOptions, parse_options
from ostler.policy.shell.shell_builtins import script_reason, stdin_reason


def _xargs(call: CommandCall) -> str:
    options = parse_options(call.args, "aIdELnPs", _XARGS_LONGS, stop_at_operand=True)
    command = options.operands or [ExpandedWord("echo")]
    marker = options.value("I", "replace")
    mark = marker.text if marker is not None else "{}" if options.has("i", "replace") else ""
    items = _xargs_items(call, options)
    if mark:
        for item in items:
            call.evaluate_argv([ExpandedWord(arg.text.replace(mark, item), arg.is_glob) for arg in command], NO_STDIN)
    else:
        call.evaluate_argv([*command, *(ExpandedWord(item) for item in items)], NO_STDIN)
    return ""


_XARGS_LONGS = ("arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var", "eof")


def _xargs_items(call: CommandCall, options: ParsedOptions) -> list[str]:
    """What xargs would read: the words of a known text, else one that is not known."""
    if call.stdin.kind != "text" or options.has("a", "arg-file"):
        return [UNKNOWN_TEXT]
    text = call.stdin.text
    if options.has("I", "i", "replace", "d", "delimiter", "0", "null"):
        items = re.split("\0" if options.has("0", "null") else "\n", text)
    else:
        items = re.sub(r"['\"\\]", "", text).split()
    return [item for item in items if item][:32] or [UNKNOWN_TEXT]


def _find(call: CommandCall) -> str:
    why = ""
    args = call.args
    at = 0
    while at < len(args):
        word = args[at].text
        if word in {"-exec", "-execdir", "-ok", "-okdir"}:
            stop = next((i for i in range(at + 1, len(args)) if args[i].text in {";", "+"}), len(args))
            _evaluate_find_exec(call, args[at + 1 : stop], in_other_folder=word.endswith("dir"))
            at = stop
        elif word == "-delete":
            why = "deletes what it finds"
            _deny_root_deletion(call)
        elif word in {"-fprint", "-fprint0", "-fls", "-fprintf"}:
            why = why or call.any_overwrite_reason(args[at + 1 : at + 2])
        at += 1
    return why


def _evaluate_find_exec(call: CommandCall, argv: list[ExpandedWord], in_other_folder: bool) -> None:
    scope = call.shell.fork()
    scope.cwd = () if in_other_folder else scope.cwd
    if argv:
        call.evaluator.evaluate_argv(
            [ExpandedWord(arg.text.replace("{}", UNKNOWN_TEXT), arg.is_glob) for arg in argv], scope, NO_STDIN
        )
    if argv and argv[0].text.rpartition("/")[2] == "rm":
        _deny_root_deletion(call)


def _deny_root_deletion(call: CommandCall) -> None:
    """Deny deleting everything from the root on, when nothing narrows it down."""
    tests = {arg.text for arg in call.args if re.match(r"-[a-z]", arg.text)}
    if tests <= {"-delete", "-exec", "-execdir", "-depth", "-print", "-mount", "-xdev", "-rf", "-f", "-r", "-fr"}:
        starts = [arg for arg in call.args if arg.text.startswith("/") or arg.text == "."]
        pretended = CommandCall(call.evaluator, call.shell, "rm", "rm", [ExpandedWord("-r"), *starts[:1]], NO_STDIN)
        if removes_root(pretended):
            call.evaluator.deny("deletes the whole file system")


def _fd(call: CommandCall) -> str:
    texts = call.arg_texts()
    for at, text in enumerate(texts):
        name, _, value = text.partition("=")
        if name in {"-x", "-X", "--exec", "--exec-batch"}:
            rest = [ExpandedWord(value)] * bool(value) + call.args[at + 1 :]
            argv = [ExpandedWord(re.sub(r"\{(?:|/|//|\.|/\.)\}", UNKNOWN_TEXT, arg.text), arg.is_glob) for arg in rest]
            call.evaluate_argv([*argv, ExpandedWord(UNKNOWN_TEXT)], NO_STDIN)
            break
    return ""


def _parallel(call: CommandCall) -> str:
    options = parse_options(call.args, "jaISNnLPd", _PARALLEL_LONGS, stop_at_operand=True)
    if options.has("dry-run", "dryrun"):
        return ""
    words = [arg.text for arg in options.operands]
    cut = next((at for at, word in enumerate(words) if word.startswith(":::")), len(words))
    command, given = words[:cut], words[cut + 1 :]
    if command:
        text = re.sub(r"\{[^ }]*\}", UNKNOWN_TEXT, " ".join(command))
        call.evaluate_text(text if UNKNOWN_TEXT in text else f"{text} {UNKNOWN_TEXT}", NO_STDIN)
        return ""
    for text in given:
        call.evaluate_text(text, NO_STDIN)
    return "" if given else stdin_reason(call, lambda text: call.evaluate_text(text, NO_STDIN))


_PARALLEL_LONGS = split_names("jobs arg-file max-args delay joblog results colsep retries timeout sshlogin")


def _make(call: CommandCall) -> str:
    """make: its recipes are files, but text given to it is not."""
    options = parse_options(call.args, "fCIjloWE", ("file", "makefile", "directory", "eval", "include-dir", "jobs"))
    for text in options.values("eval", "E"):
        evaluate_recipes(call, text.text)
    for arg in options.operands:
        name, equals, value = arg.text.partition("=")
        if equals and ("$(" in value or name == "SHELL" or (" " in value and value[0] != "-")):
            evaluate_recipes(call, f"\t{value}")
    files = options.values("f", "file", "makefile") or [
        ExpandedWord("Makefile"),
        ExpandedWord("makefile"),
        ExpandedWord("GNUmakefile"),
    ]
    reasons = [script_reason(call, arg, lambda text: evaluate_recipes(call, text)) for arg in files]
    return next(filter(None, reasons), "")


def evaluate_recipes(call: CommandCall, text: str) -> None:
    """Judge the commands in the text of a makefile."""
    for target in re.findall(r"\$\(file\s+(>[^,)]*)", text):
        call.evaluate_text(target, NO_STDIN)
    for command in re.findall(r"\$\(shell\s+([^()]*(?:\([^()]*\)[^()]*)*)\)", text):
        call.evaluate_text(command, NO_STDIN)
    for line in re.sub(r"\\\n", " ", text).splitlines():
        found = re.match(r"\t[@+-]*(.+)|[^=#\t][^=]*?:[^=;]*;\s*[@+-]*(.+)|[\w.]+\s*!=\s*(.+)", line)
        if found:
            call.evaluate_text((found.group(1) or found.group(2) or found.group(3)).replace("$$", "$"), NO_STDIN, None)


HANDLERS: dict[str, CommandHandler] = {
    "xargs": _xargs,
    "find": _find,
    **dict.fromkeys(("fd", "fdfind"), _fd),
    **dict.fromkeys(("parallel", "sem"), _parallel),
    **dict.fromkeys(("make", "gmake", "bmake"), _make),
}
