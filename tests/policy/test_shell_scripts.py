"""Shell scripts of the workspace are analysed like the command line itself."""

import subprocess
import sys

import pytest

from ostler.policy.shell import Analysis, analyse


@pytest.fixture
def check(tmp_path):
    def add(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(line: str) -> Analysis:
        return analyse(line, cwd=str(tmp_path))

    add("f.txt", "precious\n")
    add("y.sh", "rm f.txt\n")
    add("sub/deep.sh", "#!/bin/bash\nset -e\nsh ../y.sh\n")
    add("calls.sh", "#!/usr/bin/env bash\n. ./y.sh\n")
    add("args.sh", 'rm "$1"\n')
    add("sets.sh", "x=$(cat f.txt)\n")
    add("loop.sh", "sh loop.sh\n")
    add("fine.sh", "#!/bin/sh\necho building\nmkdir -p out\nls out\n")
    add("stranger.sh", "acme-tool deploy\n")
    add("binary.sh", "\0\0")
    add("long.sh", "echo hi\n" * 30000)
    add("configure", "#! /bin/sh\n" + "echo hi\n" * 30000)
    add("binary", "\x7fELF\0" + "x" * 200000)
    add("broken.sh", "echo 'open\n")
    add("tool.py", "#!/usr/bin/env python3\nprint(1)\n")
    return run


@pytest.mark.req("SH-3", "SH-5")
@pytest.mark.parametrize(
    "line",
    [
        "sh y.sh",
        "bash y.sh",
        "bash < y.sh",
        "sh -s < y.sh",
        "sh /dev/stdin < y.sh",
        ". ./y.sh",
        "source y.sh",
        "./y.sh",
        "bash -e y.sh x",
        "env sh y.sh",
        "timeout 5 bash y.sh",
        "cd sub && bash deep.sh",
        "sh calls.sh",
        "./calls.sh",
        "bash args.sh f.txt",
        "bash y*.sh",
        "for s in y*.sh; do sh $s; done",
        "bash $(cat f.txt)",
        ". ./sets.sh; echo $((x))",
        "bash binary.sh",
        "bash long.sh",
        "bash broken.sh",
        "xargs sh y.sh < f.txt",
        "bash -c 'sh y.sh'",
        "echo $(sh y.sh)",
    ],
)
def test_a_dangerous_script_needs_approval(check, line):
    found = check(line)
    assert (found.verdict, found.no_danger_found) == ("confirm", False)


@pytest.mark.req("SH-5")
@pytest.mark.parametrize(
    "line",
    [
        "sh fine.sh",
        "./fine.sh",
        ". ./fine.sh",
        "bash < fine.sh",
        "sh loop.sh",
        "bash missing.sh",
        "./tool.py",
        "cat y.sh",
    ],
)
def test_a_harmless_script_is_ordinary(check, line):
    assert check(line).verdict == "ordinary"


@pytest.mark.req("SH-5")
def test_a_script_with_an_unknown_program_is_an_unknown_program(check):
    found = check("sh stranger.sh")
    assert (found.verdict, found.no_danger_found) == ("confirm", True)
    assert [command.text for command in found.commands] == ["sh stranger.sh"]
    assert found.commands[0].unknown_reason


@pytest.mark.req("SH-5")
def test_a_program_that_is_a_long_shell_script_is_an_unknown_program(check, tmp_path):
    for name in ("configure", "binary"):
        (tmp_path / name).chmod(0o755)
    found = check("./configure --prefix=out")
    assert (found.verdict, found.no_danger_found) == ("confirm", True)
    assert check("./binary").verdict == "ordinary"


@pytest.mark.req("SH-7")
def test_blacklist_patterns_apply_to_the_commands_of_a_script(check, tmp_path):
    assert analyse("sh fine.sh", cwd=str(tmp_path), blacklist_patterns=["mkdir"]).verdict == "deny"


def test_activating_a_virtual_environment_is_ordinary(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / ".venv")], check=True)
    for line in ("source .venv/bin/activate", ". .venv/bin/activate && pytest"):
        assert analyse(line, cwd=str(tmp_path)).verdict == "ordinary"
