"""Finds where the value after a secret's name begins and ends."""

import re
from collections.abc import Iterator

import msgspec

from ostler.text.lazy_regex import regex
from ostler.text.plain_view import Span
from ostler.text.secret_names import FOLDER_VARIABLES, Grade, split_words
from ostler.text.secret_values import is_code, is_mixed, is_secret, is_variable_name, looks_random

# Limits in characters, so that the effort per name is bounded.
_MAX_VALUE_LENGTH = 4096
_MAX_WORD_LENGTH = 1024
_MAX_CODE_LENGTH = 200
_MAX_PREFIX_LENGTH = 300

QUOTE = r"\\{0,7}[\"'`]|&quot;|&\#34;|%22"
_LINE_START = (
    r"[ \t]*(?:(?:[^\s:]{1,200}[:\-])?[0-9]{1,6}[:|→\t \-])?[ \t+\->#/*;|]*"
    r"(?:export |set |ENV |ARG |env |declare -x )?[\"']?$"
)
_FOLDER = r"[/~]|[A-Za-z]:[\\/]"
SCHEME = r"(?i:Bearer|Basic|Token|ApiKey|Negotiate|Bot|GenieKey|SSWS|Key)[ \t]+"
_LONG_SCHEME = r"(?i:Digest|AWS4-HMAC-SHA256|OAuth)[ \t]+"
_LONG_SCHEME_REST = r"[^\n']{1,1000}"
_WORD = rf"[^\s&;\"'`<>]{{1,{_MAX_WORD_LENGTH}}}"
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
# The end of a line without a value, and a line that may have the value; it may be from a diff or from `grep -n`.
_LINE_END = r"[ \t]*(?:(?<=[ \t])#[^\n]{0,200})?\r?\n(?:[ \t]*\r?\n)?"
_NEXT_LINE = (
    r"(?:(?:[^\s:]{1,200}[:\-])?[0-9]{1,6}[:\-|→\t])?\+?(?P<indent>[ \t]*)(?P<item>-[ \t]+)?(?P<quote>[\"']?)"
    r"(?P<value>[^\s\"'](?:[^\r\n\"']{0,4094}[^\s\"'])?)(?P=quote),?[ \t]*(?:[ \t]#[^\n]{0,200})?(?:\r?\n|\Z)"
)
_PAIR = r"[\w.\-]{1,100}[ \t]*(?::(?:\s|$)|=(?!=?$))"
_MIXED_WORD = r"(?=[^A-Za-z]*[A-Za-z])(?=[^0-9]*[0-9])[^\s<>(){}\[\]*`|]{6,}"


class SecretName(msgspec.Struct, frozen=True):
    """A secret's name in a text: its last characters, its position, and the text before it."""

    text: str
    start: int
    end: int
    text_before: str


