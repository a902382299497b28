"""`ostler xnl`: parses or formats XNL text and lists the tool calls in it."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ostler.cli.arguments import Parser
from ostler.core.errors import UsageError
from ostler.text.stderr import notify

if TYPE_CHECKING:
    from ostler.xnl import XnlError


def main(arguments: list[str]) -> int:
    """Parse the text and print the result. Errors are printed with code and position; return 1 if there are any."""
    parser = Parser("ostler xnl", description="Parse or format XNL text, or list the tool calls in it.")
    parser.add_argument(
        "what",
        choices=("parse", "format", "calls"),
        help="print the document as JSON, the formatted text, or the calls as JSON",
    )
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="input file (default: standard input)")
    parser.add_argument("--pretty", action="store_true", help="with format: one entry per line")
    args = parser.parse_intermixed_args(arguments)
    name = "standard input" if args.file == "-" else args.file
    text = _read_text(args.file, name)
    return (
        _print_calls(text, name) if args.what == "calls" else _print_document(text, name, args.what, pretty=args.pretty)
    )


def _read_text(file: str, name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {name}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8", hint="save it as UTF-8") from None


def _print_document(text: str, name: str, what: str, *, pretty: bool) -> int:
    from ostler import xnl

    try:
        document = xnl.parse(text)
        output = _json(xnl.to_json(document)) if what == "parse" else xnl.format(document, pretty=pretty)
    except xnl.XnlError as error:
        return _print_error(_format_error(name, error))
    sys.stdout.write(f"{output}\n" if output else "")
    return 0


def _print_calls(text: str, name: str) -> int:
    from ostler import xnl

    entries = xnl.calls(text)
    sys.stdout.write(_json([xnl.to_json(entry) for entry in entries]) + "\n")
    bad = [entry for entry in entries if isinstance(entry, xnl.BadCall)]
    messages = [f"{name}: {entry.id or 'a block'}: {entry.error}: {entry.message}" for entry in bad]
    if error := xnl.unclosed(text):
        messages.append(_format_error(name, error))
    return max(map(_print_error, messages), default=0)


def _format_error(name: str, error: "XnlError") -> str:
    return f"{name}:{error.line}:{error.column}: {error.code}: {error.message}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _print_error(message: str) -> int:
    notify(message)
    return 1
