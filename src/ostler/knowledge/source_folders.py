"""Locates the folders that are searched: the workspace, Ostler's home and the user's home."""

from collections.abc import Iterator, Mapping

import msgspec

from ostler.knowledge.source_folder import SourceFolder
from ostler.settings.home import find_home, is_same_file, user_home
from ostler.settings.problems import Problem


class SourceFolders(msgspec.Struct, frozen=True):
    """The folders to search. `workspace_is_home`: the workspace's folders are the user's own, so search them once."""

    workspace: SourceFolder
    ostler_home: SourceFolder | None
    user_home: SourceFolder | None
    notes: list[Problem]
    workspace_is_home: bool = False

    def search_folders(
        self, ostler_names: tuple[str, ...], user_names: tuple[str, ...], project_names: tuple[str, ...]
    ) -> Iterator[tuple[SourceFolder, str]]:
        """Yield the folders to search in decreasing precedence: the project's, then the user's."""
        if not self.workspace_is_home:
            yield from ((self.workspace, name) for name in project_names)
        if self.ostler_home:
            yield from ((self.ostler_home, name) for name in ostler_names)
        if self.user_home:
            yield from ((self.user_home, name) for name in user_names)


def find_sources(cwd: str, env: Mapping[str, str]) -> SourceFolders:
    """Return the folders for a workspace without reading them."""
    notes: list[Problem] = []
    home, ostler = user_home(env), find_home(env)
    at_home = bool((home and is_same_file(cwd, home)) or (ostler and is_same_file(f"{cwd}/.ostler", ostler)))
    label = "~/.ostler/" if home and ostler == home / ".ostler" else f"{ostler}/"
    return SourceFolders(
        SourceFolder(cwd, "project", notes),
        SourceFolder(str(ostler), "user", notes, label=label) if ostler else None,
        SourceFolder(str(home), "user", notes, label="~/") if home else None,
        notes,
        at_home,
    )
