"""Holds every module in src to the house's form: a docstring, a bounded length, an honest name, absolute imports."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
MODULES = {str(path.relative_to(SOURCE)): path for path in sorted((SOURCE / "ostler").rglob("*.py"))}
MOST_LINES = 450
MAY_BE_RELATIVE = re.compile(r"from\s*\.|import_module")  # walking every tree takes longer than all the rest


def faults(name: str, source: str) -> list[str]:
    """What is wrong with a module, one word each."""
    tree = ast.parse(source)
    checks = {
        "docstring": not (ast.get_docstring(tree) or "").strip(),
        "length": len(source.splitlines()) > MOST_LINES,
        "name": re.search(r"(^|[/_])utils?([/_.]|$)", name) is not None,
        "relative": bool(MAY_BE_RELATIVE.search(source)) and any(map(is_relative_import, ast.walk(tree))),
    }
    return [fault for fault, found in checks.items() if found]


def is_relative_import(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level > 0
    called = getattr(node, "func", None)
    if not getattr(called, "attr", getattr(called, "id", "")).endswith("import_module"):
        return False
    args = getattr(node, "args", ())
    return any(isinstance(arg, ast.Constant) and str(arg.value).startswith(".") for arg in args)


def test_every_module_keeps_the_form():
    assert MODULES
    found = {name: faults(name, path.read_text("utf-8")) for name, path in MODULES.items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("name", "source", "fault"),
    [
        ("ostler/text/cut.py", "import re\n", "docstring"),
        ("ostler/text/cut.py", '"""  """', "docstring"),
        ("ostler/text/__init__.py", "", "docstring"),
        ("ostler/text/cut.py", '"""Cuts."""\n' + "x = 1\n" * MOST_LINES, "length"),
        ("ostler/text/utils.py", '"""Cuts."""', "name"),
        ("ostler/utils/cut.py", '"""Cuts."""', "name"),
        ("ostler/text/cut_util.py", '"""Cuts."""', "name"),
        ("ostler/text/cut.py", '"""Cuts."""\nfrom . import diff', "relative"),
        ("ostler/text/cut.py", '"""Cuts."""\ndef f():\n    from ..wire import codec', "relative"),
        ("ostler/text/cut.py", '"""Cuts."""\nimportlib.import_module(".diff", __package__)', "relative"),
    ],
)
def test_a_fault_is_caught(name, source, fault):
    assert faults(name, source) == [fault]


def test_a_module_in_form_has_no_fault():
    source = '"""Cuts."""\n' + "x = 1\n" * (MOST_LINES - 2) + "from ostler.text import diff\n"
    assert faults("ostler/text/utility_belt.py", source) == []
