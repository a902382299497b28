"""Programs that no table knows: what their arguments give away about commands they run and things they delete."""

import re
from collections.abc import Sequence
from itertools import pairwise

from ostler.policy import danger_programs as programs
from ostler.policy import danger_tables
from ostler.policy.danger_subcommands import DANGEROUS_SUBCOMMANDS
from ostler.policy.shell import known_programs, one_liners, sql
from ostler.policy.shell.command_call import NO_STDIN, CommandCall
from ostler.policy.shell.expanded_words import ExpandedWord, program_name
from ostler.policy.shell.filesystem_view import is_block_device
from ostler.policy.shell.tool_specs import is_compiler_output

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
_DANGEROUS_VERB = "|".join(sorted(programs.DANGEROUS_VERBS | programs.REMOVERS))
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
_SHORT_OUTPUT_PROGRAMS = frozenset(
    {"eslint", "rspec", "cscope", "stylelint", "terser"}
)  # of the harmless, those whose -o names a file
_DANGEROUS_CALL = re.compile(
    r"\b(?:system|exec\w*|unlink|remove\w*|rmtree|popen|spawn)\s*\(|\b(?:exec|execute|shell)\b\W{1,4}/"
)
_SEPARATOR = re.compile(r"[\s;&|<>]+")
_DEVICE_READERS = frozenset(
    {"smartctl", "lsblk", "blkid", "findmnt", "dumpe2fs", "udevadm", "nvme", "df", "hdparm", "skdump"}
)
_PROJECT_RUNNERS = frozenset({"cargo", "dotnet", "swift", "dune", "cabal", "zig"})  # with `run`, by words of its own
_PACKAGE_VERBS = frozenset(  # which may be called like a command
    danger_tables.split_names(
        "install i in ins isntall add require ci info view show search docs home repo why explain outdated update up"
        " ls list ll la download wheel freeze audit"
    )
)
_MAX_VERB_WORDS = 4  # so many operands are looked at for a verb
_MAX_ARGUMENTS = 24  # so many arguments are looked at for a command


def danger_reason(call: CommandCall) -> str:
    """Why a program that no table knows must be asked for."""
    if call.name in programs.HARMLESS_PROGRAMS:
        return output_reason(call, _OUTPUT_OPTION if call.name in _SHORT_OUTPUT_PROGRAMS else _LONG_OUTPUT)
    if why := nested_command_reason(call) or _code_reason(call) or output_reason(call):
        return why
    if not _only_reads_devices(call) and any(is_block_device(text.rpartition("=")[2]) for text in call.arg_texts()):
        return "works on a disk"
    own = "/" in call.path and not re.match(r"/(?:usr/|opt/|s?bin/)", call.path)
    if own and any(_EMPTIES_DATABASE.fullmatch(text) for text in call.arg_texts()[:_MAX_VERB_WORDS]):
        return "empties a database"
    return "" if own or call.name in programs.PACKAGE_MANAGERS else deletion_reason(call)


def _only_reads_devices(call: CommandCall) -> bool:
    """Whether a program only looks at disks: always, as it is called here, or with this verb."""
    first = next(iter(call.arg_texts()), "")
    return (
        call.name in _DEVICE_READERS
        or call.name in danger_tables.READ_ONLY_FORMS
        or known_programs.has_verb(call.name, first, first)
    )


def nested_command_reason(call: CommandCall) -> str:
    """Judge what looks like a command among the arguments: after `--`, as words, as one text, or in a setting."""
    if call.name in programs.PACKAGE_MANAGERS and takes_packages(call):
        return ""
    command = call.args[_find_command(call) :]
    if command:
        call.evaluate_argv(command, NO_STDIN)
    before = ""
    for arg in call.args[: min(_MAX_ARGUMENTS, len(call.args) - len(command))]:
        if not (_MESSAGE_OPTION.fullmatch(before) or _MESSAGE_OPTION.fullmatch(arg.text.partition("=")[0])):
            if _EMBEDDED_COMMAND.search(arg.text):
                return "hands on a command that deletes or changes something"
            _evaluate_argument(call, arg, before)
        before = arg.text
    return ""


