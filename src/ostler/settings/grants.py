"""Stores the permission rules that the user granted for a project, with dates."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ostler.core.permission import Rule
from ostler.settings.home import error_text
from ostler.settings.private_file import locked_for_change, read_private, replace_private


class GrantedRule(msgspec.Struct, frozen=True):
    """A rule and the time at which it was granted."""

    rule: Rule
    when: str = ""


class ProjectGrants:
    """The rules in `grants.json` of a project's folder in Ostler's home. An unusable file grants nothing."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "grants.json"
        self.notes: list[str] = []
        self._granted: tuple[GrantedRule, ...] | None = None

    def granted(self) -> tuple[GrantedRule, ...]:
        """Return all granted rules, oldest first."""
        if self._granted is None:
            self._granted = self._read()
        return self._granted

    def rules(self) -> Sequence[Rule]:
        return [grant.rule for grant in self.granted()]

    def add(self, rule: Rule) -> None:
        from datetime import UTC, datetime

        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._change(lambda grants: (*(grant for grant in grants if grant.rule != rule), GrantedRule(rule, now)))

    def revoke(self, rule: Rule) -> bool:
        exists = rule in self.rules()
        if exists:
            self._change(lambda grants: tuple(grant for grant in grants if grant.rule != rule))
        return exists

    def _change(self, change: Callable[[tuple[GrantedRule, ...]], tuple[GrantedRule, ...]]) -> None:
        with locked_for_change(self._file):
            self._granted = change(self._read())
            replace_private(self._file, msgspec.json.format(msgspec.json.encode(self._granted), indent=2) + b"\n")

    def _read(self) -> tuple[GrantedRule, ...]:
        try:
            data = read_private(self._file)
            return msgspec.json.decode(data, type=tuple[GrantedRule, ...]) if data else ()
        except (OSError, ValueError, msgspec.DecodeError, RecursionError) as error:
            self.notes.append(f"{self._file}: ignored, so no granted rule applies: {error_text(error)}")
            return ()
