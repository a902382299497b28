"""What both APIs are told in the same words: attachments, links, pictures, names of tools, the longest reply."""

import re
from collections.abc import Collection
from typing import Any

from ostler.vocabulary.prompt import Block, Image, Resource, Text

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


def runs_of(blocks: tuple[Block, ...]) -> list[str | Image]:
    """Texts and pictures in their order; texts that follow each other become one."""
    runs: list[str | Image] = []
    for block in blocks:
        if isinstance(block, Image):
            runs.append(block)
            continue
        text = _words(block)
        if runs and isinstance(runs[-1], str):
            runs[-1] = f"{runs[-1]}\n\n{text}"
        else:
            runs.append(text)
    return runs


def files_apart(blocks: tuple[Block, ...]) -> tuple[list[str], tuple[Block, ...]]:
    """The files that a prompt brings along, each by its name with the content below, and all else."""
    files = [f"@file:{block.uri}\n{block.text}" for block in blocks if isinstance(block, Resource)]
    return files, tuple(block for block in blocks if not isinstance(block, Resource))


def tool_name(called: str, offered: Collection[str]) -> str:
    """A tool's name in history: as it is offered, else in the characters that every server takes."""
    return called if called in offered else _NOT_IN_NAMES.sub("_", called)[:64] or "unknown"


def system_note(text: str) -> str:
    """A system message for servers that take none in mid-conversation."""
    return f"<system>\n{text}\n</system>"


def least_of(*limits: Any) -> int | None:
    """The least of what a reply may have; what is no number of tokens counts for nothing."""
    return min((most for most in limits if isinstance(most, int) and most > 0), default=None)


def _words(block: Block) -> str:
    if isinstance(block, Text):
        return block.text
    assert not isinstance(block, Image | Resource)
    return f"{block.name}: {block.uri}" if block.name else block.uri
