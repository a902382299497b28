"""Decodes non-UTF-8 text in tool output by its detected encoding."""

import re

from ostler.workspace.encodings import DAMAGED_UTF8, decode, detect

_ESCAPED_BYTES = re.compile("[\udc80-\udcff]")  # bytes that `surrogateescape` could not decode as UTF-8
_DIFF_FILE_START = re.compile("(?m)(?=^diff --git )")
# For ripgrep: byte sequences that are not valid UTF-8.
NOT_UTF8 = (
    r"(?-u)[\xC0\xC1\xF5-\xFF]|(?:^|[\x00-\x7F])[\x80-\xBF]|[\xC2-\xF4](?:[\x00-\x7F\xC0-\xFF]|$)"
    r"|[\xE0-\xF4][\x80-\xBF](?:[\x00-\x7F\xC0-\xFF]|$)|[\xF0-\xF4][\x80-\xBF]{2}(?:[\x00-\x7F\xC0-\xFF]|$)"
    r"|[\xC2-\xDF][\x80-\xBF]{2}|[\xE0-\xEF][\x80-\xBF]{3}"
)


def decode_legacy(text: str) -> str:
    """Decode the escaped bytes in a text; the encoding of each file in a diff is detected separately."""
    if not _ESCAPED_BYTES.search(text):
        return text
    return "".join(_decode_part(part) for part in _DIFF_FILE_START.split(text))


def _decode_part(part: str) -> str:
    lines = part.split("\n")
    escaped = {index: line for index, line in enumerate(lines) if _ESCAPED_BYTES.search(line)}
    raw = {index: line.encode("utf-8", "surrogateescape") for index, line in escaped.items()}
    encoding = guess_encoding(b"\n".join(raw.values()))
    for index, line in raw.items():
        lines[index] = line.decode(encoding, "replace")
    return "\n".join(lines)


def guess_encoding(data: bytes) -> str:
    """Return the detected encoding, or UTF-8 for damaged or binary data."""
    form = detect(data)
    return "utf-8" if form is None or form.encoding == DAMAGED_UTF8 else form.encoding


def to_utf8(data: bytes) -> bytes:
    """Convert the bytes of a text to UTF-8; binary data is returned unchanged."""
    if data.isascii():
        return data
    form = detect(data)
    return data if form is None or form.encoding == "utf-8" else decode(data, form).encode("utf-8", "replace")
