"""Property tests of edits: only the matched text changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.core.errors import ToolError
from ostler.tools.editing.replacement import Replacement
from ostler.tools.editing.replacements import apply_replacements
from ostler.tools.editing.text_match import REPEATABLE_RULES, find_text, same_except

pytestmark = pytest.mark.req("TL-6", "FS-5")

PARTS = st.sampled_from(["a", "b", "foo", " ", "  ", "\t", "\n", "\r\n", "\n\n", "{", "}", "é", "😀", "\r", "\x0c"])
TEXTS = st.lists(PARTS, max_size=30).map("".join)
VARIATIONS = {
    "unchanged": lambda part: part,
    "LF line endings": lambda part: part.replace("\r\n", "\n"),
    "CRLF line endings": lambda part: part.replace("\r\n", "\n").replace("\n", "\r\n"),
    "no trailing blanks": lambda part: "\n".join(line.rstrip(" \t") for line in part.split("\n")),
    "more trailing blanks": lambda part: part.replace("\n", " \t\n"),
    "shifted": lambda part: "".join(f"  {line}" if line.strip() else line for line in part.splitlines(True)),
}


@st.composite
def text_and_part(draw):
    """Draw a text, and an inexact copy of a part of it or another text."""
    text = draw(TEXTS)
    start, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
    part = VARIATIONS[draw(st.sampled_from(sorted(VARIATIONS)))](text[start:end])
    return text, draw(st.sampled_from([part, draw(TEXTS)]))


@examples(200)
@given(text_and_part(), TEXTS)
def test_only_the_requested_text_is_replaced(pair, new):
    text, old = pair
    try:
        result = apply_replacements("f", text, [Replacement(old, new)])
    except ToolError as error:
        assert error.fault.code in ("no_match", "ambiguous", "bad_edit")
        return
    found = find_text(text, old)
    (span,) = found.spans
    assert result.rules == (() if found.rule == "exact" else (found.rule,))
    assert same_except(found.rule, text[span.start : span.end], old)
    assert result.text.startswith(text[: span.start])
    assert result.text.endswith(text[span.end :])
    assert len(result.text) >= len(text) - (span.end - span.start)


@examples(150)
@given(text_and_part(), TEXTS)
def test_exact_edit_without_crs_equals_str_replace(pair, new):
    text, old, new = (part.replace("\r", "") for part in (*pair, new))
    if not old or old == new or text.find(old) < 0:
        return
    if text.find(old) != text.rfind(old):
        with pytest.raises(ToolError):
            apply_replacements("f", text, [Replacement(old, new)])
        assert apply_replacements("f", text, [Replacement(old, new, True)]).text == text.replace(old, new)
    else:
        assert apply_replacements("f", text, [Replacement(old, new)]).text == text.replace(old, new)


@examples(150)
@given(text_and_part(), TEXTS)
def test_consistent_line_endings_stay_consistent(pair, new):
    text, old = (part.replace("\r\n", "\n").replace("\r", "").replace("\n", "\r\n") for part in pair)
    new = new.replace("\r\n", "\n").replace("\r", "")
    if "\r\n" not in text:
        return
    for variant in (old, old.replace("\r\n", "\n")):
        try:
            result = apply_replacements("f", text, [Replacement(variant, new)])
        except ToolError:
            continue
        assert "\r" not in result.text.replace("\r\n", "")
        assert "\n" not in result.text.replace("\r\n", "")


@examples(150)
@given(text_and_part())
def test_round_trip(pair):
    text, old = (part.replace("\r\n", "\n").replace("\r", "").replace("\n\n", "\r\n") for part in pair)
    marker = "<<marker>>"
    try:
        result = apply_replacements("f", text, [Replacement(old, marker)])
    except ToolError:
        return
    found = find_text(text, old)
    span = next(found.spans)
    if found.rule in REPEATABLE_RULES:
        back = apply_replacements("f", result.text, [Replacement(marker, text[span.start : span.end])])
        assert back.text.replace("\r\n", "\n") == text.replace("\r\n", "\n")
