"""Identifies binary files by their first bytes."""

_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"GIF87a", "a GIF image"),
    (0, b"GIF89a", "a GIF image"),
    (8, b"WEBP", "a WebP image"),
    (8, b"WAVE", "WAV audio"),
    (8, b"AVI ", "an AVI video"),
    (4, b"ftypavif", "an AVIF image"),
    (4, b"ftypheic", "a HEIC image"),
    (4, b"ftyp", "an MP4 video"),
    (0, b"\x00\x00\x01\x00", "an icon"),
    (0, b"II*\x00", "a TIFF image"),
    (0, b"MM\x00*", "a TIFF image"),
    (0, b"%PDF-", "a PDF document"),
    (0, b"PK\x03\x04", "a ZIP archive (or an office document, or a JAR)"),
    (0, b"PK\x05\x06", "an empty ZIP archive"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"BZh", "bzip2 data"),
    (0, b"\xfd7zXZ\x00", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "zstd data"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"\x7fELF", "an ELF program or library"),
    (0, b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (0, b"\xca\xfe\xba\xbe", "a Java class or a Mach-O program"),
    (0, b"\x00asm", "a WebAssembly module"),
    (0, b"!<arch>\n", "a static library"),
    (0, b"SQLite format 3\x00", "an SQLite database"),
    (0, b"OggS", "Ogg audio or video"),
    (0, b"fLaC", "FLAC audio"),
    (0, b"ID3", "MP3 audio"),
    (0, b"\x1aE\xdf\xa3", "a Matroska or WebM video"),
    (0, b"wOFF", "a WOFF font"),
    (0, b"wOF2", "a WOFF2 font"),
    (0, b"\x00\x01\x00\x00\x00", "a TrueType font"),
    (0, b"OTTO", "an OpenType font"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old office document"),
    (0, b"DIRC", "a git index"),
)


def describe_binary(head: bytes) -> str:
    """Describe a binary file by its first bytes."""
    for offset, signature, kind in _SIGNATURES:
        if head.startswith(signature, offset):
            return kind
    if head.startswith(b"MZ"):
        return "a Windows program"
    return "binary data"


def is_always_binary(head: bytes) -> bool:
    """Return whether the first bytes identify a binary format, even if the rest could be decoded as text."""
    return head.startswith((b"%PDF-", b"\x89PNG", b"\x7fELF", b"\xff\xd8\xff", b"PK\x03\x04", b"\x1f\x8b", b"\xfd7zXZ"))
