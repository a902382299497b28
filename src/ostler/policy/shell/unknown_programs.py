"""Looks for commands, deletions and output files in the arguments of unknown programs."""

import re
from collections.abc import Sequence
from itertools import pairwise

from ostler.policy.shell import known_programs, one_liners, sql
from ostler.policy.shell.command_call import NO_STDIN, CommandCall
from ostler.policy.shell.expanded_words import ExpandedWord, program_name
from ostler.policy.shell.filesystem_view import is_block_device
from ostler.policy.shell.program_table import group, is_compiler_output, rows, with_dangerous_subcommands

_CODE_OPTION = re.compile(
    r"--?(?:\w+-)*(?:eval|exec|execute|expr|expression|command|cmd|run|code|batch|string|script|query|goal|funcall"
    r"|one-line)"
    r"(?:-\w+)*|-[ecxgEQqCrsoO]|-i?ex"
)
_SHELL_OPTION = re.compile(r"--?(?:\w+-)*(?:exec|command|cmd|run|hook|shell|preview)(?:-\w+)*|-[cex]")
_MESSAGE_OPTION = re.compile(
    r"-[mtbpd]|--?(?:message|title|body|prompt|description|comment|notes?|subject|name|filter|grep"
    r"|match|pattern|test-?name-?pattern)"
)
_STRONG_DELETE_VERBS = "delete|remove|destroy|purge|wipe|drop|uninstall|erase"
_WEAK_DELETE_VERBS = (
    "rm|rmi|rmdir|rb|del|terminate|unlink|nuke|yank|obliterate|autoremove|unregister|undefine|undeploy|teardown|unload"
    "|bootout|prune|reset|revert|rollback|shutdown|reboot|poweroff|umount|unmount|stop|revoke|decommission|expunge|detach"
    "|downgrade|rmr|rmp|leave"
)
_DELETING_VERB = re.compile(
    rf"(?:[\w.-]+[:.-])?(?:{_STRONG_DELETE_VERBS}|{_WEAK_DELETE_VERBS})(?:[-_:]\w[\w-]*)?|(?:delete|remove|destroy|drop)(?:[A-Z]\w*|all)|[\w.-]+:(?:disable|unset|stop|clear|flush)"
)
_EMPTIES_DATABASE = re.compile(r"[\w-]+(?::[\w-]+)*:(?:drop|purge|wipe|truncate)(?::\w+)?")
_DELETING_OPTION = re.compile(
    r"--?(?:delete|purge|uninstall|destroy|wipe|erase|unregister|remove-all|drop|factory-reset)(?:[-_]?[\w-]+)?(?:=.*)?"
    r"|-rmr?|-expunge|--?(?:remove|clobber|(?:allow-)?overwrite(?:-[\w=-]+)?|in-?place|reset|shutdown)|/delete"
)
_DANGEROUS_VERB = "|".join(sorted(group("dangerous-verbs") | group("removers")))
_EMBEDDED_COMMAND = re.compile(
    rf"""(?:(?:=\s*|[:(\[{{!,])[\"']?|[;&|]\s*|Command[= ])(?:/[\w/.-]+/)?(?:{_DANGEROUS_VERB})(?=[\s"')\]}},;]|$)""",
    re.MULTILINE,
)
_COMMAND_IN_FILE = re.compile(
    rf"""(?:^|[\s"'=:(\[{{,!;&|])(?:/[\w/.-]+/)?(?:{_DANGEROUS_VERB})(?=[\s"')\]}},;]|$)""", re.MULTILINE
)
_LONG_OUTPUT = re.compile(r"--?(?:\w+[-_])*out(?:put|file)?(?:[-_]?(?:file|path))?|--export-filename")
_OUTPUT_OPTION = re.compile(
    rf"{_LONG_OUTPUT.pattern}|-[oO]|--?(?:dump|save|write|export|log|result)(?:-?(?:to|file|bin|log))?"
)
_DANGEROUS_CALL = re.compile(
    r"\b(?:system|exec\w*|unlink|remove\w*|rmtree|popen|spawn)\s*\(|\b(?:exec|execute|shell)\b\W{1,4}/"
)
_SEPARATOR = re.compile(r"[\s;&|<>]+")
_MAX_VERB_WORDS = 4  # only this many operands are searched for a verb
_MAX_ARGUMENTS = 24  # only this many arguments are searched for a command


def danger_reason(call: CommandCall) -> str:
    """Return why the arguments of a program without a handler need approval, or an empty string."""
    if call.name in group("harmless"):
        return output_reason(call, _OUTPUT_OPTION if call.name in group("short-output-option") else _LONG_OUTPUT)
    if reason := nested_command_reason(call) or _code_reason(call) or output_reason(call):
        return reason
    if not _only_reads_devices(call) and any(is_block_device(text.rpartition("=")[2]) for text in call.arg_texts()):
        return "accesses a disk"
    is_local_path = "/" in call.path and not re.match(r"/(?:usr/|opt/|s?bin/)", call.path)
    if is_local_path and any(_EMPTIES_DATABASE.fullmatch(text) for text in call.arg_texts()[:_MAX_VERB_WORDS]):
        return "empties a database"
    return "" if is_local_path or call.name in group("package-managers") else deletion_reason(call)


