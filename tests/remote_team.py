"""A server and a client of it: `ostler serve` with a scripted model, or a scripted server, and the client's folder."""

import json
import signal
import socket
import subprocess
import threading
from contextlib import contextmanager, suppress

from tests.conftest import Models, Ostler
from tests.process_starter import Started
from tests.serving import Serving

from ostler.testing.frame_server import FrameServer

MODEL_KEY = "sk-only-the-server-knows-9e1f4c"
TOKEN = {"OSTLER_SERVER_TOKEN": "ostler_" + "0" * 16 + "_" + "0" * 64}


class Team:
    """`ostler serve` in one folder and home; each client has others. Replies of the model are added by tests.

    All connections go through `proxy`, which keeps what the server sends.
    """

    def __init__(self, folder):
        self.ostler = Ostler(folder)
        self.models = Models()
        self._playing = self.models.playing()
        self.model = self._playing.__enter__()
        self.token = self.ostler("serve", "token", "issue", "ada").stdout.strip()
        pipe = subprocess.PIPE
        profile = {"name": "large", "baseUrl": self.model.base_url, "model": "scripted", "context": 100_000_000}
        profile["apiKey"] = MODEL_KEY
        config = {"models": {"profiles": [profile], "active": "large"}}
        (self.ostler.home / ".ostler" / "config.json").write_text(json.dumps(config))
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        self.proxy = RecordingProxy(port)
        url = f"http://127.0.0.1:{self.proxy.port}"
        self._process = Started(
            ["serve", "--model", "large", "--bind", f"127.0.0.1:{port}", "--url", url],
            cwd=self.ostler.workspace,
            env=self.ostler.environment(),
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            encoding="utf-8",
        )
        self.server = Serving(self._process, "")

    def script(self, *replies):
        """Add replies of the model. Return how many requests it has had."""
        self.model.add_replies(*replies)
        return len(self.model.requests)

    def drop_replies(self):
        """Remove the replies that were not requested. Return how many there were."""
        left = len(self.model._script)
        self.model._script.clear()
        return left

    def env(self):
        return {"OSTLER_SERVER_TOKEN": self.token}

    def flags(self):
        return ("--backend", f"remote:{self.server.url}")

    def run(self, client, *arguments, **options):
        """Run `ostler run` of a client."""
        return client("run", *self.flags(), *arguments, env=self.env(), **options)

    def sessions(self):
        return self.server.request("GET", "/api/agent/sessions", self.token)[1]["sessions"]

    def messages(self, session_id=""):
        """Return the stored conversation of a session, or of the latest one."""
        session_id = session_id or self.sessions()[0]["sessionId"]
        return self.server.request("GET", f"/api/agent/sessions/{session_id}/messages", self.token)[1]["messages"]

    def tool_results(self, request):
        """Return the results in a request of the model, by call id."""
        messages = request.json["messages"]
        return {entry["tool_call_id"]: entry["content"] for entry in messages if entry["role"] == "tool"}

    def close(self):
        self._process.send_signal(signal.SIGTERM)
        try:
            assert self._process.wait(20) == 0
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait(10)
            self._process.stdout.close()
            self._process.stderr.close()
            self.proxy.close()
        self._playing.__exit__(None, None, None)
        self.models.close()


class RecordingProxy:
    """Forwards TCP connections and keeps all bytes."""

    def __init__(self, port):
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.received = bytearray()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            for source, target, keeps in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._copy, args=(source, target, keeps), daemon=True).start()

    def _copy(self, source, target, keeps):
        try:
            while data := source.recv(65536):
                if keeps:
                    self.received += data
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()


@contextmanager
def scripted_server(models, *turns, **options):
    """A server whose turns a test supplies, for a client that is a process. `flags` select it."""
    server = FrameServer(turns, **options)
    models.wait(server.start())
    server.flags = ("--backend", f"remote:{server.url}")
    try:
        yield server
    finally:
        models.wait(server.stop())


def files_with(folder, text):
    """Return the files below a folder that contain a text."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return [str(path) for path in found if text.encode() in path.read_bytes()]
