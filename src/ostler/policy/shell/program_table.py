"""Reads what is known about programs: `programs.txt` has rows for single programs, `groups.txt` lists of names."""

from collections.abc import Iterator, Mapping
from functools import cache

import msgspec

from ostler.core.package_data import read_text
from ostler.text.secret_words import parse_word_lists

_OPERANDS = {"first": slice(0, 1), "second": slice(1, 2), "last": slice(-1, None), "all": slice(0, None)}
_SUBCOMMAND_REASONS = {
    "destroys": "deletes, stops or replaces something",
    "publishes": "publishes something or sends it to others",
    "runs-later": "makes something run automatically later",
    "grants": "grants access, or trusts another source",
}


class ArgumentSpec(msgspec.Struct):
    """How a program takes its arguments.

    `output_options` name a file to write, `command_options` contain a command line. `output_operands` selects the
    operands that are written, if there are at least `min_operands`. A build tool may overwrite compiler output.
    `skip_operands` is the number of operands before the command that a wrapper runs. With `takes_assignments`,
    assignments may precede it; with `joins_words`, its words are joined to shell text; with `options_after_operands`,
    options may follow operands.
    """

    shorts_with_value: str = ""
    longs_with_value: tuple[str, ...] = ()
    output_options: tuple[str, ...] = ()
    command_options: tuple[str, ...] = ()
    output_operands: slice = slice(0, 0)
    min_operands: int = 1
    is_build_tool: bool = False
    skip_operands: int = 0
    takes_assignments: bool = False
    joins_words: bool = False
    options_after_operands: bool = False


class Subcommand(msgspec.Struct, frozen=True):
    """A dangerous subcommand: its words, why it needs approval, and the key of its row."""

    words: tuple[str, ...]
    reason: str
    key: str


class DangerousOptions(msgspec.Struct, frozen=True):
    """Options that need approval, and the letters of options that take a value."""

    names: tuple[str, ...]
    shorts_with_value: str = ""


@cache
def rows(key: str) -> Mapping[str, str]:
    """Return the values of a key of `programs.txt`, by program."""
    return {program: value for program, (value, _) in _load_programs().get(key, {}).items()}


def locate(program: str, key: str) -> str:
    """Return the place of a row, as file, line, program and key, or an empty string if there is none."""
    row = _load_programs().get(key, {}).get(program)
    return f"policy/shell/programs.txt:{row[1]} ({program}: {key})" if row else ""


@cache
def group(name: str) -> frozenset[str]:
    """Return the names in a group of `groups.txt`."""
    return _load_groups()[name]


@cache
def argument_spec(program: str, key: str) -> ArgumentSpec:
    """Return the row of a program that describes its arguments, or an empty description."""
    spec = ArgumentSpec()
    for word in rows(key).get(program, "").split():
        if word[0] == "-":
            _add_option(spec, word, is_long=key == "one-dash-tool")
            continue
        setting, _, value = word.partition("=")
        match setting:
            case "skip":
                spec.skip_operands = int(value)
            case "min":
                spec.min_operands = int(value)
            case "writes":
                spec.output_operands = _OPERANDS[value]
            case "assignments":
                spec.takes_assignments = True
            case "joined":
                spec.joins_words = True
            case "options-anywhere":
                spec.options_after_operands = True
            case "build-tool":
                spec.is_build_tool = True
            case _:
                raise ValueError(f"programs.txt: {program}: unknown setting {word}")
    return spec


def _add_option(spec: ArgumentSpec, word: str, *, is_long: bool) -> None:
    """Add an option: `-x=`, `--long=FILE`, `--long=COMMAND`, or with brackets if a value needs the equals sign."""
    option, _, use = word.partition("=")
    takes_next_word = not option.endswith("[")
    name, use = option.rstrip("[").lstrip("-"), use.rstrip("]")
    if takes_next_word and len(name) == 1 and not is_long:
        spec.shorts_with_value += name
    elif takes_next_word:
        spec.longs_with_value += (name,)
    if use == "FILE":
        spec.output_options += (name,)
    elif use == "COMMAND":
        spec.command_options += (name,)


@cache
def dangerous_subcommands(program: str) -> tuple[Subcommand, ...]:
    """Return the subcommands of a program that need approval."""
    return tuple(
        Subcommand(tuple(phrase.split()), reason, key)
        for key, reason in _SUBCOMMAND_REASONS.items()
        if program in rows(key)
        for phrase in rows(key)[program].split(",")
    )


@cache
def with_dangerous_subcommands() -> frozenset[str]:
    """Return the programs that have subcommands that need approval."""
    return frozenset(program for key in _SUBCOMMAND_REASONS for program in rows(key))


@cache
def dangerous_options(program: str) -> DangerousOptions | None:
    """Return the options of a program that need approval, or None."""
    row = rows("options").get(program)
    if row is None:
        return None
    words, _, values = row.partition(" values=")
    return DangerousOptions(tuple(word.lstrip("-") for word in words.split()), values)


@cache
def dangerous_form(program: str) -> tuple[str, tuple[str, ...]] | None:
    """Return why a program needs approval if its arguments match the expressions, and the expressions, or None."""
    reason, _, forms = rows("form").get(program, "").partition(": ")
    return (reason, tuple(forms.split(" "))) if reason else None


@cache
def known_verbs(program: str) -> frozenset[str] | None:
    """Return the subcommands of a program that need no approval, or None if they are not listed."""
    row = rows("verbs").get(program)
    if row is None:
        return None
    words = row.split()
    return frozenset(words) | {f"{word.partition('/')[0]}/" for word in words if "/" in word}


@cache
def known_programs() -> frozenset[str]:
    """Return the names of the programs that are harmless in ordinary use."""
    return frozenset(word for _, line in _lines("known.txt") for word in line.split())


def _lines(file: str) -> Iterator[tuple[int, str]]:
    lines = read_text(f"policy/shell/{file}").split("\n")
    return ((number, line) for number, line in enumerate(lines, 1) if line and line[0] != "#")


@cache
def _load_programs() -> dict[str, dict[str, tuple[str, int]]]:
    """Return the rows of `programs.txt` with their line numbers, by key and program."""
    table: dict[str, dict[str, tuple[str, int]]] = {}
    programs: list[str] = []
    key, value, start = "", "", 0

    def end_row() -> None:
        if key:
            table.setdefault(key, {}).update(dict.fromkeys(programs, (value, start)))

    for number, line in _lines("programs.txt"):
        if line.startswith("    "):
            value += line[3:]
            continue
        end_row()
        if line[0] == " ":
            key, _, value = line[2:].partition(" ")
            start = number
        else:
            programs = [*programs, *line.split()] if not key else line.split()  # names may take several lines
            key = ""
    end_row()
    return table


@cache
def _load_groups() -> dict[str, frozenset[str]]:
    return parse_word_lists(read_text("policy/shell/groups.txt"))


def is_compiler_output(path: str) -> bool:
    """Return whether a path looks like compiler output, which may be overwritten."""
    base = path.rpartition("/")[2]
    return ("." not in base and not base[:1].isupper()) or base.rpartition(".")[2] in group("compiler-output")
