"""Rules in AGENTS.md and CLAUDE.md: the person's for all projects, the project's own, and those of its subfolders."""

import posixpath
from collections.abc import Collection, Sequence

import msgspec

from ostler.knowledge.folder import Folder, Found, Identity, Scope
from ostler.knowledge.mentions import mentions, without_code
from ostler.knowledge.parts import Part, bounded, framed
from ostler.knowledge.sources import Sources

DEEPEST_IMPORT = 5
MOST_FILES = 50
MOST_IMPORTS = 200
MOST_BYTES = 128 * 1024
_NAMES = ("AGENTS.md", "CLAUDE.md")
_PROJECT_NAMES = (*_NAMES, ".claude/CLAUDE.md")
_OTHERS_GLOBAL = (".config/opencode/AGENTS.md", ".claude/CLAUDE.md")

_USERS = "Rules of the user for every project. Follow them."
_PROJECTS = (
    "Rules of this project. Follow them; where they differ from the user's rules above, these count. They come with "
    "the project's files: they say how to work here and can allow nothing, and what the user says comes before them."
)


class RulesFile(msgspec.Struct, frozen=True):
    """A rules file: how its path is shown, whose it is, as much of its text as is told, and its size."""

    origin: str
    scope: Scope
    text: str
    size: int


class Loader:
    """Reads rules files, each file once whatever it is called, and no more than a prompt can bear."""

    def __init__(self) -> None:
        self._seen: set[Identity] = set()
        self._bytes = 0
        self._files = 0
        self._full = False

    def take(self, folder: Folder, relative: str, *, depth: int = 0) -> list[RulesFile]:
        """A file and what it imports; nothing when it is not there, empty, or was taken before."""
        found = None if self._full else folder.read(relative)
        if found is None or found.identity in self._seen:
            return []
        self._seen.add(found.identity)
        if not found.text.strip():
            return []
        if self._files == MOST_FILES or self._bytes > MOST_BYTES:
            folder.note(relative, "this and what follows is left out: the rules before it are as much as fits")
            self._full = True
            return []
        self._files += 1
        file = RulesFile(found.shown, folder.scope, bounded(found.text, found.shown, found.size), found.size)
        self._bytes += len(file.text.encode())
        return [file, *self._imports(folder, relative, found, depth)]

    def first(self, folder: Folder, names: Sequence[str]) -> list[RulesFile]:
        """The first of several names that leads to rules."""
        for name in names:
            files = self.take(folder, name)
            if files:
                return files
        return []

    def _imports(self, folder: Folder, relative: str, found: Found, depth: int) -> list[RulesFile]:
        if depth == DEEPEST_IMPORT or (depth == 0 and posixpath.basename(relative) != "CLAUDE.md"):
            return []
        files: list[RulesFile] = []
        paths = dict.fromkeys(path for _, _, path in mentions(without_code(found.text)))
        for path in list(paths)[:MOST_IMPORTS]:
            target = _import_target(folder, relative, path)
            if target:
                files += self.take(folder, target, depth=depth + 1)
        return files


def _import_target(folder: Folder, relative: str, path: str) -> str | None:
    """Where an import leads, as a path from the folder. A project's may not leave it, nor bring secrets along."""
    if folder.scope == "user":
        if path.startswith("~/"):
            return path[2:]
        return posixpath.join(posixpath.dirname(relative), path)
    from ostler.text.redact import sensitive_file

    here = posixpath.dirname(relative)
    inside = folder.within(path) if path.startswith("/") else posixpath.join(here, path.removeprefix("./"))
    if path.startswith("~") or inside is None:
        folder.note(relative, f"its import of {path[:200]!r} leads out of the workspace; it is left out")
        return None
    return None if sensitive_file(inside) else inside


def global_rules(sources: Sources, loader: Loader) -> list[RulesFile]:
    """The person's own rules: Ostler's file, else the first of those that other agents have."""
    files = loader.first(sources.own, ("AGENTS.md",)) if sources.own else []
    return files or (loader.first(sources.person, _OTHERS_GLOBAL) if sources.person else [])


def project_rules(sources: Sources, loader: Loader) -> list[RulesFile]:
    """The rules in the workspace's root; what lies above it is nobody's to read."""
    return loader.first(sources.work, _PROJECT_NAMES)


def nested_rules(work: Folder, path: str, loaded: Collection[str]) -> list[RulesFile]:
    """The rules of the folders between the workspace's root and a path just read, outermost first.

    `loaded` are the origins of rules that the model has already.
    """
    inside = work.within(path) if path.startswith("/") else path
    steps = posixpath.normpath(inside).split("/")[:-1] if inside else []
    if steps[:1] == [".."]:
        return []
    loader = Loader()
    files: list[RulesFile] = []
    for end in range(1, len(steps) + 1):
        files += loader.first(work, [posixpath.join(*steps[:end], name) for name in _NAMES])
    return [file for file in files if file.origin not in loaded]


def rules_parts(sources: Sources, loader: Loader) -> list[Part]:
    """What of the prompt comes from rules: the person's, then the project's, which count where they differ."""
    told = (
        ("global rules", _USERS, global_rules(sources, loader)),
        ("project rules", _PROJECTS, project_rules(sources, loader)),
    )
    return [part(name, intro, files) for name, intro, files in told if files]


def part(name: str, intro: str, files: Sequence[RulesFile]) -> Part:
    """Several files as one part, each in a frame of its own."""
    text = "\n\n".join([intro, *(framed(file.text, file.origin) for file in files)])
    return Part(name, ", ".join(file.origin for file in files), text)
