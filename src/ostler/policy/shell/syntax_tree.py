"""The shape of a read command line: words made of parts, commands made of words, scripts made of commands."""

from collections.abc import Iterator
from typing import Literal

import msgspec


class LiteralPart(msgspec.Struct):
    """Characters that stand for themselves; unquoted ones may still be braces, globs or a tilde."""

    text: str
    quoted: bool = False


class ParameterPart(msgspec.Struct):
    """`$name`, or `${name…}` with what follows the name: an index, an operator and its operand."""

    name: str
    quoted: bool
    prefix: str = ""
    index: str = ""
    op: str = ""
    operand: "tuple[WordPart, ...]" = ()


class SubstitutionPart(msgspec.Struct):
    """A script whose output (`$`), or whose pipe (`<` `>`), becomes part of a word."""

    script: "ScriptNode"
    quoted: bool
    kind: Literal["$", "<", ">"] = "$"


class ArithmeticPart(msgspec.Struct):
    """`$((…))`: a number that is known only when it runs."""

    parts: "tuple[WordPart, ...]"
    quoted: bool = False


class ArrayPart(msgspec.Struct):
    """The value of `name=(…)`."""

    words: "tuple[ShellWord, ...]"


WordPart = LiteralPart | ParameterPart | SubstitutionPart | ArithmeticPart | ArrayPart


class ShellWord(msgspec.Struct):
    """One shell word as written, and the parts it is made of."""

    parts: tuple[WordPart, ...]
    raw: str


class Redirect(msgspec.Struct):
    """One redirection; a here-document has its body instead of a file."""

    fd: str
    op: str
    target: ShellWord
    body: ShellWord | None = None


class CommandNode(msgspec.Struct):
    """A simple command: assignments, words and redirections."""

    assignments: tuple[ShellWord, ...]
    words: tuple[ShellWord, ...]
    redirects: tuple[Redirect, ...]


class PipelineNode(msgspec.Struct):
    """Commands whose output feeds the next one."""

    stages: "tuple[ShellNode, ...]"


CompoundKind = Literal["group", "subshell", "if", "loop", "for", "case", "test", "arith", "coproc"]


class CompoundNode(msgspec.Struct):
    """A compound command: the scripts inside it, and the words it looks at."""

    kind: CompoundKind
    scripts: "tuple[ScriptNode, ...]" = ()
    words: tuple[ShellWord, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    name: str = ""


class FunctionNode(msgspec.Struct):
    """A function definition."""

    name: str
    body: "ShellNode"


ShellNode = CommandNode | PipelineNode | CompoundNode | FunctionNode


class ListItem(msgspec.Struct):
    """A command of a list, how it hangs on the one before (`;` `&&` `||`), and whether it runs behind."""

    node: ShellNode
    operator: Literal[";", "&&", "||"] = ";"
    background: bool = False


class ScriptNode(msgspec.Struct):
    """Commands one after the other."""

    items: list[ListItem]


def iter_parts(parts: tuple[WordPart, ...]) -> Iterator[WordPart]:
    """Every part, those inside operands, arrays and arithmetic included; scripts are not entered."""
    for part in parts:
        yield part
        if isinstance(part, ParameterPart):
            yield from iter_parts(part.operand)
        elif isinstance(part, ArithmeticPart):
            yield from iter_parts(part.parts)
        elif isinstance(part, ArrayPart):
            for word in part.words:
                yield from iter_parts(word.parts)
