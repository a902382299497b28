"""Builds the JSON Schema of config files from the section docstrings."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ostler.settings.schema import ConfigFile
from ostler.settings.schema_models import ConfigSection, NamedProvider
from ostler.settings.secret import Secret

_FIELD_LINE = r"(?m)^ *([\w$]+): (.+)$"


def json_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) with a description of each key; aliases are marked as deprecated."""
    (_, named), definitions = msgspec.json.schema_components(
        (ConfigFile, NamedProvider), schema_hook=_schema_for_type, ref_template="#/$defs/{name}"
    )
    for section in _sections():
        if section.__name__ in definitions:
            _describe(definitions[section.__name__], section)
    root = definitions.pop("ConfigFile")
    _add_other_forms(root["properties"], definitions["Provider"], named)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **root,
        "title": "Ostler config",
        "$defs": dict(sorted(definitions.items())),
    }


def field_descriptions(section: type[ConfigSection]) -> dict[str, str]:
    """Return the descriptions of a section's keys from its docstring."""
    found: dict[str, str] = {}
    for base in reversed(section.__mro__):
        if issubclass(base, ConfigSection):
            found.update(re.findall(_FIELD_LINE, base.__doc__ or ""))
    return found


def _schema_for_type(kind: type) -> dict[str, Any]:
    if kind is Secret:
        return {"type": "string"}
    raise NotImplementedError(kind)


def _sections() -> Iterator[type[ConfigSection]]:
    pending: list[type[ConfigSection]] = [ConfigSection]
    while pending:
        section = pending.pop()
        yield section
        pending.extend(section.__subclasses__())


def _describe(definition: dict[str, Any], section: type[ConfigSection]) -> None:
    definition["description"] = (section.__doc__ or "").partition("\n")[0]
    properties = definition["properties"]
    for name, text in field_descriptions(section).items():
        if name in properties:
            properties[name] = {"description": text.strip(), **properties[name]}
    for schema in properties.values():
        if schema.get("default") in (None, "", (), {}) or "$ref" in schema:
            schema.pop("default", None)
    for alias, name in {**section.aliases, **section.renamed}.items():
        properties[alias] = {**properties[name], "deprecated": True}
    if not definition["required"]:
        del definition["required"]


def _add_other_forms(properties: dict[str, Any], short: dict[str, Any], named: dict[str, Any]) -> None:
    """Add that `provider` may be a vendor's name or contain providers by id, and that `model` may be an endpoint."""
    by_reference = {"$ref": properties["provider"].pop("$ref")}
    properties["provider"]["anyOf"] = [{"type": "string"}, by_reference]
    properties["model"]["anyOf"].append(by_reference)
    short["additionalProperties"] = named
