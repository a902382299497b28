"""`ostler trust`: shows, grants or revokes trust in the project's own settings."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ostler.cli.arguments import Parser, add_workspace

if TYPE_CHECKING:
    from ostler.settings.effective import Settings

CHANGED_NOTE = (
    "A model may have changed files here since you trusted them. Until you trust them again, hooks that could load\n"
    "them run in the sandbox. Review the files that the hooks load, also those that are not listed.\n"
)


def main(arguments: list[str]) -> int:
    """Show the settings that need trust, then grant or revoke it."""
    parser = Parser(
        "ostler trust",
        description="Trust the project's settings. Until then, settings that run programs, set endpoints or extend "
        "permissions are ignored. If they change later, you have to trust them again.",
    )
    parser.add_argument("--yes", action="store_true", help="trust the settings without asking")
    parser.add_argument("--revoke", action="store_true", help="revoke the trust")
    add_workspace(parser)
    args = parser.parse_args(arguments)
    cwd = Path(args.cwd).resolve()
    return _revoke(cwd) if args.revoke else _grant(cwd, yes=args.yes)


def _revoke(cwd: Path) -> int:
    from ostler.knowledge.trusted_settings import trust_store

    sys.stdout.write(f"{cwd} is no longer trusted\n" if trust_store().revoke(cwd) else f"{cwd} was not trusted\n")
    return 0


def _grant(cwd: Path, *, yes: bool) -> int:
    from ostler.knowledge.trusted_settings import collect_trust_items, trust_diff, trust_store
    from ostler.settings.load import load
    from ostler.text.sanitise import escape_invisible

    settings = load(cwd, os.environ)
    items, store = collect_trust_items(cwd, settings), trust_store()
    changed = store.may_be_changed(cwd)
    if store.is_trusted(cwd, items.digest) and not changed:
        sys.stdout.write(f"{cwd} is trusted, with these settings:\n" + _indent_lines(list(items.lines)))
        return 0
    if changed:
        sys.stdout.write(CHANGED_NOTE)
    if not items:
        if not yes and not changed:
            sys.stdout.write(f"{cwd} has no settings that need trust\n")
            return 0
        granted = (
            f"{cwd} is trusted: the check after edits runs without asking. It has no other settings that need trust."
        )
    else:
        lines = [escape_invisible(line) for line in trust_diff(store.find_grant(cwd), items.lines)]
        sys.stdout.write(f"{cwd} has these settings that need trust:\n" + _indent_lines(lines))
        sys.stdout.write("".join(f"{line}\n" for line in _describe_servers(settings)))
        granted = "Trusted. If these settings change, you will be asked again."
    if not yes and not _ask_consent():
        sys.stdout.write("Not trusted.\n")
        return 4
    store.grant(cwd, items.digest, items.lines)
    sys.stdout.write(f"{granted}\n")
    return 0


def _describe_servers(settings: "Settings") -> list[str]:
    """Return where each MCP server of the project would run. `settings` must be those without trust."""
    from ostler.mcp.server_entry import confinement
    from ostler.text.sanitise import escape_invisible

    before, after = settings.config.mcp, settings.with_trust().config.mcp
    local = {name: config for name, config in after.items() if config.command and config != before.get(name)}
    return [
        escape_invisible(f"The MCP server {name} would run {confinement(config.sandbox, config.network)}.")
        for name, config in local.items()
        if config.enabled
    ]


def _indent_lines(lines: list[str]) -> str:
    return "".join(f"  {line}\n" for line in lines)


def _ask_consent() -> bool:
    """Return whether the user answers yes; False if standard input is not a terminal."""
    if not sys.stdin.isatty():
        return False
    return input("Trust these settings? [y/N] ").strip().lower() in ("y", "yes")
