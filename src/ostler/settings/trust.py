"""Stores which folders the user trusts, and a digest of the settings they were trusted with."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ostler.settings.effective import Settings
from ostler.settings.home import error_text
from ostler.settings.private_file import locked_for_change, read_private, replace_private


class TrustItems(msgspec.Struct, frozen=True):
    """The project settings that trust covers: the hashed data, its digest, and one line for each setting."""

    data: bytes
    digest: str
    lines: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.lines)


class TrustGrant(msgspec.Struct, frozen=True):
    """Trust in a folder while its settings have this digest."""

    digest: str
    parts: tuple[str, ...] = ()
    when: str = ""


class _TrustFile(msgspec.Struct, frozen=True):
    grants: dict[str, TrustGrant] = {}


def project_trust_items(settings: Settings) -> TrustItems:
    """Return the project settings that trust covers. Comments and layout do not affect the digest; the order does."""
    import hashlib
    import json

    items = settings.trust_items()
    data = json.dumps([[path, value] for path, value, _ in items], separators=(",", ":")).encode()
    lines = tuple(f"{setting.key} = {setting.value}" for _, _, setting in items)
    return TrustItems(data, hashlib.sha256(data).hexdigest(), lines)


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
        return self._read().get(_folder_key(cwd))

    def grant(self, cwd: Path, digest: str, parts: Sequence[str]) -> None:
        """Trust a folder with these settings; replaces an earlier grant."""
        from datetime import UTC, datetime

        when = datetime.now(UTC).isoformat(timespec="seconds")
        with self._locked_grants() as grants:
            grants[_folder_key(cwd)] = TrustGrant(digest, tuple(parts), when)

    def revoke(self, cwd: Path) -> bool:
        """Revoke the trust in a folder. Return whether it was trusted."""
        if self.find_grant(cwd) is None:
            return False
        with self._locked_grants() as grants:
            return grants.pop(_folder_key(cwd), None) is not None

    def _read(self) -> dict[str, TrustGrant]:
        try:
            data = read_private(self._file)
            return dict(msgspec.json.decode(data, type=_TrustFile).grants) if data else {}
        except (OSError, ValueError, msgspec.DecodeError, RecursionError) as error:
            note = f"{self._file}: ignored, so nothing is trusted: {error_text(error)}"
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
    # Doubled backslashes distinguish a name that is not UTF-8 from one that contains such an escape literally.
    return os.fsencode(os.path.realpath(cwd)).replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
