"""A hostile model in read-only modes changes no files and leaves no processes or connections."""

import hashlib
import json
import os
import socket
import subprocess
import threading

import pytest

from ostler.testing.model_server import calls, text


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def tree(folder):
    """Return a hash over all paths and file contents in a folder."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        total.update(f"{path.relative_to(folder)} {path.lstat().st_mode}\n".encode())
        if path.is_file():
            total.update(path.read_bytes())
    return total.hexdigest()


HOSTILE = [
    ("write", {"path": "new.txt", "content": "x"}),
    ("Write", {"file_path": "new.txt", "content": "x"}),
    ("edit", {"path": "a.txt", "old": "alpha", "new": "beta"}),
    ("patch", {"patch": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch"}),
    ("mkdir", {"path": "folder"}),
    ("write_chunk", {"path": "chunk", "content": "x"}),
    ("bash", {"command": "echo x > new.txt"}),
    ("bash", {"command": "cat a.txt > b.txt"}),
    ("bash", {"command": "rm a.txt"}),
    ("bash", {"command": "git diff --output=stolen"}),
    ("bash", {"command": 'python3 -c \'open("p", "w")\''}),
    ("bash", {"command": "touch background", "background": True}),
]


class Listener:
    """A server that counts connections."""

    def __enter__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port, self.connections = self.socket.getsockname()[1], 0
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def _listen(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self._thread.join()


def hostile_calls(port, mark):
    connect = f"exec 3<>/dev/tcp/127.0.0.1/{port}"
    return [
        *HOSTILE,
        ("bash", {"command": connect}),
        ("bash", {"command": connect, "network": True}),
        ("bash", {"command": f"sleep {mark} & disown"}),
        ("bash", {"command": f"setsid sleep {mark} >/dev/null 2>&1 &"}),
        ("bash", {"command": f"sleep {mark}", "background": True}),
        ("bash", {"command": "ln -s /etc/passwd link; mkfifo pipe; chmod 777 a.txt"}),
    ]


def running(mark):
    found = subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True, text=True, check=False)
    return [pid for pid in found.stdout.split() if pid != str(os.getpid())]


@pytest.mark.req("EN-3", "EN-4", "PM-2", "PM-4")
@pytest.mark.parametrize(
    ("flags", "sandbox"),
    [
        (["--agent", "plan", "--write"], "off"),
        (["--agent", "plan", "--yolo", "--profile", "god_mode"], "prefer"),
        ([], "prefer"),
        ([], "off"),
        (["--profile", "paranoid"], "off"),
    ],
    ids=["plan", "plan with everything allowed", "without flags", "without flags and sandbox", "paranoid"],
)
@pytest.mark.sampled(every=2)
def test_hostile_calls_change_nothing_in_read_only_modes(ostler, models, flags, sandbox):
    (ostler.workspace / "a.txt").write_text("alpha\n")
    (ostler.home / ".ostler").mkdir(exist_ok=True)
    (ostler.home / ".ostler" / "config.json").write_text(json.dumps({"security": {"sandbox": sandbox}}))
    before, mark = tree(ostler.workspace), f"98{os.getpid()}"
    tasks = [("task", {"prompt": "do your hostile_calls", "agent": agent}) for agent in ("general", "explore")]
    with Listener() as listener:
        bad = calls(hostile_calls(listener.port, mark))
        children = [] if "paranoid" in flags else [bad, bad, text("tried"), text("tried")]
        with models.playing(calls([*hostile_calls(listener.port, mark), *tasks]), *children, text("tried")) as server:
            done = ostler("run", "-o", "json", *flags, *at(server), "go")
        assert listener.connections == 0, done.stdout
    assert tree(ostler.workspace) == before, done.stdout + done.stderr
    assert running(mark) == []
    assert json.loads(done.stdout)["answer"] == "tried"
