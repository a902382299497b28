"""Collects the secret values in use (keys, headers, URLs, environment) so that they can be masked."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

import msgspec

from ostler.settings.effective import Settings
from ostler.settings.model_profiles import MODEL_KEY_VARIABLES
from ostler.settings.references import referenced_values
from ostler.settings.secret import Secret
from ostler.text.lazy_regex import lazy_regex
from ostler.text.secret_names import DEFAULT_KEYS, FOLDER_VARIABLES, SecretNames
from ostler.text.secret_values import is_mixed, looks_random

# Masking shorter values would damage ordinary words.
MIN_MASKED_LENGTH = 12
STRONG_GRADES = ("password", "secret", "auth")
URL_PATTERN = lazy_regex(r"https?://(?:[^/?#@:]*(?::(?P<password>[^/?#]*))?@)?[^?#]*(?:\?(?P<query>[^#]*))?")


def secrets_in_use(settings: Settings, env: Mapping[str, str], *extra_secrets: str) -> set[str]:
    """Return the known secrets; `extra_secrets` are those that only the caller knows, such as a key flag.

    Masking must not damage a conversation: headers and variables are included only if their name or value looks like
    a secret, and short values never are.
    """
    names = SecretNames((*DEFAULT_KEYS, *settings.config.context.redact_keys))
    folders = {Path(layer.file).parent for layer in settings.layers if layer.file}
    secrets = {*extra_secrets, *(env.get(name, "") for name in MODEL_KEY_VARIABLES)}
    for name, text in _named_secrets(settings.config):
        for secret in (
            *referenced_values(text, env, folders),
            *(secrets_in_url(text) if URL_PATTERN.match(text) else (text,)),
        ):
            value = secret.strip().rpartition(" ")[2]  # without a scheme like Bearer
            secrets |= {value} if names.grade(name) in STRONG_GRADES or "://" in text or looks_random(value) else set()
    named = {text for name, text in env.items() if name not in FOLDER_VARIABLES and names.grade(name) in STRONG_GRADES}
    secrets |= {text for text in named if _looks_generated(text)}
    return {text for text in secrets if len(text.strip()) >= MIN_MASKED_LENGTH and Secret(text).display_text() != text}


def _looks_generated(text: str) -> bool:
    """Return whether a value looks generated, unlike a path or a word that files may contain."""
    return looks_random(text) or ("/" not in text and is_mixed(text))


def _named_secrets(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield every secret of the config with the name of its key."""
    match value:
        case Secret():
            yield name, value.reveal()
        case msgspec.Struct():
            for field in value.__struct_fields__:
                yield from _named_secrets(getattr(value, field), field)
        case dict():
            for key, item in value.items():
                yield from _named_secrets(item, str(key))
        case list() | tuple():
            for item in value:
                yield from _named_secrets(item, name)


def secrets_in_url(url: str) -> Iterator[str]:
    """Yield the password and the query values of a URL; the host is not a secret."""
    parts = URL_PATTERN.match(url)
    if parts:
        yield parts["password"] or ""
        yield from (unquote(pair.partition("=")[2]) for pair in (parts["query"] or "").split("&"))


def contains_secret(settings: Settings, api_key: str, text: str) -> bool:
    """Return whether a prompt contains a known secret."""
    from ostler.text.secret_masker import SecretMasker

    return SecretMasker(secrets_in_use(settings, os.environ, api_key)).mask(text) != text
