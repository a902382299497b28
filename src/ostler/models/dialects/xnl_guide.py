"""The XNL instructions for the model: notation, calling rules, and each tool."""

from collections.abc import Iterable, Mapping
from typing import Any

from ostler.core.package_data import read_text
from ostler.core.tools import ToolCall, ToolSpec
from ostler.models.dialects.xnl_calls import tool_route, write_calls
from ostler.models.loose_json import write_json
from ostler.xnl.tree import DataElement, TextElement
from ostler.xnl.writer import format

_SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_SAMPLES: dict[str, Any] = {"string": "…", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
_MAX_DEPTH = 4


def tool_guide(tools: Iterable[ToolSpec]) -> str:
    """Return the instructions: notation, calling rules, then summary and details of each tool."""
    parts = (read_text(f"models/dialects/{name}.md") for name in ("xnl_format", "xnl_calls"))
    texts = [*parts, "# The tools"]
    for tool in tools:
        texts += [tool_summary(tool), tool_details(tool)]
    return "\n\n".join(texts)


def tool_summary(tool: ToolSpec) -> str:
    """Return one line with namespace, name and purpose of the tool."""
    namespace, _, name = tool_route(tool).partition(".")
    first_line = tool.description.strip().partition("\n")[0]
    return format(DataElement("tool", {}, {"namespace": namespace, "name": name, "description": first_line}))


def tool_details(tool: ToolSpec) -> str:
    """Return the tool's input type with the rest of its description, and a sample call."""
    comment = "".join(f"// {line}\n" for line in tool.description.strip().splitlines()[1:])
    type_text = f"\n{comment}interface Input {_typescript_type(tool.schema, 1)}\n"
    sample = ToolCall("demo1", tool.name, _sample_arguments(tool.schema))
    demo = f"\n{write_calls([sample], {tool.name: tool_route(tool)})}\n"
    return "\n".join(
        (
            format(TextElement("type_def", {"lang": "typescript", "for": tool_route(tool)}, type_text)),
            format(TextElement("demo", {}, demo, text_marker="good_usage_demo1")),
        )
    )


def _typescript_type(schema: Any, depth: int) -> str:
    """Return a JSON Schema as a TypeScript type."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return "unknown"
    if isinstance(schema.get("enum"), list):
        return " | ".join(write_json(value).decode() for value in schema["enum"]) or "never"
    choices = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(choices, list):
        return " | ".join(_typescript_type(choice, depth) for choice in choices) or "unknown"
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_typescript_type({**schema, "type": name}, depth) for name in kind) or "unknown"
    if kind == "array":
        return f"Array<{_typescript_type(schema.get('items'), depth)}>"
    if kind == "object":
        return _typescript_object(schema, depth)
    return _SCALARS.get(str(kind), "unknown")


def _typescript_object(schema: Mapping[str, Any], depth: int) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return "{}" if depth == 1 else "Record<string, unknown>"
    required = schema.get("required") or ()
    pad = "  " * depth
    members = [
        f"{pad}{_member_name(name)}{'' if name in required else '?'}: "
        f"{_typescript_type(inner, depth + 1)}{_member_comment(inner)}\n"
        for name, inner in properties.items()
    ]
    return "{\n" + "".join(members) + "  " * (depth - 1) + "}"


def _member_name(name: str) -> str:
    return name if name.isidentifier() else write_json(name).decode()


def _member_comment(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return ""
    notes = [str(schema["description"]).replace("\n", " ")] if schema.get("description") else []
    if schema.get("default") not in (None, "", [], {}):
        notes.append(f"default {write_json(schema['default']).decode()}")
    return f" // {'; '.join(notes)}" if notes else ""


def _sample_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return sample arguments for the required properties."""
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    types = {name: inner.get("type") for name, inner in known.items() if isinstance(inner, Mapping)}
    return {name: _SAMPLES.get(str(types.get(name)), "…") for name in schema.get("required") or ()}
