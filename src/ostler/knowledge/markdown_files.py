"""Finds the Markdown files below a folder, in order, however large or twisted the tree is."""

from collections.abc import Collection, Iterator

from ostler.knowledge.folder import Folder

DEEPEST = 6
MOST_FILES = 500
MOST_LOOKED_AT = 5000


def markdown_files(folder: Folder, top: str, *, skip: Collection[str] = ()) -> list[str]:
    """The `.md` files below a folder as paths from it, sorted; hidden names and skipped folders are left out."""
    budget = [MOST_LOOKED_AT]
    found: list[str] = []
    for path in _below(folder, top, "", skip, budget):
        if len(found) == MOST_FILES:
            budget[0] = 0
            break
        found.append(path)
    if budget[0] <= 0:
        folder.note(top, f"it holds more than {MOST_FILES} files or {MOST_LOOKED_AT} names; the rest is left out")
    return found


def _below(folder: Folder, top: str, here: str, skip: Collection[str], budget: list[int]) -> Iterator[str]:
    for name, is_folder in folder.names(f"{top}/{here}" if here else top):
        budget[0] -= 1
        if budget[0] <= 0:
            return
        path = here + name
        if name[0] == "." or path in skip:
            continue
        if is_folder and path.count("/") < DEEPEST:
            yield from _below(folder, top, f"{path}/", skip, budget)
        elif not is_folder and name.endswith(".md"):
            yield path
