"""Computes the output of `echo` and `printf`."""

import re
from collections.abc import Sequence

from ostler.policy.shell.escapes import decode_ansi_c

_DIRECTIVE = re.compile(r"%[-+ #0]*[\d*]*(?:\.\d*)?([a-zA-Z%])")
_MAX_OUTPUT_LENGTH = 65536


def echo_output(args: Sequence[str], bash: bool = False) -> str | None:
    """Return the output of echo, or None if shells differ on its backslashes; with `bash`, as bash prints it."""
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
    """Return the output of printf, or None if a directive is not supported."""
    rest = [*args]
    if rest[:1] == ["--"]:
        rest = rest[1:]
    if not rest or rest[0] == "-v":
        return None
    pattern, values = decode_ansi_c(rest[0]), rest[1:]
    output = ""
    while len(output) < _MAX_OUTPUT_LENGTH:
        values_left = len(values)
        text = _format_once(pattern, values)
        if text is None:
            return None
        output += text
        if not values or len(values) == values_left:
            return output
    return None


def _format_once(pattern: str, values: list[str]) -> str | None:
    parts: list[str] = []
    pos = 0
    for match in _DIRECTIVE.finditer(pattern):
        parts.append(pattern[pos : match.start()])
        pos = match.end()
        kind = match.group(1)
        if kind == "%":
            parts.append("%")
        elif kind in "sbcdiu" and match.group() == "%" + kind:
            value = values.pop(0) if values else ""
            parts.append(decode_ansi_c(value) if kind == "b" else value[:1] if kind == "c" else value)
        else:
            return None
    return "".join([*parts, pattern[pos:]])
