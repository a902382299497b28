"""Remembers which paths undo cannot restore and which of them were already reported to the user."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ostler.core.errors import UsageError
from ostler.core.undo import WHOLE_WORKSPACE
from ostler.settings.private_file import locked_for_change, read_private, replace_private


class ReportedGaps:
    """The gaps last reported to the user, stored in `undo_gaps.json` of a project's folder."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "undo_gaps.json"

    def reported(self) -> list[str]:
        """Return the reported gaps; empty if the file is unreadable, so that they are reported again."""
        try:
            return msgspec.json.decode(read_private(self._file) or b"[]", type=list[str])
        except (OSError, ValueError, RecursionError):
            return []

    def unreported(self, gaps: Sequence[str]) -> list[str]:
        """Return the gaps that were not reported yet. That nothing can be undone is reported in every session."""
        known = set(self.reported())
        return [gap for gap in gaps if gap not in known or gap.startswith(WHOLE_WORKSPACE)]

    def mark_reported(self, gaps: Sequence[str]) -> None:
        """Store `gaps` as reported. Gaps not in the list are removed, so they are reported again if they return."""
        with suppress(UsageError):  # if it cannot be stored, they are reported again
            if list(gaps) != self.reported():
                with locked_for_change(self._file):
                    replace_private(self._file, msgspec.json.encode(gaps) + b"\n")
