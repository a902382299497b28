"""Reads shell text into a tree, the way bash does; what it is not sure about it refuses."""

import re

from ostler.policy import danger
from ostler.policy.shell.compounds import CompoundReader
from ostler.policy.shell.tree import (
    Command,
    Compound,
    Function,
    Item,
    Node,
    Part,
    Pipe,
    Redirect,
    Script,
    Text,
    Word,
)
from ostler.policy.shell.words import DEPTH, Unreadable

_BLANKS = re.compile(r"(?:[ \t]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_CLOSERS = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}"})
_KEYWORD = re.compile(
    r"(?:if|then|else|elif|fi|do|done|case|esac|while|until|for|select|function|coproc|time|\[\[|\{|\}|!)"
    r"(?=[ \t\n;&|()<>]|\\\n|\Z)"
)
_REDIRECT = re.compile(r"(\d+|\{[A-Za-z_][A-Za-z0-9_]*\})?(&>>|&>|<<<|<<-|<<|<>|<&|>>|>\||>&|[<>](?!\())")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[.*?\])?\+?=", re.DOTALL)
_DECLARERS = frozenset({"declare", "typeset", "local", "export", "readonly", "alias"})
_NUMBERS = re.compile(r"[\s(]*[\w$~!+-][\s\w+*/%<>=!&|^~?:,()$\[\]{}#@-]*")
_TWO_OPERANDS = re.compile(r"[\w)]\s+[\w.~]")
_COMPARED = re.compile(r"(?<![>=-])>\s*([A-Za-z_]\w*)\s*\Z")
_GLUED = re.compile(r"[&|<>;({](?:\\\n)+[&|<>;({]|\$\\\n")
_COMPOUNDS = {
    "if": "_if",
    "while": "_loop",
    "until": "_loop",
    "for": "_for",
    "select": "_for",
    "case": "_case",
    "function": "_function",
    "coproc": "_coproc",
    "[[": "_test",
    "{": "_braces",
}
_NO_WORDS: frozenset[str] = frozenset()


def read(text: str) -> Script:
    """The tree of a command line. Raises Unreadable, which keeps the commands that were read before."""
    if _GLUED.search(text):
        raise Unreadable("an operator is broken over two lines")
    return Reader(text).script_until("")


