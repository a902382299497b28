"""Find the tests near a change, for `./run test --near`.

These are the tests of the changed packages and of the packages with a module that imports what changed, every test
that names a changed module, and the contract tests if something changed that backends and frontends share. A change in
`core` reaches all tests. The layer test keeps the imports within the table of docs/architecture.md: they are the graph.
"""

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.layers.test_layers import modules, package_of, targets

ROOT = Path(__file__).resolve().parent.parent
SHARED = {"session", "tools", "policy", "wire", "interaction", "journal", "backends", "frontends", "testing"}
OTHER_FILES = {"docs": ("tests/docs",), "tasks": ("tests/tasks", "tests/layers"), "bench": (), "src": ("tests/layers",)}
SETUP_FILES = ("tests/run", "tests/layers")  # for files in the root: pyproject.toml, the lock files, `run`


def changed_files(base: str = "HEAD", root: Path = ROOT) -> list[str]:
    """Return the files that differ from a commit, or from where the current branch left it; also untracked ones."""
    start = _git(root, "merge-base", base, "HEAD")[0]
    return sorted({*_git(root, "diff", "--name-only", start), *_git(root, "ls-files", "-o", "--exclude-standard")})


def near_tests(changed: Iterable[str], root: Path = ROOT) -> list[str] | None:
    """Return the folders and files with the tests near these changed files; None if all tests are."""
    changed = list(changed)
    module_names = {name for file in changed if (name := module_name(file))}
    packages = {package_of(name) for name in module_names}
    if "core" in packages or any(file == "tests/conftest.py" for file in changed):
        return None
    near = packages | (importing_packages(_import_graph(), module_names) if module_names else set())
    found = {folder for package in near for folder in _test_folders(package)}
    if any(package.split(".")[0] in SHARED for package in packages):
        found.add("tests/contract")
    found |= {test for file in changed for test in _tests_of_file(file)}
    found |= set(_tests_naming(module_names, root))
    return _without_nested(name for name in found if (root / name).exists())


def module_name(file: str) -> str:
    """Return the module of a source file: `ostler.http.sse` for `src/ostler/http/sse.py`; empty for other files."""
    path = Path(file)
    if path.parts[:2] != ("src", "ostler"):
        return ""
    if path.suffix != ".py":  # data belongs to its package
        path = path.parent / "__init__.py"
    return ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")


def importing_packages(graph: Mapping[str, set[str]], changed: set[str]) -> set[str]:
    """Return the packages with a module that imports a changed one, directly or through modules of its package."""
    packages = {package_of(name) for name in changed}
    reached: set[str] = set()
    new = set(changed)
    while new:
        reached |= new
        named = reached | {name.rpartition(".")[0] for name in reached}  # `from ostler.text import diff`
        new = {
            module
            for module, imported in graph.items()
            if imported & named and package_of(module) in packages and module not in reached
        }
    named = reached | {name.rpartition(".")[0] for name in reached}
    return {package_of(module) for module, imported in graph.items() if imported & named}


@cache
def _import_graph() -> dict[str, set[str]]:
    return {module: {target for _, target in targets(path.read_text("utf-8"))} for module, path in modules()}


def _test_folders(package: str) -> list[str]:
    return [f"tests/{package.replace('.', '/')}"] if package and package != "testing" else []


def _tests_of_file(file: str) -> tuple[str, ...]:
    """Return the tests for a changed file, apart from those of its package."""
    path = Path(file)
    if path.parts[0] != "tests":
        return OTHER_FILES.get(path.parts[0], SETUP_FILES)
    if path.name.startswith("test_") and path.suffix == ".py":
        return (file,)
    return (str(path.parent),) if len(path.parts) > 2 else ()  # a helper or a conftest.py


def _tests_naming(module_names: set[str], root: Path) -> Iterator[str]:
    """Yield the test files that name a module, in any form of import."""
    for path in (root / "tests").rglob("test_*.py"):
        text = path.read_text("utf-8")
        if any(name in text for name in module_names if name.count(".") > 1):
            yield str(path.relative_to(root))


def _without_nested(names: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for name in sorted(names):
        if not any(name == other or name.startswith(f"{other}/") for other in kept):
            kept.append(name)
    return kept


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"./run test --near needs git: {done.stderr.strip()}")
    return done.stdout.splitlines()