def first_operand(call: CommandCall) -> str:
    """The first word that is no option."""
    return next((text for text in call.arg_texts() if text[:1] != "-"), "")


def takes_packages(call: CommandCall) -> bool:
    """Whether what follows a manager's verb are names of packages."""
    return first_operand(call) in _PACKAGE_VERBS and "--" not in call.arg_texts()


def _find_command(call: CommandCall) -> int:
    """Where among the arguments another command begins; behind the last one when none does."""
    before = ExpandedWord("")
    own = call.name in _PROJECT_RUNNERS and call.arg_texts()[:1] == ["run"]
    for at, arg in enumerate(call.args[:_MAX_ARGUMENTS]):
        if own and arg.text == "--":
            break
        introduced = before.text == "--" or bool(_SHELL_OPTION.fullmatch(before.text))
        if introduced and _is_program(arg) and at + 1 < len(call.args):
            return at
        if introduced and before.text.startswith("--") and program_name(arg) in programs.DANGEROUS_VERBS:
            return at
        if _is_command(arg, call.args[at + 1 :]) and (
            before.text == "--" or _is_standalone_command(call, arg, before.text)
        ):
            return at
        before = arg
    return len(call.args)


def _is_standalone_command(call: CommandCall, arg: ExpandedWord, previous: str) -> bool:
    """Whether a word that may be a command is one, and no value of an option nor a verb of the program itself."""
    named = arg.text.startswith("/") or program_name(arg) in programs.REMOVERS | programs.RUNS_ITS_ARGUMENTS
    if named or _CODE_OPTION.fullmatch(previous):
        return True
    return call.name not in programs.PACKAGE_MANAGERS and not previous.startswith("-")


def _is_command(arg: ExpandedWord, rest: list[ExpandedWord]) -> bool:
    """Whether a word with what follows is a dangerous verb, or a program that is handed another."""
    name = program_name(arg) if "/" not in arg.text.lstrip("/") or arg.text[0] == "/" else ""
    if name in programs.DANGEROUS_VERBS or name in programs.REMOVERS:
        return bool(rest) or arg.text.startswith("/")
    return name in programs.RUNS_ITS_ARGUMENTS and bool(rest) and rest[0].text[:1] == "-"


def _is_program(arg: ExpandedWord) -> bool:
    return program_name(arg) in programs.OPTION_DRIVEN or program_name(arg) in DANGEROUS_SUBCOMMANDS


def _evaluate_argument(call: CommandCall, arg: ExpandedWord, previous: str) -> None:
    """Judge one argument that reads like a whole command line."""
    name, equals, value = arg.text.partition("=")
    option, text = (name, value) if equals and name.startswith("-") else (previous, arg.text)
    first, *rest = _SEPARATOR.split(re.sub(r"^[\w.-]+=(?=\S)", "", text).strip(), maxsplit=1)
    named = _SHELL_OPTION.fullmatch(option) and (
        first in programs.HARMLESS_PROGRAMS or _is_program(ExpandedWord(first))
    )
    if rest and (named or _is_command(ExpandedWord(first), [ExpandedWord(word) for word in rest[0].split()])):
        call.evaluate_text(text, NO_STDIN, None)


def code_texts(call: CommandCall) -> list[str]:
    """The program texts behind options such as `-e` and `--eval`."""
    found = []
    for at, arg in enumerate(call.args[: _find_command(call)]):
        name, equals, value = re.split(r"([=:]|$)", arg.text, maxsplit=1)
        if _CODE_OPTION.fullmatch(name):
            found.append(value if equals else call.args[at + 1].text if at + 1 < len(call.args) else "")
    return [text for text in found if text and text[0] != "-"]


def _code_reason(call: CommandCall) -> str:
    texts = [text for text in code_texts(call) if re.search(r"[\s(\[{;]", text)]
    texts += [arg.source_text for arg in call.args if arg.source_text]
    return next(filter(None, (one_liners.danger_reason("other", text, call) for text in texts)), "")


