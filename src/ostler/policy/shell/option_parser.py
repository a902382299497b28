"""Parses options like getopt: bundles, attached values, abbreviated long names."""

from collections import deque
from collections.abc import Sequence

import msgspec

from ostler.policy.shell.expanded_words import ExpandedWord


class ParsedOptions(msgspec.Struct):
    """Options with their values in order, and the operands. Names of long options include the dashes."""

    pairs: list[tuple[str, ExpandedWord | None]]
    operands: list[ExpandedWord]
    longs_with_value: Sequence[str] = ()

    def has(self, *names: str) -> bool:
        """Return whether one of the options was given; long names may be abbreviated."""
        return any(self._matches_name(option, name) for option, _ in self.pairs for name in names)

    def values(self, *names: str) -> list[ExpandedWord]:
        """Return the values of all these options."""
        return [
            value
            for option, value in self.pairs
            if value is not None and any(self._matches_name(option, name) for name in names)
        ]

    def value(self, *names: str) -> ExpandedWord | None:
        """Return the last value of any of these options, or None."""
        found = self.values(*names)
        return found[-1] if found else None

    def _matches_name(self, option: str, name: str) -> bool:
        if len(name) == 1 or not option.startswith("--"):
            return option in {name, f"--{name}"}
        return option[2:] == name or (option[2:] not in self.longs_with_value and name.startswith(option[2:]))


def parse_options(
    args: Sequence[ExpandedWord],
    shorts_with_value: str = "",
    longs_with_value: Sequence[str] = (),
    *,
    stop_at_operand: bool = False,
    exact_names: bool = False,
) -> ParsedOptions:
    """Parse options and operands.

    With `stop_at_operand`, everything after the first operand is an operand. With `exact_names`, an
    abbreviated long option does not take the next word as value.
    """
    options = ParsedOptions([], [], longs_with_value)
    rest = deque(args)
    while rest:
        arg = rest.popleft()
        text = arg.text
        if text == "--":
            options.operands.extend(rest)
            break
        if text.startswith("--"):
            _parse_long(options, arg, rest, longs_with_value, exact_names)
        elif text.startswith("-") and len(text) > 1:
            _parse_short(options, arg, rest, shorts_with_value)
        elif stop_at_operand:
            options.operands.extend([arg, *rest])
            break
        else:
            options.operands.append(arg)
    return options


def _parse_long(
    options: ParsedOptions,
    arg: ExpandedWord,
    rest: deque[ExpandedWord],
    longs_with_value: Sequence[str],
    exact_names: bool,
) -> None:
    name, equals, value = arg.text[2:].partition("=")
    if equals:
        options.pairs.append((f"--{name}", ExpandedWord(value, arg.is_glob, origin=arg.origin)))
    elif (
        name
        and rest
        and (name in longs_with_value if exact_names else any(long.startswith(name) for long in longs_with_value))
    ):
        options.pairs.append((f"--{name}", rest.popleft()))
    else:
        options.pairs.append((f"--{name}", None))


def _parse_short(options: ParsedOptions, arg: ExpandedWord, rest: deque[ExpandedWord], shorts_with_value: str) -> None:
    letters = arg.text[1:]
    for index, letter in enumerate(letters):
        if letter not in shorts_with_value:
            options.pairs.append((letter, None))
            continue
        attached = letters[index + 1 :]
        value = ExpandedWord(attached, arg.is_glob, origin=arg.origin) if attached else rest.popleft() if rest else None
        options.pairs.append((letter, value))
        return
