"""Baseline client: a minimal Python program that sends a prompt over ACP and prints the received frames."""

import json
import subprocess
import sys


def main() -> None:
    prompt, *argv = sys.argv[1:]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin is not None and agent.stdout is not None
        send_request(agent, 1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        read_response(agent, 1)
        send_request(agent, 2, "session/new", {"cwd": "/", "mcpServers": []})
        session = read_response(agent, 2)["sessionId"]
        send_request(agent, 3, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]})
        read_response(agent, 3)
        agent.stdin.close()


def send_request(agent: "subprocess.Popen[bytes]", number: int, method: str, params: dict[str, object]) -> None:
    assert agent.stdin is not None
    frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    agent.stdin.write(json.dumps(frame).encode() + b"\n")
    agent.stdin.flush()


def read_response(agent: "subprocess.Popen[bytes]", number: int) -> dict[str, str]:
    """Read and print lines up to the response of this request. Return its result."""
    assert agent.stdout is not None
    for line in agent.stdout:
        frame = json.loads(line)
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        if frame.get("id") == number and "result" in frame:
            result: dict[str, str] = frame["result"]
            return result
    raise SystemExit("the agent ended")


if __name__ == "__main__":
    main()
