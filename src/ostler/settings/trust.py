"""Which folders a person trusts, and with which config: grants on disk, and what a grant is about."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ostler.settings.effective import Settings
from ostler.settings.home import error_text
from ostler.settings.own_file import changing, read_own, replace_own


class ProjectParts(msgspec.Struct, frozen=True):
    """The parts of a project's config that trust is about: what is hashed, its hash, and one line for each."""

    data: bytes
    digest: str
    lines: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.lines)


class Grant(msgspec.Struct, frozen=True):
    """Trust in one folder as long as its config has this digest."""

    digest: str
    parts: tuple[str, ...] = ()
    when: str = ""


class _Book(msgspec.Struct, frozen=True):
    grants: dict[str, Grant] = {}


def effective_project_parts(settings: Settings) -> ProjectParts:
    """What trust in this project is about. Comments and layout do not count, order and values do."""
    import hashlib
    import json

    found = settings.parts()
    data = json.dumps([[path, value] for path, value, _ in found], separators=(",", ":")).encode()
    lines = tuple(f"{held.key} = {held.value}" for _, _, held in found)
    return ProjectParts(data, hashlib.sha256(data).hexdigest(), lines)


class TrustStore:
    """The grants in `trust.json` of Ostler's home. A file that is not as we wrote it grants nothing, with a note."""

    def __init__(self, home: Path) -> None:
        self._file = home / "trust.json"
        self.notes: list[str] = []

    def is_trusted(self, cwd: Path, digest: str) -> bool:
        """Whether this folder was trusted with just this config."""
        grant = self.previous(cwd)
        return grant is not None and grant.digest == digest

    def previous(self, cwd: Path) -> Grant | None:
        """The grant this folder has, maybe for another config: what changed since is the difference of the parts."""
        return self._read().get(_key(cwd))

    def grant(self, cwd: Path, digest: str, parts: Sequence[str]) -> None:
        """Trust a folder with a config, in place of any grant before."""
        from datetime import UTC, datetime

        when = datetime.now(UTC).isoformat(timespec="seconds")
        with self._changing() as grants:
            grants[_key(cwd)] = Grant(digest, tuple(parts), when)

    def revoke(self, cwd: Path) -> bool:
        """Take trust back; whether there was any."""
        if self.previous(cwd) is None:
            return False
        with self._changing() as grants:
            return grants.pop(_key(cwd), None) is not None

    def _read(self) -> dict[str, Grant]:
        try:
            data = read_own(self._file)
            return dict(msgspec.json.decode(data, type=_Book).grants) if data else {}
        except (OSError, ValueError, msgspec.DecodeError, RecursionError) as error:
            note = f"{self._file}: nothing is trusted, for this file is not usable: {error_text(error)}"
            if note not in self.notes:
                self.notes.append(note)
            return {}

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Grant]]:
        with changing(self._file):
            grants = self._read()
            yield grants
            replace_own(self._file, msgspec.json.format(msgspec.json.encode(_Book(grants)), indent=2) + b"\n")


def _key(cwd: Path) -> str:
    # Doubled backslashes keep a name that is not UTF-8 apart from one that spells it out.
    return os.fsencode(os.path.realpath(cwd)).replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
