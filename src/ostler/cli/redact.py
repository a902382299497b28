"""`ostler redact`: filters secrets out of standard input."""

import os
import sys
from collections.abc import Callable, Iterator
from io import BufferedReader

from ostler.cli.arguments import Parser, add_workspace

BLOCK_BYTES = 64 * 1024
MAX_BUFFERED_BYTES = 4 * 1024 * 1024
BEGIN, END = b"-----BEGIN ", b"-----END "
CONTINUATION_ENDINGS = (b":", b"=", b"\\", b"|", b">", b"|-", b">-")


def main(arguments: list[str]) -> int:
    """Copy standard input to standard output, with secrets masked."""
    parser = Parser("ostler redact", description="Copy standard input to standard output, with secrets masked.")
    add_workspace(parser)
    args = parser.parse_args(arguments)

    from ostler.app.project_paths import workspace_path
    from ostler.app.redaction import make_redactor
    from ostler.app.trusted_settings import load_settings

    redactor = make_redactor(load_settings(workspace_path(args.cwd)), os.environ)
    for block in read_blocks(sys.stdin.buffer):  # type: ignore[arg-type]  # a BufferedReader at run time
        sys.stdout.buffer.write(_redact_block(block, redactor.redact))
        sys.stdout.buffer.flush()
    return 0


def _redact_block(block: bytes, redact: Callable[[str], str]) -> bytes:
    """Redact a block. Bytes that are not UTF-8 stay unchanged, unless a user-defined pattern fails on them."""
    try:
        return redact(block.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return redact(block.decode("utf-8", "replace")).encode()


def read_blocks(source: BufferedReader) -> Iterator[bytes]:
    """Yield blocks of complete lines; a secret that spans lines, such as a private key, stays in one block."""
    tracker = _SpanTracker()
    buffer, safe, rest = b"", 0, b""
    while chunk := source.read1(BLOCK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        size = len(buffer)
        for line in lines:
            size += len(line) + 1
            safe = safe if tracker.spans(line) else size
        buffer += b"".join(line + b"\n" for line in lines)
        if len(buffer) + len(rest) >= MAX_BUFFERED_BYTES:
            buffer, rest, safe = buffer + rest, b"", len(buffer) + len(rest)
        if safe:
            yield buffer[:safe]
            buffer, safe = buffer[safe:], 0
    if buffer + rest:
        yield buffer + rest


class _SpanTracker:
    """Tracks whether a secret in a line may continue on the next one."""

    def __init__(self) -> None:
        self._in_private_key = False
        self._in_indented_value = False

    def spans(self, line: bytes) -> bool:
        if BEGIN in line or END in line:
            self._in_private_key = line.rfind(BEGIN) > line.rfind(END)
        if line.rstrip().endswith(CONTINUATION_ENDINGS):
            self._in_indented_value = True
        elif line.strip() and not line.startswith((b" ", b"\t")):
            self._in_indented_value = False
        return self._in_private_key or self._in_indented_value
