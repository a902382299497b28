"""Words as the full-text index has them, and a person's search as a query of it."""

import re
from functools import cache

from ostler.journal.said import Said

LONGEST = {"user": 20_000, "assistant": 20_000, "tool": 1_000, "system": 5_000}
LONGEST_CALL = 500

# Scripts that put no blanks between words: each character is indexed as one.
_UNSPACED = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d"


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    chars = f"[{_UNSPACED}\U00020000-\U0003134f]"
    between = re.compile(f"(?<={chars})([\x02\x03]*) +([\x02\x03]*)(?={chars})")
    return re.compile(f"({chars})"), between, re.compile(r'"([^"]*)"|(\S+)')


def spaced(text: str) -> str:
    """The text with blanks between the characters of scripts that have none."""
    return _patterns()[0].sub(r" \1 ", text)


def unspaced(text: str) -> str:
    """A snippet as it was written, with the marks of what was found."""
    return _patterns()[1].sub(r"\1\2", " ".join(text.split()))


def indexed(said: Said) -> str:
    """What of a message can be found."""
    calls = (f"{call.tool} {(call.raw or str(call.arguments))[:LONGEST_CALL]}" for call in said.calls)
    return spaced("\n".join([said.text[: LONGEST[said.role]], *calls]))


def query(words: str, *, beginnings: bool = False) -> str:
    """Every word must be there, or one that begins with it; what is quoted must be there as it stands."""
    terms = []
    for quoted, word in _patterns()[2].findall(words[:1000]):
        phrase = spaced(quoted or word).replace('"', " ").replace("\0", " ").strip()
        if any(char.isalnum() for char in phrase):
            terms.append(f'"{phrase}"' + ("*" if beginnings and not quoted else ""))
    return " ".join(terms)
