"""Classifies one command by every table that knows its name."""

import re
from collections.abc import Sequence

from ostler.policy import danger_programs as programs
from ostler.policy import danger_tables
from ostler.policy.danger_subcommands import DANGEROUS_SUBCOMMANDS
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
    script_files,
    shell_builtins,
    task_files,
    tool_handlers,
    unknown_programs,
    wrappers,
)
from ostler.policy.shell.command_call import CommandCall, CommandHandler
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT
from ostler.policy.shell.option_parser import parse_options
from ostler.policy.shell.runtime_values import hidden_option_reason, prints_only_names
from ostler.policy.shell.wrapper_specs import RUNNERS, WrapperSpec

_HELP_OPTIONS = frozenset({"--help", "--version", "-V", "-?"})
_STOPS_MACHINE = frozenset(
    name for name, reason in danger_tables.ALWAYS_DANGEROUS.items() if reason == danger_tables.STOPS_MACHINE
)
_LOADER = re.compile(r"ld-(?:linux|musl|\d)[\w.-]*\.so|ld\.so")
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
_DASHED_VERBS = frozenset({"--remove", "--remove-all", "--set", "--install", "--del", "--merge"})
_FLAGS_WITHOUT_VALUE = frozenset(
    danger_tables.split_names("-y -q --user --system --global --force --yes --now --quiet --verbose --debug")
)
_DRY_RUN_OPTIONS = frozenset(
    {"--dry-run", "--dry-run=client", "--dry-run=server", "--dry-run=true", "--dryrun", "--assumeno"}
)
_SIMULATING_PROGRAMS = frozenset(danger_tables.split_names("apt apt-get aptitude brew nala"))
_SIMULATION_OPTIONS = frozenset(danger_tables.split_names("-s --simulate --just-print --no-act --recon -n"))
_TAKES_ANY_WORD = frozenset({"defaults", "service"})  # also `--help`, as a name
_RUN_VERBS = frozenset(danger_tables.split_names("run exec dlx shell run-script ssh debug rsh"))
_GNU_COMMANDS = frozenset(  # with the prefix `g` on systems that have other versions
    danger_tables.split_names(
        "rm mv chmod chown chgrp dd truncate shred ln unlink rmdir cp install tee sed awk tar find xargs split csplit"
        " sort uniq shuf env timeout nice nohup stdbuf"
    )
)
_ALIASES = {
    "podman": "docker",
    "nerdctl": "docker",
    "docker-compose": "docker",
    "oc": "kubectl",
    "tofu": "terraform",
    "pip3": "pip",
    "valkey-cli": "redis-cli",
    "keydb-cli": "redis-cli",
    "terragrunt": "terraform",
}


def danger_reason(call: CommandCall) -> str:
    """Return why the command needs approval, or an empty string. Sets `call.unknown_reason` for unknown programs."""
    if len(call.args) == 1 and _is_help(call):
        return ""
    call.name = _canonical_name(call.name)
    handlers, operands = _find_handlers(call.name), _find_operands(call)
    if (known_programs.has_verbs(call.name) or call.name in DANGEROUS_SUBCOMMANDS) and _is_dry_run_or_help(
        call, operands[1]
    ):
        return ""
    reasons = [
        _table_reason(call),
        hidden_option_reason(call),
        data_leaks.secret_read_reason(call),
        _write_reason(call, operands[0]),
    ]
    reasons += [handler(call) for handler in handlers]
    if not handlers:
        reasons.append(unknown_programs.danger_reason(call))
    elif call.name in RUNNERS:
        reasons.append(_runner_reason(call))
    if call.evaluator.written_files and (not handlers or call.name in programs.IMPLICIT_SCRIPTS):
        reasons.append(unknown_programs.written_file_reason(call))
    if call.name.startswith("git-"):
        reasons.append(git.git_verb_reason(call, call.name.removeprefix("git-"), call.args))
    elif _LOADER.match(call.name):
        reasons.append(wrappers.unwrap(call, WrapperSpec("", ("library-path", "preload", "argv0", "audit")), call.args))
    for reason in (*reasons, _subcommand_reason(call, *operands), _option_reason(call)):
        if reason:
            return f"{call.name}: {reason}"
    if call.path.startswith("/etc/init.d/"):
        call.evaluate_words("service", call.name, *call.arg_texts())
    script_reason = _written_script_reason(call) if "/" in call.path else ""
    if not script_reason and not call.unknown_reason:
        call.unknown_reason = known_programs.unknown_reason(call, bool(handlers), operands)
    return script_reason


def _write_reason(call: CommandCall, operands: list[str]) -> str:
    """Return why a program with subcommands needs approval: an argument names an existing file as output."""
    has_subcommands = known_programs.has_verbs(call.name) or call.name in programs.PACKAGE_MANAGERS
    if not has_subcommands or call.name in git.HANDLERS:  # git has its own options for this
        return ""
    return unknown_programs.output_reason(call) or unknown_programs.download_reason(call, operands)


