"""Finds text in the transcript and highlights it."""

import asyncio
from collections.abc import AsyncIterator

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ostler.frontends.tui.transcript.model import TranscriptModel
from ostler.rendering.screen_blocks import copyable_text

SLICE_ENTRIES = 100


async def find_entries(model: TranscriptModel, query: str) -> AsyncIterator[int]:
    """Yield the indexes of the entries that contain the text, the newest first. Keys are handled meanwhile."""
    wanted = query.casefold()
    for index in reversed(range(len(model.entries))):
        if index % SLICE_ENTRIES == 0:
            await asyncio.sleep(0)
        if index < len(model.entries) and wanted in copyable_text(model.blocks(index)).casefold():
            yield index


def show_match(model: TranscriptModel, entry: int, query: str) -> int:
    """Return the first row of an entry that shows the text, unfolded if necessary; 0 if the text is wrapped."""
    row = _row_of(model, entry, query)
    if row is None:
        model.unfold(entry)
        row = _row_of(model, entry, query)
    return row or 0


def _row_of(model: TranscriptModel, entry: int, query: str) -> int | None:
    wanted = query.casefold()
    rows = (number for number, strip in enumerate(model.all_strips(entry)) if wanted in strip.text.casefold())
    return next(rows, None)


def highlight(strip: Strip, query: str, style: Style) -> Strip:
    """Return the strip with every occurrence of the text in another style."""
    text, wanted = strip.text.casefold(), query.casefold()
    if not wanted or wanted not in text or len(text) != len(strip.text):
        return strip
    marked = bytearray(len(text))
    position = text.find(wanted)
    while position >= 0:
        marked[position : position + len(wanted)] = b"\x01" * len(wanted)
        position = text.find(wanted, position + len(wanted))
    segments: list[Segment] = []
    offset = 0
    for part, part_style, _ in strip:
        start = 0
        for end in range(1, len(part) + 1):
            if end == len(part) or marked[offset + end] != marked[offset + start]:
                base = part_style or Style()
                segments.append(Segment(part[start:end], base + style if marked[offset + start] else base))
                start = end
        offset += len(part)
    return Strip(segments, strip.cell_length)
