"""Long pastes by themselves: a mark in the editor, and every character when it is sent."""

import pytest

from ostler.frontends.repl.pastes import MAX_LINE_LENGTH, MAX_PASTE_LENGTH, PasteStore


@pytest.mark.req("CL-1")
@pytest.mark.parametrize("text", ["", "short", "x" * MAX_LINE_LENGTH, "x\n" * (MAX_PASTE_LENGTH // 2)])
def test_what_can_be_edited_stays(text):
    assert PasteStore().fold(text) == text


@pytest.mark.req("CL-1")
@pytest.mark.parametrize(
    "text",
    ["x" * (MAX_LINE_LENGTH + 1), "x\n" * MAX_PASTE_LENGTH, "\\1 \\g<0> [pasted 1: 2 lines, 3 characters]" * 100],
)
def test_what_is_too_long_becomes_a_mark_and_comes_back(text):
    pastes = PasteStore()
    first, second = pastes.fold(text), pastes.fold(f"{text}!")
    assert len(first) < 80
    assert first != second
    assert pastes.unfold(f"see {first} and {second}.") == f"see {text} and {text}!."


def test_what_only_looks_like_a_mark_stays():
    said = "[pasted 7: 2 lines, 3 characters] [pasted x] [pasted 1]"
    assert PasteStore().unfold(said) == said


@pytest.mark.req("CL-1")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x\n" * MAX_PASTE_LENGTH, f"{MAX_PASTE_LENGTH:,} lines"),
        ("x\n" * MAX_PASTE_LENGTH + "x", f"{MAX_PASTE_LENGTH + 1:,} lines"),
        ("x" * 9999, "1 line,"),
    ],
)
def test_lines_are_counted_as_an_editor_does(text, told):
    assert told in PasteStore().fold(text)
