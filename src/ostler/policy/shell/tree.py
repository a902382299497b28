"""The shape of a read command line: words made of parts, commands made of words, scripts made of commands."""

from collections.abc import Iterator
from typing import Literal

import msgspec


class Text(msgspec.Struct):
    """Characters that stand for themselves; unquoted ones may still be braces, globs or a tilde."""

    text: str
    quoted: bool = False


class Param(msgspec.Struct):
    """`$name`, or `${name…}` with what follows the name: an index, an operator and its operand."""

    name: str
    quoted: bool
    prefix: str = ""
    index: str = ""
    op: str = ""
    operand: "tuple[Part, ...]" = ()


class Sub(msgspec.Struct):
    """A script whose output (`$`), or whose pipe (`<` `>`), becomes part of a word."""

    script: "Script"
    quoted: bool
    kind: Literal["$", "<", ">"] = "$"


class Arith(msgspec.Struct):
    """`$((…))`: a number that is known only when it runs."""

    parts: "tuple[Part, ...]"
    quoted: bool = False


class Array(msgspec.Struct):
    """The value of `name=(…)`."""

    words: "tuple[Word, ...]"


Part = Text | Param | Sub | Arith | Array


class Word(msgspec.Struct):
    """One shell word as written, and the parts it is made of."""

    parts: tuple[Part, ...]
    raw: str


class Redirect(msgspec.Struct):
    """One redirection; a here-document has its body instead of a file."""

    fd: str
    op: str
    target: Word
    body: Word | None = None


class Command(msgspec.Struct):
    """A simple command: assignments, words and redirections."""

    assigns: tuple[Word, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


class Pipe(msgspec.Struct):
    """Commands whose output feeds the next one."""

    stages: "tuple[Node, ...]"


Kind = Literal["group", "subshell", "if", "loop", "for", "case", "test", "arith", "coproc"]


class Compound(msgspec.Struct):
    """A compound command: the scripts inside it, and the words it looks at."""

    kind: Kind
    scripts: "tuple[Script, ...]" = ()
    words: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    name: str = ""


class Function(msgspec.Struct):
    """A function definition."""

    name: str
    body: "Node"


Node = Command | Pipe | Compound | Function


class Item(msgspec.Struct):
    """A command of a list, how it hangs on the one before (`;` `&&` `||`), and whether it runs behind."""

    node: Node
    link: Literal[";", "&&", "||"] = ";"
    background: bool = False


class Script(msgspec.Struct):
    """Commands one after the other."""

    items: list[Item]


def inner_parts(parts: tuple[Part, ...]) -> Iterator[Part]:
    """Every part, those inside operands, arrays and arithmetic included; scripts are not entered."""
    for part in parts:
        yield part
        if isinstance(part, Param):
            yield from inner_parts(part.operand)
        elif isinstance(part, Arith):
            yield from inner_parts(part.parts)
        elif isinstance(part, Array):
            for word in part.words:
                yield from inner_parts(word.parts)
