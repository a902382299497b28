"""Whatever the texts: an edit takes away what was asked, bar its rule, and leaves everything else as it was."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostler.core.errors import ToolError
from ostler.tools.editing.replacement import Replacement
from ostler.tools.editing.replacements import apply_replacements
from ostler.tools.editing.text_match import REPEATABLE_RULES, find_text, same_except

pytestmark = pytest.mark.req("TL-6", "FS-5")

PIECES = st.sampled_from(["a", "b", "foo", " ", "  ", "\t", "\n", "\r\n", "\n\n", "{", "}", "é", "😀", "\r", "\x0c"])
TEXTS = st.lists(PIECES, max_size=30).map("".join)
BLURS = {
    "as it is": lambda part: part,
    "plain line ends": lambda part: part.replace("\r\n", "\n"),
    "other line ends": lambda part: part.replace("\r\n", "\n").replace("\n", "\r\n"),
    "no trailing blanks": lambda part: "\n".join(line.rstrip(" \t") for line in part.split("\n")),
    "more trailing blanks": lambda part: part.replace("\n", " \t\n"),
    "shifted": lambda part: "".join(f"  {line}" if line.strip() else line for line in part.splitlines(True)),
}


@st.composite
def asked(draw):
    """A text and a part of it as somebody may remember it, or any other part."""
    text = draw(TEXTS)
    start, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
    part = BLURS[draw(st.sampled_from(sorted(BLURS)))](text[start:end])
    return text, draw(st.sampled_from([part, draw(TEXTS)]))


@settings(max_examples=200, deadline=None)
@given(asked(), TEXTS)
def test_only_what_was_asked_for_goes_away(pair, new):
    text, old = pair
    try:
        made = apply_replacements("f", text, [Replacement(old, new)])
    except ToolError as failure:
        assert failure.fault.code in ("no_match", "ambiguous", "bad_edit")
        return
    found = find_text(text, old)
    (span,) = found.spans
    assert made.rules == (() if found.rule == "exact" else (found.rule,))
    assert same_except(found.rule, text[span.start : span.end], old)
    assert made.text.startswith(text[: span.start])
    assert made.text.endswith(text[span.end :])
    assert len(made.text) >= len(text) - (span.end - span.start)


@settings(max_examples=150, deadline=None)
@given(asked(), TEXTS)
def test_without_carriage_returns_an_exact_edit_is_a_plain_replacement(pair, new):
    text, old, new = (part.replace("\r", "") for part in (*pair, new))
    if not old or old == new or text.find(old) < 0:
        return
    if text.find(old) != text.rfind(old):
        with pytest.raises(ToolError):
            apply_replacements("f", text, [Replacement(old, new)])
        assert apply_replacements("f", text, [Replacement(old, new, True)]).text == text.replace(old, new)
    else:
        assert apply_replacements("f", text, [Replacement(old, new)]).text == text.replace(old, new)


@settings(max_examples=150, deadline=None)
@given(asked(), TEXTS)
def test_a_file_of_one_style_stays_one(pair, new):
    text, old = (part.replace("\r\n", "\n").replace("\r", "").replace("\n", "\r\n") for part in pair)
    new = new.replace("\r\n", "\n").replace("\r", "")
    if "\r\n" not in text:
        return
    for asked_for in (old, old.replace("\r\n", "\n")):
        try:
            made = apply_replacements("f", text, [Replacement(asked_for, new)])
        except ToolError:
            continue
        assert "\r" not in made.text.replace("\r\n", "")
        assert "\n" not in made.text.replace("\r\n", "")


@settings(max_examples=150, deadline=None)
@given(asked())
def test_there_and_back(pair):
    text, old = (part.replace("\r\n", "\n").replace("\r", "").replace("\n\n", "\r\n") for part in pair)
    marker = "<<marker>>"
    try:
        made = apply_replacements("f", text, [Replacement(old, marker)])
    except ToolError:
        return
    found = find_text(text, old)
    span = next(found.spans)
    if found.rule in REPEATABLE_RULES:
        back = apply_replacements("f", made.text, [Replacement(marker, text[span.start : span.end])])
        assert back.text.replace("\r\n", "\n") == text.replace("\r\n", "\n")
