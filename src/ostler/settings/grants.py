"""The standing rules a person gave for a project: kept with when they were given, listed, and taken back."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ostler.core.permission import Rule
from ostler.settings.home import error_text
from ostler.settings.private_file import locked_for_change, read_private, replace_private


class GrantedRule(msgspec.Struct, frozen=True):
    """A rule and when it was given."""

    rule: Rule
    when: str = ""


class ProjectGrants:
    """`grants.json` of one project's folder in Ostler's home. A file that is not as we wrote it grants nothing."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "grants.json"
        self.notes: list[str] = []
        self._granted: tuple[GrantedRule, ...] | None = None

    def granted(self) -> tuple[GrantedRule, ...]:
        """All that stands, in the order it was given."""
        if self._granted is None:
            self._granted = self._read()
        return self._granted

    def rules(self) -> Sequence[Rule]:
        return [given.rule for given in self.granted()]

    def add(self, rule: Rule) -> None:
        from datetime import UTC, datetime

        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._change(lambda known: (*(given for given in known if given.rule != rule), GrantedRule(rule, now)))

    def revoke(self, rule: Rule) -> bool:
        there = rule in self.rules()
        if there:
            self._change(lambda known: tuple(given for given in known if given.rule != rule))
        return there

    def _change(self, change: Callable[[tuple[GrantedRule, ...]], tuple[GrantedRule, ...]]) -> None:
        with locked_for_change(self._file):
            self._granted = change(self._read())
            replace_private(self._file, msgspec.json.format(msgspec.json.encode(self._granted), indent=2) + b"\n")

    def _read(self) -> tuple[GrantedRule, ...]:
        try:
            data = read_private(self._file)
            return msgspec.json.decode(data, type=tuple[GrantedRule, ...]) if data else ()
        except (OSError, ValueError, msgspec.DecodeError, RecursionError) as error:
            self.notes.append(
                f"{self._file}: no standing rule counts, for this file is not usable: {error_text(error)}"
            )
            return ()
