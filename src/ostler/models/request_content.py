"""Request content shared by both APIs: attachments, links, images, tool names, reply limits."""

import re
from collections.abc import Collection
from typing import Any

from ostler.core.prompt import EmbeddedResource, ImageContent, PromptContent, TextContent

_INVALID_NAME_CHARS = re.compile(r"[^a-zA-Z0-9_-]")


def merge_text(blocks: tuple[PromptContent, ...]) -> list[str | ImageContent]:
    """Return texts and images in order, with consecutive texts merged."""
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
    """Return the attached files as texts (name, then content), and all other blocks."""
    files = [f"@file:{block.uri}\n{block.text}" for block in blocks if isinstance(block, EmbeddedResource)]
    return files, tuple(block for block in blocks if not isinstance(block, EmbeddedResource))


def tool_name(name: str, tool_names: Collection[str]) -> str:
    """Return a tool's name for the history. Names that are not offered keep only characters that all servers accept."""
    return name if name in tool_names else _INVALID_NAME_CHARS.sub("_", name)[:64] or "unknown"


def system_note(text: str) -> str:
    """Wrap a system message for servers that accept none in mid-conversation."""
    return f"<system>\n{text}\n</system>"


def min_limit(*limits: Any) -> int | None:
    """Return the smallest limit, ignoring values that are not positive integers, or None."""
    return min((limit for limit in limits if isinstance(limit, int) and limit > 0), default=None)


def _block_text(block: PromptContent) -> str:
    if isinstance(block, TextContent):
        return block.text
    assert not isinstance(block, ImageContent | EmbeddedResource)
    return f"{block.name}: {block.uri}" if block.name else block.uri
