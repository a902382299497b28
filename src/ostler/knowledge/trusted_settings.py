"""Loads settings, including the project's own where the user trusts it."""

import os
from collections.abc import Callable
from pathlib import Path

from ostler.core.errors import UsageError
from ostler.settings.effective import Settings
from ostler.settings.home import find_home, require_home
from ostler.settings.load import load
from ostler.settings.trust import TrustGrant, TrustItems, TrustStore, project_trust_items


def load_settings(cwd: Path, *, trust: bool = False) -> Settings:
    """Load the settings. The project's own apply fully with `trust`, or if they are unchanged since trust was given."""
    settings = load(cwd, os.environ)
    return settings.with_trust() if trust or _is_granted(cwd, settings) else settings


def load_settings_leniently(cwd: Path, notify: Callable[[str], None]) -> Settings:
    """Load the settings for a read-only command: if the project's files are invalid, report and skip them."""
    try:
        return load_settings(cwd)
    except UsageError as error:
        settings = load(cwd, os.environ, project=False)
        notify(f"{error.fault.message} (this project's settings are ignored)")
        return settings


def collect_trust_items(cwd: Path, settings: Settings) -> TrustItems:
    """Return everything that needs trust in a project: config, agents, commands, hooks and ACP agents."""
    from ostler.knowledge.acp_trust import agent_trust_items
    from ostler.knowledge.source_folders import find_sources
    from ostler.knowledge.trust_items import trust_items

    items = project_trust_items(settings)
    sources = find_sources(str(cwd), os.environ)
    lines = [*trust_items(sources, settings), *agent_trust_items(cwd, sources)]
    if not lines:
        return items
    import hashlib
    import json

    data = json.dumps([items.digest, lines]).encode()
    return TrustItems(hashlib.sha256(data).hexdigest(), (*items.lines, *lines))


def count_untrusted(cwd: Path, settings: Settings) -> int:
    """Return the number of project settings that are ignored until the project is trusted."""
    if settings.trusted:
        return 0
    return (
        len(settings.pending_trust)
        + len(collect_trust_items(cwd, settings).lines)
        - len(project_trust_items(settings).lines)
    )


def trust_store() -> TrustStore:
    """Return the store of trust grants."""
    return TrustStore(require_home(os.environ))


def find_trust_store() -> TrustStore | None:
    """Return the store of trust grants, or None if there is no home folder."""
    home = find_home(os.environ)
    return TrustStore(home) if home else None


def trust_diff(grant: TrustGrant | None, lines: tuple[str, ...]) -> list[str]:
    """Return the lines to show before trust is given, marked `+` and `-` if there is an earlier grant."""
    if grant is None:
        return [f"  {line}" for line in lines]
    removed = [f"- {line}" for line in grant.parts if line not in lines]
    return removed + [f"{'  ' if line in grant.parts else '+ '}{line}" for line in lines]


def _is_granted(cwd: Path, settings: Settings) -> bool:
    """Return whether trust was granted and the settings are unchanged since."""
    store = find_trust_store()
    grant = store.find_grant(cwd) if store else None
    return grant is not None and grant.digest == collect_trust_items(cwd, settings).digest
