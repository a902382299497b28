"""The keeper: a small process that starts every command and lets none of them outlive Ostler.

It runs apart from Ostler (`python -I -S`, standard library only), because only a process that survives `kill -9` of
Ostler can clean up after it, because a fork of a small process is quick and safe where one of a threaded program is
not, and because it can enter a sandbox once, so that no command pays for it again.

    Ostler ──link──▶ keeper ──fork──▶ warden ──fork──▶ the command ──▶ whatever it starts
       └───────────────control───────────┘

Every command has a warden of its own. The warden is the subreaper of all that is below it, so a daemon that called
setsid or was orphaned is still its descendant, and "nothing is left" means exactly "the warden has no child". Ostler
holds the other end of the warden's control socket: a line on it asks for an end, and its closing, which `kill -9` of
Ostler causes as well, is an order to kill. A warden needs no keeper, so a dead keeper harms no running command; the
keeper is the subreaper of a dead warden's tree and ends it. Under bubblewrap the keeper is the first process of its
namespace, which no command can kill and with which all others die; under Landlock a guard stays outside the sandbox.

It may import nothing of Ostler but `warden` and `entering`. Modules with an underscore, and no `typing`, halve the time
of its start.
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

_MESSAGE = struct.Struct("<cI")  # "+" with four descriptors, or "-" with the number of a warden


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
    wardens: set[int] = set()
    poll = select.poll()
    poll.register(link.fileno(), select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        if wake in ready:
            os.read(wake, 4096)
            _kill_orphans(wardens)
        if link.fileno() not in ready:
            continue
        word, number, fds = _receive_message(link)
        if word == b"+" and len(fds) == 4:
            wardens.add(_fork_supervisor(fds, (link.fileno(), wake)))
        elif word == b"-" and number in wardens:
            os.kill(number, _signal.SIGKILL)
        elif not word:
            return
        for fd in fds:
            os.close(fd)


def _receive_message(link: _socket.socket) -> tuple[bytes, int, list[int]]:
    try:
        data, notes, _, _ = link.recvmsg(_MESSAGE.size, _socket.CMSG_SPACE(4 * 4))
    except OSError:
        return b"", 0, []
    fds = [fd for _, _, packed in notes for fd in struct.unpack(f"{len(packed) // 4}i", packed)]
    for fd in fds:
        os.set_inheritable(fd, False)
    if len(data) < _MESSAGE.size:
        return b"", 0, fds
    return (*_MESSAGE.unpack(data), fds)


def _kill_orphans(supervisors: set[int]) -> None:
    """Reap wardens; when one did not end by itself, what it kept is now ours and must end."""
    strays = False
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            break
        strays = strays or status != 0 or pid not in supervisors
        supervisors.discard(pid)
    if strays:
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
    """When memory runs out, a command should go before Ostler does; children inherit this."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("300")
    except OSError:
        pass


def _fork_guard(link: _socket.socket) -> None:
    """Go on as a child; the parent stays outside the sandbox and ends what the child leaves behind."""
    keeper = os.fork()
    if keeper == 0:
        return
    link.close()
    while True:
        try:
            pid, _ = os.wait()
        except ChildProcessError:
            os._exit(0)
        if pid == keeper:
            keeper = 0
        if keeper == 0:
            signal_all(descendants(os.getpid()), _signal.SIGKILL)
