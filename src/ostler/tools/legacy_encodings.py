"""Text that is no UTF-8 among text that is: told in the encoding it seems to have."""

import re

from ostler.workspace.encodings import DAMAGED_UTF8, decode, detect

_ESCAPED_BYTES = re.compile("[\udc80-\udcff]")  # what `surrogateescape` makes of bytes that are no UTF-8
_DIFF_FILE_START = re.compile("(?m)(?=^diff --git )")
# For ripgrep: what stands in no text of UTF-8.
NOT_UTF8 = (
    r"(?-u)[\xC0\xC1\xF5-\xFF]|(?:^|[\x00-\x7F])[\x80-\xBF]|[\xC2-\xF4](?:[\x00-\x7F\xC0-\xFF]|$)"
    r"|[\xE0-\xF4][\x80-\xBF](?:[\x00-\x7F\xC0-\xFF]|$)|[\xF0-\xF4][\x80-\xBF]{2}(?:[\x00-\x7F\xC0-\xFF]|$)"
    r"|[\xC2-\xDF][\x80-\xBF]{2}|[\xE0-\xEF][\x80-\xBF]{3}"
)


def decode_legacy(text: str) -> str:
    """A text whose bytes that are no UTF-8 were kept, for reading; each file of a diff has an encoding of its own."""
    if not _ESCAPED_BYTES.search(text):
        return text
    return "".join(_decode_part(part) for part in _DIFF_FILE_START.split(text))


def _decode_part(part: str) -> str:
    lines = part.split("\n")
    raw = {at: _to_bytes(line) for at, line in enumerate(lines) if _ESCAPED_BYTES.search(line)}
    encoding = guess_encoding(b"\n".join(raw.values()))
    for at, line in raw.items():
        lines[at] = line.decode(encoding, "replace")
    return "\n".join(lines)


def guess_encoding(data: bytes) -> str:
    """The encoding of a text; UTF-8 for what is damaged or no text at all."""
    form = detect(data)
    return "utf-8" if form is None or form.encoding == DAMAGED_UTF8 else form.encoding


def to_utf8(data: bytes) -> bytes:
    """A text's bytes as UTF-8; what is no text stays as it is."""
    if data.isascii():
        return data
    form = detect(data)
    return data if form is None or form.encoding == "utf-8" else decode(data, form).encode("utf-8", "replace")


def _to_bytes(line: str) -> bytes:
    return line.encode("utf-8", "surrogateescape")
