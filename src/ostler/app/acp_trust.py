"""What of a project's `.ostler/acp.json` trust is about: every program it names, in a line that holds all of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ostler.core.errors import UsageError
from ostler.knowledge.source_folders import SourceFolders
from ostler.knowledge.trust_items import hash_programs
from ostler.settings.config_files import read_bytes, read_config
from ostler.settings.masking import mask_secrets

NAME = ".ostler/acp.json"


def project_file(cwd: Path) -> Path:
    """Where a project names agents of its own."""
    return cwd / NAME


def agent_trust_items(cwd: Path, sources: SourceFolders) -> list[str]:
    """One line for each; a file that cannot be used is told as it is."""
    if sources.workspace_is_home:
        return []
    file = project_file(cwd)
    try:
        data, document = read_bytes(file), read_config(file)
    except UsageError as error:
        return [str(error)]
    if data is None or document is None:
        return []
    return [*_entries(document.value), *_programs(sources, document.value), f"{NAME}: sha256 {_sha256(data)}"]


def _entries(value: Any) -> Iterator[str]:
    from json import dumps  # only where there are any

    sections = value if isinstance(value, dict) else {"": value}
    for section, held in sections.items():
        named = held.items() if isinstance(held, dict) else enumerate(held) if isinstance(held, list) else [("", held)]
        for name, entry in named:
            yield f"{NAME}: {section}.{name} = {dumps(mask_secrets(entry, str(name)))}"


def _programs(sources: SourceFolders, value: Any) -> Iterator[str]:
    """The project's own files among what would be started: when one changes, so does what is trusted."""
    listed = value.get("agent_servers") if isinstance(value, dict) else None
    for entry in listed.values() if isinstance(listed, dict) else ():
        words = [entry.get("command"), *_as_list(entry.get("args"))] if isinstance(entry, dict) else []
        command = tuple(word for word in words if isinstance(word, str))
        for path, sha in hash_programs(sources.workspace, command).items():
            yield f"program {path}: sha256 {sha}"


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _sha256(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()
