"""A workspace, and next to it directories that must not be touched."""

import os
from pathlib import Path

import pytest

from ostler.workspace.local_workspace import LocalWorkspace


class Directories:
    """`root` is the workspace; next to it are `outside` and `w-evil`, whose files contain SECRET."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "w"
        self.outside = base / "outside"
        for folder in (self.root, self.outside, base / "w-evil"):
            folder.mkdir()
        for folder in (self.outside, base / "w-evil"):
            (folder / "secret.txt").write_text("SECRET\n")
        (self.outside / "deep").mkdir()
        (self.outside / "deep" / "secret.txt").write_text("SECRET\n")
        (self.root / "in.txt").write_text("inside\n")
        (self.root / "sub").mkdir()
        (self.root / "sub" / "file.txt").write_text("inside\n")

    def outside_state(self) -> list[tuple[str, bytes, int]]:
        found = []
        for folder in (self.outside, self.base / "w-evil"):
            for path in sorted(folder.rglob("*")):
                content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                found.append((str(path.relative_to(self.base)), content, os.lstat(path).st_mode))
        return found


@pytest.fixture
def dirs(tmp_path: Path) -> Directories:
    return Directories(tmp_path)


@pytest.fixture(params=["openat2", "walk"])
def workspace(request, dirs):
    workspace = LocalWorkspace(str(dirs.root), without_openat2=request.param == "walk")
    yield workspace
    workspace.close()
