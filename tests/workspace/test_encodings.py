import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.core.errors import PathError
from ostler.workspace.encodings import DAMAGED_UTF8, decode, detect
from ostler.workspace.file_reading import to_text_file
from ostler.workspace.file_signatures import describe_binary
from ostler.workspace.newlines import detect_newline, with_newline

SAMPLES = [
    (encoding, text)
    for encoding, texts in json.loads(Path(__file__).with_name("samples.json").read_text("utf-8")).items()
    for text in texts
]


@pytest.mark.req("FS-4")
@pytest.mark.parametrize(("encoding", "text"), SAMPLES)
def test_encoding_is_detected(encoding, text):
    raw = text.encode(encoding)
    text_encoding = detect(raw)
    assert text_encoding is not None
    assert (text_encoding.encoding, decode(raw, text_encoding)) == (encoding, text)


@pytest.mark.req("FS-4")
@pytest.mark.parametrize(("encoding", "text"), SAMPLES)
def test_detected_encoding_decodes_whole_file(encoding, text):
    raw = ("a = 1;\n" * 50 + text * 3).encode(encoding)
    text_encoding = detect(raw)
    assert text_encoding is not None
    assert decode(raw, text_encoding) == raw.decode(encoding)


@pytest.mark.req("FS-4")
@pytest.mark.parametrize("text", ["hello\n", "naïve\n", "你好，世界 ok\n一二三\n", "привет мир\n"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_detected_with_and_without_mark(encoding, text):
    text_encoding = detect(text.encode(encoding))
    assert text_encoding is not None
    assert (text_encoding.encoding, text_encoding.bom) == (encoding, False)
    marked = detect(("\ufeff" + text).encode(encoding))
    assert marked is not None
    assert (marked.encoding, marked.bom) == (encoding, True)
    assert decode(("\ufeff" + text).encode(encoding), marked) == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-32-le", "utf-32-be"])
def test_other_byte_order_marks(encoding):
    text_encoding = detect(("\ufeffé\n").encode(encoding))
    assert text_encoding is not None
    assert (text_encoding.encoding, text_encoding.bom) == (encoding, True)


def test_utf8_with_few_damaged_bytes_is_detected():
    raw = "日本語のログ\n".encode() * 20 + b"bad \xff byte\n"
    text_encoding = detect(raw)
    assert text_encoding is not None
    assert text_encoding.encoding == DAMAGED_UTF8
    assert decode(raw, text_encoding).endswith("bad \ufffd byte\n")


def test_preferred_encoding_is_kept_if_valid():
    raw = "été\n".encode("cp1252")
    assert detect(raw, "koi8-r").encoding == "koi8-r"
    assert detect(b"plain\n", "koi8-r").encoding == "utf-8"
    assert detect(raw, "shift_jis").encoding == "cp1252"


@pytest.mark.req("FS-4")
@pytest.mark.parametrize(
    ("head", "description"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PNG"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "JPEG"),
        (b"GIF89a\x01\0\x01\0", "GIF"),
        (b"%PDF-1.7\n1 0 obj\n", "PDF"),
        (b"PK\x03\x04\x14\0\0\0", "ZIP"),
        (b"\x7fELF\x02\x01\x01" + bytes(9), "ELF"),
        (b"SQLite format 3\0\x10\0", "SQLite"),
        (b"\x1f\x8b\x08\0\0\0\0\0", "gzip"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "WebP"),
        (b"\0\0\0\x18ftypmp42\0\0", "MP4"),
        (b"MZ\x90\0\x03\0\0\0", "Windows"),
        (b"\0" * 257 + b"ustar\0", "tar"),
        (b"\0\x01\x02\x03\x04\x05", "binary data"),
        (bytes(range(1, 32)) * 4 + b"\xff", "binary data"),
        (b"abc\0def\n", "binary data"),
        ("naïve\0 text with one zero byte\n\n".encode(), "binary data"),
    ],
)
def test_binary_file_is_described(head, description):
    assert detect(head) is None
    assert description in describe_binary(head)
    with pytest.raises(PathError, match=description) as error:
        to_text_file("x", head)
    assert error.value.fault.code == "binary"


@pytest.mark.parametrize("raw", [b"", b"\n", b"\x1b[31mred\x1b[0m\n", b"a\x0cb", b"\xef\xbb\xbf"])
def test_unusual_texts_are_utf8(raw):
    assert detect(raw).encoding == "utf-8"


@examples(300)
@given(st.binary(max_size=400))
def test_detection_is_deterministic_and_never_fails(raw):
    text_encoding = detect(raw)
    assert text_encoding == detect(raw)
    if text_encoding is not None:
        decode(raw, text_encoding).encode()


@pytest.mark.req("FS-4")
@pytest.mark.parametrize(
    ("text", "newline"),
    [
        ("", ""),
        ("a", ""),
        ("a\n", "\n"),
        ("a\r\nb\r\n", "\r\n"),
        ("a\rb", "\r"),
        ("a\nb\r\n", "mixed"),
        ("a\r\rb\n", "mixed"),
    ],
)
def test_newline_detection(text, newline):
    assert detect_newline(text) == newline


@pytest.mark.req("FS-5")
@pytest.mark.parametrize(
    ("text", "newline", "expected"),
    [
        ("a\nb\n", "\r\n", "a\r\nb\r\n"),
        ("a\nb", "\r", "a\rb"),
        ("a\nb\r\n", "\r\n", "a\nb\r\n"),
        ("a\n", "mixed", "a\n"),
        ("a\r\n", "\n", "a\r\n"),
        ("a\n", "", "a\n"),
    ],
)
def test_with_newline_converts_only_line_feeds(text, newline, expected):
    assert with_newline(text, newline) == expected
