"""Gives each test its own home, workspace and environment."""

from pathlib import Path

import pytest

from ostler.settings.effective import Settings
from ostler.settings.load import load


class Tree:
    """A user's home and a workspace, with the config files that a test writes."""

    def __init__(self, root: Path) -> None:
        self.user_home = root / "user"
        self.home = self.user_home / ".ostler"
        self.work = root / "work"
        self.home.mkdir(parents=True)
        self.work.mkdir()
        self.env: dict[str, str] = {"HOME": str(self.user_home)}

    def write(self, path: Path, text: str | bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def user(self, text: str) -> Path:
        return self.write(self.home / "config.json", text)

    def project(self, text: str) -> Path:
        return self.write(self.work / ".ostler" / "config.json", text)

    def load(self, *, trusted: bool = False, **env: str) -> Settings:
        return load(self.work, {**self.env, **env}, trusted=trusted)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)
