"""The floor of driving an agent: the least Python that sends a prompt over ACP and mirrors what comes back."""

import json
import subprocess
import sys


def main() -> None:
    prompt, *argv = sys.argv[1:]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin is not None and agent.stdout is not None
        ask(agent, 1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        answer(agent, 1)
        ask(agent, 2, "session/new", {"cwd": "/", "mcpServers": []})
        session = answer(agent, 2)["sessionId"]
        ask(agent, 3, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]})
        answer(agent, 3)
        agent.stdin.close()


def ask(agent: "subprocess.Popen[bytes]", number: int, method: str, params: dict[str, object]) -> None:
    assert agent.stdin is not None
    frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    agent.stdin.write(json.dumps(frame).encode() + b"\n")
    agent.stdin.flush()


def answer(agent: "subprocess.Popen[bytes]", number: int) -> dict[str, str]:
    """Every line is read and printed, as a client must."""
    assert agent.stdout is not None
    for line in agent.stdout:
        frame = json.loads(line)
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        if frame.get("id") == number and "result" in frame:
            found: dict[str, str] = frame["result"]
            return found
    raise SystemExit("the agent ended")


if __name__ == "__main__":
    main()
