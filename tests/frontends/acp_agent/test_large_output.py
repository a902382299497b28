"""`ostler acp` in its own process, with an editor that ignores size limits."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from ostler.testing.model_server import ScriptedModelServer, calls, text
from ostler.wire.jsonrpc import JsonRpcPeer

OUTPUT = "a line of output that nobody reads\n" * (40_000_000 // 35)


class Editor:
    """Runs no command, but returns 40 MB of output for each."""

    async def handle_request(self, method, params):
        match method:
            case "session/request_permission":
                return {"outcome": {"outcome": "selected", "optionId": "once"}}
            case "terminal/create":
                return {"terminalId": "t"}
            case "terminal/wait_for_exit":
                return {"exitCode": 0}
            case "terminal/output":
                return {"output": OUTPUT, "truncated": False}
            case _:
                return {}

    def handle_notification(self, method, params):
        pass


@pytest.mark.req("SH-2", "AC-6")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
async def test_terminal_that_ignores_the_output_limit_costs_little_memory(tmp_path):
    (tmp_path / "workspace").mkdir()
    async with ScriptedModelServer(calls([("bash", {"command": "make it", "write": True})]), text("Made.")) as server:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "ostler", "acp", "--base-url", server.base_url, "--model", "scripted"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},
        )
        peer = JsonRpcPeer(process.stdin.write, Editor())
        reading = asyncio.create_task(feed(process.stdout, peer))
        try:
            await peer.request("initialize", {"protocolVersion": 1, "clientCapabilities": {"terminal": True}})
            opened = await peer.request("session/new", {"cwd": str(tmp_path / "workspace"), "mcpServers": []})
            before = peak_memory(process.pid)
            prompt = [{"type": "text", "text": "go"}]
            answer = await peer.request("session/prompt", {"sessionId": opened["sessionId"], "prompt": prompt})
            assert answer["stopReason"] == "end_turn"
            assert peak_memory(process.pid) - before < 100_000_000
            assert "nobody reads" in str(server.requests[-1].json["messages"][-1])
        finally:
            process.stdin.close()
            await process.wait()
            await reading
            await peer.aclose()


async def feed(stream, peer):
    while data := await stream.read(65_536):
        peer.feed(data)


def peak_memory(process_id):
    status = Path(f"/proc/{process_id}/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
