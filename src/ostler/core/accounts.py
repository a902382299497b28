"""The protocol of a server's accounts: users, their tokens, and one-time codes that become tokens."""

from collections.abc import Collection, Sequence
from typing import Literal, Protocol

import msgspec

AccessScope = Literal["read", "write"]  # see sessions; create, change and use them
ALL_SCOPES: frozenset[AccessScope] = frozenset({"read", "write"})
DAY = 86400.0


class AccountToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token without its secret. Times are seconds since 1970, or 0 for never."""

    id: str
    user: str
    scopes: frozenset[AccessScope]
    label: str = ""
    created: float
    expires: float = 0
    revoked: float = 0
    used: float = 0

    def is_valid(self, now: float) -> bool:
        return not self.revoked and (not self.expires or now < self.expires)


class IssuedToken(msgspec.Struct, frozen=True):
    """A new token with its text, which is not stored anywhere."""

    token: AccountToken
    text: str


class UserLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """Limits of one user: sessions in use, connections, and amounts per minute. 0 is the server's own limit."""

    sessions: int = 0
    connections: int = 0
    messages_per_minute: int = 0
    tool_calls_per_minute: int = 0


class Accounts(Protocol):
    """The users of a server and their tokens. All calls raise `JournalError` if the storage fails."""

    def issue(
        self, user: str, scopes: Collection[AccessScope] = ALL_SCOPES, lifetime: float = 0, label: str = ""
    ) -> IssuedToken:
        """Make a token that is valid for `lifetime` seconds, or until it is revoked. Raises `UsageError`."""

    def authenticate(self, text: str) -> AccountToken | None:
        """Return the valid token with this text."""

    def valid(self, token_ids: Collection[str]) -> frozenset[str]:
        """Return those of these tokens that are still valid."""

    def tokens(self) -> Sequence[AccountToken]:
        """Return all tokens, also those that are no longer valid, oldest first."""

    def has_valid_token(self) -> bool: ...

    def revoke(self, token_id: str) -> bool:
        """Revoke a token for good. Return False if there is none with this id that could be used."""

    def revoke_user(self, user: str) -> int:
        """Revoke all tokens and pairing codes of a user. Return the number of tokens."""

    def limits(self, user: str) -> UserLimits: ...

    def set_limits(self, user: str, limits: UserLimits) -> None:
        """Set the limits of a user, who is added if needed. Raises `UsageError`."""

    def open_pairing(self, user: str, lifetime: float, token_lifetime: float = 0) -> str:
        """Return a code that can be exchanged once for a token of this user. Raises `UsageError`."""

    def exchange(self, code: str, label: str = "") -> IssuedToken | None:
        """Return a new token for a valid code, which is then used up. A few wrong attempts also use it up."""
