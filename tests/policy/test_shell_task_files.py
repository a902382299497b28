"""The scripts of package.json and the recipes of a justfile are analysed like the command line itself."""

import json

import pytest

from ostler.policy.shell import Analysis, analyse

SCRIPTS = {
    "build": "tsc -p . && vite build",
    "clean": "rm -rf dist",
    "prerelease": "rimraf dist",
    "release": "echo release",
    "test": "jest",
    "posttest": "npm run clean",
    "start": "node server.js",
    "own": "our-own-tool --fix",
    "loop": "npm run loop",
    "wrap": "eslint",
    "postinstall": "mv a b",
}
JUSTFILE = """\
set dotenv-load
target := "out"
version := `git describe`

default: build

# compile
build: check
    @echo building {{target}}
    gcc -c a.c

check:
    ls

[private]
wipe: build
    -rm -rf {{target}}

tidy name="x": (wipe)
    echo {{name}}

script:
    #!/usr/bin/env bash
    set -e
    for f in a b; do
      rm "$f"
    done

other:
    #!/usr/bin/env python3
    print(1)

tool:
    {{version}} run
"""


@pytest.fixture
def check(tmp_path):
    (tmp_path / "app" / "src").mkdir(parents=True)
    (tmp_path / "app" / "package.json").write_text(json.dumps({"name": "x", "scripts": SCRIPTS}))
    (tmp_path / "app" / "justfile").write_text(JUSTFILE)
    (tmp_path / "empty").mkdir()

    def run(line: str) -> Analysis:
        return analyse(line, cwd=str(tmp_path / "app"))

    return run


@pytest.mark.req("SH-3", "SH-5")
@pytest.mark.parametrize(
    "line",
    [
        "npm run clean",
        "npm run-script clean",
        "npm run --silent clean",
        "npm run release",
        'npm run "$(cat x)"',
        "npm test",
        "npm t",
        "npm install",
        "npm ci",
        "npm run wrap -- x; npm run clean -- y",
        "yarn clean",
        "yarn run clean",
        "yarn",
        "pnpm clean",
        "pnpm run clean",
        "bun run clean",
        "cd src && npm run clean",
        "cd .. && npm --prefix app run clean",
        "cd .. && yarn --cwd app clean",
        "env CI=1 npm run clean",
        "just wipe",
        "just tidy y",
        "just script",
        "just -f justfile wipe",
        "just default wipe",
        "cd src && just wipe",
    ],
)
def test_a_dangerous_script_needs_approval(check, line):
    found = check(line)
    assert (found.verdict, found.no_danger_found) == ("confirm", False)


@pytest.mark.req("SH-5")
@pytest.mark.parametrize(
    "line",
    [
        "npm run build",
        "npm run own",
        "npm start",
        "npm run loop",
        "npm run",
        "npm run missing",
        "npm run wrap -- --fix",
        "npm view x",
        "npm ls",
        "yarn build",
        "pnpm build",
        "yarn why x",
        "cd ../empty && npm test",
        "just",
        "just build",
        "just --list",
        "just -n wipe",
    ],
)
def test_a_harmless_script_is_ordinary(check, line):
    assert check(line).verdict == "ordinary"


@pytest.mark.req("SH-5")
@pytest.mark.parametrize("line", ["just other", "just tool", "npm run build --workspace=lib"])
def test_a_script_that_cannot_be_read_is_an_unknown_program(check, line):
    found = check(line)
    assert (found.verdict, found.no_danger_found) == ("confirm", True)


def test_a_script_that_the_command_line_writes_is_analysed(check):
    line = """echo '{"scripts": {"x": "rm a"}}' > package.json; npm run x"""
    assert not check(line).no_danger_found
