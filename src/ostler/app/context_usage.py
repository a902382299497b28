"""Lines for `/context`: the parts of the next request and their tokens."""

from ostler.backends.engine.request_breakdown import breakdown, to_tokens
from ostler.core.events import UsageReported
from ostler.core.protocols import Records, Session
from ostler.settings.schema import CompactionConfig
from ostler.text.sanitise import sanitise


def context_lines(session: Session, compaction: CompactionConfig) -> list[str]:
    """Return the total and a line for each part with its tokens and share of the context window.

    Empty before the first request and for backends other than the engine.
    """
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
    """Return the context window that was last reported, or 0."""
    events = (records[index].event for index in reversed(list(records.indexes_of(("usage_reported",)))))
    return next(
        (usage.context_limit for usage in events if isinstance(usage, UsageReported) and usage.context_limit), 0
    )


def _compaction_line(compaction: CompactionConfig) -> str:
    if not compaction.auto:
        return "compacted only by /compact (compaction.auto is off)"
    return f"compacted automatically at {compaction.threshold:.0%} of the context window (compaction.threshold)"


def _share(size: int, window: int) -> str:
    return f"  {size / window:6.1%}" if window else ""
