"""Paths like one that is not there: the same name elsewhere, and names a slip of the keys away."""

from ostler.tools.search import files_below
from ostler.vocabulary.errors import PathRefused
from ostler.vocabulary.seams import Ground

_MOST = 3


async def near_paths(ground: Ground, path: str) -> list[str]:
    """A few paths of the workspace that may have been meant, the likeliest first."""
    place = ground.place(path)
    if not place.inside:
        return []
    above, _, name = place.shown.rpartition("/")
    found = [await _neighbour(ground, above, name)]
    same = [file for file in await files_below(ground, ".") if file.rpartition("/")[2].lower() == name.lower()]
    found += sorted(same, key=lambda file: (_differing(file, place.shown), file))
    return list(dict.fromkeys(file for file in found if file))[:_MOST]


async def _neighbour(ground: Ground, folder: str, name: str) -> str:
    from ostler.text.names import nearest

    try:
        entries = await ground.entries(folder or ".")
    except PathRefused:
        return ""
    near = nearest(name, (entry.name for entry in entries))
    return f"{folder}/{near}".lstrip("/") if near else ""


def _differing(one: str, other: str) -> int:
    """In how many folders two paths differ."""
    return len(set(one.split("/")) ^ set(other.split("/")))
