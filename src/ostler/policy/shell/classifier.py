"""Classifies one command by every table that knows its name."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ostler.policy.shell import (
    archives,
    batch_runners,
    cloud_clients,
    data_leaks,
    databases,
    file_commands,
    git,
    interpreters,
    known_programs,
    make_command,
    network_transfers,
    program_table,
    script_files,
    shell_builtins,
    task_files,
    tool_handlers,
    unknown_programs,
    wrappers,
)
from ostler.policy.shell.command_call import CommandCall, CommandHandler
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.option_parser import parse_options
from ostler.policy.shell.program_table import ArgumentSpec, group, rows
from ostler.policy.shell.runtime_values import hidden_option_reason, prints_only_names

_HELP_OPTIONS = frozenset({"--help", "--version", "-V", "-?"})
_LOADER = re.compile(r"ld-(?:linux|musl|\d)[\w.-]*\.so|ld\.so")
_LOADER_OPTIONS = ArgumentSpec("", ("library-path", "preload", "argv0", "audit"))
_PACKAGE = re.compile(r"^npm:|(?<=\w)@[\w.^~-]+$")  # how package runners write program names
_VERSIONED = re.compile(r"([a-z+]+?)[-_]?\d[\d.]*(?:\.exe)?")
_TABLES = (
    file_commands.HANDLERS,
    archives.HANDLERS,
    network_transfers.HANDLERS,
    shell_builtins.HANDLERS,
    wrappers.HANDLERS,
    batch_runners.HANDLERS,
    make_command.HANDLERS,
    task_files.HANDLERS,
    interpreters.HANDLERS,
    tool_handlers.HANDLERS,
    tool_handlers.EXTRA_HANDLERS,
    cloud_clients.HANDLERS,
    databases.HANDLERS,
    git.HANDLERS,
)
_CASE_INSENSITIVE = frozenset({"schtasks", "sc"})
_ROW_HANDLERS: dict[Callable[..., str], str] = {  # the key of the rows that these functions read
    tool_handlers.check_tool: "tool",
    tool_handlers.check_one_dash_tool: "one-dash-tool",
    wrappers.run_wrapper: "wrapper",
    wrappers.run_runner: "runner",
}
_UNKNOWN_SUBCOMMAND = "its subcommand is known only at run time"
_TAKES_ANY_WORD = frozenset({"defaults", "service"})  # also `--help`, as a name


class _Finding(NamedTuple):
    """Why a command needs approval, and the row or function that decided it."""

    reason: str
    source: str


_NOTHING = _Finding("", "")


def danger_reason(call: CommandCall) -> str:
    """Return why the command needs approval, or an empty string.

    Sets `call.source`, and `call.unknown_reason` for unknown programs.
    """
    if len(call.args) == 1 and _is_help(call):
        return ""
    call.name = _canonical_name(call.name)
    handlers, operands = _find_handlers(call.name), _find_operands(call)
    has_subcommands = known_programs.has_verbs(call.name) or call.name in program_table.with_dangerous_subcommands()
    if has_subcommands and _is_dry_run_or_help(call, operands[1]):
        return ""
    findings = [
        _table_finding(call),
        _check(hidden_option_reason, call),
        _check(data_leaks.secret_read_reason, call),
        _check(_write_reason, call, operands[0]),
        *(_check(handler, call) for handler in handlers),
    ]
    if not handlers:
        findings.append(_check(unknown_programs.danger_reason, call))
    elif call.name in rows("runner"):
        findings.append(_check(_runner_reason, call))
    if call.evaluator.written_files and (not handlers or call.name in rows("script")):
        findings.append(_check(unknown_programs.written_file_reason, call))
    if call.name.startswith("git-"):
        findings.append(_check(git.git_verb_reason, call, call.name.removeprefix("git-"), call.args))
    elif _LOADER.match(call.name):
        findings.append(_check(wrappers.unwrap, call, _LOADER_OPTIONS, call.args))
    for finding in (*findings, _subcommand_finding(call, *operands), _option_finding(call)):
        if finding.reason:
            call.source = finding.source
            return f"{call.name}: {finding.reason}"
    if call.path.startswith("/etc/init.d/"):
        call.evaluate_words("service", call.name, *call.arg_texts())
    script_reason = _written_script_reason(call) if "/" in call.path else ""
    if not script_reason and not call.unknown_reason:
        call.unknown_reason = known_programs.unknown_reason(call, bool(handlers), operands)
    return script_reason


def _check(function: Callable[..., str], call: CommandCall, *args: object) -> _Finding:
    """Call a function that returns a reason. Its source is the row that the function reads, or else the function."""
    reason = function(call, *args)
    if not reason:
        return _NOTHING
    row = program_table.locate(call.name, _ROW_HANDLERS[function]) if function in _ROW_HANDLERS else ""
    module = function.__module__.partition(".")[2].replace(".", "/")
    return _Finding(reason, row or f"{module}.py ({function.__name__})")


def _write_reason(call: CommandCall, operands: list[str]) -> str:
    """Return why a program with subcommands needs approval: an argument names an existing file as output."""
    has_subcommands = known_programs.has_verbs(call.name) or call.name in group("package-managers")
    if not has_subcommands or call.name in git.HANDLERS:  # git has its own options for this
        return ""
    return unknown_programs.output_reason(call) or unknown_programs.download_reason(call, operands)


def _is_help(call: CommandCall) -> bool:
    """Return whether the only argument asks for help; for shutdown and similar programs `-h` means halt."""
    word = call.args[0].text
    return word in _HELP_OPTIONS or (word == "-h" and rows("always").get(call.name) != "stops or restarts the machine")


def _is_dry_run_or_help(call: CommandCall, operands: list[str]) -> bool:
    """Return whether a program with subcommands only prints help, or only simulates."""
    texts = call.arg_texts()
    if not texts or "--" in texts or _runs_other_command(call.name, operands):
        return False
    if call.name in git.HANDLERS and texts[0][:1] == "-":  # the option may set a command that git runs
        return False
    if texts[-1] == "--help" and texts[0][:1] != "-" and call.name not in _TAKES_ANY_WORD:
        return True
    return bool(group("dry-run-options") & set(texts)) or (
        call.name in group("simulating") and bool(group("simulation-options") & set(texts))
    )


def _runs_other_command(name: str, operands: list[str]) -> bool:
    """Return whether the subcommand runs another command."""
    subcommands = rows("runner")[name].split(", ") if name in rows("runner") else ()
    return not group("run-verbs").isdisjoint(operands[:1]) or any(
        operands[: len(subcommand.split())] == subcommand.split() for subcommand in subcommands
    )


def _runner_reason(call: CommandCall) -> str:
    """Check a program that runs others, for subcommands that do something else."""
    verb = unknown_programs.first_operand(call)
    if verb in {"exec", "x", "dlx"} or (verb == "run" and call.name not in {"npm", "yarn", "pnpm", "bun"}):
        return ""
    if unknown_programs.takes_packages(call):
        return ""
    return (
        unknown_programs.nested_command_reason(call)
        if call.name in group("package-managers")
        else unknown_programs.deletion_reason(call)
    )


def _table_finding(call: CommandCall) -> _Finding:
    """Return why a command needs approval according to the tables of names and argument forms."""
    if form := program_table.dangerous_form(call.name):
        reason, patterns = form
        words = iter(call.arg_texts())
        matches = all(any(re.fullmatch(pattern, word, re.DOTALL) for word in words) for pattern in patterns)
        return _row_finding(call.name, "form", reason) if matches else _NOTHING
    reason = rows("always").get(call.name, "")
    read_only_form = rows("read-only").get(call.name) if reason else None
    is_read_only = read_only_form is not None and re.fullmatch(read_only_form, " ".join(call.arg_texts()))
    return _NOTHING if is_read_only or not reason else _row_finding(call.name, "always", reason)


def _row_finding(program: str, key: str, reason: str) -> _Finding:
    return _Finding(reason, program_table.locate(program, key))


@lru_cache(maxsize=1024)
def _find_handlers(name: str) -> tuple[CommandHandler, ...]:
    return tuple(table[name] for table in _TABLES if name in table)


def _is_in_tables(name: str) -> bool:
    return any(
        name in table for table in (rows("always"), rows("form"), program_table.with_dangerous_subcommands(), *_TABLES)
    )


@lru_cache(maxsize=1024)
def _canonical_name(name: str) -> str:
    """Return the name used in the tables: without prefix, version, upper case or suffix."""
    if _is_in_tables(name):
        return name
    if name.startswith(("mkfs.", "fsck.", "newfs_")):
        return name[:4]
    if name[:1] == "g" and name[1:] in group("gnu"):
        return name[1:]
    name = _PACKAGE.sub("", name)
    versioned = _VERSIONED.fullmatch(name)
    for candidate in (name, versioned.group(1) if versioned else "", name.lower(), name.removesuffix(".exe")):
        if candidate and _is_in_tables(candidate):
            return candidate
    return name


def _subcommand_finding(call: CommandCall, all_operands: list[str], sure_operands: list[str]) -> _Finding:
    program = rows("like").get(call.name, call.name)
    subcommands = program_table.dangerous_subcommands(program)
    if sure_operands[:1] == [UNKNOWN_TEXT] and (subcommands or call.name in group("needs-subcommand")):
        return _Finding(_UNKNOWN_SUBCOMMAND, "")
    wildcards = [word.replace(UNKNOWN_TEXT, "*") for word in sure_operands]
    for subcommand in subcommands:
        if _matches_words(all_operands, subcommand.words) or _matches_words(sure_operands, subcommand.words):
            return _row_finding(program, subcommand.key, f"{' '.join(subcommand.words)} {subcommand.reason}")
        if _matches_words(wildcards, subcommand.words):
            return _row_finding(program, subcommand.key, _UNKNOWN_SUBCOMMAND)
    return _NOTHING


def _matches_words(words: list[str], expected: Sequence[str]) -> bool:
    """Return whether the first words match; `*` matches any word, or the rest of a word."""
    return len(words) >= len(expected) and all(
        word in {pattern, "*"} or (pattern[-1] == "*" and word.startswith(pattern[:-1]))
        for word, pattern in zip(words, expected, strict=False)
    )


def _find_operands(call: CommandCall) -> tuple[list[str], list[str]]:
    """Return the operands twice: as if no option took a value, and as if every option did.

    A word that is known only at run time becomes `UNKNOWN_TEXT`, or `…` if it cannot be an option or subcommand.
    """
    all_operands: list[str] = []
    after_options: list[str] = []
    previous = ""
    for arg in call.args:
        text = arg.text.lower() if call.name.endswith("-cli") or call.name in _CASE_INSENSITIVE else arg.text
        text = text if not arg.starts_unknown else "…" if prints_only_names(arg) else UNKNOWN_TEXT
        if not text.startswith("-") or text in group("dashed-verbs"):
            all_operands.append(text)
            if not previous.startswith("-") or "=" in previous or previous in group("flags-without-value"):
                after_options.append(text)
        previous = text
    return all_operands, after_options


def _option_finding(call: CommandCall) -> _Finding:
    dangerous = program_table.dangerous_options(call.name)
    if not dangerous or not parse_options(call.args, dangerous.shorts_with_value).has(*dangerous.names):
        return _NOTHING
    return _row_finding(call.name, "options", "its options change or delete something")


def _written_script_reason(call: CommandCall) -> str:
    """Return why running a program needs approval if the same command line writes it; its known text is evaluated."""
    try:
        text = call.written_text(ExpandedWord(call.path))
    except KeyError:
        return script_files.program_reason(call)
    if text is None:
        return "runs a program that the same command line writes"
    shebang = re.match(r"#!\s*(?:/usr/bin/env\s+)?(\S+)", text)
    call.evaluate_words(shebang.group(1) if shebang else "sh", call.path)
    return ""
