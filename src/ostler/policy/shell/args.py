"""A word after expansion: its text, and what of it is not known before it runs."""

import msgspec

HOLE = "\ue000"  # stands in a text for what only the run will know


class Arg(msgspec.Struct):
    """One argument.

    `source` is the literal text behind a `<(…)`; `origin` is the command whose output is in it, or the `$name` of what
    is not known; `split` says that this may turn out to be several words, `loose` that even the first may be another.
    """

    text: str
    glob: bool = False
    piped: bool = False
    source: str | None = None
    origin: str = ""
    loose: bool = False
    split: bool = False

    @property
    def literal(self) -> bool:
        """Whether the text is all there is to know."""
        return HOLE not in self.text and not self.piped

    @property
    def exact(self) -> bool:
        """Literal, and naming one thing rather than a pattern."""
        return not self.glob and self.literal

    @property
    def opens_unknown(self) -> bool:
        """Whether even its beginning is not known, so that it may be an option or a sub-command."""
        return self.text.startswith(HOLE)


def program(arg: Arg) -> str:
    """The name of the program a word stands for, even when its folder is not known; empty when it cannot be told."""
    name = arg.text.rpartition("/")[2]
    return "" if arg.glob or arg.piped or arg.loose or HOLE in name else name


def plain(*texts: str) -> list[Arg]:
    """Literal arguments."""
    return [Arg(text) for text in texts]
