"""New contents of files: partial blocks are merged, and contents that cannot be right are rejected."""

import pytest

from ostler.backends.engine.text_edits.new_content import new_content
from ostler.core.errors import ToolError

OLD = '''\
"""Statistics."""

import math

RATE = 2


def total(values):
    return sum(values)


class Stats:
    """Values."""

    def mean(self):
        return 1

    def size(self):
        return 2


if __name__ == "__main__":
    print(total([1]))
'''
FIX = "fix it"


def test_complete_content_replaces_the_file():
    new = OLD.replace("return 1", "return 3")
    assert new_content("a.py", OLD, new, FIX) == new


def test_new_file_gets_one_newline_at_its_end():
    assert new_content("a.py", None, "\nx = 1", FIX) == "x = 1\n"


def test_single_function_is_merged():
    new = new_content("a.py", OLD, "def total(values):\n    return sum(values) * RATE\n", FIX)
    assert new == OLD.replace("return sum(values)", "return sum(values) * RATE")


def test_single_method_is_merged_into_its_class():
    block = "class Stats:\n    def mean(self):\n        return 7\n"
    assert new_content("a.py", OLD, block, FIX) == OLD.replace("return 1", "return 7")


def test_new_function_and_import_are_added_before_the_main_block():
    new = new_content("a.py", OLD, "import re\n\n\ndef words(text):\n    return re.split(' ', text)\n", "add words")
    assert new == OLD.replace("import math\n", "import math\nimport re\n").replace(
        "        return 2\n", "        return 2\n\n\ndef words(text):\n    return re.split(' ', text)\n"
    )


def test_new_method_is_added_to_its_class():
    block = "class Stats:\n    def spread(self):\n        return 9\n"
    added = "        return 2\n\n    def spread(self):\n        return 9\n"
    assert new_content("a.py", OLD, block, "add a method") == OLD.replace("        return 2\n", added)


def test_constant_is_replaced_and_imports_stay():
    assert new_content("a.py", OLD, "RATE = 5\n", "set RATE to 5") == OLD.replace("RATE = 2", "RATE = 5")


def test_placeholders_keep_the_old_code():
    block = "# ... existing code ...\n\n\ndef total(values):\n    return 0\n\n\n# rest of the file\n"
    assert new_content("a.py", OLD, block, FIX) == OLD.replace("return sum(values)", "return 0")


def test_renamed_function_replaces_the_old_one():
    new = new_content("a.py", OLD, "def whole(values):\n    return sum(values)\n", "Rename total to whole")
    assert "def total" not in new
    assert "def whole(values):\n    return sum(values)\n\n\nclass Stats" in new


def test_function_may_vanish_if_its_removal_was_asked_for():
    old = "def a():\n    return 1\n\n\ndef b():\n    return 2\n"
    assert new_content("a.py", old, "def a():\n    return 1\n", "Remove the function b") == "def a():\n    return 1\n"


def test_only_the_named_function_vanishes():
    old = "import os\n\n\ndef a():\n    return 1\n\n\ndef b():\n    return 2\n\n\ndef c():\n    return os\n"
    new = new_content("a.py", old, "def a():\n    return 1\n\n\ndef c():\n    return os\n", "Remove the function b")
    assert new == "import os\n\n\ndef a():\n    return 1\n\n\ndef c():\n    return os\n"


def test_javascript_function_is_merged():
    functions = "function a() {\n  return 1;\n}\n\nfunction b() {\n  return 2;\n}\n"
    old = f"const x = 1;\n\n{functions}\nmodule.exports = {{ a, b }};\n"
    new = new_content("a.js", old, "function a() {\n  return 3;\n}\n", FIX)
    assert new == old.replace("return 1", "return 3")


@pytest.mark.parametrize(
    ("path", "old", "content", "message"),
    [
        ("a.py", OLD, "  \n", "is empty"),
        ("a.py", None, "def f(:\n", "is not valid: line 1"),
        ("a.py", OLD, "def total(values)\n    return 0\n", "is not valid|would lose"),
        ("a.json", '{"a": 1, "b": 2}', '{"a": 1}', "would lose b"),
        ("a.json", '{"a": 1}', '{"a": 1,}', "is not valid"),
        ("a.toml", "a = 1\n", "a = \n", "is not valid"),
        ("a.csv", "h\n1\n2\n3\n4\n", "5\n", "lose most of its lines"),
        ("a.go", "func A() {\n}\n\nfunc B() {\n}\n", "func C() {\n}\n", "would lose A, B"),
        ("a.css", "a {}\nb {}\nc {}\nd {}\n", "a {}\n/* ... */\n... rest of the file\n", "placeholders"),
    ],
)
def test_content_that_cannot_be_right_is_rejected(path, old, content, message):
    with pytest.raises(ToolError, match=message):
        new_content(path, old, content, FIX)
