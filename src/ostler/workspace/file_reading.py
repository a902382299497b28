"""Files read whole within a limit, told to be text or not, and decoded."""

import os
import stat

from ostler.core.errors import PathError
from ostler.core.protocols import TextFile
from ostler.workspace.encodings import TextEncoding, decode, detect
from ostler.workspace.file_signatures import describe_binary
from ostler.workspace.newlines import detect_newline
from ostler.workspace.path_errors import path_error

MAX_TEXT_BYTES = 20 * 1024 * 1024
READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
STAT_FLAGS = getattr(os, "O_PATH", READ_FLAGS)
_CHUNK_BYTES = 1024 * 1024


def stat_regular(fd: int, path: str) -> os.stat_result:
    """The state of an open file; refused when it is a directory, a pipe, a socket or a device."""
    found = os.fstat(fd)
    if stat.S_ISDIR(found.st_mode):
        raise PathError("not_a_file", path, "this is a directory", hint="list it instead")
    if not stat.S_ISREG(found.st_mode):
        raise PathError("not_a_file", path, "this is a pipe, a socket or a device, which is never read or written")
    return found


def read_up_to(fd: int, limit: int) -> bytes:
    """The first bytes of an open file, however large it says it is."""
    pieces: list[bytes] = []
    while limit > 0 and (piece := os.read(fd, min(limit, _CHUNK_BYTES))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces) if len(pieces) != 1 else pieces[0]


def read_all(fd: int, path: str, limit: int = MAX_TEXT_BYTES) -> bytes:
    """All of an open regular file; refused beyond the limit."""
    found = stat_regular(fd, path)
    size = found.st_size
    if size <= limit:
        try:
            raw = read_up_to(fd, limit + 1)
        except OSError as error:
            raise path_error(error, path) from None
        if len(raw) <= limit:
            return raw
        size = len(raw)
    hint = "search in it, or read a part of it with a command"
    raise PathError("too_large", path, f"it has {size:,} bytes or more, and {limit:,} can be read at once", hint=hint)


def version_of(raw: bytes) -> str:
    """A short name for some bytes, different for different bytes."""
    import hashlib

    return hashlib.blake2b(raw, digest_size=12).hexdigest()


def text_encoding_of(path: str, raw: bytes, preferred: str = "") -> TextEncoding:
    """The form of a text file; refused when it is no text."""
    form = detect(raw, preferred)
    if form is None:
        reason = f"this is {describe_binary(raw[:512])} of {len(raw):,} bytes, not text"
        raise PathError("binary", path, reason)
    return form


def to_text_file(path: str, raw: bytes, preferred: str = "") -> TextFile:
    """The bytes of a file as text, with all that is needed to write it back."""
    form = text_encoding_of(path, raw, preferred)
    text = decode(raw, form)
    return TextFile(path, text, form.encoding, detect_newline(text), form.bom, len(raw), version_of(raw))
