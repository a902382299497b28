"""What `echo` and `printf` print for given arguments."""

import re
from collections.abc import Sequence

from ostler.policy.shell.escapes import decode_ansi_c

_DIRECTIVE = re.compile(r"%[-+ #0]*[\d*]*(?:\.\d*)?([a-zA-Z%])")
_MAX_OUTPUT_LENGTH = 65536


def echo_output(args: Sequence[str], bash: bool = False) -> str | None:
    """The output of echo; None where shells differ about backslashes, unless it is bash."""
    rest = list(args)
    flags = ""
    while rest and re.fullmatch(r"-[neE]+", rest[0]):
        flags += rest.pop(0)
    text = " ".join(rest)
    if "e" in flags:
        text = decode_ansi_c(text)
    elif not bash and decode_ansi_c(text) != text:
        return None
    return text if "n" in flags else text + "\n"


def printf_output(args: Sequence[str]) -> str | None:
    """The output of printf; None when a directive is not a plain one."""
    rest = [*args]
    if rest[:1] == ["--"]:
        rest = rest[1:]
    if not rest or rest[0] == "-v":
        return None
    pattern, values = decode_ansi_c(rest[0]), rest[1:]
    output = ""
    while len(output) < _MAX_OUTPUT_LENGTH:
        taken = len(values)
        piece = _format_once(pattern, values)
        if piece is None:
            return None
        output += piece
        if not values or len(values) == taken:
            return output
    return None


def _format_once(pattern: str, values: list[str]) -> str | None:
    pieces: list[str] = []
    at = 0
    for found in _DIRECTIVE.finditer(pattern):
        pieces.append(pattern[at : found.start()])
        at = found.end()
        kind = found.group(1)
        if kind == "%":
            pieces.append("%")
        elif kind in "sbcdiu" and found.group() == "%" + kind:
            value = values.pop(0) if values else ""
            pieces.append(decode_ansi_c(value) if kind == "b" else value[:1] if kind == "c" else value)
        else:
            return None
    return "".join([*pieces, pattern[at:]])
