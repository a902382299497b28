"""Appends records to two sessions of a database until it is killed; prints each number that was synced."""

import sys
from pathlib import Path

from ostler.core.events import Envelope, Notice
from ostler.storage.sqlite_database import SqliteDatabase
from ostler.storage.sqlite_store import SqliteSessions

store = SqliteSessions(SqliteDatabase(Path(sys.argv[1]))).of("alice")
journals = [store.open("p", name) for name in ("s1", "s2")]
seqs = [journal.records()[-1].seq if len(journal.records()) else 0 for journal in journals]
while True:
    for index, journal in enumerate(journals):
        for _ in range(3):
            seqs[index] += 1
            journal.append(Envelope(seqs[index], 0.0, Notice("info", "x" * (seqs[index] * 37 % 5000))))
        journal.sync()
        print(journal.session_id, seqs[index], flush=True)
