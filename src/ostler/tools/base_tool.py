"""Base class of tools: schema, validation and error messages from the parameter type."""

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from ostler.core.errors import ToolError
from ostler.core.tool_declarations import tool_declarations
from ostler.core.tools import ToolSpec

P = TypeVar("P", bound=msgspec.Struct)


class BaseTool(Generic[P]):
    """Base class of tools; a subclass adds `permission` and `run`. The header of `tools/NAME.md` declares the rest.

    `unlisted` parameters are accepted but not part of the schema that the model gets. A tool that `runs_read_only`
    obeys `ToolContext.read_only` and reports a denied write; the host never asks another one to run so.
    """

    name: ClassVar[str]
    unlisted: ClassVar[tuple[str, ...]] = ()
    runs_read_only: ClassVar[bool] = False
    params: type[P]

    @cached_property
    def spec(self) -> ToolSpec:
        declared = tool_declarations()[self.name]
        listed = {name: value for name, value in self.accepts["properties"].items() if name not in self.unlisted}
        schema = {**self.accepts, "properties": listed}
        return ToolSpec(
            self.name,
            declared.kind,
            declared.description,
            schema,
            declared.effects,
            declared.reach,
            declared.runs_in,
        )

    @cached_property
    def accepts(self) -> dict[str, Any]:
        """The schema of all parameters, including unlisted ones."""
        return schema_for(self.params)

    def parse(self, arguments: Mapping[str, Any]) -> P:
        unknown = sorted(set(arguments) - set(self.accepts["properties"]))
        if unknown:
            raise ToolError(
                f"{self.name} takes no {unknown[0]!r}; it takes {describe_parameters(self.spec)}", code="bad_arguments"
            )
        try:
            return msgspec.convert(arguments, self.params)
        except msgspec.ValidationError as error:
            message = str(error).replace("Object missing required field", "missing").replace(" - at `$.", " in `")
            raise ToolError(
                f"{self.name}: {message}; it takes {describe_parameters(self.spec)}", code="bad_arguments"
            ) from None


def describe_parameters(spec: ToolSpec) -> str:
    """Return the parameters of a tool in one line, with an example call."""
    required = spec.schema.get("required", ())
    names = ", ".join(name if name in required else f"{name}?" for name in spec.schema.get("properties", ()))
    return f"{names or 'nothing'}, as in {example_call(spec)}"


def example_call(spec: ToolSpec) -> str:
    """Return the arguments of a minimal call as JSON."""
    properties = spec.schema.get("properties", {})
    return msgspec.json.encode(
        {name: _sample_value(f"{spec.name} {name}", properties.get(name, {})) for name in usual_parameters(spec)}
    ).decode()


def usual_parameters(spec: ToolSpec) -> Sequence[str]:
    """Return the parameters of a typical call: the usual ones of this tool, else the required ones."""
    declared = tool_declarations().get(spec.name)
    return (declared and declared.usual) or spec.schema.get("required", ())


_SAMPLE_VALUES = {
    "path": "src/main.py",
    "command": "ls -la",
    "pattern": "TODO",
    "glob pattern": "**/*.py",
    "content": "text",
    "old": "the current text",
    "new": "the new text",
}


def _sample_value(name: str, schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "array":
        return [_sample_value("", schema.get("items", {}))]
    if kind == "object":
        return {
            key: _sample_value(key, schema.get("properties", {}).get(key, {})) for key in schema.get("required", ())
        }
    text = _SAMPLE_VALUES.get(name) or _SAMPLE_VALUES.get(name.rpartition(" ")[2], "…")
    return {"integer": 1, "number": 1, "boolean": True}.get(str(kind), text)


@cache  # making a schema takes milliseconds, and a server makes the same tools for each session
def schema_for(params: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a parameter type, without parts that the model does not need. Do not change it."""
    (schema,), definitions = msgspec.json.schema_components([params], ref_template="{name}")
    simplified: dict[str, Any] = _simplify(definitions[schema["$ref"]], definitions)
    return simplified


def _simplify(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_simplify(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _simplify(definitions[node["$ref"]], definitions)
    return {key: _simplify(value, definitions) for key, value in node.items() if not _is_redundant(key, value)}


def _is_redundant(key: str, value: Any) -> bool:
    """Return whether an entry is a type name or an empty default.

    A parameter called `title` or `default` has a schema as its value, which is not empty and not a string.
    """
    return (key == "title" and isinstance(value, str)) or (key == "default" and not value)
