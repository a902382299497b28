"""Makes the redactor of this machine: the names and shapes of secrets, the user's own, and the secrets in use."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ostler.app.known_secrets import STRONG_GRADES, URL_PATTERN, secrets_in_url
from ostler.core.errors import UsageError
from ostler.journal.record_redaction import RecordRedactor
from ostler.settings.effective import Settings
from ostler.settings.references import referenced_values
from ostler.settings.secret import Secret
from ostler.text.redact import DEFAULT_KEYS, Redactor
from ostler.text.secret_names import FOLDER_VARIABLES, SecretNames

MIN_SECRET_LENGTH = 8
BASE_URL_VARIABLES = ("OSTLER_BASE_URL", "AGENT_BASE_URL")


def make_redactor(settings: Settings, env: Mapping[str, str], *extra_secrets: str) -> Redactor:
    """`known` are secrets that only the caller knows of, such as a key given as a flag."""
    own = settings.config.context
    keys = (*DEFAULT_KEYS, *own.redact_keys)
    in_use = {*extra_secrets, *_configured_secrets(settings, env), *_environment_secrets(env, SecretNames(keys))}
    try:
        return Redactor(keys, own.redact_patterns, sorted(text for text in in_use if len(text) >= MIN_SECRET_LENGTH))
    except ValueError as error:
        raise UsageError(str(error).rstrip("."), hint="mend context.redact_patterns in the config") from None


def make_record_redactor(settings: Settings, env: Mapping[str, str], *, enabled: bool) -> RecordRedactor:
    """What an export passes through; off, nothing is taken out."""
    keys = (*DEFAULT_KEYS, *settings.config.context.redact_keys)
    return RecordRedactor(make_redactor(settings, env) if enabled else None, keys)


def _configured_secrets(settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    """The secrets of the config, what its references stand for, and the values in the queries of its URLs."""
    folders = {Path(layer.file).parent for layer in settings.layers if layer.file}
    for text in (*_secret_texts(settings.config), *(env.get(name, "") for name in BASE_URL_VARIABLES)):
        for secret in secrets_in_url(text) if URL_PATTERN.match(text) else (text,):
            yield secret
            yield from referenced_values(secret, env, folders)


def _secret_texts(value: object) -> Iterator[str]:
    """Every secret, and every text that leads to one."""
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
