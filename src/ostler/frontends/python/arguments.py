"""The arguments of the Python API, validated like the flags of the command line."""

import sys
from typing import TypedDict, get_args

import msgspec

from ostler.core.errors import UsageError
from ostler.core.sessions import Profile
from ostler.settings.run_options import RunOptions


class SessionFlags(TypedDict, total=False):
    """The flags of `ostler run`, with the same meaning."""

    agent: str
    write: bool
    yolo: bool
    allow: tuple[str, ...]
    profile: str
    mode: str
    trust: bool
    max_steps: int
    max_tokens: int
    max_cost: float
    max_time: float
    ephemeral: bool


def check_argument(argument: str, value: object, attributes: tuple[str, ...], other_type: type) -> None:
    """Raise `UsageError` if the value lacks an attribute, instead of failing in the middle of a turn."""
    missing = [name for name in attributes if not hasattr(value, name)]
    if missing and not isinstance(value, other_type):
        raise UsageError(f"argument {argument} has no {', '.join(missing)}", hint="see docs/python.md")


def make_options(cwd: str, names: dict[str, str], flags: SessionFlags, *, interactive: bool) -> RunOptions:
    """Validate the flags like the command line and return them as `RunOptions`."""
    if unknown := sorted(flags.keys() - SessionFlags.__annotations__.keys()):
        raise UsageError(
            f"open_session has no argument {unknown[0]!r}", hint=f"available: {', '.join(SessionFlags.__annotations__)}"
        )
    try:
        options = msgspec.convert({"cwd": cwd, "model": names, **flags}, RunOptions)
    except msgspec.ValidationError as error:
        raise UsageError(f"invalid argument of open_session: {error}") from None
    if options.profile not in ("", *get_args(Profile)):
        raise UsageError(f"unknown profile {options.profile!r}", hint=f"available: {', '.join(get_args(Profile))}")
    _check_limits(flags)
    options = msgspec.structs.replace(options, write=options.write or options.yolo)
    return options if interactive else options.unattended()


def _check_limits(flags: SessionFlags) -> None:
    """Raise `UsageError` if a limit is zero, negative or too large."""
    for name in ("max_steps", "max_tokens", "max_cost", "max_time"):
        minimum, maximum = (1, sys.maxsize) if name in ("max_steps", "max_tokens") else (sys.float_info.min, 1e9)
        if name in flags and not minimum <= flags[name] <= maximum:
            raise UsageError(
                f"invalid limit {name}={flags[name]}",
                hint="use an integer of at least 1" if minimum == 1 else "use a number above 0 and up to 1e9",
            )
