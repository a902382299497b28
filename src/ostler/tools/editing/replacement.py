"""Parameter type of one text replacement."""

import msgspec


class Replacement(msgspec.Struct):
    """One replacement of `old` with `new`."""

    old: str
    new: str
    replace_all: bool = False
