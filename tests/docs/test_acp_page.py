"""Test docs/acp.md: its commands run, with the echo agent instead of real ones, and its settings are valid."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "acp.md"
ECHO = ["-m", "ostler.testing.echo_agent", "--config"]


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.timeout(200)
@pytest.mark.parametrize("number", range(len(blocks("sh"))))
def test_commands_of_a_block_run(ostler, number):
    """The commands of one block run in order, in one workspace."""
    store = str(ostler.home / "store")
    entry = {"command": sys.executable, "args": [*ECHO, "--store", store]}
    (ostler.home / ".ostler").mkdir()
    (ostler.home / ".ostler" / "acp.json").write_text(json.dumps({"agent_servers": {"gemini": entry}}))
    program = f"{shlex.quote(sys.executable)} -P -m ostler"
    script = re.sub(r"\bostler (?=acp|run)", f"{program} ", blocks("sh")[number])
    script = re.sub(r"\bacpcli\b", f"{program} acp run", script)
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=ostler.workspace,
        env=ostler.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_settings_on_the_page_are_valid(tmp_path, monkeypatch):
    from ostler.knowledge.acp_agents import find_agent
    from ostler.settings.load import load

    file = tmp_path / "settings.json"
    file.write_text(blocks("json")[0])
    found = find_agent("claude", str(file), tmp_path, load(tmp_path, {}))
    assert (found.entry.command, found.mcp_servers[0].name) == ("claude-agent-acp", "files")
