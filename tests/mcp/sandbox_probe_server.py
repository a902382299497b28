"""An MCP server for tests of the sandbox: its tool `probe` reads, writes, connects or starts a process."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path


def probe(arguments):
    match arguments["action"]:
        case "read":
            return Path(arguments["path"]).read_text()
        case "write":
            Path(arguments["path"]).write_text("written")
            os.chmod(arguments["path"], arguments.get("mode", 0o644))
            return "written"
        case "connect":
            socket.create_connection(("127.0.0.1", arguments["port"]), timeout=5).close()
            return "connected"
        case "spawn":
            subprocess.Popen(["sleep", arguments["seconds"]], start_new_session=True)
            return "spawned"
        case "environment":
            return json.dumps({**os.environ, "CWD": os.getcwd()})
    return "unknown action"


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "probe"}}
    if method == "tools/list":
        return {"tools": [{"name": "probe", "inputSchema": {"type": "object"}}]}
    if method != "tools/call":
        return None
    try:
        text = probe(params["arguments"])
    except OSError as error:
        return {"content": [{"type": "text", "text": f"{type(error).__name__}: {error}"}], "isError": True}
    return {"content": [{"type": "text", "text": text}]}


for line in sys.stdin:
    frame = json.loads(line)
    if "id" not in frame:
        continue
    result = answer(frame["method"], frame.get("params", {}))
    end = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": frame["id"], **end}) + "\n")
    sys.stdout.flush()
