"""Ripgrep and the native search find the same lines in random trees."""

import random

import pytest

from ostler.tools import search
from ostler.tools.search import SearchQuery, list_files, search_contents
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


def write_tree(root, rand):
    for path in {rand.choice(PATHS) for _ in range(5)} | {"s/c.txt"}:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes("".join(rand.choices(CHARACTERS, k=rand.randint(0, 60))).encode())
    (root / ".gitignore").write_text(rand.choice(IGNORES))


def random_query(rand):
    pattern = "".join(rand.choices(ATOMS, k=rand.randint(1, 3)))
    return SearchQuery(
        pattern,
        rand.choice((".", ".", "s")),
        rand.choice(INCLUDES),
        ignore_case=rand.random() < 0.2,
        context=rand.choice((0, 0, 1)),
    )


async def search_results(workspace, query):
    lines = await search_contents(workspace, query)
    counts = await search_contents(workspace, query, count_only=True)
    assert counts.counts == dict(sorted(lines.counts.items()))
    return lines.lines, counts.counts, await list_files(workspace, query.path)


@pytest.mark.req("TL-7")
@pytest.mark.skipif(not search.find_ripgrep(), reason="ripgrep is not installed")
@pytest.mark.parametrize("seed", range(15))
@pytest.mark.sampled(every=3)
async def test_ripgrep_and_native_search_agree(tmp_path, monkeypatch, seed):
    rand = random.Random(seed)
    write_tree(tmp_path, rand)
    workspace = LocalWorkspace(str(tmp_path))
    for query in [random_query(rand) for _ in range(3)]:
        by_ripgrep = await search_results(workspace, query)
        with monkeypatch.context() as patch:
            patch.setattr(search, "find_ripgrep", lambda *_: None)
            assert await search_results(workspace, query) == by_ripgrep, query
    workspace.close()
