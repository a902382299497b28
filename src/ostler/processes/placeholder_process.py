"""The process between Ostler and bubblewrap that creates the placeholders of a sandbox and removes them after its end.

Ostler can be killed at any time, so it must not be the process that creates placeholders. This one ignores signals,
has a session of its own and ends the sandbox when Ostler's end of the link closes. It removes the placeholders only
when no process of the sandbox is left, so that no command can use the moment in between. Like the spawner, it does
without `typing`, for a fast start.
"""

from __future__ import annotations

import os
import select

from ostler.processes.child_python import python_command
from ostler.processes.placeholders import Placeholders
from ostler.processes.sandbox_entry import CHILD_SUBREAPER, NAME, prctl
from ostler.processes.supervisor import IGNORED_SIGNALS, child_wakeup_fd

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Sequence
else:
    import _signal


def with_placeholders(paths: Sequence[str], wrapper: Sequence[str]) -> list[str]:
    """Return a command line to put before the spawner's: it runs `wrapper` while there are placeholders at `paths`.

    The number of the spawner's link must be the last argument of the whole command line.
    """
    return [*python_command("ostler.processes.placeholder_process:main", str(len(paths)), *paths), *wrapper]


def main(count: str, *arguments: str) -> None:
    paths, command = arguments[: int(count)], arguments[int(count) :]
    link = int(command[-1])
    for number in IGNORED_SIGNALS:
        _signal.signal(number, _signal.SIG_IGN)
    prctl(NAME, b"ostler-cleanup")
    prctl(CHILD_SUBREAPER, 1)  # the first process of the sandbox becomes a child of this one if bwrap is killed
    wake = child_wakeup_fd()
    placeholders = Placeholders(paths)
    try:
        _run_sandbox(command, link, wake)
    finally:
        placeholders.close()


def _run_sandbox(command: Sequence[str], link: int, wake: int) -> None:
    """Run bubblewrap until no process of the sandbox is left."""
    bubblewrap = os.fork()
    if not bubblewrap:
        _execute(command)
    poll = select.poll()
    poll.register(link, 0)  # reports only that Ostler's end was closed
    poll.register(wake, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        if wake in ready:
            os.read(wake, 4096)
            ended = _reap()
            if ended is None:
                return
            if bubblewrap in ended:
                bubblewrap = 0
        if link in ready:
            poll.unregister(link)
            if bubblewrap:  # its death kills the first process of the sandbox, and that all others
                os.kill(bubblewrap, _signal.SIGKILL)


def _execute(command: Sequence[str]) -> None:
    """In the forked child: replace the process by bubblewrap."""
    try:
        _signal.set_wakeup_fd(-1)
        os.execv(command[0], [*command])
    finally:
        os._exit(127)


def _reap() -> set[int] | None:
    """Reap and return the ended children, or None if no child is left."""
    ended: set[int] = set()
    while True:
        try:
            pid = os.waitpid(-1, os.WNOHANG)[0]
        except ChildProcessError:
            return None
        if pid == 0:
            return ended
        ended.add(pid)
