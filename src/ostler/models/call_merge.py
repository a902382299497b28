"""Whole calls out of the pieces in which servers send them, so that no argument is lost and no id comes twice."""

from collections.abc import Iterable

from ostler.models.call_ids import CallIds
from ostler.models.loose_json import NotJson, read_json
from ostler.models.words import CallChunk

_CHECKS = 8


class _Draft:
    """A call that is still being written."""

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.pieces: list[str] = []
        self._checks = 0

    def whole(self) -> bool:
        """Whether the arguments so far are a finished object; looked at a few times only, to stay linear."""
        self._checks += 1
        if self._checks > _CHECKS or not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(read_json("".join(self.pieces).encode("utf-8", "replace")), dict)
        except NotJson:
            return False


class CallMerger:
    """Pieces in, whole calls out, in the order in which they began. `known` are the tools' names, `taken` old ids."""

    def __init__(self, known: Iterable[str] = (), taken: Iterable[str] = ()) -> None:
        self._known = frozenset(known)
        self._ids = CallIds(taken)
        self._drafts: list[_Draft] = []
        self._by_index: dict[int, _Draft] = {}
        self._by_id: dict[str, _Draft] = {}

    def add(self, index: int | None, call_id: str, name: str, arguments: str) -> None:
        """One piece. Its place is told by index or else by id; without either it goes on with the last call."""
        draft = self._place(index, call_id, name, arguments)
        draft.id = draft.id or call_id
        if name:
            draft.name = self._joined(draft.name, name)
        if arguments:
            if draft.pieces == ["{}"]:  # some servers begin with an empty object, then send the real one
                draft.pieces.clear()
            draft.pieces.append(arguments)

    def calls(self) -> list[CallChunk]:
        """All calls, whole, each with an id that this conversation has not seen."""
        drafts = [draft for draft in self._drafts if draft.name or draft.pieces]
        return [CallChunk(self._ids.fresh(draft.id), draft.name, "".join(draft.pieces) or "{}") for draft in drafts]

    def _place(self, index: int | None, call_id: str, name: str, arguments: str) -> _Draft:
        if index is not None:
            draft = self._by_index.get(index)
        elif call_id:
            draft = self._by_id.get(call_id)
        else:
            draft = self._drafts[-1] if self._drafts else None
        if draft is None or self._another(draft, call_id, name, arguments):
            draft = _Draft(call_id)
            self._drafts.append(draft)
        if index is not None:
            self._by_index[index] = draft
        if call_id:
            self._by_id.setdefault(call_id, draft)
        return draft

    def _another(self, draft: _Draft, call_id: str, name: str, arguments: str) -> bool:
        """Whether a piece at a known place begins a new call: some servers count every call as the first."""
        if not name or (call_id and call_id == draft.id):
            return False
        other_id, other_name = bool(call_id and draft.id), name != draft.name
        if draft.pieces:
            return (other_id or other_name or bool(arguments)) and draft.whole()
        return other_id and other_name

    def _joined(self, name: str, more: str) -> str:
        """A name that comes in pieces is put together, one that comes again is not doubled."""
        if name not in self._known and name + more in self._known:
            return name + more
        if name in self._known or more.startswith(name):
            return more if more.startswith(name) else name
        return name + more