def _is_help(call: CommandCall) -> bool:
    """Return whether the only argument asks for help; for shutdown and similar programs `-h` means halt."""
    word = call.args[0].text
    return word in _HELP_OPTIONS or (word == "-h" and call.name not in _STOPS_MACHINE)


def _is_dry_run_or_help(call: CommandCall, operands: list[str]) -> bool:
    """Return whether a program with subcommands only prints help, or only simulates."""
    texts = call.arg_texts()
    if not texts or "--" in texts or _runs_other_command(call.name, operands):
        return False
    if call.name in git.HANDLERS and texts[0][:1] == "-":  # the option may set a command that git runs
        return False
    if texts[-1] == "--help" and texts[0][:1] != "-" and call.name not in _TAKES_ANY_WORD:
        return True
    return bool(_DRY_RUN_OPTIONS & set(texts)) or (
        call.name in _SIMULATING_PROGRAMS and bool(_SIMULATION_OPTIONS & set(texts))
    )


def _runs_other_command(name: str, operands: list[str]) -> bool:
    """Return whether the subcommand runs another command."""
    subcommands = RUNNERS[name][0] if name in RUNNERS else ()
    return not _RUN_VERBS.isdisjoint(operands[:1]) or any(
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
        if call.name in programs.PACKAGE_MANAGERS
        else unknown_programs.deletion_reason(call)
    )


def _table_reason(call: CommandCall) -> str:
    """Return why a command needs approval according to the tables of names and argument forms."""
    if call.name in danger_tables.DANGEROUS_FORMS:
        reason, forms = danger_tables.DANGEROUS_FORMS[call.name]
        words = iter(call.arg_texts())
        return (
            reason
            if all(any(re.fullmatch(form, word, re.DOTALL) for word in words) for form in forms.split(" "))
            else ""
        )
    reason = danger_tables.ALWAYS_DANGEROUS.get(call.name, "")
    read_only_form = danger_tables.READ_ONLY_FORMS.get(call.name) if reason else None
    return "" if read_only_form is not None and re.fullmatch(read_only_form, " ".join(call.arg_texts())) else reason


def _find_handlers(name: str) -> list[CommandHandler]:
    return [table[name] for table in _TABLES if name in table]


def _is_in_tables(name: str) -> bool:
    return any(
        name in table
        for table in (danger_tables.ALWAYS_DANGEROUS, danger_tables.DANGEROUS_FORMS, DANGEROUS_SUBCOMMANDS, *_TABLES)
    )


def _canonical_name(name: str) -> str:
    """Return the name used in the tables: without prefix, version, upper case or suffix."""
    if _is_in_tables(name):
        return name
    if name.startswith(("mkfs.", "fsck.", "newfs_")):
        return name[:4]
    if name[:1] == "g" and name[1:] in _GNU_COMMANDS:
        return name[1:]
    name = _PACKAGE.sub("", name)
    versioned = _VERSIONED.fullmatch(name)
    for candidate in (name, versioned.group(1) if versioned else "", name.lower(), name.removesuffix(".exe")):
        if candidate and _is_in_tables(candidate):
            return candidate
    return name


def _subcommand_reason(call: CommandCall, all_operands: list[str], sure_operands: list[str]) -> str:
    subcommands = DANGEROUS_SUBCOMMANDS.get(_ALIASES.get(call.name, call.name), ())
    if sure_operands[:1] == [UNKNOWN_TEXT] and (subcommands or call.name in programs.NEEDS_SUBCOMMAND):
        return "its subcommand is known only at run time"
    wildcards = [word.replace(UNKNOWN_TEXT, "*") for word in sure_operands]
    for expected, reason in subcommands:
        if _matches_words(all_operands, expected) or _matches_words(sure_operands, expected):
            return f"{' '.join(expected)} {reason}"
        if _matches_words(wildcards, expected):
            return "its subcommand is known only at run time"
    return ""


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
        if not text.startswith("-") or text in _DASHED_VERBS:
            all_operands.append(text)
            if not previous.startswith("-") or "=" in previous or previous in _FLAGS_WITHOUT_VALUE:
                after_options.append(text)
        previous = text
    return all_operands, after_options


def _option_reason(call: CommandCall) -> str:
    spec = danger_tables.DANGEROUS_OPTIONS.get(call.name)
    if not spec:
        return ""
    letters, longs, *valued = spec
    options = parse_options(call.args, *valued)
    return "its options change or delete something" if options.has(*letters, *longs) else ""


def _written_script_reason(call: CommandCall) -> str:
    """Return why running a program needs approval if the same command line writes it; its known text is evaluated."""
    from ostler.policy.shell.expanded_words import ExpandedWord

    try:
        text = call.written_text(ExpandedWord(call.path))
    except KeyError:
        return script_files.program_reason(call)
    if text is None:
        return "runs a program that the same command line writes"
    shebang = re.match(r"#!\s*(?:/usr/bin/env\s+)?(\S+)", text)
    call.evaluate_words(shebang.group(1) if shebang else "sh", call.path)
    return ""
