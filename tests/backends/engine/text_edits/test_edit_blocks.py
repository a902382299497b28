"""Edits in the text of an answer: which file a code block belongs to."""

import pytest

from ostler.backends.engine.text_edits.edit_blocks import Replace, find_blocks

KNOWN = ["stats.py", "app/main.py", "notes.md"]
CODE = "def mean():\n    return 1"


@pytest.mark.parametrize(
    "answer",
    [
        f"stats.py\n```python\n{CODE}\n```",
        f"**stats.py**\n\n```python\n{CODE}\n```",
        f"### `stats.py`:\n```\n{CODE}\n```",
        f"File: stats.py\n```\n{CODE}\n```",
        f"1. stats.py\n   ```python\n   {CODE.replace(chr(10), chr(10) + '   ')}\n   ```",
        f"Here is the new version of stats.py:\n\n```python\n{CODE}\n```\nDone.",
        f"```stats.py\n{CODE}\n```",
        f"```python:stats.py\n{CODE}\n```",
        f'```python title="stats.py"\n{CODE}\n```',
        f"```python\n# stats.py\n{CODE}\n```",
        f"```\nstats.py\n```\n```\n{CODE}\n```",
        f"~~~ python\n# stats.py\n{CODE}\n~~~",
    ],
)
def test_block_belongs_to_the_named_file(answer):
    (block,) = find_blocks(answer, KNOWN)
    assert (block.path, block.content, block.is_closed) == ("stats.py", CODE, True)


def test_name_without_folder_is_completed():
    assert find_blocks("main.py\n```\nx = 1\n```", KNOWN)[0].path == "app/main.py"


def test_new_path_is_accepted_alone_on_its_line():
    assert find_blocks("lib/new.py\n```\nx = 1\n```", KNOWN)[0].path == "lib/new.py"


def test_two_paths_in_a_sentence_are_ambiguous():
    assert find_blocks("Instead of stats.py use main.py:\n```\nx = 1\n```", KNOWN)[0].path == ""


@pytest.mark.parametrize("language", ["bash", "console", "diff"])
def test_commands_and_output_are_no_edits(language):
    assert find_blocks(f"Run it:\n```{language}\npython stats.py\n```", ["x.py"]) == []


def test_unclosed_block_is_marked():
    assert not find_blocks("stats.py\n```\nx = 1\n", KNOWN)[0].is_closed


def test_longer_fence_may_contain_shorter_ones():
    (block,) = find_blocks("notes.md\n````\n# A\n```\ncode\n```\n````", KNOWN)
    assert block.content == "# A\n```\ncode\n```"


def test_several_files_keep_their_order():
    answer = "stats.py\n```\na = 1\n```\n\napp/main.py\n```\nb = 2\n```\n"
    assert [(block.path, block.content) for block in find_blocks(answer, KNOWN)] == [
        ("stats.py", "a = 1"),
        ("app/main.py", "b = 2"),
    ]


def test_search_and_replace_blocks():
    answer = "stats.py\n```\n<<<<<<< SEARCH\na\n=======\nb\nc\n>>>>>>> REPLACE\n```"
    assert find_blocks(answer, KNOWN)[0].replaces == (Replace("a", "b\nc"),)


def test_incomplete_search_block_is_not_a_replacement():
    assert find_blocks("stats.py\n```\n<<<<<<< SEARCH\na\n=======\nb\n```", KNOWN)[0].replaces == ()


def test_text_without_blocks_has_no_edits():
    assert find_blocks("The file stats.py computes the mean.", KNOWN) == []
