"""Property tests of patches: the diff of two texts converts one to the other, with or without line numbers."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.core.errors import ToolError
from ostler.text.diff import unified_diff
from ostler.tools.editing.hunk_apply import apply_hunks
from ostler.tools.editing.patch_parser import parse_patch
from ostler.tools.editing.patch_types import Hunk, PatchLine

pytestmark = pytest.mark.req("TL-5")

LINES = st.sampled_from(
    ["a", "b", "c", "", "  x", "\ty", "foo(", ")", "--- a", "+++ b", "@@ -1 +1 @@", "-", "+", "é\rz"]
)


@st.composite
def texts(draw):
    lines = draw(st.lists(LINES, max_size=14))
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = "".join(line + end for line in lines)
    return text if draw(st.booleans()) else text.removesuffix(end)


@st.composite
def changes(draw):
    """Draw a text, and another text or the result of some edits."""
    before = draw(texts())
    if draw(st.booleans()):
        return before, draw(texts())
    lines = before.splitlines(True)
    for _ in range(draw(st.integers(1, 3))):
        index = draw(st.integers(0, len(lines)))
        lines[index : index + draw(st.integers(0, 2))] = [line + "\n" for line in draw(st.lists(LINES, max_size=2))]
    return before, "".join(lines)


def hunks_of(before: str, after: str) -> tuple[Hunk, ...]:
    (file,) = parse_patch(unified_diff(before, after, "f").text)
    return file.hunks


def reversed_hunk(hunk: Hunk) -> Hunk:
    sign = {"+": "-", "-": "+", " ": " "}
    lines = [PatchLine(sign[line.sign], line.text, line.end) for line in hunk.lines]
    return msgspec.structs.replace(hunk, lines=tuple(lines), start=None)


@examples(300)
@given(changes())
def test_round_trip(pair):
    before, after = pair
    if before == after or not before or not after:
        return
    assert apply_hunks("f", before, hunks_of(before, after)).text == after
    assert apply_hunks("f", after, hunks_of(after, before)).text == before


@examples(200)
@given(changes(), st.integers(1, 500))
def test_wrong_line_numbers_never_remove_other_lines(pair, wrong):
    before, after = pair
    if before == after or not before or not after:
        return
    hunks = hunks_of(before, after)
    for start in (None, wrong):
        moved = [msgspec.structs.replace(hunk, start=start) for hunk in hunks]
        try:
            result = apply_hunks("f", before, moved).text
        except ToolError:
            continue
        assert removed_lines(before, result) <= sum(line.sign == "-" for hunk in hunks for line in hunk.lines)


@examples(150)
@given(changes())
def test_reversed_hunk_undoes_the_change(pair):
    before, after = pair
    if before == after or not before or not after:
        return
    try:
        back = apply_hunks("f", after, [reversed_hunk(hunk) for hunk in hunks_of(before, after)])
    except ToolError:
        return  # its lines are ambiguous without line numbers
    assert sorted(lines_of(back.text)) == sorted(lines_of(before))


@examples(200)
@given(st.text(alphabet="+- @\\ab\n/\r*`d", max_size=120))
def test_any_text_is_parsed_or_rejected(text):
    for patch in (text, f"--- a/f\n+++ b/f\n@@ -1 +1 @@\n{text}", f"*** Begin Patch\n*** Update File: f\n{text}"):
        try:
            files = parse_patch(patch)
        except ToolError as error:
            assert error.fault.code == "bad_patch"
            continue
        for file in files:
            try:
                apply_hunks("f", "a\nb\n", file.hunks)
            except ToolError as error:
                assert error.fault.code == "rejected"


def removed_lines(before: str, after: str) -> int:
    return sum((Counter(lines_of(before)) - Counter(lines_of(after))).values())


def lines_of(text: str) -> list[str]:
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")
