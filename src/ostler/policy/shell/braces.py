"""Brace expansion: `{a,b}` and `{1..3}` in a word become several words."""

import re
from itertools import pairwise

from ostler.policy.shell.tree import Part, Text, Word

MOST = 256
_RANGE = re.compile(r"(-?\d{1,6}|[A-Za-z])\.\.(-?\d{1,6}|[A-Za-z])(?:\.\.(-?\d{1,6}))?")

Token = str | Part  # a single unquoted character, or a part that braces do not look into


def expand(word: Word) -> list[Word] | None:
    """The words that a word with braces stands for; None when they are too many to follow."""
    unquoted = "".join(part.text for part in word.parts if isinstance(part, Text) and not part.quoted)
    if "{" not in unquoted or ("," not in unquoted and ".." not in unquoted):
        return [word]
    if unquoted.count("{") > 32:
        return None
    expanded = _expand(_tokens(word))
    if expanded is None:
        return None
    return [Word(_parts(tokens), word.raw) for tokens in expanded]


def _tokens(word: Word) -> list[Token]:
    tokens: list[Token] = []
    for part in word.parts:
        if isinstance(part, Text) and not part.quoted:
            tokens.extend(part.text)
        else:
            tokens.append(part)
    return tokens


def _parts(tokens: list[Token]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for token in tokens:
        last = parts[-1] if parts else None
        if not isinstance(token, str):
            parts.append(token)
        elif isinstance(last, Text) and not last.quoted:
            parts[-1] = Text(last.text + token)
        else:
            parts.append(Text(token))
    return tuple(parts)


def _expand(tokens: list[Token]) -> list[list[Token]] | None:
    for start, token in enumerate(tokens):
        if token != "{":
            continue
        choices, stop = _choices(tokens, start)
        if not choices:
            continue
        tails = _expand(tokens[stop + 1 :])
        heads = [_expand(choice) for choice in choices]
        if tails is None or None in heads:
            return None
        words = [head for several in heads if several for head in several]
        if len(words) * len(tails) > MOST:
            return None
        return [tokens[:start] + head + tail for head in words for tail in tails]
    return [tokens]


def _choices(tokens: list[Token], start: int) -> tuple[list[list[Token]], int]:
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
    return _range("".join(token for token in inner if isinstance(token, str))), cuts[-1]


def _range(text: str) -> list[list[Token]]:
    found = _RANGE.fullmatch(text)
    if not found:
        return []
    first, last, step = found.groups()
    if first.isalpha() != last.isalpha():
        return []
    begin, end = (ord(first), ord(last)) if first.isalpha() else (int(first), int(last))
    stride = abs(int(step or 1)) or 1
    numbers = range(begin, end + 1, stride) if begin <= end else range(begin, end - 1, -stride)
    return [list(chr(number) if first.isalpha() else str(number)) for number in numbers[: MOST + 1]]
