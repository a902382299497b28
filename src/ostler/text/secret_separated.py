"""Find values that stand apart from a secret's name: after an option, in a field beside it, in a sentence."""

import re
from collections.abc import Iterator
from functools import cache

from ostler.text.secret_commands import WORD, matched_word
from ostler.text.secret_names import Grade, split_words
from ostler.text.secret_shapes import Span
from ostler.text.secret_value_span import SCHEME, SecretName
from ostler.text.secret_values import is_mixed, is_secret
from ostler.text.secret_words import DESCRIPTION_WORDS

TAG = r"<(?:[\w.\-]{1,40}:)?$"

_OPTION = r"[ \t](?![\-\s])" + WORD
_DIRECTIVE = (
    r"(?:^|\s)(?:ENV|ARG|setx|setenv|\#define|set|SetEnv|add_header|fastcgi_param|proxy_set_header"
    r"|config(?:ure)?(?: set)?(?: --\w+)?)[ \t]+(?:\S{0,60}[:/])?$"
)
_LOGIN = r"(?:^|\s)login\s+\S{1,60}\s+$"
_AFTER_LOGIN = r"[ \t]+" + WORD
# Names that begin a line of a file which parts name and value by a space.
_LINE_NAMES = frozenset(("password", "requirepass", "masterauth", "authtoken", "bindpw", "rootpw"))
_LINE = r"[ \t]+(?![=:\-\s])" + WORD + r"[ \t]*(?=\r?\n|$)"
_SQL = r"\s+(?=')" + WORD
_NAME_FIELD = r"(?i)(?:name|key|id|variable)[\"']?\s{0,4}[:=]\s{0,4}[\"']?$"
_VALUE_FIELD = (
    r"(?i)[\"']?(?:\s|,|/|\\n|\w{1,20}=[\"'][^\"'\n]{0,60}[\"']){1,40}?"
    r"[\"']?value[\"']?\s{0,4}[:=]\s{0,4}" + WORD
)
_TAG_WITH_ATTRIBUTES = r"(?:\s+[\w:.\-]{1,40}=[\"'][^\"'<>]{0,200}[\"']){1,8}\s*>(?P<plain>[^<>]{1,512})</"
# What ends just before the name, and what then follows it.
_FIELDS = (
    ('variable "', r"\"\s*\{[^}]{0,400}?\bdefault\s*=\s*" + WORD),
    ("<key>", r"</key>\s*<string>(?P<plain>[^<>]{1,512})</string>"),
    ('form-data; name="', r"\"\r?\n\r?\n(?P<plain>[^\r\n]{1,512})"),
)
_SENTENCE = r"\s+(?:(?:is|was|are)\s*:?\s+(?:now\s+)?[\"'`]?|to\s+[\"'`])(?P<plain>[^\s\"'`]{5,512})"
_SENTENCE_NAMES = frozenset(
    ("password", "passwd", "passphrase", "passcode", "token", "secret", "apikey", "api_key", "key", "pw")
)
_ALGORITHM = r"(?i)(?:sha|md|aes|rsa|utf|base|oauth|hs|rs|es|http|v|ed|tls|bcrypt|argon|pbkdf|scrypt)-?[0-9].*"


@cache
def _regex(source: str) -> re.Pattern[str]:
    return re.compile(source)


def find_separated(text: str, name: SecretName, grade: Grade) -> Iterator[Span]:
    """The spans of values that only white space or other fields part from their name."""
    for form in _value_patterns(name):
        found = _regex(form).match(text, name.end)
        if found is None:
            continue
        (start, _), value = matched_word(found)
        scheme = _regex(SCHEME).match(value)
        if scheme is not None:
            start, value = start + scheme.end(), value[scheme.end() :]
        if form == _SENTENCE:
            value = value.rstrip(".,;:!?)")
        if (
            split_words(value) != split_words(name.text)
            and _is_value(form, name, found, value)
            and is_secret(value, grade)
        ):
            yield start, start + len(value)


def _value_patterns(name: SecretName) -> Iterator[str]:
    """The patterns by which a value may follow the name here."""
    plain = name.text.lower()
    if name.text.startswith("-") or _regex(_DIRECTIVE).search(name.text_before):
        yield _OPTION
    elif _regex(_LOGIN).search(name.text_before):
        yield _AFTER_LOGIN
    elif plain in _LINE_NAMES and not name.text_before.rpartition("\n")[2].strip():
        yield _LINE
    if plain == "password":
        yield _SQL
    if plain in _SENTENCE_NAMES:
        yield _SENTENCE
    if _regex(_NAME_FIELD).search(name.text_before):
        yield _VALUE_FIELD
    if _regex(TAG).search(name.text_before):
        yield _TAG_WITH_ATTRIBUTES
    for lead, form in _FIELDS:
        if name.text_before.endswith(lead):
            yield form


def _is_value(pattern: str, name: SecretName, match: re.Match[str], value: str) -> bool:
    """Whether the word is given as the value, and is not a word of a sentence or a manual."""
    if pattern == _SENTENCE:
        both = _regex(r"[A-Za-z]\S*[0-9]|[0-9]\S*[A-Za-z]").search(value)
        return both is not None and not _regex(_ALGORITHM).fullmatch(value)
    if match["plain"] is None:
        return True
    if pattern == _LINE and name.text == "password" and not is_mixed(value):
        return False
    if value.lower().rstrip(".,:;)") in DESCRIPTION_WORDS:
        return False
    return _regex(r"[A-Z][A-Z_]*\]?|[\[<{$(].*").fullmatch(value) is None
