"""Builds the redactor for exports and logs from the settings and the secrets in use."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ostler.core.errors import UsageError
from ostler.journal.record_redaction import RecordRedactor
from ostler.settings.effective import Settings
from ostler.settings.known_secrets import STRONG_GRADES, URL_PATTERN, secrets_in_url
from ostler.settings.references import referenced_values
from ostler.settings.secret import Secret
from ostler.text.redact import DEFAULT_KEYS, Redactor
from ostler.text.secret_names import FOLDER_VARIABLES, SecretNames

MIN_SECRET_LENGTH = 8
BASE_URL_VARIABLES = ("OSTLER_BASE_URL", "AGENT_BASE_URL")


def make_redactor(settings: Settings, env: Mapping[str, str], *extra_secrets: str) -> Redactor:
    """Build a redactor; `extra_secrets` are those that only the caller knows, such as a key flag."""
    context = settings.config.context
    keys = (*DEFAULT_KEYS, *context.redact_keys)
    in_use = {*extra_secrets, *_configured_secrets(settings, env), *_environment_secrets(env, SecretNames(keys))}
    try:
        return Redactor(
            keys, context.redact_patterns, sorted(text for text in in_use if len(text) >= MIN_SECRET_LENGTH)
        )
    except ValueError as error:
        raise UsageError(str(error).rstrip("."), hint="fix context.redact_patterns in the config") from None


def make_record_redactor(settings: Settings, env: Mapping[str, str], *, enabled: bool) -> RecordRedactor:
    """Build the redactor of an export; with `enabled` false it masks nothing."""
    keys = (*DEFAULT_KEYS, *settings.config.context.redact_keys)
    return RecordRedactor(make_redactor(settings, env) if enabled else None, keys)


def _configured_secrets(settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets of the config, the values of its references and the query values of its URLs."""
    folders = {Path(layer.file).parent for layer in settings.layers if layer.file}
    for text in (*_secret_texts(settings.config), *(env.get(name, "") for name in BASE_URL_VARIABLES)):
        for secret in secrets_in_url(text) if URL_PATTERN.match(text) else (text,):
            yield secret
            yield from referenced_values(secret, env, folders)


def _secret_texts(value: object) -> Iterator[str]:
    """Yield every secret and every URL with a query."""
    match value:
        case Secret():
            yield value.reveal()
        case str() if "?" in value and URL_PATTERN.match(value):
            yield value
        case msgspec.Struct():
            for name in value.__struct_fields__:
                yield from _secret_texts(getattr(value, name))
        case dict():
            for item in value.values():
                yield from _secret_texts(item)
        case list() | tuple():
            for item in value:
                yield from _secret_texts(item)


def _environment_secrets(env: Mapping[str, str], names: SecretNames) -> Iterator[str]:
    named = ((name, value) for name, value in env.items() if name not in FOLDER_VARIABLES)
    return (value for name, value in named if names.grade(name) in STRONG_GRADES)
