"""What undo does not reach in a project: told before the first effect that could touch it, and not in every session."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ostler.core.errors import UsageError
from ostler.settings.private_file import locked_for_change, read_private, replace_private

# The workspace itself: then nothing can be taken back, which is told each time.
WHOLE_WORKSPACE = ". ("


class ReportedGaps:
    """`undo_gaps.json` of one project's folder: what its person was told last."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "undo_gaps.json"

    def reported(self) -> list[str]:
        """Nothing where it cannot be read: then it is told once more."""
        try:
            return msgspec.json.decode(read_private(self._file) or b"[]", type=list[str])
        except (OSError, ValueError, RecursionError):
            return []

    def unreported(self, gaps: Sequence[str]) -> list[str]:
        """Those that the person does not know yet."""
        known = set(self.reported())
        return [gap for gap in gaps if gap not in known or gap.startswith(WHOLE_WORKSPACE)]

    def mark_reported(self, gaps: Sequence[str]) -> None:
        """The person is told of them; one that is no more is forgotten, so that it is news when it comes back."""
        with suppress(UsageError):  # what cannot be kept is told again
            if list(gaps) != self.reported():
                with locked_for_change(self._file):
                    replace_private(self._file, msgspec.json.encode(gaps) + b"\n")
