"""Finds the names of secrets and their values."""

import re
from collections.abc import Iterator

from ostler.text.lazy_regex import regex
from ostler.text.plain_view import Span
from ostler.text.secret_commands import WORD, matched_word
from ostler.text.secret_names import Grade, SecretNames, split_words
from ostler.text.secret_value_span import QUOTE, SCHEME, SecretName, SecretValueFinder
from ostler.text.secret_values import is_mixed, is_secret
from ostler.text.secret_words import word_list

_SIGN = (
    rf"(?P<close>{QUOTE})?(?P<index>\[[0-9]{{0,6}}\]|(?<=[\"'`])\])?(?:[ \t]+(?:As )?[Ss]tring(?=[ \t]*=))?[ \t]*+"
    r"(?P<sign>===?|!==?|:=|\?=|\+=|=>|<-|:-|,(?=\s*b?[\"'])|[:=]|%3[ADad]|(?<=\w)>)"
    r"[ \t]*+(?:\r?\n[ \t]*+(?=[\"']))?"
)
# Calls that set a value by name, before the name.
_SETTER = r"(?i)(?:define|set\w*|put\w*|add\w*|header\w*|append|with\w*|export|environ\w*)\s*\([^()\[{]{0,20}$"
# Words before `key:` that make it a secret, and words before `token:` that make it a parser's token.
_KEY_QUALIFIER = r"(?i)\b(?:api|access|secret|private|recovery|seed) $"
_PARSER_QUALIFIER = r"(?i)\b(?:unexpected|unknown|expected|invalid|illegal|bad|next) $"
# The file and the line number that `grep` prints before a line.
_GREP_PREFIX = r"(?:^|\n)(?:[^\s:]{1,200}|[0-9]{1,6}|[^\s:]{1,200}:[0-9]{1,6}(?::[0-9]{1,6})?):$"
_MAX_NAME_LENGTH = 100


def find_in_pairs(text: str, names: SecretNames) -> Iterator[Span]:
    """Yield the spans of the values that belong to the names of secrets."""
    done = 0
    for hit in names.find_candidates(_lowercase(text)):
        if hit < done:
            continue
        start, done = _name_around(text, hit)
        name, before = text[max(start, done - _MAX_NAME_LENGTH) : done], text[max(start - 60, 0) : start]
        grade = names.grade(name)
        if grade == "no" and name.lower() in ("key", "phrase") and regex(_KEY_QUALIFIER).search(before):
            grade = "secret"
        if grade != "no":
            spans, done = _value_spans(text, SecretName(name, start, done, before), grade)
            yield from spans


def _name_around(text: str, hit: int) -> Span:
    """Return the span of the whole name around a hit."""
    back = regex(r"[\w.\-]*").match(text[max(hit - _MAX_NAME_LENGTH, 0) : hit][::-1])
    start = hit - (back.end() if back else 0)
    run = regex(r"[\w.\-]++").match(text, start)
    return start, run.end() if run else hit + 1


def _lowercase(text: str) -> str:
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(char.lower() if char.isascii() else char for char in text)


def _value_spans(text: str, name: SecretName, grade: Grade) -> tuple[list[Span], int]:
    """Return the spans of the values of one name, and the position up to which the text was scanned."""
    spans: list[Span] = []
    done = name.end
    sign = regex(_SIGN).match(text, name.end)
    if sign is not None and (local_grade := _contextual_grade(name, sign, grade)) != "no":
        value = SecretValueFinder(text, name, sign, local_grade)
        spans += value.find_spans()
        done = value.scanned_to
    if sign is None or sign["sign"] == ",":
        spans += _find_separated(text, name, grade)
    return spans, max([done, *(end for _, end in spans)])


def _contextual_grade(name: SecretName, match: re.Match[str], grade: Grade) -> Grade:
    """Return the grade of a name in its context, which can lower it."""
    sign = match["sign"]
    if sign == ">":
        return grade if regex(_TAG).search(name.text_before) else "no"
    if name.text_before.endswith(":param "):
        return "no"  # documentation
    if sign == ":" and name.text_before.endswith(":"):
        is_spaced = match.string[match.end("sign") : match.end("sign") + 1].isspace()
        return grade if is_spaced and regex(_GREP_PREFIX).search(name.text_before) else "no"  # a longer identifier
    if sign in ("==", "===", "!=", "!=="):
        return "soft"
    if sign == ",":
        if not match["close"]:
            return "no"
        return grade if name.text.startswith("--") or regex(_SETTER).search(name.text_before) else "soft"
    if name.text.lower() == "token" and regex(_PARSER_QUALIFIER).search(name.text_before):
        return "soft"
    return grade


