"""What the next request is made of, piece by piece, with the size of each."""

from itertools import accumulate, pairwise

from ostler.backends.engine.history import History, find_prefix, is_manual_result
from ostler.backends.engine.request_prefix import prefix_parts
from ostler.backends.engine.token_estimate import BYTES_PER_TOKEN
from ostler.core.events import PromptPart, UsageReported
from ostler.core.protocols import Records
from ostler.models.model_types import AssistantMessage, RequestMessage, SystemMessage, ToolResultsMessage


def breakdown(records: Records) -> list[PromptPart]:
    """In the order in which it is sent; sizes in bytes. Nothing before a session's first request."""
    built = find_prefix(records)
    if built is None:
        return []
    sums: dict[str, int] = {}
    for entry in History().follow(records).entries:
        name = "summary" if entry.seq < 0 else _category(entry.message)
        sums[name] = sums.get(name, 0) + entry.size
    return [*prefix_parts(built), *(PromptPart(name, "", size) for name, size in sums.items())]


def to_tokens(parts: list[PromptPart], records: Records) -> list[PromptPart]:
    """The same in tokens, by what the server counted last, else by what tokens usually are."""
    counted, seq = _last_count(records)
    total = sum(part.size for part in parts) - _size_since(seq, records)
    ratio = total / counted if counted and total else BYTES_PER_TOKEN
    ends = [round(end / ratio) for end in accumulate((part.size for part in parts), initial=0)]  # so that the sum holds
    sizes = (end - begin for begin, end in pairwise(ends))
    return [PromptPart(part.name, part.origin, size) for part, size in zip(parts, sizes, strict=True)]


def _last_count(records: Records) -> tuple[int, int]:
    """What the conversation itself took when it was last counted, and where; calls beside it fill no context."""
    for at in reversed(list(records.indexes_of(("usage_reported",)))):
        event = records[at].event
        if isinstance(event, UsageReported) and event.context_used:
            return event.context_used, records[at].seq
    return 0, 0


def _size_since(seq: int, records: Records) -> int:
    """The bytes that were not counted; the reply was, though it is told after its count."""
    entries = History().follow(records).entries
    for at, entry in enumerate(entries):
        if entry.seq > seq:
            reply = isinstance(entry.message, AssistantMessage) and not is_manual_result(entry.message)
            return sum(later.size for later in entries[at + reply :])
    return 0


def _category(message: RequestMessage) -> str:
    if isinstance(message, AssistantMessage):
        return "answers and calls"
    if isinstance(message, ToolResultsMessage):
        return "results of tools"
    return "reminders" if isinstance(message, SystemMessage) else "prompts"
