"""`ostler zero run` with the settings of a user, against a server with the connector."""

import asyncio
import json
import os
import sys

import pytest
from tests.backends.agent_zero.connector_double import ConnectorDouble


@pytest.mark.req("AZ-7", "SH-7")
@pytest.mark.parametrize("allow_shell", [False, True])
async def test_commands_of_the_connector_need_allow_shell_in_every_profile(allow_shell, tmp_path):
    home, folder = tmp_path / "home", tmp_path / "project"
    folder.mkdir()
    (home / ".ostler").mkdir(parents=True)
    security = {"profile": "god_mode", **({"allow_shell": True} if allow_shell else {})}
    (home / ".ostler" / "config.json").write_text(json.dumps({"security": security}))
    seen = []

    async def turn(server):
        for number, runtime in enumerate(("terminal", "python", "nodejs")):
            code = "touch ran" if runtime == "terminal" else "open('ran', 'w')"
            operation = {"runtime": runtime, "session": number, "code": code}
            seen.append(await server.operation("connector_exec_op", f"op{number}", **operation))
        return "done"

    async with ConnectorDouble(turn) as server:
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "AGENTZERO_API_URL": server.url}
        command = [sys.executable, "-m", "ostler", "zero", "run", "--yolo", "--cwd", str(folder), "go"]
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        _, errors = await process.communicate()
    assert (folder / "ran").exists() is allow_shell, (seen, errors)
    assert len(seen) == 3
    assert any(result["ok"] for result in seen) is allow_shell, seen
    assert server.hellos[0]["remote_exec"]["enabled"] is allow_shell
    assert (b"allow_shell" in errors) is allow_shell  # the warning
