"""What no message may show of how a server is reached: the key, the profile's headers, the query, a proxy's login."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from ostler.models.origin import BaseUrl
from ostler.text.regex import regex

_SECRET_NAME = regex("auth|key|token|secret|cookie|password|sig", re.IGNORECASE)
# What is no secret by its name may be an ordinary word, whose loss would make a sentence unreadable.
_SHORTEST, _SHORTEST_ELSE = 4, 6
_MARK = "…"


class Hidden(msgspec.Struct, frozen=True):
    """Texts to take out, the longest first; `keyed` tells whether one of them is a key."""

    texts: tuple[str, ...] = ()
    keyed: bool = False

    def out_of(self, text: str) -> str:
        """The text without them."""
        for secret in self.texts:
            text = text.replace(secret, _MARK)
        return text


NOTHING = Hidden()


def hidden_of(key: str, headers: Sequence[tuple[str, str]], base: BaseUrl, proxy: str) -> Hidden:
    """All that a client sends which is nobody else's business."""
    named = [*headers, *_pairs(base.query)]
    keys = [key, *_login(proxy), *(value for name, value in named if _SECRET_NAME.search(name))]
    others = [value for name, value in named if not _SECRET_NAME.search(name)]
    texts = {*_spelt(keys, _SHORTEST), *_spelt(others, _SHORTEST_ELSE)}
    return Hidden(tuple(sorted(texts, key=lambda text: (-len(text), text))), any(keys))


def _pairs(query: str) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, _, value in (pair.partition("=") for pair in query.split("&")))


def _login(proxy: str) -> list[str]:
    """Name and password of a proxy's URL; the name alone is told in its own errors."""
    credentials = proxy.rpartition("://")[2].rpartition("@")[0]
    return [credentials.partition(":")[2]] if credentials else []


def _spelt(values: list[str], shortest: int) -> Iterator[str]:
    """Each value as it is sent, without the scheme before it, and with its escapes undone."""
    for value in values:
        forms = {value, value.rpartition(" ")[2], *([_unquoted(value)] if "%" in value else [])}
        yield from (form for form in forms if len(form) >= shortest)


def _unquoted(value: str) -> str:
    from urllib.parse import unquote

    return unquote(value)
