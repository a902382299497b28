"""Settings for a workspace, with as much of the project's own as the person trusts it with."""

import os
from collections.abc import Callable
from pathlib import Path

from ostler.settings.effective import Settings
from ostler.settings.home import find_home, home
from ostler.settings.load import load
from ostler.settings.trust import Grant, ProjectParts, TrustStore, effective_project_parts
from ostler.vocabulary.errors import UsageError


def load_settings(cwd: Path, *, trust: bool = False) -> Settings:
    """The settings in force: a project's own count in full with the flag, or while they are as they were trusted."""
    settings = load(cwd, os.environ)
    return settings.trusting() if trust or _granted(cwd, settings) else settings


def settings_for_looking(cwd: Path, say: Callable[[str], None]) -> Settings:
    """The same for a command that runs nothing here: files of the project that cannot be used are told and left out."""
    try:
        return load_settings(cwd)
    except UsageError as error:
        settings = load(cwd, os.environ, project=False)
        say(f"{error.fault.message} (so this project's settings are left out)")
        return settings


def project_parts(cwd: Path, settings: Settings) -> ProjectParts:
    """All that trust in a project is about: its config, what its agents, commands and hooks want beyond words, and
    the ACP agents it names."""
    from ostler.app.acp_trust import agent_parts
    from ostler.knowledge.effective_parts import effective_parts
    from ostler.knowledge.sources import find_sources

    parts = effective_project_parts(settings)
    sources = find_sources(str(cwd), os.environ)
    lines = [*effective_parts(sources, settings), *agent_parts(cwd, sources)]
    if not lines:
        return parts
    import hashlib
    import json

    data = json.dumps([parts.digest, lines]).encode()
    return ProjectParts(data, hashlib.sha256(data).hexdigest(), (*parts.lines, *lines))


def waiting(cwd: Path, settings: Settings) -> int:
    """How many things of a project wait for trust."""
    if settings.trusted:
        return 0
    return len(settings.held) + len(project_parts(cwd, settings).lines) - len(effective_project_parts(settings).lines)


def store() -> TrustStore:
    """The grants in Ostler's home."""
    return TrustStore(home(os.environ))


def difference(grant: Grant | None, lines: tuple[str, ...]) -> list[str]:
    """What trust would be about: all of it, or what changed since it was last given."""
    if grant is None:
        return [f"  {line}" for line in lines]
    gone = [f"- {line}" for line in grant.parts if line not in lines]
    return gone + [f"{'  ' if line in grant.parts else '+ '}{line}" for line in lines]


def _granted(cwd: Path, settings: Settings) -> bool:
    """Whether there is a grant, and what it is about is still so."""
    grant = store().previous(cwd) if find_home(os.environ) is not None else None
    return grant is not None and grant.digest == project_parts(cwd, settings).digest
