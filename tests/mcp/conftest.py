"""Servers for tests: real processes of `fake_mcp_server.py`."""

import os
import sys
from pathlib import Path

import pytest

from ostler.mcp.server import McpServer
from ostler.mcp.server_entry import ServerEntry
from ostler.mcp.stdio_connection import connect_stdio
from ostler.mcp.tool_list_cache import ToolListCache

SCRIPT = Path(__file__).with_name("fake_mcp_server.py")


def fake_command(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-E", str(SCRIPT), *arguments)


class Servers:
    """Makes servers and stops all of them at the end of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = ToolListCache(folder / "cache")
        self.stderr = b""
        self.made: list[McpServer] = []

    def entry(self, *arguments: str, name: str = "fake", **changes) -> ServerEntry:
        place = self.folder / name
        place.mkdir(exist_ok=True)
        command = fake_command("--folder", str(place), "--name", name, *arguments)
        defaults = {"command": command, "env": {"PATH": os.environ["PATH"]}, "cwd": str(self.folder)}
        return ServerEntry(name, **{**defaults, "start_timeout": 20.0, "call_timeout": 20.0, **changes})

    def make(self, *arguments: str, interactive: bool = True, **changes) -> McpServer:
        entry = self.entry(*arguments, **changes)

        def log(data: bytes) -> None:
            self.stderr = (self.stderr + data)[-100_000:]

        async def connect(handler):
            return await connect_stdio(entry, handler, log)

        server = McpServer(entry, connect, self.cache, "1", interactive=interactive)
        self.made.append(server)
        return server

    def pids(self, name: str = "fake") -> list[int]:
        file = self.folder / name / "pids"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def frames(self, name: str = "fake") -> str:
        return (self.folder / name / "frames.jsonl").read_text()


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.fixture
async def servers(tmp_path):
    made = Servers(tmp_path)
    yield made
    for server in made.made:
        await server.aclose()
    assert not any(is_running(pid) for server in made.made for pid in made.pids(server.entry.name))
