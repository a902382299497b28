"""What several commands take: the workspace, the model and what a run without a person may do."""

import argparse
import os
from typing import Any, NoReturn

from ostler.app.run_options import RunOptions
from ostler.core.errors import UsageError

_MODEL_FLAGS = ("model", "base_url", "api_key", "api_kind", "dialect", "thinking", "explain_cache")


class Parser(argparse.ArgumentParser):
    """argparse whose complaint is one sentence and exit 2, and which takes no half of an option's name for it."""

    def __init__(self, prog: str | None = None, **options: Any) -> None:
        super().__init__(prog, allow_abbrev=False, formatter_class=_formatter, **options)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}", hint=f"`{self.prog} --help` tells what it takes")


def _formatter(prog: str) -> argparse.HelpFormatter:
    """argparse makes one for every option, and would ask `shutil` each time how wide the terminal is."""
    return argparse.HelpFormatter(prog, width=_columns() - 2)


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", 0)) or os.get_terminal_size(1).columns or 80
    except (OSError, ValueError):
        return 80


def add_workspace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cwd", metavar="DIR", default=".", help="the workspace (default: this folder)")


def add_backend(parser: argparse.ArgumentParser) -> None:
    told = "who thinks: engine (the default), or acp:NAME for an ACP agent; an earlier session knows its own"
    parser.add_argument("--backend", metavar="NAME", default="", help=told)


def add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument("-m", "--model", metavar="NAME", help="a profile's name, a model's id, or embedded")
    group.add_argument("--base-url", metavar="URL", help="an OpenAI-compatible endpoint")
    group.add_argument("--api-key", metavar="KEY", help="its key (better: set OSTLER_API_KEY)")
    group.add_argument("--api-kind", choices=("openai", "anthropic"), help="how the endpoint speaks")
    group.add_argument(
        "--dialect", choices=("native", "xnl", "text"), help="how tools are called: the API's own calls, or in the text"
    )
    group.add_argument("--thinking", choices=("off", "low", "medium", "high"), help="how much the model shall reason")
    group.add_argument(
        "--explain-cache",
        action="store_const",
        const="yes",
        help="tell what each request begins with of the one before, as prefix caches need it",
    )


def add_permission_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what it may do without asking")
    group.add_argument("--write", action="store_true", help="change files in the workspace")
    group.add_argument("--yolo", action="store_true", help="--write, and read anywhere")
    group.add_argument("--allow", metavar="RULE", action="append", default=[], help="e.g. 'bash:git *'; repeatable")
    group.add_argument("--profile", choices=("paranoid", "balanced", "god_mode"), help="the security profile")
    group.add_argument("--trust-project", action="store_true", help="let the project's own settings widen and run")


def add_resume_options(parser: argparse.ArgumentParser) -> None:
    """With which session to go on; a variable that is not set names none, and is no wish for a new one."""
    parser.add_argument("--resume", metavar="SESSION", type=non_empty, help="go on with an earlier session")
    parser.add_argument(
        "-c", "--continue", dest="resume", action="store_const", const="last", help="go on with this folder's last one"
    )


def non_empty(text: str) -> str:
    """Something that is there."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text


def seconds(text: str) -> float:
    """A time that can pass."""
    value = float(text)
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds")
    return value


def count(text: str) -> int:
    """A number of things, at least one."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def dollars(text: str) -> float:
    """A sum that can be spent."""
    value = float(text)
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is no sum of US dollars")
    return value


def add_limit_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the most that a turn may use")
    group.add_argument("--max-steps", "--max-turns", metavar="N", type=count, default=0, help="model calls")
    group.add_argument("--max-tokens", metavar="N", type=count, default=0, help="tokens, in and out")
    group.add_argument("--max-cost", metavar="USD", type=dollars, default=0, help="US dollars")
    group.add_argument("--max-time", metavar="SECONDS", type=seconds, default=0, help="seconds")
    parser.add_argument("--ephemeral", action="store_true", help="keep nothing on disk")


def run_options(args: argparse.Namespace) -> RunOptions:
    """The flags as plain values."""
    return RunOptions(
        cwd=args.cwd,
        agent=getattr(args, "agent", ""),
        backend=getattr(args, "backend", ""),
        model=model_flags(args),
        write=args.write or args.yolo,
        yolo=args.yolo,
        allow=tuple(args.allow),
        profile=args.profile or "",
        trust=args.trust_project,
        max_steps=args.max_steps,
        max_tokens=args.max_tokens,
        max_cost=args.max_cost,
        max_time=args.max_time,
        ephemeral=args.ephemeral,
    )


def model_flags(args: argparse.Namespace) -> dict[str, str]:
    """The model flags that were given."""
    flags = {name: getattr(args, name) for name in _MODEL_FLAGS}
    return {name: value for name, value in flags.items() if value}
