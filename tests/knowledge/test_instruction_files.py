"""The `instructions` setting: paths, wildcards, and files outside of the workspace."""

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

# Patterns, and the files that they match.
PATTERNS = {
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
    "missing": (["nothing.md"], []),
    "URL": (["https://example.org/rules.md"], []),
    "folder": (["docs"], []),
    "NUL": (["a\0b"], []),
    "deep pattern": (["a/" * 5000 + "*"], []),
}


@pytest.mark.req("EN-7")
@pytest.mark.parametrize("case", PATTERNS, ids=str)
def test_patterns(folders, case):
    patterns, origins = PATTERNS[case]
    folders.write(FILES)
    sources = folders.sources()
    sections = instruction_sections(sources, patterns, RulesFileLoader())
    assert [section.origin for section in sections] == ([", ".join(origins)] if origins else [])
    assert bool(sources.notes) is not bool(origins)


@pytest.mark.req("EN-7", "PM-8")
def test_project_config_names_only_its_own_files_until_trusted(folders):
    outside = str(folders.outside / "secret.md")
    (folders.work / "door").symlink_to(folders.outside)
    folders.write(
        {
            **FILES,
            ".ostler/config.json": json.dumps(
                {"instructions": ["docs/a.md", outside, "~/mine.md", "../outside/*.md", "door/*.md", "door/secret.md"]}
            ),
        }
    )
    for trusted, origin in ((False, "docs/a.md"), (True, f"docs/a.md, {outside}, ~/mine.md")):
        patterns = folders.settings(trusted=trusted).config.instructions
        (section,) = instruction_sections(folders.sources(), patterns, RulesFileLoader())
        assert section.origin == origin
        assert ("SECRET" in section.text) is trusted


def test_user_config_may_name_files_outside(folders):
    (section,) = instruction_sections(folders.sources(), ["../outside/*.md"], RulesFileLoader())
    assert section.origin == f"{folders.outside}/secret.md"


def test_scan_of_a_huge_tree_is_limited(folders, monkeypatch):
    monkeypatch.setattr(instruction_files, "MAX_NAMES_SCANNED", 50)
    folders.write({f"d{folder}/{n}.txt": "" for folder in range(3) for n in range(20)})
    sources = folders.sources()
    assert instruction_sections(sources, ["**/**/**/*.md"], RulesFileLoader()) == []
    assert any("more than 50 names" in str(note) for note in sources.notes)
