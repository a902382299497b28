"""Paths like one that is not there: the same name elsewhere, and names a slip of the keys away."""

from ostler.core.errors import PathError
from ostler.core.protocols import Workspace
from ostler.tools.search import list_files

_MAX_PATHS = 3


async def similar_paths(workspace: Workspace, path: str) -> list[str]:
    """A few paths of the workspace that may have been meant, the likeliest first."""
    place = workspace.resolve(path)
    if not place.in_workspace:
        return []
    above, _, name = place.display_path.rpartition("/")
    found = [await _similar_neighbour(workspace, above, name)]
    same = [file for file in await list_files(workspace, ".") if file.rpartition("/")[2].lower() == name.lower()]
    found += sorted(same, key=lambda file: (_count_different_folders(file, place.display_path), file))
    return list(dict.fromkeys(file for file in found if file))[:_MAX_PATHS]


async def _similar_neighbour(workspace: Workspace, folder: str, name: str) -> str:
    from ostler.text.closest_name import closest_name

    try:
        entries = await workspace.entries(folder or ".")
    except PathError:
        return ""
    near = closest_name(name, (entry.name for entry in entries))
    return f"{folder}/{near}".lstrip("/") if near else ""


def _count_different_folders(one: str, other: str) -> int:
    """In how many folders two paths differ."""
    return len(set(one.split("/")) ^ set(other.split("/")))
