"""`ostler acp` with clients of the official SDKs and with `acpx` (slow tests, if they can be installed).

They are installed in the folder that `OSTLER_INTEROP` names, or in the user's cache.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.compliant_model import compliant_model

from ostler.wire.acp_validator import AcpValidator

pytestmark = [pytest.mark.slow, pytest.mark.req("AC-6"), pytest.mark.timeout(600)]

HERE = Path(__file__).parent
NPM = ("@agentclientprotocol/sdk@2", "acpx@0.19", "node@24")
WRITE = "Write the word hello into the file x.txt in this folder."


def root():
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ostler-interop"
    return Path(os.environ.get("OSTLER_INTEROP") or cache)


def install(command, what):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    if done.returncode:
        pytest.skip(f"cannot install {what}: {done.stderr[-300:]}")


@pytest.fixture(scope="module")
def node():
    """The `node_modules` folder with the clients."""
    folder = root() / "editors"
    if not (folder / "node_modules" / "acpx").exists():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        install(["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", *NPM], "the TypeScript SDK")
    return folder / "node_modules"


@pytest.fixture(scope="module")
def sdk_python():
    """A Python interpreter with the official SDK."""
    folder = root() / "python-sdk"
    if not (folder / "bin" / "python").exists():
        install([sys.executable, "-m", "venv", str(folder)], "an environment")
        install([str(folder / "bin" / "pip"), "install", "agent-client-protocol==0.12.*"], "the Python SDK")
    return folder / "bin" / "python"


@pytest.fixture
def ours(tmp_path):
    """The command of our agent and its home, with a model that follows the prompts."""
    home = tmp_path / "home"
    home.mkdir()
    with compliant_model() as url:
        yield [sys.executable, "-P", "-m", "ostler", "acp", "--base-url", url, "--model", "compliant"], home


def run(command, home, cwd, **env):
    done = subprocess.run(
        [*map(str, command)],
        env={**os.environ, "HOME": str(home), **env},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(seen, folder):
    assert (seen["first"]["stopReason"], seen["second"]["stopReason"]) == ("end_turn", "cancelled")
    assert (seen["asked"], seen["listed"], seen["code"]) == (1, 1, 0)
    assert {"tool_call", "tool_call_update", "agent_message_chunk"} <= set(seen["updates"])
    assert (folder / "x.txt").read_text() == "hello\n"


def test_typescript_sdk(node, ours, tmp_path):
    command, home = ours
    script = node.parent / "editor_client.mjs"  # next to its modules, where node looks for them
    script.write_text((HERE / "editor_client.mjs").read_text())
    folder = tmp_path / "workspace"
    folder.mkdir()
    seen = json.loads(run([node / ".bin" / "node", script, folder, *command], home, folder))
    check(seen, folder)
    assert seen["written"] == 0  # the editor writes only files with unsaved text


def test_python_sdk(sdk_python, ours, tmp_path):
    command, home = ours
    folder = tmp_path / "workspace"
    folder.mkdir()
    check(json.loads(run([sdk_python, HERE / "editor_client.py", folder, *command], home, folder)), folder)


def acpx(node, *arguments):
    return [node / ".bin" / "node", node / ".bin" / "acpx", *arguments]


def test_acpx(node, ours, tmp_path):
    command, home = ours
    folder = tmp_path / "workspace"
    folder.mkdir()
    client = acpx(node, "--approve-all", "--format", "quiet", "--cwd", folder, "--agent", shlex.join(command))
    assert run([*client, "exec", WRITE], home, folder).strip() == "ready"
    assert (folder / "x.txt").read_text() == "hello\n"


def test_frames_recorded_by_acpx_match_the_schema(node, ours, tmp_path):
    command, home = ours
    folder = tmp_path / "workspace"
    folder.mkdir()
    client = acpx(node, "--approve-all", "--format", "json", "--cwd", folder, "--agent", shlex.join(command))
    checker, faults = AcpValidator(), []
    for line in run([*client, "exec", WRITE], home, folder).splitlines():
        frame = json.loads(line)
        from_agent = frame.get("method", "").startswith(("session/update", "session/request_permission", "fs/"))
        answer = "method" not in frame
        speaker = "agent" if from_agent or (answer and "stopReason" in str(frame.get("result"))) else "client"
        if from_agent or not answer:
            faults += checker.check_line(speaker, line.encode())
    assert faults == []