class Reader(CompoundReader):
    """A recursive descent over the grammar of bash."""

    # space, newlines and here-documents

    def blanks(self) -> None:
        """Past blanks and a comment, not past a newline."""
        if found := _BLANKS.match(self.text, self.pos):
            self.pos = found.end()
        if self.text.startswith("#", self.pos) and (comment := _COMMENT.match(self.text, self.pos)):
            self.pos = comment.end()

    def skip_space(self) -> None:
        """Past blanks, comments and newlines."""
        self.blanks()
        while self.text.startswith("\n", self.pos):
            self._newline()
            self.blanks()

    def _newline(self) -> None:
        self.pos += 1
        pending, self.pending = self.pending, []
        for redirect in pending:
            self._heredoc(redirect)

    def _heredoc(self, redirect: Redirect) -> None:
        raw = redirect.target.raw.replace("\\\n", "")
        texts = [part.text for part in redirect.target.parts if isinstance(part, Text)]
        delimiter = "".join(texts) if len(texts) == len(redirect.target.parts) else raw
        body = self._body(delimiter, redirect.op == "<<-")
        if set("'\"\\").isdisjoint(raw):
            redirect.body = type(self)(body, self.depth + 1).expanding()
        else:
            redirect.body = Word((Text(body, True),), body)

    def _body(self, delimiter: str, tabs: bool) -> str:
        lines: list[str] = []
        while self.pos < self.end:
            stop = self.text.find("\n", self.pos)
            stop = self.end if stop < 0 else stop
            line = self.text[self.pos : stop]
            self.pos = min(stop + 1, self.end)
            line = line.lstrip("\t") if tabs else line
            if line == delimiter:
                return "".join(lines)
            if self.depth and line.startswith(delimiter):
                raise Unreadable("a here-document whose end shells read in different ways")
            lines.append(line + "\n")
        raise Unreadable("a here-document has no end")

    # lists and pipelines

    def script_until(self, closer: str) -> Script:
        """Commands up to `)`, which is consumed, or without a closer to the end of the text."""
        script = self.script_before(_NO_WORDS)
        if closer and self.text.startswith(closer, self.pos):
            self.pos += 1
        elif closer or self.pos < self.end or self.pending:
            error = Unreadable("something is not closed")
            error.partial = script
            raise error
        return script

    def script_before(self, until: frozenset[str]) -> Script:
        """The commands before one of these keywords."""
        script = Script([])
        try:
            self._fill(script, until)
        except Unreadable as error:
            error.partial = Script([*script.items, *(error.partial.items if error.partial else [])])
            raise
        return script

    def _fill(self, script: Script, until: frozenset[str]) -> None:
        link = ";"
        while True:
            self.skip_space()
            if self._at_end(until):
                if link != ";":
                    raise Unreadable("a command is missing")
                return
            item = Item(self._pipeline(), link)  # type: ignore[arg-type]  # one of three literals
            script.items.append(item)
            link = self._separator(item)
            if not link:
                self.skip_space()
                if not self._at_end(until):
                    raise Unreadable("two commands without a separator")
                return

    def _at_end(self, until: frozenset[str]) -> bool:
        if self.pos >= self.end or self.text[self.pos] == ")" or self.text.startswith((";;", ";&"), self.pos):
            return True
        keyword = self.keyword()
        if keyword in _CLOSERS and keyword not in until:
            raise Unreadable(f"{keyword} stands where no {keyword} may")
        return keyword in until

    def _separator(self, item: Item) -> str:
        self.blanks()
        two = self.text[self.pos : self.pos + 2]
        if two in {"&&", "||"}:
            self.pos += 2
            return two
        if two in {";;", ";&"}:
            return ""
        if two[:1] in {";", "&"}:
            self.pos += 1
            item.background = two[0] == "&"
            return ";"
        if two[:1] == "\n":
            self._newline()
            return ";"
        return ""

    def _pipeline(self) -> Node:
        self._prefixes()
        stages = [self.command()]
        self.blanks()
        while self.text.startswith("|", self.pos) and not self.text.startswith("||", self.pos):
            self.pos += 2 if self.text.startswith("|&", self.pos) else 1
            self.skip_space()
            self._prefixes()
            stages.append(self.command())
            self.blanks()
        return stages[0] if len(stages) == 1 else Pipe(tuple(stages))

    def _prefixes(self) -> None:
        while (keyword := self.keyword()) in {"!", "time"}:
            self.pos += len(keyword)
            self.blanks()
            while keyword == "time" and (
                option := re.compile(r"(?:-p|--)(?=[ \t\n;&|]|\Z)").match(self.text, self.pos)
            ):
                self.pos = option.end()
                self.blanks()

    def keyword(self) -> str:
        """The keyword at the cursor, if there is one."""
        found = _KEYWORD.match(self.text, self.pos)
        if found and self.text.startswith("\\\n", found.end()):
            raise Unreadable("a keyword is broken over two lines")
        return found.group() if found else ""

    # commands

    def command(self) -> Node:
        """One command of any kind."""
        self.depth += 1
        if self.depth > DEPTH:
            raise Unreadable("nested too deep")
        keyword = self.keyword()
        if keyword in _COMPOUNDS:
            self.pos += len(keyword)
            node: Node = getattr(self, _COMPOUNDS[keyword])()
        elif self.text.startswith("(", self.pos):
            node = self._parentheses()
        else:
            node = self._simple()
        self.depth -= 1
        return node

    def _parentheses(self) -> Node:
        if self.text.startswith("((", self.pos):
            begin = self.pos
            inner = self.arithmetic(begin + 2)
            if inner is not None:
                text = self.text[begin + 2 : self.pos - 2]
                compared = _COMPARED.search(text)
                node = Compound("arith", self._also_commands(inner, text), (Word(inner, ""),))
                node.name = compared.group(1) if compared else ""
                return self.redirected(node)
        self.pos += 1
        return self.redirected(Compound("subshell", (self.script_until(")"),)))

    def _also_commands(self, parts: tuple[Part, ...], text: str) -> tuple[Script, ...]:
        """A shell without `((` runs the text in it as commands; so it is read as such unless it can only be numbers."""
        shape = "".join(part.text if isinstance(part, Text) else "0" for part in parts)
        first = shape.strip("() \t\n").split(maxsplit=1)[:1]
        if _NUMBERS.fullmatch(shape) and not _TWO_OPERANDS.search(shape) and not danger.ALWAYS.keys() & first:
            return ()
        return (type(self)(text, self.depth + 1).script_until(""),)

    def _simple(self) -> Node:
        assigns: list[Word] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self.blanks()
            if self._take_redirect(redirects):
                continue
            declares = not words or words[0].raw in _DECLARERS
            word = self.word(arrays=declares, groups=bool(words))
            if not word.raw:
                break
            (assigns if not words and self._assigns(word) else words).append(word)
        if self.text.startswith("(", self.pos):
            return self._defined(assigns, words, redirects)
        if not (assigns or words or redirects):
            raise Unreadable("a command is missing")
        if words:
            self._refuse_broken_keyword(words[0])
        return Command(tuple(assigns), tuple(words), tuple(redirects))

    @staticmethod
    def _assigns(word: Word) -> bool:
        first = word.parts[0]
        return isinstance(first, Text) and not first.quoted and bool(_ASSIGNMENT.match(word.raw))

    @staticmethod
    def _refuse_broken_keyword(word: Word) -> None:
        if "\\\n" in word.raw and _KEYWORD.fullmatch(word.raw.replace("\\\n", "")):
            raise Unreadable("a keyword is broken over two lines")

    def _defined(self, assigns: list[Word], words: list[Word], redirects: list[Redirect]) -> Node:
        if assigns or redirects or len(words) != 1:
            raise Unreadable("a bracket in the middle of a command")
        self.pos += 1
        self.blanks()
        if not self.text.startswith(")", self.pos):
            raise Unreadable("a bracket in the middle of a command")
        self.pos += 1
        self.skip_space()
        return Function(words[0].raw, self.command())

    def _take_redirect(self, redirects: list[Redirect]) -> bool:
        found = _REDIRECT.match(self.text, self.pos)
        if not found:
            return False
        self.pos = found.end()
        self.blanks()
        target = self.word(groups=True)
        if not target.raw:
            raise Unreadable("a redirection without a file")
        redirect = Redirect(found.group(1) or "", found.group(2), target)
        redirects.append(redirect)
        if redirect.op in {"<<", "<<-"}:
            self.pending.append(redirect)
        return True

    def redirected(self, node: Compound) -> Compound:
        """A compound command with the redirections that follow it."""
        redirects: list[Redirect] = []
        self.blanks()
        while self._take_redirect(redirects):
            self.blanks()
        node.redirects = tuple(redirects)
        return node
