import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
def test_an_encoding_is_found_from_the_bytes_alone(encoding, text):
    raw = text.encode(encoding)
    form = detect(raw)
    assert form is not None
    assert (form.encoding, decode(raw, form)) == (encoding, text)


@pytest.mark.req("FS-4")
@pytest.mark.parametrize(("encoding", "text"), SAMPLES)
def test_what_is_found_early_in_a_file_holds_for_all_of_it(encoding, text):
    raw = ("a = 1;\n" * 50 + text * 3).encode(encoding)
    form = detect(raw)
    assert form is not None
    assert decode(raw, form) == raw.decode(encoding)


@pytest.mark.req("FS-4")
@pytest.mark.parametrize("text", ["hello\n", "naïve\n", "你好，世界 ok\n一二三\n", "привет мир\n"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_wide_characters_are_found_with_and_without_a_mark(encoding, text):
    form = detect(text.encode(encoding))
    assert form is not None
    assert (form.encoding, form.bom) == (encoding, False)
    marked = detect(("\ufeff" + text).encode(encoding))
    assert marked is not None
    assert (marked.encoding, marked.bom) == (encoding, True)
    assert decode(("\ufeff" + text).encode(encoding), marked) == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-32-le", "utf-32-be"])
def test_other_marks(encoding):
    form = detect(("\ufeffé\n").encode(encoding))
    assert form is not None
    assert (form.encoding, form.bom) == (encoding, True)


def test_a_few_bad_bytes_do_not_make_utf8_something_else():
    raw = "日本語のログ\n".encode() * 20 + b"bad \xff byte\n"
    form = detect(raw)
    assert form is not None
    assert form.encoding == DAMAGED_UTF8
    assert decode(raw, form).endswith("bad \ufffd byte\n")


def test_the_encoding_a_file_was_read_in_is_kept_while_it_fits():
    raw = "été\n".encode("cp1252")
    assert detect(raw, "koi8-r").encoding == "koi8-r"
    assert detect(b"plain\n", "koi8-r").encoding == "utf-8"
    assert detect(raw, "shift_jis").encoding == "cp1252"


@pytest.mark.req("FS-4")
@pytest.mark.parametrize(
    ("head", "says"),
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
def test_what_is_no_text_is_named(head, says):
    assert detect(head) is None
    assert says in describe_binary(head)
    with pytest.raises(PathError, match=says) as refused:
        to_text_file("x", head)
    assert refused.value.fault.code == "binary"


@pytest.mark.parametrize("raw", [b"", b"\n", b"\x1b[31mred\x1b[0m\n", b"a\x0cb", b"\xef\xbb\xbf"])
def test_odd_texts_are_text(raw):
    assert detect(raw).encoding == "utf-8"


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_get_the_same_answer_and_never_an_error(raw):
    form = detect(raw)
    assert form == detect(raw)
    if form is not None:
        decode(raw, form).encode()


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
def test_newline_style(text, newline):
    assert detect_newline(text) == newline


@pytest.mark.req("FS-5")
@pytest.mark.parametrize(
    ("text", "style", "becomes"),
    [
        ("a\nb\n", "\r\n", "a\r\nb\r\n"),
        ("a\nb", "\r", "a\rb"),
        ("a\nb\r\n", "\r\n", "a\nb\r\n"),
        ("a\n", "mixed", "a\n"),
        ("a\r\n", "\n", "a\r\n"),
        ("a\n", "", "a\n"),
    ],
)
def test_a_new_text_takes_the_style_of_its_file_unless_it_has_its_own(text, style, becomes):
    assert with_newline(text, style) == becomes
