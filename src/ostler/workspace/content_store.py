"""Content-addressed store: small contents in packs, large ones as files."""

import fcntl
import hashlib
import os
import sqlite3
import zlib
from collections.abc import Collection
from contextlib import suppress

LARGE_CONTENT_BYTES = 1024 * 1024
_PACK_BYTES = 256 * 1024
_CLONE = 0x40049409  # FICLONE: copy by sharing blocks, if the file system supports it
_CHUNK_BYTES = 1024 * 1024
_ROW_BYTES = 64  # approximate size of a database row
_SEPARATE_FILE = 0  # pack number of a content stored as a file
_SCHEMA = """
CREATE TABLE IF NOT EXISTS content (digest BLOB PRIMARY KEY, pack INTEGER, start INTEGER, size INTEGER) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS separate ON content (start) WHERE pack = 0;
CREATE TABLE IF NOT EXISTS pack (number INTEGER PRIMARY KEY AUTOINCREMENT, kept INTEGER, data BLOB);
"""


class ContentMissing(Exception):
    """Raised when a content is missing from the store or damaged."""


def digest_of(data: bytes) -> bytes:
    """Return the hash under which a content is stored."""
    return hashlib.blake2b(data, digest_size=20).digest()


class ContentStore:
    """Contents by digest. The caller holds a transaction from `refresh` to `flush`."""

    def __init__(self, database: sqlite3.Connection, folder: str) -> None:
        self._database = database
        self._folder = folder
        os.makedirs(folder, mode=0o700, exist_ok=True)
        database.executescript(_SCHEMA)
        self._version = -1
        self._pending: dict[bytes, tuple[int, int]] = {}  # start and size in the buffer
        self._buffer = bytearray()
        self._last_pack: tuple[int, bytes] = (_SEPARATE_FILE, b"")
        self.used_bytes = 0  # size of all contents on disk

    def refresh(self) -> None:
        """Measure the contents again if another process has written since."""
        (version,) = self._database.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version = version
            self._measure()

    def discard_pending(self) -> None:
        """Drop contents that were not written, and reload on the next `refresh`."""
        self._pending, self._buffer, self._version = {}, bytearray(), -1

    def put(self, data: bytes) -> bytes:
        """Store bytes and return their digest."""
        digest = digest_of(data)
        if not self._is_known(digest):
            self._pending[digest] = (len(self._buffer), len(data))
            self._buffer += data
            if len(self._buffer) >= _PACK_BYTES:
                self.flush()
        return digest

    def put_file(self, fd: int) -> bytes:
        """Store the content of an open file, sharing its blocks if possible, and return its digest."""
        temp_path = f"{self._folder}/{os.getpid()}.tmp"
        out = os.open(temp_path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            shared = _copy(fd, out)
            digest = _hash_file(out)
            size = os.fstat(out).st_size
            if not self._is_known(digest):
                os.rename(temp_path, self._file_path(digest))
                disk_size = _ROW_BYTES if shared else size
                row = (digest, _SEPARATE_FILE, disk_size, size)
                self._database.execute("INSERT OR REPLACE INTO content VALUES (?, ?, ?, ?)", row)
                self.used_bytes += disk_size
        finally:
            os.close(out)
            with suppress(FileNotFoundError):
                os.unlink(temp_path)
        return digest

    def flush(self) -> None:
        """Write the pending contents to the database."""
        if not self._pending:
            return
        data = zlib.compress(self._buffer, 1)
        disk_size = len(data) + _ROW_BYTES * len(self._pending)
        number = self._database.execute("INSERT INTO pack (kept, data) VALUES (?, ?)", (disk_size, data)).lastrowid
        rows = [(digest, number, start, size) for digest, (start, size) in self._pending.items()]
        self._database.executemany("INSERT OR REPLACE INTO content VALUES (?, ?, ?, ?)", rows)
        self.used_bytes += disk_size
        self._pending, self._buffer = {}, bytearray()

    def get(self, digest: bytes) -> bytes:
        """Return the bytes of a digest. Raises `ContentMissing`."""
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
        """Delete all contents except `needed`; packs that contain needed ones are rewritten."""
        packs: dict[int, list[bytes]] = {}
        for digest, number in self._database.execute("SELECT digest, pack FROM content").fetchall():
            if digest not in needed:
                packs.setdefault(number, []).append(digest)
        for number, unneeded in packs.items():
            if number == _SEPARATE_FILE:
                for digest in unneeded:
                    with suppress(OSError):
                        os.unlink(self._file_path(digest))
            else:
                self._repack(number, needed)
            self._database.executemany("DELETE FROM content WHERE digest = ?", [(digest,) for digest in unneeded])
        self.flush()
        self._measure()
        self._database.execute("PRAGMA incremental_vacuum").fetchall()

    def _repack(self, number: int, needed: Collection[bytes]) -> None:
        rows = self._database.execute("SELECT digest, start, size FROM content WHERE pack = ?", (number,)).fetchall()
        needed_rows = [row for row in rows if row[0] in needed]
        data = self._read_pack(number) if needed_rows else b""
        self._database.execute("DELETE FROM pack WHERE number = ?", (number,))
        self._database.execute("DELETE FROM content WHERE pack = ?", (number,))
        for _, start, size in needed_rows:
            self.put(data[start : start + size])

    def _read_pack(self, number: int) -> bytes:
        """Return the data of a pack. The last one is cached, because its contents are often read together."""
        if number != self._last_pack[0]:
            self._last_pack = (number, self._decompress_pack(number))
        return self._last_pack[1]

    def _decompress_pack(self, number: int) -> bytes:
        row = self._database.execute("SELECT data FROM pack WHERE number = ?", (number,)).fetchone()
        try:
            return zlib.decompress(row[0])
        except (TypeError, zlib.error):
            raise ContentMissing from None

    def _is_known(self, digest: bytes) -> bool:
        query = "SELECT 1 FROM content WHERE digest = ?"
        return digest in self._pending or self._database.execute(query, (digest,)).fetchone() is not None

    def _measure(self) -> None:
        (packed,) = self._database.execute("SELECT TOTAL(kept) FROM pack").fetchone()
        (separate,) = self._database.execute("SELECT TOTAL(start) FROM content WHERE pack = 0").fetchone()
        self.used_bytes = int(packed + separate)

    def _file_path(self, digest: bytes) -> str:
        return f"{self._folder}/{digest.hex()}"


def _copy(source: int, out: int) -> bool:
    """Copy an open file. Return True if the copy shares its blocks and uses almost no space."""
    try:
        fcntl.ioctl(out, _CLONE, source)
        return True
    except OSError:
        pass
    os.lseek(source, 0, os.SEEK_SET)
    while chunk := os.read(source, _CHUNK_BYTES):
        os.write(out, chunk)
    return False


def _hash_file(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    digest = hashlib.blake2b(digest_size=20)
    while chunk := os.read(fd, _CHUNK_BYTES):
        digest.update(chunk)
    return digest.digest()
