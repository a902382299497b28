"""Reads shell words: quotes, escapes and every expansion that may hide a command."""

import re
from collections.abc import Callable

from ostler.policy.shell.escapes import ansi_c
from ostler.policy.shell.tree import Arith, Array, Param, Part, Redirect, Script, Sub, Text, Word

DEPTH = 40
RETRIES = 16

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
_PLAIN_ANSI = re.compile(r"\$'(?:[^'\"\\$`}]|\\[abefnrtv])*'")  # ends at the same place in every shell
_ARRAY_HEAD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=\Z")
_SPECIAL = {"\\": "_escape", "'": "_single", '"': "_double", "$": "_dollar", "`": "_backtick"}
_AMBIGUOUS = frozenset('}"$`\\\n')


class Unreadable(Exception):
    """The text is no shell this reader is sure about."""

    partial: Script | None = None


class WordReader:
    """The half of the reader that knows words; the grammar of commands is its subclass."""

    def __init__(self, text: str, depth: int = 0) -> None:
        if depth > DEPTH:
            raise Unreadable("nested too deep")
        self.text = text
        self.end = len(text)
        self.pos = 0
        self.depth = depth
        self.retries = RETRIES
        self.pending: list[Redirect] = []

    def script_until(self, closer: str) -> Script:
        """The commands up to a closing character, which is consumed."""
        raise NotImplementedError

    def skip_space(self) -> None:
        """Past blanks, newlines and comments."""
        raise NotImplementedError

    def _special(self, char: str) -> Callable[[list[Part], bool], None]:
        reader: Callable[[list[Part], bool], None] = getattr(self, _SPECIAL[char])
        return reader

    # words

    def word(self, *, arrays: bool = False, groups: bool = False, regex: bool = False) -> Word:
        """The word at the cursor; `arrays` allows `x=(…)`, `groups` allows `@(…)`, `regex` any parenthesis."""
        start = self.pos
        parts: list[Part] = []
        while self.pos < self.end:
            if plain := _PLAIN.match(self.text, self.pos):
                parts.append(Text(plain.group()))
                self.pos = plain.end()
            elif not self._word_part(parts, start, arrays, groups, regex):
                break
        return Word(tuple(parts), self.text[start : self.pos])

    def _word_part(self, parts: list[Part], start: int, arrays: bool, groups: bool, regex: bool) -> bool:
        char = self.text[self.pos]
        if char in _SPECIAL:
            self._special(char)(parts, False)
        elif char in "<>" and self.text.startswith("(", self.pos + 1):
            self.pos += 2
            parts.append(Sub(self.nested_script(), False, "<" if char == "<" else ">"))
        elif char == "(" and arrays and _ARRAY_HEAD.match(self.text[start : self.pos]):
            self._array(parts)
        elif char == "(" and (regex or (groups and self.pos > start and self.text[self.pos - 1] in "?*+@!")):
            self._group(parts)
        elif char == "|" and regex:
            parts.append(Text("|"))
            self.pos += 1
        else:
            return False
        return True

    def nested_script(self) -> Script:
        """A script in parentheses that the cursor has just entered."""
        self.depth += 1
        if self.depth > DEPTH:
            raise Unreadable("nested too deep")
        waiting, self.pending = self.pending, []
        script = self.script_until(")")
        if self.pending:
            raise Unreadable("a here-document has no end")
        self.depth, self.pending = self.depth - 1, waiting
        return script

    def _array(self, parts: list[Part]) -> None:
        self.pos += 1
        words: list[Word] = []
        while True:
            self.skip_space()
            if self.pos >= self.end:
                raise Unreadable("an array is not closed")
            if self.text[self.pos] == ")":
                break
            word = self.word(groups=True)
            if not word.raw:
                raise Unreadable("an array holds an operator")
            words.append(word)
        self.pos += 1
        parts.append(Array(tuple(words)))

    def _group(self, parts: list[Part]) -> None:
        self._balanced(parts, _GROUP, "(", ")")

    # quotes

    def _escape(self, parts: list[Part], _quoted: bool) -> None:
        char = self.text[self.pos + 1 : self.pos + 2]
        self.pos += 2
        if char != "\n":
            parts.append(Text(char or "\\", True))

    def _single(self, parts: list[Part], _quoted: bool) -> None:
        close = self.text.find("'", self.pos + 1)
        if close < 0:
            raise Unreadable("a quote is not closed")
        parts.append(Text(self.text[self.pos + 1 : close], True))
        self.pos = close + 1

    def _double(self, parts: list[Part], _quoted: bool) -> None:
        self.pos += 1
        parts.append(Text("", True))
        while not self.text.startswith('"', self.pos):
            self._double_part(parts, _DOUBLE, '$`"\\')
        self.pos += 1

    def _double_part(self, parts: list[Part], plain: re.Pattern[str], escapable: str) -> None:
        if self.pos >= self.end:
            raise Unreadable("a quote is not closed")
        if found := plain.match(self.text, self.pos):
            parts.append(Text(found.group(), True))
            self.pos = found.end()
        elif self.text[self.pos] != "\\":
            self._special(self.text[self.pos])(parts, True)
        else:
            char = self.text[self.pos + 1 : self.pos + 2]
            self.pos += 2
            if char != "\n":
                parts.append(Text(char if char and char in escapable else "\\" + char, True))

    def expanding(self) -> Word:
        """The whole text as the body of a here-document: expansions work, quotes do not."""
        parts: list[Part] = []
        while self.pos < self.end:
            self._double_part(parts, _HEREDOC, "$`\\")
        return Word(tuple(parts), self.text)

    # what a dollar or a backtick begins

    def _dollar(self, parts: list[Part], quoted: bool) -> None:
        follows = self.text[self.pos + 1 : self.pos + 2]
        if follows == "(":
            self._parenthesis(parts, quoted)
        elif follows == "{":
            self._braced(parts, quoted)
        elif follows == "[":
            self.pos += 1
            inner: list[Part] = []
            self._balanced(inner, _INDEX, "[", "]")
            parts.append(Arith(tuple(inner), quoted))
        elif follows == "'" and not quoted:
            self._ansi(parts)
        elif follows == '"' and not quoted:
            self.pos += 1
            self._double(parts, quoted)
        elif name := _NAME.match(self.text, self.pos + 1):
            parts.append(Param(name.group(), quoted))
            self.pos = name.end()
        else:
            parts.append(Text("$", quoted))
            self.pos += 1

    def _ansi(self, parts: list[Part]) -> None:
        found = _ANSI.match(self.text, self.pos)
        if not found:
            raise Unreadable("a quote is not closed")
        parts.append(Text(ansi_c(found.group(1)), True))
        self.pos = found.end()

    def _parenthesis(self, parts: list[Part], quoted: bool) -> None:
        if self.text.startswith("((", self.pos + 1):
            inner = self.arithmetic(self.pos + 3)
            if inner is not None:
                parts.append(Arith(inner, quoted))
                return
        self.pos += 2
        parts.append(Sub(self.nested_script(), quoted))

    def arithmetic(self, begin: int) -> tuple[Part, ...] | None:
        """What stands between `((` and `))`; nothing, and the cursor back, when it is a subshell after all."""
        self.retries -= 1
        if self.retries < 0:
            raise Unreadable("too many arithmetic expressions that are none")
        back, depth, pending = self.pos, self.depth, list(self.pending)
        self.pos = begin - 1
        parts: list[Part] = []
        try:
            self._balanced(parts, _ARITH, "(", ")")
        except Unreadable:
            if self.pos >= self.end:
                raise
            self.depth = depth
        else:
            if self.text.startswith(")", self.pos):
                self.pos += 1
                self.retries += 1
                return tuple(parts)
        self.pos, self.pending = back, pending
        return None

    def _balanced(self, parts: list[Part], plain: re.Pattern[str], opener: str, closer: str) -> None:
        """From an opener to its closer, both consumed; expansions inside become parts."""
        level = 0
        while True:
            if self.pos >= self.end:
                raise Unreadable(f"{opener} is not closed")
            char = self.text[self.pos]
            if found := plain.match(self.text, self.pos):
                parts.append(Text(found.group()))
                self.pos = found.end()
            elif char in _SPECIAL:
                self._special(char)(parts, False)
            else:
                level += (char == opener) - (char == closer)
                parts.append(Text(char))
                self.pos += 1
                if not level:
                    return

    def _braced(self, parts: list[Part], quoted: bool) -> None:
        head = _BRACED.match(self.text, self.pos)
        if not head:
            raise Unreadable("an expansion that is not understood")
        param = Param(head.group(2) or head.group(4), quoted, head.group(1) or "")
        self.pos = head.end()
        operand: list[Part] = []
        if self.text.startswith("[", self.pos):
            start = self.pos
            self._balanced(operand, _INDEX, "[", "]")
            param.index = self.text[start + 1 : self.pos - 1]
        if not self.text.startswith("}", self.pos):
            operator = _OPERATOR.match(self.text, self.pos)
            if not operator:
                raise Unreadable("an expansion that is not understood")
            param.op = operator.group()
            self.pos = operator.end()
            operand = self._operand(operand, quoted)
        self.pos += 1
        param.operand = tuple(operand)
        parts.append(param)

    def _operand(self, parts: list[Part], quoted: bool) -> list[Part]:
        while not self.text.startswith("}", self.pos):
            if self.pos >= self.end:
                raise Unreadable("an expansion is not closed")
            char = self.text[self.pos]
            if plain := _OPERAND.match(self.text, self.pos):
                parts.append(Text(plain.group(), quoted))
                self.pos = plain.end()
                continue
            if quoted and (plain_ansi := _PLAIN_ANSI.match(self.text, self.pos)):
                parts.append(Text(plain_ansi.group(), True))
                self.pos = plain_ansi.end()
                continue
            if quoted and char in "'\"":
                self._refuse_ambiguous(char)
            self._special(char)(parts, quoted and char in "$`")
        return parts

    def _refuse_ambiguous(self, quote: str) -> None:
        """Shells differ on quotes inside a quoted `${…}`; only what all of them read alike is read."""
        close = self.text.find(quote, self.pos + 1)
        if close < 0 or not _AMBIGUOUS.isdisjoint(self.text[self.pos + 1 : close]):
            raise Unreadable("quotes that shells read in different ways")

    def _backtick(self, parts: list[Part], quoted: bool) -> None:
        found = _BACKTICK.match(self.text, self.pos)
        if not found:
            raise Unreadable("a backtick is not closed")
        unescaped = re.sub(r"\\([$`\\\"])" if quoted else r"\\([$`\\])", r"\1", found.group(1))
        inner = type(self)(unescaped, self.depth + 1)
        parts.append(Sub(inner.script_until(""), quoted))
        self.pos = found.end()
