"""Expands words the way a shell does, as far as that can be known without running anything."""

import os.path
import re

from ostler.policy.shell import braces, render
from ostler.policy.shell.args import HOLE, Arg
from ostler.policy.shell.scope import NEVER_YET, Scope, Value, home
from ostler.policy.shell.tree import Arith, Array, Command, Compound, Param, Part, Pipe, Script, Sub, Text, Word

_GLOB = re.compile(r"[*?]|\[.+\]", re.DOTALL)
_DEEPEST = 12
_LONGEST = 131072
_MOST_PIECES = 64


def fields(word: Word, scope: Scope, depth: int = 0) -> list[Arg]:
    """The arguments one word becomes: braces, variables, literal substitutions, splitting."""
    words = braces.expand(word)
    if words is None:
        return [Arg(HOLE)]
    return [arg for each in words for arg in _Fields(scope, depth).of(each.parts)]


def value(parts: tuple[Part, ...], scope: Scope, depth: int = 0) -> str:
    """The text of an assignment or here-document: nothing is split."""
    texts: list[str] = []
    length = 0
    for at, part in enumerate(parts):
        texts.append(_text(part, scope, depth, first=not at))
        length += len(texts[-1])
        if length > _LONGEST:
            return HOLE
    return "".join(texts)


def _text(part: Part, scope: Scope, depth: int, first: bool) -> str:
    if isinstance(part, Text):
        return tilde(part.text, scope) if first and not part.quoted else part.text
    if isinstance(part, Param):
        found = parameter(part, scope, depth)
        return HOLE if found is None else joined(found, scope) if isinstance(found, tuple) else found
    if isinstance(part, Sub):
        found = output(part.script, scope, depth + 1) if part.kind == "$" else None
        return HOLE if found is None else found.rstrip("\n")
    return HOLE


def joined(several: tuple[str, ...], scope: Scope) -> str:
    """An array as one text, with the first separator between."""
    separators = scope.lookup("IFS")
    return separators[:1].join(several) if isinstance(separators, str) else HOLE


def tilde(text: str, scope: Scope) -> str:
    """`~…` with the home folder in place."""
    if not text.startswith("~"):
        return text
    name, slash, rest = text[1:].partition("/")
    if name == "":
        folder = scope.lookup("HOME")
        return (folder if isinstance(folder, str) else home()) + slash + rest
    if name == "+" and len(scope.cwd) == 1:
        return scope.cwd[0] + slash + rest
    return HOLE + slash + rest if name in {"+", "-"} else os.path.expanduser(text)


class _Fields:
    """Gathers the fields of one word."""

    def __init__(self, scope: Scope, depth: int) -> None:
        self.scope = scope
        self.depth = depth
        self.done: list[Arg] = []
        self.current = Arg("")
        self.open = False

    def of(self, parts: tuple[Part, ...]) -> list[Arg]:
        for at, part in enumerate(parts):
            if isinstance(part, Sub):
                self.current.origin = _origin(part.script)
            if isinstance(part, Text):
                self._add_text(part, first=not at)
            elif isinstance(part, Sub) and part.kind != "$":
                self.current.piped = self.open = True
                self.current.text += "/dev/fd/63"
                self.current.source = output(part.script, self.scope, self.depth + 1) if part.kind == "<" else ""
            elif isinstance(part, Param):
                found = parameter(part, self.scope, self.depth)
                if found is None or HOLE in "".join(found):
                    self.current.origin = self.current.origin or f"${part.name}{part.index}"
                    self.current.split |= not part.quoted or _spreads(part)
                    self.current.loose |= not part.quoted and part.name in self.scope.vars
                self._add_value(found, part.quoted, _spreads(part))
            elif isinstance(part, Sub):
                text = output(part.script, self.scope, self.depth + 1)
                if text is None and not part.quoted:
                    self.current.loose = self.current.split = True
                self._add_value(None if text is None else text.rstrip("\n"), part.quoted, False)
            elif isinstance(part, (Arith, Array)):
                self._add_value(None, True, False)
        self._close()
        return self.done

    def _add_text(self, part: Text, first: bool) -> None:
        self.open = True
        if part.quoted:
            self.current.text += part.text
            return
        text = tilde(part.text, self.scope) if first else part.text
        self.current.text += text
        self.current.glob = self.current.glob or bool(_GLOB.search(part.text))

    def _add_value(self, found: Value, quoted: bool, spreads: bool) -> None:
        if found is None or len(self.current.text) > _LONGEST:
            self.current.text += HOLE
            self.open = True
        elif quoted and not (spreads and isinstance(found, tuple)):
            self.current.text += joined(found, self.scope) if isinstance(found, tuple) else found
            self.open = True
        elif quoted:
            self._add_pieces(list(found), glob=False)
        else:
            several = found if isinstance(found, tuple) else (found,)
            pieces = [piece for text in several for piece in self._split(text)]
            self._add_pieces(pieces if len(pieces) <= _MOST_PIECES else [HOLE], glob=True)

    def _split(self, text: str) -> list[str]:
        separators = self.scope.lookup("IFS")
        if not isinstance(separators, str) or HOLE in separators:
            return [HOLE]
        pieces = [text]
        for separator in dict.fromkeys(separators):
            pieces = [piece for whole in pieces for piece in whole.split(separator)]
        # an empty first or last piece says that the word is cut there
        return pieces if len(pieces) == 1 else [pieces[0], *filter(None, pieces[1:-1]), pieces[-1]]

    def _add_pieces(self, pieces: list[str], glob: bool) -> None:
        for at, piece in enumerate(pieces):
            if at:
                self._close()
            self.current.text += piece
            self.open = self.open or bool(piece) or not glob
            self.current.glob = self.current.glob or (glob and bool(_GLOB.search(piece)))

    def _close(self) -> None:
        if self.open:
            self.done.append(self.current)
        self.current, self.open = Arg(""), False


