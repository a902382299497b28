"""A home, a workspace and what lies outside both, for files that tell the agent something."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ostler.knowledge.source_folders import SourceFolders, find_sources
from ostler.settings.effective import Settings
from ostler.settings.load import load


class Land:
    """`home` is the person's, `own` Ostler's in it, `work` the workspace; `outside` says SECRET."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home"
        self.own = self.home / ".ostler"
        self.work = base / "work"
        self.outside = base / "outside"
        for folder in (self.own, self.work, self.outside):
            folder.mkdir(parents=True)
        (self.outside / "secret.md").write_text("SECRET\n")
        self.env: dict[str, str] = {"HOME": str(self.home)}

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Files by path: `~/x` in the home, anything else in the workspace."""
        for name, text in files.items():
            path = self.home / name[2:] if name.startswith("~/") else self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def sources(self, work: Path | None = None) -> SourceFolders:
        return find_sources(str(work or self.work), self.env)

    def settings(self, *, trusted: bool = False) -> Settings:
        return load(self.work, self.env, trusted=trusted)


@pytest.fixture
def land(tmp_path: Path) -> Land:
    return Land(tmp_path)
