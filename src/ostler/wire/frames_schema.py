"""The JSON Schema of the server protocol, which `ostler serve schema` prints."""

from typing import Any

import msgspec

from ostler.wire.client_frames import ClientFrame
from ostler.wire.frames_shared import PROTOCOL_VERSION
from ostler.wire.server_frames import ServerFrame


def frames_schema() -> dict[str, Any]:
    """Return a schema with `$defs` for each message; `ClientMessage` and `ServerMessage` are the two unions."""
    (client, server), definitions = msgspec.json.schema_components(
        [ClientFrame, ServerFrame], ref_template="#/$defs/{name}", schema_hook=lambda _: {"description": "any value"}
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Ostler server protocol {PROTOCOL_VERSION}",
        "anyOf": [{"$ref": "#/$defs/ClientMessage"}, {"$ref": "#/$defs/ServerMessage"}],
        "$defs": {**definitions, "ClientMessage": client, "ServerMessage": server},
    }
