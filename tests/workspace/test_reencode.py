"""What a change does not touch keeps its very bytes, in every encoding and with every kind of line end."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostler.core.errors import PathError
from ostler.workspace.encodings import DAMAGED_UTF8, TextEncoding, decode, detect
from ostler.workspace.reencode import encode_new, reencode

SAMPLES = json.loads(Path(__file__).with_name("samples.json").read_text("utf-8"))
LEGACY = ["cp1252", "gb18030", "cp932", "cp949", "koi8-r", "cp1251", "euc_jp", "big5"]
FORMS = [
    TextEncoding("utf-8"),
    TextEncoding("utf-8", bom=True),
    *(TextEncoding(f"utf-16-{order}", bom=bom) for order in ("le", "be") for bom in (True, False)),
    *(TextEncoding(encoding) for encoding in LEGACY),
]
NEWLINES = {"LF": "\n", "CRLF": "\r\n", "CR": "\r", "mixed": None}


def body(form: TextEncoding, newline: str | None, final: bool) -> str:
    lines = [text.strip() for text in SAMPLES.get(form.encoding, SAMPLES["utf-8"])] + ["old = 1", "end"]
    ends = [newline] * len(lines) if newline else ["\n", "\r\n", "\r"] * len(lines)
    text = "".join(line + end for line, end in zip(lines, ends, strict=False))
    return text if final else text.rstrip("\r\n")


@pytest.mark.req("FS-5")
@pytest.mark.parametrize("final", [True, False], ids=["final", "no final"])
@pytest.mark.parametrize("newline", NEWLINES.values(), ids=NEWLINES.keys())
@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.encoding}{'+bom' if form.bom else ''}")
def test_bytes_outside_the_span_are_identical(form, newline, final):
    text = body(form, newline, final)
    raw = form.bom_bytes + text.encode(form.encoding)
    assert detect(raw) == form
    data = reencode("x", raw, form, text.replace("old = 1", "new = 22"))
    assert data == raw.replace("old = 1".encode(form.encoding), "new = 22".encode(form.encoding))


# Two byte sequences for one character: read and written back naively, the second becomes the first.
TWINS = {"cp932": b"\xed\x40 \xfa\x5c \x87\x90 \xee\xf9", "big5": b"\xa1\xfe \xa2\xcc"}


@pytest.mark.req("FS-5")
@pytest.mark.parametrize("encoding", TWINS)
def test_bytes_that_have_a_twin_are_not_turned_into_it(encoding):
    twins = TWINS[encoding]
    assert twins.decode(encoding).encode(encoding) != twins
    raw = twins + b" = old\n" + twins + b"\nthen\n" + twins + b" old " + twins + b"\r\nlast " + twins
    form = TextEncoding(encoding)
    data = reencode("x", raw, form, decode(raw, form).replace("old", "newer"))
    assert data == raw.replace(b"old", b"newer")


@pytest.mark.req("FS-5")
@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(FORMS))
def test_any_span_may_change_and_nothing_else_does(data, form):
    text = body(form, data.draw(st.sampled_from(list(NEWLINES.values()))), data.draw(st.booleans()))
    raw = form.bom_bytes + text.encode(form.encoding)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    new = data.draw(st.text("ab \n\r=", max_size=8))
    result = reencode("x", raw, form, text[:start] + new + text[end:])
    expected = text[:start].encode(form.encoding) + new.encode(form.encoding) + text[end:].encode(form.encoding)
    assert result == form.bom_bytes + expected


@pytest.mark.req("FS-5")
def test_damaged_bytes_outside_the_span_stay_as_they_are():
    raw = "日本語\n".encode() * 5 + b"bad \xff\xc3 byte\n" + "終わり old\n".encode()
    form = detect(raw)
    assert form is not None
    text = decode(raw, form)
    assert reencode("x", raw, form, text.replace("old", "new")) == raw.replace(b"old", b"new")
    assert reencode("x", raw, form, "新 " + text) == "新 ".encode() + raw
    both = text.replace("old", "new").replace("日本語\n", "Z\n", 1)
    assert reencode("x", raw, form, both) == b"Z\n" + raw[10:].replace(b"old", b"new")


def test_a_change_across_damaged_bytes_is_refused():
    raw = "日本語\n".encode() * 5 + b"one \xff two\n"
    form = TextEncoding(DAMAGED_UTF8)
    text = decode(raw, form)
    with pytest.raises(PathError) as refused:
        reencode("x", raw, form, text.replace("one", "1").replace("two", "2"))
    assert refused.value.fault.code == "unencodable"


@pytest.mark.req("FS-5")
@pytest.mark.parametrize(
    ("form", "letter", "name"),
    [
        (TextEncoding("cp1252"), "日", "U+65E5"),
        (TextEncoding("koi8-r"), "é", "U+00E9"),
        (TextEncoding("cp932"), "é", "U+00E9"),
        (TextEncoding("cp949"), "ж́"[1:], "U+0301"),
        (TextEncoding("utf-8"), "\ud800", "U+D800"),
        (TextEncoding("utf-16-le", bom=True), "\udfff", "U+DFFF"),
    ],
)
def test_a_character_the_encoding_cannot_hold_is_named_with_its_line(form, letter, name):
    raw = form.bom_bytes + "one\r\ntwo\r\n".encode(form.encoding)
    with pytest.raises(PathError) as refused:
        reencode("x", raw, form, f"one\r\ntwo {letter}\r\n")
    assert refused.value.fault.code == "unencodable"
    assert "line 2" in refused.value.reason
    assert name in refused.value.reason
    assert form.encoding in refused.value.reason
    str(refused.value).encode()


def test_a_mark_is_kept_once():
    raw = "\ufeffa\n".encode()
    assert reencode("x", raw, TextEncoding("utf-8", bom=True), "\ufeffb\n") == "\ufeffb\n".encode()
    assert reencode("x", raw, TextEncoding("utf-8", bom=True), "b\n") == "\ufeffb\n".encode()


def test_a_new_file_is_utf8_as_given():
    assert encode_new("x", "é\r\n") == "é\r\n".encode()
    with pytest.raises(PathError, match="line 1"):
        encode_new("x", "\udcff")
