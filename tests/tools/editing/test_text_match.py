"""Text matching rules: what each one matches and what it must not match."""

import pytest

from ostler.core.errors import ToolError
from ostler.tools.editing.replacement import Replacement
from ostler.tools.editing.replacements import apply_replacements
from ostler.tools.editing.text_match import find_indent_shift, find_text, same_except

pytestmark = pytest.mark.req("TL-6")


def apply(text: str, old: str, new: str, replace_all: bool = False) -> tuple[str, str]:
    result = apply_replacements("f", text, [Replacement(old, new, replace_all)])
    return result.text, result.rules[0] if result.rules else "exact"


REPLACEMENTS = {
    # exact
    "a word": ("one two three", "two", "2", "one 2 three", "exact"),
    "a whole line": ("a\nb\nc\n", "b\n", "B\n", "a\nB\nc\n", "exact"),
    "several lines": ("a\nb\nc\nd\n", "b\nc", "X", "a\nX\nd\n", "exact"),
    "at the start": ("a\nb\n", "a\n", "", "b\n", "exact"),
    "at the end without a newline": ("a\nb", "b", "c", "a\nc", "exact"),
    "the whole file": ("abc", "abc", "", "", "exact"),
    "signs of regular expressions": ("a.*(b)$\n", "a.*(b)$", r"\1\g<0>", "\\1\\g<0>\n", "exact"),
    "dollars and backslashes": ("x\n", "x", "$& $1 \\n", "$& $1 \\n\n", "exact"),
    "beyond the basic plane": ("a😀b", "😀", "é", "aéb", "exact"),
    "form feeds and separators are not line breaks": ("a\x0cb\u2028c\n", "b\u2028c", "d", "a\x0cd\n", "exact"),
    "blanks alone, exactly": ("a \t b", " \t ", "_", "a_b", "exact"),
    "exact before tolerant": ("foo  \nfoo\n", "foo\n", "bar\n", "foo  \nbar\n", "exact"),
    "an old that looks like new": ("ab", "a", "ab", "abb", "exact"),
    # line endings
    "LF text in a CRLF file": ("a\r\nb\r\nc\r\n", "a\nb\n", "A\nB\n", "A\r\nB\r\nc\r\n", "line endings"),
    "CRLF text in an LF file": ("a\nb\nc\n", "a\r\nb", "A\r\nB", "A\nB\nc\n", "line endings"),
    "LF text in a CR file": ("a\rb\rc\r", "a\nb", "A\nB", "A\rB\rc\r", "line endings"),
    "new lines in a CRLF file": ("a\r\nb\r\n", "a", "a1\na2", "a1\r\na2\r\nb\r\n", "exact"),
    "CRLF in new for an LF file": ("a\nb\n", "a", "x\r\ny", "x\ny\nb\n", "exact"),
    "new lines in a CR file": ("a\rb\r", "a", "x\ny", "x\ry\rb\r", "exact"),
    "new lines for a file of one line": ("a", "a", "x\r\ny", "x\r\ny", "exact"),
    "mixed: each line keeps its ending": ("a\r\nb\nc\r\n", "a\nb\nc\n", "a\nB\nc\n", "a\r\nB\nc\r\n", "line endings"),
    "mixed: an unchanged line keeps its ending": ("a\r\nb\nc\n", "a\nb\n", "A\nb\n", "A\r\nb\nc\n", "line endings"),
    "mixed: the exact match wins": ("a\r\nb\r\na\nb\n", "a\nb\n", "X\n", "a\r\nb\r\nX\n", "exact"),
    "CRLF is never split": ("a\r\nb\r\n", "\nb", "", "a\r\n", "line endings"),
    "a lone CR inside a line is kept": ("a\rx\nb\n", "b", "c", "a\rx\nc\n", "exact"),
    "a lone CR in new is content": ("a\r\nb\r\n", "b", "x\ry", "a\r\nx\ry\r\n", "exact"),
    # final newline
    "a last line without newline": ("a\nb", "b\n", "c\n", "a\nc", "final newline"),
    "two last lines without newline": ("a\r\nb\r\nc", "b\nc\n", "x\ny\n", "a\r\nx\r\ny", "final newline"),
    "a removed last line": ("a\nb", "b\n", "", "a\n", "final newline"),
    # trailing blanks
    "blanks in the file": ("a  \nb\t\nc\n", "a\nb\n", "A\nB\n", "A\nB\nc\n", "trailing blanks"),
    "blanks in old": ("a\nb\nc\n", "a  \nb \n", "A\nB\n", "A\nB\nc\n", "trailing blanks"),
    "quoted lines keep the file's blanks": ("a  \nb\nc\n", "a\nb\n", "a\nB\n", "a  \nB\nc\n", "trailing blanks"),
    "blanks after the match are kept": ("a \nb  \nc\n", "a\nb", "A\nB", "A\nB  \nc\n", "trailing blanks"),
    "blanks at the end of old are removed": ("a \nb\t\nc\n", "a\nb  ", "X", "X\nc\n", "trailing blanks"),
    "blank lines with blanks": ("a\n   \nb\n", "a\n\nb\n", "a\n\nB\n", "a\n   \nB\n", "trailing blanks"),
    "in a CRLF file": ("a  \r\nb\r\n", "a\nb\n", "A\nb\n", "A\r\nb\r\n", "trailing blanks"),
    "from inside a line": ("x = f(a, \n  b)\n", "f(a,\n  b)", "g()", "x = g()\n", "trailing blanks"),
    # indentation
    "deeper in the file": ("if x:\n    a\n    b\n", "a\nb\n", "a\nc\n", "if x:\n    a\n    c\n", "indentation"),
    "less deep in the file": ("a\nif b:\n    c\n", "    if b:\n        c\n", "    d\n", "a\nd\n", "indentation"),
    "a tab for blanks": ("\tif a:\n\t\tb\n", "  if a:\n  \tb\n", "  if c:\n  \tb\n", "\tif c:\n\t\tb\n", "indentation"),
    "nested lines are shifted": (
        "class A:\n    def f(self):\n        return 1\n",
        "def f(self):\n    return 1\n",
        "def f(self):\n    if x:\n\n        return 2\n    return 1\n",
        "class A:\n    def f(self):\n        if x:\n\n            return 2\n        return 1\n",
        "indentation",
    ),
    "and trailing blanks, in a CRLF file": (
        "{\r\n  a; \r\n  b;\r\n}\r\n",
        "a;\nb;\n",
        "a;\nc;\n",
        "{\r\n  a; \r\n  c;\r\n}\r\n",
        "indentation",
    ),
    "one line with a tab, and deeper lines in new": (
        "\tx()\n",
        "    x()\n",
        "    if y:\n        x()\n",
        "\tif y:\n\t\tx()\n",
        "indentation",
    ),
    "without indentation in old, in a file with tabs": (
        "\tx()\n\ty()\n",
        "x()\ny()\n",
        "if y:\n  if z:\n    x()\n",
        "\tif y:\n\t\tif z:\n\t\t\tx()\n",
        "indentation",
    ),
    # indent style
    "spaces for tabs": (
        "def f():\n\treturn 1\n",
        "def f():\n    return 1",
        "def f():\n    if x:\n        return 2\n    return 3",
        "def f():\n\tif x:\n\t\treturn 2\n\treturn 3\n",
        "indent style",
    ),
    "tabs for spaces": (
        "if a:\n    b\n",
        "if a:\n\tb\n",
        "if a:\n\tif c:\n\t\tb\n",
        "if a:\n    if c:\n        b\n",
        "indent style",
    ),
    "two spaces for four, deeper in the file": (
        "class A:\n    def f(self):\n        a\n",
        "def f(self):\n  a\n",
        "def f(self):\n  if b:\n    a\n",
        "class A:\n    def f(self):\n        if b:\n            a\n",
        "indent style",
    ),
    "levels of tabs": ("\ta\n\t\tb\n", "    a\n        b\n", "    c\n        b\n", "\tc\n\t\tb\n", "indent style"),
    "less deep than old": ("\tif a:\n\t\tb\n", "  if a:\n    b\n", "c\n  d\n", "c\n\td\n", "indent style"),
    "a continued line keeps its alignment": (
        "\tf(a,\n\t  b)\n\t\tc\n",
        "    f(a,\n      b)\n",
        "    f(a,\n      d)\n",
        "\tf(a,\n\t  d)\n\t\tc\n",
        "indentation",
    ),
}


