"""A minimal agent with only the standard library, as a baseline."""

import http.client
import json
import subprocess
import sys
from urllib.parse import urlsplit


def main() -> None:
    base, prompt = urlsplit(sys.argv[1]), sys.argv[2]
    connection = http.client.HTTPConnection(base.netloc)
    messages: list[dict[str, object]] = [{"role": "user", "content": prompt}]
    while True:
        body = json.dumps({"model": "mock", "stream": True, "messages": messages})
        connection.request("POST", f"{base.path}/chat/completions", body, {"Content-Type": "application/json"})
        text, calls = read(connection.getresponse())
        sys.stdout.write(text)
        if not calls:
            sys.stdout.write("\n")
            return
        messages.append({"role": "assistant", "content": text, "tool_calls": calls})
        for call in calls:
            command = json.loads(call["function"]["arguments"])["command"]
            completed = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": completed.stdout})


def read(response: http.client.HTTPResponse) -> tuple[str, list[dict[str, dict[str, str]]]]:
    text: list[str] = []
    calls: list[dict[str, dict[str, str]]] = []
    for line in response:
        if line.startswith(b"data: {"):
            for choice in json.loads(line[6:])["choices"]:
                text.append(choice["delta"].get("content") or "")
                calls += choice["delta"].get("tool_calls") or []
    return "".join(text), calls


if __name__ == "__main__":
    main()
