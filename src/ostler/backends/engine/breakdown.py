"""What the next request is made of, piece by piece, with the size of each."""

from itertools import accumulate, pairwise

from ostler.backends.engine.history import History, by_hand, prefix
from ostler.backends.engine.measure import BYTES_PER_TOKEN
from ostler.backends.engine.prefix import pieces
from ostler.models.words import ModelSaid, Said, SystemSaid, ToolsSaid
from ostler.vocabulary.events import PromptPart, UsageReported
from ostler.vocabulary.seams import Past


def breakdown(records: Past) -> list[PromptPart]:
    """In the order in which it is sent; sizes in bytes. Nothing before a session's first request."""
    built = prefix(records)
    if built is None:
        return []
    sums: dict[str, int] = {}
    for entry in History().follow(records).entries:
        name = "summary" if entry.seq < 0 else _kind(entry.said)
        sums[name] = sums.get(name, 0) + entry.size
    return [*pieces(built), *(PromptPart(name, "", size) for name, size in sums.items())]


def in_tokens(parts: list[PromptPart], records: Past) -> list[PromptPart]:
    """The same in tokens, by what the server counted last, else by what tokens usually are."""
    counted, seq = _counted(records)
    total = sum(part.size for part in parts) - _since(seq, records)
    ratio = total / counted if counted and total else BYTES_PER_TOKEN
    ends = [round(end / ratio) for end in accumulate((part.size for part in parts), initial=0)]  # so that the sum holds
    sizes = (end - begin for begin, end in pairwise(ends))
    return [PromptPart(part.name, part.origin, size) for part, size in zip(parts, sizes, strict=True)]


def _counted(records: Past) -> tuple[int, int]:
    """What the conversation itself took when it was last counted, and where; calls beside it fill no context."""
    for at in reversed(list(records.of(("usage_reported",)))):
        event = records[at].event
        if isinstance(event, UsageReported) and event.context_used:
            return event.context_used, records[at].seq
    return 0, 0


def _since(seq: int, records: Past) -> int:
    """The bytes that were not counted; the reply was, though it is told after its count."""
    entries = History().follow(records).entries
    for at, entry in enumerate(entries):
        if entry.seq > seq:
            reply = isinstance(entry.said, ModelSaid) and not by_hand(entry.said)
            return sum(later.size for later in entries[at + reply :])
    return 0


def _kind(said: Said) -> str:
    if isinstance(said, ModelSaid):
        return "answers and calls"
    if isinstance(said, ToolsSaid):
        return "results of tools"
    return "reminders" if isinstance(said, SystemSaid) else "prompts"
