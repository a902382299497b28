"""A JSONC file: its value, and the positions of keys and values."""

from collections.abc import Sequence

from ostler.settings.jsonc_parser import JsoncSyntaxError, LineIndex, TextPosition, parse_jsonc


class JsoncDocument:
    """The content of a JSONC file. Raises `JsoncSyntaxError` if the text is invalid."""

    __slots__ = ("_root", "file", "value")

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._root = parse_jsonc(text)
        self.value = self._root.value

    def position(self, path: Sequence[str | int], *, of_key: bool = False) -> TextPosition:
        """Return the position of a value or its key; if the path does not exist, of its nearest existing parent."""
        node = self._root.find(path)
        return node.key_position if of_key else node.position


def decode_text(data: bytes) -> str:
    """Decode UTF-8, with or without a byte order mark. Raises `JsoncSyntaxError` at the first invalid byte."""
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        before = bytes(error.object[: error.start]).decode()
        raise JsoncSyntaxError("the file is not UTF-8 from here on", LineIndex(before).position(len(before))) from None
