"""Redacts secrets in text before it is stored, exported, logged or sent."""

from collections.abc import Iterable, Sequence

from ostler.text.lazy_regex import LinearPattern, linear_regex
from ostler.text.plain_view import (
    Span,
    continued_word_end,
    escape_free_view,
    escape_payloads,
    joined_view,
    replace_spans,
)
from ostler.text.secret_commands import find_in_commands
from ostler.text.secret_masker import encoded_forms
from ostler.text.secret_names import DEFAULT_KEYS, SecretNames
from ostler.text.secret_pairs import find_in_pairs
from ostler.text.secret_shapes import find_by_format
from ostler.text.secret_values import REDACTION_MARKER

__all__ = ["DEFAULT_KEYS", "REDACTION_MARKER", "Redactor", "is_sensitive_file"]

# Shorter values would also match in ordinary text.
_MIN_KNOWN_LENGTH = 4
# A replacement can change what is detected around it, so the text is scanned until it no longer changes.
_MAX_ROUNDS = 4


class Redactor:
    """Replaces every secret by the marker. Reusable for any number of texts.

    `keys` are names whose values are secret, `patterns` the user's regular expressions, and `known_values` the secrets
    in use. Raises `ValueError` for an invalid pattern.
    """

    def __init__(
        self, keys: Sequence[str] = DEFAULT_KEYS, patterns: Sequence[str] = (), known_values: Sequence[str] = ()
    ) -> None:
        self._names = SecretNames(keys)
        self._patterns = [compile_pattern(pattern) for pattern in patterns]
        values = {value.strip() for value in known_values if len(value.strip()) >= _MIN_KNOWN_LENGTH}
        self._known_forms = sorted({form for value in values for form in encoded_forms(value)})

    def redact(self, text: str) -> str:
        """Return the text with every secret replaced by the marker. Idempotent."""
        for _ in range(_MAX_ROUNDS):
            spans = self._find_spans(text)
            if not spans:
                break
            markers = _find_occurrences(text, REDACTION_MARKER)  # adjacent ones are merged
            redacted = replace_spans(text, [*spans, *markers], REDACTION_MARKER)
            if redacted == text:
                break
            text = redacted
        return text

    def finds_secret(self, text: str) -> bool:
        return bool(self._find_spans(text))

    def _find_spans(self, text: str) -> list[Span]:
        """Return the spans of the secrets in what a terminal shows, and in the titles and links that it does not."""
        view = escape_free_view(text)
        spans = [view.original_span(span) for span in self._find_in_plain_text(view.text)]
        for start, end in escape_payloads(text):
            spans += [(start + first, start + last) for first, last in self._find_in_plain_text(text[start:end])]
        return spans

    def _find_in_plain_text(self, text: str) -> list[Span]:
        spans = self._match(text)
        joined = joined_view(text)
        if joined is not None:
            spans += [joined.original_span(span) for span in self._match(joined.text)]
            spans = [(start, continued_word_end(text, end)) for start, end in spans]
        return spans

    def _match(self, text: str) -> list[Span]:
        spans = [*find_by_format(text), *find_in_pairs(text, self._names), *find_in_commands(text)]
        spans += [span for value in self._known_forms for span in _find_occurrences(text, value)]
        for pattern in self._patterns:
            spans += [match.span() for match in pattern.finditer(text) if match.end() > match.start()]
        return spans


def compile_pattern(pattern: str) -> LinearPattern:
    """Compile a pattern in the syntax of RE2. Raises `ValueError` if it is invalid."""
    try:
        return linear_regex(pattern, ignore_case=True)
    except ValueError as error:
        raise ValueError(f"The redact pattern {pattern!r} is not a regular expression: {error}.") from None


def _find_occurrences(text: str, value: str) -> Iterable[Span]:
    start = text.find(value)
    while start >= 0:
        yield start, start + len(value)
        start = text.find(value, start + len(value))


_SENSITIVE_NAMES = frozenset(
    ("config.yaml", "config.yml", "config.json", "credentials", "credentials.json", "credentials.yaml",
     "credentials.yml", ".npmrc", ".pypirc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".htpasswd",
     ".git-credentials", ".dockercfg", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "kubeconfig",
     ".vault-token", ".terraformrc", "terraform.tfstate", "secring.gpg", "secret.yaml", "secret.yml")
)  # fmt: skip
_SENSITIVE_SUFFIXES = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".ppk", ".kdbx", ".tfvars", ".p8")
_SENSITIVE_PREFIXES = (".env", "secrets.")
_COPY_SUFFIXES = ("~", ".bak", ".old", ".orig", ".save", ".swp", ".copy")


def is_sensitive_file(path: str) -> bool:
    """Return whether a file probably contains secrets, judged by its name."""
    parts = path.replace("\\", "/").lower().rstrip("/ .").split("/")
    name = parts[-1]
    while name.endswith(_COPY_SUFFIXES):
        name = next(name[: -len(suffix)] for suffix in _COPY_SUFFIXES if name.endswith(suffix))
    if name in _SENSITIVE_NAMES or name.startswith(_SENSITIVE_PREFIXES) or name.endswith(_SENSITIVE_SUFFIXES):
        return True
    return parts[-2:] == [".kube", "config"]
