"""Expands variables and functions of makefiles; what depends on the outside becomes unknown text."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice

from ostler.policy.shell.expanded_words import UNKNOWN_TEXT
from ostler.policy.shell.makefiles import BUILT_IN

MAX_LENGTH = 262144  # characters of all expansions together
_MAX_DEPTH = 24
_MAX_PRODUCT = 10_000_000  # characters that a text function may produce
_MAX_MATCHES = 500
_FUNCTION = re.compile(r"([a-z][a-z-]+)[ \t\n]+(.*)", re.DOTALL)
_SUBSTITUTION = re.compile(r"([^:=\s]+):([^=]*)=(.*)", re.DOTALL)


class MakeTooLarge(Exception):
    """Raised when a makefile expands to too much text."""


class MakeExpander:
    """Expands text with one choice of values: a variable with several values gets the one at index `variant`."""

    def __init__(
        self,
        variables: Mapping[str, Sequence[str]],
        overrides: Mapping[str, str],
        lookup: Callable[[str], str],
        folder: str,
        run_shell: Callable[[str], None],
    ) -> None:
        self._variables = variables
        self._overrides = overrides
        self._lookup = lookup  # the value of a variable that the makefile does not set
        self._folder = folder  # empty if it is unknown
        self._run_shell = run_shell
        self._length = 0
        self._depth = 0
        self._active: dict[str, int] = {}
        self.variant = 0
        self.automatic: dict[str, str] = {}

    def expand(self, text: str) -> str:
        """Return the text with every reference replaced."""
        if "$" not in text:
            return text
        self._depth += 1
        result: list[str] = []
        index = 0
        while index < len(text):
            dollar = text.find("$", index)
            if dollar < 0 or dollar + 1 == len(text):
                result.append(text[index:].removesuffix("$"))
                break
            result.append(text[index:dollar])
            value, index = self._expand_reference(text, dollar + 1)
            result.append(value)
        self._depth -= 1
        expanded = "".join(result)
        self._length += len(expanded)
        if self._length > MAX_LENGTH:
            raise MakeTooLarge
        return expanded

    def words(self, text: str) -> list[str]:
        """Return the words of the expanded text."""
        return self.expand(text).split()

    def _expand_reference(self, text: str, index: int) -> tuple[str, int]:
        """Expand the reference after a `$`. Return its value and the index after it."""
        character = text[index]
        if character == "$":
            return "$", index + 1
        if character not in "({":
            return self._variable(character), index + 1
        end = _closing_bracket(text, index)
        if self._depth > _MAX_DEPTH or end < 0:
            return UNKNOWN_TEXT, len(text) if end < 0 else end + 1
        return self._expand_body(text[index + 1 : end]), end + 1

    def _expand_body(self, body: str) -> str:
        if (function := _FUNCTION.fullmatch(body)) and "$" not in function[1]:
            return self._call(function[1], function[2])
        body = self.expand(body)
        if substitution := _SUBSTITUTION.fullmatch(body):
            name, old, new = substitution.groups()
            old, new = (old, new) if "%" in old else (f"%{old}", f"%{new}")
            return " ".join(_patsubst(old, new, word) for word in self._variable(name).split())
        return self._variable(body.strip())

    def _variable(self, name: str) -> str:
        if name in self.automatic:
            return self.automatic[name]
        if name in self._overrides:
            return self._overrides[name]
        values = self._variables.get(name)
        if not values:
            return self._lookup(name) or BUILT_IN.get(name, "")
        index = min(self.variant, len(values) - 1, self._active.get(name, len(values)) - 1)
        if index < 0:
            return self._lookup(name) or BUILT_IN.get(name, "")
        before = self._active.get(name)
        self._active[name] = index  # a value that mentions its own name means the value before
        expanded = self.expand(values[index])
        self._active.pop(name) if before is None else self._active.update({name: before})
        return expanded

    def _call(self, name: str, text: str) -> str:
        if name in {"info", "warning", "error"}:
            return ""
        arguments = [self.expand(argument) for argument in _split_arguments(text)]
        if name == "shell":
            self._run_shell(",".join(arguments))
        elif name == "file":
            self._run_shell(arguments[0] if arguments[0].startswith(">") else ":")
            return ""
        elif name == "call":
            return self._call_variable(arguments)
        elif name == "wildcard":
            return self._wildcard(arguments[0])
        elif name in {"if", "or", "and"} and UNKNOWN_TEXT not in arguments[0]:
            return _choose(name, [argument.strip() for argument in arguments])
        elif name in _TEXT_FUNCTIONS and UNKNOWN_TEXT not in "".join(arguments):
            if len(arguments[-1]) * max(len(argument) for argument in arguments) > _MAX_PRODUCT:
                raise MakeTooLarge
            try:
                return _TEXT_FUNCTIONS[name](arguments)
            except IndexError:
                return ""
        return UNKNOWN_TEXT

    def _call_variable(self, arguments: list[str]) -> str:
        outer = self.automatic
        self.automatic = {**outer, **{str(index): argument for index, argument in enumerate(arguments)}}
        value = self._variable(arguments[0].strip())
        self.automatic = outer
        return value

    def _wildcard(self, patterns: str) -> str:
        from glob import iglob

        is_far = any(pattern.startswith("/") or pattern.count("/") > 3 for pattern in patterns.split())
        if not patterns.replace("\n", " ").isprintable() or is_far or not self._folder:
            return UNKNOWN_TEXT
        found = [
            match
            for pattern in patterns.split()
            for match in islice(iglob(pattern, root_dir=self._folder), _MAX_MATCHES)
        ]
        return UNKNOWN_TEXT if len(found) >= _MAX_MATCHES else " ".join(sorted(found))


def match_pattern(pattern: str, word: str) -> str | None:
    """Return what `%` stands for if the pattern may match the word, or None; unknown text matches anything."""
    if UNKNOWN_TEXT in word:
        return UNKNOWN_TEXT
    parts = [re.escape(part).replace(UNKNOWN_TEXT, ".*") for part in pattern.split("%", 1)]
    found = re.fullmatch("(.+)".join(parts), word, re.DOTALL)
    return None if found is None else found[1] if "%" in pattern else ""


def _closing_bracket(text: str, index: int) -> int:
    """Return the index of the bracket that closes the one at an index, or -1."""
    opening, closing = text[index], ")" if text[index] == "(" else "}"
    depth = 0
    for position in range(index, len(text)):
        depth += (text[position] == opening) - (text[position] == closing)
        if not depth:
            return position
    return -1


def _split_arguments(text: str) -> list[str]:
    arguments, depth = [""], 0
    for character in text:
        depth += (character in "({") - (character in ")}")
        if character == "," and not depth:
            arguments.append("")
        else:
            arguments[-1] += character
    return arguments


def _choose(name: str, arguments: list[str]) -> str:
    if name == "if":
        return [*arguments, ""][1 if arguments[0] else 2] if len(arguments) > 1 else ""
    if name == "or":
        return next(filter(None, arguments), "")
    return arguments[-1] if all(arguments) else ""


def _patsubst(old: str, new: str, word: str) -> str:
    stem = match_pattern(old, word)
    return word if stem is None else new.replace("%", stem, 1)


def _matches_any(word: str, patterns: str) -> bool:
    return any(fnmatchcase(word, pattern.replace("[", "[[]").replace("%", "*")) for pattern in patterns.split())


_TEXT_FUNCTIONS: Mapping[str, Callable[[list[str]], str]] = {
    "strip": lambda args: " ".join(args[0].split()),
    "sort": lambda args: " ".join(sorted(set(args[0].split()))),
    "subst": lambda args: args[2].replace(args[0], args[1]) if args[0] else args[2],
    "patsubst": lambda args: " ".join(_patsubst(args[0], args[1], word) for word in args[2].split()),
    "addprefix": lambda args: " ".join(args[0] + word for word in args[1].split()),
    "addsuffix": lambda args: " ".join(word + args[0] for word in args[1].split()),
    "notdir": lambda args: " ".join(word.rpartition("/")[2] for word in args[0].split()),
    "dir": lambda args: " ".join(word.rpartition("/")[0] + "/" if "/" in word else "./" for word in args[0].split()),
    "basename": lambda args: " ".join(os.path.splitext(word)[0] for word in args[0].split()),
    "filter": lambda args: " ".join(word for word in args[1].split() if _matches_any(word, args[0])),
    "filter-out": lambda args: " ".join(word for word in args[1].split() if not _matches_any(word, args[0])),
    "firstword": lambda args: " ".join(args[0].split()[:1]),
    "lastword": lambda args: " ".join(args[0].split()[-1:]),
}
