"""MCP servers of other people, from npm and PyPI, used by `ostler tool call` (slow tests)."""

import json
import os
import pty
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from installer import installed_package, root_folder
from tests.conftest import at

from ostler.testing.model_server import calls
from ostler.testing.model_server import text as reply_text

HERE = Path(__file__).parent
pytestmark = [pytest.mark.slow, pytest.mark.req("MC-1", "MC-6"), pytest.mark.timeout(600)]


def python_server(name):
    """Return the command of a server that pip installs into its own environment."""
    home = root_folder() / "mcp"
    if not (home / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, timeout=120)
    if not (home / "bin" / name).exists():
        command = [str(home / "bin" / "python"), "-m", "pip", "install", "-q", name]
        if subprocess.run(command, capture_output=True, check=False, timeout=300).returncode:
            pytest.skip(f"pip cannot install {name}")
    return [str(home / "bin" / name)]


def node_server(name):
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    file = installed_package(name, f"@modelcontextprotocol/{name}", f"@modelcontextprotocol/{name}/dist/index.js")
    return ["node", str(file)]


CASES = {
    "time": (lambda: python_server("mcp-server-time"), "get_current_time", {"timezone": "UTC"}, '"timezone": "UTC"'),
    "git": (lambda: [*python_server("mcp-server-git")], "git_status", {"repo_path": "."}, "On branch"),
    "everything": (lambda: node_server("server-everything"), "echo", {"message": "hi"}, "Echo: hi"),
    "filesystem": (lambda: [*node_server("server-filesystem"), "."], "list_directory", {"path": "."}, "[FILE] a.txt"),
    "memory": (lambda: node_server("server-memory"), "search_nodes", {"query": "x"}, '"entities"'),
}


