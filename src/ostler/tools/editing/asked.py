"""What an edit asks for."""

import msgspec


class Replace(msgspec.Struct):
    """One replacement."""

    old: str
    new: str
    replace_all: bool = False