@pytest.mark.parametrize(("text", "old", "new", "after", "rule"), REPLACEMENTS.values(), ids=REPLACEMENTS.keys())
def test_replacements(text, old, new, after, rule):
    assert apply(text, old, new) == (after, rule)


REJECTED = {
    "nothing like it": ("a\nb\n", "zzz", "y", "no_match"),
    "twice": ("a\nb\na\n", "a", "c", "ambiguous"),
    "overlapping itself": ("aaa", "aa", "b", "ambiguous"),
    "twice bar trailing blanks": ("foo \nbar\nfoo\t\nbar\n", "foo\nbar", "x", "ambiguous"),
    "twice bar indentation": ("  a\n  b\n\n    a\n    b\n", "\ta\n\tb\n", "x\n", "ambiguous"),
    "twice bar line endings": ("a\r\nb\r\na\r\nb\r\n", "a\nb", "x", "ambiguous"),
    "an indentation that is not uniform": ("  a\n    b\n", "a\nb\n", "x\n", "no_match"),
    "levels that the file does not distinguish": ("a\nb\n", "a\n    b\n", "x\n", "no_match"),
    "twice bar indent style": ("if a:\n\tb\n" * 2, "if a:\n  b\n", "x\n", "ambiguous"),
    "style that contradicts itself": ("a\n\tb\nc\n  d\n", "a\n    b\nc\n    d\n", "x\n", "no_match"),
    "blanks inside a line": ("a  b\n", "a b", "x", "no_match"),
    "upper and lower case": ("Hello\n", "hello", "x", "no_match"),
    "quotes of another kind": ("say “hi”\n", 'say "hi"', "x", "no_match"),
    "an indented part of a line": ("    foo(bar)\n", "  foo(\n", "x", "no_match"),
    "new that cannot be shifted": ("a\nb\n", "    a\n    b\n", "    a\nb\n", "no_match"),
    "blanks alone, not found": ("a\n\nb\n", "   ", "x", "no_match"),
    "empty": ("a\n", "", "x", "bad_edit"),
    "old is new": ("a\n", "a", "a", "bad_edit"),
    "only line endings would change": ("a\r\nb\r\n", "a\r\nb", "a\nb", "bad_edit"),
    "a line longer than the file's": ("ab\n", "abc\n", "x", "no_match"),
    "loose anchors": ("start\n" + "x\n" * 2000 + "end\n", "start\nend\n", "s\n", "no_match"),
}


