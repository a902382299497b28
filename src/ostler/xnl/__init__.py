"""XNL: parser, writer, stream scanner and tool calls."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ostler.xnl.call_blocks import BadCall, FoundCall, calls, unclosed
    from ostler.xnl.errors import CallError, XnlError
    from ostler.xnl.json_form import from_json, to_json
    from ostler.xnl.parser import parse
    from ostler.xnl.tree import XnlDocument
    from ostler.xnl.writer import format

__all__ = [
    "BadCall",
    "CallError",
    "FoundCall",
    "XnlDocument",
    "XnlError",
    "calls",
    "format",
    "from_json",
    "parse",
    "to_json",
    "unclosed",
]

_EXPORTS = {
    "call_blocks": ("BadCall", "FoundCall", "calls", "unclosed"),
    "errors": ("CallError", "XnlError"),
    "json_form": ("from_json", "to_json"),
    "parser": ("parse",),
    "tree": ("XnlDocument",),
    "writer": ("format",),
}


def __getattr__(name: str) -> Any:
    for module, names in _EXPORTS.items():
        if name in names:
            return getattr(import_module(f"ostler.xnl.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
