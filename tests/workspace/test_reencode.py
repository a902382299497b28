"""Unchanged text keeps its bytes, in every encoding and with every line ending."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.core.errors import PathError
from ostler.workspace.encodings import DAMAGED_UTF8, TextEncoding, decode, detect
from ostler.workspace.reencode import encode_new, reencode

SAMPLES = json.loads(Path(__file__).with_name("samples.json").read_text("utf-8"))
LEGACY = ["cp1252", "gb18030", "cp932", "cp949", "koi8-r", "cp1251", "euc_jp", "big5"]
ENCODINGS = [
    TextEncoding("utf-8"),
    TextEncoding("utf-8", bom=True),
    *(TextEncoding(f"utf-16-{order}", bom=bom) for order in ("le", "be") for bom in (True, False)),
    *(TextEncoding(encoding) for encoding in LEGACY),
]
NEWLINES = {"LF": "\n", "CRLF": "\r\n", "CR": "\r", "mixed": None}


def sample_text(text_encoding: TextEncoding, newline: str | None, final: bool) -> str:
    lines = [text.strip() for text in SAMPLES.get(text_encoding.encoding, SAMPLES["utf-8"])] + ["old = 1", "end"]
    ends = [newline] * len(lines) if newline else ["\n", "\r\n", "\r"] * len(lines)
    text = "".join(line + end for line, end in zip(lines, ends, strict=False))
    return text if final else text.rstrip("\r\n")


@pytest.mark.req("FS-5")
@pytest.mark.parametrize("final", [True, False], ids=["final", "no final"])
@pytest.mark.parametrize("newline", NEWLINES.values(), ids=NEWLINES.keys())
@pytest.mark.parametrize("text_encoding", ENCODINGS, ids=lambda e: f"{e.encoding}{'+bom' if e.bom else ''}")
@pytest.mark.sampled
def test_bytes_outside_change_are_identical(text_encoding, newline, final):
    text = sample_text(text_encoding, newline, final)
    raw = text_encoding.bom_bytes + text.encode(text_encoding.encoding)
    assert detect(raw) == text_encoding
    data = reencode("x", raw, text_encoding, text.replace("old = 1", "new = 22"))
    assert data == raw.replace("old = 1".encode(text_encoding.encoding), "new = 22".encode(text_encoding.encoding))


# Characters with two byte sequences: decoding and encoding would turn the second into the first.
ALTERNATIVES = {"cp932": b"\xed\x40 \xfa\x5c \x87\x90 \xee\xf9", "big5": b"\xa1\xfe \xa2\xcc"}


@pytest.mark.req("FS-5")
@pytest.mark.parametrize("encoding", ALTERNATIVES)
def test_alternative_byte_sequences_are_kept(encoding):
    alternatives = ALTERNATIVES[encoding]
    assert alternatives.decode(encoding).encode(encoding) != alternatives
    raw = (
        alternatives
        + b" = old\n"
        + alternatives
        + b"\nthen\n"
        + alternatives
        + b" old "
        + alternatives
        + b"\r\nlast "
        + alternatives
    )
    text_encoding = TextEncoding(encoding)
    data = reencode("x", raw, text_encoding, decode(raw, text_encoding).replace("old", "newer"))
    assert data == raw.replace(b"old", b"newer")


@pytest.mark.req("FS-5")
@examples(200)
@given(st.data(), st.sampled_from(ENCODINGS))
def test_any_change_affects_only_its_span(data, text_encoding):
    text = sample_text(text_encoding, data.draw(st.sampled_from(list(NEWLINES.values()))), data.draw(st.booleans()))
    raw = text_encoding.bom_bytes + text.encode(text_encoding.encoding)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    new = data.draw(st.text("ab \n\r=", max_size=8))
    result = reencode("x", raw, text_encoding, text[:start] + new + text[end:])
    expected = (
        text[:start].encode(text_encoding.encoding)
        + new.encode(text_encoding.encoding)
        + text[end:].encode(text_encoding.encoding)
    )
    assert result == text_encoding.bom_bytes + expected


@pytest.mark.req("FS-5")
def test_damaged_bytes_outside_change_are_kept():
    raw = "日本語\n".encode() * 5 + b"bad \xff\xc3 byte\n" + "終わり old\n".encode()
    text_encoding = detect(raw)
    assert text_encoding is not None
    text = decode(raw, text_encoding)
    assert reencode("x", raw, text_encoding, text.replace("old", "new")) == raw.replace(b"old", b"new")
    assert reencode("x", raw, text_encoding, "新 " + text) == "新 ".encode() + raw
    both = text.replace("old", "new").replace("日本語\n", "Z\n", 1)
    assert reencode("x", raw, text_encoding, both) == b"Z\n" + raw[10:].replace(b"old", b"new")


def test_change_across_damaged_bytes_is_rejected():
    raw = "日本語\n".encode() * 5 + b"one \xff two\n"
    text_encoding = TextEncoding(DAMAGED_UTF8)
    text = decode(raw, text_encoding)
    with pytest.raises(PathError) as error:
        reencode("x", raw, text_encoding, text.replace("one", "1").replace("two", "2"))
    assert error.value.fault.code == "unencodable"


@pytest.mark.req("FS-5")
@pytest.mark.parametrize(
    ("text_encoding", "char", "name"),
    [
        (TextEncoding("cp1252"), "日", "U+65E5"),
        (TextEncoding("koi8-r"), "é", "U+00E9"),
        (TextEncoding("cp932"), "é", "U+00E9"),
        (TextEncoding("cp949"), "ж́"[1:], "U+0301"),
        (TextEncoding("utf-8"), "\ud800", "U+D800"),
        (TextEncoding("utf-16-le", bom=True), "\udfff", "U+DFFF"),
    ],
)
def test_unencodable_character_is_reported_with_line(text_encoding, char, name):
    raw = text_encoding.bom_bytes + "one\r\ntwo\r\n".encode(text_encoding.encoding)
    with pytest.raises(PathError) as error:
        reencode("x", raw, text_encoding, f"one\r\ntwo {char}\r\n")
    assert error.value.fault.code == "unencodable"
    assert "line 2" in error.value.reason
    assert name in error.value.reason
    assert text_encoding.encoding in error.value.reason
    str(error.value).encode()


def test_byte_order_mark_is_kept_once():
    raw = "\ufeffa\n".encode()
    assert reencode("x", raw, TextEncoding("utf-8", bom=True), "\ufeffb\n") == "\ufeffb\n".encode()
    assert reencode("x", raw, TextEncoding("utf-8", bom=True), "b\n") == "\ufeffb\n".encode()


def test_new_file_is_utf8():
    assert encode_new("x", "é\r\n") == "é\r\n".encode()
    with pytest.raises(PathError, match="line 1"):
        encode_new("x", "\udcff")
