"""A window of a separate tmux server, which rewraps lines and has a scrollback."""

import os
import subprocess
import sys
import time

TIMEOUT_SECONDS = 90
LOOK_SECONDS = 0.05
SETTINGS = ("history-limit 30000", "default-terminal tmux-256color", "status off", "remain-on-exit on")


class Tmux:
    """A window of a separate tmux server; `lines` returns its scrollback and screen."""

    def __init__(self, ostler, folder, *args, columns=80, rows=24):
        self._socket = str(folder / "tmux")
        self._env = ostler.environment({"TERM": "xterm-256color"})
        config = folder / "tmux.conf"
        config.write_text("".join(f"set -g {setting}\n" for setting in SETTINGS))
        words = [sys.executable, "-P", "-m", "ostler", *map(str, args)]
        size = ["-x", str(columns), "-y", str(rows)]
        self("-f", str(config), "new-session", "-d", *size, "-c", str(ostler.workspace), *words)

    def __call__(self, *words):
        done = subprocess.run(
            ["tmux", "-S", self._socket, *words], env=self._env, capture_output=True, text=True, check=True
        )
        return done.stdout

    def type(self, keys):
        self("send-keys", "-l", keys)

    def press(self, *keys):
        self("send-keys", *keys)

    def resize(self, columns, rows):
        self("resize-window", "-x", str(columns), "-y", str(rows))

    def lines(self, *, joined=False):
        return self("capture-pane", "-p", *(["-J"] if joined else []), "-S", "-").rstrip("\n").split("\n")

    def wait_for(self, wanted, times=1):
        until = time.monotonic() + TIMEOUT_SECONDS
        while (shown := "\n".join(self.lines())).count(wanted) < times:
            assert time.monotonic() < until, f"never saw {wanted!r} in:\n{shown[-3000:]}"
            time.sleep(LOOK_SECONDS)
        return shown

    def wait_for_size(self, columns, rows):
        """Wait until the terminal has this size; tmux sets it some time after it rewrapped its lines."""
        tty = os.open(self("display", "-p", "#{pane_tty}").strip(), os.O_RDONLY | os.O_NOCTTY)
        until = time.monotonic() + TIMEOUT_SECONDS
        while os.get_terminal_size(tty) != (columns, rows):
            assert time.monotonic() < until, os.get_terminal_size(tty)
            time.sleep(LOOK_SECONDS)
        os.close(tty)

    def cursor(self):
        return int(self("display", "-p", "#{cursor_x}"))

    def close(self):
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], env=self._env, capture_output=True, check=False)
