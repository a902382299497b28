"""Reads compound commands: branches, loops, cases, functions, groups and tests."""

import re
from itertools import pairwise

from ostler.policy.shell.tree import Compound, Function, Item, Kind, Node, Script, Word
from ostler.policy.shell.words import Unreadable, WordReader

_IN = re.compile(r"in(?=[ \t\n;]|\Z)")
_NO_ARGUMENTS = re.compile(r"\([ \t]*\)")
_NAMED_COPROC = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[ \t]+(?=[({]|(?:if|while|until|for|case|select)[ \t\n])")
_TEST_END = re.compile(r"\]\](?=[ \t\n;&|()<>]|\Z)")
_TEST_OPERATOR = re.compile(r"&&|\|\||[()<>]|!(?=[ \t\n(])")
_COMPARES = re.compile(r"[<>]|==?|!=|=~|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef)")


class CompoundReader(WordReader):
    """The part of the reader that knows compound commands; lists and simple commands are its subclass's."""

    def script_before(self, until: frozenset[str]) -> Script:
        """The commands before one of these keywords."""
        raise NotImplementedError

    def command(self) -> Node:
        """One command of any kind."""
        raise NotImplementedError

    def redirected(self, node: Compound) -> Compound:
        """A compound command with the redirections that follow it."""
        raise NotImplementedError

    def keyword(self) -> str:
        """The keyword at the cursor, if there is one."""
        raise NotImplementedError

    def blanks(self) -> None:
        """Past blanks and a comment, not past a newline."""
        raise NotImplementedError

    def _expect(self, keyword: str) -> None:
        self.skip_space()
        if self.keyword() != keyword:
            raise Unreadable(f"{keyword} is missing")
        self.pos += len(keyword)

    def _if(self) -> Node:
        scripts = [self.script_before(frozenset({"then"}))]
        self._expect("then")
        while True:
            scripts.append(self.script_before(frozenset({"elif", "else", "fi"})))
            keyword = self.keyword()
            self.pos += len(keyword)
            if keyword == "elif":
                scripts.append(self.script_before(frozenset({"then"})))
                self._expect("then")
            elif keyword == "else":
                scripts.append(self.script_before(frozenset({"fi"})))
                self._expect("fi")
                return self.redirected(Compound("if", tuple(scripts), name="else"))
            elif keyword == "fi":
                return self.redirected(Compound("if", tuple(scripts)))
            else:
                raise Unreadable("fi is missing")

    def _loop(self) -> Node:
        condition = self.script_before(frozenset({"do"}))
        self._expect("do")
        body = self.script_before(frozenset({"done"}))
        self._expect("done")
        return self.redirected(Compound("loop", (condition, body)))

    def _for(self) -> Node:
        self.blanks()
        if self.text.startswith("((", self.pos):
            inner = self.arithmetic(self.pos + 2)
            if inner is None:
                raise Unreadable("a loop head that is not understood")
            return self._for_body("loop", "", (Word(inner, ""),))
        name = self.word()
        self.skip_space()
        words: list[Word] = []
        given = bool(_IN.match(self.text, self.pos))
        if given:
            self.pos += 2
            self.blanks()
            while (word := self.word(groups=True)).raw:
                words.append(word)
                self.blanks()
        return self._for_body("for", name.raw, tuple(words))

    def _for_body(self, kind: Kind, name: str, words: tuple[Word, ...]) -> Node:
        self.blanks()
        if self.text.startswith(";", self.pos):
            self.pos += 1
        self.skip_space()
        brace = self.keyword() == "{"
        self._expect("{" if brace else "do")
        closer = "}" if brace else "done"
        body = self.script_before(frozenset({closer}))
        self._expect(closer)
        return self.redirected(Compound(kind, (body,), words, name=name))

    def _case(self) -> Node:
        self.blanks()
        words = [self.word()]
        self.skip_space()
        if not _IN.match(self.text, self.pos):
            raise Unreadable("in is missing")
        self.pos += 2
        scripts: list[Script] = []
        self.skip_space()
        while self.keyword() != "esac":
            words.extend(self._patterns())
            scripts.append(self.script_before(frozenset({"esac"})))
            if self.text.startswith((";;", ";&"), self.pos):
                self.pos += 3 if self.text.startswith(";;&", self.pos) else 2
                self.skip_space()
            elif self.keyword() != "esac":
                raise Unreadable("esac is missing")
        self._expect("esac")
        return self.redirected(Compound("case", tuple(scripts), tuple(words)))

    def _patterns(self) -> list[Word]:
        patterns: list[Word] = []
        if self.text.startswith("(", self.pos):
            self.pos += 1
        while True:
            self.blanks()
            pattern = self.word(groups=True)
            self.blanks()
            closer = self.text[self.pos : self.pos + 1]
            if not pattern.raw or closer not in {"|", ")"}:
                raise Unreadable("a case that is not understood")
            patterns.append(pattern)
            self.pos += 1
            if closer == ")":
                return patterns

    def _function(self) -> Node:
        self.blanks()
        name = self.word()
        self.blanks()
        if found := _NO_ARGUMENTS.match(self.text, self.pos):
            self.pos = found.end()
        self.skip_space()
        return Function(name.raw, self.command())

    def _coproc(self) -> Node:
        self.blanks()
        if found := _NAMED_COPROC.match(self.text, self.pos):
            self.pos = found.end()
        return Compound("coproc", (Script([Item(self.command())]),))

    def _braces(self) -> Node:
        script = self.script_before(frozenset({"}"}))
        self._expect("}")
        return self.redirected(Compound("group", (script,)))

    def _test(self) -> Node:
        words: list[Word] = []
        tokens: list[str] = []
        while True:
            self.skip_space()
            if _TEST_END.match(self.text, self.pos):
                self.pos += 2
                _refuse_no_test(tokens)
                return self.redirected(Compound("test", words=tuple(words), name=_compared_file(tokens)))
            regex = tokens[-1:] == ["=~"]
            operator = None if regex else _TEST_OPERATOR.match(self.text, self.pos)
            if operator:
                self.pos = operator.end()
                tokens.append(operator.group())
                continue
            word = self.word(groups=True, regex=regex)
            if not word.raw:
                raise Unreadable("]] is missing")
            words.append(word)
            tokens.append(word.raw)


def _refuse_no_test(tokens: list[str]) -> None:
    """A shell without `[[` would run what stands after `&&` in it, so only what is a test is read as one."""
    terms: list[list[str]] = [[]]
    for token in tokens:
        if token in {"&&", "||", "(", ")", "!"}:
            terms.append([])
        else:
            terms[-1].append(token)
    for term in filter(None, terms):
        unary = len(term) == 2 and term[0].startswith("-")
        if not (len(term) == 1 or unary or (len(term) == 3 and _COMPARES.fullmatch(term[1]))):
            raise Unreadable("a test that is none")


def _compared_file(tokens: list[str]) -> str:
    """What stands after `>`: a shell without `[[` would take it for a file."""
    return next((after for before, after in pairwise(tokens) if before == ">"), "")
