"""A fake inference library: replies with the texts in the model file."""

import json
from hashlib import sha256
from pathlib import Path

from ostler.models.embedded.runtime import LOCK_FILE

MODULE = """\
import json, os, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Options:
    pass

class CommonParams:
    def __init__(self):
        self.model, self.cpuparams, self.cpuparams_batch = Options(), Options(), Options()

class Server:
    def __init__(self, params):
        path = params.model.path
        steps = json.loads(open(path).read()[4:])
        if "error" in steps:
            raise RuntimeError(steps["error"])
        if "die" in steps:
            os.write(2, b"first line\\\\nlast line\\\\n")
            os._exit(3)
        with open(path + ".started", "w") as file:
            json.dump({"pid": os.getpid(), "threads": params.cpuparams.n_threads, "context": params.n_ctx,
                       "port": params.port, "keys": params.api_keys}, file)
        replies = list(steps["replies"])

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                is_stream = self.path == "/v1/chat/completions" and json.loads(body).get("stream")
                with open(path + (".asked" if is_stream else ".states"), "ab") as file:
                    file.write((b"" if is_stream else self.path.encode() + b" ") + body + b"\\\\n")
                if not is_stream:
                    if "action=save" in self.path:
                        open(params.slot_save_path + json.loads(body)["filename"], "w").close()
                    return self.document({"ok": True})
                known = not params.api_keys or self.headers.get("authorization") == "Bearer " + params.api_keys[0]
                reply = replies.pop(0) if known and replies else "no replies left"
                if reply == "hang":
                    threading.Event().wait()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                progress = {"total": 300, "cache": 0, "processed": 128, "time_ms": 4000}
                self.frame({"choices": [{"index": 0, "delta": {"content": None}}], "prompt_progress": progress})
                for start in range(0, len(reply), 7):
                    self.frame({"choices": [{"index": 0, "delta": {"content": reply[start : start + 7]}}]})
                self.frame({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
                self.frame({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}})
                self.wfile.write(b"data: [DONE]\\\\n\\\\n")
                self.close_connection = True

            def document(self, value):
                answer = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def frame(self, value):
                self.wfile.write(b"data: " + json.dumps(value).encode() + b"\\\\n\\\\n")

        server = ThreadingHTTPServer(("127.0.0.1", params.port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.listening_address = "http://127.0.0.1:%d" % server.server_port
""".replace("\\\\n", "\\n")


def install_fake(models: Path, *replies: str, name: str = "tiny", **options: str) -> Path:
    """Install the fake library and a model into a folder. Return the model file."""
    library = models / f"runtime-{sha256(LOCK_FILE.read_bytes()).hexdigest()[:8]}" / "xllamacpp"
    library.mkdir(parents=True, exist_ok=True)
    (library / "__init__.py").write_text(MODULE)
    weights = models / f"{name}.gguf"
    weights.write_text("GGUF" + json.dumps({"replies": replies, **options}))
    return weights


def started(weights: Path) -> dict[str, int]:
    """Return the parameters that the process was started with."""
    return json.loads(Path(f"{weights}.started").read_text())


def received_requests(weights: Path) -> list[dict[str, object]]:
    """Return the requests that the server received."""
    return [json.loads(line) for line in Path(f"{weights}.asked").read_text().splitlines()]


def state_requests(weights: Path) -> list[str]:
    """Return the requests that concern saved states, each a path and a body."""
    return Path(f"{weights}.states").read_text().splitlines()
