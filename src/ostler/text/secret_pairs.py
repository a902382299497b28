"""Finds the names of secrets and their values."""

import re
from collections.abc import Iterator

from ostler.text.lazy_regex import regex
from ostler.text.plain_view import Span
from ostler.text.secret_names import Grade, SecretNames
from ostler.text.secret_separated import TAG, find_separated
from ostler.text.secret_value_span import QUOTE, SecretName, SecretValueFinder

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
        spans += find_separated(text, name, grade)
    return spans, max([done, *(end for _, end in spans)])


def _contextual_grade(name: SecretName, match: re.Match[str], grade: Grade) -> Grade:
    """Return the grade of a name in its context, which can lower it."""
    sign = match["sign"]
    if sign == ">":
        return grade if regex(TAG).search(name.text_before) else "no"
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
