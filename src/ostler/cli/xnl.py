"""`ostler xnl`: look at text in XNL: its tree, its canonical form, or the calls in it."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ostler.cli.arguments import Parser
from ostler.core.errors import UsageError

if TYPE_CHECKING:
    from ostler.xnl import XnlError


def main(arguments: list[str]) -> int:
    """Parse and print; 1 when the text has a fault, which is told with its code and place."""
    parser = Parser("ostler xnl", description="Look at text in XNL.")
    parser.add_argument("what", choices=("parse", "format", "calls"), help="the tree as JSON, the text anew, the calls")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="the text (default: standard input)")
    parser.add_argument("--pretty", action="store_true", help="with format: one entry a line")
    given = parser.parse_intermixed_args(arguments)
    name = "standard input" if given.file == "-" else given.file
    text = _read_text(given.file, name)
    return (
        _print_calls(text, name)
        if given.what == "calls"
        else _print_document(text, name, given.what, pretty=given.pretty)
    )


def _read_text(file: str, name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{name} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8", hint="save it as UTF-8") from None


def _print_document(text: str, name: str, what: str, *, pretty: bool) -> int:
    from ostler import xnl

    try:
        document = xnl.parse(text)
        written = _json(xnl.to_json(document)) if what == "parse" else xnl.format(document, pretty=pretty)
    except xnl.XnlError as error:
        return _print_error(_format_error(name, error))
    sys.stdout.write(f"{written}\n" if written else "")
    return 0


def _print_calls(text: str, name: str) -> int:
    from ostler import xnl

    entries = xnl.calls(text)
    sys.stdout.write(_json([xnl.to_json(entry) for entry in entries]) + "\n")
    bad = [entry for entry in entries if isinstance(entry, xnl.BadCall)]
    told = [f"{name}: {entry.id or 'a block'}: {entry.error}: {entry.message}" for entry in bad]
    if error := xnl.unclosed(text):
        told.append(_format_error(name, error))
    return max(map(_print_error, told), default=0)


def _format_error(name: str, error: "XnlError") -> str:
    return f"{name}:{error.line}:{error.column}: {error.code}: {error.message}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _print_error(message: str) -> int:
    sys.stderr.write(f"ostler: {message}\n")
    return 1
