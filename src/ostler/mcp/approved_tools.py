"""Remembers the declarations of approved tools: a tool that changes afterwards needs a new approval."""

import difflib
import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ostler.mcp.tool_schema import clean_description, clean_schema
from ostler.settings.private_file import locked_for_change, read_private, replace_private
from ostler.wire.mcp import ServerTool

MAX_DIFF_LINES = 200


class _ApprovedFile(msgspec.Struct, frozen=True):
    tools: dict[str, "_Approved"] = {}


class _Approved(msgspec.Struct, frozen=True):
    digest: str
    text: str


class ApprovedTools:
    """The approved tools of one server configuration, in a file.

    With the first approved call, all tools that the server has at that time are stored: a rule such as `server_*`
    covers these, but not a tool that the server adds later.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._approved: dict[str, _Approved] | None = None

    def change(self, tool: ServerTool) -> tuple[str, str]:
        """Return why a tool needs a new approval and a diff of its declaration; empty texts if it needs none."""
        approved = self._read()
        if not approved:
            return "", ""
        before = approved.get(tool.name)
        if before is None:
            return "the server added this tool after you approved its others", _diff("", declaration(tool))
        if before.digest == digest(tool):
            return "", ""
        return "its declaration changed after you approved it", _diff(before.text, declaration(tool))

    def approve(self, tool: ServerTool, all_tools: Iterable[ServerTool]) -> None:
        """Store the tool as approved, and with the first one also the server's other tools."""
        approved = self._read()
        if (before := approved.get(tool.name)) and before.digest == digest(tool):
            return
        added = [tool] if approved else [*all_tools, tool]
        with locked_for_change(self._file):
            self._approved = None
            updated = {**self._read(), **{each.name: _Approved(digest(each), declaration(each)) for each in added}}
            replace_private(self._file, msgspec.json.encode(_ApprovedFile(updated)))
        self._approved = updated

    def _read(self) -> dict[str, _Approved]:
        if self._approved is None:
            try:
                data = read_private(self._file)
                self._approved = dict(msgspec.json.decode(data, type=_ApprovedFile).tools) if data else {}
            except (OSError, ValueError, msgspec.DecodeError, RecursionError):
                # Nothing that was approved before is known, so every tool is treated as added later.
                self._approved = {"": _Approved("", "")}
        return self._approved


def digest(tool: ServerTool) -> str:
    """Return a digest of the complete declaration: name, description and schema as sent by the server."""
    data = msgspec.json.encode([tool.name, tool.description, tool.schema], order="sorted")
    return hashlib.sha256(data).hexdigest()


def declaration(tool: ServerTool) -> str:
    """Return the declaration as text for people."""
    schema = msgspec.json.format(msgspec.json.encode(clean_schema(tool.schema)), indent=2).decode()
    return f"{clean_description(tool.description)}\n{schema}\n"


def _diff(old: str, new: str) -> str:
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "approved", "now", lineterm="", n=2))
    return "\n".join(lines[:MAX_DIFF_LINES])