@pytest.mark.parametrize("name", CASES)
def test_server_is_used(name, tmp_path):
    make_command, tool, arguments, expected = CASES[name]
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    (home / ".ostler").mkdir(parents=True)
    (work / "a.txt").touch()
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    entry = {"command": make_command(), "cwd": "{workspace}", "environment": {"MEMORY_FILE_PATH": str(home / "m")}}
    (home / ".ostler" / "config.json").write_text(json.dumps({"mcp": {"peer": entry}}))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "ostler", "tool", "call", "--allow", "*", f"peer_{tool}", json.dumps(arguments)],
        cwd=work,
        env={**os.environ, "HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    result = json.loads(done.stdout)
    assert result["status"] == "ok", result
    assert expected in result["for_model"]


SDK_CLIENT = """
import asyncio, json, sys
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import ElicitResult

async def main():
    python, mode, can_ask = sys.argv[1], sys.argv[2], sys.argv[3] == "asks"
    questions, progress = [], []

    async def answer(context, params):
        questions.append(params.message)
        return ElicitResult(action="accept", content={"answer": "once"})

    async def report(value, total, message):
        progress.append(value)

    server = StdioServerParameters(command=python, args=["-P", "-m", "ostler", "mcp", "serve", "--allow", "bash"])
    options = {"elicitation_callback": answer} if can_ask else {}
    async with Client(stdio_client(server), mode=mode, **options) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        read = await client.call_tool("read", {"path": "a.txt"})
        written = await client.call_tool("write", {"path": "b.txt", "content": "x"})
        command = {"command": "for n in 1 2 3; do echo line $n; sleep 0.3; done"}
        await client.call_tool("bash", command, progress_callback=report)
        print(json.dumps({
            "names": names, "read": read.content[0].text, "refused": written.is_error,
            "text": written.content[0].text, "questions": questions, "progress": progress,
        }))

asyncio.run(main())
"""


def run_sdk_client(folder, mode, asks):
    python_server("mcp-server-time")  # installs the SDK
    (folder / "a.txt").write_text("hello")
    done = subprocess.run(
        [str(root_folder() / "mcp" / "bin" / "python"), "-c", SDK_CLIENT, sys.executable, mode, asks],
        cwd=folder,
        env={**os.environ, "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.req("MC-5")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
class TestClientOfTheOfficialSdk:
    """The client of the Python SDK, in both eras."""

    def test_is_refused_what_needs_approval_if_it_cannot_ask(self, tmp_path, mode):
        result = run_sdk_client(tmp_path, mode, "cannot ask")
        assert "read" in result["names"]
        assert "hello" in result["read"]
        assert result["refused"]
        assert "needs approval" in result["text"]
        assert not (tmp_path / "b.txt").exists()

    def test_is_asked_and_gets_progress(self, tmp_path, mode):
        result = run_sdk_client(tmp_path, mode, "asks")
        assert not result["refused"], result["text"]
        assert "write b.txt" in result["questions"][0]
        assert (tmp_path / "b.txt").read_text() == "x"
        assert result["progress"] == sorted(result["progress"]) != []


@pytest.fixture
def protected_server():
    """A server of the SDK that needs a login; the fixture is its URL."""
    python_server("mcp-server-time")  # installs the SDK
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(root_folder() / "mcp" / "bin" / "python"), str(HERE / "sdk_oauth_server.py"), str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        for line in server.stderr:
            if "running on" in line:
                break
        drain = threading.Thread(target=server.stderr.read)
        drain.start()
        yield f"http://127.0.0.1:{port}/mcp"
        server.kill()
        drain.join()


def test_login_at_a_server_of_the_official_sdk(protected_server, tmp_path):
    """The SDK is also the authorization server: registration, PKCE, resource, refresh and revocation."""
    home, browser = tmp_path / "home", tmp_path / "browser"
    (home / ".ostler").mkdir(parents=True)
    (home / ".ostler" / "config.json").write_text(json.dumps({"mcp": {"sdk": {"url": protected_server}}}))
    browser.write_text(
        f"#!{sys.executable}\nimport sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20).read()\n"
    )
    browser.chmod(0o700)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "BROWSER": str(browser)}

    def run(*arguments, **options):
        command = [sys.executable, "-P", "-m", "ostler", *arguments]
        options = {"stdin": subprocess.DEVNULL, "capture_output": True, **options}
        return subprocess.run(command, cwd=tmp_path, env=env, text=True, check=False, timeout=120, **options)

    assert "needs login: ostler mcp login sdk" in run("mcp", "test", "sdk").stdout
    controller, terminal = pty.openpty()
    try:
        logged_in = run("mcp", "login", "sdk", stdin=terminal)
    finally:
        os.close(terminal)
        os.close(controller)
    assert "logged in to sdk" in logged_in.stdout, logged_in.stderr
    for number in range(6):  # tokens expire meanwhile
        done = run("tool", "call", "--allow", "sdk_*", "sdk_double", json.dumps({"number": number}))
        assert json.loads(done.stdout)["for_model"] == str(2 * number)
    assert "logged out" in run("mcp", "logout", "sdk").stdout
    assert "needs login" in run("mcp", "test", "sdk").stdout


@pytest.mark.req("MC-4")
class TestOffersOfTheReferenceServer:
    """Resources, prompts and questions of `server-everything`."""

    @pytest.fixture
    def peer(self, ostler):
        (ostler.home / ".ostler").mkdir()
        config = {"mcp": {"peer": {"command": node_server("server-everything")}}, "permission": {"peer_*": "allow"}}
        (ostler.home / ".ostler" / "config.json").write_text(json.dumps(config))
        assert ostler("mcp", "test", "peer").code == 0
        return ostler

    def prompt(self, peer, models, text):
        with models.playing(reply_text("ok")) as served:
            assert peer("run", *at(served), text).code == 0
            return str([message["content"] for message in served.requests[0].json["messages"][1:]])

    def test_resource_is_attached(self, peer, models):
        assert "Resource 7: This is a plaintext" in self.prompt(
            peer, models, "see @peer:demo://resource/dynamic/text/7"
        )

    def test_prompt_is_a_command(self, peer, models):
        assert "This is a simple prompt" in self.prompt(peer, models, "/peer:simple-prompt")
        assert "weather in Rome, Lazio" in self.prompt(peer, models, "/peer:args-prompt city=Rome state=Lazio")

    def test_question_is_asked_in_the_chat(self, peer, models):
        """The server has this tool only for clients that can ask."""
        call = calls([("peer_trigger-elicitation-request", {})])
        with models.playing(call, reply_text("ok")) as served:
            peer("chat", *at(served), stdin="/mcp restart peer\ngo\nAda\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n")
            answer = str(served.requests[-1].json["messages"][-1]["content"])
        assert "Ada" in answer
