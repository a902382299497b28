"""The users of a server and their tokens in the SQLite database. Only hashes of secrets are stored.

A token has 256 random bits, so a plain SHA-256 is enough: there is nothing to guess. Id and secret are separate parts
of the text. The id finds the row, and the secret is compared in constant time.
"""

import hashlib
import hmac
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

from ostler.core.accounts import ALL_SCOPES, AccessScope, AccountToken, IssuedToken, UserLimits
from ostler.core.errors import UsageError
from ostler.storage.sqlite_database import SqliteDatabase

MAX_ATTEMPTS = 5  # for one pairing code
USED_STEP = 60.0  # seconds; the time of the last use is not written more often
_TOKEN = re.compile(r"ostler_([0-9a-f]{16})_[0-9a-f]{64}")
_CODE = re.compile(r"([A-Z2-7]{4})([A-Z2-7]{12})")
_USER = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_COLUMNS = "id, user, scopes, label, created, expires, revoked, used"
_NO_HASH = bytes(32)


class SqliteAccounts:
    """Implements `Accounts`. `clock` returns seconds since 1970."""

    def __init__(self, database: SqliteDatabase, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def issue(
        self, user: str, scopes: Collection[AccessScope] = ALL_SCOPES, lifetime: float = 0, label: str = ""
    ) -> IssuedToken:
        _check_user(user)
        if not scopes or not ALL_SCOPES.issuperset(scopes):
            raise UsageError(f"a token needs at least one scope of {', '.join(sorted(ALL_SCOPES))}")
        _check_lifetime(lifetime)
        issued = self._make(user, frozenset(scopes), lifetime, label)
        self._database.write(lambda db: _insert(db, issued))
        return issued

    def authenticate(self, text: str) -> AccountToken | None:
        match = _TOKEN.fullmatch(text)
        token_id = match[1] if match else ""
        query = f"SELECT hash, {_COLUMNS} FROM tokens WHERE id = ?"
        row = self._database.read(lambda db: db.execute(query, [token_id]).fetchone())
        is_equal = hmac.compare_digest(bytes(row[0]) if row else _NO_HASH, _hash(text))
        if row is None or not is_equal:
            return None
        token, now = _read_token(row[1:]), self._clock()
        if not token.is_valid(now):
            return None
        if abs(now - token.used) >= USED_STEP:
            self._database.submit(lambda db: db.execute("UPDATE tokens SET used = ? WHERE id = ?", [now, token.id]))
        return token

    def valid(self, token_ids: Collection[str]) -> frozenset[str]:
        wanted, now = msgspec.json.encode(sorted(token_ids)).decode(), self._clock()
        query = "SELECT id FROM tokens WHERE id IN (SELECT value FROM json_each(?)) AND NOT revoked"
        query += " AND (NOT expires OR expires > ?)"
        return frozenset(row[0] for row in self._database.read(lambda db: db.execute(query, [wanted, now]).fetchall()))

    def tokens(self) -> Sequence[AccountToken]:
        query = f"SELECT {_COLUMNS} FROM tokens ORDER BY created, id"
        return [_read_token(row) for row in self._database.read(lambda db: db.execute(query).fetchall())]

    def has_valid_token(self) -> bool:
        now = self._clock()
        return any(token.is_valid(now) for token in self.tokens())

    def revoke(self, token_id: str) -> bool:
        update = "UPDATE tokens SET revoked = ? WHERE id = ? AND NOT revoked"
        values = [self._clock(), token_id]
        return self._database.write(lambda db: db.execute(update, values).rowcount) > 0

    def revoke_user(self, user: str) -> int:
        return self._database.write(lambda db: _revoke_user(db, user, self._clock()))

    def limits(self, user: str) -> UserLimits:
        query = "SELECT limits FROM users WHERE name = ?"
        row = self._database.read(lambda db: db.execute(query, [user]).fetchone())
        return msgspec.json.decode(row[0], type=UserLimits) if row else UserLimits()

    def set_limits(self, user: str, limits: UserLimits) -> None:
        _check_user(user)
        if min(msgspec.structs.astuple(limits)) < 0:
            raise UsageError("a limit must not be negative", hint="use 0 for the limit of the server")
        update, values = "UPDATE users SET limits = ? WHERE name = ?", [msgspec.json.encode(limits), user]

        def write(db: sqlite3.Connection) -> None:
            _insert_user(db, user, self._clock())
            db.execute(update, values)

        self._database.write(write)

    def open_pairing(self, user: str, lifetime: float, token_lifetime: float = 0) -> str:
        _check_user(user)
        _check_lifetime(token_lifetime)
        if lifetime <= 0:
            raise UsageError("a pairing code needs a lifetime of more than 0 seconds")
        code = "".join(secrets.choice(_BASE32) for _ in range(16))
        now = self._clock()
        row = [code[:4], user, _hash(code), now + lifetime, token_lifetime]
        self._database.write(lambda db: _insert_pairing(db, row, now))
        return "-".join(code[start : start + 4] for start in range(0, 16, 4))

    def exchange(self, code: str, label: str = "") -> IssuedToken | None:
        plain = code.upper().replace("-", "").strip()
        if not _CODE.fullmatch(plain):
            return None
        return self._database.write(lambda db: self._exchange(db, plain, label))

    def _exchange(self, db: sqlite3.Connection, code: str, label: str) -> IssuedToken | None:
        query = "SELECT user, hash, expires, token_lifetime, attempts FROM pairings WHERE id = ?"
        row = db.execute(query, [code[:4]]).fetchone()
        is_equal = hmac.compare_digest(bytes(row[1]) if row else _NO_HASH, _hash(code))
        if row is None:
            return None
        user, _, expires, lifetime, attempts = row
        if is_equal and attempts < MAX_ATTEMPTS and self._clock() < expires:
            db.execute("DELETE FROM pairings WHERE id = ?", [code[:4]])
            issued = self._make(user, ALL_SCOPES, lifetime, label)
            _insert(db, issued)
            return issued
        db.execute("UPDATE pairings SET attempts = attempts + 1 WHERE id = ?", [code[:4]])
        return None

    def _make(self, user: str, scopes: frozenset[AccessScope], lifetime: float, label: str) -> IssuedToken:
        now, token_id = self._clock(), secrets.token_hex(8)
        shown = "".join(character for character in label if character.isprintable())[:80]
        expires = now + lifetime if lifetime else 0.0
        token = AccountToken(id=token_id, user=user, scopes=scopes, label=shown, created=now, expires=expires)
        return IssuedToken(token, f"ostler_{token_id}_{secrets.token_hex(32)}")


def _insert(db: sqlite3.Connection, issued: IssuedToken) -> None:
    token = issued.token
    _insert_user(db, token.user, token.created)
    scopes = " ".join(sorted(token.scopes))
    values = [token.id, token.user, _hash(issued.text), scopes, token.label, token.created, token.expires]
    columns = "id, user, hash, scopes, label, created, expires"
    db.execute(f"INSERT INTO tokens({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def _insert_pairing(db: sqlite3.Connection, row: list[object], now: float) -> None:
    db.execute("DELETE FROM pairings WHERE expires <= ? OR attempts >= ?", [now, MAX_ATTEMPTS])
    _insert_user(db, str(row[1]), now)
    db.execute("INSERT OR REPLACE INTO pairings(id, user, hash, expires, token_lifetime) VALUES (?, ?, ?, ?, ?)", row)


def _insert_user(db: sqlite3.Connection, name: str, now: float) -> None:
    db.execute("INSERT OR IGNORE INTO users(name, created) VALUES (?, ?)", [name, now])


def _revoke_user(db: sqlite3.Connection, user: str, now: float) -> int:
    db.execute("DELETE FROM pairings WHERE user = ?", [user])
    return db.execute("UPDATE tokens SET revoked = ? WHERE user = ? AND NOT revoked", [now, user]).rowcount


def _read_token(row: tuple[Any, ...]) -> AccountToken:
    fields = dict(zip(_COLUMNS.split(", "), row, strict=True))
    known = frozenset(scope for scope in ALL_SCOPES if scope in fields["scopes"].split())
    return AccountToken(**fields | {"scopes": known})


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _check_user(user: str) -> None:
    if not _USER.fullmatch(user):
        raise UsageError(
            f"{user[:80]!r} is not a user name: use up to 64 lower-case letters, digits and . _ @ -, "
            "beginning with a letter or digit"
        )


def _check_lifetime(lifetime: float) -> None:
    if not 0 <= lifetime < 1e10:  # also false for nan
        raise UsageError("the lifetime of a token must be a positive number of seconds, or 0 for no limit")
