"""Lists the programs in a project's `.ostler/acp.json` that need the user's trust."""

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
    """Return the path of a project's own agent file."""
    return cwd / NAME


def agent_trust_items(cwd: Path, sources: SourceFolders) -> list[str]:
    """Return a line for each entry, program and the file itself; an unreadable file gives its error message."""
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
    from json import dumps  # imported only if there are entries

    sections = value if isinstance(value, dict) else {"": value}
    for section, content in sections.items():
        if isinstance(content, dict):
            entries: Any = content.items()
        else:
            entries = enumerate(content) if isinstance(content, list) else [("", content)]
        for name, entry in entries:
            yield f"{NAME}: {section}.{name} = {dumps(mask_secrets(entry, str(name)))}"


def _programs(sources: SourceFolders, value: Any) -> Iterator[str]:
    """Yield the hashes of the project's files that would run, so that a change of one needs new trust."""
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
