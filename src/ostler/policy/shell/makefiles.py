"""Parses makefiles as far as the analysis needs them: variables, rules and recipes; nothing is run."""

import re
from collections.abc import Callable, Iterable

import msgspec

from ostler.policy.shell.expanded_words import UNKNOWN_TEXT

MAX_VALUES = 8  # of a variable
BUILT_IN = {
    "RM": "rm -f", "CC": "cc", "CXX": "g++", "CPP": "cc -E", "AR": "ar", "ARFLAGS": "rv", "AS": "as", "LD": "ld",
    "FC": "f77", "LEX": "lex", "YACC": "yacc", "CO": "co", "GET": "get", "SHELL": "/bin/sh", ".SHELLFLAGS": "-c",
    "COMPILE.c": "cc -c", "LINK.c": "cc", "COMPILE.cc": "g++ -c", "LINK.cc": "g++", "LINK.o": "cc",
}  # fmt: skip
_ASSIGNMENT = re.compile(r"([^\s:;#=+?!]+)\s*(:{0,3}=|\?=|\+=|!=)\s*(.*)", re.DOTALL)
_CONDITIONAL = re.compile(r"(?:ifn?eq|ifn?def|else|endif)\b")
_PREFIX = re.compile(r"(?:override|private)\s+")
_INCLUDE = re.compile(r"(?:-|s)?include\s+(.*)", re.DOTALL)
_IGNORED = re.compile(r"(?:vpath|unexport|undefine|load|-load)\b|\$[({](?:info|warning|error)\b|export\s+[\w\s]*$")
_DEFINE = re.compile(r"(?:override\s+|export\s+)*define\s+(\S+)(?:\s*[:?+!]?=)?\s*")
_CONTINUATION = re.compile(r"\s*\\\n\s*")
_COMMENT = re.compile(r"(?<!\\)#.*", re.DOTALL)


class MakeRule(msgspec.Struct, eq=False):
    """A rule. `pattern` is the middle part of a static pattern rule."""

    targets: str
    prerequisites: str
    recipe: list[str]
    pattern: str = ""


class Makefile:
    """The variables and rules of a makefile. A variable has every value that the file assigns in any branch."""

    def __init__(self, read_include: Callable[[str], str]) -> None:
        self._read_include = read_include  # raises OSError
        self.variables: dict[str, list[str]] = {}
        self.rules: list[MakeRule] = []
        self.exported: list[str] = []
        self.shell_texts: list[str] = []  # run while make reads the file
        self.global_texts: list[str] = []  # may contain functions with effects, such as $(shell …)
        self._branch_depth = 0
        self.unread_reason = ""  # why it cannot be read for certain

    def parse(self, text: str) -> None:
        """Add the content of a file."""
        open_rule: MakeRule | None = None
        lines = iter(_logical_lines(text))
        for line in lines:
            if line.startswith("\t") and open_rule is not None:
                open_rule.recipe.append(line.lstrip("\t "))
                continue
            line = _PREFIX.sub("", _COMMENT.sub("", _CONTINUATION.sub(" ", line)).strip())
            if define := _DEFINE.fullmatch(line):
                self._assign(define[1], "=", _define_body(lines))
            elif conditional := _CONDITIONAL.match(line):
                self._branch_depth += {"else": 0, "endif": -1}.get(conditional[0], 1)
            elif line and not _IGNORED.match(line):
                open_rule = self._parse_line(line)

    def _parse_line(self, line: str) -> MakeRule | None:
        """Parse an include, an assignment or a rule. Return the rule, whose recipe may follow."""
        if include := _INCLUDE.fullmatch(line):
            self._include(include[1])
        elif assignment := _ASSIGNMENT.fullmatch(line.removeprefix("export").lstrip()):
            self._assign(assignment[1], assignment[2], assignment[3])
            if line.startswith("export"):
                self.exported.append(assignment[1])
        elif rule := _split_at_colon(line):
            return self._add_rule(*rule)
        elif "$" in line:  # without one, make reports an error and runs nothing
            self.global_texts.append(line)
            self.unread_reason = f"its makefile has a line that cannot be analysed ({line[:40]})"
        return None

    def _include(self, names: str) -> None:
        for name in names.split():
            if "$" in name or set("*?[") & set(name):
                self.unread_reason = f"its makefile includes {name[:40]}, which is known only at run time"
                continue
            try:
                text = self._read_include(name)
            except OSError:
                continue
            self.parse(text)

    def _assign(self, name: str, operator: str, value: str, *, for_target: bool = False) -> None:
        if "$" in name or name == ".RECIPEPREFIX":
            self.unread_reason = f"its makefile sets {name[:40]}, which cannot be analysed"
        if operator == "!=":
            self.shell_texts.append(value)
            value = UNKNOWN_TEXT
        values = self.variables.setdefault(name, [])
        if not values and name in BUILT_IN and (for_target or self._branch_depth > 0):
            values.append(f"$({name})")  # elsewhere it keeps its own value
        if operator == "+=" and values:
            values[:] = [f"{old} {value}" for old in values]
        elif value not in values:
            values.append(value)
        self.global_texts.append(value)
        if len(values) > MAX_VALUES:
            self.unread_reason = f"its makefile sets {name} too often to analyse it"

    def _add_rule(self, targets: str, rest: str) -> MakeRule | None:
        if assignment := _ASSIGNMENT.fullmatch(rest.removeprefix("export ")):
            self._assign(assignment[1], assignment[2], assignment[3], for_target=True)
            return None
        prerequisites, semicolon, command = rest.partition(";")
        static = _split_at_colon(prerequisites)
        rule = MakeRule(targets, prerequisites, [command.strip()] if semicolon else [])
        if static:
            rule.pattern, rule.prerequisites = static
        self.rules.append(rule)
        self.global_texts += [targets, prerequisites]
        return rule


def _split_at_colon(line: str) -> tuple[str, str] | None:
    """Return the texts before and after the colon of a rule, or None if there is none outside of references."""
    depth = 0
    for index, character in enumerate(line):
        depth += (character in "({") - (character in ")}")
        if character == ":" and depth <= 0:
            return line[:index].rstrip("& "), line[index:].lstrip(":").strip()
    return None


def _logical_lines(text: str) -> Iterable[str]:
    """Yield the lines; a line that ends with a backslash includes the next one."""
    pending: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        pending.append(line if not pending else line.removeprefix("\t"))
        if (len(line) - len(line.rstrip("\\"))) % 2:
            continue
        yield "\n".join(pending)
        pending = []
    if pending:
        yield "\n".join(pending)


def _define_body(lines: Iterable[str]) -> str:
    body: list[str] = []
    for line in lines:
        if line.strip() == "endef":
            break
        body.append(line)
    return "\n".join(body)
