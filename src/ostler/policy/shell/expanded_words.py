"""A shell word after expansion, with what is unknown until run time."""

from typing import Literal

import msgspec

UNKNOWN_TEXT = "\ue000"  # placeholder for text that is known only at run time


class ExpandedWord(msgspec.Struct):
    """One argument.

    `source_text` is the output of the script in `<(…)`, if it is known. `origin` is the command whose output the word
    contains, or the `$name` of an unknown variable. With `may_split` the word can become several words at run time,
    with `may_differ` the first of them can be any word. A `tainted` word contains text that comes from a file, a pipe
    or a command, and not only numbers; with `from_output` it is more than a file name that a pattern matches.
    """

    text: str
    is_glob: bool = False
    piped: bool = False
    source_text: str | None = None
    origin: str = ""
    may_differ: bool = False
    may_split: bool = False
    tainted: bool = False
    from_output: bool = False
    array: Literal["", "plain", "unsafe index"] = ""  # for `name=(…)`

    @property
    def literal(self) -> bool:
        """Whether the whole text is known."""
        return UNKNOWN_TEXT not in self.text and not self.piped

    @property
    def exact(self) -> bool:
        """Whether the word is literal and not a file pattern."""
        return not self.is_glob and self.literal

    @property
    def starts_unknown(self) -> bool:
        """Whether the start is unknown, so that the word may be an option or a subcommand."""
        return self.text.startswith(UNKNOWN_TEXT)


def program_name(arg: ExpandedWord) -> str:
    """Return the program name, even if the folder is unknown, or an empty string if the name itself is unknown."""
    name = arg.text.rpartition("/")[2]
    return "" if arg.is_glob or arg.piped or arg.may_differ or UNKNOWN_TEXT in name else name


def literal_words(*texts: str) -> list[ExpandedWord]:
    """Create literal arguments from texts."""
    return [ExpandedWord(text) for text in texts]
