"""Where the files lie that tell the agent something: the workspace, Ostler's home, the person's home."""

import os
from collections.abc import Iterator, Mapping

import msgspec

from ostler.knowledge.folder import Folder
from ostler.settings.home import find_home, person_home
from ostler.settings.problems import Problem


class Sources(msgspec.Struct, frozen=True):
    """The three folders; `at_home` says that the workspace's own folders are the person's once more."""

    work: Folder
    own: Folder | None
    person: Folder | None
    notes: list[Problem]
    at_home: bool = False

    def pairs(
        self, own: tuple[str, ...], person: tuple[str, ...], work: tuple[str, ...]
    ) -> Iterator[tuple[Folder, str]]:
        """Folders to look into, the ones that count most first: the project's, then the person's."""
        if not self.at_home:
            yield from ((self.work, name) for name in work)
        if self.own:
            yield from ((self.own, name) for name in own)
        if self.person:
            yield from ((self.person, name) for name in person)


def find_sources(cwd: str, env: Mapping[str, str]) -> Sources:
    """The folders for a workspace; nothing of them is read yet."""
    notes: list[Problem] = []
    person, own = person_home(env), find_home(env)
    at_home = bool((person and _same(cwd, str(person))) or (own and _same(f"{cwd}/.ostler", str(own))))
    label = "~/.ostler/" if person and own == person / ".ostler" else f"{own}/"
    return Sources(
        Folder(cwd, "project", notes),
        Folder(str(own), "user", notes, label=label) if own else None,
        Folder(str(person), "user", notes, label="~/") if person else None,
        notes,
        at_home,
    )


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False
