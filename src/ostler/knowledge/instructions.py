"""The files that `instructions` of the config names: paths and wildcards, in the workspace or the person's own."""

import posixpath
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from ostler.knowledge.folder import Folder
from ostler.knowledge.parts import Part
from ostler.knowledge.rules import Loader, RulesFile, part
from ostler.knowledge.sources import Sources

MOST_LOOKED_AT = 5000
DEEPEST = 10
MOST_STEPS = 40
_SKIPPED = frozenset({"node_modules", "__pycache__", "target", "venv"})
_INTRO = "Further instructions that the config names. Follow them as far as the rules above leave room."


def instructions_parts(sources: Sources, named: Sequence[str], loader: Loader) -> list[Part]:
    """What of the prompt comes from `instructions`: at most one part."""
    files = [file for name in named for file in _files(sources, name, loader)]
    return [part("instructions", _INTRO, files)] if files else []


def _files(sources: Sources, name: str, loader: Loader) -> list[RulesFile]:
    folder, pattern = _place(sources, name)
    if folder is None:
        sources.work.note(name, "these instructions are left out: only files are read, never addresses")
        return []
    paths = list(expand(folder, pattern))
    if not paths:
        folder.note(pattern, "the config names these instructions, and there is no such file")
    return [file for path in paths for file in loader.take(folder, path)]


def _place(sources: Sources, name: str) -> tuple[Folder | None, str]:
    """Which folder a name is looked up in. What a project may not name, the settings have left out already."""
    if "://" in name:
        return None, name
    if name.startswith("~/") and sources.person:
        return sources.person, name[2:]
    if name.startswith("/") or ".." in name.split("/"):
        whole = posixpath.join(sources.work.root, name)
        return Folder("/", "user", sources.notes, label="/"), posixpath.normpath(whole).lstrip("/")
    return sources.work, posixpath.normpath(name)


def expand(folder: Folder, pattern: str) -> Iterator[str]:
    """The files that a pattern names, sorted: `*`, `?`, `[…]` within a name, `**` over any folders."""
    if not _wild(pattern):
        if folder.kind(pattern):
            yield pattern
        return
    from ostler.text.redact import sensitive_file

    budget = [MOST_LOOKED_AT]
    for path in dict.fromkeys(_matching(folder, "", pattern.split("/")[:MOST_STEPS], budget)):
        if not sensitive_file(path):
            yield path
    if budget[0] <= 0:
        folder.note(pattern, f"more than {MOST_LOOKED_AT} names would have to be looked at; the rest is left out")


def _matching(folder: Folder, here: str, steps: list[str], budget: list[int]) -> Iterator[str]:
    step, rest = steps[0], steps[1:]
    if rest and not _wild(step):
        yield from _matching(folder, posixpath.join(here, step), rest, budget)
        return
    if here.count("/") >= DEEPEST:
        return
    if step == "**" and rest:
        yield from _matching(folder, here, rest, budget)
    for name, is_folder in folder.names(here or "."):
        budget[0] -= 1
        if budget[0] <= 0:
            return
        path = posixpath.join(here, name)
        if step == "**":
            if is_folder and name not in _SKIPPED and name[0] != ".":
                yield from _matching(folder, path, steps, budget)
            elif not rest and not is_folder and name[0] != ".":
                yield path
        elif _fits(name, step):
            if rest and is_folder:
                yield from _matching(folder, path, rest, budget)
            elif not rest and not is_folder:
                yield path


def _fits(name: str, step: str) -> bool:
    return (name[0] != "." or step[0] == ".") and fnmatchcase(name, step)


def _wild(text: str) -> bool:
    return any(c in text for c in "*?[")
