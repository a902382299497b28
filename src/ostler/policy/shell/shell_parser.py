"""Parses shell text into a syntax tree; rejects what it cannot parse with certainty."""

import re

from ostler.policy.shell.compound_parser import CompoundParser
from ostler.policy.shell.program_table import rows
from ostler.policy.shell.syntax_tree import (
    CommandNode,
    CompoundNode,
    FunctionNode,
    ListItem,
    LiteralPart,
    PipelineNode,
    Redirect,
    ScriptNode,
    ShellNode,
    ShellWord,
    WordPart,
)
from ostler.policy.shell.word_parser import MAX_DEPTH, ShellSyntaxError

_BLANKS = re.compile(r"(?:[ \t]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_CLOSERS = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}"})
_KEYWORD = re.compile(
    r"(?:if|then|else|elif|fi|do|done|case|esac|while|until|for|select|function|coproc|time|\[\[|\{|\}|!)"
    r"(?=[ \t\n;&|()<>]|\\\n|\Z)"
)
_REDIRECT = re.compile(r"(\d+|\{[A-Za-z_][A-Za-z0-9_]*\})?(&>>|&>|<<<|<<-|<<|<>|<&|>>|>\||>&|[<>](?!\())")
_INDEXED_DESCRIPTOR = re.compile(r"\{[A-Za-z_]\w*\[.*?\]\}(?=[<>])", re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[.*?\])?\+?=", re.DOTALL)
_DECLARATION_COMMANDS = frozenset({"declare", "typeset", "local", "export", "readonly", "alias"})
_ARITHMETIC = re.compile(r"[\s(]*[\w$~!+-][\s\w+*/%<>=!&|^~?:,()$\[\]{}#@-]*")
_TWO_OPERANDS = re.compile(r"[\w)]\s+[\w.~]")
_COMPARISON_TARGET = re.compile(r"(?<![>=-])>\s*([A-Za-z_]\w*)\s*\Z")
_BROKEN_OPERATOR = re.compile(r"[&|<>;({](?:\\\n)+[&|<>;({]|\$\\\n")
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
_NO_KEYWORDS: frozenset[str] = frozenset()


def parse_shell(text: str) -> ScriptNode:
    """Parse a command line. Raises `ShellSyntaxError` with the commands parsed so far in `partial`."""
    if _BROKEN_OPERATOR.search(text):
        raise ShellSyntaxError("an operator is split over two lines")
    return ShellParser(text).parse_script_until("")