@pytest.mark.parametrize(("text", "old", "new", "code"), REJECTED.values(), ids=REJECTED.keys())
def test_rejected_replacements(text, old, new, code):
    with pytest.raises(ToolError) as raised:
        apply(text, old, new)
    assert raised.value.fault.code == code


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("a b a b a", "a", "c", "c b c b c"),
        ("aaaa", "aa", "b", "bb"),
        ("a\r\nb\r\na\r\nb\r\n", "a\nb\n", "x\n", "x\r\nx\r\n"),
        ("a,\r\na,\r\n", "a", "b\nc", "b\r\nc,\r\nb\r\nc,\r\n"),
        ("a\na", "a", "aa", "aa\naa"),
    ],
)
def test_replace_all(text, old, new, after):
    assert apply(text, old, new, replace_all=True)[0] == after


def test_replace_all_requires_exact_matches():
    with pytest.raises(ToolError, match=r"2 times .*, but only when ignoring trailing blanks") as raised:
        apply("foo \nbar\nfoo\t\nbar\n", "foo\nbar", "x", replace_all=True)
    assert raised.value.fault.code == "ambiguous"


def test_replace_all_accepts_a_single_tolerant_match():
    assert apply("foo \nbar\n", "foo\nbar", "x", replace_all=True) == ("x\n", "trailing blanks")


def test_ambiguous_text_is_reported_with_its_lines():
    with pytest.raises(ToolError, match=r"3 times \(lines 1, 3, 4\)"):
        apply("a\nb\na\na\n", "a", "c")


def test_count_of_matches_is_limited():
    with pytest.raises(ToolError, match="more than 100 times"):
        apply("a\n" * 500, "a", "c")


def test_replacements_are_applied_in_order():
    replacements = [Replacement("a", "b"), Replacement("b b", "c"), Replacement("c", "d", replace_all=True)]
    result = apply_replacements("f", "a b c\n", replacements)
    assert (result.text, result.count) == ("d d\n", 4)


def test_one_failing_replacement_rejects_all():
    with pytest.raises(ToolError, match=r"edit 2 of 2: f does not contain that text.*no edit was made"):
        apply_replacements("f", "a\n", [Replacement("a", "b"), Replacement("a", "c")])


@pytest.mark.parametrize(
    ("rule", "found", "expected", "same"),
    [
        ("exact", "a", "a", True),
        ("exact", "a\r\n", "a\n", False),
        ("line endings", "a\r\nb\r", "a\nb\n", True),
        ("line endings", "a \n", "a\n", False),
        ("final newline", "a", "a\n", True),
        ("final newline", "a\n", "a\n", False),
        ("trailing blanks", "a \t\nb", "a\nb  ", True),
        ("trailing blanks", " a", "a", False),
        ("indentation", "  a\n  b", "a\nb", True),
        ("indentation", "  a\n  b\n  c", "a\nb", False),
    ],
)
def test_equality_under_a_rule(rule, found, expected, same):
    assert same_except(rule, found, expected) is same


@pytest.mark.parametrize(
    ("expected", "actual", "shift"),
    [
        (["a"], ["  a"], ("", "  ")),
        (["  a"], ["a"], ("  ", "")),
        (["  a", "    b"], ["\ta", "\t  b"], ("  ", "\t")),
        (["a", "", "b"], [" a", "  ", " b"], ("", " ")),
        (["a", "b"], [" a", "  b"], None),
        (["", " "], ["", "\t"], None),
        (["a"], ["b"], None),
    ],
)
def test_indent_shift(expected, actual, shift):
    assert find_indent_shift(expected, actual) == shift


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("  x\n" * 100_000, "x\n" * 1000 + " x\n"),
        ("\r\n" * 500_000, "\n\r" * 500),
        ("a \n" * 100_000, "a\n" * 1000 + "a \t"),
    ],
    ids=["shifts", "halves of line breaks", "blanks"],
)
@pytest.mark.timeout(20)
def test_text_that_nearly_matches_everywhere_is_rejected_quickly(text, old):
    with pytest.raises(ToolError):
        apply_replacements("f", text, [Replacement(old, "y")])


def test_match_that_cannot_be_proved_unique_is_rejected():
    found = find_text("a" * 40_000_000, "a" * 20_000_000)
    assert found is not None
    with pytest.raises(ToolError, match="too many places"):
        list(found.spans)
