"""Expands `{a,b}` and `{1..3}` in a word to several words."""

import re
from itertools import pairwise

from ostler.policy.shell.syntax_tree import LiteralPart, ShellWord, WordPart

MAX_WORDS = 256
_RANGE = re.compile(r"(-?\d{1,6}|[A-Za-z])\.\.(-?\d{1,6}|[A-Za-z])(?:\.\.(-?\d{1,6}))?")

BraceToken = str | WordPart  # a single unquoted character, or a part without brace expansion


def expand_braces(word: ShellWord) -> list[ShellWord] | None:
    """Return the words that a word expands to, or None if there are too many."""
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
        words = [head for expansions in heads if expansions for head in expansions]
        if len(words) * len(tails) > MAX_WORDS:
            return None
        return [tokens[:start] + head + tail for head in words for tail in tails]
    return [tokens]


def _split_choices(tokens: list[BraceToken], start: int) -> tuple[list[list[BraceToken]], int]:
    """Return the alternatives in a brace (empty if it does not expand) and the index of the closing brace."""
    level = 0
    separators = [start]
    for index in range(start, len(tokens)):
        token = tokens[index]
        level += (token == "{") - (token == "}")
        if token == "," and level == 1:
            separators.append(index)
        if not level:
            separators.append(index)
            break
    else:
        return [], start
    if len(separators) > 2:
        return [tokens[begin + 1 : end] for begin, end in pairwise(separators)], separators[-1]
    inner = tokens[start + 1 : separators[-1]]
    return _expand_range("".join(token for token in inner if isinstance(token, str))), separators[-1]


def _expand_range(text: str) -> list[list[BraceToken]]:
    match = _RANGE.fullmatch(text)
    if not match:
        return []
    first, last, step = match.groups()
    if first.isalpha() != last.isalpha():
        return []
    begin, end = (ord(first), ord(last)) if first.isalpha() else (int(first), int(last))
    stride = abs(int(step or 1)) or 1
    numbers = range(begin, end + 1, stride) if begin <= end else range(begin, end - 1, -stride)
    return [list(chr(number) if first.isalpha() else str(number)) for number in numbers[: MAX_WORDS + 1]]
