"""What an edit asks for."""

import msgspec


class Replacement(msgspec.Struct):
    """One replacement."""

    old: str
    new: str
    replace_all: bool = False
