"""The commands of the page about servers run against a real server, with its address in place of the example's."""

import re
import shlex
from pathlib import Path

import pytest
from tests.serving import serving

from ostler.testing.model_server import text

PAGE = Path(__file__).parents[2] / "docs" / "connect.md"
COMMANDS = re.findall(r"^ostler run .*$", PAGE.read_text(), re.MULTILINE)


def test_page_has_commands():
    assert len(COMMANDS) == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_command_of_the_page_runs(ostler, models, command):
    with serving(ostler, models, replies=[text("ok")]) as server:
        token = ostler("serve", "token", "issue", "ada").stdout.strip()
        url = server.url
        stored = ostler("login", url, stdin=f"{token}\n")
        assert stored.code == 0, stored.stderr
        arguments = shlex.split(command.replace("https://server.example:8034", url))[1:]
        done = ostler(*arguments)
    assert done.code == 0, done.stderr
    assert "ok" in done.stdout
