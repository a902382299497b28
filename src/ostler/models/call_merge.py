"""Whole calls out of the pieces in which servers send them, so that no argument is lost and no id comes twice."""

from collections.abc import Iterable

from ostler.models.call_ids import CallIds
from ostler.models.loose_json import LooseJsonError, read_json
from ostler.models.model_types import CallChunk

_MAX_CHECKS = 8


class _PartialCall:
    """A call that is still being written."""

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.fragments: list[str] = []
        self._check_count = 0

    def is_complete(self) -> bool:
        """Whether the arguments so far are a finished object; looked at a few times only, to stay linear."""
        self._check_count += 1
        if self._check_count > _MAX_CHECKS or not self.fragments or not self.fragments[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(read_json("".join(self.fragments).encode("utf-8", "replace")), dict)
        except LooseJsonError:
            return False


class CallMerger:
    """Pieces in, whole calls out, in the order in which they began. `known` are the tools' names, `taken` old ids."""

    def __init__(self, tool_names: Iterable[str] = (), used_ids: Iterable[str] = ()) -> None:
        self._tool_names = frozenset(tool_names)
        self._ids = CallIds(used_ids)
        self._partial_calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._by_id: dict[str, _PartialCall] = {}

    def add(self, index: int | None, call_id: str, name: str, arguments: str) -> None:
        """One piece. Its place is told by index or else by id; without either it goes on with the last call."""
        draft = self._find_or_start(index, call_id, name, arguments)
        draft.id = draft.id or call_id
        if name:
            draft.name = self._join_name(draft.name, name)
        if arguments:
            if draft.fragments == ["{}"]:  # some servers begin with an empty object, then send the real one
                draft.fragments.clear()
            draft.fragments.append(arguments)

    def calls(self) -> list[CallChunk]:
        """All calls, whole, each with an id that this conversation has not seen."""
        drafts = [draft for draft in self._partial_calls if draft.name or draft.fragments]
        return [
            CallChunk(self._ids.allocate(draft.id), draft.name, "".join(draft.fragments) or "{}") for draft in drafts
        ]

    def _find_or_start(self, index: int | None, call_id: str, name: str, arguments: str) -> _PartialCall:
        if index is not None:
            draft = self._by_index.get(index)
        elif call_id:
            draft = self._by_id.get(call_id)
        else:
            draft = self._partial_calls[-1] if self._partial_calls else None
        if draft is None or self._starts_new_call(draft, call_id, name, arguments):
            draft = _PartialCall(call_id)
            self._partial_calls.append(draft)
        if index is not None:
            self._by_index[index] = draft
        if call_id:
            self._by_id.setdefault(call_id, draft)
        return draft

    def _starts_new_call(self, partial: _PartialCall, call_id: str, name: str, arguments: str) -> bool:
        """Whether a piece at a known place begins a new call: some servers count every call as the first."""
        if not name or (call_id and call_id == partial.id):
            return False
        other_id, other_name = bool(call_id and partial.id), name != partial.name
        if partial.fragments:
            return (other_id or other_name or bool(arguments)) and partial.is_complete()
        return other_id and other_name

    def _join_name(self, name: str, more: str) -> str:
        """A name that comes in pieces is put together, one that comes again is not doubled."""
        if name not in self._tool_names and name + more in self._tool_names:
            return name + more
        if name in self._tool_names or more.startswith(name):
            return more if more.startswith(name) else name
        return name + more
