"""Test the docs: commands run, links and anchors exist, config examples are valid, tables are up to date."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Outcome

from ostler.settings.config_report import check_files
from ostler.testing.model_server import text
from ostler.testing.zero_server import ScriptedZeroServer, zero_reply

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md")])
NOT_RUN = ("./run test", "./run check", "./run bench", "uv pip compile")  # run by CI; uv is not a dependency


QUOTED = re.compile(r"'[^']*'|\"[^\"$`]*\"")
NEEDS_BASH = re.compile(r"[|&;<>$`*?~]|^(?!\./run |ostler )")


def commands():
    """Yield indented lines that call Ostler, without their comments."""
    for page in PAGES:
        for line in page.read_text().splitlines():
            if re.match(r"    (\./run|ostler|[a-z]+ .*\| (\./run|ostler))\b", line):
                yield pytest.param(line.split("  #")[0].strip(), id=f"{page.name}: {line.strip()[:60]}")


@pytest.mark.parametrize("command", list(commands()))
def test_command_in_the_docs_runs(ostler, models, command):
    if command.startswith(NOT_RUN):
        assert (ROOT / "tasks" / f"{command.split()[1]}.py").exists()
        return
    calls_model = bool(re.search(r"(\./run|ostler) run\b(?! --print-schema)", command))
    subprocess.run(["git", "init", "-q"], cwd=ostler.workspace, check=True)
    with models.playing(*([text("ok")] if calls_model else [])) as server:
        variables = {"OSTLER_BASE_URL": server.base_url, "OSTLER_MODEL": "scripted"} if " demo" not in command else {}
        zero = ScriptedZeroServer([zero_reply("ok")] if " zero run" in command else [])
        models.wait(zero.__aenter__())
        variables |= {"AGENTZERO_API_URL": zero.api_url} if " zero" in command else {}
        done = (
            _run_in_bash(ostler, command, variables)
            if NEEDS_BASH.search(QUOTED.sub("", command))
            else _run_directly(ostler, command, variables)
        )
        models.wait(zero.__aexit__(None, None, None))
    expected = {0, 1} if " doctor" in command else {0}  # `doctor` exits with 1 if something is missing
    assert done.code in expected and "Traceback" not in done.stderr, done.stdout + done.stderr


def _run_directly(ostler, command, variables):
    """Run a command that needs no shell; the `ostler` fixture starts faster than a new interpreter."""
    return ostler(*shlex.split(command)[1:], env=variables)


def _run_in_bash(ostler, command, variables):
    program = f"{shlex.quote(sys.executable)} -P -m ostler"
    line = re.sub(r"(^|\| |&& )(\./run|ostler)\b", rf"\1{program}", command)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=ostler.workspace,
        env=ostler.environment(variables),
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
def test_link_target_exists(page, target):
    assert (page.parent / target).exists()


def examples():
    for page in PAGES:
        for number, block in enumerate(re.findall(r"```jsonc\n(.*?)```", page.read_text(), re.DOTALL)):
            yield pytest.param(block, id=f"{page.name}: example {number + 1}")


@pytest.mark.req("DX-4")
@pytest.mark.parametrize("block", list(examples()))
def test_config_example_is_valid(block, tmp_path):
    file = tmp_path / "config.jsonc"
    file.write_text(block)
    assert check_files([file]) == []


def test_picture_shows_the_output_of_the_demo():
    from tasks.pictures import PICTURE, demo_picture, words

    assert words(PICTURE.read_text()) == words(demo_picture())


def test_pictures_show_the_full_screen_client():
    from tasks.pictures import PICTURES, full_screen_pictures, words

    for name, picture in full_screen_pictures():
        assert words((PICTURES / f"{name}.svg").read_text()) == words(picture), (
            f"run `python -m tasks.pictures`: {name}"
        )


def test_exit_codes_in_the_docs_match_the_code():
    from ostler.frontends.headless.summary import EXIT_CODES, EXIT_DENIED

    documented = {
        int(code) for code in re.findall(r"^\| (\d+) \|", (ROOT / "docs/headless.md").read_text(), re.MULTILINE)
    }
    assert documented == {*EXIT_CODES.values(), EXIT_DENIED, 2}


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def anchor_links():
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text()):
            if "://" not in target:
                yield pytest.param(
                    page.parent / target if target else page, anchor, id=f"{page.name}: {target}#{anchor}"
                )


@pytest.mark.parametrize(("page", "anchor"), list(anchor_links()))
def test_anchor_exists(page, anchor):
    assert anchor in anchors(page)


def test_config_tables_are_up_to_date():
    from tasks.config_table import PAGE, update_page

    page = PAGE.read_text("utf-8")
    assert update_page(page) == page, "docs/configure.md is out of date: run .venv/bin/python -m tasks.config_table"


def test_configuration_page_lists_all_known_providers():
    from ostler.settings.vendors import VENDORS

    paragraph = re.search(r"Known providers: (.*?)\n\n", (ROOT / "docs" / "configure.md").read_text(), re.DOTALL)[1]
    assert set(re.findall(r"`([\w-]+)`", paragraph)) == set(VENDORS)
