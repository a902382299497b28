"""The bytes of a text that was changed: what was not changed keeps the very bytes it had."""

from ostler.core.errors import PathError
from ostler.text.lazy_regex import lazy_regex
from ostler.workspace.encodings import DAMAGED_UTF8, TextEncoding, decode

_LINE = lazy_regex(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


def reencode(path: str, raw: bytes, text_encoding: TextEncoding, after: str) -> bytes:
    """A new text in the form of the bytes it replaces; a character that form cannot hold is refused."""
    after = after.removeprefix("\ufeff") if text_encoding.bom else after
    body = raw[len(text_encoding.bom_bytes) :]
    if _round_trips(body, text_encoding):
        return text_encoding.bom_bytes + _encode(path, after, 0, len(after), text_encoding)
    data = _reencode_lines(path, body, decode(raw, text_encoding), after, text_encoding)
    if decode(text_encoding.bom_bytes + data, text_encoding) != after:
        raise _lossy_error(path, text_encoding)
    return text_encoding.bom_bytes + data


def encode_new(path: str, text: str) -> bytes:
    """The bytes of a file that was not there before."""
    return _encode(path, text, 0, len(text), TextEncoding())


def _round_trips(body: bytes, text_encoding: TextEncoding) -> bool:
    """Whether encoding the text anew gives the same bytes; some encodings have two ways to write a character."""
    if text_encoding.encoding == "utf-8":
        return True
    return (
        text_encoding.encoding != DAMAGED_UTF8
        and body.decode(text_encoding.encoding).encode(text_encoding.encoding) == body
    )


def _reencode_lines(path: str, body: bytes, before: str, after: str, text_encoding: TextEncoding) -> bytes:
    """Keep the bytes of every line that stays; of a line that changes, those at its start and its end."""
    from ostler.text.matching import matching_blocks

    old, new = _LINE.findall(before), _LINE.findall(after)
    stored = _line_bytes(body, old, text_encoding)
    pieces: list[bytes] = []
    at_old = at_new = written = 0
    for from_old, from_new, size in [*matching_blocks(old, new), (len(old), len(new), 0)]:
        lines = new[at_new:from_new]
        changed = "".join(lines)
        if changed:
            replaced = (b"".join(stored[at_old:from_old]), "".join(old[at_old:from_old]))
            pieces.append(_splice(path, *replaced, after, written, written + len(changed), text_encoding))
        pieces += stored[from_old : from_old + size]
        written += len(changed) + sum(len(line) for line in new[from_new : from_new + size])
        at_old, at_new = from_old + size, from_new + size
    return b"".join(pieces)


def _line_bytes(body: bytes, lines: list[str], text_encoding: TextEncoding) -> list[bytes]:
    """The bytes of each line; a character's ways to be written are all of one length."""
    exact = body.decode("utf-8", "surrogateescape") if text_encoding.encoding == DAMAGED_UTF8 else None
    stored: list[bytes] = []
    letters = place = 0
    for line in lines:
        size = len(_encode_as_stored(line if exact is None else exact[letters : letters + len(line)], text_encoding))
        stored.append(body[place : place + size])
        letters += len(line)
        place += size
    return stored


def _splice(path: str, raw: bytes, before: str, after: str, start: int, end: int, text_encoding: TextEncoding) -> bytes:
    """`after[start:end]` in place of `before`, with the bytes kept that both have at their ends."""
    now = after[start:end]
    lead = _common_prefix_length(before, now, min(len(before), len(now)))
    rest = _common_prefix_length(before[::-1], now[::-1], min(len(before), len(now)) - lead)
    kept = _line_bytes(
        raw, [before[:lead], before[lead : len(before) - rest], before[len(before) - rest :]], text_encoding
    )
    if "\ufffd" in now[lead : len(now) - rest] and text_encoding.encoding == DAMAGED_UTF8:
        raise _lossy_error(path, text_encoding)
    return kept[0] + _encode(path, after, start + lead, end - rest, text_encoding) + kept[2]


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
        at = start + error.start
        line = max(text.count("\n", 0, at), text.count("\r", 0, at)) + 1
        letter = text[at]
        shown = f"{letter!r} (U+{ord(letter):04X})" if letter.isprintable() else f"U+{ord(letter):04X}"
        reason = f"line {line} has {shown}, which the file's encoding ({text_encoding.encoding}) cannot hold"
        raise PathError("unencodable", path, reason, hint="use another character, or convert the file first") from None


def _lossy_error(path: str, text_encoding: TextEncoding) -> PathError:
    reason = f"this change cannot be written in the file's encoding ({text_encoding.encoding}) without loss"
    return PathError("unencodable", path, reason, hint="change a smaller span, or convert the file to UTF-8 first")


def _common_prefix_length(a: str, b: str, limit: int) -> int:
    """How many characters two texts share at their start."""
    low = 0
    while low < limit:
        middle = (low + limit + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            limit = middle - 1
    return low
