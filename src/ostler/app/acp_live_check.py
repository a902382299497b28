"""Holds a live conversation to the protocol and tells what is against it."""

from collections.abc import Callable

from ostler.wire.acp_validator import AcpValidator
from ostler.wire.jsonrpc import FrameDirection


class LiveProtocolCheck:
    """Looks at every line of both sides; each kind of fault is told once."""

    def __init__(self, notify: Callable[[str], None]) -> None:
        self._notify = notify
        self._checker = AcpValidator()
        self._reported: set[str] = set()

    def on_line(self, direction: FrameDirection, line: bytes) -> None:
        found = self._checker.check_line("client" if direction == "out" else "agent", line)
        for fault in found:
            told = f"{'the client' if direction == 'out' else 'the agent'}: {fault}"
            if told not in self._reported:
                self._reported.add(told)
                self._notify(f"check: {told}")

    def exit_code(self, code: int) -> int:
        """The exit status when faults count."""
        count = len(self._reported)
        self._notify(f"check: {count or 'no'} fault{'' if count == 1 else 's'} against the protocol")
        return code or int(bool(count))
