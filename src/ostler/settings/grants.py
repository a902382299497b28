"""The standing rules a person gave for a project: kept with when they were given, listed, and taken back."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ostler.settings.home import error_text
from ostler.settings.own_file import changing, read_own, replace_own
from ostler.vocabulary.permission import Rule


class Given(msgspec.Struct, frozen=True):
    """A rule and when it was given."""

    rule: Rule
    when: str = ""


class ProjectGrants:
    """`grants.json` of one project's folder in Ostler's home. A file that is not as we wrote it grants nothing."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "grants.json"
        self.notes: list[str] = []
        self._known: tuple[Given, ...] | None = None

    def given(self) -> tuple[Given, ...]:
        """All that stands, in the order it was given."""
        if self._known is None:
            self._known = self._read()
        return self._known

    def rules(self) -> Sequence[Rule]:
        return [given.rule for given in self.given()]

    def add(self, rule: Rule) -> None:
        from datetime import UTC, datetime

        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._change(lambda known: (*(given for given in known if given.rule != rule), Given(rule, now)))

    def revoke(self, rule: Rule) -> bool:
        there = rule in self.rules()
        if there:
            self._change(lambda known: tuple(given for given in known if given.rule != rule))
        return there

    def _change(self, change: Callable[[tuple[Given, ...]], tuple[Given, ...]]) -> None:
        with changing(self._file):
            self._known = change(self._read())
            replace_own(self._file, msgspec.json.format(msgspec.json.encode(self._known), indent=2) + b"\n")

    def _read(self) -> tuple[Given, ...]:
        try:
            data = read_own(self._file)
            return msgspec.json.decode(data, type=tuple[Given, ...]) if data else ()
        except (OSError, ValueError, msgspec.DecodeError, RecursionError) as error:
            self.notes.append(
                f"{self._file}: no standing rule counts, for this file is not usable: {error_text(error)}"
            )
            return ()
