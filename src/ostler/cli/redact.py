"""`ostler redact`: a filter that takes secrets out of whatever is piped through it."""

import os
import sys
from collections.abc import Callable, Iterator
from io import BufferedReader

from ostler.cli.arguments import Parser, add_workspace

BLOCK = 64 * 1024
LONGEST = 4 * 1024 * 1024
BEGIN, END = b"-----BEGIN ", b"-----END "
GOES_ON = (b":", b"=", b"\\", b"|", b">", b"|-", b">-")


def main(arguments: list[str]) -> int:
    """From standard input to standard output."""
    parser = Parser("ostler redact", description="Copy standard input to standard output, without secrets.")
    add_workspace(parser)
    given = parser.parse_args(arguments)

    from ostler.app.folders import workspace
    from ostler.app.redaction import make_redactor
    from ostler.app.trusting import load_settings

    redactor = make_redactor(load_settings(workspace(given.cwd)), os.environ)
    for block in blocks(sys.stdin.buffer):  # type: ignore[arg-type]  # a buffered reader, whatever typeshed says
        sys.stdout.buffer.write(_clean(block, redactor.redact))
        sys.stdout.buffer.flush()
    return 0


def _clean(block: bytes, redact: Callable[[str], str]) -> bytes:
    """Bytes that are no text come out as they went in, unless a pattern of the user's cannot look at them."""
    try:
        return redact(block.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return redact(block.decode("utf-8", "replace")).encode()


def blocks(source: BufferedReader) -> Iterator[bytes]:
    """Whole lines as they come, cut only where nothing that spans lines, such as a private key, can be cut in two."""
    watch = _Watch()
    held, safe, rest = b"", 0, b""
    while chunk := source.read1(BLOCK):
        *lines, rest = (rest + chunk).split(b"\n")
        size = len(held)
        for line in lines:
            size += len(line) + 1
            safe = safe if watch.spans(line) else size
        held += b"".join(line + b"\n" for line in lines)
        if len(held) + len(rest) >= LONGEST:
            held, rest, safe = held + rest, b"", len(held) + len(rest)
        if safe:
            yield held[:safe]
            held, safe = held[safe:], 0
    if held + rest:
        yield held + rest


class _Watch:
    """Whether what a line begins may go on in the next one."""

    def __init__(self) -> None:
        self._key = False
        self._indented = False

    def spans(self, line: bytes) -> bool:
        if BEGIN in line or END in line:
            self._key = line.rfind(BEGIN) > line.rfind(END)
        if line.rstrip().endswith(GOES_ON):
            self._indented = True
        elif line.strip() and not line.startswith((b" ", b"\t")):
            self._indented = False
        return self._key or self._indented
