"""`ostler serve` as a process with a scripted model, and requests to it."""

import http.client
import json
import re
import signal
import subprocess
from contextlib import contextmanager

import pytest
from tests.conftest import at
from tests.frontends.server.server_client import ServerClient
from tests.process_starter import Started
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect


class Serving:
    """A running server, its announced lines, and requests to it."""

    def __init__(self, process, unix, model=None):
        self.process, self.model = process, model
        self.lines = []
        while not self.lines or (unix or "ostler connect") not in self.lines[-1]:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            self.lines.append(line.strip())
        found = re.search(r"ostler connect '(.*)'", self.lines[-1])
        self.line = found[1] if found else ""
        self.url = self.line.partition("#")[0]
        self.port = int(self.url.rpartition(":")[2]) if self.url else 0

    def request(self, method, path, token="", body=None, headers=(), host=""):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        given = {"Host": host or f"127.0.0.1:{self.port}", "Content-Type": "application/json", **dict(headers)}
        if token:
            given["Authorization"] = f"Bearer {token}"
        connection.request(method, path, json.dumps(body) if body is not None else None, given)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, json.loads(data) if data else None

    def client(self, token):
        """Return a client that sends the requests of one user."""
        return ServerClient(self.port, token)

    def websocket(self, session, token="", query="", **options):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return connect(
            f"ws://127.0.0.1:{self.port}/api/agent/sessions/{session}/stream{query}",
            additional_headers=headers,
            proxy=None,
            **options,
        )

    def refused_websocket(self, *arguments, **options):
        with pytest.raises(InvalidStatus) as caught, self.websocket(*arguments, **options):
            pass
        return caught.value.response.status_code


@contextmanager
def serving(ostler, models, *arguments, bind="127.0.0.1:0", unix="", replies=()):
    pipe = subprocess.PIPE
    flags = [*(["--bind", bind] if bind else []), *(["--unix", unix] if unix else []), *arguments]
    with (
        models.playing(*replies) as model,
        Started(
            ["serve", *at(model), *flags],
            cwd=ostler.workspace,
            env=ostler.environment(),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            encoding="utf-8",
        ) as process,
    ):
        try:
            yield Serving(process, unix, model)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(10)


def hello(socket_):
    socket_.send(
        json.dumps({"type": "hello", "clientVersion": "1", "toolManifest": {"tools": []}, "workspaceRoot": "/"})
    )
    return json.loads(socket_.recv(20))
