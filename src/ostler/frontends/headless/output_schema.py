"""Builds the JSON Schema of what `-o json` and `-o jsonl` print."""

from typing import Any

import msgspec

from ostler.core.events import KnownEvent
from ostler.frontends.headless.summary import RunSummary


class Record(msgspec.Struct, frozen=True):
    """An event with its number and time."""

    seq: int
    time: float
    event: KnownEvent


def run_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) of each line of `jsonl` and of the object of `json`."""
    (record, summary), definitions = msgspec.json.schema_components(
        (Record, RunSummary), schema_hook=lambda _: {"description": "any value"}, ref_template="#/$defs/{name}"
    )
    event = definitions["Record"]["properties"]["event"]
    known = sorted(event["discriminator"]["mapping"])
    unknown = {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string", "not": {"enum": known}}},
    }
    definitions["Record"]["properties"]["event"] = {"anyOf": [*event["anyOf"], unknown]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Output of ostler run",
        "description": "Later versions may add event types; readers should skip events of unknown types.",
        "anyOf": [summary, record],
        "$defs": dict(sorted(definitions.items())),
    }
