"""Settings for a workspace, with as much of the project's own as the person trusts it with."""

import os
from collections.abc import Callable
from pathlib import Path

from ostler.core.errors import UsageError
from ostler.settings.effective import Settings
from ostler.settings.home import find_home, require_home
from ostler.settings.load import load
from ostler.settings.trust import TrustGrant, TrustItems, TrustStore, project_trust_items


def load_settings(cwd: Path, *, trust: bool = False) -> Settings:
    """The settings in force: a project's own count in full with the flag, or while they are as they were trusted."""
    settings = load(cwd, os.environ)
    return settings.with_trust() if trust or _is_granted(cwd, settings) else settings


def load_settings_leniently(cwd: Path, notify: Callable[[str], None]) -> Settings:
    """The same for a command that runs nothing here: files of the project that cannot be used are told and left out."""
    try:
        return load_settings(cwd)
    except UsageError as error:
        settings = load(cwd, os.environ, project=False)
        notify(f"{error.fault.message} (so this project's settings are left out)")
        return settings


def collect_trust_items(cwd: Path, settings: Settings) -> TrustItems:
    """All that trust in a project is about: its config, what its agents, commands and hooks want beyond words, and
    the ACP agents it names."""
    from ostler.app.acp_trust import agent_trust_items
    from ostler.knowledge.source_folders import find_sources
    from ostler.knowledge.trust_items import trust_items

    parts = project_trust_items(settings)
    sources = find_sources(str(cwd), os.environ)
    lines = [*trust_items(sources, settings), *agent_trust_items(cwd, sources)]
    if not lines:
        return parts
    import hashlib
    import json

    data = json.dumps([parts.digest, lines]).encode()
    return TrustItems(data, hashlib.sha256(data).hexdigest(), (*parts.lines, *lines))


def count_untrusted(cwd: Path, settings: Settings) -> int:
    """How many things of a project wait for trust."""
    if settings.trusted:
        return 0
    return (
        len(settings.pending_trust)
        + len(collect_trust_items(cwd, settings).lines)
        - len(project_trust_items(settings).lines)
    )


def trust_store() -> TrustStore:
    """The grants in Ostler's home."""
    return TrustStore(require_home(os.environ))


def trust_diff(grant: TrustGrant | None, lines: tuple[str, ...]) -> list[str]:
    """What trust would be about: all of it, or what changed since it was last given."""
    if grant is None:
        return [f"  {line}" for line in lines]
    gone = [f"- {line}" for line in grant.parts if line not in lines]
    return gone + [f"{'  ' if line in grant.parts else '+ '}{line}" for line in lines]


def _is_granted(cwd: Path, settings: Settings) -> bool:
    """Whether there is a grant, and what it is about is still so."""
    grant = trust_store().find_grant(cwd) if find_home(os.environ) is not None else None
    return grant is not None and grant.digest == collect_trust_items(cwd, settings).digest
