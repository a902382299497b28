"""Highlights one line of source code: comments, strings, numbers and keywords that most languages share."""

import re
from functools import cache

from ostler.rendering.style import Styler

MAX_LINE_LENGTH = 2000
_HASH_COMMENTS = frozenset(
    ("python", "py", "sh", "bash", "zsh", "shell", "console", "yaml", "yml", "toml", "ruby", "rb", "perl", "r")
)
_DASH_COMMENTS = frozenset(("sql", "lua", "haskell", "hs", "ada"))
_PLAIN_LANGUAGES = frozenset(("", "text", "txt", "plain", "output", "log", "csv", "markdown", "md"))
_DIFF_LANGUAGES = frozenset(("diff", "patch"))
_KEYWORDS = (
    "and as assert async await begin break case catch class const continue def default defer del do done elif "
    "else elsif end enum except export extends extern false final finally fn for foreach from func function "
    "global go goto if impl implements import in include inherit inline instanceof interface is lambda let "
    "local loop match mod module mut new nil none nonlocal not null of or package pass private protected pub "
    "public raise require return select self sizeof static struct super switch template then this throw throws "
    "trait true try type typedef typeof union until unsafe use using var virtual void volatile when where "
    "while with yield alter create delete drop group insert into join limit order set table update values view"
)
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def highlight_line(line: str, language: str, paint: Styler) -> str:
    """Highlight one line, without knowledge of the lines around it."""
    if language in _PLAIN_LANGUAGES or len(line) > MAX_LINE_LENGTH:
        return line
    if language in _DIFF_LANGUAGES:
        return paint(line, _DIFF_STYLES[line[0]]) if line[:1] in _DIFF_STYLES else line

    def render(match: "re.Match[str]") -> str:
        style = {"comment": "dim", "string": "green", "number": "cyan"}.get(match.lastgroup or "")
        if style:
            return paint(match[0], style)
        return paint(match[0], "magenta") if match[0].lower() in _keywords() else match[0]

    return _token_pattern(_comment_pattern(language)).sub(render, line)


def _comment_pattern(language: str) -> str:
    if language in _HASH_COMMENTS:
        return r"(?<!\S)#.*"
    return r"--.*" if language in _DASH_COMMENTS else r"//.*|/\*.*?(?:\*/|$)"


@cache
def _keywords() -> frozenset[str]:
    return frozenset(_KEYWORDS.split())


@cache
def _token_pattern(comment: str) -> "re.Pattern[str]":
    return re.compile(
        rf"(?P<comment>{comment})"
        r"""|(?P<string>"(?:[^"\\]++|\\.)*"?|'(?:[^'\\]++|\\.)*'?|`(?:[^`\\]++|\\.)*`?)"""
        r"|(?P<number>\b\d[\w.]*)"
        r"|(?P<word>[^\W\d]\w*)"
    )