def _only_reads_devices(call: CommandCall) -> bool:
    """Return whether a program only reads from disks: always, in certain forms, or with this subcommand."""
    first = next(iter(call.arg_texts()), "")
    return (
        call.name in group("device-readers")
        or call.name in rows("read-only")
        or known_programs.has_verb(call.name, first, first)
    )


def nested_command_reason(call: CommandCall) -> str:
    """Evaluate commands among the arguments: after `--`, as words, as one text, or in a setting."""
    if call.name in group("package-managers") and takes_packages(call):
        return ""
    command = call.args[_find_command(call) :]
    if command:
        call.evaluate_argv(command, NO_STDIN)
    previous = ""
    for arg in call.args[: min(_MAX_ARGUMENTS, len(call.args) - len(command))]:
        if not (_MESSAGE_OPTION.fullmatch(previous) or _MESSAGE_OPTION.fullmatch(arg.text.partition("=")[0])):
            if _EMBEDDED_COMMAND.search(arg.text):
                return "passes on a command that deletes or changes something"
            _evaluate_argument(call, arg, previous)
        previous = arg.text
    return ""


def first_operand(call: CommandCall) -> str:
    """Return the first argument that is not an option, or an empty string."""
    return next((text for text in call.arg_texts() if text[:1] != "-"), "")


def takes_packages(call: CommandCall) -> bool:
    """Return whether the arguments of a package manager are package names."""
    return first_operand(call) in group("package-verbs") and "--" not in call.arg_texts()


def _find_command(call: CommandCall) -> int:
    """Return the index where another command starts in the arguments, or their number."""
    previous = ExpandedWord("")
    is_project_runner = call.name in group("project-runners") and call.arg_texts()[:1] == ["run"]
    for index, arg in enumerate(call.args[:_MAX_ARGUMENTS]):
        if is_project_runner and arg.text == "--":
            break
        introduced = previous.text == "--" or bool(_SHELL_OPTION.fullmatch(previous.text))
        if introduced and _is_program(arg) and index + 1 < len(call.args):
            return index
        if introduced and previous.text.startswith("--") and program_name(arg) in group("dangerous-verbs"):
            return index
        if _is_command(arg, call.args[index + 1 :]) and (
            previous.text == "--" or _is_standalone_command(call, arg, previous.text)
        ):
            return index
        previous = arg
    return len(call.args)


def _is_standalone_command(call: CommandCall, arg: ExpandedWord, previous: str) -> bool:
    """Return whether a word is a command rather than the value of an option or a subcommand."""
    is_explicit = arg.text.startswith("/") or program_name(arg) in group("removers") | group("runs-its-arguments")
    if is_explicit or _CODE_OPTION.fullmatch(previous):
        return True
    return call.name not in group("package-managers") and not previous.startswith("-")


def _is_command(arg: ExpandedWord, rest: list[ExpandedWord]) -> bool:
    """Return whether a word and the rest form a dangerous command, or a program that runs its arguments."""
    name = program_name(arg) if "/" not in arg.text.lstrip("/") or arg.text[0] == "/" else ""
    if name in group("dangerous-verbs") or name in group("removers"):
        return bool(rest) or arg.text.startswith("/")
    return name in group("runs-its-arguments") and bool(rest) and rest[0].text[:1] == "-"


def _is_program(arg: ExpandedWord) -> bool:
    return program_name(arg) in group("option-driven") or program_name(arg) in with_dangerous_subcommands()


def _evaluate_argument(call: CommandCall, arg: ExpandedWord, previous: str) -> None:
    """Evaluate an argument that looks like a whole command line."""
    name, equals, value = arg.text.partition("=")
    option, text = (name, value) if equals and name.startswith("-") else (previous, arg.text)
    first, *rest = _SEPARATOR.split(re.sub(r"^[\w.-]+=(?=\S)", "", text).strip(), maxsplit=1)
    is_program = _SHELL_OPTION.fullmatch(option) and (first in group("harmless") or _is_program(ExpandedWord(first)))
    if rest and (is_program or _is_command(ExpandedWord(first), [ExpandedWord(word) for word in rest[0].split()])):
        call.evaluate_text(text, NO_STDIN, None)


def code_texts(call: CommandCall) -> list[str]:
    """Return the values of options such as `-e` and `--eval`."""
    texts = []
    for index, arg in enumerate(call.args[: _find_command(call)]):
        name, equals, value = re.split(r"([=:]|$)", arg.text, maxsplit=1)
        if _CODE_OPTION.fullmatch(name):
            texts.append(value if equals else call.args[index + 1].text if index + 1 < len(call.args) else "")
    return [text for text in texts if text and text[0] != "-"]


