"""Untrusted text cannot control the terminal or contain invisible characters."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.text.sanitise import MAX_SEQUENCE_LENGTH, Sanitiser, escape_invisible, sanitise

ESC = "\x1b"

SANITISED = {
    "colour": (f"{ESC}[1;31mred{ESC}[0m", "red"),
    "invisible text": (f"{ESC}[8mhidden{ESC}[0m", "hidden"),
    "cursor over the prompt": (f"safe{ESC}[1A{ESC}[2K{ESC}[Gevil", "safeevil"),
    "private mode": (f"{ESC}[?1049h{ESC}[>4;2mtext", "text"),
    "status report": (f"a{ESC}[6nb{ESC}[cc", "abc"),
    "title": (f"a{ESC}]0;evil\x07b", "ab"),
    "window title": (f"a{ESC}]2;evil{ESC}\\b", "ab"),
    "link": (f"{ESC}]8;;http://evil{ESC}\\shown{ESC}]8;;{ESC}\\", "shown"),
    "notification": (f"a{ESC}]9;hey\x07b{ESC}]777;notify;x;y\x07c", "abc"),
    "clipboard": (f"a{ESC}]52;c;ZXZpbA==\x07b", "ab"),
    "inline file": (f"a{ESC}]1337;File=inline=1:AAAA\x07b", "ab"),
    "device control": (f"a{ESC}P1$r0m{ESC}\\b", "ab"),
    "device control over lines": (f"a{ESC}Pq\n#0\n{ESC}\\b", "ab"),
    "application command": (f"a{ESC}_Gf=100;AAAA{ESC}\\b", "ab"),
    "privacy message": (f"a{ESC}^x{ESC}\\b", "ab"),
    "start of string": (f"a{ESC}Xx{ESC}\\b", "ab"),
    "two characters": (f"a{ESC}cb{ESC}=c{ESC}7d", "abcd"),
    "character set": (f"a{ESC}(Bb{ESC}#8c", "abc"),
    "sequence broken by a sequence": (f"a{ESC}[3{ESC}[31mb", "ab"),
    "string broken by a sequence": (f"a{ESC}]0;x{ESC}[31mb", "ab"),
    "cancelled": (f"a{ESC}]0;x\x18b", "ab"),
    "escape before a line feed": (f"a{ESC}\nb", "a\nb"),
    "escape at the end": (f"a{ESC}", "a"),
    "open sequence at the end": (f"a{ESC}[31", "a"),
    "open title at the end": (f"a{ESC}]0;x", "a"),
    "title ends with its line": (f"a{ESC}]0;x\nb", "a\nb"),
    "C1 control sequence": ("a\x9b31mb", "ab"),
    "C1 title": ("a\x9d0;x\x9cb", "ab"),
    "C1 device control": ("a\x90x\x9cb", "ab"),
    "other C1": ("a\x80\x84\x99b", "ab"),
    "next line": ("a\x85b", "a\nb"),
    "C0": ("a\x00\x01\x07\x0e\x1fb\x7f", "ab"),
    "vertical tab and form feed": ("a\x0bb\x0cc", "a\nb\nc"),
    "line separators": ("a\u2028b\u2029c", "a\nb\nc"),
    "Windows line ends": ("a\r\nb\r\n", "a\nb\n"),
    "doubled carriage return": ("a\r\r\nb", "a\nb"),
    "overwrite by carriage return": ("rm -rf /\recho hello", "rm -rf /\necho hello"),
    "progress": ("\r10%\r\x1b[K20%\r\n", "10%\n20%\n"),
    "overwrite by backspace": ("evil\b\b\b\bgood", "evilgood"),
    "bidi": ("a\u202eb\u2066c\u200fd\u061ce", "abcde"),
    "zero width": ("a\u200bb\u2060c\ufeffd\u00ade", "abcde"),
    "tags": ("a\U000e0041\U000e007fb", "ab"),
    "variation selectors as data": ("a\ufe01b\ufe0fc\U000e0101", "abc"),
    "fillers": ("a\u3164b\uffa0c\u115fd", "abcd"),
    "joiners without effect": ("a\u200db\u200cc", "abc"),
    "lone surrogate": ("a\ud83db", "a\ufffdb"),
    "piled-up marks": ("a" + "\u0301" * 500 + "b", "a" + "\u0301" * 8 + "b"),
    "marks with invisible characters between": ("a" + "\u0301\u200b" * 50 + "b", "a" + "\u0301" * 8 + "b"),
    "marks of many kinds": ("a" + "\u0301\u20dd\u0489\u1ab0" * 9 + "b", "a" + "\u0301\u20dd\u0489\u1ab0" * 2 + "b"),
    "marks outside the first plane": ("a" + "\U0001e8d0" * 30, "a" + "\U0001e8d0" * 8),
    "marks at the start": ("\u0301" * 20 + "\n" + "\u0301" * 20, "\u0301" * 8 + "\n" + "\u0301" * 8),
}

UNCHANGED = [
    "plain text\n\twith a tab",
    "Grüße, 日本語, العربية, עברית, हिन्दी",
    "👩‍💻 👨‍👩‍👧‍👦 ❤️ ❤️‍🔥 1️⃣ 🏳️‍🌈 👍🏽 🇩🇪",
    "می‌خواهم",
    "क्‍ष",
    "e\u0301 combining",
    "box ┌─┐ braille ⠋ powerline \ue0b0",
    "non-breaking\u00a0space",
]


@pytest.mark.parametrize(("text", "expected"), SANITISED.values(), ids=SANITISED)
def test_harmful_characters_are_removed(text, expected):
    assert sanitise(text) == expected


@pytest.mark.parametrize("text", UNCHANGED)
def test_ordinary_text_is_unchanged(text):
    assert sanitise(text) == text


@pytest.mark.parametrize("opener", [f"{ESC}]0;", f"{ESC}P", f"{ESC}_", "\x9d", f"{ESC}[", f"{ESC}("])
def test_open_sequence_removes_a_bounded_length(opener):
    filler = " " if opener[-1] in "([" else "x"
    result = sanitise("before" + opener + filler * (MAX_SEQUENCE_LENGTH + 10) + "after")
    assert result.startswith("before")
    assert result.endswith("after")
    assert "\x1b" not in result


def test_escape_split_over_chunks_is_removed():
    sanitiser = Sanitiser()
    output = [sanitiser.feed(chunk) for chunk in ("a\x1b", "]5", "2;c;ZX", "Zp", "bA==\x1b", "\\b\x1b[", "3", "1mc")]
    assert output == ["a", "", "", "", "", "b", "", "c"]
    assert sanitiser.flush() == ""


def test_flush_resets_the_sanitiser():
    sanitiser = Sanitiser()
    sanitiser.feed("a\x1b]0;open")
    assert sanitiser.flush() == ""
    assert sanitiser.feed("b\r") + sanitiser.flush() == "b"
    assert sanitiser.feed("\nc") == "\nc"


HOSTILE = st.text(
    st.sampled_from(
        "\x1b\x1b\x1b[]P_^X\\;0123mKabc \n\r\t\x07\x18\x08\x9b\x9d\x9c\u200d\u200c\ufe0f1#❤👩\u20e3م\u202e\ud83d"
    )
    | st.characters(),
    max_size=60,
)


@given(HOSTILE, st.lists(st.integers(1, 7), max_size=20))
def test_chunking_does_not_matter(text, sizes):
    sanitiser = Sanitiser()
    output, pos = "", 0
    for size in sizes:
        output += sanitiser.feed(text[pos : pos + size])
        pos += size
    assert output + sanitiser.feed(text[pos:]) + sanitiser.flush() == sanitise(text)


@given(HOSTILE)
def test_result_is_harmless_and_stable(text):
    result = sanitise(text)
    assert sanitise(result) == result
    assert not [char for char in result if unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t"]
    assert not set(result) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\u200b\u200e\u200f\ufeff")


@given(st.text(st.characters(max_codepoint=0x7E, min_codepoint=0x20) | st.sampled_from("\n\täß漢")))
def test_plain_text_is_unchanged(text):
    assert sanitise(text) == text
    assert escape_invisible(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ls\x1b[2K", r"ls\x1b[2K"),
        ("a\rb", r"a\rb"),
        ("a\bb\x9bc", r"a\x08b\x9bc"),
        ("rm \u202ecod", "rm <U+202E>cod"),
        ("a\u200bb", "a<U+200B>b"),
        ("ls\u00a0-l\u3000x", "ls<U+00A0>-l<U+3000>x"),
        ("👩\u200d💻", "👩<U+200D>💻"),
        ("x\U000e0041", "x<U+E0041>"),
        ("a\ud800b\u2028c", "a<U+D800>b<U+2028>c"),
        ("tab\tand\nline", "tab\tand\nline"),
    ],
)
def test_invisible_characters_are_escaped(text, expected):
    assert escape_invisible(text) == expected


@given(HOSTILE)
def test_escaped_text_has_no_invisible_characters(text):
    assert sanitise(escape_invisible(text)) == escape_invisible(text)


def test_piled_up_marks_are_shown_where_the_user_decides():
    assert escape_invisible("a" + "\u0301" * 10 + "b") == "a" + "\u0301" * 8 + "<U+0301><U+0301>b"
