"""Stores which folders the user trusts, a digest of the settings they were trusted with, and changes since."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ostler.settings.effective import Settings
from ostler.settings.home import error_text
from ostler.settings.private_file import locked_for_change, read_private, replace_private


class TrustItems(msgspec.Struct, frozen=True):
    """The project settings that trust covers: the digest of their data, and one line for each setting."""

    digest: str
    lines: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.lines)


class TrustGrant(msgspec.Struct, frozen=True):
    """Trust in a folder while its settings have this digest."""

    digest: str
    parts: tuple[str, ...] = ()
    when: str = ""

    @property
    def has_hooks(self) -> bool:
        return any(part.startswith("hook") for part in self.parts)


class _TrustFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """The grants, and since when files of a folder may have been changed by a model, both by folder."""

    grants: dict[str, TrustGrant] = {}
    changed: dict[str, str] = {}


def project_trust_items(settings: Settings) -> TrustItems:
    """Return the project settings that trust covers. Comments and layout do not affect the digest; the order does."""
    import hashlib
    import json

    items = settings.trust_items()
    data = json.dumps([[path, value] for path, value, _ in items], separators=(",", ":")).encode()
    lines = tuple(f"{setting.key} = {setting.value}" for _, _, setting in items)
    return TrustItems(hashlib.sha256(data).hexdigest(), lines)


class TrustStore:
    """The grants in `trust.json` of Ostler's home. An unusable file grants nothing and adds a note."""

    def __init__(self, home: Path) -> None:
        self._file = home / "trust.json"
        self.notes: list[str] = []

    def is_trusted(self, cwd: Path, digest: str) -> bool:
        """Return whether the folder is trusted with settings of this digest."""
        grant = self.find_grant(cwd)
        return grant is not None and grant.digest == digest

    def find_grant(self, cwd: Path) -> TrustGrant | None:
        """Return the grant of a folder, which may be for other settings. Compare its `parts` to see what changed."""
        return self._read().grants.get(_folder_key(cwd))

    def grant(self, cwd: Path, digest: str, parts: Sequence[str]) -> None:
        """Trust a folder with these settings and its files as they are; replaces an earlier grant."""
        with self._locked_file() as file:
            file.grants[_folder_key(cwd)] = TrustGrant(digest, tuple(parts), _now())
            file.changed.pop(_folder_key(cwd), None)

    def may_be_changed(self, cwd: Path) -> bool:
        """Return whether a model may have changed files of a folder since it was trusted."""
        changed = self._read().changed
        return bool(self.notes) or _folder_key(cwd) in changed  # with an unusable file it is unknown

    def has_hooks_nearby(self, cwd: Path) -> bool:
        """Return whether a folder that contains this one or is inside it is trusted with hooks."""
        return bool(_hooked_folders(self._read(), _folder_key(cwd)))

    def record_changes(self, cwd: Path, *, has_hooks: bool) -> None:
        """Record that a model may change files of a folder now.

        This concerns the folder itself if it `has_hooks`, and the trusted folders with hooks around and inside it.
        """
        key = _folder_key(cwd)
        folders = {key} if has_hooks else set()
        if (folders | _hooked_folders(file := self._read(), key)) <= file.changed.keys() or self.notes:
            return
        with self._locked_file() as file:
            for folder in folders | _hooked_folders(file, key):
                file.changed.setdefault(folder, _now())

    def revoke(self, cwd: Path) -> bool:
        """Revoke the trust in a folder. Return whether it was trusted."""
        if self.find_grant(cwd) is None:
            return False
        with self._locked_file() as file:
            return file.grants.pop(_folder_key(cwd), None) is not None

    def _read(self) -> _TrustFile:
        try:
            data = read_private(self._file)
            return msgspec.json.decode(data, type=_TrustFile) if data else _TrustFile()
        except (OSError, ValueError, msgspec.DecodeError, RecursionError) as error:
            note = f"{self._file}: ignored, so nothing is trusted: {error_text(error)}"
            if note not in self.notes:
                self.notes.append(note)
            return _TrustFile()

    @contextmanager
    def _locked_file(self) -> Iterator[_TrustFile]:
        with locked_for_change(self._file):
            file = self._read()
            yield file
            replace_private(self._file, msgspec.json.format(msgspec.json.encode(file), indent=2) + b"\n")


def _hooked_folders(file: _TrustFile, key: str) -> set[str]:
    """Return the folders trusted with hooks that are this one, contain it or are inside it."""
    return {folder for folder, grant in file.grants.items() if grant.has_hooks and _overlap(folder, key)}


def _overlap(one: str, other: str) -> bool:
    one, other = f"{one.rstrip('/')}/", f"{other.rstrip('/')}/"
    return one.startswith(other) or other.startswith(one)


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")


def _folder_key(cwd: Path) -> str:
    # Doubled backslashes distinguish a name that is not UTF-8 from one that contains such an escape literally.
    return os.fsencode(os.path.realpath(cwd)).replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
