"""A model server that follows the prompts of the conformance suite, in any order."""

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self._json({"data": [{"id": "compliant"}, {"id": "other"}]})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            self._reply(request)
        except OSError:
            self.close_connection = True

    def _reply(self, request):
        last = [message for message in request["messages"] if message["role"] != "system"][-1]
        text = last["content"] if isinstance(last["content"], str) else json.dumps(last["content"])
        write = re.search(r"into the file (\S+) in", text)
        if last["role"] == "user" and write:
            arguments = json.dumps({"path": write[1], "content": "hello\n"})
            self._delta(
                {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "write", "arguments": arguments}}]}
            )
            self._delta({}, "tool_calls")
        elif last["role"] == "user" and "Run the command" in text:
            command = "echo comply > comply.txt"  # needs approval, so that it runs in the client's terminal
            function = {"name": "bash", "arguments": json.dumps({"command": command})}
            self._delta({"tool_calls": [{"index": 0, "id": "c2", "function": function}]})
            self._delta({}, "tool_calls")
        elif "Count slowly" in text:
            for number in range(2000):
                self._delta({"content": f"{number}\n"})
                self.server.over.wait(0.05)
        else:
            self._delta({"content": "ready"})
            self._delta({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _delta(self, delta, reason=None):
        chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.flush()

    def _json(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Ignore clients that have disconnected."""


@contextmanager
def compliant_model():
    """Run the server for the block and yield its base URL."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.over = threading.Event()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
