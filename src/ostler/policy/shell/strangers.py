"""Programs that no table knows: what their arguments give away about commands they run and things they delete."""

import re
from collections.abc import Sequence
from itertools import pairwise

from ostler.policy import danger
from ostler.policy import danger_programs as programs
from ostler.policy.danger_subcommands import SUBCOMMANDS
from ostler.policy.shell import known, snippets, sql
from ostler.policy.shell.args import Arg, program
from ostler.policy.shell.call import NO_FEED, Call
from ostler.policy.shell.places import is_block_device
from ostler.policy.shell.toolspecs import is_product

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
_STRONG = "delete|remove|destroy|purge|wipe|drop|uninstall|erase"
_WEAK = (
    "rm|rmi|rmdir|rb|del|terminate|unlink|nuke|yank|obliterate|autoremove|unregister|undefine|undeploy|teardown|unload"
    "|bootout|prune|reset|revert|rollback|shutdown|reboot|poweroff|umount|unmount|stop|revoke|decommission|expunge|detach"
    "|downgrade|rmr|rmp|leave"
)
_DELETES = re.compile(
    rf"(?:[\w.-]+[:.-])?(?:{_STRONG}|{_WEAK})(?:[-_:]\w[\w-]*)?|(?:delete|remove|destroy|drop)(?:[A-Z]\w*|all)|[\w.-]+:(?:disable|unset|stop|clear|flush)"
)
_EMPTIES = re.compile(r"[\w-]+(?::[\w-]+)*:(?:drop|purge|wipe|truncate)(?::\w+)?")
_DELETING_OPTION = re.compile(
    r"--?(?:delete|purge|uninstall|destroy|wipe|erase|unregister|remove-all|drop|factory-reset)(?:[-_]?[\w-]+)?(?:=.*)?"
    r"|-rmr?|-expunge|--?(?:remove|clobber|(?:allow-)?overwrite(?:-[\w=-]+)?|in-?place|reset|shutdown)|/delete"
)
_VERB = "|".join(sorted(programs.VERBS | programs.REMOVERS))
_HIDDEN = re.compile(
    rf"""(?:(?:=\s*|[:(\[{{!,])[\"']?|[;&|]\s*|Command[= ])(?:/[\w/.-]+/)?(?:{_VERB})(?=[\s"')\]}},;]|$)""",
    re.MULTILINE,
)
_WRITTEN = re.compile(rf"""(?:^|[\s"'=:(\[{{,!;&|])(?:/[\w/.-]+/)?(?:{_VERB})(?=[\s"')\]}},;]|$)""", re.MULTILINE)
_LONG_OUTPUT = re.compile(r"--?(?:\w+[-_])*out(?:put|file)?(?:[-_]?(?:file|path))?|--export-filename")
_OUTPUT_OPTION = re.compile(
    rf"{_LONG_OUTPUT.pattern}|-[oO]|--?(?:dump|save|write|export|log|result)(?:-?(?:to|file|bin|log))?"
)
_SHORT_OUTPUT = frozenset(
    {"eslint", "rspec", "cscope", "stylelint", "terser"}
)  # of the harmless, those whose -o names a file
_CALLS = re.compile(r"\b(?:system|exec\w*|unlink|remove\w*|rmtree|popen|spawn)\s*\(|\b(?:exec|execute|shell)\b\W{1,4}/")
_SEPARATOR = re.compile(r"[\s;&|<>]+")
_DEVICE_LOOKERS = frozenset(
    {"smartctl", "lsblk", "blkid", "findmnt", "dumpe2fs", "udevadm", "nvme", "df", "hdparm", "skdump"}
)
_RUNS_PROJECT = frozenset({"cargo", "dotnet", "swift", "dune", "cabal", "zig"})  # with `run`, by words of its own
_TAKES_PACKAGES = frozenset(  # which may be called like a command
    danger.listed(
        "install i in ins isntall add require ci info view show search docs home repo why explain outdated update up"
        " ls list ll la download wheel freeze audit"
    )
)
_DEEP = 4  # so many operands are looked at for a verb
_FAR = 24  # so many arguments are looked at for a command


