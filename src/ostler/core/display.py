"""What a person is shown of a call, before and after: structured, so that any face can draw it."""

from typing import Literal

import msgspec


class DisplayText(msgspec.Struct, frozen=True, tag="note", omit_defaults=True):
    """Lines of text; `kind` says how a face may set them."""

    text: str
    kind: Literal["plain", "output", "error", "markdown"] = "plain"


class DisplayDiff(msgspec.Struct, frozen=True, tag="diff", omit_defaults=True):
    """A change of one file as a unified diff."""

    path: str
    diff: str
    operation: Literal["created", "updated", "unchanged", "deleted", "renamed"] = "updated"
    additions: int = 0
    deletions: int = 0
    truncated: bool = msgspec.field(name="cut", default=False)


class DisplayChecklist(msgspec.Struct, frozen=True, tag="checklist"):
    """Items as `[ ] [~] [x]`."""

    items: tuple[tuple[Literal["pending", "in_progress", "completed"], str], ...]


class DisplayFields(msgspec.Struct, frozen=True, tag="fields"):
    """Names and values, such as the command, its reason and its impact."""

    pairs: tuple[tuple[str, str], ...]


DisplayBlock = DisplayText | DisplayDiff | DisplayChecklist | DisplayFields


class Display(msgspec.Struct, frozen=True, omit_defaults=True):
    """One summary line and what stands below it."""

    summary: str = ""
    blocks: tuple[DisplayBlock, ...] = ()
