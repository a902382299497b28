"""Tells that records are gone of which nothing is left, where that is certain."""

from ostler.vocabulary.events import SessionOpened
from ostler.vocabulary.seams import Past


def missing_told(past: Past, session_id: str, known_seq: int, skipped: int) -> list[str]:
    """`known_seq` is a number that the session had reached; `skipped` records are told of as damaged already.

    Numbers have no gaps where a session began as itself; a copy of another leaves some of its records out.
    """
    last = past[-1].seq if len(past) else 0
    gone = max(0, known_seq - last)
    if _began_as_itself(past, session_id):
        gone += last - len(past)
    gone -= skipped
    if gone <= 0:
        return []
    records = "1 record is" if gone == 1 else f"{gone} records are"
    return [f"journal.jsonl: {records} missing without a trace; the rest is whole"]


def _began_as_itself(past: Past, session_id: str) -> bool:
    first = past[0] if len(past) else None
    return first is not None and isinstance(first.event, SessionOpened) and first.event.session_id == session_id