def judge(call: Call) -> str:
    """Why a program that no table knows must be asked for."""
    if call.name in programs.HARMLESS:
        return output(call, _OUTPUT_OPTION if call.name in _SHORT_OUTPUT else _LONG_OUTPUT)
    if why := hands_on(call) or _code(call) or output(call):
        return why
    if not _looks_at_devices(call) and any(is_block_device(text.rpartition("=")[2]) for text in call.texts()):
        return "works on a disk"
    own = "/" in call.path and not re.match(r"/(?:usr/|opt/|s?bin/)", call.path)
    if own and any(_EMPTIES.fullmatch(text) for text in call.texts()[:_DEEP]):
        return "empties a database"
    return "" if own or call.name in programs.MANAGERS else deletes(call)


def _looks_at_devices(call: Call) -> bool:
    """Whether a program only looks at disks: always, as it is called here, or with this verb."""
    first = next(iter(call.texts()), "")
    return call.name in _DEVICE_LOOKERS or call.name in danger.LOOKS or known.has_verb(call.name, first, first)


def hands_on(call: Call) -> str:
    """Judge what looks like a command among the arguments: after `--`, as words, as one text, or in a setting."""
    if call.name in programs.MANAGERS and takes_packages(call):
        return ""
    command = call.args[_command_at(call) :]
    if command:
        call.run(command, NO_FEED)
    before = ""
    for arg in call.args[: min(_FAR, len(call.args) - len(command))]:
        if not (_MESSAGE_OPTION.fullmatch(before) or _MESSAGE_OPTION.fullmatch(arg.text.partition("=")[0])):
            if _HIDDEN.search(arg.text):
                return "hands on a command that deletes or changes something"
            _text(call, arg, before)
        before = arg.text
    return ""


def verb(call: Call) -> str:
    """The first word that is no option."""
    return next((text for text in call.texts() if text[:1] != "-"), "")


def takes_packages(call: Call) -> bool:
    """Whether what follows a manager's verb are names of packages."""
    return verb(call) in _TAKES_PACKAGES and "--" not in call.texts()


def _command_at(call: Call) -> int:
    """Where among the arguments another command begins; behind the last one when none does."""
    before = Arg("")
    own = call.name in _RUNS_PROJECT and call.texts()[:1] == ["run"]
    for at, arg in enumerate(call.args[:_FAR]):
        if own and arg.text == "--":
            break
        introduced = before.text == "--" or bool(_SHELL_OPTION.fullmatch(before.text))
        if introduced and _is_program(arg) and at + 1 < len(call.args):
            return at
        if introduced and before.text.startswith("--") and program(arg) in programs.VERBS:
            return at
        if _is_command(arg, call.args[at + 1 :]) and (before.text == "--" or _stands_alone(call, arg, before.text)):
            return at
        before = arg
    return len(call.args)


def _stands_alone(call: Call, arg: Arg, before: str) -> bool:
    """Whether a word that may be a command is one, and no value of an option nor a verb of the program itself."""
    named = arg.text.startswith("/") or program(arg) in programs.REMOVERS | programs.HANDS_ON
    if named or _CODE_OPTION.fullmatch(before):
        return True
    return call.name not in programs.MANAGERS and not before.startswith("-")


def _is_command(arg: Arg, rest: list[Arg]) -> bool:
    """Whether a word with what follows is a dangerous verb, or a program that is handed another."""
    name = program(arg) if "/" not in arg.text.lstrip("/") or arg.text[0] == "/" else ""
    if name in programs.VERBS or name in programs.REMOVERS:
        return bool(rest) or arg.text.startswith("/")
    return name in programs.HANDS_ON and bool(rest) and rest[0].text[:1] == "-"


def _is_program(arg: Arg) -> bool:
    return program(arg) in programs.OPTION_DRIVEN or program(arg) in SUBCOMMANDS


def _text(call: Call, arg: Arg, before: str) -> None:
    """Judge one argument that reads like a whole command line."""
    name, equals, value = arg.text.partition("=")
    option, text = (name, value) if equals and name.startswith("-") else (before, arg.text)
    first, *rest = _SEPARATOR.split(re.sub(r"^[\w.-]+=(?=\S)", "", text).strip(), maxsplit=1)
    named = _SHELL_OPTION.fullmatch(option) and (first in programs.HARMLESS or _is_program(Arg(first)))
    if rest and (named or _is_command(Arg(first), [Arg(word) for word in rest[0].split()])):
        call.text(text, NO_FEED, None)


