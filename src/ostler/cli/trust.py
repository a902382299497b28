"""`ostler trust`: let a project's own settings widen permissions and run programs, as they are now."""

import os
import sys
from pathlib import Path

from ostler.cli.arguments import Parser, add_workspace


def main(arguments: list[str]) -> int:
    """Show what trust is about, and give it or take it back."""
    parser = Parser(
        "ostler trust",
        description="A project's settings that run programs, name endpoints or widen permissions count only once you "
        "trust them. Trust is for them as they are: when they change, they wait again.",
    )
    parser.add_argument("--yes", action="store_true", help="trust them without being asked")
    parser.add_argument("--revoke", action="store_true", help="take trust back")
    add_workspace(parser)
    given = parser.parse_args(arguments)
    cwd = Path(given.cwd).resolve()
    return _revoke(cwd) if given.revoke else _grant(cwd, yes=given.yes)


def _revoke(cwd: Path) -> int:
    from ostler.app.trusted_settings import trust_store

    sys.stdout.write(f"{cwd} is no longer trusted\n" if trust_store().revoke(cwd) else f"{cwd} was not trusted\n")
    return 0


def _grant(cwd: Path, *, yes: bool) -> int:
    from ostler.app.trusted_settings import collect_trust_items, trust_diff, trust_store
    from ostler.settings.load import load
    from ostler.text.sanitise import escape_invisible

    parts, book = collect_trust_items(cwd, load(cwd, os.environ)), trust_store()
    if book.is_trusted(cwd, parts.digest):
        sys.stdout.write(f"{cwd} is trusted with these settings:\n" + _indent_lines(list(parts.lines)))
        return 0
    if not parts:
        sys.stdout.write(f"{cwd} has no settings that wait for trust\n")
        if yes:
            book.grant(cwd, parts.digest, parts.lines)
            sys.stdout.write("trusted, so that its check after edits runs unasked\n")
        return 0
    shown = [escape_invisible(line) for line in trust_diff(book.find_grant(cwd), parts.lines)]
    sys.stdout.write(f"{cwd} wants these settings:\n" + _indent_lines(shown))
    if not yes and not _ask_consent():
        sys.stdout.write("not trusted; nothing was changed\n")
        return 4
    book.grant(cwd, parts.digest, parts.lines)
    sys.stdout.write("trusted, as they are now\n")
    return 0


def _indent_lines(lines: list[str]) -> str:
    return "".join(f"  {line}\n" for line in lines)


def _ask_consent() -> bool:
    """Only a clear yes at a terminal counts; nobody there means no."""
    if not sys.stdin.isatty():
        return False
    return input("Trust them? [y/N] ").strip().lower() in ("y", "yes")
