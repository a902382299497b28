"""Ranks legacy encodings by how plausible the decoded text is."""

import codecs
import re
from collections import Counter
from collections.abc import Callable

from ostler.workspace.common_characters import CHINESE, CHINESE_TRADITIONAL, KOREAN, RUSSIAN

_TYPOGRAPHY = frozenset("‘’‚“”„–—…€«»°§©®™·×£¥¢¡¿±²³µ¶†‡•‹›½¼¾ªº ´¨")
_LONG_ACCENTS = re.compile("[À-ÿŒœŠšŽžŸƒ]{3,}")
_MIXED_CASE = re.compile("[а-яё][А-ЯЁ]")


def rank_encodings(sample: bytes) -> list[str]:
    """Return the encodings that can decode a sample, most plausible first."""
    scores: list[tuple[float, str]] = []
    for encoding, score in _CANDIDATES:
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(sample)
        except UnicodeDecodeError:
            continue
        scores.append((score(text), encoding))
    scores.sort(key=lambda pair: -pair[0])
    return [encoding for score, encoding in scores if score > 0] or ["cp1252"]


def _mean_score(text: str, score: Callable[[str], float]) -> float:
    counts = Counter(c for c in text if c > "\x7f")
    total = counts.total()
    return sum(score(c) * count for c, count in counts.items()) / total if total else 0.0


def _score_latin(text: str) -> float:
    crowded = sum(len(run) for run in _LONG_ACCENTS.findall(text))
    accents = sum(1 for c in text if c > "\x7f")
    return _mean_score(text, lambda c: 1.0 if "À" <= c <= "ÿ" or c in "ŒœŠšŽžŸ" or c in _TYPOGRAPHY else -1.0) - 2 * (
        crowded / max(accents, 1)
    )


def _score_cyrillic(text: str) -> float:
    def score(c: str) -> float:
        if c in RUSSIAN:
            return 1.0
        if "а" <= c <= "я" or c == "ё":
            return 0.7
        if "А" <= c <= "Я" or c == "Ё":
            return 0.4
        return 0.3 if c in _TYPOGRAPHY or c == "№" else -1.0

    letters = sum(1 for c in text if c > "\x7f")
    return _mean_score(text, score) - 2 * len(_MIXED_CASE.findall(text)) / max(letters, 1)


def _chinese_scorer(common: frozenset[str], charset: str, first: int, last: int) -> Callable[[str], float]:
    """Return a scorer that prefers common characters, then the charset's first level (lead bytes `first` to `last`)."""

    def score(c: str) -> float:
        if c in common:
            return 1.0
        if "\u3000" <= c <= "\u303f" or "\uff01" <= c <= "\uff5e" or c in _TYPOGRAPHY:
            return 0.7
        if "\u4e00" <= c <= "\u9fff":
            return 0.4 if first <= _lead_byte(c, charset) <= last else -0.3
        return -1.0

    return lambda text: _mean_score(text, score)


def _japanese_scorer(charset: str, first: int, last: int) -> Callable[[str], float]:
    def score(c: str) -> float:
        if "\u3041" <= c <= "\u3093":
            return 1.0
        if "\u30a1" <= c <= "\u30fc" or "\u3000" <= c <= "\u303f" or "\uff01" <= c <= "\uff5e":
            return 0.8
        if "\u4e00" <= c <= "\u9fff":
            return 0.4 if first <= _lead_byte(c, charset) <= last else -0.3
        return -1.0

    return lambda text: _mean_score(text, score)


def _score_korean(text: str) -> float:
    def score(c: str) -> float:
        if c in KOREAN:
            return 1.0
        if "\uac00" <= c <= "\ud7a3":
            return 0.4 if 0xB0 <= _lead_byte(c, "euc_kr") <= 0xC8 else -0.5
        if "\u3000" <= c <= "\u303f" or "\uff01" <= c <= "\uff5e" or c in _TYPOGRAPHY:
            return 0.7
        return -0.3 if "\u4e00" <= c <= "\u9fff" else -1.0

    return _mean_score(text, score)


def _lead_byte(c: str, charset: str) -> int:
    try:
        return c.encode(charset)[0]
    except UnicodeEncodeError:
        return 0


# The earlier one wins a tie: single-byte encodings come first, because they fit short texts best.
_CANDIDATES: tuple[tuple[str, Callable[[str], float]], ...] = (
    ("cp1252", _score_latin),
    ("cp1251", _score_cyrillic),
    ("koi8-r", _score_cyrillic),
    ("gb18030", _chinese_scorer(CHINESE, "gb2312", 0xB0, 0xD7)),
    ("cp932", _japanese_scorer("cp932", 0x88, 0x97)),
    ("cp949", _score_korean),
    ("euc_jp", _japanese_scorer("euc_jp", 0xB0, 0xCF)),
    ("big5", _chinese_scorer(CHINESE_TRADITIONAL, "big5", 0xA4, 0xC6)),
)
