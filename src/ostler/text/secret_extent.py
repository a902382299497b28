"""Find where the value after a secret's name begins and ends, and whether it is a secret there."""

import re
from collections.abc import Iterator
from functools import cache

import msgspec

from ostler.text.secret_names import Grade, words_of
from ostler.text.secret_shapes import Span
from ostler.text.secret_values import is_code, is_name, is_secret, looks_random, mixed

# No value is read further than this, so that the effort per name is bounded.
_LONGEST = 4096
_LONGEST_WORD = 1024
_LONGEST_CODE = 200

QUOTE = r"\\{0,7}[\"'`]|&quot;|&\#34;|%22"
_LINE_START = (
    r"[ \t]*(?:[0-9]{1,6}[:|→\t ])?[ \t+\->#/*;|]*"
    r"(?:export |set |ENV |ARG |env |declare -x )?[\"']?$"
)
SCHEME = r"(?i:Bearer|Basic|Token|ApiKey|Negotiate|Bot|GenieKey|SSWS|Key)[ \t]+"
_LONG_SCHEME = r"(?i:Digest|AWS4-HMAC-SHA256|OAuth)[ \t]+"
_LONG_SCHEME_REST = r"[^\n']{1,1000}"
_WORD = rf"[^\s&;\"'`<>]{{1,{_LONGEST_WORD}}}"
_LITERAL = r"[\s,]*[bfru]?(?:\"([^\"\\\n]{0,1000})\"|'([^'\\\n]{0,1000})')"
_COOKIES = r"[^\n\"']{1,2000}"
_WRAPPER = r"[\w.:]{0,40}(?:Secret|SecretStr|String|String::from|Buffer\.from|b64decode|Some|Ok|new)\("
_TYPE = (
    r"(?:&(?:'static )?|\*|\[\])?[A-Za-z_][\w.]{0,60}(?:[\[<][^\n=]{0,80}[\]>])?[?!]?(?: \| \w+)?"
    rf"[ \t]*=[ \t]*(?:{_WRAPPER})?(?=[\"'`])"
)
_WRAPPED = _WRAPPER + r"(?=[\"'])"
_OR = r"(?:\|\||\?\?|\bor\b)"
_FALLBACK = rf"[^\n\"'`]{{0,120}}(?:{_OR}|[(\[][\"'][^\"'\n]{{0,80}}[\"'](?:,|[)\]]\s*{_OR}))[ \t]*(?=[\"'])"
_FORMAT = r"[<>^=+\-# ]?0?[0-9]*[,_]?(?:\.[0-9]+)?[bcdeEfFgGnosxX%]?\}"


@cache
def _regex(source: str) -> re.Pattern[str]:
    return re.compile(source)


class Name(msgspec.Struct, frozen=True):
    """A secret's name in a text: its last characters, its place, and what stands before it."""

    text: str
    start: int
    end: int
    before: str


