"""Tells a question from a request for a change, by the words of a prompt."""

import re

from ostler.text.lazy_regex import lazy_regex

_QUESTION = lazy_regex(
    r"\s*(what|which|where|when|why|who|whose|how|is|are|does|do|did|explain|describe|list|show|tell|summari[sz]e)\b",
    re.IGNORECASE,
)
_CHANGE = lazy_regex(
    r"\b(fix|repair|correct|add|rename|change|write|create|set|make|remove|delete|update|implement|replace|refactor"
    r"|convert|move|insert|append|bump|increase|decrease|sort|translate)\b",
    re.IGNORECASE,
)
_FAULT = lazy_regex(
    r"\b(fix|repair|bugs?|wrong\w*|fail\w*|broken|incorrect\w*|crash\w*|errors?|mistakes?|forgets?|ignores?|misses)\b",
    re.IGNORECASE,
)
_REMOVAL = lazy_regex(r"\b(remov\w*|delet\w*|drop|drops)\b", re.IGNORECASE)


def is_question(prompt: str) -> bool:
    """Return whether a prompt begins like a question or asks for an explanation."""
    return _QUESTION.match(prompt) is not None


def asks_for_change(prompt: str) -> bool:
    """Return whether a prompt asks to change files."""
    return _CHANGE.search(prompt) is not None and not is_question(prompt)


def reports_fault(prompt: str) -> bool:
    """Return whether a prompt says that something is wrong."""
    return _FAULT.search(prompt) is not None


def asks_for_removal(prompt: str) -> bool:
    """Return whether a prompt asks to remove something."""
    return _REMOVAL.search(prompt) is not None
