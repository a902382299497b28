"""The values that are surely secrets, so that nobody is told them, not even the model."""

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

# Shorter ones would tear ordinary words apart.
MIN_MASKED_LENGTH = 12
STRONG_GRADES = ("password", "secret", "auth")
URL_PATTERN = lazy_regex(r"https?://(?:[^/?#@:]*(?::(?P<password>[^/?#]*))?@)?[^?#]*(?:\?(?P<query>[^#]*))?")


def secrets_in_use(settings: Settings, env: Mapping[str, str], *extra_secrets: str) -> set[str]:
    """Keys, and what else is in use; `known` are those that only the caller knows of, such as a key given as a flag.

    What a conversation needs must not be torn out of it: so a header or a variable counts only if its name or its value
    tells that it is one, and nothing short does.
    """
    names = SecretNames((*DEFAULT_KEYS, *settings.config.context.redact_keys))
    folders = {Path(layer.file).parent for layer in settings.layers if layer.file}
    found = {*extra_secrets, *(env.get(name, "") for name in MODEL_KEY_VARIABLES)}
    for name, text in _named_secrets(settings.config):
        for secret in (
            *referenced_values(text, env, folders),
            *(secrets_in_url(text) if URL_PATTERN.match(text) else (text,)),
        ):
            bare = secret.strip().rpartition(" ")[2]  # without a scheme like Bearer
            found |= {bare} if names.grade(name) in STRONG_GRADES or "://" in text or looks_random(bare) else set()
    named = {text for name, text in env.items() if name not in FOLDER_VARIABLES and names.grade(name) in STRONG_GRADES}
    found |= {text for text in named if _looks_generated(text)}
    return {text for text in found if len(text.strip()) >= MIN_MASKED_LENGTH and Secret(text).display_text() != text}


def _looks_generated(text: str) -> bool:
    """A value that no file holds by chance; a path or a word may well stand in one."""
    return looks_random(text) or ("/" not in text and is_mixed(text))


def _named_secrets(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Every secret of the config, with the name it stands under."""
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
    """The password, and the values of the query; the host is no secret, however it is spelt."""
    parts = URL_PATTERN.match(url)
    if parts:
        yield parts["password"] or ""
        yield from (unquote(pair.partition("=")[2]) for pair in (parts["query"] or "").split("&"))
