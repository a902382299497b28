"""What a frontend shows for a tool call, as structured blocks."""

from typing import Literal

import msgspec


class DisplayText(msgspec.Struct, frozen=True, tag="note", omit_defaults=True):
    """Lines of text; `kind` tells a frontend how to format them."""

    text: str
    kind: Literal["plain", "output", "error", "markdown"] = "plain"


class DisplayDiff(msgspec.Struct, frozen=True, tag="diff", omit_defaults=True):
    """A change of one file, as a unified diff."""

    path: str
    diff: str
    operation: Literal["created", "updated", "unchanged", "deleted", "renamed"] = "updated"
    additions: int = 0
    deletions: int = 0
    truncated: bool = msgspec.field(name="cut", default=False)


class DisplayChecklist(msgspec.Struct, frozen=True, tag="checklist"):
    """A checklist: pairs of status and text."""

    items: tuple[tuple[Literal["pending", "in_progress", "completed"], str], ...]


class DisplayFields(msgspec.Struct, frozen=True, tag="fields"):
    """Pairs of name and value, such as the command, its reason and its impact."""

    pairs: tuple[tuple[str, str], ...]


DisplayBlock = DisplayText | DisplayDiff | DisplayChecklist | DisplayFields


class Display(msgspec.Struct, frozen=True, omit_defaults=True):
    """A summary line and the blocks shown below it."""

    summary: str = ""
    blocks: tuple[DisplayBlock, ...] = ()
