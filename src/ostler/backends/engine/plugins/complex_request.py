"""Guesses from its wording whether a request changes something in several steps."""

import re

from ostler.text.lazy_regex import lazy_regex

MAX_LENGTH = 4000
MIN_CHANGES = 2
MIN_LIST_ITEMS = 2

_CHANGE_VERBS = (
    r"(?:add|write|create|change|fix|rename|remove|delete|update|move|replace|extract|convert|split|merge|upgrade"
    r"|install|configure|correct|repair|improve|introduce)"
)
# A single change of this kind takes several steps.
_LARGE_CHANGE = lazy_regex(
    r"\b(?:refactor|implement|migrate|rewrite|redesign|port|step by step)\b|重构|实现|迁移|重写|逐步|一步一步|分步",
    re.IGNORECASE,
)
_CHANGE = lazy_regex(rf"\b{_CHANGE_VERBS}\b|添加|修复|修正|修改|删除|创建|编写|更新|替换|安装", re.IGNORECASE)
_SEQUENCE = lazy_regex(r"\b(?:then|afterwards|after that|finally)\b|然后|接着|首先|之后|并且|最后", re.IGNORECASE)
_LIST_ITEM = lazy_regex(r"^[ \t]*(?:\d{1,3}[.)]|[-*•])[ \t]+\S", re.MULTILINE)
_POLITE_START = r"(?:(?:please|can|could|would|will|you|i|want|to|like|tell|me|us|just|now)[ ,]+){0,8}"
_QUESTION = lazy_regex(
    rf"\s*{_POLITE_START}(?:what|why|how|which|who|where|when|whether|is|are|was|does|do|did)\b", re.IGNORECASE
)
_EXPLANATION = lazy_regex(
    rf"\s*{_POLITE_START}(?:explain|describe|summari[sz]e|compare|review|discuss)\b", re.IGNORECASE
)
_THEN_CHANGE = lazy_regex(rf"\b(?:then|afterwards)[ ,]+(?:please )?{_CHANGE_VERBS}\b", re.IGNORECASE)
_AND_CHANGE = lazy_regex(rf"\b(?:and|then|afterwards)[ ,]+(?:please )?{_CHANGE_VERBS}\b", re.IGNORECASE)


def is_complex(request: str) -> bool:
    """Return whether a request asks for changes in two or more steps; a question does not."""
    text = request[:MAX_LENGTH]
    if _QUESTION.match(text):
        return _THEN_CHANGE.search(text) is not None
    if _EXPLANATION.match(text):
        return _AND_CHANGE.search(text) is not None
    if _LARGE_CHANGE.search(text) or len(_LIST_ITEM.findall(text)) >= MIN_LIST_ITEMS:
        return True
    changes = len(_CHANGE.findall(text))
    return changes >= MIN_CHANGES or (changes > 0 and _SEQUENCE.search(text) is not None)


def is_chinese(request: str) -> bool:
    """Return whether a text contains Chinese characters; a regular expression would be slow to compile."""
    return not request.isascii() and any("\u3400" <= character <= "\u9fff" for character in request)
