"""The docs are true: every command in them runs, every link leads somewhere, every example of settings is valid."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Outcome

from ostler.settings.config_report import check_files
from ostler.testing.model_server import text

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md")])
SELF = ("./run test", "./run check", "./run bench", "uv pip compile")  # the gate runs these, and uv is no dependency


QUOTED = re.compile(r"'[^']*'|\"[^\"$`]*\"")
NEEDS_BASH = re.compile(r"[|&;<>$`*?~]|^(?!\./run |ostler )")


def commands():
    """Indented or fenced lines that call Ostler, without their comments."""
    for page in PAGES:
        for line in page.read_text().splitlines():
            if re.match(r"    (\./run|ostler|[a-z]+ .*\| (\./run|ostler))\b", line):
                yield pytest.param(line.split("  #")[0].strip(), id=f"{page.name}: {line.strip()[:60]}")


@pytest.mark.parametrize("command", list(commands()))
def test_every_command_in_the_docs_runs(ostler, models, command):
    if command.startswith(SELF):
        assert (ROOT / "tasks" / f"{command.split()[1]}.py").exists()
        return
    asks = bool(re.search(r"(\./run|ostler) run\b(?! --print-schema)", command))
    subprocess.run(["git", "init", "-q"], cwd=ostler.workspace, check=True)
    with models.playing(*([text("ok")] if asks else [])) as server:
        told = {"OSTLER_BASE_URL": server.base_url, "OSTLER_MODEL": "scripted"} if " demo" not in command else {}
        done = (
            _by_bash(ostler, command, told)
            if NEEDS_BASH.search(QUOTED.sub("", command))
            else _warm(ostler, command, told)
        )
    fine = {0, 1} if " doctor" in command else {0}  # the doctor's 1 tells what the machine lacks
    assert done.code in fine and "Traceback" not in done.stderr, done.stdout + done.stderr


def _warm(ostler, command, told):
    """Only words: they need no shell, and the program need not be read anew."""
    return ostler(*shlex.split(command)[1:], env=told)


def _by_bash(ostler, command, told):
    program = f"{shlex.quote(sys.executable)} -P -m ostler"
    line = re.sub(r"(^|\| |&& )(\./run|ostler)\b", rf"\1{program}", command)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=ostler.workspace,
        env=ostler.environment(told),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    return Outcome(done.stdout, done.stderr, done.returncode)


def links():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            if "://" not in target:
                yield pytest.param(page, target, id=f"{page.name}: {target}")


@pytest.mark.parametrize(("page", "target"), list(links()))
def test_every_link_leads_somewhere(page, target):
    assert (page.parent / target).exists()


def examples():
    for page in PAGES:
        for number, block in enumerate(re.findall(r"```jsonc\n(.*?)```", page.read_text(), re.DOTALL)):
            yield pytest.param(block, id=f"{page.name}: example {number + 1}")


@pytest.mark.req("DX-4")
@pytest.mark.parametrize("block", list(examples()))
def test_every_example_of_settings_is_valid(block, tmp_path):
    file = tmp_path / "config.jsonc"
    file.write_text(block)
    assert check_files([file]) == []


def test_the_picture_shows_what_the_demo_prints():
    from tasks.pictures import PICTURE, demo_picture, words

    assert words(PICTURE.read_text()) == words(demo_picture())


def test_the_exit_codes_in_the_docs_are_the_ones_in_the_code():
    from ostler.frontends.headless.summary import EXIT_CODES, EXIT_DENIED

    told = {int(code) for code in re.findall(r"^\| (\d+) \|", (ROOT / "docs/use.md").read_text(), re.MULTILINE)}
    assert told == {*EXIT_CODES.values(), EXIT_DENIED, 2}
