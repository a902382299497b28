"""An SQLite database with one writing thread, which commits the work of all callers together."""

import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from ostler.core.errors import JournalError, OstlerError, UsageError
from ostler.storage.process_mark import ProcessMark
from ostler.storage.sqlite_schema import migrate

T = TypeVar("T")
BUSY_SECONDS = 20  # for other processes that write, such as `ostler serve token`
MAX_BATCH = 200

Work = Callable[[sqlite3.Connection], T]


class _Task:
    """Work for the writing thread; `future` is resolved after the commit."""

    def __init__(self, work: Work[Any], on_commit: Callable[[], None]) -> None:
        self.work = work
        self.on_commit = on_commit
        self.future: Future[Any] = Future()
        self.result: Any = None


class SqliteDatabase:
    """Writes in one thread and reads in any. A write is on disk when its future is resolved.

    WAL mode lets readers work during a write. `synchronous = FULL` syncs the log at each commit, because with NORMAL a
    power failure could undo a committed record of a call that has already changed files. The syncs are few, since the
    thread commits everything that waits at once.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises `UsageError` if it cannot be used."""
        self.path = path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            self._writer = _connect(path)
            self._reader = _connect(path)
            self.mark = ProcessMark(path.with_name(f"{path.name}-processes"))
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"{path} cannot be used as a database: {error}") from None
        self._reader.execute("PRAGMA query_only = ON")
        self._read_lock = threading.Lock()
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._write_all, name="database", daemon=True)
        self._thread.start()

    def submit(self, work: Work[T], on_commit: Callable[[], None] = lambda: None) -> "Future[T]":
        """Run work in the writing thread, in a transaction. `on_commit` is called there before the future resolves."""
        if self._closed:
            raise JournalError("the database is closed", code="session_closed")
        task = _Task(work, on_commit)
        self._tasks.put(task)
        return task.future

    def write(self, work: Work[T]) -> T:
        """Run work in the writing thread and wait for the commit. Raises `JournalError` if it cannot be written."""
        return self.result(self.submit(work))

    def result(self, future: "Future[T]") -> T:
        """Return the result of submitted work. Raises `JournalError` for a failure of the database."""
        try:
            return future.result()
        except sqlite3.Error as error:
            raise self._failure(error) from None

    def read(self, work: Work[T]) -> T:
        """Run a query in this thread; it sees everything that is committed. Raises `JournalError`."""
        try:
            with self._read_lock:
                return work(self._reader)
        except sqlite3.Error as error:
            raise self._failure(error) from None

    def close(self) -> None:
        """Finish the submitted work and close the file."""
        if self._closed:
            return
        self._closed = True
        self._tasks.put(None)
        self._thread.join()
        with self._read_lock:
            self._reader.close()
        self._writer.close()
        self.mark.remove()

    def _failure(self, error: sqlite3.Error) -> JournalError:
        hint = "free some space" if "full" in str(error) else ""
        return JournalError(f"{self.path} cannot be read or written: {error}; earlier records are intact", hint=hint)

    # -- the writing thread ----------------------------------------------------------------------------------------

    def _write_all(self) -> None:
        ended = False
        while not ended:
            tasks = [self._tasks.get()]
            while len(tasks) < MAX_BATCH and tasks[-1] is not None:
                try:
                    tasks.append(self._tasks.get_nowait())
                except queue.Empty:
                    break
            ended = tasks[-1] is None
            self._commit_together([task for task in tasks if task])

    def _commit_together(self, tasks: list[_Task]) -> None:
        """Run each task in a savepoint, so that a failed one does not undo the others, and commit all of them."""
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            done = [task for task in tasks if self._run(task)]
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            for task in tasks:
                if not task.future.done():
                    task.future.set_exception(error)
            return
        for task in done:
            task.on_commit()
            task.future.set_result(task.result)

    def _run(self, task: _Task) -> bool:
        self._writer.execute("SAVEPOINT task")
        try:
            task.result = task.work(self._writer)
        except Exception as error:
            if not self._writer.in_transaction:  # SQLite has rolled everything back, for example on a full disk
                raise sqlite3.OperationalError(str(error)) from error
            self._writer.execute("ROLLBACK TO task")
            self._writer.execute("RELEASE task")
            task.future.set_exception(error)
            return False
        self._writer.execute("RELEASE task")
        return True

    def _roll_back(self) -> None:
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        except sqlite3.Error:
            return


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise UsageError(f"{path} cannot be used as a database: put it on a local disk")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA secure_delete = ON")
        db.execute(f"PRAGMA journal_size_limit = {64 * 1024 * 1024}")
        migrate(db, str(path))
    except (sqlite3.Error, OstlerError):
        db.close()
        raise
    return db
