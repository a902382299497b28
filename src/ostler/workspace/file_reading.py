"""Reads regular files within a limit and decodes them."""

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
    """Return the stat result of an open file. Raises `PathError` if it is not a regular file."""
    found = os.fstat(fd)
    if stat.S_ISDIR(found.st_mode):
        raise PathError("not_a_file", path, "this is a directory", hint="list it instead")
    if not stat.S_ISREG(found.st_mode):
        raise PathError("not_a_file", path, "this is a pipe, a socket or a device, not a regular file")
    return found


def read_up_to(fd: int, limit: int) -> bytes:
    """Return at most `limit` bytes of an open file, independent of its reported size."""
    chunks: list[bytes] = []
    while limit > 0 and (chunk := os.read(fd, min(limit, _CHUNK_BYTES))):
        chunks.append(chunk)
        limit -= len(chunk)
    return b"".join(chunks) if len(chunks) != 1 else chunks[0]


def read_all(fd: int, path: str) -> bytes:
    """Return all bytes of an open regular file. Raises `PathError` if it is larger than `MAX_TEXT_BYTES`."""
    size = stat_regular(fd, path).st_size
    if size <= MAX_TEXT_BYTES:
        try:
            raw = read_up_to(fd, MAX_TEXT_BYTES + 1)
        except OSError as error:
            raise path_error(error, path) from None
        if len(raw) <= MAX_TEXT_BYTES:
            return raw
        size = len(raw)
    hint = "search it, or read a part of it with a command"
    raise PathError("too_large", path, f"it has at least {size:,} bytes; the limit is {MAX_TEXT_BYTES:,}", hint=hint)


def version_of(raw: bytes) -> str:
    """Return a hash of the bytes, used as the version of a file."""
    import hashlib

    return hashlib.blake2b(raw, digest_size=12).hexdigest()


def text_encoding_of(path: str, raw: bytes, preferred: str = "") -> TextEncoding:
    """Detect the encoding of a text file. Raises `PathError` for binary files."""
    text_encoding = detect(raw, preferred)
    if text_encoding is None:
        reason = f"this is {describe_binary(raw[:512])} of {len(raw):,} bytes, not text"
        raise PathError("binary", path, reason)
    return text_encoding


def to_text_file(path: str, raw: bytes, preferred: str = "") -> TextFile:
    """Decode the bytes of a file. Raises `PathError` for binary files."""
    text_encoding = text_encoding_of(path, raw, preferred)
    text = decode(raw, text_encoding)
    return TextFile(
        path, text, text_encoding.encoding, detect_newline(text), text_encoding.bom, len(raw), version_of(raw)
    )
