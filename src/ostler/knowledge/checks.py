"""Chooses the check command to run after edits, from the settings or from the project's files."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from ostler.settings.schema import ValidationConfig
from ostler.text.lazy_regex import lazy_regex

ReadFile = Callable[[str], str | None]

_EXTENSIONS: Mapping[str, str] = {
    "go": "go mod",
    "python": "py pyi",
    "rust": "rs",
    "node": "js jsx ts tsx mjs cjs vue svelte",
    "java": "java kt kts scala groovy gradle",
    "c": "c h cc cpp cxx hpp",
    "ruby": "rb",
    "php": "php",
    "csharp": "cs",
    "shell": "sh bash",
}
_LANGUAGE_BY_EXTENSION = {ending: language for language, endings in _EXTENSIONS.items() for ending in endings.split()}
_LANGUAGE_BY_FILE = {
    **{"Cargo.toml": "rust", "Cargo.lock": "rust", "package.json": "node", "pom.xml": "java"},
    **{"pyproject.toml": "python", "setup.cfg": "python", "pytest.ini": "python"},
}
_PYTHON_FILES = ("pyproject.toml", "setup.cfg", "requirements*.txt", "*.py")
_LANGUAGE_ALIASES = {
    **{"golang": "go", "py": "python", "rs": "rust", "javascript": "node", "typescript": "node", "js": "node"},
    **{"ts": "node", "kotlin": "java", "cpp": "c", "c++": "c", "c#": "csharp", "bash": "shell"},
}
_DOCUMENT_EXTENSIONS = (".md", ".mdx", ".txt", ".rst", ".adoc")
_NON_DOCUMENT_FILES = ("requirements*.txt", "constraints*.txt", "CMakeLists.txt")
# Output of builds and tools, for projects whose .gitignore does not list it.
_BUILD_FOLDERS = frozenset(["__pycache__", "node_modules"])
_BUILD_TOP_FOLDERS = frozenset(["target", "dist", "build", "out", "coverage", "htmlcov", "venv"])
_BUILD_EXTENSIONS = (".pyc", ".o", ".obj", ".a", ".so", ".class", ".jar", ".log", ".out", ".tmp", ".pid", ".db")
_NO_TEST_SCRIPT = "no test specified"
_PYTEST_CODE = lazy_regex(r"^(?:(?:async )?def test|import pytest\b|from pytest\b)", re.MULTILINE)
_MAX_TEST_FILES_READ = 20
_MAKE_TEST = lazy_regex(r"^test[ \t]*:(?!=)", re.MULTILINE)


def find_checks(
    validation: ValidationConfig, names: Collection[str], read: ReadFile, changed: Sequence[str]
) -> list[str]:
    """Return the checks for some changed files, each once; none if only documents changed.

    `names` are the names in the workspace's root and the paths in its test folders. `read` returns the text of a file,
    or None.
    """
    if not validation.enabled or not changed:
        return []
    configured = [
        command
        for key, commands in validation.checks.items()
        if any(_key_matches(key, path) for path in changed)
        for command in ([commands] if isinstance(commands, str) else commands)
    ]
    if configured:
        return list(dict.fromkeys(reversed(configured)))[::-1]
    code = [path for path in changed if not is_document(path)]
    return _default_checks(frozenset(names), read, {language_of(path) for path in code}) if code else []


def has_checks(validation: ValidationConfig, names: Collection[str], read: ReadFile) -> bool:
    """Return whether the project has a check for any kind of change."""
    return bool(validation.checks) or bool(_default_checks(frozenset(names), read, set(_EXTENSIONS)))


def is_document(path: str) -> bool:
    """Return whether a file is documentation, which tests do not cover."""
    name = path.rpartition("/")[2]
    if path.startswith("docs/"):
        return True
    return name.lower().endswith(_DOCUMENT_EXTENSIONS) and not any(
        fnmatchcase(name, pattern) for pattern in _NON_DOCUMENT_FILES
    )


def is_build_output(path: str) -> bool:
    """Return whether a file is output of a command, such as a cache, an object file or a log."""
    *folders, name = path.split("/")
    if folders[:1] and folders[0] in _BUILD_TOP_FOLDERS:
        return True
    if any(folder in _BUILD_FOLDERS or folder.startswith(".") or folder.endswith(".egg-info") for folder in folders):
        return True
    return name.startswith(".") or name.endswith(_BUILD_EXTENSIONS)


def language_of(path: str) -> str:
    """Return the language of a file by its name, or an empty string if it is unknown."""
    name = path.rpartition("/")[2]
    return _LANGUAGE_BY_FILE.get(name) or _LANGUAGE_BY_EXTENSION.get(name.rpartition(".")[2].lower(), "")


def _key_matches(key: str, path: str) -> bool:
    """Return whether a key of `validation.checks` (a language or a path pattern) applies to a file."""
    if key == "*":
        return not is_document(path)
    if any(char in key for char in "*?/."):
        return fnmatchcase(path, key)
    name = key.lower()
    return language_of(path) == _LANGUAGE_ALIASES.get(name, name)


def _default_checks(names: frozenset[str], read: ReadFile, languages: set[str]) -> list[str]:
    """Return the checks of the changed languages, else `make test`, else the first check found."""
    found = dict(_checks_by_language(names, read, languages))
    checks = [check for language, check in found.items() if language in languages]
    if checks:
        return checks
    makefile = next((name for name in ("GNUmakefile", "makefile", "Makefile") if name in names), "")
    if makefile and _MAKE_TEST.search(read(makefile) or ""):
        return ["make test"]
    return list(found.values())[:1]


def _checks_by_language(names: frozenset[str], read: ReadFile, languages: set[str]) -> Iterator[tuple[str, str]]:
    if "go.mod" in names:
        yield "go", "go test ./..."
    if "Cargo.toml" in names:
        yield "rust", "cargo test"
    if "package.json" in names and _has_test_script(read("package.json") or ""):
        yield "node", f"CI=true {_package_manager(names)} test"
    is_python = any(fnmatchcase(name, pattern) for name in names for pattern in _PYTHON_FILES if "/" not in name)
    if ("python" in languages or is_python) and (python := _python_check(names, read)):
        yield "python", python
    if "pom.xml" in names:
        yield "java", f"{'./mvnw' if 'mvnw' in names else 'mvn'} -q test"
    elif {"build.gradle", "build.gradle.kts"} & names:
        yield "java", f"{'./gradlew' if 'gradlew' in names else 'gradle'} test"


def _has_test_script(text: str) -> bool:
    import json

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    scripts = document.get("scripts") if isinstance(document, dict) else None
    script = scripts.get("test") if isinstance(scripts, dict) else None
    return isinstance(script, str) and bool(script.strip()) and _NO_TEST_SCRIPT not in script


def _package_manager(names: frozenset[str]) -> str:
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun run", "bun.lockb": "bun run"}
    return next((manager for lock, manager in locks.items() if lock in names), "npm")


def _python_check(names: frozenset[str], read: ReadFile) -> str:
    """Return pytest if the project mentions it or has tests for it, else unittest if there are tests."""
    folder = next((name for name in (".venv", "venv") if name in names), "")
    python = f"{folder}/bin/python" if folder else "python3"
    pytest = f"{python} -m pytest -q"
    settings = ("pyproject.toml", "setup.cfg", "tox.ini", "requirements.txt", "requirements-dev.txt")
    if {"pytest.ini", "conftest.py"} & names or any(
        name in names and "pytest" in (read(name) or "") for name in settings
    ):
        return pytest
    tests = sorted(name for name in names if fnmatchcase(name.rpartition("/")[2], "test*.py"))
    if any(_PYTEST_CODE.search(read(name) or "") for name in tests[:_MAX_TEST_FILES_READ]):
        return pytest
    for name in ("tests", "test"):
        if name in names:
            if read(f"{name}/conftest.py") is not None:
                return pytest
            return f"{python} -m unittest discover -s {name}"
    if any("/" not in name for name in tests):
        return f"{python} -m unittest discover"
    return ""