class Value:
    """The value after one name and a sign: where it ends depends on how it is written."""

    def __init__(self, text: str, name: Name, sign: re.Match[str], grade: Grade) -> None:
        self._text = text
        self._name = name
        self._grade = grade
        self._sign: str = sign["sign"]
        self._at = sign.end()
        self._closed = sign["close"] is not None
        gap = text[sign.end("sign") : sign.end()]
        self._spaced = gap != ""
        self._below = "\n" in gap  # on the next line, where a key may stand too
        self.read_to = sign.end()  # what lies before this holds no further name

    def spans(self) -> Iterator[Span]:
        at = self._at
        quote = _regex(rf"[bfru@]{{0,2}}({QUOTE})").match(self._text, at)
        if quote is not None:
            yield from self._quoted(quote.group(1), quote.end())
        elif _regex(r"\[|\(\s*[bfru]?[\"']").match(self._text, at):
            yield from self._listed(at)
        elif self._sign == ">":
            yield from self._tagged(at)
        else:
            yield from self._bare(at)

    def _judged(self, start: int, end: int) -> Iterator[Span]:
        """The span if it holds a secret; the scheme before it stays."""
        while start < end and self._text[start] in " \t\r\n":
            start += 1
        while end > start and self._text[end - 1] in " \t\r\n":
            end -= 1
        scheme = self._scheme(start, end)
        if scheme is None:
            value = self._text[start:end]
            if is_secret(value, self._grade) and words_of(value) != words_of(self._name.text):
                yield start, end
            return
        value = self._text[scheme.end() : end]
        several = scheme.re.pattern == _LONG_SCHEME
        if is_secret(value, "weak" if self._grade == "soft" else "secret") and (several or " " not in value):
            yield scheme.end(), end

    def _scheme(self, start: int, end: int) -> re.Match[str] | None:
        if self._grade not in ("auth", "secret", "soft"):
            return None
        return _regex(SCHEME).match(self._text, start, end) or _regex(_LONG_SCHEME).match(self._text, start, end)

    def _quoted(self, quote: str, at: int) -> Iterator[Span]:
        if self._text.startswith(quote * 2, at) and quote in ('"', "'"):
            end = self._text.find(quote * 3, at + 2, at + _LONGEST)
            if end >= 0:
                yield from self._judged(at + 2, end)
            return
        closing = _closing(self._text, quote, at)
        if closing is None:
            yield from self._bare(at)
        elif not (self._below and _regex(r"[ \t]*:").match(self._text, closing + len(quote))):
            yield from self._judged(at, closing)

    def _listed(self, at: int) -> Iterator[Span]:
        """Literals in a list; of a pair `("user", "password")` the second."""
        pair = self._text[at] == "("
        self.read_to = at + 1
        literals = 0
        while literal := _regex(_LITERAL).match(self._text, self.read_to):
            self.read_to = literal.end()
            literals += 1
            group = 1 if literal[1] is not None else 2
            if pair and self._grade == "auth" and literals != 2:
                continue
            if is_secret(literal[group], self._grade) and (pair or mixed(literal[group])):
                yield literal.span(group)

    def _tagged(self, at: int) -> Iterator[Span]:
        end = self._text.find("<", at, at + _LONGEST)
        if end >= 0 and self._text.startswith("</", end):
            yield from self._judged(at, end)

    def _bare(self, at: int) -> Iterator[Span]:
        """A value without quotes: a setting to the end of its line, or a word within the line."""
        literal = self._literal_in_code(at)
        if literal is not None:
            yield literal
        elif self._sign in (":", "=", ":=", "?=") and self._begins_line():
            yield from self._setting(at)
        else:
            yield from self._inline(at)

    def _begins_line(self) -> bool:
        line = self._text.rfind("\n", max(self._name.start - 60, 0), self._name.start) + 1
        if line == 0 and self._name.start > 60:
            return False
        lead = self._text[line : self._name.start]
        if lead.endswith(("'", '"')) and not self._closed:
            return False  # the line is quoted as a whole
        return _regex(_LINE_START).match(lead) is not None

    def _literal_in_code(self, at: int) -> Span | None:
        """The literal of `key: str = "x"`, `key = Secret("x")`, `key = env.get("K") or "x"`."""
        near = self._text[at : at + 300]
        for source in (_TYPE, _WRAPPED, _FALLBACK) if '"' in near or "'" in near or "`" in near else ():
            found = _regex(source).match(self._text, at, at + 300)
            if found is None:
                continue
            closing = _closing(self._text, self._text[found.end()], found.end() + 1)
            grade: Grade = "weak" if source == _FALLBACK and self._grade != "soft" else self._grade
            if closing is not None and is_secret(self._text[found.end() + 1 : closing], grade):
                return found.end() + 1, closing
        return None

    def _setting(self, at: int) -> Iterator[Span]:
        block = _regex(r"[|>][+\-0-9]{0,2}[ \t]*(?:#[^\n]{0,200})?\r?\n").match(self._text, at)
        if block is not None and self._sign == ":":
            yield from self._block(block.end())
            return
        line_end = self._text.find("\n", at)
        value = self._text[at : at + _LONGEST if line_end < 0 else min(line_end, at + _LONGEST)].rstrip()
        value = _regex(r"\\[nr].*|\s(?:#|//).*").sub("", value, count=1).rstrip()
        if self._sign == "=" and not self._spaced and not is_code(value[:_LONGEST_CODE]):
            value = " ".join(value.split(" ")[: 2 if self._scheme(at, at + len(value)) else 1])
        if self._is_setting(value):
            yield from self._whole(self._judged(at, at + len(value.rstrip(",;"))), at + _LONGEST)

    def _is_setting(self, value: str) -> bool:
        """Whether the rest of the line is the value of a setting and not a piece of code or a sentence."""
        bare = value.rstrip(",;})")
        if is_code(value[:_LONGEST_CODE]) or is_code(bare[:_LONGEST_CODE]):
            return False
        if " " in bare and not self._scheme(self._at, self._at + len(bare)):
            parts = bare.split()
            return mixed(parts[0]) or (len(parts) >= 3 and all(part.isalpha() and part.islower() for part in parts))
        if not is_name(bare) or looks_random(bare):
            return True
        ended = bare != value or value.endswith("{")
        if ended and ("_" in bare or self._grade != "password"):
            return False
        return self._sign != "=" or self._is_assigned_word(bare)

    def _is_assigned_word(self, word: str) -> bool:
        """Whether a word after an equals sign is a value, as in settings, and not a variable, as in code."""
        if self._spaced:
            at_margin = self._name.before[-1:] in ("", "\n") and not self._names_itself(word)
            return at_margin and ((self._grade == "password" and word.isalpha()) or self._below_section())
        return self._name.before[-1:] not in (" ", "\t") or not self._names_itself(word)

    def _below_section(self) -> bool:
        """Whether a `[section]` stands above, as only files without code have it."""
        above = self._text[max(self._name.start - 500, 0) : self._name.start]
        return _regex(r"(?m)^\[[\w .:/\-]{1,60}\][ \t\r]*$").search(above) is not None

    def _block(self, at: int) -> Iterator[Span]:
        """A YAML block: the lines indented deeper than their key."""
        line = self._text.rfind("\n", 0, self._name.start) + 1
        key = self._text[line : self._name.start]
        indent = len(key) - len(key.lstrip(" \t"))
        body = _regex(rf"(?:[ \t]{{{indent + 1},}}[^\n]*(?:\n|$)|[ \t]*\n){{1,200}}+").match(self._text, at)
        if body is not None:
            yield from self._judged(at, body.end())

    def _inline(self, at: int) -> Iterator[Span]:
        """A value within a line: up to white space or a sign that ends a word in most notations."""
        if self._sign == ":" and not self._spaced and _regex(_FORMAT).match(self._text, at):
            return
        long = _COOKIES if self._grade == "cookie" else ""
        if _regex(_LONG_SCHEME).match(self._text, at):
            long = _LONG_SCHEME_REST
        scheme = None if long else self._scheme(at, len(self._text))
        word = _regex(long or _WORD).match(self._text, scheme.end() if scheme else at)
        if word is None:
            return
        value = word.group() if long else _without_end(word.group())
        end = word.start() + len(value)
        in_address = self._name.before[-1:] in ("?", "&")
        if long or scheme or in_address or not self._is_expression(value, self._text[end : end + 1]):
            yield from self._whole(self._judged(at, end), word.start() + _LONGEST_WORD)

    def _whole(self, spans: Iterator[Span], limit: int) -> Iterator[Span]:
        """The spans; one that ends where reading ended goes on to the end of its word."""
        for start, end in spans:
            rest = _regex(r"[^\s&;\"'`<>]*").match(self._text, end) if end == limit else None
            yield start, rest.end() if rest else end

    def _is_expression(self, value: str, follows: str) -> bool:
        if is_code(value[:_LONGEST_CODE] + follows) or is_code(value[:_LONGEST_CODE]):
            return True
        if self._sign == ":" and _regex(r"[A-Za-z_][\w.\[\]]*=").match(value):
            return True
        as_setting = self._sign == "=" and not self._spaced
        return (
            self._sign != ":-"
            and is_name(value)
            and (follows in (",", ")", "}") or not as_setting or self._names_itself(value))
        )

    def _names_itself(self, value: str) -> bool:
        """`password=new_password` hands a variable on."""
        return words_of(value)[-1:] == words_of(self._name.text)[-1:]


def _without_end(word: str) -> str:
    """The word without the next pair or the escaped line break that follows it, and without closing signs."""
    number = _regex(r"[+-]?[0-9]+(?=[,}\])])").match(word)
    if number is not None:
        return number.group()
    following = _regex(r",[\w.\-]{1,80}[=:]|\\[nr\"']").search(word)
    value = word[: following.start()] if following else word
    return value if _regex(r"[(\[{]").search(value) else value.rstrip(",.)]}:")


def _closing(text: str, quote: str, at: int) -> int | None:
    """Where the quote closes, before a line ends; escaped quotes inside do not close it."""
    depth = quote.count("\\")
    if quote[-1] not in "\"'`":
        end = text.find(quote, at, at + _LONGEST)
        return end if end >= 0 else None
    for found in _regex(rf"(?<!\\)(\\*){quote[-1]}|\n").finditer(text, at, at + _LONGEST):
        if found.group() == "\n":
            return None
        if len(found.group(1)) % (2 * depth + 2) == depth:
            return found.end() - 1 - depth
    return None
