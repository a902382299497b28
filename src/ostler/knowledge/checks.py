"""Which command checks the project after edits: what the config says, else what the workspace looks like."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from ostler.settings.schema import Validation
from ostler.text.regex import regex

Read = Callable[[str], str | None]

_ENDINGS: Mapping[str, str] = {
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
_LANGUAGES = {ending: language for language, endings in _ENDINGS.items() for ending in endings.split()}
_FILES = {
    **{"Cargo.toml": "rust", "Cargo.lock": "rust", "package.json": "node", "pom.xml": "java"},
    **{"pyproject.toml": "python", "setup.cfg": "python", "pytest.ini": "python"},
}
_OF_PYTHON = ("pyproject.toml", "setup.cfg", "requirements*.txt", "*.py")
_ALIASES = {
    **{"golang": "go", "py": "python", "rs": "rust", "javascript": "node", "typescript": "node", "js": "node"},
    **{"ts": "node", "kotlin": "java", "cpp": "c", "c++": "c", "c#": "csharp", "bash": "shell"},
}
_DOCUMENTS = (".md", ".mdx", ".txt", ".rst", ".adoc")
_NO_DOCUMENTS = ("requirements*.txt", "constraints*.txt", "CMakeLists.txt")
# What commands leave behind beside their work, where no .gitignore says so.
_PRODUCT_FOLDERS = frozenset(["__pycache__", "node_modules"])
_PRODUCT_TOPS = frozenset(["target", "dist", "build", "out", "coverage", "htmlcov", "venv"])
_PRODUCT_ENDINGS = (".pyc", ".o", ".obj", ".a", ".so", ".class", ".jar", ".log", ".out", ".tmp", ".pid", ".db")
_NO_TESTS = "no test specified"
_FOR_PYTEST = regex(r"^(?:(?:async )?def test|import pytest\b|from pytest\b)", re.MULTILINE)
_MOST_LOOKED_AT = 20
_MAKE_TEST = regex(r"^test[ \t]*:(?!=)", re.MULTILINE)


class Check(msgspec.Struct, frozen=True):
    """A command that checks, and what it was found by."""

    command: str
    why: str


def find_checks(validation: Validation, names: Collection[str], read: Read, changed: Sequence[str]) -> list[Check]:
    """The checks for some changed files, each once; none when they are only documents.

    `names` are those in the workspace's root and, as paths, in its folders of tests; `read` gives the text of a file
    there, or nothing.
    """
    if not validation.enabled or not changed:
        return []
    configured = [
        Check(command, f"validation.checks {key!r}")
        for key, commands in validation.checks.items()
        if any(_meant(key, path) for path in changed)
        for command in ([commands] if isinstance(commands, str) else commands)
    ]
    if configured:
        return list({check.command: check for check in reversed(configured)}.values())[::-1]
    code = [path for path in changed if not is_document(path)]
    return _usual(frozenset(names), read, {language_of(path) for path in code}) if code else []


def could_check(validation: Validation, names: Collection[str], read: Read) -> bool:
    """Whether there is any check here, whatever is changed."""
    return bool(validation.checks) or bool(_usual(frozenset(names), read, set(_ENDINGS)))


def is_document(path: str) -> bool:
    """Whether a file is prose, so that no test could tell whether it is right."""
    name = path.rpartition("/")[2]
    if path.startswith("docs/"):
        return True
    return name.lower().endswith(_DOCUMENTS) and not any(fnmatchcase(name, pattern) for pattern in _NO_DOCUMENTS)


def is_product(path: str) -> bool:
    """Whether a file is what a command leaves behind (a cache, an object, a log) and nobody's edit."""
    *folders, name = path.split("/")
    if folders[:1] and folders[0] in _PRODUCT_TOPS:
        return True
    if any(folder in _PRODUCT_FOLDERS or folder.startswith(".") or folder.endswith(".egg-info") for folder in folders):
        return True
    return name.startswith(".") or name.endswith(_PRODUCT_ENDINGS)


