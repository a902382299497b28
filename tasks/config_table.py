"""`python -m tasks.config_table`: write the tables of config keys in docs/configure.md from the JSON Schema."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ostler.settings.json_schema import json_schema

PAGE = Path(__file__).parents[1] / "docs" / "configure.md"
START = "<!-- start of the generated tables: python -m tasks.config_table -->\n"
END = "<!-- end of the generated tables -->\n"
HEADER = "| key | type | default | description |\n|---|---|---|---|\n"

Schema = dict[str, Any]


class Key(NamedTuple):
    """A config key as a row of a table."""

    name: str
    type: str
    default: str
    description: str


def generate_tables() -> str:
    """Return the tables as Markdown: single keys first, then one table for each section."""
    schema = json_schema()
    walker = SchemaWalker(schema["$defs"])
    single_keys: list[Key] = []
    sections: list[str] = []
    for name, value in schema["properties"].items():
        keys = list(walker.walk(name, value))
        if len(keys) == 1:
            single_keys += keys
        else:
            sections.append(f"\n### `{name}`\n\n{_sentence(value.get('description', ''))}\n\n{_table(keys[1:])}")
    return f"\n{_table(single_keys)}{''.join(sections)}\n"


def update_page(page: str) -> str:
    """Return the page with its generated part replaced."""
    before, start, rest = page.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError("docs/configure.md has no markers for the generated tables")
    return f"{before}{START}{generate_tables()}{END}{after}"


class SchemaWalker:
    """Lists the keys of a schema; a definition that is used several times is expanded at its first use."""

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions
        self._expanded: dict[str, str] = {}

    def walk(self, name: str, schema: Schema, *, required: bool = False) -> Iterator[Key]:
        """Yield the key itself, then the keys below it."""
        default = "*required*" if required else _default(schema)
        children = list(self._children(name, schema))
        description = _sentence(schema.get("description") or self._definition_description(children))
        repeated = [self._expanded[definition] for _, definition in children if definition in self._expanded]
        if repeated:
            description = f"{description} Same keys as `{repeated[0]}`.".strip()
        yield Key(name, self.type_name(schema), default, description)
        for child_name, definition in children:
            if definition not in self._expanded:
                self._expanded[definition] = child_name
                yield from self._walk_properties(child_name, self._definitions[definition])

    def _definition_description(self, children: list[tuple[str, str]]) -> str:
        return next((self._definitions[definition].get("description", "") for _, definition in children), "")

    def _walk_properties(self, name: str, definition: Schema) -> Iterator[Key]:
        for key, schema in definition["properties"].items():
            if not schema.get("deprecated"):
                yield from self.walk(f"{name}.{key}", schema, required=key in definition.get("required", ()))
        named = definition.get("additionalProperties")
        if isinstance(named, dict):
            yield from self.walk(f"{name}.NAME", named)

    def _children(self, name: str, schema: Schema) -> Iterator[tuple[str, str]]:
        """Yield the definitions that a schema refers to, with the name under which their keys appear."""
        if "$ref" in schema:
            yield name, schema["$ref"].rpartition("/")[2]
        for option in schema.get("anyOf", ()):
            yield from self._children(name, option)
        if isinstance(schema.get("items"), dict):
            yield from self._children(f"{name}[]", schema["items"])
        if isinstance(schema.get("additionalProperties"), dict):
            yield from self._children(f"{name}.NAME", schema["additionalProperties"])

    def type_name(self, schema: Schema) -> str:
        """Return the type in the words of JSON; null is omitted."""
        if "enum" in schema:
            return _one_of(f"`{value}`" for value in schema["enum"])
        if "anyOf" in schema:
            names = (self.type_name(option) for option in schema["anyOf"] if option.get("type") != "null")
            return _one_of(dict.fromkeys(names))
        if schema.get("type") == "array":
            return f"array of {_in_brackets(self.type_name(schema['items']))}" if "items" in schema else "array"
        if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"object of {_in_brackets(self.type_name(schema['additionalProperties']))}"
        return schema.get("type", "object" if "$ref" in schema else "any")


def _table(keys: list[Key]) -> str:
    rows = (f"| `{key.name}` | {key.type} | {key.default} | {key.description} |\n" for key in keys)
    return HEADER + "".join(row.replace(" |  |", " | |") for row in rows)


def _one_of(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _in_brackets(name: str) -> str:
    return f"({name})" if " or " in name else name


def _default(schema: Schema) -> str:
    return f"`{json.dumps(schema['default'], ensure_ascii=False)}`" if "default" in schema else ""


def _sentence(text: str) -> str:
    text = text.replace("|", "\\|").replace("<", "&lt;")
    return text[:1].upper() + text[1:]


def main() -> int:
    """Rewrite the page."""
    PAGE.write_text(update_page(PAGE.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
