"""Errors for a text that is not found: closest match, line numbers and difference, in bounded time."""

import random
import re
import time
from pathlib import Path

import pytest

from ostler.core.errors import ToolError
from ostler.tools.editing.closest_lines import closest_lines
from ostler.tools.editing.replacement import Replacement
from ostler.tools.editing.replacements import apply_replacements

pytestmark = pytest.mark.req("TL-6")
SOURCE = (Path(__file__).parents[3] / "src/ostler/tools/editing/text_match.py").read_text("utf-8")


def error_message(text: str, old: str, new: str = "something else") -> str:
    with pytest.raises(ToolError) as raised:
        apply_replacements("f.py", text, [Replacement(old, new)])
    assert raised.value.fault.code == "no_match"
    return str(raised.value)


MESSAGES = {
    "a typo": ("a = 1\nbb = 2\nc = 3\n", "a = 1\nbb = 3\n", ["lines 1-2", "     2\tbb = 2", "old has 'bb = 3'"]),
    "blanks": ("a\nx  =  y\n", "a\nx = y\n", ["line 2 has 'x  =  y'", "only whitespace differs"]),
    "case": ("alpha\nBeta\n", "alpha\nbeta\n", ["only upper and lower case differ"]),
    "typography": ("first\nit’s “so”\n", 'first\nit\'s "so"\n', ["only typographic characters differ"]),
    "tabs shown": ("if a:\n\tb\n    c\n", "if a:\n    b\n    c\n", [r"'\tb'", "'    b'"]),
    "a part of a line": ("a_function(one, second)\n", "function(one, secnod)", ["line 1", "'function(one, second"]),
    "beyond the end": (
        "a line here\nanother line\n",
        "another line\nand more\n",
        ["line 2:", "the file ends there"],
    ),
    "nothing similar": ("abc\n", "completely unrelated words", ["or anything similar"]),
    "an empty file": ("", "abc", ["or anything similar"]),
    "line numbers included": ("foo()\nbar()\n", "     1\tfoo()\n     2\tbar()", ["the line numbers that read shows"]),
    "escaped once too often": ("a\nb\n", "a\\nb", ["escaped once too often"]),
    "made before": ("return fresh_value\n", "return stale_value", ["new is already at line 1", "made before"]),
    "a long line": (
        "x" * 900 + "needle_here = 1;" + "y" * 9,
        "needle_here = 2;",
        ["on line 1", "here = 2;", "= 1;y"],
    ),
}


@pytest.mark.parametrize(("text", "old", "parts"), MESSAGES.values(), ids=MESSAGES.keys())
def test_message(text, old, parts):
    message = error_message(text, old, "return fresh_value")
    assert [part for part in parts if part not in message] == [], message


def test_long_match_is_shown_around_the_difference():
    lines = [f"line number {n} of many" for n in range(100)]
    wrong = [*lines[10:90]]
    wrong[60] = "line number 70 of money"
    message = error_message("\n".join(lines), "\n".join(wrong))
    assert "lines 11-90" in message
    assert "    71\tline number 70 of many" in message
    assert len(message.splitlines()) < 20


def test_long_lines_are_clipped():
    message = error_message("a" * 50 + "b" * 5000 + "\nsecond\n", "a" * 50 + "c" * 5000 + "\nsecond\n")
    assert len(message) < 1500


def test_closest_match_is_found_despite_typos():
    """The intended place is found for at least 90 % of random typos in real code."""
    rng = random.Random(7)
    lines = SOURCE.split("\n")
    right = tried = 0
    while tried < 150:
        size = rng.randint(1, 6)
        start = rng.randrange(len(lines) - size)
        part = lines[start : start + size]
        index = rng.randrange(size)
        if len(part[index].strip()) < 12 or sum(len(line.strip()) > 8 for line in part) < min(size, 2):
            continue
        column = rng.randrange(4, len(part[index]) - 4)
        part[index] = part[index][:column] + rng.choice("qzxjk") + part[index][column + rng.randint(0, 2) :]
        old = "\n".join(part)
        if old in SOURCE:
            continue
        tried += 1
        found = re.search(r"the closest match is lines? (\d+)", error_message(SOURCE, old))
        right += found is not None and int(found[1]) == start + 1
    assert right >= 0.9 * tried


@pytest.mark.parametrize(
    ("contents", "expected", "start"),
    [
        (["a", "b", "c"], [], None),
        ([], ["a"], None),
        (["a", "b"], ["", " "], None),
        (["def f():", "  pass", "", "def g():", "  return 1"], ["def g():", "  return 2"], 3),
        (["}"] * 200 + ["unique line", "}"], ["unique line", "}", "}"], 200),
        (["alpha beta"], ["alpha beta", "gamma delta", "epsilon"], 0),
        (["alpha beta"], ["omega", "gamma delta", "epsilon"], None),
    ],
)
def test_closest_lines(contents, expected, start):
    found = closest_lines(contents, expected)
    assert (found.start if found else None) == start


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("".join(f"    line number {i} with some text {i * 7}\n" for i in range(110_000)), "line number 5 wiht\nnope"),
        ("".join(f"var a{i}=function(){{return {i}}};" for i in range(150_000)), "var a500=function(){return 501};"),
        ("a" * 5_000_000, "a" * 1000 + "b"),
        (" " * 5_000_000, "   a   "),
        ("x\n" * 1_500_000, "foo bar\nbaz"),
    ],
    ids=["lines", "one line", "one letter", "blanks", "short lines"],
)
@pytest.mark.timeout(30)
def test_large_file_is_fast(text, old):
    started = time.process_time()
    error_message(text, old)
    assert time.process_time() - started < 8  # a bound against quadratic cost; it takes well under a second
