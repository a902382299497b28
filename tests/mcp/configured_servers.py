"""Configures servers of `fake_mcp_server.py` for tests of the command line."""

import json
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("fake_mcp_server.py")


def command(*arguments):
    return [sys.executable, "-S", "-E", str(SCRIPT), *map(str, arguments)]


def configure(ostler, servers, **more):
    folder = ostler.home / ".ostler"
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"mcp": servers, **more}))


def server(ostler, name, *arguments, **more):
    folder = ostler.home / name
    folder.mkdir(exist_ok=True)
    return {"command": command("--name", name, "--folder", folder, *arguments), **more}


def call(ostler, tool, arguments="{}", *flags):
    done = ostler("tool", "call", *flags, tool, arguments)
    return json.loads(done.stdout)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def pids(ostler, name):
    file = ostler.home / name / "pids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []
