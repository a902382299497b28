"""The declarations of the built-in tools, read from the headers of `tools/*.md`.

A header has lines `key: value` for the tool and `parameter = names`, with the names that other agents use for a
parameter. A line that starts with a space continues the one before.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import msgspec

from ostler.core.package_data import file_names, read_text
from ostler.core.tools import ToolKind, ToolPlace, ToolReach

_KIND_ORDER = ("read", "search", "edit", "move", "delete", "think", "fetch", "other", "execute")


class ToolDeclaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is declared about a tool besides its parameters.

    `changes` is what a call can change. `offered` is when models get the tool: `on-request` is only if the session has
    something for it. `runs_in` is `session` if it acts on the session, not on files. With the permission
    `by-its-calls` a call needs no approval, because the calls that it leads to do. `window` is `large` if the tool is
    left out of a small context window. `usual` are the parameters of a typical call; without any, the required ones.
    `aliases` are the tool's names in other agents, `parameters` those of its parameters.
    """

    name: str
    description: str
    kind: ToolKind
    changes: ToolReach | Literal["nothing"] = "anything"
    offered: Literal["always", "with-shell", "without-shell", "on-request"] = "always"
    runs_in: ToolPlace = "workspace"
    permission: Literal["", "by-its-calls"] = ""
    window: Literal["any", "large"] = "any"
    usual: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    parameters: dict[str, tuple[str, ...]] = {}

    @property
    def effects(self) -> bool:
        """Whether a call can change anything outside the session."""
        return self.changes != "nothing"

    @property
    def reach(self) -> ToolReach:
        return "anything" if self.changes == "nothing" else self.changes

    @property
    def edits_files(self) -> bool:
        """Whether it edits files of the workspace and can do nothing else."""
        return self.kind == "edit" and self.changes == "files"


@cache
def tool_declarations() -> dict[str, ToolDeclaration]:
    """Return the declarations of the built-in tools by name, in the order in which models get them."""
    declared = (parse_declaration(name, read_text(f"tools/{name}.md")) for name in file_names("tools", ".md"))
    return {tool.name: tool for tool in sorted(declared, key=lambda tool: _KIND_ORDER.index(tool.kind))}


def tool_names(is_included: Callable[[ToolDeclaration], bool] = lambda tool: True) -> tuple[str, ...]:
    """Return the names of the built-in tools for which `is_included` is true."""
    return tuple(name for name, tool in tool_declarations().items() if is_included(tool))


def parse_declaration(name: str, text: str) -> ToolDeclaration:
    """Parse the text of a tool's `.md`. Raises `ValueError` that names the file."""
    opening, _, rest = text.partition("---\n")
    header, end, description = rest.partition("\n---\n")
    if opening or not end:
        raise ValueError(f"tools/{name}.md must start with a header between lines ---")
    fields: dict[str, Any] = {"name": name, "description": description.strip()}
    parameters: dict[str, tuple[str, ...]] = {}
    for line in header.replace("\n ", " ").splitlines():
        key, colon, value = line.partition(": ")
        parameter, equals, names = line.partition(" =")
        if colon:
            fields[key] = tuple(value.split()) if key in ("aliases", "usual") else value.strip()
        elif equals:
            parameters[parameter] = tuple(names.split())
    try:
        return msgspec.convert(fields | {"parameters": parameters}, ToolDeclaration)
    except msgspec.ValidationError as error:
        raise ValueError(f"tools/{name}.md: {error}") from None
