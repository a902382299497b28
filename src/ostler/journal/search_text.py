"""Prepares message text and user queries for full-text search."""

import re
from functools import cache

from ostler.journal.conversation import ConversationMessage

MAX_TEXT_LENGTHS = {"user": 20_000, "assistant": 20_000, "tool": 1_000, "system": 5_000}
MAX_CALL_LENGTH = 500

# Scripts without spaces between words: each character is indexed as a word.
_CJK_RANGES = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d"


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    chars = f"[{_CJK_RANGES}\U00020000-\U0003134f]"
    between = re.compile(f"(?<={chars})([\x02\x03]*) +([\x02\x03]*)(?={chars})")
    return re.compile(f"({chars})"), between, re.compile(r'"([^"]*)"|(\S+)')


def split_cjk(text: str) -> str:
    """Return the text with spaces around CJK characters."""
    return _patterns()[0].sub(r" \1 ", text)


def join_cjk(text: str) -> str:
    """Undo `split_cjk` in a snippet, keeping the markers of hits."""
    return _patterns()[1].sub(r"\1\2", " ".join(text.split()))


def searchable_text(message: ConversationMessage) -> str:
    """Return the text of a message for the index: its text and its calls, truncated."""
    calls = (f"{call.tool} {(call.raw or str(call.arguments))[:MAX_CALL_LENGTH]}" for call in message.calls)
    return split_cjk("\n".join([message.text[: MAX_TEXT_LENGTHS[message.role]], *calls]))


def to_fts_query(text: str, *, match_prefixes: bool = False) -> str:
    """Convert a search into an FTS query: all words are required, quoted ones as a phrase."""
    terms = []
    for quoted, word in _patterns()[2].findall(text[:1000]):
        phrase = split_cjk(quoted or word).replace('"', " ").replace("\0", " ").strip()
        if any(char.isalnum() for char in phrase):
            terms.append(f'"{phrase}"' + ("*" if match_prefixes and not quoted else ""))
    return " ".join(terms)
