"""The parts of the next request with their sizes, and the lines for `/context`."""

from itertools import accumulate, pairwise

from ostler.backends.engine.history import History, find_prefix, is_manual_result, last_context_report
from ostler.backends.engine.plugins.context_window import CompactionSettings
from ostler.backends.engine.request_prefix import prefix_parts
from ostler.backends.engine.token_estimate import BYTES_PER_TOKEN, byte_size
from ostler.core.events import PromptPart, UsageReported
from ostler.core.protocols import Session
from ostler.core.session_view import Records
from ostler.core.tools import SERVER_NOTE
from ostler.models.model_types import AssistantMessage, RequestMessage, SystemMessage, ToolResultsMessage
from ostler.text.sanitise import sanitise

INSTRUCTIONS = "MCP instructions"


def context_lines(session: Session, compaction: CompactionSettings) -> list[str]:
    """Return the total and a line for each part with its tokens and share of the context window.

    Empty before the first request and for backends other than the engine.
    """
    records = session.records()
    parts = to_tokens(breakdown(records), records)
    if not parts:
        return []
    report = last_context_report(records)
    window = report.context_limit if report else 0
    rows = [(f"{part.name} ({part.origin})" if part.origin else part.name, part.size) for part in parts]
    width = min(max(len(name) for name, _ in rows), 60)
    lines = [sanitise(f"{name[:60]:<{width}} {size:>8}{_share(size, window)}") for name, size in rows]
    return [_total_line(sum(size for _, size in rows), window), *lines, _compaction_line(compaction)]


def _total_line(size: int, window: int) -> str:
    return f"{size} of {window} tokens ({size / window:.0%})" if window else f"{size} tokens"


def _compaction_line(compaction: CompactionSettings) -> str:
    if not compaction.auto:
        return "compacted only by /compact (compaction.auto is off)"
    return f"compacted automatically at {compaction.threshold:.0%} of the context window (compaction.threshold)"


def _share(size: int, window: int) -> str:
    return f"  {size / window:6.1%}" if window else ""


def breakdown(records: Records) -> list[PromptPart]:
    """Return the parts in the order in which they are sent, with sizes in bytes; empty before the first request."""
    prefix = find_prefix(records)
    if prefix is None:
        return []
    sums: dict[str, int] = {}
    for entry in History().follow(records).entries:
        name = "summary" if entry.seq < 0 else _category(entry.message)
        notes = _server_notes_size(entry.message)
        sums[name] = sums.get(name, 0) + entry.size - notes
        if notes:
            sums[INSTRUCTIONS] = sums.get(INSTRUCTIONS, 0) + notes
    return [*prefix_parts(prefix), *(PromptPart(name, "", size) for name, size in sums.items())]


def to_tokens(parts: list[PromptPart], records: Records) -> list[PromptPart]:
    """Convert the sizes to tokens, by the server's last count or, without one, the usual ratio."""
    counted, seq = _last_count(records)
    total = sum(part.size for part in parts) - _size_since(seq, records)
    ratio = total / counted if counted and total else BYTES_PER_TOKEN
    ends = [round(end / ratio) for end in accumulate((part.size for part in parts), initial=0)]
    sizes = (end - start for start, end in pairwise(ends))
    return [PromptPart(part.name, part.origin, size) for part, size in zip(parts, sizes, strict=True)]


def _last_count(records: Records) -> tuple[int, int]:
    """Return the context size that was last reported for the conversation and its record number."""
    for index in reversed(list(records.indexes_of(("usage_reported",)))):
        event = records[index].event
        if isinstance(event, UsageReported) and event.context_used:
            return event.context_used, records[index].seq
    return 0, 0


def _size_since(seq: int, records: Records) -> int:
    """Return the bytes added since that report; the reply recorded right after it was already counted."""
    entries = History().follow(records).entries
    for index, entry in enumerate(entries):
        if entry.seq > seq:
            skip_reply = isinstance(entry.message, AssistantMessage) and not is_manual_result(entry.message)
            return sum(later.size for later in entries[index + skip_reply :])
    return 0


def _server_notes_size(message: RequestMessage) -> int:
    """Return the bytes of the instructions of MCP servers in tool results."""
    if not isinstance(message, ToolResultsMessage):
        return 0
    starts = ((result.for_model, result.for_model.rfind(SERVER_NOTE)) for result in message.results)
    return sum(byte_size(text[start:]) for text, start in starts if start >= 0 and text.endswith("]"))


def _category(message: RequestMessage) -> str:
    if isinstance(message, AssistantMessage):
        return "answers and calls"
    if isinstance(message, ToolResultsMessage):
        return "tool results"
    return "reminders" if isinstance(message, SystemMessage) else "prompts"
