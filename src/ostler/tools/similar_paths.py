"""Suggests existing paths similar to one that was not found."""

from ostler.core.errors import PathError
from ostler.core.protocols import Workspace
from ostler.tools.search import list_files

_MAX_PATHS = 3


async def similar_paths(workspace: Workspace, path: str) -> list[str]:
    """Return a few paths of the workspace that may have been intended, best first."""
    place = workspace.resolve(path)
    if not place.in_workspace:
        return []
    folder, _, name = place.display_path.rpartition("/")
    candidates = [await _similar_neighbour(workspace, folder, name)]
    same_name = [file for file in await list_files(workspace, ".") if file.rpartition("/")[2].lower() == name.lower()]
    candidates += sorted(same_name, key=lambda file: (_count_different_folders(file, place.display_path), file))
    return list(dict.fromkeys(file for file in candidates if file))[:_MAX_PATHS]


async def _similar_neighbour(workspace: Workspace, folder: str, name: str) -> str:
    from ostler.text.closest_name import closest_name

    try:
        entries = await workspace.entries(folder or ".")
    except PathError:
        return ""
    near = closest_name(name, (entry.name for entry in entries))
    return f"{folder}/{near}".lstrip("/") if near else ""


def _count_different_folders(path: str, other: str) -> int:
    return len(set(path.split("/")) ^ set(other.split("/")))
