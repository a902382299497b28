"""Both searches are one: on random trees, ignore files and patterns they find the same lines."""

import random

import pytest

from ostler.tools import search
from ostler.tools.search import SearchQuery, list_files, search_counts, search_lines
from ostler.workspace.local_workspace import LocalWorkspace

ATOMS = (
    "a",
    "b",
    "ab",
    "x y",
    ".",
    "[ab]",
    "[^a]",
    "^",
    "$",
    "é",
    "(a|b)",
    "a+",
    "b*",
    "x?",
    "(?i)A",
    r"\.",
    "日",
    "[0-9]",
)
CHARACTERS = (*"ab xy\n\n.1é\t日", "\r\n")
PATHS = ("a.txt", "b.py", "s/c.txt", "s/t/d.md", ".h/e.txt")
IGNORES = ("", "", "*.py\n", "s/\n", "/a.txt\n", "**/t\n", "!b.py\n*.md\n", "s/*\n!s/c.txt\n")
INCLUDES = ("", "", "*.txt", "s/**", "!*.py", "**/*.{md,txt}")


def plant(root, rand):
    for path in {rand.choice(PATHS) for _ in range(5)} | {"s/c.txt"}:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes("".join(rand.choices(CHARACTERS, k=rand.randint(0, 60))).encode())
    (root / ".gitignore").write_text(rand.choice(IGNORES))


def query(rand):
    pattern = "".join(rand.choices(ATOMS, k=rand.randint(1, 3)))
    return SearchQuery(
        pattern,
        rand.choice((".", ".", "s")),
        rand.choice(INCLUDES),
        ignore_case=rand.random() < 0.2,
        context=rand.choice((0, 0, 1)),
    )


async def found(workspace, wanted):
    lines = await search_lines(workspace, wanted)
    counts = await search_counts(workspace, wanted)
    assert counts.counts == dict(sorted(lines.counts.items()))
    return lines.lines, counts.counts, await list_files(workspace, wanted.path)


@pytest.mark.req("TL-7")
@pytest.mark.skipif(not search.find_ripgrep(), reason="there is no ripgrep here")
@pytest.mark.parametrize("seed", range(15))
async def test_both_find_the_same(tmp_path, monkeypatch, seed):
    rand = random.Random(seed)
    plant(tmp_path, rand)
    workspace = LocalWorkspace(str(tmp_path))
    for wanted in [query(rand) for _ in range(3)]:
        by_ripgrep = await found(workspace, wanted)
        with monkeypatch.context() as patch:
            patch.setattr(search, "find_ripgrep", lambda *_: None)
            assert await found(workspace, wanted) == by_ripgrep, wanted
    workspace.close()
