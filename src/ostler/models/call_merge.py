"""Merges streamed fragments into complete tool calls."""

from collections.abc import Iterable

from ostler.models.call_ids import CallIds
from ostler.models.loose_json import LooseJsonError, read_json
from ostler.models.model_types import CallChunk

_MAX_CHECKS = 8


class _PartialCall:
    """A call whose fragments are still arriving."""

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.fragments: list[str] = []
        self._check_count = 0

    def is_complete(self) -> bool:
        """Whether the arguments so far are a complete object. Checks only a few times, to stay linear."""
        self._check_count += 1
        if self._check_count > _MAX_CHECKS or not self.fragments or not self.fragments[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(read_json("".join(self.fragments).encode("utf-8", "replace")), dict)
        except LooseJsonError:
            return False


class CallMerger:
    """Collects fragments and returns complete calls, in the order in which they started."""

    def __init__(self, tool_names: Iterable[str] = (), used_ids: Iterable[str] = ()) -> None:
        self._tool_names = frozenset(tool_names)
        self._ids = CallIds(used_ids)
        self._partial_calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._by_id: dict[str, _PartialCall] = {}

    @property
    def count(self) -> int:
        """The number of calls so far."""
        return len(self._partial_calls)

    def add(self, index: int | None, call_id: str, name: str, arguments: str) -> None:
        """Add a fragment to the call with this index or id; without both, to the last call."""
        partial = self._find_or_start(index, call_id, name, arguments)
        partial.id = partial.id or call_id
        if name:
            partial.name = self._join_name(partial.name, name)
        if arguments:
            if partial.fragments == ["{}"]:  # some servers send an empty object first, then the real one
                partial.fragments.clear()
            partial.fragments.append(arguments)

    def calls(self) -> list[CallChunk]:
        """Return all calls, each with an id that is new in this conversation."""
        partials = [partial for partial in self._partial_calls if partial.name or partial.fragments]
        return [
            CallChunk(self._ids.allocate(partial.id), partial.name, "".join(partial.fragments) or "{}")
            for partial in partials
        ]

    def _find_or_start(self, index: int | None, call_id: str, name: str, arguments: str) -> _PartialCall:
        if index is not None:
            partial = self._by_index.get(index)
        elif call_id:
            partial = self._by_id.get(call_id)
        else:
            partial = self._partial_calls[-1] if self._partial_calls else None
        if partial is None or self._starts_new_call(partial, call_id, name, arguments):
            partial = _PartialCall(call_id)
            self._partial_calls.append(partial)
        if index is not None:
            self._by_index[index] = partial
        if call_id:
            self._by_id.setdefault(call_id, partial)
        return partial

    def _starts_new_call(self, partial: _PartialCall, call_id: str, name: str, arguments: str) -> bool:
        """Whether a fragment starts a new call although its index is known: some servers number every call 0."""
        if not name or (call_id and call_id == partial.id):
            return False
        other_id, other_name = bool(call_id and partial.id), name != partial.name
        if partial.fragments:
            return (other_id or other_name or bool(arguments)) and partial.is_complete()
        return other_id and other_name

    def _join_name(self, name: str, more: str) -> str:
        """Append a fragment of a name, or keep the name if the server only repeated it."""
        if name not in self._tool_names and name + more in self._tool_names:
            return name + more
        if name in self._tool_names or more.startswith(name):
            return more if more.startswith(name) else name
        return name + more
