"""What both APIs are told in the same words: attachments, links, pictures, names of tools, the longest reply."""

import re
from collections.abc import Collection
from typing import Any

from ostler.core.prompt import EmbeddedResource, ImageContent, PromptContent, TextContent

_INVALID_NAME_CHARS = re.compile(r"[^a-zA-Z0-9_-]")


def merge_text(blocks: tuple[PromptContent, ...]) -> list[str | ImageContent]:
    """Texts and pictures in their order; texts that follow each other become one."""
    runs: list[str | ImageContent] = []
    for block in blocks:
        if isinstance(block, ImageContent):
            runs.append(block)
            continue
        text = _block_text(block)
        if runs and isinstance(runs[-1], str):
            runs[-1] = f"{runs[-1]}\n\n{text}"
        else:
            runs.append(text)
    return runs


def split_files(blocks: tuple[PromptContent, ...]) -> tuple[list[str], tuple[PromptContent, ...]]:
    """The files that a prompt brings along, each by its name with the content below, and all else."""
    files = [f"@file:{block.uri}\n{block.text}" for block in blocks if isinstance(block, EmbeddedResource)]
    return files, tuple(block for block in blocks if not isinstance(block, EmbeddedResource))


def tool_name(name: str, tool_names: Collection[str]) -> str:
    """A tool's name in history: as it is offered, else in the characters that every server takes."""
    return name if name in tool_names else _INVALID_NAME_CHARS.sub("_", name)[:64] or "unknown"


def system_note(text: str) -> str:
    """A system message for servers that take none in mid-conversation."""
    return f"<system>\n{text}\n</system>"


def min_limit(*limits: Any) -> int | None:
    """The least of what a reply may have; what is no number of tokens counts for nothing."""
    return min((most for most in limits if isinstance(most, int) and most > 0), default=None)


def _block_text(block: PromptContent) -> str:
    if isinstance(block, TextContent):
        return block.text
    assert not isinstance(block, ImageContent | EmbeddedResource)
    return f"{block.name}: {block.uri}" if block.name else block.uri
