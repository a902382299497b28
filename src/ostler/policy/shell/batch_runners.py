"""Handlers for commands that run others on what they find or read: xargs, find, fd, parallel."""

import re

from ostler.policy.danger_tables import split_names
from ostler.policy.shell.command_call import NO_STDIN, CommandCall, CommandHandler
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.file_commands import removes_root
from ostler.policy.shell.option_parser import ParsedOptions, parse_options
from ostler.policy.shell.shell_builtins import stdin_reason


def _fill(arg: ExpandedWord, placeholder: str) -> ExpandedWord:
    """Replace a placeholder such as `{}` by a file name that is known only at run time."""
    text = re.sub(placeholder, UNKNOWN_TEXT, arg.text)
    return ExpandedWord(text, arg.is_glob, tainted=arg.tainted or text != arg.text)


def _read_word(text: str, is_glob: bool = False) -> ExpandedWord:
    """Return a word with text that the command reads at run time."""
    return ExpandedWord(text, is_glob, tainted=UNKNOWN_TEXT in text)


def _xargs(call: CommandCall) -> str:
    options = parse_options(call.args, "aIdELnPs", _XARGS_LONGS, stop_at_operand=True)
    command = options.operands or [ExpandedWord("echo")]
    marker = options.value("I", "replace")
    placeholder = marker.text if marker is not None else "{}" if options.has("i", "replace") else ""
    items = _xargs_items(call, options)
    if placeholder:
        for item in items:
            call.evaluate_argv(
                [_read_word(arg.text.replace(placeholder, item), arg.is_glob) for arg in command], NO_STDIN
            )
    else:
        call.evaluate_argv([*command, *(_read_word(item) for item in items)], NO_STDIN)
    return ""


_XARGS_LONGS = ("arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var", "eof")


def _xargs_items(call: CommandCall, options: ParsedOptions) -> list[str]:
    """Return the items that xargs reads from known text, or a single unknown item."""
    if call.stdin.kind != "text" or options.has("a", "arg-file"):
        return [UNKNOWN_TEXT]
    text = call.stdin.text
    if options.has("I", "i", "replace", "d", "delimiter", "0", "null"):
        items = re.split("\0" if options.has("0", "null") else "\n", text)
    else:
        items = re.sub(r"['\"\\]", "", text).split()
    return [item for item in items if item][:32] or [UNKNOWN_TEXT]


def _find(call: CommandCall) -> str:
    reason = ""
    args = call.args
    index = 0
    while index < len(args):
        text = args[index].text
        if text in {"-exec", "-execdir", "-ok", "-okdir"}:
            stop = next((i for i in range(index + 1, len(args)) if args[i].text in {";", "+"}), len(args))
            _evaluate_find_exec(call, args[index + 1 : stop], in_other_folder=text.endswith("dir"))
            index = stop
        elif text == "-delete":
            reason = "deletes the files it finds"
            _deny_root_deletion(call)
        elif text in {"-fprint", "-fprint0", "-fls", "-fprintf"}:
            reason = reason or call.any_overwrite_reason(args[index + 1 : index + 2])
        index += 1
    return reason


def _evaluate_find_exec(call: CommandCall, argv: list[ExpandedWord], in_other_folder: bool) -> None:
    shell = call.shell.fork()
    shell.cwd = () if in_other_folder else shell.cwd
    if argv:
        call.evaluator.evaluate_argv([_fill(arg, r"\{\}") for arg in argv], shell, NO_STDIN)
    if argv and argv[0].text.rpartition("/")[2] == "rm":
        _deny_root_deletion(call)


def _deny_root_deletion(call: CommandCall) -> None:
    """Deny deleting everything below the root if no test restricts the files."""
    tests = {arg.text for arg in call.args if re.match(r"-[a-z]", arg.text)}
    if tests <= {"-delete", "-exec", "-execdir", "-depth", "-print", "-mount", "-xdev", "-rf", "-f", "-r", "-fr"}:
        folders = [arg for arg in call.args if arg.text.startswith("/") or arg.text == "."]
        rm_call = CommandCall(call.evaluator, call.shell, "rm", "rm", [ExpandedWord("-r"), *folders[:1]], NO_STDIN)
        if removes_root(rm_call):
            call.evaluator.deny("deletes the whole file system")


def _fd(call: CommandCall) -> str:
    texts = call.arg_texts()
    for index, text in enumerate(texts):
        name, _, value = text.partition("=")
        if name in {"-x", "-X", "--exec", "--exec-batch"}:
            rest = [ExpandedWord(value)] * bool(value) + call.args[index + 1 :]
            argv = [_fill(arg, r"\{(?:|/|//|\.|/\.)\}") for arg in rest]
            call.evaluate_argv([*argv, _read_word(UNKNOWN_TEXT)], NO_STDIN)
            break
    return ""


def _parallel(call: CommandCall) -> str:
    options = parse_options(call.args, "jaISNnLPd", _PARALLEL_LONGS, stop_at_operand=True)
    if options.has("dry-run", "dryrun"):
        return ""
    words = [arg.text for arg in options.operands]
    separator = next((index for index, word in enumerate(words) if word.startswith(":::")), len(words))
    command, commands = words[:separator], words[separator + 1 :]
    if command and options.has("q", "quote"):
        call.evaluate_argv([_fill(arg, r"\{[^ }]*\}") for arg in options.operands[:separator]], NO_STDIN)
        return ""
    if command:
        text = re.sub(r"\{[^ }]*\}", UNKNOWN_TEXT, " ".join(command))
        call.evaluate_text(text if UNKNOWN_TEXT in text else f"{text} {UNKNOWN_TEXT}", NO_STDIN)
        return ""
    for text in commands:
        call.evaluate_text(text, NO_STDIN)
    return "" if commands else stdin_reason(call, lambda text: call.evaluate_text(text, NO_STDIN))


_PARALLEL_LONGS = split_names("jobs arg-file max-args delay joblog results colsep retries timeout sshlogin")


HANDLERS: dict[str, CommandHandler] = {
    "xargs": _xargs,
    "find": _find,
    **dict.fromkeys(("fd", "fdfind"), _fd),
    **dict.fromkeys(("parallel", "sem"), _parallel),
}