def _origin(script: Script) -> str:
    """The command line behind a substitution, when it is one command or a plain pipe."""
    node = script.items[0].node if len(script.items) == 1 else None
    stages = node.stages if isinstance(node, Pipe) else (node,)
    commands = [" ".join(word.raw for word in stage.words) for stage in stages if isinstance(stage, Command)]
    return " | ".join(commands) if len(commands) == len(stages) else ""


def _spreads(part: Param) -> bool:
    return part.name == "@" or part.index == "@"


def parameter(part: Param, scope: Scope, depth: int = 0) -> Value:
    """What a parameter stands for; None when only the run knows."""
    if part.prefix:
        return None
    found = scope.lookup(part.name) if part.name[0].isalpha() or part.name[0] == "_" else scope.argument(part.name)
    if part.index not in {"", "@", "*"}:
        found = _element(found, part.index)
    elif isinstance(found, tuple) and not part.index and part.name not in {"@", "*"}:
        found = found[0] if found else ""
    if not part.op:
        return found
    if part.op in {":-", "-", ":=", "="} and depth < _DEEPEST:
        return found if found is None or found else value(part.operand, scope, depth + 1)
    return None


def _element(found: Value, index: str) -> Value:
    if isinstance(found, tuple) and index.isdigit():
        return found[int(index[:6])] if int(index[:6]) < len(found) else ""
    return None


def output(script: Script, scope: Scope, depth: int = 0, fed: str | None = None, bash: bool = False) -> str | None:
    """What a script prints, when it only echoes what is known; None otherwise.

    Shells differ about backslashes in `echo`: with `bash` they are read as bash does, else such text is not known.
    """
    if depth > _DEEPEST:
        return None
    pieces = [_printed(item.node, scope, depth, fed, bash) for item in script.items if not item.background]
    if len(pieces) != len(script.items) or any(item.link == "||" for item in script.items):
        return None
    known = [piece for piece in pieces if piece is not None]
    return "".join(known) if len(known) == len(pieces) else None


def _printed(node: object, scope: Scope, depth: int, fed: str | None, bash: bool) -> str | None:
    if isinstance(node, Compound) and node.kind in {"group", "subshell"} and not node.redirects:
        return output(node.scripts[0], scope, depth + 1, fed, bash)
    if not isinstance(node, Command):
        return None
    elsewhere = [r for r in node.redirects if r.op not in {"<<", "<<-", "<<<"} and r.fd in {"", "1"}]
    return None if elsewhere else spoken(node, scope, depth, fed, bash)


def spoken(command: Command, scope: Scope, depth: int = 0, fed: str | None = None, bash: bool = False) -> str | None:
    """What a simple command writes to its standard output, wherever that goes; `fed` is its standard input."""
    args = [arg for word in command.words for arg in fields(word, scope, depth + 1)]
    if not args or not all(arg.exact for arg in args) or args[0].text in scope.functions:
        return None
    name, *rest = [arg.text for arg in args]
    if name == "echo":
        return render.echo(rest, bash)
    if name == "printf":
        return render.printf(rest)
    if name == "mktemp":
        return f"/tmp/tmp.{NEVER_YET}\n"
    if name == "cat" and rest in ([], ["-"]):
        return _given(command, scope, depth, fed)
    return "" if name in {":", "true"} else None


def _given(command: Command, scope: Scope, depth: int, fed: str | None) -> str | None:
    """The text a here-document or here-string feeds to a command, else what it was fed before."""
    for redirect in command.redirects:
        if redirect.op == "<<<":
            fed = value(redirect.target.parts, scope, depth + 1) + "\n"
        elif redirect.body is not None:
            fed = value(redirect.body.parts, scope, depth + 1)
        elif redirect.op.startswith("<"):
            fed = None
    return fed
