"""Check which package imports which, including lazy and type-only imports and module names in strings."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.form

SOURCE = Path(__file__).parents[2] / "src"

BACKEND = "core wire text http"
FRONTEND = "core session interaction rendering wire knowledge settings text http"
TABLE = {
    "core": "",
    "xnl": "",
    "text": "",
    "settings": "core text",
    "policy": "core text",
    "processes": "core text",
    "wire": "core xnl text",
    "http": "core text",
    "workspace": "core settings policy text processes",
    "models": "core xnl settings text processes http",
    "knowledge": "core workspace settings policy text processes",
    "tools": "core workspace policy knowledge text processes",
    "credentials": "core settings text http wire",
    "stdio_rpc": "core wire text processes",
    "mcp": "core settings wire text http stdio_rpc processes knowledge tools journal workspace",
    "hooks": "core settings knowledge workspace processes",
    "access": "core settings policy knowledge workspace mcp",
    "journal": "core wire xnl text",
    "session": "core policy journal wire text",
    "interaction": "core session knowledge settings text",
    "storage": "core settings journal session knowledge text",
    "doctor": "core settings knowledge models tools processes workspace",
    "rendering": "core session text",
    "conformance": "core wire text processes rendering",
    "backends": "",
    "backends.engine": f"{BACKEND} models knowledge xnl",
    "backends.remote": BACKEND,
    "backends.acp": f"{BACKEND} stdio_rpc",
    "backends.agent_zero": BACKEND,
    "backends.none": BACKEND,
    "backends.scripted": BACKEND,
    "frontends": "",
    "frontends.headless": FRONTEND,
    "frontends.acp_cli": FRONTEND,
    "frontends.repl": FRONTEND,
    "frontends.tui": FRONTEND,
    "frontends.acp_agent": f"{FRONTEND} workspace processes",
    "frontends.server": f"{FRONTEND} journal",
    "frontends.mcp_server": FRONTEND,
    "frontends.python": FRONTEND,
}
PACKAGES = {package: frozenset(allowed.split()) for package, allowed in TABLE.items()}
GROUPS = ("backends", "frontends")  # packages of packages; their children do not import each other
EVERYTHING = ("testing", "app", "cli", "demo")
TOP_LEVEL = {
    "__init__": {"app", "core"},
    "__main__": {"", "cli"},
}  # the two modules of the top-level package: API and entry point
TOPS = {"", *TOP_LEVEL, *EVERYTHING, *(package.split(".")[0] for package in PACKAGES)}
DEMO = re.compile(r"ostler\.demo\b")
BACKEND_NAME = re.compile(r"\bbackend(\.partition\(.*\)\[0\])?$")
MODULE_NAME = re.compile(r"ostler\.([\w.]*)(:[\w.]+)?")


def package_of(module: str) -> str:
    """Return the package of a module: `frontends.tui` for `ostler.frontends.tui.app`, "" for `ostler` itself."""
    parts = module.split(".")[1:]
    return ".".join(parts[: 2 if parts[:1] and parts[0] in GROUPS else 1])


def docstrings(nodes: list[ast.AST]) -> set[int]:
    bodies = (node.body for node in nodes if isinstance(getattr(node, "body", None), list))
    firsts = (body[0].value for body in bodies if body and isinstance(body[0], ast.Expr))
    return {id(value) for value in firsts}


def targets(source: str) -> Iterator[tuple[int, str]]:
    """Yield every module of Ostler that a source names in an import or in a string, with its line."""
    nodes = list(ast.walk(ast.parse(source)))
    prose = docstrings(nodes)
    for node in nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [from_target(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            names = named_modules(node.value)
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == "ostler")


def named_modules(text: str) -> list[str]:
    """Return the module that a string names, as in a table of lazy imports; `ostler.json` is a file name."""
    named = MODULE_NAME.fullmatch(text)
    if named is None or named[1].split(".")[0] not in TOPS:
        return []
    return [f"ostler.{named[1]}".rstrip(".")]


def from_target(module: str, name: str) -> str:
    """Return what is imported: a package for `from ostler import text`, otherwise the module."""
    names_package = name in TOPS if module == "ostler" else module.removeprefix("ostler.") in GROUPS
    return f"{module}.{name}" if names_package else module


def compares_backend_name(source: str) -> bool:
    """Return whether a source compares the name of a backend with a string, in place of asking for a trait."""
    nodes = ast.walk(ast.parse(source)) if "backend" in source else ()
    return any(isinstance(node, ast.Compare) and names_a_backend(node) for node in nodes)


def names_a_backend(node: ast.Compare) -> bool:
    elements: list[ast.expr] = []
    for side in (node.left, *node.comparators):
        elements += side.elts if isinstance(side, ast.Tuple | ast.Set | ast.List) else [side]
    has_name = any(BACKEND_NAME.search(ast.unparse(element)) for element in elements)
    return has_name and any(
        isinstance(e, ast.Constant) and isinstance(e.value, str) and re.match(r"\w", e.value) for e in elements
    )


def test_backends_are_told_apart_by_their_traits():
    found = [str(path) for path in SOURCE.rglob("*.py") if compares_backend_name(path.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('info.backend == "remote"', True),
        ('"engine" != self.session.info.backend', True),
        ('options.backend.partition(":")[0] in ("remote", "acp")', True),
        ('backend in {"acp"}', True),
        ('request.backend == ""', False),
        ("backend_kind(info.backend).is_elsewhere", False),
        ('self.backend.state == "idle"', False),
        ('":" in backend', False),
        ("backend is None", False),
        ('name == "none"', False),
    ],
)
def test_comparison_with_a_name_is_found(source, found):
    assert compares_backend_name(source) is found


def may_import(module: str, target: str) -> bool:
    importer, imported = package_of(module), package_of(target)
    if imported == "testing":
        return importer == "testing" or bool(DEMO.match(module))
    if importer in EVERYTHING or importer == imported:
        return True
    if not importer:
        return imported in TOP_LEVEL["__init__"]
    if importer == "__main__":
        return imported in TOP_LEVEL["__main__"]
    return imported in PACKAGES.get(importer, ())


def violations(module: str, source: str) -> list[str]:
    """Return one sentence for each import that the table forbids."""
    home = package_of(module)
    if home and home not in PACKAGES and home not in EVERYTHING and home not in TOP_LEVEL:
        return [f"{module}: the package {home!r} is not in the table"]
    return [
        f"{module}:{line} may not import {target}" for line, target in targets(source) if not may_import(module, target)
    ]


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted((SOURCE / "ostler").rglob("*.py")):
        yield ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"), path


@pytest.mark.invariant("R4")
def test_every_import_is_allowed():
    found = [sentence for module, path in modules() for sentence in violations(module, path.read_text("utf-8"))]
    assert found == []


def test_only_the_line_client_draws_with_prompt_toolkit():
    found = {package_of(module) for module, path in modules() if "prompt_toolkit" in path.read_text("utf-8")}
    assert found == {"frontends.repl"}


def test_only_the_full_screen_client_draws_with_textual():
    drawing = re.compile(r"^\s*(?:from|import) (?:textual|rich)\b", re.MULTILINE)
    found = {package_of(module) for module, path in modules() if drawing.search(path.read_text("utf-8"))}
    assert found == {"frontends.tui"}


def test_all_of_the_source_is_checked():
    seen = {module for module, _ in modules()}
    assert {"ostler", "ostler.__main__", "ostler.core.protocols"} <= seen


FORBIDDEN = [
    ("ostler.text.truncate", "from ostler.core.events import Event"),
    ("ostler.core.tools", "import ostler.text.diff"),
    ("ostler.policy.verdict", "def lazily():\n    from ostler.settings import grants"),
    ("ostler.session.pending_answers", "if TYPE_CHECKING:\n    from ostler.tools.host import LocalToolHost"),
    ("ostler.models.http_model", "from ostler import wire"),
    ("ostler.http.client", "from ostler.models.base_url import parse_base_url"),
    ("ostler.tools.host", "import ostler.http.client"),
    ("ostler.backends.engine.loop", "from ostler.backends.acp import agent_client"),
    ("ostler.wire.jsonrpc", "from ostler.stdio_rpc import program"),
    ("ostler.backends.remote", "from ostler.backends import scripted"),
    ("ostler.backends", "from ostler.backends.engine import Engine"),
    ("ostler.backends.remote", "import ostler.models.model_types"),
    ("ostler.backends.remote.talk", "from ostler.processes import tree"),
    ("ostler.frontends.tui.app", "from ostler.frontends.repl import completion"),
    ("ostler.frontends.repl.loop", "from ostler.journal import search"),
    ("ostler.frontends.tui.app", "import importlib\nimportlib.import_module('ostler.tools.host')"),
    ("ostler.frontends.tui.app", "TABLE = {'run': 'ostler.backends.engine:Engine'}"),
    ("ostler.session.session", "import_module(f'ostler.tools.{name}')"),
    ("ostler.session.session", "import_module(f'ostler.{name}')"),
    ("ostler.session.session", "from ostler.app.session_manager import LocalSessionManager"),
    ("ostler.tools.host", "import ostler.cli"),
    ("ostler.wire.event_codec", "from ostler import __version__"),
    ("ostler.storage.session_stores", "from ostler.testing import ScriptedModel"),
    ("ostler.cli.demonstrate", "import ostler.testing"),
    ("ostler.models.scripted", "from ostler.testing.model import Script"),
    ("ostler", "from ostler.tools import host"),
    ("ostler.__main__", "import ostler.storage.session_stores"),
    ("ostler.attic.box", ""),
    ("ostler.helpers", ""),
    ("ostler.backends.oracle", ""),
    ("ostler.frontends.pager.main", ""),
]


@pytest.mark.parametrize(("module", "source"), FORBIDDEN)
def test_forbidden_import_is_found(module, source):
    assert len(violations(module, source)) == 1


ALLOWED = [
    ("ostler.core.tools", "from ostler.core.events import Event"),
    ("ostler.core.tools", "import msgspec\nfrom ostlerish.cli import x"),
    ("ostler.text.truncate", '"""Says `ostler.cli`."""\ndef f():\n    "ostler.cli"'),
    ("ostler.text.truncate", "FILES = ['ostler.json', 'ostler.log']"),
    ("ostler.text.truncate", "HINT = 'ask the ostler.cli table'"),
    (
        "ostler.backends.engine.loop",
        "from ostler.backends.engine import plugins\nfrom ostler.models import model_types",
    ),
    ("ostler.backends.acp", "import ostler.stdio_rpc.program"),
    ("ostler.frontends.server.app", "from ostler.journal.sql import Store"),
    ("ostler.demo.project", "from ostler.testing import ScriptedModel"),
    ("ostler.testing.model", "from ostler.app import sessions\nfrom ostler.testing import script"),
    ("ostler.cli.main", "COMMANDS = {'tui': 'ostler.frontends.tui.app:run'}\nfrom ostler import __version__"),
    ("ostler", "def __getattr__(name):\n    from ostler.app import api"),
    ("ostler.__main__", "from ostler import __version__\nfrom ostler.cli import main"),
]


@pytest.mark.parametrize(("module", "source"), ALLOWED)
def test_allowed_import_passes(module, source):
    assert violations(module, source) == []
