"""Helper process that starts every command and kills it if Ostler dies. Standard library only.

It is a separate process (`python -I -S`) for three reasons: it survives `kill -9` of Ostler and can clean up after it;
forking a small process is fast and safe, unlike forking a threaded program; and it enters the sandbox only once, for
all commands.

    Ostler ──link──▶ spawner ──fork──▶ supervisor ──fork──▶ the command ──▶ its child processes
       └────────────────control────────────┘

Every command has its own supervisor. The supervisor is the subreaper of its descendants, so a daemon that called setsid
or was orphaned is still its descendant, and the command has ended when the supervisor has no children. Ostler holds the
other end of the supervisor's control socket: a line on it requests a stop, and closing it, which `kill -9` of Ostler
does too, kills the command. Supervisors do not need the spawner, so running commands survive its death. The spawner is
the subreaper of the tree of a dead supervisor and kills it. Under bubblewrap the spawner is the first process of its
namespace: no command can kill it, and all others die with it. Under Landlock a guard process stays outside the sandbox.

It may import only `supervisor` and `sandbox_entry` from Ostler. Using modules with an underscore and no `typing` halves
its start time.
"""

from __future__ import annotations

import _socket
import marshal
import os
import select
import struct

from ostler.processes.sandbox_entry import CHILD_SUBREAPER, DUMPABLE, NAME, enter_sandbox, prctl
from ostler.processes.supervisor import (
    IGNORED_SIGNALS,
    CommandSupervisor,
    child_wakeup_fd,
    descendants,
    receive_block,
    signal_all,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal

_MESSAGE = struct.Struct("<cI")  # "+" with four descriptors, or "-" with the process id of a supervisor


def main(link_fd: str) -> None:
    link = _socket.socket(fileno=int(link_fd))
    for number in IGNORED_SIGNALS:
        _signal.signal(number, _signal.SIG_IGN)
    prctl(NAME, b"ostler-keeper")
    prctl(CHILD_SUBREAPER, 1)
    _raise_oom_score()
    plan = marshal.loads(receive_block(link))
    if plan.get("guard"):
        _fork_guard(link)
    enter_sandbox(plan)
    prctl(DUMPABLE, 0)
    link.send(b"ready")
    _serve(link)


def _serve(link: _socket.socket) -> None:
    wake = child_wakeup_fd()
    supervisors: set[int] = set()
    poll = select.poll()
    poll.register(link.fileno(), select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        if wake in ready:
            os.read(wake, 4096)
            _kill_orphans(supervisors)
        if link.fileno() not in ready:
            continue
        kind, pid, fds = _receive_message(link)
        if kind == b"+" and len(fds) == 4:
            supervisors.add(_fork_supervisor(fds, (link.fileno(), wake)))
        elif kind == b"-" and pid in supervisors:
            os.kill(pid, _signal.SIGKILL)
        elif not kind:
            return
        for fd in fds:
            os.close(fd)


def _receive_message(link: _socket.socket) -> tuple[bytes, int, list[int]]:
    try:
        data, ancillary, _, _ = link.recvmsg(_MESSAGE.size, _socket.CMSG_SPACE(4 * 4))
    except OSError:
        return b"", 0, []
    fds = [fd for _, _, packed in ancillary for fd in struct.unpack(f"{len(packed) // 4}i", packed)]
    for fd in fds:
        os.set_inheritable(fd, False)
    if len(data) < _MESSAGE.size:
        return b"", 0, fds
    return (*_MESSAGE.unpack(data), fds)


def _kill_orphans(supervisors: set[int]) -> None:
    """Reap supervisors. If one did not exit normally, kill the processes that it left."""
    has_orphans = False
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            break
        has_orphans = has_orphans or status != 0 or pid not in supervisors
        supervisors.discard(pid)
    if has_orphans:
        signal_all(descendants(os.getpid(), exclude=supervisors), _signal.SIGKILL)


def _fork_supervisor(fds: list[int], parent_fds: tuple[int, ...]) -> int:
    try:
        pid = os.fork()
    except OSError as error:
        os.write(fds[0], f"failed {error}\n".encode())
        return 0
    if pid:
        return pid
    try:
        for fd in parent_fds:
            os.close(fd)
        CommandSupervisor(_socket.socket(fileno=fds[0])).run(fds[1:])
        os._exit(0)
    finally:
        os._exit(1)


def _raise_oom_score() -> None:
    """Let the kernel kill commands before Ostler when memory runs out; children inherit this."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("300")
    except OSError:
        pass


def _fork_guard(link: _socket.socket) -> None:
    """Continue in a child. The parent stays outside the sandbox and kills what the child leaves."""
    spawner_pid = os.fork()
    if spawner_pid == 0:
        return
    link.close()
    while True:
        try:
            pid, _ = os.wait()
        except ChildProcessError:
            os._exit(0)
        if pid == spawner_pid:
            spawner_pid = 0
        if spawner_pid == 0:
            signal_all(descendants(os.getpid()), _signal.SIGKILL)
