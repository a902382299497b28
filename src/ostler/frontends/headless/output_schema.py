"""The published shape of what `ostler run -o json` and `-o jsonl` print."""

from typing import Any

import msgspec

from ostler.core.events import KnownEvent
from ostler.frontends.headless.summary import RunSummary


class Record(msgspec.Struct, frozen=True):
    """One event with its place."""

    seq: int
    time: float
    event: KnownEvent


def run_schema() -> dict[str, Any]:
    """Draft 2020-12: each line of `jsonl` fits it, and so does the one object of `json`."""
    (record, summary), definitions = msgspec.json.schema_components(
        (Record, RunSummary), schema_hook=lambda _: {"description": "any value"}, ref_template="#/$defs/{name}"
    )
    event = definitions["Record"]["properties"]["event"]
    known = sorted(event["discriminator"]["mapping"])
    later = {"type": "object", "required": ["type"], "properties": {"type": {"type": "string", "not": {"enum": known}}}}
    definitions["Record"]["properties"]["event"] = {"anyOf": [*event["anyOf"], later]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What ostler run prints",
        "description": "Events of a later version have other types; a reader passes over what it does not know.",
        "anyOf": [summary, record],
        "$defs": dict(sorted(definitions.items())),
    }
