"""Lines for `/context`: the parts of the next request and their tokens."""

from ostler.backends.engine.history import last_context_report
from ostler.backends.engine.plugins.context_window import CompactionSettings
from ostler.backends.engine.request_breakdown import breakdown, to_tokens
from ostler.core.protocols import Session
from ostler.text.sanitise import sanitise


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
