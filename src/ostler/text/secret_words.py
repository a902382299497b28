"""Word lists for the detection of secrets, from `secret_words.txt`."""

import os
from functools import cache


@cache
def word_list(name: str) -> frozenset[str]:
    """Return the words of a list."""
    return _load_lists()[name]


@cache
def _load_lists() -> dict[str, frozenset[str]]:
    data: bytes = __loader__.get_data(os.path.join(os.path.dirname(__file__), "secret_words.txt"))  # type: ignore[name-defined]
    return parse_word_lists(data.decode())


def parse_word_lists(text: str) -> dict[str, frozenset[str]]:
    """Parse lists of the form `name: words`. An indented line continues a list, and `#` begins a comment."""
    lines = "\n".join(line for line in text.split("\n") if line and line[0] != "#").replace("\n ", " ")
    pairs = (line.partition(": ") for line in lines.split("\n"))
    return {name: frozenset(listed.split()) for name, _, listed in pairs}
