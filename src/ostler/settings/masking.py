"""Masks secrets in values before they are shown."""

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from ostler.settings.secret import MASK, Secret, encode_masked

if TYPE_CHECKING:
    from ostler.text.secret_names import SecretNames

_CREDENTIALS = r"(?<=://)[^/?#@\s]*@"
_QUERY = r"(?<=[?&])([^=&#\s]+)=([^&#\s]+)"
_RULE_ACTIONS = ("allow", "ask", "deny")  # values of rules, whose pattern may be a word like `token`


class MaskedRepr(msgspec.Struct, frozen=True):
    """A struct whose repr masks all secrets, also nested ones."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({mask_secrets(msgspec.to_builtins(self, enc_hook=encode_masked))})"


def mask_secrets(value: Any, name: str = "") -> Any:
    """Return a copy with masked secrets. A masked text has a short hash, so that changes are visible.

    `name` is the key of the value; it decides whether the value is a secret.
    """
    if isinstance(value, dict):
        hide_all = name in ("headers", "http_headers")
        return {key: mask_secrets(inner, "secret" if hide_all else key) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [mask_secrets(inner, name) for inner in value]
    if not isinstance(value, str) or value in _RULE_ACTIONS:
        return value
    if _is_secret(name, value) and Secret(value).display_text() != value:
        return f"{MASK}#{_fingerprint(value)}"
    value = re.sub(_CREDENTIALS, f"{MASK}@", value)
    return re.sub(_QUERY, _mask_query_value, value) if "://" in value else value


def _mask_query_value(pair: re.Match[str]) -> str:
    """Mask a value in a URL's query if its name or its content looks like a secret."""
    from ostler.text.secret_values import looks_random

    return f"{pair[1]}={mask_secrets(pair[2], 'secret' if looks_random(pair[2]) else pair[1])}"


def _is_secret(name: str, value: str) -> bool:
    from ostler.text.secret_values import looks_random

    grade = _secret_names().grade(name) if name and value else "no"
    return grade != "no" and (grade != "soft" or looks_random(value))


def _fingerprint(value: str) -> str:
    import hashlib

    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:8]


@cache
def _secret_names() -> "SecretNames":
    from ostler.text.secret_names import DEFAULT_KEYS, SecretNames

    return SecretNames(DEFAULT_KEYS)
