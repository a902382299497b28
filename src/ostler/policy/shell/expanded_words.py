"""A word after expansion: its text, and what of it is not known before it runs."""

import msgspec

UNKNOWN_TEXT = "\ue000"  # stands in a text for what only the run will know


class ExpandedWord(msgspec.Struct):
    """One argument.

    `source` is the literal text behind a `<(…)`; `origin` is the command whose output is in it, or the `$name` of what
    is not known; `split` says that this may turn out to be several words, `loose` that even the first may be another.
    """

    text: str
    is_glob: bool = False
    piped: bool = False
    source_text: str | None = None
    origin: str = ""
    may_differ: bool = False
    may_split: bool = False

    @property
    def literal(self) -> bool:
        """Whether the text is all there is to know."""
        return UNKNOWN_TEXT not in self.text and not self.piped

    @property
    def exact(self) -> bool:
        """Literal, and naming one thing rather than a pattern."""
        return not self.is_glob and self.literal

    @property
    def starts_unknown(self) -> bool:
        """Whether even its beginning is not known, so that it may be an option or a sub-command."""
        return self.text.startswith(UNKNOWN_TEXT)


def program_name(arg: ExpandedWord) -> str:
    """The name of the program a word stands for, even when its folder is not known; empty when it cannot be told."""
    name = arg.text.rpartition("/")[2]
    return "" if arg.is_glob or arg.piped or arg.may_differ or UNKNOWN_TEXT in name else name


def literal_words(*texts: str) -> list[ExpandedWord]:
    """Literal arguments."""
    return [ExpandedWord(text) for text in texts]
