"""Guesses from its wording whether a request needs several steps."""

import re

from ostler.text.lazy_regex import lazy_regex

LONG_REQUEST = 80
MANY_WORDS = 14
MANY_PARTS = 2

# Chinese text is denser and has no spaces between words.
_LONG_HAN = 40
_KEYWORDS = lazy_regex(
    r"\b(refactor|implement|fix|mend|migrate|rewrite|add tests?|step by step|and then|first\b.*\bthen|afterwards)\b"
    r"|重构|实现|修复|修正|迁移|重写|逐步|一步一步|分步|然后|接着|首先|之后|并且|添加测试",
    re.IGNORECASE | re.DOTALL,
)
_PARTS = ",;，；、"


def is_complex(request: str) -> bool:
    """Judge by length, by keywords, or by the number of parts."""
    text = request.strip()[:4000]
    return (
        len(text) >= LONG_REQUEST
        or _count_han(text) >= _LONG_HAN
        or len(text.split()) >= MANY_WORDS
        or sum(map(text.count, _PARTS)) >= MANY_PARTS
        or _KEYWORDS.search(text) is not None
    )


def is_chinese(request: str) -> bool:
    return _count_han(request) > 0


def _count_han(text: str) -> int:
    """Count Chinese characters; a regular expression with this range would be slow to compile."""
    return 0 if text.isascii() else sum("\u3400" <= character <= "\u9fff" for character in text)
