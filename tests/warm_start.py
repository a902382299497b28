"""A process that has imported the whole program and forks for each start of it.

It is started by `tests.process_starter` with the number of a socket; each message on the socket is a command to run.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import tempfile
import termios
import threading

import ostler

WITHOUT_PAUSES = "WITHOUT_PAUSES"  # a variable that removes the pauses between retries
LAZY_LIBRARIES = (  # imported by Ostler at first use, so that importing Ostler does not import them
    *("concurrent.futures.thread", "ctypes", "fastjsonschema", "h11", "hashlib", "json", "pathspec", "rapidfuzz"),
    *("re2", "shutil", "sqlite3", "tempfile", "urllib.parse", "yaml"),
)
COMMANDS_THAT_FILL_CACHES = (("tool", "list"), ("tool", "call", "read_file", '{"path": "x"}'))


def serve(channel: socket.socket) -> dict | None:
    """Fork for each command and report its exit status. Return the command in the child, None at the end."""
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reports: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([channel, ended], [], [])
        if ended in ready:
            os.read(ended, 4096)
            report_exits(reports)
        if channel in ready:
            message, descriptors, _, _ = socket.recv_fds(channel, 1 << 20, 4)
            if not message:
                return None
            report, *streams = descriptors
            child = os.fork()
            if child == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for number, stream in enumerate(streams):
                    os.dup2(stream, number)
                for descriptor in (ended, wake, *descriptors, *reports.values()):
                    os.close(descriptor)
                return json.loads(message)
            os.write(report, b"%d\n" % child)
            reports[child] = report
            for stream in streams:
                os.close(stream)


def report_exits(reports: dict[int, int]) -> None:
    while reports:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        report = reports.pop(child)
        with contextlib.suppress(BrokenPipeError):  # the test no longer waits for it
            os.write(report, b"%d\n" % status)
        os.close(report)


def become(command: dict) -> None:
    """Set environment, folder, session and standard streams as in a new process."""
    os.setsid()
    if command["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(command["cwd"])
    os.environ.clear()
    os.environ.update(command["env"])
    if os.environ.pop(WITHOUT_PAUSES, ""):
        sys.modules["ostler.models.retry"].RetryPolicy.pause = lambda *_: 0.0
    sys.argv = [sys.modules["ostler.__main__"].__file__, *command["args"]]
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        old = getattr(sys, name)
        new = open(number, mode, encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115  stays open
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def run(channel_number: int) -> None:
    for module in pkgutil.walk_packages(ostler.__path__, "ostler."):
        importlib.import_module(module.name)
    for name in LAZY_LIBRARIES:
        importlib.import_module(name)
    fill_caches()
    gc.freeze()
    with socket.socket(fileno=channel_number) as channel:
        command = serve(channel)
    if command is not None:
        become(command)
        end(sys.modules["ostler.__main__"].main())


def fill_caches() -> None:
    """Run two commands, so that patterns and schemas are compiled once and not after each fork."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):
        os.environ["HOME"] = folder
        for command in COMMANDS_THAT_FILL_CACHES:
            sys.argv = ["ostler", *command]
            sys.modules["ostler.__main__"].main()
    tempfile.tempdir = None  # a cache that depends on the environment
    assert threading.active_count() == 1, "a thread would be missing after each fork"


def end(code: int) -> None:
    """Exit like the interpreter, but without destroying all imported modules."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    run(int(sys.argv[1]))
