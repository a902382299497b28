"""The installed model files."""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ostler.core.errors import UsageError
from ostler.settings.home import ensure_home, error_text, require_home

_MAGIC = b"GGUF"
_MAX_NAME_LENGTH = 80
INSTALL_HINT = "run `ostler model install`, or `ostler model install --file X.gguf` to use your own file"


class WeightsFile(msgspec.Struct, frozen=True):
    """A model file: downloaded, or a symlink to a file of the user."""

    name: str
    path: Path

    @property
    def is_linked(self) -> bool:
        return self.path.is_symlink()

    @property
    def size(self) -> int | None:
        """Size in bytes, or None if a symlink is broken."""
        try:
            return self.path.stat().st_size
        except OSError:
            return None


class WeightsStore:
    """The folder of model files in Ostler's home; created when a model is installed."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.folder = require_home(env) / "models"

    def ensure_folder(self) -> Path:
        """Create the folder if necessary and return it. Raises `UsageError`."""
        ensure_home(self._env)
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot create {self.folder}: {error_text(error)}") from None
        return self.folder

    def states_folder(self) -> Path | None:
        """Create the folder for saved model states if necessary and return it, or None if that is not possible."""
        folder = self.folder / "states"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            return None
        return folder

    def list_installed(self) -> list[WeightsFile]:
        """Return the installed models, the newest first; it is the default."""
        try:
            files = [path for path in self.folder.iterdir() if path.suffix == ".gguf"]
        except OSError:
            return []
        return [WeightsFile(path.stem, path) for path in sorted(files, key=_modified_time, reverse=True)]

    def find(self, name: str = "") -> WeightsFile:
        """Return a model by name, or the newest. Raises `UsageError`."""
        installed = self.list_installed()
        found = next((file for file in installed if name in ("", file.name)), None)
        if found is None:
            names = ", ".join(file.name for file in installed)
            raise UsageError(
                f"no embedded model {name[:80]!r} is installed" if name else "no embedded model is installed",
                code="no_model",
                hint=f"available: {names}" if names else INSTALL_HINT,
            )
        if found.size is None:
            raise UsageError(
                f"the file of the embedded model {found.name} is missing: {found.path.readlink()}",
                hint=f"restore it, or run `ostler model remove {found.name}`",
            )
        return found

    def link(self, file: Path) -> WeightsFile:
        """Install a file of the user by a symlink to it. Raises `UsageError`."""
        check_gguf(file)
        name = re.sub(r"[^\w.-]+", "_", file.stem)[:_MAX_NAME_LENGTH].strip(".") or "model"
        path = self.ensure_folder() / f"{name}.gguf"
        if path.exists() and not path.is_symlink():
            raise UsageError(
                f"an embedded model {name} is already installed", hint=f"run `ostler model remove {name}` first"
            )
        path.unlink(missing_ok=True)
        path.symlink_to(file.resolve())
        return WeightsFile(name, path)

    def remove(self, name: str) -> WeightsFile:
        """Delete a downloaded model, or only the symlink to the user's file. Raises `UsageError`."""
        found = next((file for file in self.list_installed() if file.name == name), None)
        if found is None:
            self.find(name)
            raise AssertionError("find raises for an unknown name")
        found.path.unlink()
        return found


def check_gguf(file: Path) -> None:
    """Raise `UsageError` if the file is not a GGUF model."""
    try:
        with file.open("rb") as opened:
            magic = opened.read(len(_MAGIC))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error_text(error)}") from None
    if magic != _MAGIC:
        raise UsageError(f"{file} is not a GGUF file", hint="use a model for llama.cpp, such as model-q4_k_m.gguf")


def _modified_time(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0
