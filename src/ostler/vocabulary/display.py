"""What a person is shown of a call, before and after: structured, so that any face can draw it."""

from typing import Literal

import msgspec


class Note(msgspec.Struct, frozen=True, tag="note", omit_defaults=True):
    """Lines of text; `kind` says how a face may set them."""

    text: str
    kind: Literal["plain", "output", "error", "markdown"] = "plain"


class DiffShown(msgspec.Struct, frozen=True, tag="diff", omit_defaults=True):
    """A change of one file as a unified diff."""

    path: str
    diff: str
    operation: Literal["created", "updated", "unchanged", "deleted", "renamed"] = "updated"
    additions: int = 0
    deletions: int = 0
    cut: bool = False


class Checklist(msgspec.Struct, frozen=True, tag="checklist"):
    """Items as `[ ] [~] [x]`."""

    items: tuple[tuple[Literal["pending", "in_progress", "completed"], str], ...]


class Fields(msgspec.Struct, frozen=True, tag="fields"):
    """Names and values, such as the command, its reason and its impact."""

    pairs: tuple[tuple[str, str], ...]


DisplayBlock = Note | DiffShown | Checklist | Fields


class Display(msgspec.Struct, frozen=True, omit_defaults=True):
    """One summary line and what stands below it."""

    summary: str = ""
    blocks: tuple[DisplayBlock, ...] = ()
