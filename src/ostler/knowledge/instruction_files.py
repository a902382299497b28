"""Loads the files that the `instructions` setting names by path or wildcard."""

import posixpath
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from ostler.knowledge.prompt_sections import PromptSection
from ostler.knowledge.rules_files import RulesFile, RulesFileLoader, make_section
from ostler.knowledge.source_folder import SourceFolder
from ostler.knowledge.source_folders import SourceFolders

MAX_NAMES_SCANNED = 5000
MAX_DEPTH = 10
MAX_PATTERN_PARTS = 40
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "target", "venv"})
_INTRO = "Further instructions from the config. Follow them where the rules above do not differ."


def instruction_sections(
    sources: SourceFolders, patterns: Sequence[str], loader: RulesFileLoader
) -> list[PromptSection]:
    """Return the prompt section of the `instructions` setting, or an empty list."""
    files = [file for name in patterns for file in _load_files(sources, name, loader)]
    return [make_section("instructions", _INTRO, files)] if files else []


def _load_files(sources: SourceFolders, name: str, loader: RulesFileLoader) -> list[RulesFile]:
    folder, pattern = _resolve_folder(sources, name)
    if folder is None:
        sources.workspace.note(name, "ignored: instructions must be files, not URLs")
        return []
    paths = list(expand_pattern(folder, pattern))
    if not paths:
        folder.note(pattern, "the config names this file for instructions, but it does not exist")
    return [file for path in paths for file in loader.load(folder, path)]


def _resolve_folder(sources: SourceFolders, name: str) -> tuple[SourceFolder | None, str]:
    """Return the folder and the path in it. The settings have already removed names that a project may not use."""
    if "://" in name:
        return None, name
    if name.startswith("~/") and sources.user_home:
        return sources.user_home, name[2:]
    if name.startswith("/") or ".." in name.split("/"):
        absolute = posixpath.join(sources.workspace.root, name)
        return SourceFolder("/", "user", sources.notes, label="/"), posixpath.normpath(absolute).lstrip("/")
    return sources.workspace, posixpath.normpath(name)


def expand_pattern(folder: SourceFolder, pattern: str) -> Iterator[str]:
    """Yield the files that match a pattern, sorted: `*`, `?` and `[…]` within a name, `**` across folders."""
    if not _has_wildcard(pattern):
        if folder.kind(pattern):
            yield pattern
        return
    from ostler.text.redact import is_sensitive_file

    budget = [MAX_NAMES_SCANNED]
    for path in dict.fromkeys(_matching_paths(folder, "", pattern.split("/")[:MAX_PATTERN_PARTS], budget)):
        if not is_sensitive_file(path):
            yield path
    if budget[0] <= 0:
        folder.note(pattern, f"more than {MAX_NAMES_SCANNED} names to scan; the others are ignored")


def _matching_paths(folder: SourceFolder, here: str, steps: list[str], budget: list[int]) -> Iterator[str]:
    step, rest = steps[0], steps[1:]
    if rest and not _has_wildcard(step):
        yield from _matching_paths(folder, posixpath.join(here, step), rest, budget)
        return
    if here.count("/") >= MAX_DEPTH:
        return
    if step == "**" and rest:
        yield from _matching_paths(folder, here, rest, budget)
    for name, is_folder in folder.list_names(here or "."):
        budget[0] -= 1
        if budget[0] <= 0:
            return
        path = posixpath.join(here, name)
        if step == "**":
            if is_folder and name not in _SKIPPED_FOLDERS and name[0] != ".":
                yield from _matching_paths(folder, path, steps, budget)
            elif not rest and not is_folder and name[0] != ".":
                yield path
        elif _name_matches(name, step):
            if rest and is_folder:
                yield from _matching_paths(folder, path, rest, budget)
            elif not rest and not is_folder:
                yield path


def _name_matches(name: str, step: str) -> bool:
    return (name[0] != "." or step[0] == ".") and fnmatchcase(name, step)


def _has_wildcard(text: str) -> bool:
    return any(c in text for c in "*?[")
