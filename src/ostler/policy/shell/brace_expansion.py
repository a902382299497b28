"""Brace expansion: `{a,b}` and `{1..3}` in a word become several words."""

import re
from itertools import pairwise

from ostler.policy.shell.syntax_tree import LiteralPart, ShellWord, WordPart

MAX_WORDS = 256
_RANGE = re.compile(r"(-?\d{1,6}|[A-Za-z])\.\.(-?\d{1,6}|[A-Za-z])(?:\.\.(-?\d{1,6}))?")

BraceToken = str | WordPart  # a single unquoted character, or a part that braces do not look into


def expand_braces(word: ShellWord) -> list[ShellWord] | None:
    """The words that a word with braces stands for; None when they are too many to follow."""
    unquoted = "".join(part.text for part in word.parts if isinstance(part, LiteralPart) and not part.quoted)
    if "{" not in unquoted or ("," not in unquoted and ".." not in unquoted):
        return [word]
    if unquoted.count("{") > 32:
        return None
    expanded = _expand_tokens(_tokenize(word))
    if expanded is None:
        return None
    return [ShellWord(_join_tokens(tokens), word.raw) for tokens in expanded]


def _tokenize(word: ShellWord) -> list[BraceToken]:
    tokens: list[BraceToken] = []
    for part in word.parts:
        if isinstance(part, LiteralPart) and not part.quoted:
            tokens.extend(part.text)
        else:
            tokens.append(part)
    return tokens


def _join_tokens(tokens: list[BraceToken]) -> tuple[WordPart, ...]:
    parts: list[WordPart] = []
    for token in tokens:
        last = parts[-1] if parts else None
        if not isinstance(token, str):
            parts.append(token)
        elif isinstance(last, LiteralPart) and not last.quoted:
            parts[-1] = LiteralPart(last.text + token)
        else:
            parts.append(LiteralPart(token))
    return tuple(parts)


def _expand_tokens(tokens: list[BraceToken]) -> list[list[BraceToken]] | None:
    for start, token in enumerate(tokens):
        if token != "{":
            continue
        choices, stop = _split_choices(tokens, start)
        if not choices:
            continue
        tails = _expand_tokens(tokens[stop + 1 :])
        heads = [_expand_tokens(choice) for choice in choices]
        if tails is None or None in heads:
            return None
        words = [head for several in heads if several for head in several]
        if len(words) * len(tails) > MAX_WORDS:
            return None
        return [tokens[:start] + head + tail for head in words for tail in tails]
    return [tokens]


def _split_choices(tokens: list[BraceToken], start: int) -> tuple[list[list[BraceToken]], int]:
    """What stands between a brace and its match, cut at the commas; nothing when it is no expansion."""
    level = 0
    cuts = [start]
    for at in range(start, len(tokens)):
        token = tokens[at]
        level += (token == "{") - (token == "}")
        if token == "," and level == 1:
            cuts.append(at)
        if not level:
            cuts.append(at)
            break
    else:
        return [], start
    if len(cuts) > 2:
        return [tokens[begin + 1 : end] for begin, end in pairwise(cuts)], cuts[-1]
    inner = tokens[start + 1 : cuts[-1]]
    return _expand_range("".join(token for token in inner if isinstance(token, str))), cuts[-1]


def _expand_range(text: str) -> list[list[BraceToken]]:
    found = _RANGE.fullmatch(text)
    if not found:
        return []
    first, last, step = found.groups()
    if first.isalpha() != last.isalpha():
        return []
    begin, end = (ord(first), ord(last)) if first.isalpha() else (int(first), int(last))
    stride = abs(int(step or 1)) or 1
    numbers = range(begin, end + 1, stride) if begin <= end else range(begin, end - 1, -stride)
    return [list(chr(number) if first.isalpha() else str(number)) for number in numbers[: MAX_WORDS + 1]]
