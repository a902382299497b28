"""A minimal ACP client that sends a prompt and prints every frame, as a baseline."""

import json
import subprocess
import sys


def main() -> None:
    prompt, *argv = sys.argv[1:]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin is not None and agent.stdout is not None
        send(agent, 1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        receive(agent, 1)
        send(agent, 2, "session/new", {"cwd": "/", "mcpServers": []})
        session = receive(agent, 2)["sessionId"]
        send(agent, 3, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]})
        receive(agent, 3)
        agent.stdin.close()


def send(agent: "subprocess.Popen[bytes]", number: int, method: str, params: dict[str, object]) -> None:
    assert agent.stdin is not None
    frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    agent.stdin.write(json.dumps(frame).encode() + b"\n")
    agent.stdin.flush()


def receive(agent: "subprocess.Popen[bytes]", number: int) -> dict[str, str]:
    """Print every line until the response with this number, and return its result."""
    assert agent.stdout is not None
    for line in agent.stdout:
        frame = json.loads(line)
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        if frame.get("id") == number and "result" in frame:
            found: dict[str, str] = frame["result"]
            return found
    raise SystemExit("the agent exited without an answer")


if __name__ == "__main__":
    main()
