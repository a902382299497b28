"""Files that a shell runs when it starts, and programs that run the scripts of a project, are scripts too."""

import pytest

FILES = {
    "f.txt": "precious\n",
    "y.sh": "rm f.txt\n",
    "ok.sh": "echo hi\n",
    "app/Makefile": "all:\n\techo hi\n",
    "app/package.json": '{"scripts": {"test": "jest"}}',
    "app/justfile": "test:\n    echo hi\n",
    "rc/package.json": '{"scripts": {"test": "jest"}}',
    "rc/.npmrc": "fund=false\nscript-shell = ../y.sh\n",
}


@pytest.mark.req("SH-3", "SH-5")
@pytest.mark.parametrize(
    "line",
    [
        "bash --rcfile y.sh -i",
        "bash -rcfile y.sh -i",
        "bash --init-file y.sh -i",
        "bash --init-file=y.sh",
        "bash --norc --rcfile ./y.sh",
        "bash --rcfile $(cat f.txt) -i",
        "ENV=y.sh sh -i",
        "ENV=y.sh dash",
        "env ENV=y.sh sh -i",
        "export ENV=y.sh; sh -i",
        "ENV=$(cat f.txt) sh -i",
        "HOME=. bash -l -c ls",
        "HOME=$PWD bash -lc ls",
        "HOME=. bash --login -c ls",
        "HOME=. bash -ic ls",
        "HOME=. bash",
        "HOME=. zsh -c ls",
        "env HOME=. bash -l",
        "export HOME=$PWD; bash -l ok.sh",
        "XDG_CONFIG_HOME=. fish -c ls",
        "fish -C 'rm f.txt'",
        "fish --init-command='rm f.txt'",
        "fish --command='rm f.txt'",
        "cd app && npm test --script-shell=../y.sh",
        "cd app && npm --script-shell ../y.sh test",
        "cd app && npm_config_script_shell=../y.sh npm test",
        "cd rc && npm test",
        "cd app && make SHELL=../y.sh",
        "cd app && just --shell ../y.sh test",
    ],
)
def test_a_dangerous_startup_file_needs_approval(check, line):
    found = check(line)
    assert (found.verdict, found.no_danger_found) == ("confirm", False)


@pytest.mark.req("SH-5")
@pytest.mark.parametrize(
    "line",
    [
        "bash --rcfile ok.sh -i",
        "bash --norc --noprofile -c ls",
        "bash -lc 'npm test'",
        "bash -ic ls",
        "bash --posix ok.sh",
        "bash -o pipefail -ec ls",
        "ENV=production sh ok.sh",
        "ENV=production npm test",
        "HOME=. bash ok.sh",
        "HOME=/nowhere pytest",
        "cd app && npm test --script-shell=bash",
        "cd app && make SHELL=/bin/bash",
    ],
)
def test_harmless_startup_files_are_ordinary(check, line):
    found = check(line)
    assert (found.verdict, found.reason) == ("ordinary", "")
