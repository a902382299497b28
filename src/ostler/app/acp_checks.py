"""Holds a live conversation to the protocol and tells what is against it."""

from collections.abc import Callable

from ostler.wire.acp_check import Checker
from ostler.wire.jsonrpc import Direction


class Checks:
    """Looks at every line of both sides; each kind of fault is told once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._checker = Checker()
        self._told: set[str] = set()

    def hear(self, direction: Direction, line: bytes) -> None:
        found = self._checker.look("client" if direction == "out" else "agent", line)
        for fault in found:
            told = f"{'the client' if direction == 'out' else 'the agent'}: {fault}"
            if told not in self._told:
                self._told.add(told)
                self._say(f"check: {told}")

    def code(self, code: int) -> int:
        """The exit status when faults count."""
        count = len(self._told)
        self._say(f"check: {count or 'no'} fault{'' if count == 1 else 's'} against the protocol")
        return code or int(bool(count))
