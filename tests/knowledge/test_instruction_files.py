"""Files that the config names: paths, wildcards, and what may lie outside the workspace."""

import json

import pytest

from ostler.knowledge import instruction_files
from ostler.knowledge.instruction_files import instruction_sections
from ostler.knowledge.rules_files import RulesFileLoader

FILES = {
    "CONTRIBUTING.md": "c",
    "docs/a.md": "a",
    "docs/b.txt": "b",
    "docs/deep/c.md": "c",
    "docs/.hidden.md": "h",
    ".cursor/rules.md": "r",
    "node_modules/x/docs/a.md": "n",
    ".env": "KEY=1",
    "secrets.md": "s",
    "~/mine.md": "m",
}

# What is named, and which files that is.
NAMED = {
    "a file": (["CONTRIBUTING.md"], ["CONTRIBUTING.md"]),
    "dot": (["./docs/a.md"], ["docs/a.md"]),
    "order": (["docs/b.txt", "docs/a.md"], ["docs/b.txt", "docs/a.md"]),
    "twice": (["docs/a.md", "docs/*.md"], ["docs/a.md"]),
    "star": (["docs/*"], ["docs/a.md", "docs/b.txt"]),
    "suffix": (["docs/*.md"], ["docs/a.md"]),
    "any folder": (["docs/**/*.md"], ["docs/a.md", "docs/deep/c.md"]),
    "from the root": (["**/a.md"], ["docs/a.md"]),
    "star folder": (["*/deep/?.md"], ["docs/deep/c.md"]),
    "class": (["docs/[ab].*"], ["docs/a.md", "docs/b.txt"]),
    "hidden by name": ([".cursor/rules.md"], [".cursor/rules.md"]),
    "hidden by a hidden pattern": ([".cursor/*.md"], [".cursor/rules.md"]),
    "everything": (["**"], ["CONTRIBUTING.md", "docs/a.md", "docs/b.txt", "docs/deep/c.md"]),
    "home": (["~/mine.md"], ["~/mine.md"]),
    "home star": (["~/*.md"], ["~/mine.md"]),
    "not there": (["nothing.md"], []),
    "address": (["https://example.org/rules.md"], []),
    "folder": (["docs"], []),
    "NUL": (["a\0b"], []),
    "deep pattern": (["a/" * 5000 + "*"], []),
}


@pytest.mark.req("EN-7")
@pytest.mark.parametrize("case", NAMED, ids=str)
def test_named(land, case):
    named, told = NAMED[case]
    land.write(FILES)
    sources = land.sources()
    parts = instruction_sections(sources, named, RulesFileLoader())
    assert [part.origin for part in parts] == ([", ".join(told)] if told else [])
    assert bool(sources.notes) is not bool(told)


@pytest.mark.req("EN-7", "PM-8")
def test_a_projects_config_names_only_its_own_files_until_trusted(land):
    away = str(land.outside / "secret.md")
    (land.work / "door").symlink_to(land.outside)
    land.write(
        {
            **FILES,
            ".ostler/config.json": json.dumps(
                {"instructions": ["docs/a.md", away, "~/mine.md", "../outside/*.md", "door/*.md", "door/secret.md"]}
            ),
        }
    )
    for trusted, told in ((False, "docs/a.md"), (True, f"docs/a.md, {away}, ~/mine.md")):
        named = land.settings(trusted=trusted).config.instructions
        (part,) = instruction_sections(land.sources(), named, RulesFileLoader())
        assert part.origin == told
        assert ("SECRET" in part.text) is trusted


def test_the_persons_config_may_name_files_above(land):
    (part,) = instruction_sections(land.sources(), ["../outside/*.md"], RulesFileLoader())
    assert part.origin == f"{land.outside}/secret.md"


def test_a_huge_tree_is_looked_at_only_so_far(land, monkeypatch):
    monkeypatch.setattr(instruction_files, "MAX_NAMES_SCANNED", 50)
    land.write({f"d{folder}/{n}.txt": "" for folder in range(3) for n in range(20)})
    sources = land.sources()
    assert instruction_sections(sources, ["**/**/**/*.md"], RulesFileLoader()) == []
    assert any("more than 50 names" in str(note) for note in sources.notes)
