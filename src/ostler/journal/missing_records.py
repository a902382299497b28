"""Tells that records are gone of which nothing is left, where that is certain."""

from ostler.core.events import SessionOpened
from ostler.core.protocols import Records


def describe_missing(journal_records: Records, session_id: str, known_seq: int, skipped: int) -> list[str]:
    """`known_seq` is a number that the session had reached; `skipped` records are told of as damaged already.

    Numbers have no gaps where a session began as itself; a copy of another leaves some of its records out.
    """
    last = journal_records[-1].seq if len(journal_records) else 0
    gone = max(0, known_seq - last)
    if _is_original(journal_records, session_id):
        gone += last - len(journal_records)
    gone -= skipped
    if gone <= 0:
        return []
    records = "1 record is" if gone == 1 else f"{gone} records are"
    return [f"journal.jsonl: {records} missing without a trace; the rest is whole"]


def _is_original(records: Records, session_id: str) -> bool:
    first = records[0] if len(records) else None
    return first is not None and isinstance(first.event, SessionOpened) and first.event.session_id == session_id