def written_file_reason(call: CommandCall) -> str:
    """Why a program must be asked for that is given a file this very line has written, with a command in it."""
    implied = programs.IMPLICIT_SCRIPTS.get(call.name)
    trusted = call.name in programs.PACKAGE_MANAGERS | programs.HARMLESS_PROGRAMS
    for arg in [ExpandedWord(implied)] if implied else [] if trusted else call.args[:_MAX_ARGUMENTS]:
        try:
            text = call.written_text(arg)
        except KeyError:
            continue
        if text and (_COMMAND_IN_FILE.search(text) or _DANGEROUS_CALL.search(text)):
            return "reads a file that this very line writes, with a command in it"
    return ""


def output_reason(call: CommandCall, option_pattern: re.Pattern[str] = _OUTPUT_OPTION) -> str:
    """Why writing to a file must be asked for, where an option such as `--output` names one."""
    for at, arg in enumerate(call.args[:_MAX_ARGUMENTS]):
        name, equals, value = arg.text.partition("=")
        if not option_pattern.fullmatch(name):
            continue
        target = ExpandedWord(value) if equals else call.args[at + 1] if at + 1 < len(call.args) else ExpandedWord("-")
        target = (
            ExpandedWord(target.text.partition("=")[2]) if re.match(r"[\w-]+=\w", target.text) else target
        )  # json=file
        named = target.exact and target.text[:1] != "-" and not _is_build_output(target.text)
        if named and not _is_folder(call, target) and (why := call.overwrite_reason(target)):
            return why
    return ""


_DOWNLOAD_VERBS = frozenset({"cp", "get", "pull", "download", "get-object", "copyto", "copyurl"})
_DOWNLOAD_TARGET_OPTION = re.compile(r"-f|-d|--file|--dest(?:ination)?")


def download_reason(call: CommandCall, operands: Sequence[str]) -> str:
    """Why fetching must be asked for that names a file which is there: by the last word, or an option."""
    verb = next((word for word in operands[:3] if word in _DOWNLOAD_VERBS), "")
    if not verb or len(call.args) < 3:
        return ""
    remote = verb in {"pull", "get-object", "copyto"} or any(":" in word for word in operands)
    targets = call.args[-1:] if remote and ":" not in call.args[-1].text else []
    targets += [
        after
        for before, after in pairwise(call.args)
        if verb == "download" and _DOWNLOAD_TARGET_OPTION.fullmatch(before.text)
    ]
    files = [arg for arg in targets if arg.exact and arg.text[:1] != "-" and not _is_folder(call, arg)]
    return call.any_overwrite_reason(files)


def _is_folder(call: CommandCall, arg: ExpandedWord) -> bool:
    return call.evaluator.filesystem.may_be_folder(arg, call.shell)


def _is_build_output(path: str) -> bool:
    return is_compiler_output(path) and not is_block_device(path)


def deleting_option_reason(call: CommandCall) -> str:
    """Why an option such as `--delete-keys` must be asked for."""
    found = next((arg.text for arg in call.args if _DELETING_OPTION.fullmatch(arg.text)), "")
    return f"{found} deletes something" if found else ""


_NAMING_VERBS = frozenset(
    {"create", "new", "init", "add", "install", "clone", "start", "use", "sub", "pub", "snapshots"}
)


def _takes_names(call: CommandCall) -> bool:
    """Whether the first word says that a program only looks or makes something, so that later ones are names."""
    first = first_operand(call)
    return first in _NAMING_VERBS or known_programs.is_read_only_verb(first) or call.name.startswith("create-")


def deletion_reason(call: CommandCall) -> str:
    """Why a program must be asked for whose first words or options say that it deletes."""
    if call.arg_texts()[-1:] == ["--help"]:
        return ""
    if any(sql.is_destructive_sql(text) for text in call.arg_texts()):
        return "changes a database"
    if _takes_names(call):
        return deleting_option_reason(call)
    words = [pair for pair in pairwise(["", *call.arg_texts()]) if not pair[1].startswith("-")][:_MAX_VERB_WORDS]
    for before, word in words:
        value = _MESSAGE_OPTION.fullmatch(before) or re.fullmatch(r"-[^yfqvrRaA]", before)
        if not value and _DELETING_VERB.fullmatch(word) and not known_programs.has_verb(call.name, words[0][1], word):
            return f"{word} deletes something"
    return deleting_option_reason(call)
