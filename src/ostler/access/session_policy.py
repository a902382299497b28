"""Builds a session's policy from settings and flags."""

from collections.abc import Sequence

from ostler.core.permission import Rule
from ostler.policy.permission_rules import parse_flag
from ostler.policy.presets import BASELINE, BASELINE_READING_ANYWHERE, WRITE_FLAG, YOLO_FLAG
from ostler.policy.verdict import Policy
from ostler.settings.effective import Settings
from ostler.settings.run_options import RunOptions


def make_policy(
    settings: Settings,
    options: RunOptions,
    directories: Sequence[str] = (),
    *,
    interactive: bool,
    is_elsewhere: bool = False,
) -> Policy:
    """Return a policy with the baseline, the rules of the settings layers in order, and the flags.

    `directories` can be read like the workspace, unless a rule of the user denies it. With `is_elsewhere` another
    machine asks for the calls: it may delete nothing, unless a rule of the user allows it.
    """
    security = settings.config.security
    baseline = (*(BASELINE_READING_ANYWHERE if options.yolo else BASELINE), *_directory_rules(directories))
    return Policy(
        rules=(*baseline, *_delete_rules(settings, is_elsewhere=is_elsewhere), *settings.rules()),
        restrictions=(tuple(settings.restricting_rules()),),
        profile=options.profile or security.profile,  # type: ignore[arg-type]  # validated by argparse
        whitelist=security.whitelist,
        flags=_flag_rules(options, settings),
        interactive=interactive,
        allow_sandboxed_by_default=not interactive,
        allow_checks=settings.trusted,
    )


def _directory_rules(directories: Sequence[str]) -> tuple[Rule, ...]:
    patterns = (pattern for folder in directories for pattern in (folder, f"{folder.rstrip('/')}/*"))
    return tuple(Rule("external_directory", pattern, "allow", "additional directories") for pattern in patterns)


def _delete_rules(settings: Settings, *, is_elsewhere: bool) -> tuple[Rule, ...]:
    if action := settings.config.security.delete:
        return (Rule("delete", "*", action, "security.delete"),)
    return (Rule("delete", "*", "deny", "a server may not delete"),) if is_elsewhere else ()


def _flag_rules(options: RunOptions, settings: Settings) -> tuple[Rule, ...]:
    flags = YOLO_FLAG if options.yolo else WRITE_FLAG if options.write else ()
    servers, later = mcp_prefixes(settings) if options.allow else (), options.later_servers
    allowed = (parse_flag(text, servers=servers, later_servers=later) for text in options.allow)
    return (*flags, *allowed)


def mcp_prefixes(settings: Settings) -> tuple[str, ...]:
    """Return the first parts of the names of MCP tools."""
    if not settings.config.mcp:
        return ()
    from ostler.mcp.tool_names import server_prefixes

    return tuple(server_prefixes(list(settings.config.mcp)).values())
