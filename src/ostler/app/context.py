"""What a session's next request is made of, in lines for a person."""

from ostler.backends.engine.breakdown import breakdown, in_tokens
from ostler.settings.schema import Compaction
from ostler.text.sanitise import sanitise
from ostler.vocabulary.events import UsageReported
from ostler.vocabulary.seams import Past, Session


def context_lines(session: Session, shortening: Compaction) -> list[str]:
    """The sum, and each piece with its tokens and its share of the window; nothing before the first request, nor
    where another program makes the requests."""
    records = session.records()
    parts = in_tokens(breakdown(records), records)
    if not parts:
        return []
    window = _window(records)
    rows = [(f"{part.name} ({part.origin})" if part.origin else part.name, part.size) for part in parts]
    width = min(max(len(name) for name, _ in rows), 60)
    lines = [sanitise(f"{name[:60]:<{width}} {size:>8}{_share(size, window)}") for name, size in rows]
    return [_sum(sum(size for _, size in rows), window), *lines, _when(shortening)]


def _sum(size: int, window: int) -> str:
    return f"{size} of {window} tokens ({size / window:.0%})" if window else f"{size} tokens"


def _window(records: Past) -> int:
    """As the conversation's own calls told it last; those beside it fill no context."""
    events = (records[at].event for at in reversed(list(records.of(("usage_reported",)))))
    return next((told.context_limit for told in events if isinstance(told, UsageReported) and told.context_limit), 0)


def _when(shortening: Compaction) -> str:
    if not shortening.auto:
        return "it is shortened only by /compact (compaction.auto is off)"
    return f"it is shortened by itself at {shortening.threshold:.0%} of the window (compaction.threshold)"


def _share(size: int, window: int) -> str:
    return f"  {size / window:6.1%}" if window else ""
