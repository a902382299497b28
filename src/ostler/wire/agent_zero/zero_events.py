"""The events that every answer of an Agent Zero server is converted to."""

from typing import Any, Literal

import msgspec

ZeroEventKind = Literal[
    "status", "thinking", "piece", "retraction", "final_response", "tool_request", "tool_output", "other"
]

PARAGRAPH = "paragraph"  # type of a piece that does not continue the text before it


class ZeroToolRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request to run a tool on this machine. `payload` is what runs; `command` and `reason` only describe it.

    `raw` is the text of arguments that are not a JSON object. `extra` has the members of the received object that
    are in no other field.
    """

    tool_name: str
    payload: dict[str, Any] = {}
    command: str = ""
    reason: str = ""
    call_id: str = ""
    raw: str = ""
    extra: dict[str, Any] = {}


class ZeroEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One event of an answer.

    A `piece` is the next part of the answer, without a separator. A `retraction` has text that a server has replaced,
    which is not part of the answer any more. `type` is the name of an `other` event. `ok` and
    `call_id` belong to a `tool_output`. `extra` has the members of the received object that are in no other field.
    """

    kind: ZeroEventKind
    text: str = ""
    type: str = ""
    request: ZeroToolRequest | None = None
    call_id: str = ""
    ok: bool = True
    extra: dict[str, Any] = {}


class ZeroToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a tool request for the server."""

    tool_name: str
    ok: bool
    output: str
    details: dict[str, Any] = {}
    tool_call_id: str = ""

    def to_message(self) -> str:
        """Return the text of the message that sends this result."""
        fields: dict[str, Any] = {"tool_name": self.tool_name, "ok": self.ok, "output": self.output}
        fields["details"] = self.details
        if self.tool_call_id:
            fields["tool_call_id"] = self.tool_call_id
        return msgspec.json.encode({"tool_result": fields}).decode()
