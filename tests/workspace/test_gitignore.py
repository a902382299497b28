"""One look at a folder says the same as a look at each of its names."""

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


def rules(rand: random.Random) -> list[str]:
    lines = ["".join(rand.choices(ATOMS, k=rand.randint(1, 4))) for _ in range(rand.randint(1, 5))]
    return [rand.choice(("", "", "!", "#")) + line + rand.choice(("", "/", " ")) for line in lines]


def stated(folder, lines: list[str]) -> bool:
    """Put the rules into a folder; False for such as make no sense."""
    try:
        GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return False
    (folder / ".gitignore").write_bytes("\n".join(lines).encode())
    return True


@pytest.mark.req("TL-7")
@pytest.mark.parametrize("seed", range(8))
def test_a_folder_at_once_is_as_each_name_alone(tmp_path, seed):
    rand = random.Random(seed)
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _ in range(40):
            above, below = rules(rand), rules(rand)
            if not stated(tmp_path, above):
                continue
            force = IgnoreRules().for_subfolder(fd, "")
            if stated(tmp_path, below):
                force = force.for_subfolder(fd, "d/")
            here = rand.choice(("d/", "d/e/"))
            entries = [(name, rand.random() < 0.4, True) for name in rand.sample(NAMES, rand.randint(1, 8))]
            kept = [entry for entry in entries if not _alone(above, below, here + entry[0], entry[1])]
            assert list(force.without_ignored(here, entries)) == kept, (above, below, here)
    finally:
        os.close(fd)


def _alone(above: list[str], below: list[str], path: str, is_directory: bool) -> bool:
    path = path.encode("utf-8", "replace").decode() + ("/" if is_directory else "")
    for lines, shown in ((below, path[2:]), (above, path)):
        try:
            said = GitIgnoreSpec.from_lines(lines).check_file(shown).include
        except ValueError:
            continue
        if said is not None:
            return said
    return False
