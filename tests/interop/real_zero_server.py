"""A real Agent Zero server from a checkout of agent0ai/agent-zero, with a model of ours that plays steps."""

import base64
import hashlib
import json
import os
import shutil
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

RUNTIME_ID = "test"
KEY = base64.urlsafe_b64encode(hashlib.sha256(f"{RUNTIME_ID}::".encode()).digest()).decode().replace("=", "")[:16]
START_SECONDS = 90
UNNEEDED = ("docs", "webui", "tests", ".git", "_memory")  # the memory needs a vector database


class StepModel(ThreadingHTTPServer):
    """Answers each request of the agent with its next step: the name of a tool and its arguments."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), StepHandler)
        self.steps, self.seen = [], []

    def answer(self, body):
        """Return the text for a request; only the agent, and not its helpers, uses the model `chat`."""
        if not body["model"].endswith("chat"):
            return "none"
        self.seen.append(str(body["messages"][-1]["content"]))
        tool, arguments = self.steps.pop(0)
        step = {"thoughts": [f"use {tool}"], "headline": "Working", "tool_name": tool, "tool_args": arguments}
        return json.dumps(step)


class StepHandler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text, streams = self.server.answer(body), body.get("stream")
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "delta" if streams else "message": message}
        reply = json.dumps({"id": "x", "created": 1, "model": "m", "choices": [choice]})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if streams else "application/json")
        self.end_headers()
        self.wfile.write((f"data: {reply}\n\ndata: [DONE]\n\n" if streams else reply).encode())


class RealZeroServer:
    """The server in a process of its own, on a copy of its source. Use it as a context."""

    def __init__(self, source: str, python: str, folder: Path) -> None:
        self._source, self._python, self._folder = source, python, folder / "server"
        self.model = StepModel()

    def __enter__(self):
        shutil.copytree(self._source, self._folder, ignore=shutil.ignore_patterns(*UNNEEDED), symlinks=True)
        (self._folder / "webui").mkdir()
        threading.Thread(target=self.model.serve_forever, daemon=True).start()
        self._configure()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        program = Path(__file__).with_name("zero_server_process.py")
        with (self._folder.parent / "server.log").open("w") as log:
            self._process = subprocess.Popen(
                [self._python, str(program), str(self._folder), self.url.rpartition(":")[2]],
                env={"PATH": os.environ["PATH"], "HOME": str(self._folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
                stdout=log,
                stderr=log,
            )
        self._wait_until_it_listens()
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self.model.shutdown()
        self.model.server_close()

    @property
    def has_connector(self) -> bool:
        return (self._folder / "plugins" / "_a0_connector").is_dir()

    def _configure(self) -> None:
        base = {"provider": "openai", "api_key": "x", "api_base": f"http://127.0.0.1:{self.model.server_port}/v1"}
        base |= {"rl_requests": 0, "rl_input": 0, "rl_output": 0, "kwargs": {"a0_api_mode": "chat"}}
        roles = {"chat_model": "openai/chat", "utility_model": "openai/helper", "embedding_model": "openai/embedding"}
        config = {role: {**base, "name": name, "ctx_length": 100_000} for role, name in roles.items()}
        path = self._folder / "usr" / "plugins" / "_model_config" / "config.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(config))
        (self._folder / "usr" / ".env").write_text(f"A0_PERSISTENT_RUNTIME_ID={RUNTIME_ID}\n")

    def _wait_until_it_listens(self) -> None:
        pause = threading.Event()
        for _ in range(START_SECONDS * 4):
            assert self._process.poll() is None, (self._folder.parent / "server.log").read_text()[-3000:]
            try:
                urllib.request.urlopen(f"{self.url}/api/health", timeout=5).close()
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                pause.wait(0.25)
        raise AssertionError("the server did not start")
