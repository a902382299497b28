"""Which folders a person trusts, and with which config: grants on disk, and what a grant is about."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ostler.settings.effective import Settings
from ostler.settings.home import error_text
from ostler.settings.private_file import locked_for_change, read_private, replace_private


class TrustItems(msgspec.Struct, frozen=True):
    """The parts of a project's config that trust is about: what is hashed, its hash, and one line for each."""

    data: bytes
    digest: str
    lines: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.lines)


class TrustGrant(msgspec.Struct, frozen=True):
    """Trust in one folder as long as its config has this digest."""

    digest: str
    parts: tuple[str, ...] = ()
    when: str = ""


class _TrustFile(msgspec.Struct, frozen=True):
    grants: dict[str, TrustGrant] = {}


def project_trust_items(settings: Settings) -> TrustItems:
    """What trust in this project is about. Comments and layout do not count, order and values do."""
    import hashlib
    import json

    found = settings.trust_items()
    data = json.dumps([[path, value] for path, value, _ in found], separators=(",", ":")).encode()
    lines = tuple(f"{held.key} = {held.value}" for _, _, held in found)
    return TrustItems(data, hashlib.sha256(data).hexdigest(), lines)


class TrustStore:
    """The grants in `trust.json` of Ostler's home. A file that is not as we wrote it grants nothing, with a note."""

    def __init__(self, home: Path) -> None:
        self._file = home / "trust.json"
        self.notes: list[str] = []

    def is_trusted(self, cwd: Path, digest: str) -> bool:
        """Whether this folder was trusted with just this config."""
        grant = self.find_grant(cwd)
        return grant is not None and grant.digest == digest

    def find_grant(self, cwd: Path) -> TrustGrant | None:
        """The grant this folder has, maybe for another config: what changed since is the difference of the parts."""
        return self._read().get(_folder_key(cwd))

    def grant(self, cwd: Path, digest: str, parts: Sequence[str]) -> None:
        """Trust a folder with a config, in place of any grant before."""
        from datetime import UTC, datetime

        when = datetime.now(UTC).isoformat(timespec="seconds")
        with self._locked_grants() as grants:
            grants[_folder_key(cwd)] = TrustGrant(digest, tuple(parts), when)

    def revoke(self, cwd: Path) -> bool:
        """Take trust back; whether there was any."""
        if self.find_grant(cwd) is None:
            return False
        with self._locked_grants() as grants:
            return grants.pop(_folder_key(cwd), None) is not None

    def _read(self) -> dict[str, TrustGrant]:
        try:
            data = read_private(self._file)
            return dict(msgspec.json.decode(data, type=_TrustFile).grants) if data else {}
        except (OSError, ValueError, msgspec.DecodeError, RecursionError) as error:
            note = f"{self._file}: nothing is trusted, for this file is not usable: {error_text(error)}"
            if note not in self.notes:
                self.notes.append(note)
            return {}

    @contextmanager
    def _locked_grants(self) -> Iterator[dict[str, TrustGrant]]:
        with locked_for_change(self._file):
            grants = self._read()
            yield grants
            replace_private(self._file, msgspec.json.format(msgspec.json.encode(_TrustFile(grants)), indent=2) + b"\n")


def _folder_key(cwd: Path) -> str:
    # Doubled backslashes keep a name that is not UTF-8 apart from one that spells it out.
    return os.fsencode(os.path.realpath(cwd)).replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
