"""Gives each test a home, a workspace and a folder outside of both."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ostler.knowledge.source_folders import SourceFolders, find_sources
from ostler.settings.effective import Settings
from ostler.settings.load import load


class Folders:
    """`home` is the user's home, `work` the workspace; the file in `outside` contains SECRET."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home"
        self.ostler_home = self.home / ".ostler"
        self.work = base / "work"
        self.outside = base / "outside"
        for folder in (self.ostler_home, self.work, self.outside):
            folder.mkdir(parents=True)
        (self.outside / "secret.md").write_text("SECRET\n")
        self.env: dict[str, str] = {"HOME": str(self.home)}

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files by path: `~/x` is in the home, any other path in the workspace."""
        for name, text in files.items():
            path = self.home / name[2:] if name.startswith("~/") else self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def sources(self, work: Path | None = None) -> SourceFolders:
        return find_sources(str(work or self.work), self.env)

    def settings(self, *, trusted: bool = False) -> Settings:
        return load(self.work, self.env, trusted=trusted)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)
