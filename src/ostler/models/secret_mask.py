"""Masks keys, headers, query values and proxy logins in error messages."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from ostler.http.url import BaseUrl
from ostler.text.lazy_regex import lazy_regex

_SECRET_NAME = lazy_regex("auth|key|token|secret|cookie|password|sig", re.IGNORECASE)
# Values without a secret-like name may be ordinary words, so only longer ones are masked.
_MIN_SECRET_LENGTH, _MIN_OTHER_LENGTH = 4, 6
_PLACEHOLDER = "…"


class SecretMask(msgspec.Struct, frozen=True):
    """Texts to mask, the longest first. `has_key` is True if one of them is a key; `key_source` is where it is set."""

    texts: tuple[str, ...] = ()
    has_key: bool = False
    key_source: str = ""

    def apply(self, text: str) -> str:
        """Return `text` with every secret replaced by a placeholder."""
        for secret in self.texts:
            text = text.replace(secret, _PLACEHOLDER)
        return text


NO_SECRETS = SecretMask()


def make_secret_mask(
    api_key: str, headers: Sequence[tuple[str, str]], base_url: BaseUrl, proxy: str, key_source: str = ""
) -> SecretMask:
    """Collect the secrets that a client sends."""
    pairs = [*headers, *_query_pairs(base_url.query)]
    keys = [api_key, *_proxy_password(proxy), *(value for name, value in pairs if _SECRET_NAME.search(name))]
    others = [value for name, value in pairs if not _SECRET_NAME.search(name)]
    texts = {*_spellings(keys, _MIN_SECRET_LENGTH), *_spellings(others, _MIN_OTHER_LENGTH)}
    return SecretMask(tuple(sorted(texts, key=lambda text: (-len(text), text))), any(keys), key_source)


def _query_pairs(query: str) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, _, value in (pair.partition("=") for pair in query.split("&")))


def _proxy_password(proxy: str) -> list[str]:
    """Return the password in a proxy URL, if there is one."""
    credentials = proxy.rpartition("://")[2].rpartition("@")[0]
    return [credentials.partition(":")[2]] if credentials else []


def _spellings(values: list[str], min_length: int) -> Iterator[str]:
    """Yield each value as sent, without an auth scheme before it, and percent-decoded."""
    for value in values:
        forms = {value, value.rpartition(" ")[2], *([_unquote_value(value)] if "%" in value else [])}
        yield from (form for form in forms if len(form) >= min_length)


def _unquote_value(value: str) -> str:
    from urllib.parse import unquote

    return unquote(value)
