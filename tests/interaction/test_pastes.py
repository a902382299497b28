"""Placeholders for long pastes."""

import pytest

from ostler.interaction.pastes import MAX_LINE_LENGTH, MAX_PASTE_LENGTH, PasteStore


@pytest.mark.req("CL-1")
@pytest.mark.parametrize("text", ["", "short", "x" * MAX_LINE_LENGTH, "x\n" * (MAX_PASTE_LENGTH // 2)])
def test_short_paste_is_unchanged(text):
    assert PasteStore().fold(text) == text


@pytest.mark.req("CL-1")
@pytest.mark.parametrize(
    "text",
    ["x" * (MAX_LINE_LENGTH + 1), "x\n" * MAX_PASTE_LENGTH, "\\1 \\g<0> [pasted 1: 2 lines, 3 characters]" * 100],
)
def test_long_paste_becomes_a_placeholder_and_is_restored(text):
    pastes = PasteStore()
    first, second = pastes.fold(text), pastes.fold(f"{text}!")
    assert len(first) < 80
    assert first != second
    assert pastes.expand(f"see {first} and {second}.") == f"see {text} and {text}!."


def test_unknown_placeholder_is_unchanged():
    text = "[pasted 7: 2 lines, 3 characters] [pasted x] [pasted 1]"
    assert PasteStore().expand(text) == text


@pytest.mark.req("CL-1")
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("x\n" * MAX_PASTE_LENGTH, f"{MAX_PASTE_LENGTH:,} lines"),
        ("x\n" * MAX_PASTE_LENGTH + "x", f"{MAX_PASTE_LENGTH + 1:,} lines"),
        ("x" * 9999, "1 line,"),
    ],
)
def test_line_count_of_a_placeholder(text, count):
    assert count in PasteStore().fold(text)
