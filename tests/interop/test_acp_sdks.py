"""Agents with the official SDKs, run by `ostler acp run` (slow tests, if npm and pip can install the SDKs)."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from installer import installed_package, root_folder

pytestmark = [pytest.mark.slow, pytest.mark.req("AC-2", "AC-7"), pytest.mark.timeout(600)]
HERE = Path(__file__).parent


def typescript(folder):
    """Copy the agent next to the SDK, where node looks for it, and return its command."""
    installed_package("ts", "@agentclientprotocol/sdk@2.4.0", "@agentclientprotocol/sdk/package.json")
    node = installed_package("node", "node@24", "node/bin/node")
    program = root_folder() / "ts" / "sdk_agent.mjs"
    shutil.copy(HERE / "sdk_agent.mjs", program)
    return [str(node), str(program)]


def python(folder):
    home = root_folder() / "pyenv"
    if not (home / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, timeout=120)
    command = [str(home / "bin" / "python"), "-m", "pip", "install", "-q", "agent-client-protocol==0.12.1"]
    if subprocess.run(command, capture_output=True, check=False, timeout=300).returncode:
        pytest.skip("pip cannot install the SDK")
    return [str(home / "bin" / "python"), str(HERE / "sdk_agent.py")]


@pytest.mark.parametrize("sdk", [typescript, python], ids=lambda sdk: sdk.__name__)
@pytest.mark.parametrize(("flags", "answer"), [([], "n"), (["--write"], "y")])
def test_agent_with_the_official_sdk(sdk, flags, answer, tmp_path):
    command, *args = sdk(tmp_path)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "README.md").write_text("a line\nanother\n")
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"agent_servers": {"sdk": {"command": command, "args": args}}}))
    run = [sys.executable, "-P", "-m", "ostler", "acp", "run", "--settings", str(settings), "-o", "simple", "--check"]
    done = subprocess.run(
        [*run, *flags, "--timeout", "60", "hello"],
        cwd=tmp_path / "work",
        env={**os.environ, "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.stdout, done.returncode) == (f"hello|a line|hi|{answer}\n", 0), done.stderr
