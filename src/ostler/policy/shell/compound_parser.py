"""Parses compound commands: if, loops, case, functions, groups and tests."""

import re
from itertools import pairwise

from ostler.policy.shell.syntax_tree import (
    CompoundKind,
    CompoundNode,
    FunctionNode,
    ListItem,
    ScriptNode,
    ShellNode,
    ShellWord,
)
from ostler.policy.shell.word_parser import ShellSyntaxError, WordParser

_IN = re.compile(r"in(?=[ \t\n;]|\Z)")
_NO_ARGUMENTS = re.compile(r"\([ \t]*\)")
_NAMED_COPROC = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[ \t]+(?=[({]|(?:if|while|until|for|case|select)[ \t\n])")
_TEST_END = re.compile(r"\]\](?=[ \t\n;&|()<>]|\Z)")
_TEST_OPERATOR = re.compile(r"&&|\|\||[()<>]|!(?=[ \t\n(])")
_COMPARISON_OPERATOR = re.compile(r"[<>]|==?|!=|=~|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef)")


class CompoundParser(WordParser):
    """Parses compound commands; the subclass parses lists and simple commands."""

    def parse_script_before(self, stop_keywords: frozenset[str]) -> ScriptNode:
        """Parse commands up to one of these keywords."""
        raise NotImplementedError

    def parse_command(self) -> ShellNode:
        """Parse one command of any kind."""
        raise NotImplementedError

    def parse_redirects(self, node: CompoundNode) -> CompoundNode:
        """Parse the redirections after a compound command and add them to it."""
        raise NotImplementedError

    def peek_keyword(self) -> str:
        """Return the keyword at the current position, or an empty string."""
        raise NotImplementedError

    def skip_blanks(self) -> None:
        """Skip blanks and a comment, but not a newline."""
        raise NotImplementedError

    def _expect(self, keyword: str) -> None:
        self.skip_whitespace()
        if self.peek_keyword() != keyword:
            raise ShellSyntaxError(f"{keyword} is missing")
        self.pos += len(keyword)

    def _if(self) -> ShellNode:
        scripts = [self.parse_script_before(frozenset({"then"}))]
        self._expect("then")
        while True:
            scripts.append(self.parse_script_before(frozenset({"elif", "else", "fi"})))
            keyword = self.peek_keyword()
            self.pos += len(keyword)
            if keyword == "elif":
                scripts.append(self.parse_script_before(frozenset({"then"})))
                self._expect("then")
            elif keyword == "else":
                scripts.append(self.parse_script_before(frozenset({"fi"})))
                self._expect("fi")
                return self.parse_redirects(CompoundNode("if", tuple(scripts), name="else"))
            elif keyword == "fi":
                return self.parse_redirects(CompoundNode("if", tuple(scripts)))
            else:
                raise ShellSyntaxError("fi is missing")

    def _loop(self) -> ShellNode:
        condition = self.parse_script_before(frozenset({"do"}))
        self._expect("do")
        body = self.parse_script_before(frozenset({"done"}))
        self._expect("done")
        return self.parse_redirects(CompoundNode("loop", (condition, body)))

    def _for(self) -> ShellNode:
        self.skip_blanks()
        if self.text.startswith("((", self.pos):
            inner = self.parse_arithmetic(self.pos + 2)
            if inner is None:
                raise ShellSyntaxError("the loop header is not supported")
            return self._parse_for_body("loop", "", (ShellWord(inner, ""),))
        name = self.parse_word()
        self.skip_whitespace()
        words: list[ShellWord] = []
        if _IN.match(self.text, self.pos):
            self.pos += 2
            self.skip_blanks()
            while (word := self.parse_word(groups=True)).raw:
                words.append(word)
                self.skip_blanks()
        return self._parse_for_body("for", name.raw, tuple(words))

    def _parse_for_body(self, kind: CompoundKind, name: str, words: tuple[ShellWord, ...]) -> ShellNode:
        self.skip_blanks()
        if self.text.startswith(";", self.pos):
            self.pos += 1
        self.skip_whitespace()
        brace = self.peek_keyword() == "{"
        self._expect("{" if brace else "do")
        closer = "}" if brace else "done"
        body = self.parse_script_before(frozenset({closer}))
        self._expect(closer)
        return self.parse_redirects(CompoundNode(kind, (body,), words, name=name))

    def _case(self) -> ShellNode:
        self.skip_blanks()
        words = [self.parse_word()]
        self.skip_whitespace()
        if not _IN.match(self.text, self.pos):
            raise ShellSyntaxError("in is missing")
        self.pos += 2
        scripts: list[ScriptNode] = []
        self.skip_whitespace()
        while self.peek_keyword() != "esac":
            words.extend(self._parse_case_patterns())
            scripts.append(self.parse_script_before(frozenset({"esac"})))
            if self.text.startswith((";;", ";&"), self.pos):
                self.pos += 3 if self.text.startswith(";;&", self.pos) else 2
                self.skip_whitespace()
            elif self.peek_keyword() != "esac":
                raise ShellSyntaxError("esac is missing")
        self._expect("esac")
        return self.parse_redirects(CompoundNode("case", tuple(scripts), tuple(words)))

    def _parse_case_patterns(self) -> list[ShellWord]:
        patterns: list[ShellWord] = []
        if self.text.startswith("(", self.pos):
            self.pos += 1
        while True:
            self.skip_blanks()
            pattern = self.parse_word(groups=True)
            self.skip_blanks()
            closer = self.text[self.pos : self.pos + 1]
            if not pattern.raw or closer not in {"|", ")"}:
                raise ShellSyntaxError("the case pattern is not valid")
            patterns.append(pattern)
            self.pos += 1
            if closer == ")":
                return patterns

    def _function(self) -> ShellNode:
        self.skip_blanks()
        name = self.parse_word()
        self.skip_blanks()
        if found := _NO_ARGUMENTS.match(self.text, self.pos):
            self.pos = found.end()
        self.skip_whitespace()
        return FunctionNode(name.raw, self.parse_command())

    def _coproc(self) -> ShellNode:
        self.skip_blanks()
        if found := _NAMED_COPROC.match(self.text, self.pos):
            self.pos = found.end()
        return CompoundNode("coproc", (ScriptNode([ListItem(self.parse_command())]),))

    def _braces(self) -> ShellNode:
        script = self.parse_script_before(frozenset({"}"}))
        self._expect("}")
        return self.parse_redirects(CompoundNode("group", (script,)))

    def _test(self) -> ShellNode:
        words: list[ShellWord] = []
        tokens: list[str] = []
        while True:
            self.skip_whitespace()
            if _TEST_END.match(self.text, self.pos):
                self.pos += 2
                _reject_invalid_test(tokens)
                return self.parse_redirects(CompoundNode("test", words=tuple(words), name=_comparison_target(tokens)))
            regex = tokens[-1:] == ["=~"]
            operator = None if regex else _TEST_OPERATOR.match(self.text, self.pos)
            if operator:
                self.pos = operator.end()
                tokens.append(operator.group())
                continue
            word = self.parse_word(groups=True, regex=regex)
            if not word.raw:
                raise ShellSyntaxError("]] is missing")
            words.append(word)
            tokens.append(word.raw)


def _reject_invalid_test(tokens: list[str]) -> None:
    """Reject a `[[ … ]]` that is not a valid test: a shell without `[[` would run the words after `&&`."""
    terms: list[list[str]] = [[]]
    for token in tokens:
        if token in {"&&", "||", "(", ")", "!"}:
            terms.append([])
        else:
            terms[-1].append(token)
    for term in filter(None, terms):
        unary = len(term) == 2 and term[0].startswith("-")
        if not (len(term) == 1 or unary or (len(term) == 3 and _COMPARISON_OPERATOR.fullmatch(term[1]))):
            raise ShellSyntaxError("the test in [[ ]] is not valid")


def _comparison_target(tokens: list[str]) -> str:
    """Return the word after `>`: a shell without `[[` would write to it as a file."""
    return next((operand for operator, operand in pairwise(tokens) if operator == ">"), "")
