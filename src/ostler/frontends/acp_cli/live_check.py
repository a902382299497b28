"""Checks a live ACP connection against the protocol and reports violations."""

from collections.abc import Callable

from ostler.wire.acp_validator import AcpSide, AcpValidator
from ostler.wire.jsonrpc import FrameDirection


class LiveProtocolCheck:
    """Validates every line of both sides and reports each kind of violation once."""

    def __init__(self, notify: Callable[[str], None]) -> None:
        self._notify = notify
        self._checker = AcpValidator()
        self._reported: set[str] = set()

    def on_line(self, direction: FrameDirection, line: bytes) -> None:
        sender: AcpSide = "client" if direction == "out" else "agent"
        for violation in self._checker.check_line(sender, line):
            message = f"the {sender}: {violation}"
            if message not in self._reported:
                self._reported.add(message)
                self._notify(f"check: {message}")

    def exit_code(self, code: int) -> int:
        """Report the number of violations. Return `code`, or 1 if it is 0 and there are violations."""
        count = len(self._reported)
        self._notify(f"check: {count or 'no'} protocol violation{'' if count == 1 else 's'}")
        return code or int(bool(count))
