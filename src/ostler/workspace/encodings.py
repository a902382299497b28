"""Detects the encoding of a text; the same bytes always give the same result.

The order: a byte order mark; strict UTF-8; UTF-16 without a mark, if the NUL bytes are at the right positions; UTF-8
with a few damaged bytes; then the most plausible legacy encoding, judged by how common the decoded characters are in
its language. Anything else is decoded as Latin-1, which preserves every byte.
"""

import codecs

import msgspec

from ostler.text.lazy_regex import lazy_regex
from ostler.workspace.file_signatures import is_always_binary

SAMPLE_BYTES = 64 * 1024
DAMAGED_UTF8 = "utf-8 (damaged)"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = lazy_regex(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
_SURROGATE = lazy_regex("[\ud800-\udfff]")
_PLAIN = lazy_regex("[\\t\\r\\n -~]")
_UNUSUAL = lazy_regex("[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f-\x9f\ud800-\udfff\ue000-\uf8ff\ufffe\uffff]")


class TextEncoding(msgspec.Struct, frozen=True):
    """The encoding of a text file, and whether it starts with a byte order mark."""

    encoding: str = "utf-8"
    bom: bool = False

    @property
    def bom_bytes(self) -> bytes:
        return next((mark for mark, encoding in _BOMS if self.bom and encoding == self.encoding), b"")


def detect(raw: bytes, preferred: str = "") -> TextEncoding | None:
    """Return the encoding of a text, or None for binary data. `preferred` is used if the bytes are valid in it."""
    if is_always_binary(raw[:16]):
        return None
    for mark, encoding in _BOMS:
        if raw.startswith(mark) and can_decode(raw[len(mark) :], encoding):
            return TextEncoding(encoding, bom=True)
    if b"\0" in raw:
        return _detect_utf16(raw)
    if can_decode(raw, "utf-8"):
        return TextEncoding("utf-8")
    if preferred not in ("", "utf-8") and can_decode(raw, preferred):
        return TextEncoding(preferred)
    sample = raw[:SAMPLE_BYTES]
    if len(_CONTROLS.findall(sample)) * 50 > len(sample):
        return None
    return TextEncoding(DAMAGED_UTF8 if _is_nearly_utf8(sample) else _detect_legacy(raw))


def decode(raw: bytes, text_encoding: TextEncoding) -> str:
    """Decode bytes in their detected encoding."""
    body = raw[len(text_encoding.bom_bytes) :]
    if text_encoding.encoding == DAMAGED_UTF8:
        return _SURROGATE.sub("\ufffd", body.decode("utf-8", "surrogateescape"))
    return body.decode(text_encoding.encoding)


def can_decode(raw: bytes, encoding: str) -> bool:
    """Return whether bytes are valid in an encoding."""
    if encoding == DAMAGED_UTF8:
        return _is_nearly_utf8(raw[:SAMPLE_BYTES])
    try:
        raw.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return False
    return True


def _is_nearly_utf8(sample: bytes) -> bool:
    text = sample.decode("utf-8", "surrogateescape")
    broken = len(_SURROGATE.findall(text))
    valid = sum(1 for c in text if c > "\x7f") - broken
    return valid >= 4 * broken


def _detect_utf16(raw: bytes) -> TextEncoding | None:
    """Detect UTF-16 without a mark: the byte order that gives more plain characters, if the result looks like text."""
    sample = raw[:SAMPLE_BYTES]
    if len(raw) % 2 or _has_stray_zeros(sample):
        return None
    low, high = (len(_PLAIN.findall(sample.decode(encoding, "ignore"))) for encoding in ("utf-16-le", "utf-16-be"))
    encoding = "utf-16-le" if low > high else "utf-16-be"
    text = sample.decode(encoding, "ignore")
    if max(low, high) * 50 < len(text) or len(_UNUSUAL.findall(text)) * 50 > len(text):
        return None
    return TextEncoding(encoding) if can_decode(raw, encoding) else None


def _has_stray_zeros(sample: bytes) -> bool:
    """Return whether the sample is ordinary text with a few stray NUL bytes."""
    rest = sample.replace(b"\0", b"")
    return len(rest) * 4 > len(sample) * 3 and not _CONTROLS.search(rest) and can_decode(rest[:-4], "utf-8")


def _detect_legacy(raw: bytes) -> str:
    from ostler.workspace.encoding_guess import rank_encodings

    for encoding in rank_encodings(raw[:SAMPLE_BYTES]):
        if can_decode(raw, encoding):
            return encoding
    return "latin-1"
