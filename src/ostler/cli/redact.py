"""`ostler redact`: filters secrets out of standard input."""

import os
import sys
from collections.abc import Callable, Iterator
from io import BufferedReader

from ostler.cli.arguments import Parser, add_workspace
from ostler.text.lazy_regex import lazy_regex
from ostler.text.plain_view import escape_free_view
from ostler.text.secret_names import DEFAULT_KEYS, SecretNames

BLOCK_BYTES = 64 * 1024
MAX_BUFFERED_BYTES = 4 * 1024 * 1024
DEFAULT_NAMES = SecretNames(DEFAULT_KEYS)
_KEY_BEGIN = lazy_regex(r".*(?:-----BEGIN |Private-Lines:)")
_KEY_END = lazy_regex(r".*(?:-----END |Private-MAC:)")
# The end of a line whose value is in the next one.
_VALUE_FOLLOWS = lazy_regex(r"(?:[:=\\|>`^(\[{]|[|>]-|--[\w\-]+[\"']?,?|\b(?:is|was|are))\s*$")


def main(arguments: list[str]) -> int:
    """Copy standard input to standard output, with secrets masked."""
    parser = Parser("ostler redact", description="Copy standard input to standard output, with secrets masked.")
    add_workspace(parser)
    args = parser.parse_args(arguments)

    from ostler.knowledge.trusted_settings import load_settings
    from ostler.settings.project_paths import workspace_path
    from ostler.storage.redaction import make_redactor

    settings = load_settings(workspace_path(args.cwd))
    redactor = make_redactor(settings, os.environ)
    names = SecretNames((*DEFAULT_KEYS, *settings.config.context.redact_keys))
    for block in read_blocks(sys.stdin.buffer, names):  # type: ignore[arg-type]  # a BufferedReader at run time
        sys.stdout.buffer.write(_redact_block(block, redactor.redact))
        sys.stdout.buffer.flush()
    return 0


def _redact_block(block: bytes, redact: Callable[[str], str]) -> bytes:
    """Redact a block. Bytes that are not UTF-8 stay unchanged, unless a user-defined pattern fails on them."""
    try:
        return redact(block.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return redact(block.decode("utf-8", "replace")).encode()


def read_blocks(source: BufferedReader, names: SecretNames = DEFAULT_NAMES) -> Iterator[bytes]:
    """Yield whole lines as they arrive, cut only where no secret that spans lines, such as a private key, is cut."""
    tracker = _SpanTracker(names)
    buffer, safe, rest = b"", 0, b""
    while chunk := source.read1(BLOCK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        size = len(buffer)
        for line in lines:
            before, after = tracker.cuts(line)
            safe = size if before else safe
            size += len(line) + 1
            safe = size if after else safe
        buffer += b"".join(line + b"\n" for line in lines)
        if len(buffer) + len(rest) >= MAX_BUFFERED_BYTES:
            buffer, rest, safe = buffer + rest, b"", len(buffer) + len(rest)
        if safe:
            yield buffer[:safe]
            buffer, safe = buffer[safe:], 0
    if buffer + rest:
        yield buffer + rest


class _SpanTracker:
    """Tracks whether the next line may have a part of a secret, or the value of a name."""

    def __init__(self, names: SecretNames) -> None:
        self._names = names
        self._in_private_key = False
        self._in_value = False  # the value is in the next line, or indented below its name
        self._after_name = False  # the value may be in a field below

    def cuts(self, line: bytes) -> tuple[bool, bool]:
        """Return whether the text can be cut before this line, and whether it can be cut after it."""
        plain = escape_free_view(line.decode("latin-1")).text
        at_margin = plain.strip() != "" and not plain.startswith((" ", "\t", "-"))
        before = at_margin and not self._in_private_key and not self._in_value
        begin, end = _KEY_BEGIN.match(plain), _KEY_END.match(plain)
        if begin or end:
            self._in_private_key = begin is not None and (end is None or begin.end() > end.end())
        has_name = next(self._names.find_candidates(plain.lower()), None) is not None
        self._in_value = _VALUE_FOLLOWS.search(plain) is not None or (self._in_value and not at_margin)
        self._after_name = has_name or (self._after_name and not at_margin)
        return before, not (self._in_private_key or self._in_value or self._after_name)
