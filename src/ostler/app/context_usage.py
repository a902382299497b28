"""What a session's next request is made of, in lines for a person."""

from ostler.backends.engine.request_breakdown import breakdown, to_tokens
from ostler.core.events import UsageReported
from ostler.core.protocols import Records, Session
from ostler.settings.schema import CompactionConfig
from ostler.text.sanitise import sanitise


def context_lines(session: Session, compaction: CompactionConfig) -> list[str]:
    """The sum, and each piece with its tokens and its share of the window; nothing before the first request, nor
    where another program makes the requests."""
    records = session.records()
    parts = to_tokens(breakdown(records), records)
    if not parts:
        return []
    window = _window_size(records)
    rows = [(f"{part.name} ({part.origin})" if part.origin else part.name, part.size) for part in parts]
    width = min(max(len(name) for name, _ in rows), 60)
    lines = [sanitise(f"{name[:60]:<{width}} {size:>8}{_share(size, window)}") for name, size in rows]
    return [_total_line(sum(size for _, size in rows), window), *lines, _compaction_line(compaction)]


def _total_line(size: int, window: int) -> str:
    return f"{size} of {window} tokens ({size / window:.0%})" if window else f"{size} tokens"


def _window_size(records: Records) -> int:
    """As the conversation's own calls told it last; those beside it fill no context."""
    events = (records[at].event for at in reversed(list(records.indexes_of(("usage_reported",)))))
    return next((told.context_limit for told in events if isinstance(told, UsageReported) and told.context_limit), 0)


def _compaction_line(compaction: CompactionConfig) -> str:
    if not compaction.auto:
        return "it is shortened only by /compact (compaction.auto is off)"
    return f"it is shortened by itself at {compaction.threshold:.0%} of the window (compaction.threshold)"


def _share(size: int, window: int) -> str:
    return f"  {size / window:6.1%}" if window else ""
