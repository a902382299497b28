"""Where the files lie that tell the agent something: the workspace, Ostler's home, the person's home."""

import os
from collections.abc import Iterator, Mapping

import msgspec

from ostler.knowledge.source_folder import SourceFolder
from ostler.settings.home import find_home, user_home
from ostler.settings.problems import Problem


class SourceFolders(msgspec.Struct, frozen=True):
    """The three folders; `at_home` says that the workspace's own folders are the person's once more."""

    workspace: SourceFolder
    ostler_home: SourceFolder | None
    user_home: SourceFolder | None
    notes: list[Problem]
    workspace_is_home: bool = False

    def search_folders(
        self, ostler_names: tuple[str, ...], user_names: tuple[str, ...], project_names: tuple[str, ...]
    ) -> Iterator[tuple[SourceFolder, str]]:
        """Folders to look into, the ones that count most first: the project's, then the person's."""
        if not self.workspace_is_home:
            yield from ((self.workspace, name) for name in project_names)
        if self.ostler_home:
            yield from ((self.ostler_home, name) for name in ostler_names)
        if self.user_home:
            yield from ((self.user_home, name) for name in user_names)


def find_sources(cwd: str, env: Mapping[str, str]) -> SourceFolders:
    """The folders for a workspace; nothing of them is read yet."""
    notes: list[Problem] = []
    person, own = user_home(env), find_home(env)
    at_home = bool((person and _is_same_file(cwd, str(person))) or (own and _is_same_file(f"{cwd}/.ostler", str(own))))
    label = "~/.ostler/" if person and own == person / ".ostler" else f"{own}/"
    return SourceFolders(
        SourceFolder(cwd, "project", notes),
        SourceFolder(str(own), "user", notes, label=label) if own else None,
        SourceFolder(str(person), "user", notes, label="~/") if person else None,
        notes,
        at_home,
    )


def _is_same_file(first: str, second: str) -> bool:
    try:
        return os.path.samefile(first, second)
    except (OSError, ValueError):
        return False
