"""Node types of the shell syntax tree: scripts contain commands, commands words, words parts."""

from collections.abc import Iterator
from typing import Literal

import msgspec


class LiteralPart(msgspec.Struct):
    """Literal characters; unquoted ones may still contain braces, globs or a tilde."""

    text: str
    quoted: bool = False


class ParameterPart(msgspec.Struct):
    """`$name`, or `${name…}` with an index, an operator and its operand."""

    name: str
    quoted: bool
    prefix: str = ""
    index: str = ""
    op: str = ""
    operand: "tuple[WordPart, ...]" = ()
    index_parts: "tuple[WordPart, ...]" = ()


class SubstitutionPart(msgspec.Struct):
    """A command substitution (`$`) or process substitution (`<`, `>`)."""

    script: "ScriptNode"
    quoted: bool
    kind: Literal["$", "<", ">"] = "$"


class ArithmeticPart(msgspec.Struct):
    """`$((…))`: a number that is known only at run time."""

    parts: "tuple[WordPart, ...]"
    quoted: bool = False


class ArrayPart(msgspec.Struct):
    """The value of `name=(…)`."""

    words: "tuple[ShellWord, ...]"


WordPart = LiteralPart | ParameterPart | SubstitutionPart | ArithmeticPart | ArrayPart


class ShellWord(msgspec.Struct):
    """A shell word: its parts and its source text."""

    parts: tuple[WordPart, ...]
    raw: str


class Redirect(msgspec.Struct):
    """A redirection. For a here-document, `target` is the delimiter and `body` the text."""

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
    """Commands connected by pipes."""

    stages: "tuple[ShellNode, ...]"


CompoundKind = Literal["group", "subshell", "if", "loop", "for", "case", "test", "arith", "coproc"]


class CompoundNode(msgspec.Struct):
    """A compound command: the scripts in it, and the words of its header."""

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
    """A command of a list, the operator before it, and whether it runs in the background."""

    node: ShellNode
    operator: Literal[";", "&&", "||"] = ";"
    background: bool = False


class ScriptNode(msgspec.Struct):
    """A list of commands."""

    items: list[ListItem]


def iter_parts(parts: tuple[WordPart, ...]) -> Iterator[WordPart]:
    """Yield every part, also inside operands, arrays and arithmetic, but not inside scripts."""
    for part in parts:
        yield part
        if isinstance(part, ParameterPart):
            yield from iter_parts(part.index_parts)
            yield from iter_parts(part.operand)
        elif isinstance(part, ArithmeticPart):
            yield from iter_parts(part.parts)
        elif isinstance(part, ArrayPart):
            for word in part.words:
                yield from iter_parts(word.parts)
