"""Width of text in terminal columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.text.width import clip, width


@pytest.mark.req("CL-1")
@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0), ("abc", 3), ("日本語", 6), ("e\u0301", 1), ("한글", 4), ("👩‍💻", 2), ("❤️", 2),
        ("🇩🇪", 2), ("👍🏽", 2), ("a\u200bb", 2), ("ｆｕｌｌ", 8), ("a\x1bb", 2), ("مرحبا", 5),
    ],
)  # fmt: skip
def test_width(text, columns):
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("日本語", 1, "…"),
        ("日本語", 0, ""),
        ("👩‍💻👩‍💻👩‍💻", 5, "👩‍💻👩‍💻…"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
    ],
)
def test_clip(text, columns, expected):
    assert clip(text, columns) == expected


@given(st.text(st.sampled_from("ab日👩\u200d💻❤\ufe0fe\u0301")), st.integers(0, 12))
def test_clipped_text_fits(text, columns):
    assert width(clip(text, columns)) <= columns