def language_of(path: str) -> str:
    """The language of a file by its name; nothing when it could be any."""
    name = path.rpartition("/")[2]
    return _FILES.get(name) or _LANGUAGES.get(name.rpartition(".")[2].lower(), "")


def _meant(key: str, path: str) -> bool:
    """Whether a key of the config, a language or a pattern of paths, is about a file."""
    if key == "*":
        return not is_document(path)
    if any(char in key for char in "*?/."):
        return fnmatchcase(path, key)
    name = key.lower()
    return language_of(path) == _ALIASES.get(name, name)


def _usual(names: frozenset[str], read: Read, languages: set[str]) -> list[Check]:
    """The checks of the languages that were touched, else `make test`, else the first there is."""
    found = dict(_by_language(names, read, languages))
    checks = [check for language, check in found.items() if language in languages]
    if checks:
        return checks
    makefile = next((name for name in ("GNUmakefile", "makefile", "Makefile") if name in names), "")
    if makefile and _MAKE_TEST.search(read(makefile) or ""):
        return [Check("make test", makefile)]
    return list(found.values())[:1]


def _by_language(names: frozenset[str], read: Read, languages: set[str]) -> Iterator[tuple[str, Check]]:
    if "go.mod" in names:
        yield "go", Check("go test ./...", "go.mod")
    if "Cargo.toml" in names:
        yield "rust", Check("cargo test", "Cargo.toml")
    if "package.json" in names and _has_test_script(read("package.json") or ""):
        yield "node", Check(f"CI=true {_package_manager(names)} test", "package.json")
    of_python = any(fnmatchcase(name, pattern) for name in names for pattern in _OF_PYTHON if "/" not in name)
    if ("python" in languages or of_python) and (python := _python(names, read)):
        yield "python", python
    if "pom.xml" in names:
        yield "java", Check(f"{'./mvnw' if 'mvnw' in names else 'mvn'} -q test", "pom.xml")
    elif gradle := next((name for name in ("build.gradle", "build.gradle.kts") if name in names), ""):
        yield "java", Check(f"{'./gradlew' if 'gradlew' in names else 'gradle'} test", gradle)


def _has_test_script(text: str) -> bool:
    import json

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    scripts = document.get("scripts") if isinstance(document, dict) else None
    script = scripts.get("test") if isinstance(scripts, dict) else None
    return isinstance(script, str) and bool(script.strip()) and _NO_TESTS not in script


def _package_manager(names: frozenset[str]) -> str:
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun run", "bun.lockb": "bun run"}
    return next((manager for lock, manager in locks.items() if lock in names), "npm")


def _python(names: frozenset[str], read: Read) -> Check | None:
    """pytest where anything speaks of it, or tests are written for it, else the tests that Python itself can find."""
    folder = next((name for name in (".venv", "venv") if name in names), "")
    python = f"{folder}/bin/python" if folder else "python3"
    for name in ("pytest.ini", "conftest.py"):
        if name in names:
            return Check(f"{python} -m pytest -q", name)
    for name in ("pyproject.toml", "setup.cfg", "tox.ini", "requirements.txt", "requirements-dev.txt"):
        if name in names and "pytest" in (read(name) or ""):
            return Check(f"{python} -m pytest -q", name)
    tests = sorted(name for name in names if fnmatchcase(name.rpartition("/")[2], "test*.py"))
    if name := next((name for name in tests[:_MOST_LOOKED_AT] if _FOR_PYTEST.search(read(name) or "")), ""):
        return Check(f"{python} -m pytest -q", name)
    for name in ("tests", "test"):
        if name in names:
            if read(f"{name}/conftest.py") is not None:
                return Check(f"{python} -m pytest -q", f"{name}/conftest.py")
            return Check(f"{python} -m unittest discover -s {name}", f"{name}/")
    if any("/" not in name for name in tests):
        return Check(f"{python} -m unittest discover", "test*.py")
    return None