class ShellParser(CompoundParser):
    """A recursive descent parser for bash."""

    # space, newlines and here-documents

    def skip_blanks(self) -> None:
        """Skip blanks and a comment, but not a newline."""
        if found := _BLANKS.match(self.text, self.pos):
            self.pos = found.end()
        if self.text.startswith("#", self.pos) and (comment := _COMMENT.match(self.text, self.pos)):
            self.pos = comment.end()

    def skip_whitespace(self) -> None:
        """Skip blanks, comments and newlines."""
        self.skip_blanks()
        while self.text.startswith("\n", self.pos):
            self._skip_newline()
            self.skip_blanks()

    def _skip_newline(self) -> None:
        self.pos += 1
        pending, self.pending_heredocs = self.pending_heredocs, []
        for redirect in pending:
            self._parse_heredoc(redirect)

    def _parse_heredoc(self, redirect: Redirect) -> None:
        raw = redirect.target.raw.replace("\\\n", "")
        texts = [part.text for part in redirect.target.parts if isinstance(part, LiteralPart)]
        delimiter = "".join(texts) if len(texts) == len(redirect.target.parts) else raw
        body = self._read_heredoc_body(delimiter, redirect.op == "<<-")
        if set("'\"\\").isdisjoint(raw):
            redirect.body = type(self)(body, self.depth + 1).parse_heredoc_body()
        else:
            redirect.body = ShellWord((LiteralPart(body, True),), body)

    def _read_heredoc_body(self, delimiter: str, strip_tabs: bool) -> str:
        lines: list[str] = []
        while self.pos < self.end:
            stop = self.text.find("\n", self.pos)
            stop = self.end if stop < 0 else stop
            line = self.text[self.pos : stop]
            self.pos = min(stop + 1, self.end)
            line = line.lstrip("\t") if strip_tabs else line
            if line == delimiter:
                return "".join(lines)
            if self.depth and line.startswith(delimiter):
                raise ShellSyntaxError("shells differ on where a here-document ends")
            lines.append(line + "\n")
        raise ShellSyntaxError("a here-document is not closed")

    # lists and pipelines

    def parse_script_until(self, closer: str) -> ScriptNode:
        """Parse commands up to and including `closer`, or to the end of the text if it is empty."""
        script = self.parse_script_before(_NO_KEYWORDS)
        if closer and self.text.startswith(closer, self.pos):
            self.pos += 1
        elif closer or self.pos < self.end or self.pending_heredocs:
            error = ShellSyntaxError("a bracket is missing or unexpected")
            error.partial = script
            raise error
        return script

    def parse_script_before(self, stop_keywords: frozenset[str]) -> ScriptNode:
        """Parse commands up to one of these keywords."""
        script = ScriptNode([])
        try:
            self._parse_items(script, stop_keywords)
        except ShellSyntaxError as error:
            error.partial = ScriptNode([*script.items, *(error.partial.items if error.partial else [])])
            raise
        return script

    def _parse_items(self, script: ScriptNode, stop_keywords: frozenset[str]) -> None:
        operator = ";"
        while True:
            self.skip_whitespace()
            if self._at_end(stop_keywords):
                if operator != ";":
                    raise ShellSyntaxError("a command is missing")
                return
            item = ListItem(self._parse_pipeline(), operator)  # type: ignore[arg-type]  # one of three literals
            script.items.append(item)
            operator = self._parse_separator(item)
            if not operator:
                self.skip_whitespace()
                if not self._at_end(stop_keywords):
                    raise ShellSyntaxError("a separator between two commands is missing")
                return

    def _at_end(self, stop_keywords: frozenset[str]) -> bool:
        if self.pos >= self.end or self.text[self.pos] == ")" or self.text.startswith((";;", ";&"), self.pos):
            return True
        keyword = self.peek_keyword()
        if keyword in _CLOSERS and keyword not in stop_keywords:
            raise ShellSyntaxError(f"unexpected {keyword}")
        return keyword in stop_keywords

    def _parse_separator(self, item: ListItem) -> str:
        self.skip_blanks()
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
            self._skip_newline()
            return ";"
        return ""

    def _parse_pipeline(self) -> ShellNode:
        self._skip_prefixes()
        stages = [self.parse_command()]
        self.skip_blanks()
        while self.text.startswith("|", self.pos) and not self.text.startswith("||", self.pos):
            self.pos += 2 if self.text.startswith("|&", self.pos) else 1
            self.skip_whitespace()
            self._skip_prefixes()
            stages.append(self.parse_command())
            self.skip_blanks()
        return stages[0] if len(stages) == 1 else PipelineNode(tuple(stages))

    def _skip_prefixes(self) -> None:
        while (keyword := self.peek_keyword()) in {"!", "time"}:
            self.pos += len(keyword)
            self.skip_blanks()
            while keyword == "time" and (
                option := re.compile(r"(?:-p|--)(?=[ \t\n;&|]|\Z)").match(self.text, self.pos)
            ):
                self.pos = option.end()
                self.skip_blanks()

    def peek_keyword(self) -> str:
        """Return the keyword at the current position, or an empty string."""
        found = _KEYWORD.match(self.text, self.pos)
        if found and self.text.startswith("\\\n", found.end()):
            raise ShellSyntaxError("a keyword is split over two lines")
        return found.group() if found else ""

    # commands

    def parse_command(self) -> ShellNode:
        """Parse one command of any kind."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ShellSyntaxError("nested too deeply")
        keyword = self.peek_keyword()
        if keyword in _COMPOUNDS:
            self.pos += len(keyword)
            node: ShellNode = getattr(self, _COMPOUNDS[keyword])()
        elif self.text.startswith("(", self.pos):
            node = self._parse_parentheses()
        else:
            node = self._parse_simple_command()
        self.depth -= 1
        return node

    def _parse_parentheses(self) -> ShellNode:
        if self.text.startswith("((", self.pos):
            start = self.pos
            inner = self.parse_arithmetic(start + 2)
            if inner is not None:
                text = self.text[start + 2 : self.pos - 2]
                target = _COMPARISON_TARGET.search(text)
                node = CompoundNode("arith", self._arithmetic_as_commands(inner, text), (ShellWord(inner, ""),))
                node.name = target.group(1) if target else ""
                return self.parse_redirects(node)
        self.pos += 1
        return self.parse_redirects(CompoundNode("subshell", (self.parse_script_until(")"),)))

    def _arithmetic_as_commands(self, parts: tuple[WordPart, ...], text: str) -> tuple[ScriptNode, ...]:
        """Parse the text in `((…))` also as commands, which a shell without `((` would run; skip plain arithmetic."""
        shape = "".join(part.text if isinstance(part, LiteralPart) else "0" for part in parts)
        first = shape.strip("() \t\n").split(maxsplit=1)[:1]
        if _ARITHMETIC.fullmatch(shape) and not _TWO_OPERANDS.search(shape) and not rows("always").keys() & first:
            return ()
        return (type(self)(text, self.depth + 1).parse_script_until(""),)

    def _parse_simple_command(self) -> ShellNode:
        assignments: list[ShellWord] = []
        words: list[ShellWord] = []
        redirects: list[Redirect] = []
        while True:
            self.skip_blanks()
            if self._parse_redirect(redirects):
                continue
            allows_arrays = not words or words[0].raw in _DECLARATION_COMMANDS
            word = self.parse_word(arrays=allows_arrays, groups=bool(words))
            if not word.raw:
                break
            (assignments if not words and self._is_assignment(word) else words).append(word)
        if self.text.startswith("(", self.pos):
            return self._parse_function_definition(assignments, words, redirects)
        if not (assignments or words or redirects):
            raise ShellSyntaxError("a command is missing")
        if words:
            self._reject_broken_keyword(words[0])
        return CommandNode(tuple(assignments), tuple(words), tuple(redirects))

    @staticmethod
    def _is_assignment(word: ShellWord) -> bool:
        first = word.parts[0]
        return isinstance(first, LiteralPart) and not first.quoted and bool(_ASSIGNMENT.match(word.raw))

    @staticmethod
    def _reject_broken_keyword(word: ShellWord) -> None:
        if "\\\n" in word.raw and _KEYWORD.fullmatch(word.raw.replace("\\\n", "")):
            raise ShellSyntaxError("a keyword is split over two lines")

    def _parse_function_definition(
        self, assignments: list[ShellWord], words: list[ShellWord], redirects: list[Redirect]
    ) -> ShellNode:
        if assignments or redirects or len(words) != 1:
            raise ShellSyntaxError("unexpected parenthesis")
        self.pos += 1
        self.skip_blanks()
        if not self.text.startswith(")", self.pos):
            raise ShellSyntaxError("unexpected parenthesis")
        self.pos += 1
        self.skip_whitespace()
        return FunctionNode(words[0].raw, self.parse_command())

    def _parse_redirect(self, redirects: list[Redirect]) -> bool:
        found = _REDIRECT.match(self.text, self.pos)
        if _INDEXED_DESCRIPTOR.match(self.text, self.pos):
            raise ShellSyntaxError("a redirection uses an array element")
        if not found:
            return False
        self.pos = found.end()
        self.skip_blanks()
        target = self.parse_word(groups=True)
        if not target.raw:
            raise ShellSyntaxError("a redirection has no file")
        redirect = Redirect(found.group(1) or "", found.group(2), target)
        redirects.append(redirect)
        if redirect.op in {"<<", "<<-"}:
            self.pending_heredocs.append(redirect)
        return True

    def parse_redirects(self, node: CompoundNode) -> CompoundNode:
        """Parse the redirections after a compound command and add them to it."""
        redirects: list[Redirect] = []
        self.skip_blanks()
        while self._parse_redirect(redirects):
            self.skip_blanks()
        node.redirects = tuple(redirects)
        return node
