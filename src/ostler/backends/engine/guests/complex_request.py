"""Whether a request is work of two or more steps, told by its words alone."""

import re

LONG = 80
MANY_WORDS = 14
MANY_PARTS = 2

# Chinese says more with fewer characters, and has no spaces to count.
_LONG_HAN = 40
_HAN = re.compile(r"[\u3400-\u9fff]")
_KEYWORDS = re.compile(
    r"\b(refactor|implement|fix|mend|migrate|rewrite|add tests?|step by step|and then|first\b.*\bthen|afterwards)\b"
    r"|重构|实现|修复|修正|迁移|重写|逐步|一步一步|分步|然后|接着|首先|之后|并且|添加测试",
    re.IGNORECASE | re.DOTALL,
)
_PARTS = re.compile(r"[,;，；、]")


def is_complex(request: str) -> bool:
    """By length, by words that tell of work, or by how many parts it has."""
    text = request.strip()[:4000]
    return (
        len(text) >= LONG
        or len(_HAN.findall(text)) >= _LONG_HAN
        or len(text.split()) >= MANY_WORDS
        or len(_PARTS.findall(text)) >= MANY_PARTS
        or _KEYWORDS.search(text) is not None
    )


def is_chinese(request: str) -> bool:
    return _HAN.search(request) is not None
