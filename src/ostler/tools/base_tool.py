"""What a tool is declared with: from its name, parameters and text come the schema, the validation and the errors."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from ostler.core.errors import ToolError
from ostler.core.tools import ToolKind, ToolReach, ToolSpec

P = TypeVar("P", bound=msgspec.Struct)


class BaseTool(Generic[P]):
    """The part of a tool that follows from its declaration; a tool adds `permission` and `run`.

    `unlisted` parameters are taken and not told to a model: what other vocabularies have and ours can do without.
    """

    name: ClassVar[str]
    kind: ClassVar[ToolKind]
    effects: ClassVar[bool] = True
    reach: ClassVar[ToolReach] = "anything"
    unlisted: ClassVar[tuple[str, ...]] = ()
    params: type[P]

    @cached_property
    def spec(self) -> ToolSpec:
        text = Path(__file__).with_name(f"{self.name}.md").read_text(encoding="utf-8").strip()
        listed = {name: value for name, value in self.accepts["properties"].items() if name not in self.unlisted}
        return ToolSpec(self.name, self.kind, text, {**self.accepts, "properties": listed}, self.effects, self.reach)

    @cached_property
    def accepts(self) -> dict[str, Any]:
        """The schema of all it takes."""
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
            said = str(error).replace("Object missing required field", "missing").replace(" - at `$.", " in `")
            raise ToolError(
                f"{self.name}: {said}; it takes {describe_parameters(self.spec)}", code="bad_arguments"
            ) from None


def describe_parameters(spec: ToolSpec) -> str:
    """What a tool takes, in a line, and a call as an example."""
    needed = spec.schema.get("required", ())
    names = ", ".join(name if name in needed else f"{name}?" for name in spec.schema.get("properties", ()))
    return f"{names or 'nothing'}, as in {example_call(spec)}"


def example_call(spec: ToolSpec) -> str:
    """The smallest call a tool would take, as JSON."""
    properties = spec.schema.get("properties", {})
    return msgspec.json.encode(
        {name: _sample_value(f"{spec.name} {name}", properties.get(name, {})) for name in usual_parameters(spec)}
    ).decode()


def usual_parameters(spec: ToolSpec) -> Sequence[str]:
    """The parameters that nearly every call of a tool gives: those it needs, or those of its usual form."""
    return _USUAL_PARAMETERS.get(spec.name) or spec.schema.get("required", ())


_USUAL_PARAMETERS = {"edit": ("path", "old", "new"), "bash": ("command",)}
_SAMPLE_VALUES = {
    "path": "src/main.py",
    "command": "ls -la",
    "pattern": "TODO",
    "glob pattern": "**/*.py",
    "content": "text",
    "old": "the text as it stands",
    "new": "the text that replaces it",
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


def schema_for(params: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a parameter type, with nothing in it that a model need not read."""
    (schema,), definitions = msgspec.json.schema_components([params], ref_template="{name}")
    made: dict[str, Any] = _simplify(definitions[schema["$ref"]], definitions)
    return made


def _simplify(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_simplify(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _simplify(definitions[node["$ref"]], definitions)
    return {key: _simplify(value, definitions) for key, value in node.items() if not _is_redundant(key, value)}


def _is_redundant(key: str, value: Any) -> bool:
    """Names of types, and defaults that say nothing; a parameter of either name is a schema, not a text."""
    return (key == "title" and isinstance(value, str)) or (key == "default" and not value)
