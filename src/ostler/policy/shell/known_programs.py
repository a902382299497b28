"""Decides whether a program or subcommand is known; unknown ones need approval."""

import re
from collections.abc import Sequence

from ostler.policy.shell import program_table
from ostler.policy.shell.command_call import CommandCall
from ostler.policy.shell.program_table import group, rows

_READ_ONLY_VERBS = (
    r"list|ls|show|get|describe|status|stats?|info|help|logs?|diff|search|view|inspect|check|lint|tests?|validate|verify"
    r"|query|find|cat|tree|history|top|ps|explain|doctor|preview|plan|whoami|count|print|outdated|audit|completions?"
    r"|usage|man|docs?|ping|health|metrics|events|tail|head|summary|report|analy[sz]e|scan|graph|deps|dependencies|build"
    r"|compile|which|where|why|current|dry-run|examples|size|monitor|versions?"
)
_READ_ONLY_VERB = re.compile(
    rf"{_READ_ONLY_VERBS}|(?:is|has|lookup|estimate|detect|filter|wait|batch-get|{_READ_ONLY_VERBS})[-_:].+|wait"
    r"|(?!delete|remove|destroy|purge|drop|clear|reset|rm|del|set|put|update|unset|stop|kill)"
    r".+[-_:](?:list|ls|info|status|show|get|stats|describe|view|logs?|lint|validate|check)"
)
_SURELY_READ_ONLY = frozenset(
    ["list", "ls", "show", "info", "status", "get", "describe", "view", "search"]
)  # as second word
_READ_ONLY_OPTION = re.compile(
    r"-[hV]|--?(?:help|version)|--?(?:list|show)(?:[-_][\w-]+)?(?:=.*)?|--(?:status|info|check|lint|validate|diff|simulate)"
    r"|--?dry-?run(?:=(?!none|false)\w+)?|--?(?:preview|what-?if)"
)
_READ_ONLY_CMDLET = re.compile(
    r"(?i)(?:get|test|measure|select|where|sort|group|compare|show|resolve|convert(?:to|from)|foreach)-[a-z]+"
    r"|format-(?:table|list|wide|hex)|write-(?:host|output|verbose|error|warning)"
)
_SYSTEM_PATH = re.compile(
    r"/(?:usr|opt|s?bin|snap|nix|Applications|System|Library)/|.*/(?<!node_modules/\.)s?bin/[^/]+$"
)
_PROJECT_ENVIRONMENT_PATH = re.compile(
    r"(?:.*/)?(?:\.?v?env|\.?virtualenvs?|node_modules|\.tox|\.nox|vendor|target|build)/.*"
)
_VERSION_OR_SUFFIX = re.compile(r"[-_.]?\d[\d.]*$|\.(?:exe|cmd|bat|sh|py|phar|jar)$")
_CROSS_PREFIX = re.compile(
    r"(?:x86_64|aarch64|arm\w*|i[3-6]86|riscv\d*|mips\w*|powerpc\w*)-[\w-]*?(?:gnu\w*|musl\w*|elf|eabi\w*)-"
)
_MAX_VERB_WORDS = 5  # the verb of a cloud client is within this many words


def unknown_reason(call: CommandCall, has_handler: bool, operands: tuple[Sequence[str], Sequence[str]]) -> str:
    """Return why a command is unknown, or an empty string if it is known, read-only or belongs to the project."""
    verbs = program_table.known_verbs(call.name)
    if verbs is not None:
        return _unknown_verb(call, verbs, operands)
    read_only_form = rows("read-only").get(call.name)
    if read_only_form is not None and re.fullmatch(read_only_form, " ".join(call.arg_texts())):
        return ""
    if has_handler or _is_known(call) or _is_project_program(call) or _is_read_only(call, operands):
        return ""
    call.source = "policy/shell/known.txt does not list it"
    return f"{call.name} is an unknown program"


def has_verb(program: str, group: str, word: str) -> bool:
    """Return whether a subcommand needs no approval, either by itself or within a group."""
    verbs = program_table.known_verbs(program) or ()
    return (word == group and word in verbs) or f"{group}/{word}" in verbs


def is_read_only_verb(word: str) -> bool:
    """Return whether the name of a subcommand means that it is read-only."""
    return bool(_READ_ONLY_VERB.fullmatch(word))


def has_verbs(program: str) -> bool:
    """Return whether the subcommands of a program are listed."""
    return program in rows("verbs")


def _unknown_verb(call: CommandCall, verbs: frozenset[str], operands: tuple[Sequence[str], Sequence[str]]) -> str:
    candidates = [words for words in operands if words]
    if not candidates or any(map(_READ_ONLY_OPTION.fullmatch, call.arg_texts())):
        return ""
    if any(_is_known_verb(words, verbs) for words in candidates):
        return ""
    call.source = program_table.locate(call.name, "verbs")
    return f"{call.name} {candidates[-1][0][:30]} is an unknown subcommand"


def _is_known_verb(words: Sequence[str], verbs: frozenset[str]) -> bool:
    if "**" in verbs:
        return any(word in verbs or _READ_ONLY_VERB.fullmatch(word) for word in words[:_MAX_VERB_WORDS])
    words = [word for word in words if word[:1] != "+"]  # `cargo +nightly` selects a toolchain
    first, second = [*words, "", ""][:2]
    if first in verbs or f"{first}/{second}" in verbs or _READ_ONLY_VERB.fullmatch(first):
        return True
    grouped = f"{first}/" in verbs or "*/" in verbs
    return grouped and (not second or bool(_READ_ONLY_VERB.fullmatch(second)))


def _is_known(call: CommandCall) -> bool:
    """Return whether a table contains the program name, with or without version, platform and suffix."""
    if call.path.startswith("@"):  # a package with a scope, as package runners write it
        return call.path.partition("/")[0] + "/" in program_table.known_programs()
    names = (call.name, call.name.lower(), _VERSION_OR_SUFFIX.sub("", call.name), _CROSS_PREFIX.sub("", call.name))
    return any(
        name in table
        for name in names
        for table in (
            group("harmless"),
            program_table.known_programs(),
            group("package-managers"),
            rows("always"),
            rows("form"),
            rows("options"),
            program_table.with_dangerous_subcommands(),
        )
    ) or bool(_READ_ONLY_CMDLET.fullmatch(call.name))


def _is_project_program(call: CommandCall) -> bool:
    """Return whether a program belongs to the project: by its path, or because it runs in a project environment."""
    if call.path.startswith("@"):
        return False
    outside_system = "/" in call.path and (not _SYSTEM_PATH.match(call.path) or call.path[0] not in "/~")
    in_cwd = any(call.path.startswith(f"{folder}/") for folder in call.shell.cwd)
    return (
        call.shell.in_project_environment
        or outside_system
        or in_cwd
        or bool(_PROJECT_ENVIRONMENT_PATH.match(call.path))
    )


def _is_read_only(call: CommandCall, operands: tuple[Sequence[str], Sequence[str]]) -> bool:
    if any(map(_READ_ONLY_OPTION.fullmatch, call.arg_texts())) or call.arg_texts() in (["-l"], ["-L"]):
        return True
    for words in operands:
        if (words and _READ_ONLY_VERB.fullmatch(words[0])) or (len(words) > 1 and words[1] in _SURELY_READ_ONLY):
            return True
    return False
