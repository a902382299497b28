"""A shelf of file contents, each kept once under its digest: small ones packed together, large ones as files."""

import fcntl
import hashlib
import os
import sqlite3
import zlib
from collections.abc import Collection
from contextlib import suppress

LARGE_CONTENT_BYTES = 1024 * 1024
_PACK_BYTES = 256 * 1024
_CLONE = 0x40049409  # FICLONE: a copy that shares its blocks, where the file system can
_CHUNK_BYTES = 1024 * 1024
_ROW_BYTES = 64  # about what a digest costs in the books
_SEPARATE_FILE = 0  # the pack of a content that is a file of its own
_SCHEMA = """
CREATE TABLE IF NOT EXISTS content (digest BLOB PRIMARY KEY, pack INTEGER, start INTEGER, size INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pack (number INTEGER PRIMARY KEY AUTOINCREMENT, kept INTEGER, data BLOB);
"""


class ContentMissing(Exception):
    """A content that should be on the shelf is not, or is damaged."""


def digest_of(data: bytes) -> bytes:
    """The name of a content."""
    return hashlib.blake2b(data, digest_size=20).digest()


class ContentStore:
    """Contents by digest; all changes happen between `open` and `flush`, inside a transaction of the caller's."""

    def __init__(self, database: sqlite3.Connection, folder: str) -> None:
        self._database = database
        self._folder = folder
        os.makedirs(folder, mode=0o700, exist_ok=True)
        database.executescript(_SCHEMA)
        self._known: set[bytes] = set()
        self._version = -1
        self._pending: list[tuple[bytes, int, int]] = []
        self._buffer = bytearray()
        self._last_pack: tuple[int, bytes] = (_SEPARATE_FILE, b"")
        self.used_bytes = 0  # what the contents take on disk

    def refresh(self) -> None:
        """Learn what is there, if anybody else has written since."""
        (version,) = self._database.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version = version
            self._load_known()

    def discard_pending(self) -> None:
        """What was put did not get written; start over from what is there."""
        self._pending, self._buffer, self._version = [], bytearray(), -1

    def put(self, data: bytes) -> bytes:
        """Keep some bytes; their digest."""
        digest = digest_of(data)
        if digest not in self._known:
            self._known.add(digest)
            self._pending.append((digest, len(self._buffer), len(data)))
            self._buffer += data
            if len(self._buffer) >= _PACK_BYTES:
                self.flush()
        return digest

    def put_file(self, fd: int) -> bytes:
        """Keep what an open file holds, sharing its blocks where that is possible; the digest."""
        scratch = f"{self._folder}/{os.getpid()}.tmp"
        out = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            shared = _copy(fd, out)
            digest = _hash_file(out)
            size = os.fstat(out).st_size
            if digest not in self._known:
                os.rename(scratch, self._file_path(digest))
                kept = _ROW_BYTES if shared else size
                row = (digest, _SEPARATE_FILE, kept, size)
                self._database.execute("INSERT OR REPLACE INTO content VALUES (?, ?, ?, ?)", row)
                self._known.add(digest)
                self.used_bytes += kept
        finally:
            os.close(out)
            with suppress(FileNotFoundError):
                os.unlink(scratch)
        return digest

    def flush(self) -> None:
        """Write what was put and is still in memory."""
        if not self._pending:
            return
        data = zlib.compress(self._buffer, 1)
        kept = len(data) + _ROW_BYTES * len(self._pending)
        number = self._database.execute("INSERT INTO pack (kept, data) VALUES (?, ?)", (kept, data)).lastrowid
        rows = [(digest, number, start, size) for digest, start, size in self._pending]
        self._database.executemany("INSERT OR REPLACE INTO content VALUES (?, ?, ?, ?)", rows)
        self.used_bytes += kept
        self._pending, self._buffer = [], bytearray()

    def get(self, digest: bytes) -> bytes:
        """The bytes of a digest, as they were."""
        row = self._database.execute("SELECT pack, start, size FROM content WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            raise ContentMissing
        number, start, size = row
        if number == _SEPARATE_FILE:
            try:
                with open(self._file_path(digest), "rb") as file:
                    data = file.read()
            except OSError:
                raise ContentMissing from None
        else:
            data = self._read_pack(number)[start : start + size]
        if digest_of(data) != digest:
            raise ContentMissing
        return data

    def delete_except(self, needed: Collection[bytes]) -> None:
        """Let go of every content that nothing needs any more; what shares a pack with it is packed anew."""
        packs: dict[int, list[bytes]] = {}
        for digest, number in self._database.execute("SELECT digest, pack FROM content").fetchall():
            if digest not in needed:
                packs.setdefault(number, []).append(digest)
        for number, unwanted in packs.items():
            if number == _SEPARATE_FILE:
                for digest in unwanted:
                    with suppress(OSError):
                        os.unlink(self._file_path(digest))
            else:
                self._repack(number, needed)
            self._database.executemany("DELETE FROM content WHERE digest = ?", [(digest,) for digest in unwanted])
        self.flush()
        self._load_known()
        self._database.execute("PRAGMA incremental_vacuum").fetchall()

    def _repack(self, number: int, needed: Collection[bytes]) -> None:
        rows = self._database.execute("SELECT digest, start, size FROM content WHERE pack = ?", (number,)).fetchall()
        stay = [row for row in rows if row[0] in needed]
        data = self._read_pack(number) if stay else b""
        self._database.execute("DELETE FROM pack WHERE number = ?", (number,))
        for digest, start, size in stay:
            self._known.discard(digest)
            self.put(data[start : start + size])

    def _read_pack(self, number: int) -> bytes:
        """What a pack holds; the last one is remembered, for neighbours are wanted together."""
        if number != self._last_pack[0]:
            self._last_pack = (number, self._decompress_pack(number))
        return self._last_pack[1]

    def _decompress_pack(self, number: int) -> bytes:
        row = self._database.execute("SELECT data FROM pack WHERE number = ?", (number,)).fetchone()
        try:
            return zlib.decompress(row[0])
        except (TypeError, zlib.error):
            raise ContentMissing from None

    def _load_known(self) -> None:
        self._known = {row[0] for row in self._database.execute("SELECT digest FROM content")}
        (packed,) = self._database.execute("SELECT TOTAL(kept) FROM pack").fetchone()
        (apart,) = self._database.execute(
            "SELECT TOTAL(start) FROM content WHERE pack = ?", (_SEPARATE_FILE,)
        ).fetchone()
        self.used_bytes = int(packed + apart)

    def _file_path(self, digest: bytes) -> str:
        return f"{self._folder}/{digest.hex()}"


def _copy(source: int, out: int) -> bool:
    """Copy an open file; True when the copy shares its blocks and costs next to nothing."""
    try:
        fcntl.ioctl(out, _CLONE, source)
        return True
    except OSError:
        pass
    os.lseek(source, 0, os.SEEK_SET)
    while piece := os.read(source, _CHUNK_BYTES):
        os.write(out, piece)
    return False


def _hash_file(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    digest = hashlib.blake2b(digest_size=20)
    while piece := os.read(fd, _CHUNK_BYTES):
        digest.update(piece)
    return digest.digest()
