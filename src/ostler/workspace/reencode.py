"""Encodes a changed text so that unchanged parts keep their original bytes."""

from ostler.core.errors import PathError
from ostler.text.lazy_regex import lazy_regex
from ostler.workspace.encodings import DAMAGED_UTF8, TextEncoding, decode

_LINE = lazy_regex(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


def reencode(path: str, raw: bytes, text_encoding: TextEncoding, after: str) -> bytes:
    """Encode `after` like the bytes it replaces. Raises `PathError` if the encoding lacks a character."""
    after = after.removeprefix("\ufeff") if text_encoding.bom else after
    body = raw[len(text_encoding.bom_bytes) :]
    if _round_trips(body, text_encoding):
        return text_encoding.bom_bytes + _encode(path, after, 0, len(after), text_encoding)
    data = _reencode_lines(path, body, decode(raw, text_encoding), after, text_encoding)
    if decode(text_encoding.bom_bytes + data, text_encoding) != after:
        raise _lossy_error(path, text_encoding)
    return text_encoding.bom_bytes + data


def encode_new(path: str, text: str) -> bytes:
    """Encode the text of a new file."""
    return _encode(path, text, 0, len(text), TextEncoding())


def _round_trips(body: bytes, text_encoding: TextEncoding) -> bool:
    """Return whether decoding and encoding gives the same bytes; some encodings have two forms of a character."""
    if text_encoding.encoding == "utf-8":
        return True
    return (
        text_encoding.encoding != DAMAGED_UTF8
        and body.decode(text_encoding.encoding).encode(text_encoding.encoding) == body
    )


def _reencode_lines(path: str, body: bytes, before: str, after: str, text_encoding: TextEncoding) -> bytes:
    """Keep the bytes of unchanged lines, and of changed lines those of the common start and end."""
    from ostler.text.matching import matching_blocks

    old, new = _LINE.findall(before), _LINE.findall(after)
    stored = _line_bytes(body, old, text_encoding)
    chunks: list[bytes] = []
    at_old = at_new = written = 0
    for from_old, from_new, size in [*matching_blocks(old, new), (len(old), len(new), 0)]:
        lines = new[at_new:from_new]
        changed = "".join(lines)
        if changed:
            replaced = (b"".join(stored[at_old:from_old]), "".join(old[at_old:from_old]))
            chunks.append(_splice(path, *replaced, after, written, written + len(changed), text_encoding))
        chunks += stored[from_old : from_old + size]
        written += len(changed) + sum(len(line) for line in new[from_new : from_new + size])
        at_old, at_new = from_old + size, from_new + size
    return b"".join(chunks)


def _line_bytes(body: bytes, lines: list[str], text_encoding: TextEncoding) -> list[bytes]:
    """Return the original bytes of each line; all forms of a character have the same length."""
    exact = body.decode("utf-8", "surrogateescape") if text_encoding.encoding == DAMAGED_UTF8 else None
    stored: list[bytes] = []
    char_offset = byte_offset = 0
    for line in lines:
        size = len(
            _encode_as_stored(line if exact is None else exact[char_offset : char_offset + len(line)], text_encoding)
        )
        stored.append(body[byte_offset : byte_offset + size])
        char_offset += len(line)
        byte_offset += size
    return stored


def _splice(path: str, raw: bytes, before: str, after: str, start: int, end: int, text_encoding: TextEncoding) -> bytes:
    """Encode `after[start:end]` in place of `before`, keeping the bytes of their common start and end."""
    new = after[start:end]
    prefix = _common_prefix_length(before, new, min(len(before), len(new)))
    suffix = _common_prefix_length(before[::-1], new[::-1], min(len(before), len(new)) - prefix)
    parts = _line_bytes(
        raw, [before[:prefix], before[prefix : len(before) - suffix], before[len(before) - suffix :]], text_encoding
    )
    if "\ufffd" in new[prefix : len(new) - suffix] and text_encoding.encoding == DAMAGED_UTF8:
        raise _lossy_error(path, text_encoding)
    return parts[0] + _encode(path, after, start + prefix, end - suffix, text_encoding) + parts[2]


def _encode_as_stored(text: str, text_encoding: TextEncoding) -> bytes:
    return (
        text.encode("utf-8", "surrogateescape")
        if text_encoding.encoding == DAMAGED_UTF8
        else text.encode(text_encoding.encoding)
    )


def _encode(path: str, text: str, start: int, end: int, text_encoding: TextEncoding) -> bytes:
    try:
        return text[start:end].encode("utf-8" if text_encoding.encoding == DAMAGED_UTF8 else text_encoding.encoding)
    except UnicodeEncodeError as error:
        index = start + error.start
        line = max(text.count("\n", 0, index), text.count("\r", 0, index)) + 1
        char = text[index]
        description = f"{char!r} (U+{ord(char):04X})" if char.isprintable() else f"U+{ord(char):04X}"
        reason = f"line {line} has {description}, which the file's encoding ({text_encoding.encoding}) cannot represent"
        raise PathError("unencodable", path, reason, hint="use another character, or convert the file first") from None


def _lossy_error(path: str, text_encoding: TextEncoding) -> PathError:
    reason = f"this change cannot be written in the file's encoding ({text_encoding.encoding}) without loss"
    return PathError("unencodable", path, reason, hint="change a smaller part, or convert the file to UTF-8 first")


def _common_prefix_length(a: str, b: str, limit: int) -> int:
    """Return the length of the common prefix of two texts, at most `limit`."""
    low = 0
    while low < limit:
        middle = (low + limit + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            limit = middle - 1
    return low