# values that are separated from the name: after an option, in another field, in a sentence

_TAG = r"<(?:[\w.\-]{1,40}:)?$"

_OPTION = r"[ \t](?![\-\s])" + WORD
_OPTION_LINE = r"\r?\n[ \t]*(?:-[ \t]+)?(?![\-\s])" + WORD + r"[ \t]*(?=\r?\n|$)"
_DIRECTIVE = (
    r"(?:^|\s)(?:ENV|ARG|setx|setenv|\#define|set|SetEnv|add_header|fastcgi_param|proxy_set_header"
    r"|config(?:ure)?(?: set)?(?: --\w+)?)[ \t]+(?:\S{0,60}[:/])?$"
)
_LOGIN = r"(?:^|\s)login\s+\S{1,60}\s+$"
_AFTER_LOGIN = r"[ \t]+" + WORD
# Names at the start of a line in files that separate name and value by a space.
_LINE_NAMES = frozenset(("password", "requirepass", "masterauth", "authtoken", "bindpw", "rootpw"))
_LINE = r"[ \t]+(?![=:\-\s])" + WORD + r"[ \t]*(?=\r?\n|$)"
_SQL = r"\s+(?=')" + WORD
_NAME_FIELD = r"(?i)(?:name|key|id|variable)[\"']?\s{0,4}[:=]\s{0,4}[\"']?$"
_VALUE_FIELD = (
    r"(?i)[\"']?(?:\s|,|/|\\n|\w{1,20}=[\"'][^\"'\n]{0,60}[\"']){1,40}?"
    r"[\"']?value[\"']?\s{0,4}[:=]\s{0,4}" + WORD
)
_TAG_WITH_ATTRIBUTES = r"(?:\s+[\w:.\-]{1,40}=[\"'][^\"'<>]{0,200}[\"']){1,8}\s*>(?P<plain>[^<>]{1,512})</"
# The text directly before the name, and the pattern after it.
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


def _find_separated(text: str, name: SecretName, grade: Grade) -> Iterator[Span]:
    """Yield the spans of values that are separated from their name by whitespace or other fields."""
    for pattern in _value_patterns(name):
        match = regex(pattern).match(text, name.end)
        if match is None:
            continue
        (start, _), value = matched_word(match)
        scheme = regex(SCHEME).match(value)
        if scheme is not None:
            start, value = start + scheme.end(), value[scheme.end() :]
        if pattern == _SENTENCE:
            value = value.rstrip(".,;:!?)")
        if (
            split_words(value) != split_words(name.text)
            and _is_value(pattern, name, match, value)
            and is_secret(value, grade)
        ):
            yield start, start + len(value)


def _value_patterns(name: SecretName) -> Iterator[str]:
    """Yield the patterns for the text after the name that fit its context."""
    lowered = name.text.lower()
    if name.text.startswith("-") or regex(_DIRECTIVE).search(name.text_before):
        yield _OPTION
        if name.text.startswith("--") and name.text_before.rpartition("\n")[2].strip() in ("", "-"):
            yield _OPTION_LINE
    elif regex(_LOGIN).search(name.text_before):
        yield _AFTER_LOGIN
    elif lowered in _LINE_NAMES and not name.text_before.rpartition("\n")[2].strip():
        yield _LINE
    if lowered == "password":
        yield _SQL
    if lowered in _SENTENCE_NAMES:
        yield _SENTENCE
    if regex(_NAME_FIELD).search(name.text_before):
        yield _VALUE_FIELD
    if regex(_TAG).search(name.text_before):
        yield _TAG_WITH_ATTRIBUTES
    for prefix, pattern in _FIELDS:
        if name.text_before.endswith(prefix):
            yield pattern


def _is_value(pattern: str, name: SecretName, match: re.Match[str], value: str) -> bool:
    """Return whether a word is the value, and not part of a sentence or a manual."""
    if pattern == _SENTENCE:
        is_mixed_word = regex(r"[A-Za-z]\S*[0-9]|[0-9]\S*[A-Za-z]").search(value)
        return is_mixed_word is not None and not regex(_ALGORITHM).fullmatch(value)
    if match["plain"] is None:
        return True
    if pattern == _LINE and name.text == "password" and not is_mixed(value):
        return False
    if value.lower().rstrip(".,:;)") in word_list("description"):
        return False
    return regex(r"[A-Z][A-Z_]*\]?|[\[<{$(].*").fullmatch(value) is None
