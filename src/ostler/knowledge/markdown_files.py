"""Lists the Markdown files below a folder, in order and within limits."""

from collections.abc import Collection, Iterator

from ostler.knowledge.source_folder import SourceFolder

MAX_DEPTH = 6
MAX_FILES = 500
MAX_NAMES_SCANNED = 5000


def list_markdown_files(folder: SourceFolder, top: str, *, skip: Collection[str] = ()) -> list[str]:
    """Return the `.md` files below a folder as sorted relative paths, without hidden names and skipped folders."""
    budget = [MAX_NAMES_SCANNED]
    found: list[str] = []
    for path in _walk(folder, top, "", skip, budget):
        if len(found) == MAX_FILES:
            budget[0] = 0
            break
        found.append(path)
    if budget[0] <= 0:
        folder.note(top, f"more than {MAX_FILES} files or {MAX_NAMES_SCANNED} names; the others are ignored")
    return found


def _walk(folder: SourceFolder, top: str, here: str, skip: Collection[str], budget: list[int]) -> Iterator[str]:
    for name, is_folder in folder.list_names(f"{top}/{here}" if here else top):
        budget[0] -= 1
        if budget[0] <= 0:
            return
        path = here + name
        if name[0] == "." or path in skip:
            continue
        if is_folder and path.count("/") < MAX_DEPTH:
            yield from _walk(folder, top, f"{path}/", skip, budget)
        elif not is_folder and name.endswith(".md"):
            yield path