class SecretValueFinder:
    """Finds the value after a name and a sign; where it ends depends on the notation."""

    def __init__(self, text: str, name: SecretName, sign: re.Match[str], grade: Grade) -> None:
        self._text = text
        self._name = name
        self._grade = grade
        self._sign: str = sign["sign"]
        self._pos = sign.end()
        self._closed = sign["close"] is not None
        gap = text[sign.end("sign") : sign.end()]
        self._has_space = gap != ""
        self._on_next_line = "\n" in gap  # the quoted text may also be a key there
        self.scanned_to = sign.end()  # there are no further names before this position

    def find_spans(self) -> Iterator[Span]:
        pos = self._pos
        quote = regex(rf"[bfru@]{{0,2}}({QUOTE})").match(self._text, pos)
        if quote is not None:
            yield from self._quoted_value(quote.group(1), quote.end())
        elif regex(r"\[|\(\s*[bfru]?[\"']").match(self._text, pos):
            yield from self._list_values(pos)
        elif self._sign == ">":
            yield from self._tag_value(pos)
        elif self._sign in (":", "=", ":=") and (line_end := regex(_LINE_END).match(self._text, pos)):
            yield from self._next_line_values(line_end.end())
        else:
            yield from self._unquoted_value(pos)

    def _check_span(self, start: int, end: int) -> Iterator[Span]:
        """Yield the span without surrounding whitespace and scheme, if it is a secret."""
        while start < end and self._text[start] in " \t\r\n":
            start += 1
        while end > start and self._text[end - 1] in " \t\r\n":
            end -= 1
        scheme = self._match_scheme(start, end)
        if self._name.text in FOLDER_VARIABLES and regex(_FOLDER).match(self._text, start, end):
            return
        if scheme is None:
            value = self._text[start:end]
            if is_secret(value, self._grade) and split_words(value) != split_words(self._name.text):
                yield start, end
            return
        value = self._text[scheme.end() : end]
        is_long_scheme = scheme.re.pattern == _LONG_SCHEME
        if is_secret(value, "weak" if self._grade == "soft" else "secret") and (is_long_scheme or " " not in value):
            yield scheme.end(), end

    def _match_scheme(self, start: int, end: int) -> re.Match[str] | None:
        if self._grade not in ("auth", "secret", "soft"):
            return None
        return regex(SCHEME).match(self._text, start, end) or regex(_LONG_SCHEME).match(self._text, start, end)

    def _quoted_value(self, quote: str, pos: int) -> Iterator[Span]:
        if self._text.startswith(quote * 2, pos) and quote in ('"', "'"):
            end = self._text.find(quote * 3, pos + 2, pos + _MAX_VALUE_LENGTH)
            if end >= 0:
                yield from self._check_span(pos + 2, end)
            return
        closing = _find_closing_quote(self._text, quote, pos)
        if closing is None:
            yield from self._unquoted_value(pos)
        elif not (self._on_next_line and regex(r"[ \t]*:").match(self._text, closing + len(quote))):
            yield from self._check_span(pos, closing)

    def _list_values(self, pos: int) -> Iterator[Span]:
        """Yield the literals in a list; of a pair `("user", "password")` only the second."""
        pair = self._text[pos] == "("
        self.scanned_to = pos + 1
        literals = 0
        while literal := regex(_LITERAL).match(self._text, self.scanned_to):
            self.scanned_to = literal.end()
            literals += 1
            group = 1 if literal[1] is not None else 2
            if pair and self._grade == "auth" and literals != 2:
                continue
            if is_secret(literal[group], self._grade) and (pair or is_mixed(literal[group])):
                yield literal.span(group)

    def _tag_value(self, pos: int) -> Iterator[Span]:
        end = self._text.find("<", pos, pos + _MAX_VALUE_LENGTH)
        if end >= 0 and self._text.startswith("</", end):
            yield from self._check_span(pos, end)

    def _unquoted_value(self, pos: int) -> Iterator[Span]:
        """Yield a value without quotes: the rest of a setting's line, or a word within the line."""
        literal = self._literal_in_code(pos)
        if literal is not None:
            yield literal
        elif self._sign in (":", "=", ":=", "?=") and self._begins_line():
            yield from self._setting_value(pos)
        else:
            yield from self._inline_value(pos)

    def _next_line_values(self, pos: int) -> Iterator[Span]:
        """Yield the value in the line after its name, or the items of a list there."""
        line_start = self._text.rfind("\n", 0, self._name.start) + 1
        own_line = regex(_NEXT_LINE).match(self._text, line_start)
        own_indent = len(own_line["indent"]) if own_line else 0
        while (line := regex(_NEXT_LINE).match(self._text, pos)) and pos > self._pos:
            start, end = line.span("value")
            is_deeper = len(line["indent"]) > own_indent and self._begins_line()
            if self._is_next_line_value(self._text[start:end], is_deeper=is_deeper, is_item=bool(line["item"])):
                yield from self._check_span(start, end)
            if not line["item"]:
                return
            pos = line.end()

    def _is_next_line_value(self, value: str, *, is_deeper: bool, is_item: bool) -> bool:
        """Return whether a line is a value, and not another setting, code or a sentence."""
        is_phrase = regex(r"(?i)phrase|mnemonic").search(self._name.text) is not None
        if (" " in value and not is_phrase) or regex(_PAIR).match(value) or not self._is_setting(value):
            return False
        if is_deeper or is_phrase:
            return True
        return (is_item or self._sign == ":") and regex(_MIXED_WORD).fullmatch(value) is not None

    def _begins_line(self) -> bool:
        line_start = self._text.rfind("\n", max(self._name.start - _MAX_PREFIX_LENGTH, 0), self._name.start) + 1
        if line_start == 0 and self._name.start > _MAX_PREFIX_LENGTH:
            return False
        text_before = self._text[line_start : self._name.start]
        if text_before.endswith(("'", '"')) and not self._closed:
            return False  # the whole line is quoted
        return regex(_LINE_START).match(text_before) is not None

    def _literal_in_code(self, pos: int) -> Span | None:
        """Return the literal in `key: str = "x"`, `key = Secret("x")` or `key = env.get("K") or "x"`."""
        following = self._text[pos : pos + 300]
        for source in (_TYPE, _WRAPPED, _FALLBACK) if '"' in following or "'" in following or "`" in following else ():
            match = regex(source).match(self._text, pos, pos + 300)
            if match is None:
                continue
            closing = _find_closing_quote(self._text, self._text[match.end()], match.end() + 1)
            grade: Grade = "weak" if source == _FALLBACK and self._grade != "soft" else self._grade
            if closing is not None and is_secret(self._text[match.end() + 1 : closing], grade):
                return match.end() + 1, closing
        return None

    def _setting_value(self, pos: int) -> Iterator[Span]:
        block = regex(r"[|>][+\-0-9]{0,2}[ \t]*(?:#[^\n]{0,200})?\r?\n").match(self._text, pos)
        if block is not None and self._sign == ":":
            yield from self._block_value(block.end())
            return
        line_end = self._text.find("\n", pos)
        value = self._text[
            pos : pos + _MAX_VALUE_LENGTH if line_end < 0 else min(line_end, pos + _MAX_VALUE_LENGTH)
        ].rstrip()
        value = regex(r"\\[nr].*|\s(?:#|//).*").sub("", value, count=1).rstrip()
        if self._sign == "=" and not self._has_space and not is_code(value[:_MAX_CODE_LENGTH]):
            value = " ".join(value.split(" ")[: 2 if self._match_scheme(pos, pos + len(value)) else 1])
        if self._is_setting(value):
            yield from self._extend_to_word_end(
                self._check_span(pos, pos + len(value.rstrip(",;"))), pos + _MAX_VALUE_LENGTH
            )

    def _is_setting(self, value: str) -> bool:
        """Return whether the rest of the line is the value of a setting, and not code or a sentence."""
        bare = value.rstrip(",;})")
        if is_code(value[:_MAX_CODE_LENGTH]) or is_code(bare[:_MAX_CODE_LENGTH]):
            return False
        if " " in bare and not self._match_scheme(self._pos, self._pos + len(bare)):
            parts = bare.split()
            return is_mixed(parts[0]) or (len(parts) >= 3 and all(part.isalpha() and part.islower() for part in parts))
        if not is_variable_name(bare) or looks_random(bare):
            return True
        has_terminator = bare != value or value.endswith("{")
        if has_terminator and ("_" in bare or self._grade != "password"):
            return False
        return self._sign != "=" or self._is_assigned_word(bare)

    def _is_assigned_word(self, word: str) -> bool:
        """Return whether a word after `=` is a value (in a settings file), and not a variable (in code)."""
        if self._has_space:
            at_margin = self._name.text_before[-1:] in ("", "\n") and not self._is_same_name(word)
            return at_margin and ((self._grade == "password" and word.isalpha()) or self._is_in_section())
        return self._name.text_before[-1:] not in (" ", "\t") or not self._is_same_name(word)

    def _is_in_section(self) -> bool:
        """Return whether there is a `[section]` line above, which means a settings file."""
        above = self._text[max(self._name.start - 500, 0) : self._name.start]
        return regex(r"(?m)^\[[\w .:/\-]{1,60}\][ \t\r]*$").search(above) is not None

    def _block_value(self, pos: int) -> Iterator[Span]:
        """Yield a YAML block: the lines that are indented more than their key."""
        line_start = self._text.rfind("\n", 0, self._name.start) + 1
        text_before = self._text[line_start : self._name.start]
        indent = len(text_before) - len(text_before.lstrip(" \t"))
        body = regex(rf"(?:[ \t]{{{indent + 1},}}[^\n]*(?:\n|$)|[ \t]*\n){{1,200}}").match(self._text, pos)
        if body is not None:
            yield from self._check_span(pos, body.end())

    def _inline_value(self, pos: int) -> Iterator[Span]:
        """Yield a value within a line, up to whitespace or a sign that ends a word in most notations."""
        if self._sign == ":" and not self._has_space and regex(_FORMAT).match(self._text, pos):
            return
        long_pattern = _COOKIES if self._grade == "cookie" else ""
        if regex(_LONG_SCHEME).match(self._text, pos):
            long_pattern = _LONG_SCHEME_REST
        scheme = None if long_pattern else self._match_scheme(pos, len(self._text))
        word = regex(long_pattern or _WORD).match(self._text, scheme.end() if scheme else pos)
        if word is None:
            return
        value = word.group() if long_pattern else _strip_word_end(word.group())
        end = word.start() + len(value)
        in_address = self._name.text_before[-1:] in ("?", "&")
        if long_pattern or scheme or in_address or not self._is_expression(value, self._text[end : end + 1]):
            yield from self._extend_to_word_end(self._check_span(pos, end), word.start() + _MAX_WORD_LENGTH)

    def _extend_to_word_end(self, spans: Iterator[Span], limit: int) -> Iterator[Span]:
        """Yield the spans; a span that ends at the length limit is extended to the end of its word."""
        for start, end in spans:
            rest = regex(r"[^\s&;\"'`<>]*").match(self._text, end) if end == limit else None
            yield start, rest.end() if rest else end

    def _is_expression(self, value: str, next_char: str) -> bool:
        if is_code(value[:_MAX_CODE_LENGTH] + next_char) or is_code(value[:_MAX_CODE_LENGTH]):
            return True
        if self._sign == ":" and regex(r"[A-Za-z_][\w.\[\]]*=").match(value):
            return True
        as_setting = self._sign == "=" and not self._has_space
        return (
            self._sign != ":-"
            and is_variable_name(value)
            and (next_char in (",", ")", "}") or not as_setting or self._is_same_name(value))
        )

    def _is_same_name(self, value: str) -> bool:
        """Return whether the last words are equal: `password=new_password` passes a variable."""
        return split_words(value)[-1:] == split_words(self._name.text)[-1:]


def _strip_word_end(word: str) -> str:
    """Remove a following pair or escaped line break from a word, and closing signs."""
    number = regex(r"[+-]?[0-9]+(?=[,}\])])").match(word)
    if number is not None:
        return number.group()
    next_part = regex(r",[\w.\-]{1,80}[=:]|\\[nr\"']").search(word)
    value = word[: next_part.start()] if next_part else word
    return value if regex(r"[(\[{]").search(value) else value.rstrip(",.)]}:")


def _find_closing_quote(text: str, quote: str, pos: int) -> int | None:
    """Return the position of the closing quote in the same line, or None. Escaped quotes are skipped."""
    depth = quote.count("\\")
    if quote[-1] not in "\"'`":
        end = text.find(quote, pos, pos + _MAX_VALUE_LENGTH)
        return end if end >= 0 else None
    for match in regex(rf"(?<!\\)(\\*){quote[-1]}|\n").finditer(text, pos, pos + _MAX_VALUE_LENGTH):
        if match.group() == "\n":
            return None
        if len(match.group(1)) % (2 * depth + 2) == depth:
            return match.end() - 1 - depth
    return None
