"""Every line of the corpora gets its verdict: the dangerous are stopped, the harmless are not."""

from functools import cache
from pathlib import Path

import pytest

from ostler.policy.shell import Analysis, analyse

CORPUS = Path(__file__).parents[1] / "data" / "shell"
FILES = (
    "notes.txt a.txt b.txt log.txt data.csv script.sh list.txt src/main.py src/app.py docs/guide.md x y f archive.tar"
    " archive.tgz archive.zip db.sqlite fix.patch big.bin Makefile package.json README.md .git/config"
)


def lines(name: str) -> list[str]:
    """The commands of a corpus; ⏎ stands for a newline inside one."""
    text = (CORPUS / f"{name}.txt").read_text("utf-8")
    return [line.replace("⏎", "\n") for line in text.splitlines() if line]


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> str:
    root = tmp_path_factory.mktemp("tree")
    for name in FILES.split():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("hi\n")
    (root / "empty").mkdir()
    (root / "link.txt").symlink_to("notes.txt")
    return str(root)


@cache
def judged(name: str, tree: str) -> dict[str, Analysis]:
    return {line: analyse(line, cwd=tree) for line in lines(name)}


def verdicts(name: str, tree: str) -> dict[str, str]:
    return {line: found.verdict for line, found in judged(name, tree).items()}


@pytest.mark.req("SH-3", "SH-5")
@pytest.mark.parametrize("tier", ["tier1", "tier2", "tier3"])
def test_the_dangerous_are_stopped(tier, tree):
    assert [line for line, verdict in verdicts(tier, tree).items() if verdict == "ordinary"] == []


@pytest.mark.req("SH-5")
def test_the_harmless_pass(tree):
    assert [line for line, verdict in verdicts("harmless", tree).items() if verdict != "ordinary"] == []


@pytest.mark.req("SH-5")
def test_strangers_are_asked_about_for_nothing_else(tree):
    found = judged("strangers", tree)
    assert [
        line for line, analysis in found.items() if analysis.verdict != "confirm" or not analysis.no_danger_found
    ] == []


@pytest.mark.req("SH-6")
def test_the_hopeless_are_refused(tree):
    assert [line for line, verdict in verdicts("deny", tree).items() if verdict != "deny"] == []


@pytest.mark.req("SH-6")
@pytest.mark.parametrize("tier", ["tier1", "tier2", "tier3"])
def test_refusal_is_for_the_hopeless_alone(tier, tree):
    hopeless = set(lines("deny"))
    assert {line for line, verdict in verdicts(tier, tree).items() if verdict == "deny"} <= hopeless


def test_every_stop_says_why_in_one_short_clause(tree):
    for tier in ("tier1", "tier2", "tier3", "deny"):
        for line, found in judged(tier, tree).items():
            assert found.reason, line
            assert len(found.reason) < 160, (line, found.reason)
            assert "\n" not in found.reason, line


def test_an_ordinary_line_has_no_why(tree):
    assert {found.reason for found in judged("harmless", tree).values()} == {""}


def test_the_corpora_are_large_and_without_doubles():
    sizes = {name: len(lines(name)) for name in ("tier1", "tier2", "tier3", "harmless", "deny")}
    assert sizes["tier1"] + sizes["tier2"] + sizes["tier3"] >= 300
    assert sizes["harmless"] >= 250
    assert {name: len(set(lines(name))) for name in sizes} == sizes
