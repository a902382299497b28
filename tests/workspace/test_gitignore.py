"""Filtering a whole folder gives the same result as checking each name."""

import os
import random

import pytest
from pathspec import GitIgnoreSpec

from ostler.workspace.gitignore import IgnoreRules

ATOMS = (
    "a",
    "b",
    "ab",
    "*",
    "?",
    "**",
    "/",
    "/",
    "[ab]",
    "[!a]",
    ".",
    "é",
    "日",
    r"\*",
    " ",
    r"\ ",
    "x.py",
    "$",
    "(",
    "+",
    "|",
)
NAMES = (
    "a",
    "b",
    "ab",
    "ba",
    "x.py",
    ".a",
    "é",
    "日",
    "a b",
    "*",
    "a*",
    "$",
    "(",
    "a\nb",
    "b\n",
    "bad\udcff",
    "a|b",
    "A",
    "+",
)


def random_rules(rng: random.Random) -> list[str]:
    lines = ["".join(rng.choices(ATOMS, k=rng.randint(1, 4))) for _ in range(rng.randint(1, 5))]
    return [rng.choice(("", "", "!", "#")) + line + rng.choice(("", "/", " ")) for line in lines]


def write_rules(folder, lines: list[str]) -> bool:
    """Write the rules into a folder. Return False if they are invalid."""
    try:
        GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return False
    (folder / ".gitignore").write_bytes("\n".join(lines).encode())
    return True


@pytest.mark.req("TL-7")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.sampled(every=4)
def test_folder_check_equals_check_of_each_name(tmp_path, seed):
    rng = random.Random(seed)
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _ in range(40):
            outer, inner = random_rules(rng), random_rules(rng)
            if not write_rules(tmp_path, outer):
                continue
            active = IgnoreRules().for_subfolder(fd, "")
            if write_rules(tmp_path, inner):
                active = active.for_subfolder(fd, "d/")
            folder = rng.choice(("d/", "d/e/"))
            entries = [(name, rng.random() < 0.4, True) for name in rng.sample(NAMES, rng.randint(1, 8))]
            expected = [entry for entry in entries if not _is_ignored_alone(outer, inner, folder + entry[0], entry[1])]
            assert list(active.without_ignored(folder, entries)) == expected, (outer, inner, folder)
    finally:
        os.close(fd)


def _is_ignored_alone(outer: list[str], inner: list[str], path: str, is_directory: bool) -> bool:
    path = path.encode("utf-8", "replace").decode() + ("/" if is_directory else "")
    for lines, relative in ((inner, path[2:]), (outer, path)):
        try:
            ignored = GitIgnoreSpec.from_lines(lines).check_file(relative).include
        except ValueError:
            continue
        if ignored is not None:
            return ignored
    return False
