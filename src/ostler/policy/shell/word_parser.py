"""Parses shell words: quotes, escapes and expansions."""

import re
from collections.abc import Callable

from ostler.policy.shell.escapes import decode_ansi_c
from ostler.policy.shell.syntax_tree import (
    ArithmeticPart,
    ArrayPart,
    LiteralPart,
    ParameterPart,
    Redirect,
    ScriptNode,
    ShellWord,
    SubstitutionPart,
    WordPart,
)

MAX_DEPTH = 40
MAX_RETRIES = 16

_PLAIN = re.compile(r"[^ \t\n|&;()<>\\'\"$`]+")
_DOUBLE = re.compile(r"[^\"\\$`]+")
_HEREDOC = re.compile(r"[^\\$`]+")
_OPERAND = re.compile(r"[^}\\'\"$`]+")
_ARITH = re.compile(r"[^()\[\]\\'\"$`]+")
_INDEX = re.compile(r"[^\[\]\\'\"$`]+")
_GROUP = re.compile(r"[^()\\'\"$`]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_BRACED = re.compile(r"\$\{(?:([!#]?)([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*?$!-])|()([@*#?$!-]))(?=[\[}:=?+#%/^,@*-])")
_OPERATOR = re.compile(r":?[-=?+]|##?|%%?|/[/#%]?|\^\^?|,,?|@[A-Za-z]?|:|\*")
_BACKTICK = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_PLAIN_ANSI = re.compile(r"\$'(?:[^'\"\\$`}]|\\[abefnrtv])*'")  # ends at the same position in every shell
_ARRAY_HEAD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=\Z")
_SPECIAL = {"\\": "_escape", "'": "_single", '"': "_double", "$": "_dollar", "`": "_backtick"}
_AMBIGUOUS = frozenset('}"$`\\\n')


class ShellSyntaxError(Exception):
    """Raised for shell text that cannot be parsed with certainty. `partial` has the commands parsed before."""

    partial: ScriptNode | None = None


class WordParser:
    """Parses words; the subclasses parse commands."""

    def __init__(self, text: str, depth: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise ShellSyntaxError("nested too deeply")
        self.text = text
        self.end = len(text)
        self.pos = 0
        self.depth = depth
        self.retries = MAX_RETRIES
        self.pending_heredocs: list[Redirect] = []

    def parse_script_until(self, closer: str) -> ScriptNode:
        """Parse commands up to and including a closing character."""
        raise NotImplementedError

    def skip_whitespace(self) -> None:
        """Skip blanks, comments and newlines."""
        raise NotImplementedError

    def _special_parser(self, char: str) -> Callable[[list[WordPart], bool], None]:
        parser: Callable[[list[WordPart], bool], None] = getattr(self, _SPECIAL[char])
        return parser

    # words

    def parse_word(self, *, arrays: bool = False, groups: bool = False, regex: bool = False) -> ShellWord:
        """Parse one word; `arrays` allows `x=(…)`, `groups` allows `@(…)`, `regex` any parenthesis."""
        start = self.pos
        parts: list[WordPart] = []
        while self.pos < self.end:
            if plain := _PLAIN.match(self.text, self.pos):
                parts.append(LiteralPart(plain.group()))
                self.pos = plain.end()
            elif not self._parse_word_part(parts, start, arrays, groups, regex):
                break
        return ShellWord(tuple(parts), self.text[start : self.pos])

    def _parse_word_part(self, parts: list[WordPart], start: int, arrays: bool, groups: bool, regex: bool) -> bool:
        char = self.text[self.pos]
        if char in _SPECIAL:
            self._special_parser(char)(parts, False)
        elif char in "<>" and self.text.startswith("(", self.pos + 1):
            self.pos += 2
            parts.append(SubstitutionPart(self.parse_nested_script(), False, "<" if char == "<" else ">"))
        elif char == "(" and arrays and _ARRAY_HEAD.match(self.text[start : self.pos]):
            self._parse_array(parts)
        elif char == "(" and (regex or (groups and self.pos > start and self.text[self.pos - 1] in "?*+@!")):
            self._parse_group(parts)
        elif char == "|" and regex:
            parts.append(LiteralPart("|"))
            self.pos += 1
        else:
            return False
        return True

    def parse_nested_script(self) -> ScriptNode:
        """Parse a script in parentheses; the current position is after the opening one."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ShellSyntaxError("nested too deeply")
        outer_heredocs, self.pending_heredocs = self.pending_heredocs, []
        script = self.parse_script_until(")")
        if self.pending_heredocs:
            raise ShellSyntaxError("a here-document is not closed")
        self.depth, self.pending_heredocs = self.depth - 1, outer_heredocs
        return script

    def _parse_array(self, parts: list[WordPart]) -> None:
        self.pos += 1
        words: list[ShellWord] = []
        while True:
            self.skip_whitespace()
            if self.pos >= self.end:
                raise ShellSyntaxError("an array is not closed")
            if self.text[self.pos] == ")":
                break
            word = self.parse_word(groups=True)
            if not word.raw:
                raise ShellSyntaxError("an array contains an operator")
            words.append(word)
        self.pos += 1
        parts.append(ArrayPart(tuple(words)))

    def _parse_group(self, parts: list[WordPart]) -> None:
        self._parse_balanced(parts, _GROUP, "(", ")")

    # quotes

    def _escape(self, parts: list[WordPart], _quoted: bool) -> None:
        char = self.text[self.pos + 1 : self.pos + 2]
        self.pos += 2
        if char != "\n":
            parts.append(LiteralPart(char or "\\", True))

    def _single(self, parts: list[WordPart], _quoted: bool) -> None:
        close = self.text.find("'", self.pos + 1)
        if close < 0:
            raise ShellSyntaxError("a quote is not closed")
        parts.append(LiteralPart(self.text[self.pos + 1 : close], True))
        self.pos = close + 1

    def _double(self, parts: list[WordPart], _quoted: bool) -> None:
        self.pos += 1
        parts.append(LiteralPart("", True))
        while not self.text.startswith('"', self.pos):
            self._parse_double_part(parts, _DOUBLE, '$`"\\')
        self.pos += 1

    def _parse_double_part(self, parts: list[WordPart], plain: re.Pattern[str], escapable: str) -> None:
        if self.pos >= self.end:
            raise ShellSyntaxError("a quote is not closed")
        if found := plain.match(self.text, self.pos):
            parts.append(LiteralPart(found.group(), True))
            self.pos = found.end()
        elif self.text[self.pos] != "\\":
            self._special_parser(self.text[self.pos])(parts, True)
        else:
            char = self.text[self.pos + 1 : self.pos + 2]
            self.pos += 2
            if char != "\n":
                parts.append(LiteralPart(char if char and char in escapable else "\\" + char, True))

    def parse_heredoc_body(self) -> ShellWord:
        """Parse the whole text as the body of a here-document: with expansions, without quotes."""
        parts: list[WordPart] = []
        while self.pos < self.end:
            self._parse_double_part(parts, _HEREDOC, "$`\\")
        return ShellWord(tuple(parts), self.text)

    # expansions

    def _dollar(self, parts: list[WordPart], quoted: bool) -> None:
        follows = self.text[self.pos + 1 : self.pos + 2]
        if follows == "(":
            self._parse_dollar_parenthesis(parts, quoted)
        elif follows == "{":
            self._parse_braced(parts, quoted)
        elif follows == "[":
            self.pos += 1
            inner: list[WordPart] = []
            self._parse_balanced(inner, _INDEX, "[", "]")
            parts.append(ArithmeticPart(tuple(inner), quoted))
        elif follows == "'" and not quoted:
            self._parse_ansi(parts)
        elif follows == '"' and not quoted:
            self.pos += 1
            self._double(parts, quoted)
        elif name := _NAME.match(self.text, self.pos + 1):
            parts.append(ParameterPart(name.group(), quoted))
            self.pos = name.end()
        else:
            parts.append(LiteralPart("$", quoted))
            self.pos += 1

    def _parse_ansi(self, parts: list[WordPart]) -> None:
        found = _ANSI.match(self.text, self.pos)
        if not found:
            raise ShellSyntaxError("a quote is not closed")
        parts.append(LiteralPart(decode_ansi_c(found.group(1)), True))
        self.pos = found.end()

    def _parse_dollar_parenthesis(self, parts: list[WordPart], quoted: bool) -> None:
        if self.text.startswith("((", self.pos + 1):
            inner = self.parse_arithmetic(self.pos + 3)
            if inner is not None:
                parts.append(ArithmeticPart(inner, quoted))
                return
        self.pos += 2
        parts.append(SubstitutionPart(self.parse_nested_script(), quoted))

    def parse_arithmetic(self, start: int) -> tuple[WordPart, ...] | None:
        """Parse the text between `((` and `))`. Return None and reset the position if it is a subshell."""
        self.retries -= 1
        if self.retries < 0:
            raise ShellSyntaxError("too many invalid arithmetic expressions")
        saved_pos, depth, pending = self.pos, self.depth, list(self.pending_heredocs)
        self.pos = start - 1
        parts: list[WordPart] = []
        try:
            self._parse_balanced(parts, _ARITH, "(", ")")
        except ShellSyntaxError:
            if self.pos >= self.end:
                raise
            self.depth = depth
        else:
            if self.text.startswith(")", self.pos):
                self.pos += 1
                self.retries += 1
                return tuple(parts)
        self.pos, self.pending_heredocs = saved_pos, pending
        return None

    def _parse_balanced(self, parts: list[WordPart], plain: re.Pattern[str], opener: str, closer: str) -> None:
        """Parse from an opening to the matching closing character, both included, with expansions."""
        level = 0
        while True:
            if self.pos >= self.end:
                raise ShellSyntaxError(f"{opener} is not closed")
            char = self.text[self.pos]
            if found := plain.match(self.text, self.pos):
                parts.append(LiteralPart(found.group()))
                self.pos = found.end()
            elif char in _SPECIAL:
                self._special_parser(char)(parts, False)
            else:
                level += (char == opener) - (char == closer)
                parts.append(LiteralPart(char))
                self.pos += 1
                if not level:
                    return

    def _parse_braced(self, parts: list[WordPart], quoted: bool) -> None:
        head = _BRACED.match(self.text, self.pos)
        if not head:
            raise ShellSyntaxError("an expansion is not supported")
        param = ParameterPart(head.group(2) or head.group(4), quoted, head.group(1) or "")
        self.pos = head.end()
        operand: list[WordPart] = []
        if self.text.startswith("[", self.pos):
            start = self.pos
            index_parts: list[WordPart] = []
            self._parse_balanced(index_parts, _INDEX, "[", "]")
            param.index = self.text[start + 1 : self.pos - 1]
            param.index_parts = tuple(index_parts[1:-1])
        if not self.text.startswith("}", self.pos):
            operator = _OPERATOR.match(self.text, self.pos)
            if not operator:
                raise ShellSyntaxError("an expansion is not supported")
            param.op = operator.group()
            self.pos = operator.end()
            operand = self._parse_operand(operand, quoted)
        self.pos += 1
        param.operand = tuple(operand)
        parts.append(param)

    def _parse_operand(self, parts: list[WordPart], quoted: bool) -> list[WordPart]:
        while not self.text.startswith("}", self.pos):
            if self.pos >= self.end:
                raise ShellSyntaxError("an expansion is not closed")
            char = self.text[self.pos]
            if plain := _OPERAND.match(self.text, self.pos):
                parts.append(LiteralPart(plain.group(), quoted))
                self.pos = plain.end()
                continue
            if quoted and (plain_ansi := _PLAIN_ANSI.match(self.text, self.pos)):
                parts.append(LiteralPart(plain_ansi.group(), True))
                self.pos = plain_ansi.end()
                continue
            if quoted and char in "'\"":
                self._reject_ambiguous(char)
            self._special_parser(char)(parts, quoted and char in "$`")
        return parts

    def _reject_ambiguous(self, quote: str) -> None:
        """Reject quotes inside a quoted `${…}` that shells parse differently."""
        close = self.text.find(quote, self.pos + 1)
        if close < 0 or not _AMBIGUOUS.isdisjoint(self.text[self.pos + 1 : close]):
            raise ShellSyntaxError("shells differ on these quotes")

    def _backtick(self, parts: list[WordPart], quoted: bool) -> None:
        found = _BACKTICK.match(self.text, self.pos)
        if not found:
            raise ShellSyntaxError("a backtick is not closed")
        unescaped = re.sub(r"\\([$`\\\"])" if quoted else r"\\([$`\\])", r"\1", found.group(1))
        inner = type(self)(unescaped, self.depth + 1)
        parts.append(SubstitutionPart(inner.parse_script_until(""), quoted))
        self.pos = found.end()