def code_texts(call: Call) -> list[str]:
    """The program texts behind options such as `-e` and `--eval`."""
    found = []
    for at, arg in enumerate(call.args[: _command_at(call)]):
        name, equals, value = re.split(r"([=:]|$)", arg.text, maxsplit=1)
        if _CODE_OPTION.fullmatch(name):
            found.append(value if equals else call.args[at + 1].text if at + 1 < len(call.args) else "")
    return [text for text in found if text and text[0] != "-"]


def _code(call: Call) -> str:
    texts = [text for text in code_texts(call) if re.search(r"[\s(\[{;]", text)]
    texts += [arg.source for arg in call.args if arg.source]
    return next(filter(None, (snippets.judge("other", text, call) for text in texts)), "")


def made_here(call: Call) -> str:
    """Why a program must be asked for that is given a file this very line has written, with a command in it."""
    implied = programs.READS_BY_ITSELF.get(call.name)
    trusted = call.name in programs.MANAGERS | programs.HARMLESS
    for arg in [Arg(implied)] if implied else [] if trusted else call.args[:_FAR]:
        try:
            text = call.wrote(arg)
        except KeyError:
            continue
        if text and (_WRITTEN.search(text) or _CALLS.search(text)):
            return "reads a file that this very line writes, with a command in it"
    return ""


def output(call: Call, names: re.Pattern[str] = _OUTPUT_OPTION) -> str:
    """Why writing to a file must be asked for, where an option such as `--output` names one."""
    for at, arg in enumerate(call.args[:_FAR]):
        name, equals, value = arg.text.partition("=")
        if not names.fullmatch(name):
            continue
        target = Arg(value) if equals else call.args[at + 1] if at + 1 < len(call.args) else Arg("-")
        target = Arg(target.text.partition("=")[2]) if re.match(r"[\w-]+=\w", target.text) else target  # json=file
        named = target.exact and target.text[:1] != "-" and not _is_built(target.text)
        if named and not _is_folder(call, target) and (why := call.overwrites(target)):
            return why
    return ""


_FETCHES = frozenset({"cp", "get", "pull", "download", "get-object", "copyto", "copyurl"})
_FETCHED_TO = re.compile(r"-f|-d|--file|--dest(?:ination)?")


def fetched(call: Call, operands: Sequence[str]) -> str:
    """Why fetching must be asked for that names a file which is there: by the last word, or an option."""
    verb = next((word for word in operands[:3] if word in _FETCHES), "")
    if not verb or len(call.args) < 3:
        return ""
    remote = verb in {"pull", "get-object", "copyto"} or any(":" in word for word in operands)
    targets = call.args[-1:] if remote and ":" not in call.args[-1].text else []
    targets += [
        after for before, after in pairwise(call.args) if verb == "download" and _FETCHED_TO.fullmatch(before.text)
    ]
    files = [arg for arg in targets if arg.exact and arg.text[:1] != "-" and not _is_folder(call, arg)]
    return call.overwrites_any(files)


def _is_folder(call: Call, arg: Arg) -> bool:
    return call.walk.places.any_folder(arg, call.scope)


def _is_built(path: str) -> bool:
    return is_product(path) and not is_block_device(path)


def deleting_option(call: Call) -> str:
    """Why an option such as `--delete-keys` must be asked for."""
    found = next((arg.text for arg in call.args if _DELETING_OPTION.fullmatch(arg.text)), "")
    return f"{found} deletes something" if found else ""


_NAMES_FOLLOW = frozenset(
    {"create", "new", "init", "add", "install", "clone", "start", "use", "sub", "pub", "snapshots"}
)


def _takes_names(call: Call) -> bool:
    """Whether the first word says that a program only looks or makes something, so that later ones are names."""
    first = verb(call)
    return first in _NAMES_FOLLOW or known.looks(first) or call.name.startswith("create-")


def deletes(call: Call) -> str:
    """Why a program must be asked for whose first words or options say that it deletes."""
    if call.texts()[-1:] == ["--help"]:
        return ""
    if any(sql.destroys(text) for text in call.texts()):
        return "changes a database"
    if _takes_names(call):
        return deleting_option(call)
    words = [pair for pair in pairwise(["", *call.texts()]) if not pair[1].startswith("-")][:_DEEP]
    for before, word in words:
        value = _MESSAGE_OPTION.fullmatch(before) or re.fullmatch(r"-[^yfqvrRaA]", before)
        if not value and _DELETES.fullmatch(word) and not known.has_verb(call.name, words[0][1], word):
            return f"{word} deletes something"
    return deleting_option(call)
