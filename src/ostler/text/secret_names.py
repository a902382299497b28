"""Grades the names of keys by whether their values are secret."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal

from ostler.text.lazy_regex import regex
from ostler.text.secret_words import word_list

# password: nearly any value is secret · secret: any value that is not clearly something else
# auth: like secret, but not the names of schemes · cookie: only whole cookies
# weak: only values with letters and digits or signs · soft: only random-looking values · no: the name is harmless
Grade = Literal["password", "secret", "auth", "cookie", "weak", "soft", "no"]

DEFAULT_KEYS: tuple[str, ...] = (
    "api_key", "apikey", "token", "secret", "password", "passwd", "pwd", "pw", "passphrase", "passcode",
    "private_key", "access_key", "auth", "authorization", "client_secret", "secret_key", "secret_key_base",
    "secret_access_key", "account_key", "shared_access_key", "encryption_key", "decryption_key", "signing_key",
    "signing_secret", "master_key", "auth_key", "shared_key", "preshared_key", "psk", "subscription_key",
    "app_key", "application_key", "consumer_key", "service_key", "service_role_key", "license_key", "deploy_key",
    "ssh_key", "storage_key", "vault_key", "client_key", "client_key_data",
    "hmac_key", "jwt_key", "requirepass", "masterauth", "bindpw", "rootpw",
    "mnemonic", "seed_phrase", "recovery_phrase", "recovery_code", "basic_auth", "auth_token", "access_token",
    "refresh_token", "id_token", "session_token", "db_password", "aws_secret_access_key",
)  # fmt: skip

# The shell's own variables for folders; a value that is a path is not a password there.
FOLDER_VARIABLES = ("PWD", "OLDPWD")

_PASSWORD_KEYS = frozenset(
    ("password", "passwd", "pwd", "pw", "passphrase", "passcode", "psk", "bindpw", "rootpw", "requirepass",
     "masterauth", "mnemonic", "seedphrase", "recoveryphrase", "dbpassword")
)  # fmt: skip
_AUTH_KEYS = frozenset(("auth", "authorization", "basicauth"))
_DEFAULTS = frozenset(key.replace("_", "") for key in DEFAULT_KEYS)

# Every name that can be secret contains one of these, or the last word of a key.
_STEMS = ("key", "pass", "cookie", "cred", "salt", "jwt", "sess")


def split_words(name: str) -> list[str]:
    """Split a name (snake_case, camelCase, kebab-case or dotted) into lowercase words."""
    return [word.lower() for word in regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+").findall(name)]


class SecretNames:
    """The names of secrets. A key matches as a whole, and as the end of a longer name."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = {squashed for key in keys if (squashed := "".join(split_words(key)))}
        self._grades: dict[str, Grade] = {}
        self._last_words = {words[-1] for key in keys if (words := split_words(key))}

    @cached_property
    def _stem_pattern(self) -> re.Pattern[str]:
        stems = {*_STEMS, *self._last_words}
        shortest = [stem for stem in stems if not any(other in stem for other in stems if other != stem)]
        return re.compile("|".join(map(re.escape, sorted(shortest))))

    def find_candidates(self, lowercase_text: str) -> Iterator[int]:
        """Yield the positions in lowercase text where part of a secret's name may be."""
        return (match.start() for match in self._stem_pattern.finditer(lowercase_text))

    def grade(self, name: str) -> Grade:
        grade = self._grades.get(name)
        if grade is None:
            if len(self._grades) > 20_000:
                self._grades.clear()
            grade = self._grades[name] = self._grade_words(split_words(name[-100:]))
        return grade

    def _grade_words(self, words: list[str]) -> Grade:
        key = self._matching_key(words)
        while key is None and len(words) > 1 and (words[-1] in word_list("qualifiers") or words[-1].isdigit()):
            words = words[:-1]
            key = self._matching_key(words)
            if key == "auth":
                key = None
        if key is None:
            singular_key = words and words[-1].endswith("s") and self._matching_key([*words[:-1], words[-1][:-1]])
            return "weak" if singular_key and singular_key not in ("token", "auth") else _grade_by_last_word(words)
        if key == "token" and len(words) > 1 and words[-2] in word_list("harmless-tokens"):
            return "soft"
        if key in _PASSWORD_KEYS or key not in _DEFAULTS:
            return "password"
        if key in _AUTH_KEYS:
            return "no" if words[:-1] == ["o"] else "auth"  # OAuth
        return "secret"

    def _matching_key(self, words: list[str]) -> str | None:
        whole = "".join(words)
        for count in range(min(len(words), 4), 0, -1):
            ending = "".join(words[-count:])
            if ending in self._keys:
                return ending
        # Names without separators between words: `PGPASSWORD`, `authtoken`.
        for size in range(5, min(len(words[-1]) if words else 0, 24)):
            if whole[-size:] in self._keys:
                return whole[-size:]
        return None


def _grade_by_last_word(words: list[str]) -> Grade:
    """Grade names that match no key, but often have secret values."""
    if not words:
        return "no"
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last == "cookie" and before in ("", "set"):
        return "cookie"
    if last == "pass":
        return "weak" if not before else "no" if before in word_list("harmless-passes") else "password"
    if last == "key":
        return "soft" if before and before not in word_list("harmless-keys") else "no"
    return "soft" if last in word_list("soft-names") else "no"
