"""Makes the redactor of this machine: the names and shapes of secrets, the user's own, and the secrets in use."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ostler.app.known_secrets import STRONG, URL, in_url
from ostler.journal.cleaning import Cleaner
from ostler.settings.effective import Settings
from ostler.settings.references import meant
from ostler.settings.secret import Secret
from ostler.text.redact import DEFAULT_KEYS, Redactor
from ostler.text.secret_names import SecretNames
from ostler.vocabulary.errors import UsageError

SHORTEST = 8
BASE_URLS = ("OSTLER_BASE_URL", "AGENT_BASE_URL")


def make_redactor(settings: Settings, env: Mapping[str, str], *known: str) -> Redactor:
    """`known` are secrets that only the caller knows of, such as a key given as a flag."""
    own = settings.config.context
    keys = (*DEFAULT_KEYS, *own.redact_keys)
    in_use = {*known, *_in_use(settings, env), *_in_environment(env, SecretNames(keys))}
    try:
        return Redactor(keys, own.redact_patterns, sorted(text for text in in_use if len(text) >= SHORTEST))
    except ValueError as error:
        raise UsageError(str(error).rstrip("."), hint="mend context.redact_patterns in the config") from None


def make_cleaner(settings: Settings, env: Mapping[str, str], *, on: bool) -> Cleaner:
    """What an export passes through; off, nothing is taken out."""
    keys = (*DEFAULT_KEYS, *settings.config.context.redact_keys)
    return Cleaner(make_redactor(settings, env) if on else None, keys)


def _in_use(settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    """The secrets of the config, what its references stand for, and the values in the queries of its URLs."""
    folders = {Path(layer.file).parent for layer in settings.layers if layer.file}
    for text in (*_in_config(settings.config), *(env.get(name, "") for name in BASE_URLS)):
        for secret in in_url(text) if URL.match(text) else (text,):
            yield secret
            yield from meant(secret, env, folders)


def _in_config(value: object) -> Iterator[str]:
    """Every secret, and every text that leads to one."""
    match value:
        case Secret():
            yield value.reveal()
        case str() if "?" in value and URL.match(value):
            yield value
        case msgspec.Struct():
            for name in value.__struct_fields__:
                yield from _in_config(getattr(value, name))
        case dict():
            for item in value.values():
                yield from _in_config(item)
        case list() | tuple():
            for item in value:
                yield from _in_config(item)


def _in_environment(env: Mapping[str, str], names: SecretNames) -> Iterator[str]:
    return (value for name, value in env.items() if names.grade(name) in STRONG)
