"""Reads the options of a command line the way getopt does: bundles, glued values, shortened long names."""

from collections import deque
from collections.abc import Sequence

import msgspec

from ostler.policy.shell.args import Arg


class Options(msgspec.Struct):
    """Options in order with their values, long ones with their dashes, and the operands."""

    given: list[tuple[str, Arg | None]]
    operands: list[Arg]
    longs: Sequence[str] = ()

    def has(self, *names: str) -> bool:
        """Whether one of the options was given; long names also match when shortened."""
        return any(self._is(given, name) for given, _ in self.given for name in names)

    def values(self, *names: str) -> list[Arg]:
        """The values given to any of these options."""
        return [value for given, value in self.given if value is not None and any(self._is(given, n) for n in names)]

    def value(self, *names: str) -> Arg | None:
        """The last value given to any of these options."""
        found = self.values(*names)
        return found[-1] if found else None

    def _is(self, given: str, name: str) -> bool:
        if len(name) == 1 or not given.startswith("--"):
            return given in {name, f"--{name}"}
        return given[2:] == name or (given[2:] not in self.longs and name.startswith(given[2:]))


def parse(
    args: Sequence[Arg], valued: str = "", longs: Sequence[str] = (), *, early: bool = False, whole: bool = False
) -> Options:
    """Options and operands; `valued` short and `longs` long ones take a value.

    `early` ends at the first operand; `whole` takes no shortened names.
    """
    options = Options([], [], longs)
    rest = deque(args)
    while rest:
        arg = rest.popleft()
        text = arg.text
        if text == "--":
            options.operands.extend(rest)
            break
        if text.startswith("--"):
            _long(options, arg, rest, longs, whole)
        elif text.startswith("-") and len(text) > 1:
            _short(options, arg, rest, valued)
        elif early:
            options.operands.extend([arg, *rest])
            break
        else:
            options.operands.append(arg)
    return options


def _long(options: Options, arg: Arg, rest: deque[Arg], longs: Sequence[str], whole: bool) -> None:
    name, equals, value = arg.text[2:].partition("=")
    if equals:
        options.given.append((f"--{name}", Arg(value, arg.glob, origin=arg.origin)))
    elif name and rest and (name in longs if whole else any(long.startswith(name) for long in longs)):
        options.given.append((f"--{name}", rest.popleft()))
    else:
        options.given.append((f"--{name}", None))


def _short(options: Options, arg: Arg, rest: deque[Arg], valued: str) -> None:
    letters = arg.text[1:]
    for at, letter in enumerate(letters):
        if letter not in valued:
            options.given.append((letter, None))
            continue
        glued = letters[at + 1 :]
        value = Arg(glued, arg.glob, origin=arg.origin) if glued else rest.popleft() if rest else None
        options.given.append((letter, value))
        return
