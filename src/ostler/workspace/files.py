"""Files read whole within a limit, told to be text or not, and decoded."""

import os
import stat

from ostler.vocabulary.errors import PathRefused
from ostler.vocabulary.seams import TextFile
from ostler.workspace.encodings import Form, decode, detect
from ostler.workspace.magic import kind_of
from ostler.workspace.newlines import newline_of
from ostler.workspace.refusals import refusal

MAX_TEXT = 20 * 1024 * 1024
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
STATE = getattr(os, "O_PATH", READ)
_PIECE = 1024 * 1024


def regular(fd: int, path: str) -> os.stat_result:
    """The state of an open file; refused when it is a directory, a pipe, a socket or a device."""
    found = os.fstat(fd)
    if stat.S_ISDIR(found.st_mode):
        raise PathRefused("not_a_file", path, "this is a directory", hint="list it instead")
    if not stat.S_ISREG(found.st_mode):
        raise PathRefused("not_a_file", path, "this is a pipe, a socket or a device, which is never read or written")
    return found


def read_up_to(fd: int, limit: int) -> bytes:
    """The first bytes of an open file, however large it says it is."""
    pieces: list[bytes] = []
    while limit > 0 and (piece := os.read(fd, min(limit, _PIECE))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces) if len(pieces) != 1 else pieces[0]


def read_whole(fd: int, path: str, limit: int = MAX_TEXT) -> bytes:
    """All of an open regular file; refused beyond the limit."""
    found = regular(fd, path)
    size = found.st_size
    if size <= limit:
        try:
            raw = read_up_to(fd, limit + 1)
        except OSError as error:
            raise refusal(error, path) from None
        if len(raw) <= limit:
            return raw
        size = len(raw)
    hint = "search in it, or read a part of it with a command"
    raise PathRefused("too_large", path, f"it has {size:,} bytes or more, and {limit:,} can be read at once", hint=hint)


def version_of(raw: bytes) -> str:
    """A short name for some bytes, different for different bytes."""
    import hashlib

    return hashlib.blake2b(raw, digest_size=12).hexdigest()


def form_of(path: str, raw: bytes, prefer: str = "") -> Form:
    """The form of a text file; refused when it is no text."""
    form = detect(raw, prefer)
    if form is None:
        reason = f"this is {kind_of(raw[:512])} of {len(raw):,} bytes, not text"
        raise PathRefused("binary", path, reason)
    return form


def as_text(path: str, raw: bytes, prefer: str = "") -> TextFile:
    """The bytes of a file as text, with all that is needed to write it back."""
    form = form_of(path, raw, prefer)
    text = decode(raw, form)
    return TextFile(path, text, form.encoding, newline_of(text), form.bom, len(raw), version_of(raw))
