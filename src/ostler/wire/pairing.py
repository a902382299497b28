"""The pairing of a client with a server: the line that the server prints, and the exchange of its code for a token.

A line is `URL#CODE`, or `URL#CODE.sha256-HEX` with the fingerprint of the server's certificate. The part after `#` is
never sent as part of a request's address.
"""

import re

import msgspec

from ostler.core.errors import UsageError

PAIR_PATH = "/api/agent/pair"
TOKEN_PATH = "/api/agent/token"  # DELETE revokes the token of the request
CODE = r"[A-Za-z2-7]{4}(?:-?[A-Za-z2-7]{4}){3}"
_FRAGMENT = re.compile(rf"({CODE})(?:\.sha256-([0-9a-f]{{64}}))?")


class PairingLine(msgspec.Struct, frozen=True):
    """Where a server is, the one-time code, and the SHA-256 of its certificate as hexadecimal digits, if any."""

    url: str
    code: str
    fingerprint: str = ""

    def __str__(self) -> str:
        return f"{self.url}#{self.code}" + (f".sha256-{self.fingerprint}" if self.fingerprint else "")


class PairingRequest(msgspec.Struct, frozen=True):
    """The body of a request to exchange a code. `label` names the machine in the list of tokens."""

    code: str
    label: str = ""


class PairingReply(msgspec.Struct, frozen=True):
    """The token of a paired client, with its user."""

    token: str
    user: str
    expires: float = 0


def parse_pairing_line(text: str) -> PairingLine:
    """Return the parts of a line; the code is empty if there is none. Raises `UsageError`."""
    url, mark, fragment = text.strip().partition("#")
    if not mark:
        return PairingLine(url, "")
    match = _FRAGMENT.fullmatch(fragment)
    if match is None:
        raise UsageError("the part after # is not a pairing code", hint="copy the whole line that the server printed")
    return PairingLine(url, match[1].upper(), match[2] or "")


def is_pairing_code(text: str) -> bool:
    """Return whether a text can be a pairing code; a token never can."""
    return re.fullmatch(CODE, text.strip()) is not None