def _code_reason(call: CommandCall) -> str:
    texts = [text for text in code_texts(call) if re.search(r"[\s(\[{;]", text)]
    texts += [arg.source_text for arg in call.args if arg.source_text]
    return next(filter(None, (one_liners.danger_reason("other", text, call) for text in texts)), "")


def written_file_reason(call: CommandCall) -> str:
    """Return why a program needs approval: it reads a file that this line writes, with a command in it."""
    implicit_script = rows("script").get(call.name)
    reads_no_scripts = call.name in group("package-managers") | group("harmless")
    for arg in (
        [ExpandedWord(implicit_script)] if implicit_script else [] if reads_no_scripts else call.args[:_MAX_ARGUMENTS]
    ):
        try:
            text = call.written_text(arg)
        except KeyError:
            continue
        if text and (_COMMAND_IN_FILE.search(text) or _DANGEROUS_CALL.search(text)):
            return "reads a file with a command in it that the same command line writes"
    return ""


def output_reason(call: CommandCall, option_pattern: re.Pattern[str] = _OUTPUT_OPTION) -> str:
    """Return why writing to the file named by an option such as `--output` needs approval."""
    for index, arg in enumerate(call.args[:_MAX_ARGUMENTS]):
        name, equals, value = arg.text.partition("=")
        if not option_pattern.fullmatch(name):
            continue
        target = (
            ExpandedWord(value) if equals else call.args[index + 1] if index + 1 < len(call.args) else ExpandedWord("-")
        )
        target = (
            ExpandedWord(target.text.partition("=")[2]) if re.match(r"[\w-]+=\w", target.text) else target
        )  # json=file
        is_file_name = target.exact and target.text[:1] != "-" and not _is_build_output(target.text)
        if is_file_name and not _is_folder(call, target) and (reason := call.overwrite_reason(target)):
            return reason
    return ""


_DOWNLOAD_VERBS = frozenset({"cp", "get", "pull", "download", "get-object", "copyto", "copyurl"})
_DOWNLOAD_TARGET_OPTION = re.compile(r"-f|-d|--file|--dest(?:ination)?")


def download_reason(call: CommandCall, operands: Sequence[str]) -> str:
    """Return why a download needs approval: the last word or an option names an existing file."""
    verb = next((word for word in operands[:3] if word in _DOWNLOAD_VERBS), "")
    if not verb or len(call.args) < 3:
        return ""
    remote = verb in {"pull", "get-object", "copyto"} or any(":" in word for word in operands)
    targets = call.args[-1:] if remote and ":" not in call.args[-1].text else []
    targets += [
        value
        for option, value in pairwise(call.args)
        if verb == "download" and _DOWNLOAD_TARGET_OPTION.fullmatch(option.text)
    ]
    files = [arg for arg in targets if arg.exact and arg.text[:1] != "-" and not _is_folder(call, arg)]
    return call.any_overwrite_reason(files)


def _is_folder(call: CommandCall, arg: ExpandedWord) -> bool:
    return call.evaluator.filesystem.may_be_folder(arg, call.shell)


def _is_build_output(path: str) -> bool:
    return is_compiler_output(path) and not is_block_device(path)


def deleting_option_reason(call: CommandCall) -> str:
    """Return why an option such as `--delete-keys` needs approval, or an empty string."""
    option = next((arg.text for arg in call.args if _DELETING_OPTION.fullmatch(arg.text)), "")
    return f"{option} deletes something" if option else ""


_NAMING_VERBS = frozenset(
    {"create", "new", "init", "add", "install", "clone", "start", "use", "sub", "pub", "snapshots"}
)


def _takes_names(call: CommandCall) -> bool:
    """Return whether the subcommand reads or creates something, so that later words are names and not verbs."""
    first = first_operand(call)
    return first in _NAMING_VERBS or known_programs.is_read_only_verb(first) or call.name.startswith("create-")


def deletion_reason(call: CommandCall) -> str:
    """Return why a program needs approval because its first words or options say that it deletes something."""
    if call.arg_texts()[-1:] == ["--help"]:
        return ""
    if any(sql.is_destructive_sql(text) for text in call.arg_texts()):
        return "changes a database"
    if _takes_names(call):
        return deleting_option_reason(call)
    words = [pair for pair in pairwise(["", *call.arg_texts()]) if not pair[1].startswith("-")][:_MAX_VERB_WORDS]
    for previous, word in words:
        is_value = _MESSAGE_OPTION.fullmatch(previous) or re.fullmatch(r"-[^yfqvrRaA]", previous)
        if (
            not is_value
            and _DELETING_VERB.fullmatch(word)
            and not known_programs.has_verb(call.name, words[0][1], word)
        ):
            return f"{word} deletes something"
    return deleting_option_reason(call)
