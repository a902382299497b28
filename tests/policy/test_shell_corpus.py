"""Every command line of the corpora gets the expected verdict."""

from functools import cache
from pathlib import Path

import pytest
from tests.tiers import amount

from ostler.policy.shell import Analysis, analyse

CORPUS = Path(__file__).parents[1] / "data" / "shell"
FILES = (
    "notes.txt a.txt b.txt log.txt data.csv script.sh list.txt src/main.py src/app.py docs/guide.md x y f archive.tar"
    " archive.tgz archive.zip db.sqlite fix.patch big.bin Makefile package.json README.md .git/config"
)


def lines(name: str) -> list[str]:
    """Return the command lines of a corpus; ⏎ means a newline."""
    text = (CORPUS / f"{name}.txt").read_text("utf-8")
    return [line.replace("⏎", "\n") for line in text.splitlines() if line]


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> str:
    root = tmp_path_factory.mktemp("tree")
    for name in FILES.split():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("echo hi\n" if name == "script.sh" else "hi\n")
    (root / "empty").mkdir()
    (root / "link.txt").symlink_to("notes.txt")
    return str(root)


@cache
def analyses(name: str, tree: str) -> dict[str, Analysis]:
    """Return the verdicts of all lines, or of a third of them in the fast suite."""
    return {line: analyse(line, cwd=tree) for line in lines(name)[:: amount(3, slow=1)]}


def verdicts(name: str, tree: str) -> dict[str, str]:
    return {line: found.verdict for line, found in analyses(name, tree).items()}


@pytest.mark.req("SH-3", "SH-5")
@pytest.mark.parametrize("tier", ["tier1", "tier2", "tier3"])
def test_dangerous_lines_need_approval(tier, tree):
    assert [line for line, verdict in verdicts(tier, tree).items() if verdict == "ordinary"] == []


@pytest.mark.req("SH-5")
def test_harmless_lines_are_ordinary(tree):
    assert [line for line, verdict in verdicts("harmless", tree).items() if verdict != "ordinary"] == []


@pytest.mark.req("SH-5")
def test_unknown_programs_need_approval_for_no_other_reason(tree):
    found = analyses("strangers", tree)
    assert [
        line for line, analysis in found.items() if analysis.verdict != "confirm" or not analysis.no_danger_found
    ] == []


@pytest.mark.req("SH-6")
def test_denied_lines_are_denied(tree):
    assert [line for line, verdict in verdicts("deny", tree).items() if verdict != "deny"] == []


@pytest.mark.req("SH-6")
@pytest.mark.parametrize("tier", ["tier1", "tier2", "tier3"])
def test_only_listed_lines_are_denied(tier, tree):
    denied = set(lines("deny"))
    assert {line for line, verdict in verdicts(tier, tree).items() if verdict == "deny"} <= denied


def test_every_reason_is_one_short_line(tree):
    for tier in ("tier1", "tier2", "tier3", "deny"):
        for line, found in analyses(tier, tree).items():
            assert found.reason, line
            assert len(found.reason) < 160, (line, found.reason)
            assert "\n" not in found.reason, line


def test_ordinary_lines_have_no_reason(tree):
    assert {found.reason for found in analyses("harmless", tree).values()} == {""}


def test_corpora_are_large_and_have_no_duplicates():
    sizes = {name: len(lines(name)) for name in ("tier1", "tier2", "tier3", "harmless", "deny")}
    assert sizes["tier1"] + sizes["tier2"] + sizes["tier3"] >= 300
    assert sizes["harmless"] >= 250
    assert {name: len(set(lines(name))) for name in sizes} == sizes
