"""The choice of check commands after edits: from the config, from the project's files, none for documents."""

import pytest

from ostler.knowledge.checks import find_checks, has_checks, is_build_output, is_document
from ostler.settings.schema import ValidationConfig

NODE = '{"scripts": {"test": "vitest run"}}'

# Files of the workspace, changed files, and the expected commands.
DEFAULT_CHECKS = {
    "go": ({"go.mod": ""}, ["a.go"], ["go test ./..."]),
    "rust": ({"Cargo.toml": ""}, ["src/main.rs"], ["cargo test"]),
    "rust by its own file": ({"Cargo.toml": "", "pyproject.toml": "pytest"}, ["Cargo.toml"], ["cargo test"]),
    "node": ({"package.json": NODE}, ["a.ts"], ["CI=true npm test"]),
    "pnpm": ({"package.json": NODE, "pnpm-lock.yaml": ""}, ["a.ts"], ["CI=true pnpm test"]),
    "yarn": ({"package.json": NODE, "yarn.lock": ""}, ["a.ts"], ["CI=true yarn test"]),
    "node without tests": ({"package.json": "{}"}, ["a.ts"], []),
    "npm's own placeholder": (
        {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\""}}'},
        ["a.ts"],
        [],
    ),
    "package.json of another kind": ({"package.json": "[" * 100_000}, ["a.ts"], []),
    "scripts of another kind": ({"package.json": '{"scripts": []}'}, ["a.ts"], []),
    "pytest.ini": ({"pytest.ini": ""}, ["a.py"], ["python3 -m pytest -q"]),
    "pyproject with pytest": ({"pyproject.toml": "[tool.pytest.ini_options]"}, ["a.py"], ["python3 -m pytest -q"]),
    "a virtual environment": ({"pyproject.toml": "pytest", ".venv": ""}, ["a.py"], [".venv/bin/python -m pytest -q"]),
    "conftest below": ({"tests": "", "tests/conftest.py": ""}, ["a.py"], ["python3 -m pytest -q"]),
    "unittest": ({"tests": "", "setup.cfg": ""}, ["a.py"], ["python3 -m unittest discover -s tests"]),
    "unittest in the root": ({"test_a.py": ""}, ["a.py"], ["python3 -m unittest discover"]),
    "tests written for pytest": (
        {"tests": "", "tests/test_a.py": "def test_a():\n    pass\n"},
        ["a.py"],
        ["python3 -m pytest -q"],
    ),
    "tests written for unittest": (
        {"tests": "", "tests/test_a.py": "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): ...\n"},
        ["a.py"],
        ["python3 -m unittest discover -s tests"],
    ),
    "python without tests": ({"pyproject.toml": ""}, ["a.py"], []),
    "tests of another language": ({"tests": ""}, ["a.c"], []),
    "make": ({"Makefile": "all:\n\ntest: all\n\t./t\n"}, ["a.c"], ["make test"]),
    "make without tests": ({"Makefile": "tests:\n\ntest := 1\n"}, ["a.c"], []),
    "the language before make": ({"Makefile": "test:\n", "go.mod": ""}, ["a.go"], ["go test ./..."]),
    "make before another language": ({"Makefile": "test:\n", "go.mod": ""}, ["a.c"], ["make test"]),
    "maven": ({"pom.xml": ""}, ["A.java"], ["mvn -q test"]),
    "maven's wrapper": ({"pom.xml": "", "mvnw": ""}, ["A.java"], ["./mvnw -q test"]),
    "gradle": ({"build.gradle.kts": "", "gradlew": ""}, ["A.kt"], ["./gradlew test"]),
    "two languages, both changed": (
        {"go.mod": "", "package.json": NODE},
        ["a.ts", "b.go"],
        ["go test ./...", "CI=true npm test"],
    ),
    "two languages, one changed": ({"go.mod": "", "package.json": NODE}, ["a.ts"], ["CI=true npm test"]),
    "neither": ({"go.mod": "", "package.json": NODE}, ["data.json"], ["go test ./..."]),
    "nothing known": ({}, ["a.py"], []),
    "nothing changed": ({"go.mod": ""}, [], []),
    "only documents": ({"go.mod": ""}, ["README.md", "docs/x.go", "notes/a.RST"], []),
    "documents and code": ({"go.mod": ""}, ["README.md", "a.go"], ["go test ./..."]),
    "text file that is not a document": (
        {"pytest.ini": "", "requirements.txt": ""},
        ["requirements.txt"],
        ["python3 -m pytest -q"],
    ),
}


def commands(validation, files, changed):
    names = {name for name in files if name.count("/") == 0 or name.startswith("tests/")}
    return find_checks(validation, names, files.get, changed)


@pytest.mark.req("EN-6")
@pytest.mark.parametrize("case", DEFAULT_CHECKS, ids=str)
def test_checks_from_project_files(case):
    files, changed, expected = DEFAULT_CHECKS[case]
    assert commands(ValidationConfig(), files, changed) == expected


CONFIGURED = {
    "language": ({"go": "make check"}, ["a.go"], ["make check"]),
    "language by another name": ({"TypeScript": "tsc"}, ["a.ts"], ["tsc"]),
    "several commands": ({"go": ("go vet ./...", "go test ./...")}, ["a.go"], ["go vet ./...", "go test ./..."]),
    "pattern": ({"web/*": "npm test"}, ["web/deep/a.css"], ["npm test"]),
    "ending": ({"*.sql": "lint"}, ["db/a.sql"], ["lint"]),
    "everything": ({"*": "./check"}, ["a.anything"], ["./check"]),
    "everything except documents": ({"*": "./check"}, ["README.md"], []),
    "documents by path": ({"docs/*": "mkdocs build"}, ["docs/a.md"], ["mkdocs build"]),
    "several keys": ({"go": "a", "*": "b", "python": "c"}, ["a.go"], ["a", "b"]),
    "the same twice": ({"go": "a", "*.go": "a"}, ["a.go"], ["a"]),
    "another language falls back": ({"python": "c"}, ["a.go"], ["go test ./..."]),
}


@pytest.mark.req("EN-6")
@pytest.mark.parametrize("case", CONFIGURED, ids=str)
def test_checks_from_config(case):
    checks, changed, expected = CONFIGURED[case]
    assert commands(ValidationConfig(checks=checks), {"go.mod": ""}, changed) == expected


@pytest.mark.parametrize(
    ("files", "configured", "expected"),
    [
        ({}, {}, False),
        ({"README.md": "", "Makefile": "all:\n"}, {}, False),
        ({"go.mod": ""}, {}, True),
        ({"Makefile": "test:\n"}, {}, True),
        ({"test_a.py": ""}, {}, True),
        ({}, {"*.sql": "lint"}, True),
    ],
)
def test_has_checks(files, configured, expected):
    assert has_checks(ValidationConfig(checks=configured), set(files), files.get) is expected


def test_disabled_checks():
    assert commands(ValidationConfig(enabled=False, checks={"*": "x"}), {"go.mod": ""}, ["a.go"]) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        *(
            (path, True)
            for path in ("a/__pycache__/x.pyc", "dist/a.js", "web/node_modules/x/a.js", ".cache/a.py", "a.log")
        ),
        *((path, False) for path in ("a.py", "src/build/a.py", "build.py", "target.rs", "src/out/a.go")),
    ],
)
def test_is_build_output(path, expected):
    assert is_build_output(path) is expected


@pytest.mark.parametrize(
    ("path", "expected"), [("CMakeLists.txt", False), ("a.txt", True), ("docs", False), ("src/docs/a.py", False)]
)
def test_is_document(path, expected):
    assert is_document(path) is expected
