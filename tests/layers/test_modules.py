"""Check every module in src: docstring, length, no `utils`, absolute imports, portable regexes, unique class names."""

import ast
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.form

SOURCE = Path(__file__).parents[2] / "src"
MODULES = {str(path.relative_to(SOURCE)): path for path in sorted((SOURCE / "ostler").rglob("*.py"))}
MAX_LINES = 450
CLOSED_UNION = "ostler/core/events.py"  # all events, in one module
MAY_BE_RELATIVE = re.compile(r"from\s*\.|import_module")  # cheap test, because walking every syntax tree is slow
MAY_BE_POSSESSIVE = re.compile(r"[)}][*+?]\+|\}\+")
ESCAPE_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{[^{}]*\})\+")


def faults(name: str, source: str) -> list[str]:
    """Return the names of the checks that a module fails."""
    tree = ast.parse(source)
    checks = {
        "docstring": not (ast.get_docstring(tree) or "").strip(),
        "length": len(source.splitlines()) > MAX_LINES and name != CLOSED_UNION,
        "name": re.search(r"(^|[/_])utils?([/_.]|$)", name) is not None,
        "relative": bool(MAY_BE_RELATIVE.search(source)) and any(map(is_relative_import, ast.walk(tree))),
        "possessive": bool(MAY_BE_POSSESSIVE.search(source)) and any(map(is_possessive_group, ast.walk(tree))),
    }
    return [fault for fault, found in checks.items() if found]


def is_relative_import(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level > 0
    function = getattr(node, "func", None)
    if not getattr(function, "attr", getattr(function, "id", "")).endswith("import_module"):
        return False
    args = getattr(node, "args", ())
    return any(isinstance(arg, ast.Constant) and str(arg.value).startswith(".") for arg in args)


def is_possessive_group(node: ast.AST) -> bool:
    """Return whether a string is a regex like `(ab|c)*+`, which Python 3.11.2 to 3.11.4 match wrongly.

    Use `(?>(?:ab|c)*)` instead, or no `+` at the end of a pattern. A possessive character or class is correct.
    """
    if isinstance(node, ast.JoinedStr):  # an inserted value can be a group
        parts = [str(part.value) if isinstance(part, ast.Constant) else "()" for part in node.values]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        parts = [node.value if isinstance(node.value, str) else node.value.decode("latin-1")]
    else:
        return False
    return POSSESSIVE_GROUP.search(ESCAPE_OR_CLASS.sub("x", "".join(parts))) is not None


def test_every_module_passes():
    assert MODULES
    found = {name: faults(name, path.read_text("utf-8")) for name, path in MODULES.items()}
    assert {name: failed for name, failed in found.items() if failed} == {}


@pytest.mark.parametrize(
    ("name", "source", "fault"),
    [
        ("ostler/text/cut.py", "import re\n", "docstring"),
        ("ostler/text/cut.py", '"""  """', "docstring"),
        ("ostler/text/__init__.py", "", "docstring"),
        ("ostler/text/cut.py", '"""Cuts."""\n' + "x = 1\n" * MAX_LINES, "length"),
        ("ostler/text/utils.py", '"""Cuts."""', "name"),
        ("ostler/utils/cut.py", '"""Cuts."""', "name"),
        ("ostler/text/cut_util.py", '"""Cuts."""', "name"),
        ("ostler/text/cut.py", '"""Cuts."""\nfrom . import diff', "relative"),
        ("ostler/text/cut.py", '"""Cuts."""\ndef f():\n    from ..wire import codec', "relative"),
        ("ostler/text/cut.py", '"""Cuts."""\nimportlib.import_module(".diff", __package__)', "relative"),
        ("ostler/text/cut.py", '"""Cuts."""\nx = r"(?:a|bc)*+d"', "possessive"),
        ("ostler/text/cut.py", '"""Cuts."""\nx = r"[(](a|bc)?+"', "possessive"),
        ("ostler/text/cut.py", '"""Cuts."""\nx = rb"(?:a|bc)++"', "possessive"),
        ("ostler/text/cut.py", '"""Cuts."""\nx = r"(?:a|bc){0,9}+"', "possessive"),
        ("ostler/text/cut.py", '"""Cuts."""\nx = rf"(?:a|bc){{{n},}}+"', "possessive"),
        ("ostler/text/cut.py", '"""Cuts."""\nx = rf"{group}*+"', "possessive"),
    ],
)
def test_fault_is_found(name, source, fault):
    assert faults(name, source) == [fault]


@pytest.mark.parametrize("pattern", [r"[^)]*+x", r"\)++", r"[\])*+]", r"(?>(?:a|bc)*)d", r"(a)+(b)", r"\d{1,9}+"])
def test_other_regexes_are_allowed(pattern):
    assert faults("ostler/text/cut.py", f'"""Cuts."""\nx = r"{pattern}"') == []


def test_correct_module_has_no_fault():
    source = '"""Cuts."""\n' + "x = 1\n" * (MAX_LINES - 2) + "from ostler.text import diff\n"
    assert faults("ostler/text/utility_belt.py", source) == []


MAX_REPEATED_NAMES = 15
REPEATED_NAMES = {"BuiltPrompt"}  # class names that several modules may define


def classes(source: str) -> set[str]:
    """Return the names of the classes at the top level of a module."""
    return {node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}


def repeated(sources: dict[str, str]) -> dict[str, list[str]]:
    """Return the class names that several modules define, with these modules."""
    modules: dict[str, list[str]] = {}
    for module, source in sources.items():
        for name in classes(source):
            modules.setdefault(name, []).append(module)
    return {name: where for name, where in modules.items() if len(where) > 1}


def test_class_names_are_defined_once():
    found = repeated({name: path.read_text("utf-8") for name, path in MODULES.items()})
    assert {name: where for name, where in found.items() if name not in REPEATED_NAMES} == {}
    assert len(REPEATED_NAMES) <= MAX_REPEATED_NAMES


def test_repeated_class_name_is_found():
    sources = {"a.py": "class One: pass\nclass Two: pass", "b.py": "class Two: pass", "c.py": "def Two(): pass"}
    assert repeated(sources) == {"Two": ["a.py", "b.py"]}
