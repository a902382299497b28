"""Real ACP agents from npm with a local model server (slow tests).

`OSTLER_INTEROP` names the folder in which npm installs them, each in its own folder with its `node_modules`, and `node`
itself. Without it, these tests are skipped.
"""

import json
import os
import signal
import subprocess
import sys

import pytest
from installer import installed_package
from loopback_model import ANSWER, DONE, LoopbackModel

pytestmark = [pytest.mark.slow, pytest.mark.req("AC-7"), pytest.mark.timeout(600)]

PACKAGES = {
    "opencode": ("opencode-ai@1.18.33", "opencode", ["acp"]),
    "gemini": ("@google/gemini-cli@0.61.0", "gemini", ["--acp"]),
    "claude": ("@zed-industries/claude-code-acp@0.16.2", "claude-code-acp", []),
    "claude-new": ("@agentclientprotocol/claude-agent-acp@0.99.1", "claude-agent-acp", []),
    "codex": ("@agentclientprotocol/codex-acp@2.6.0", "codex-acp", []),
    "qwen": ("@qwen-code/qwen-code@0.24.4", "qwen", ["--acp"]),
}
CAN_RESUME = ("opencode", "claude", "claude-new", "codex", "qwen")
OWN_SHELL = ("codex",)
HAS_WRITE_FILE = ("gemini", "qwen")


def environment(name, url, home):
    """Return the environment that makes an agent use the model server."""
    usual = {"HOME": str(home), "NO_COLOR": "1", "DISABLE_TELEMETRY": "1", "IS_SANDBOX": "1"}
    if name == "opencode":
        options = {"baseURL": f"{url}/v1", "apiKey": "x"}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": options,
            "models": {"mock-model": {"tool_call": True}},
        }
        config = {
            "model": "mock/mock-model",
            "small_model": "mock/mock-model",
            "autoupdate": False,
            "permission": {"bash": "ask"},
            "provider": {"mock": provider},
        }
        folders = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("DATA", "CONFIG", "STATE", "CACHE")}
        return {**usual, **folders, "OPENCODE_CONFIG_CONTENT": json.dumps(config)}
    if name == "gemini":
        (home / ".gemini").mkdir(exist_ok=True)
        selected = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        (home / ".gemini" / "settings.json").write_text(json.dumps(selected))
        return {**usual, "GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_MODEL": "gemini-2.5-flash"}
    if name == "codex":
        provider = f'[model_providers.mock]\nname = "mock"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
        (home / "config.toml").write_text(f'model = "mock-model"\nmodel_provider = "mock"\n{provider}')
        return {**usual, "CODEX_HOME": str(home), "OPENAI_API_KEY": "x"}
    if name.startswith("claude"):
        return {**usual, "ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": url}
    return {**usual, "OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "mock-model"}


def installed(name):
    """Return the agent's program, and the node to run it with."""
    package, program, _ = PACKAGES[name]
    return installed_package(name, package, f".bin/{program}"), installed_package("node", "node@24", "node/bin/node")


class RealAgent:
    """One agent with its settings, its home and a model."""

    def __init__(self, name, folder, url):
        self.name = name
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        (self.workspace / "README.md").write_text("a repository\n")
        home = folder / "agent-home"
        home.mkdir()
        file, node = installed(name)
        env = {**environment(name, url, home), "PATH": f"{node.parent}:{os.environ['PATH']}"}
        native = name == "opencode"
        command, args = (str(file), []) if native else (str(node), [str(file)])
        self.settings = folder / "settings.json"
        listed = {name: {"command": command, "args": [*args, *PACKAGES[name][2]], "env": env}}
        self.settings.write_text(json.dumps({"agent_servers": listed}))
        self.env = {**os.environ, "HOME": str(folder)}

    def start(self, *args):
        command = [sys.executable, "-P", "-m", "ostler", "acp", "run", "--settings", str(self.settings), *args]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.workspace, env=self.env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
        )

    def __call__(self, *args):
        with self.start("--timeout", "120", *args) as process:
            stdout, stderr = process.communicate(timeout=180)
        return stdout, stderr, process.returncode


@pytest.fixture(params=PACKAGES)
def real(request, tmp_path):
    with LoopbackModel() as model:
        yield RealAgent(request.param, tmp_path, model.url)


def test_prompt_is_answered_and_frames_are_valid(real):
    stdout, stderr, code = real("--check", "-o", "simple", "Say hello")
    assert (stdout.strip().endswith(ANSWER), code) == (True, 0), stdout + stderr


def test_capabilities_modes_and_commands_are_listed(real):
    stdout, stderr, code = real("--list-caps", "--list-modes", "--list-commands")
    assert code == 0, stderr
    assert "- loadSession" in stdout
    assert "Current: " in stdout
    assert "\n- /" in stdout


def test_command_is_run_or_denied(real):
    if real.name in OWN_SHELL:
        pytest.skip("its shell tool is different")
    stdout, stderr, code = real("--write", "RUN: echo from-the-shell > new.txt")
    assert (code, DONE in stdout) == (0, True), stdout + stderr
    new_file = real.workspace / "new.txt"
    allowed = "[permission] auto-allow" in stdout
    assert new_file.exists() == allowed or "[permission]" not in stdout
    stdout, stderr, code = real("--fail-on-deny", "RUN: rm -rf README.md")
    assert (real.workspace / "README.md").exists() or "[permission]" not in stdout, stdout
    assert code in (0, 4)


def test_file_is_created(real):
    if real.name not in HAS_WRITE_FILE:
        pytest.skip("its tool for writing files is different")
    stdout, stderr, code = real("--write", f"WRITE: {real.workspace}/made.txt")
    assert (code, DONE in stdout) == (0, True), stdout + stderr
    assert (real.workspace / "made.txt").read_text() == "made\n"


def test_interrupt_cancels_and_stops_all_processes(real):
    with real.start("-o", "jsonl", "HANG now") as process:
        for line in process.stdout:
            if '"session/prompt"' in line:
                break
        for line in process.stdout:
            if '"agent_message_chunk"' in line or '"available_commands_update"' in line:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    running = subprocess.run(
        ["pgrep", "-f", str(real.settings.parent)], capture_output=True, text=True, check=False
    ).stdout
    assert running == ""


def test_session_is_resumed(real):
    if real.name not in CAN_RESUME:
        pytest.skip("it does not store sessions of temporary folders")
    assert real("--save-session", "id.txt", "Say hello")[2] == 0
    session = (real.workspace / "id.txt").read_text().strip()
    stdout, stderr, code = real("-o", "simple", "--resume", session, "Say hello again")
    assert (stdout.strip().endswith(ANSWER), code) == (True, 0), stdout + stderr
