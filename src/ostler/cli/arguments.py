"""Defines the argument parser and the option groups that several commands share."""

import argparse
import os
import re
from typing import Any, NoReturn, TypeVar, get_args

import msgspec

from ostler.core.errors import UsageError
from ostler.core.sessions import Mode, Profile, Thinking
from ostler.settings.run_options import RunOptions

S = TypeVar("S", bound=msgspec.Struct)

_MODEL_FLAGS = ("model", "base_url", "api_key", "api_kind", "dialect", "thinking", "explain_cache")


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` that raises `UsageError` and does not accept abbreviated options."""

    def __init__(self, prog: str | None = None, **options: Any) -> None:
        super().__init__(prog, allow_abbrev=False, formatter_class=_formatter, **options)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}", hint=f"see `{self.prog} --help`")


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return a formatter with a fixed width: argparse creates one per option and would query the terminal each time."""
    return argparse.HelpFormatter(prog, width=_columns() - 2)


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", 0)) or os.get_terminal_size(1).columns or 80
    except (OSError, ValueError):
        return 80


def add_workspace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cwd", metavar="DIR", default=".", help="the workspace (default: the current directory)")


def add_backend(parser: argparse.ArgumentParser) -> None:
    text = (
        "backend: engine (default), acp:NAME for an ACP agent, remote:URL for an Ostler server or agent_zero; "
        "a resumed session keeps its backend"
    )
    parser.add_argument("--backend", metavar="NAME", default="", help=text)
    add_take_tools(parser)


def add_take_tools(parser: argparse.ArgumentParser) -> None:
    text = "run the tools of a server's session on this machine, also if another one runs them now"
    parser.add_argument("--take-tools", action="store_true", help=text)


def add_model(parser: argparse.ArgumentParser) -> None:
    from ostler.settings.schema_models import ApiKind, DialectName

    group = parser.add_argument_group("model")
    group.add_argument("-m", "--model", metavar="NAME", help="a profile name, a model id, or embedded")
    group.add_argument("--base-url", metavar="URL", help="address of the model's endpoint")
    group.add_argument("--api-key", metavar="KEY", help="API key (safer: set OSTLER_API_KEY)")
    group.add_argument("--api-kind", choices=get_args(ApiKind), help="API of the endpoint")
    group.add_argument(
        "--dialect", choices=get_args(DialectName), help="tool call format: native API calls, or calls in the text"
    )
    group.add_argument("--thinking", choices=get_args(Thinking), help="reasoning effort")
    group.add_argument(
        "--explain-cache",
        action="store_const",
        const="yes",
        help="report how much of each request a prefix cache can reuse",
    )


def add_permission_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("permissions")
    group.add_argument("--write", action="store_true", help="allow changing files in the workspace")
    group.add_argument("--yolo", action="store_true", help="like --write, and allow reading files anywhere")
    group.add_argument(
        "--allow",
        metavar="RULE",
        action="append",
        default=[],
        help="allow calls that match RULE, e.g. 'bash:git *'; repeatable",
    )
    group.add_argument("--profile", choices=get_args(Profile), help="security profile")
    group.add_argument(
        "--trust-project",
        dest="trust",
        action="store_true",
        help="trust the project's settings for this run: they may extend permissions and run programs",
    )


def add_mode(parser: argparse.ArgumentParser) -> None:
    text = "ask before changes, accept edits in the workspace without asking, or plan without changing anything"
    parser.add_argument("--mode", choices=get_args(Mode), default="", help=text)


def add_resume_options(parser: argparse.ArgumentParser) -> None:
    """Add `--resume` and `--continue`. An empty id is an error: it is probably an unset shell variable."""
    parser.add_argument(
        "--resume", metavar="SESSION", type=non_empty, help="resume a session: its id, a part of it, or last"
    )
    parser.add_argument(
        "-c",
        "--continue",
        dest="resume",
        action="store_const",
        const="last",
        help="resume the workspace's last session",
    )


def add_access_options(parser: argparse.ArgumentParser) -> None:
    """Add what a session may do and use, and whether it is saved."""
    add_permission_options(parser)
    add_mode(parser)
    add_turn_limits(parser)
    parser.add_argument("--ephemeral", action="store_true", help="do not save the session")


def add_session_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a session without those of its backend and model."""
    add_resume_options(parser)
    add_agent(parser)
    add_workspace(parser)
    add_access_options(parser)


def non_empty(text: str) -> str:
    """Argument type: text that is not blank."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the value is empty")
    return text


def seconds(text: str) -> float:
    """Argument type: a positive number of seconds."""
    return _positive(text, "number of seconds")


def days(text: str) -> float:
    """Argument type: a number of days, or 0 for no limit."""
    return 0.0 if re.fullmatch(r"0+(\.0*)?", text) else _positive(text, "number of days, or 0", 36_500)


def minutes(text: str) -> float:
    """Argument type: a positive number of minutes, at most those of a year."""
    return _positive(text, "number of minutes", 525_600)


def limit(text: str) -> int:
    """Argument type: a whole number of at least 0, where 0 stands for the default."""
    return 0 if text == "0" else count(text)


def count(text: str) -> int:
    """Argument type: an integer of at least 1."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def dollars(text: str) -> float:
    """Argument type: a positive amount in US dollars."""
    return _positive(text, "amount of US dollars")


def _positive(text: str, quantity: str, most: float = 1e9) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text[:40]} is not a positive {quantity}")
    if value > most:
        raise argparse.ArgumentTypeError(f"{text[:40]} is too large; at most {most:.0f} is possible")
    return value


def add_agent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", metavar="NAME", default="", help="the agent to use: build, plan, or one you defined")


def add_turn_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits of a turn")
    group.add_argument(
        "--max-steps", "--max-turns", metavar="N", type=count, default=0, help="maximum number of model calls"
    )
    group.add_argument(
        "--max-tokens", metavar="N", type=count, default=0, help="maximum number of input and output tokens"
    )
    group.add_argument("--max-cost", metavar="USD", type=dollars, default=0, help="maximum cost in US dollars")
    group.add_argument("--max-time", metavar="SECONDS", type=seconds, default=0, help="maximum duration")


def fill(kind: type[S], args: argparse.Namespace, **others: object) -> S:
    """Return a struct with the parsed arguments that have the names of its fields, and the other values."""
    values = vars(args) | others
    given = {name: values[name] for name in kind.__struct_fields__ if values.get(name) is not None}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})


def run_options(args: argparse.Namespace) -> RunOptions:
    """Return the parsed flags as `RunOptions`."""
    options = fill(RunOptions, args, model=model_flags(args))
    return msgspec.structs.replace(options, write=options.write or options.yolo)


def model_flags(args: argparse.Namespace) -> dict[str, str]:
    """Return the model flags that are set."""
    flags = {name: getattr(args, name, "") for name in _MODEL_FLAGS}
    return {name: value for name, value in flags.items() if value}
