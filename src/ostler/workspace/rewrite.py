"""The bytes of a text that was changed: what was not changed keeps the very bytes it had."""

from ostler.text.regex import regex
from ostler.vocabulary.errors import PathRefused
from ostler.workspace.encodings import DAMAGED, Form, decode

_LINE = regex(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


def rewritten(path: str, raw: bytes, form: Form, after: str) -> bytes:
    """A new text in the form of the bytes it replaces; a character that form cannot hold is refused."""
    after = after.removeprefix("\ufeff") if form.bom else after
    body = raw[len(form.mark) :]
    if _plainly_stored(body, form):
        return form.mark + _encoded(path, after, 0, len(after), form)
    data = _by_lines(path, body, decode(raw, form), after, form)
    if decode(form.mark + data, form) != after:
        raise _lossy(path, form)
    return form.mark + data


def encoded_new(path: str, text: str) -> bytes:
    """The bytes of a file that was not there before."""
    return _encoded(path, text, 0, len(text), Form())


def _plainly_stored(body: bytes, form: Form) -> bool:
    """Whether encoding the text anew gives the same bytes; some encodings have two ways to write a character."""
    if form.encoding == "utf-8":
        return True
    return form.encoding != DAMAGED and body.decode(form.encoding).encode(form.encoding) == body


def _by_lines(path: str, body: bytes, before: str, after: str, form: Form) -> bytes:
    """Keep the bytes of every line that stays; of a line that changes, those at its start and its end."""
    from ostler.text.matching import matching_blocks

    old, new = _LINE.findall(before), _LINE.findall(after)
    stored = _stored_lines(body, old, form)
    pieces: list[bytes] = []
    at_old = at_new = written = 0
    for from_old, from_new, size in [*matching_blocks(old, new), (len(old), len(new), 0)]:
        lines = new[at_new:from_new]
        changed = "".join(lines)
        if changed:
            replaced = (b"".join(stored[at_old:from_old]), "".join(old[at_old:from_old]))
            pieces.append(_spliced(path, *replaced, after, written, written + len(changed), form))
        pieces += stored[from_old : from_old + size]
        written += len(changed) + sum(len(line) for line in new[from_new : from_new + size])
        at_old, at_new = from_old + size, from_new + size
    return b"".join(pieces)


def _stored_lines(body: bytes, lines: list[str], form: Form) -> list[bytes]:
    """The bytes of each line; a character's ways to be written are all of one length."""
    exact = body.decode("utf-8", "surrogateescape") if form.encoding == DAMAGED else None
    stored: list[bytes] = []
    letters = place = 0
    for line in lines:
        size = len(_as_stored(line if exact is None else exact[letters : letters + len(line)], form))
        stored.append(body[place : place + size])
        letters += len(line)
        place += size
    return stored


def _spliced(path: str, raw: bytes, before: str, after: str, start: int, end: int, form: Form) -> bytes:
    """`after[start:end]` in place of `before`, with the bytes kept that both have at their ends."""
    now = after[start:end]
    lead = _shared(before, now, min(len(before), len(now)))
    rest = _shared(before[::-1], now[::-1], min(len(before), len(now)) - lead)
    kept = _stored_lines(raw, [before[:lead], before[lead : len(before) - rest], before[len(before) - rest :]], form)
    if "\ufffd" in now[lead : len(now) - rest] and form.encoding == DAMAGED:
        raise _lossy(path, form)
    return kept[0] + _encoded(path, after, start + lead, end - rest, form) + kept[2]


def _as_stored(text: str, form: Form) -> bytes:
    return text.encode("utf-8", "surrogateescape") if form.encoding == DAMAGED else text.encode(form.encoding)


def _encoded(path: str, text: str, start: int, end: int, form: Form) -> bytes:
    try:
        return text[start:end].encode("utf-8" if form.encoding == DAMAGED else form.encoding)
    except UnicodeEncodeError as error:
        at = start + error.start
        line = max(text.count("\n", 0, at), text.count("\r", 0, at)) + 1
        letter = text[at]
        shown = f"{letter!r} (U+{ord(letter):04X})" if letter.isprintable() else f"U+{ord(letter):04X}"
        reason = f"line {line} has {shown}, which the file's encoding ({form.encoding}) cannot hold"
        raise PathRefused(
            "unencodable", path, reason, hint="use another character, or convert the file first"
        ) from None


def _lossy(path: str, form: Form) -> PathRefused:
    reason = f"this change cannot be written in the file's encoding ({form.encoding}) without loss"
    return PathRefused("unencodable", path, reason, hint="change a smaller span, or convert the file to UTF-8 first")


def _shared(a: str, b: str, most: int) -> int:
    """How many characters two texts share at their start."""
    low = 0
    while low < most:
        middle = (low + most + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            most = middle - 1
    return low
