"""Where the files of embedded models are kept, and which there are."""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ostler.core.errors import UsageError
from ostler.settings.home import ensure_home, error_text, require_home

_MAGIC = b"GGUF"
_MAX_NAME_LENGTH = 80
INSTALL_HINT = "`ostler model install` fetches one, `ostler model install --file X.gguf` takes one of yours"


class WeightsFile(msgspec.Struct, frozen=True):
    """A model's file: ours in the folder, or a link there to one of the person's."""

    name: str
    path: Path

    @property
    def is_linked(self) -> bool:
        return self.path.is_symlink()

    @property
    def size(self) -> int | None:
        """Bytes; None when a link leads nowhere any more."""
        try:
            return self.path.stat().st_size
        except OSError:
            return None


class WeightsStore:
    """The folder in Ostler's home; it is made when something is put into it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.folder = require_home(env) / "models"

    def ensure_folder(self) -> Path:
        """The folder, there for sure."""
        ensure_home(self._env)
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{self.folder} cannot be made: {error_text(error)}") from None
        return self.folder

    def list_installed(self) -> list[WeightsFile]:
        """The newest first: that is the one which is meant where none is named."""
        try:
            files = [path for path in self.folder.iterdir() if path.suffix == ".gguf"]
        except OSError:
            return []
        return [WeightsFile(path.stem, path) for path in sorted(files, key=_modified_time, reverse=True)]

    def find(self, name: str = "") -> WeightsFile:
        """By name, else the newest."""
        there = self.list_installed()
        found = next((one for one in there if name in ("", one.name)), None)
        if found is None:
            names = ", ".join(one.name for one in there)
            raise UsageError(
                f"no embedded model {name[:80]!r} is installed" if name else "no embedded model is installed",
                code="no_model",
                hint=f"there is: {names}" if names else INSTALL_HINT,
            )
        if found.size is None:
            raise UsageError(
                f"the file of the embedded model {found.name} is gone: {found.path.readlink()}",
                hint=f"put it back, or forget it: ostler model remove {found.name}",
            )
        return found

    def link(self, file: Path) -> WeightsFile:
        """Take a file of the person's, where it lies."""
        check_gguf(file)
        name = re.sub(r"[^\w.-]+", "_", file.stem)[:_MAX_NAME_LENGTH].strip(".") or "model"
        path = self.ensure_folder() / f"{name}.gguf"
        if path.exists() and not path.is_symlink():
            raise UsageError(
                f"an embedded model {name} is installed already", hint=f"first: ostler model remove {name}"
            )
        path.unlink(missing_ok=True)
        path.symlink_to(file.resolve())
        return WeightsFile(name, path)

    def remove(self, name: str) -> WeightsFile:
        """Delete what we fetched; of a file of the person's only the link goes."""
        found = next((one for one in self.list_installed() if one.name == name), None)
        if found is None:
            self.find(name)
            raise AssertionError("a name that nobody has is an error")
        found.path.unlink()
        return found


def check_gguf(file: Path) -> None:
    """Refuse what cannot be a model."""
    try:
        with file.open("rb") as opened:
            magic = opened.read(len(_MAGIC))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error_text(error)}") from None
    if magic != _MAGIC:
        raise UsageError(f"{file} is no GGUF file", hint="a model for llama.cpp is needed, such as model-q4_k_m.gguf")


def _modified_time(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0
