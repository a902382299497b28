"""Check docs/architecture.md: tests cite its invariants; its files, protocols and imports are those of the code."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.layers.test_layers import BACKEND, EVERYTHING, FRONTEND, TABLE

pytestmark = pytest.mark.form

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ostler"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
NUMBERED = re.compile(r"^- \*\*([A-Z]\d+)\*\* ", re.MULTILINE)
GROUPS = ("backends", "frontends")
PROTOCOL_MODULES = (
    "core/accounts.py",
    "core/protocols.py",
    "core/store.py",
    "core/undo.py",
    "session/access.py",
)


def cited_invariants(source: str) -> Iterator[str]:
    """Yield the invariants in the `invariant` marks of a test module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.invariant":
            yield from map(ast.literal_eval, node.args)


def test_every_invariant_is_cited_and_every_citation_exists():
    numbers = NUMBERED.findall(PAGE)
    assert [number for number, count in Counter(numbers).items() if count > 1] == []
    cited = {number for path in ROOT.glob("tests/**/*.py") for number in cited_invariants(path.read_text("utf-8"))}
    assert {"without a test": set(numbers) - cited, "not on the page": cited - set(numbers)} == {
        "without a test": set(),
        "not on the page": set(),
    }


def test_citations_are_found():
    source = (
        '@pytest.mark.invariant("E1", "J2")\nasync def test_a(): pass\n\n@pytest.mark.req("FS-1")\ndef test_b(): pass'
    )
    assert list(cited_invariants(source)) == ["E1", "J2"]


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_files_of_the_tour_exist():
    names = set(re.findall(r"`([\w/]+\.py)`", section("Tour: one turn")))
    assert len(names) > 30
    existing = [str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py")]
    assert {name for name in names if not any(f"/{path}".endswith(f"/{name}") for path in existing)} == set()


def test_files_of_the_recipes_exist():
    recipes = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("\n## Recipes\n")[2].partition("\n## ")[0]
    lines = [line for line in recipes.splitlines() if "*(to come)*" not in line]
    names = set(re.findall(r"`([\w/]+/[\w/]*\.\w+)`", "\n".join(lines)))
    assert len(names) > 20
    fixed = {name for name in names if not re.search(r"NAME|TAG", name)}
    assert {name for name in fixed if not ((ROOT / name).exists() or (SOURCE / name).exists())} == set()


def members(source: str) -> dict[str, set[str]]:
    """Return the names of the methods and attributes of each class."""
    return {
        node.name: {
            item.target.id if isinstance(item, ast.AnnAssign) else item.name
            for item in node.body
            if isinstance(item, ast.AnnAssign | ast.FunctionDef | ast.AsyncFunctionDef)
        }
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
    }


def test_protocols_on_the_page_are_those_of_the_code():
    shown = members(re.search(r"```python\n(.*?)```", section("Protocols"), re.DOTALL)[1])
    defined = {}
    for module in PROTOCOL_MODULES:
        defined |= members((SOURCE / module).read_text("utf-8"))
    differences = {name: names ^ defined.get(name, set()) for name, names in shown.items() if names}
    assert {name: found for name, found in differences.items() if found} == {}
    assert set(shown) - set(defined) == set()


def import_table() -> dict[str, set[str]]:
    """Return the import table of the page; a row for several packages is expanded."""
    rows = re.findall(r"^\| ([\w, .*]+) \| ([^|]+) \|$", section("Packages"), re.MULTILINE)
    table = {}
    for packages, allowed in rows:
        for package in packages.split(", "):
            table[package] = allowed
    return table


def test_import_table_is_the_one_that_is_checked():
    table = import_table()
    plain = {package: set(allowed.split()) for package, allowed in TABLE.items() if not package.startswith(GROUPS)}
    shown = {
        package: set() if allowed == "nothing" else set(allowed.split(", "))
        for package, allowed in table.items()
        if package in plain
    }
    assert shown == plain
    for group, common in (("backends", BACKEND), ("frontends", FRONTEND)):
        first, *others = table[f"{group}.*"].split("; ")
        expected = {name: set(common.split()) for name in TABLE if name.startswith(f"{group}.")}
        for other in others:
            name, _, more = other.partition(" also ")
            expected[f"{group}.{name}"] |= set(more.split(", "))
        assert set(first.split(", ")) == set(common.split())
        assert {name: set(TABLE[name].split()) for name in expected} == expected
    assert set(table) - set(plain) == {"backends.*", "frontends.*", "package", *EVERYTHING}
