"""How a client treats the events of a server's log, and which changes it sends: two logs with their own numbers.

A server runs the loop and has a log; the client runs the tools and has another. A new event must be placed here.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from ostler.core import events as e
from ostler.core import sessions as s

RemoteTreatment = Literal["adopt", "remote_call", "translate", "local", "positions"]
"""What the client does with an event from the server:

- `adopt`: emits it unchanged.
- `remote_call`: emits it unchanged if the call ran on the server; for its own calls it has made this event itself.
- `translate`: makes an event of its own from it, or none if it already knows the content.
- `local`: drops it. The client's session makes its own, or the event matters only where the loop runs. Rules are here
  too, because a server must not add permissions to a client.
- `positions`: drops it. It holds numbers of the server's log, which mean other records in the client's.
"""

REMOTE_EVENTS: Mapping[type[e.KnownEvent], RemoteTreatment] = MappingProxyType(
    {
        e.SessionOpened: "local",
        e.InfoChanged: "translate",  # the backend's name and traits are the client's
        e.PrefixBuilt: "local",
        e.TurnStarted: "local",  # reported with `remote_turn_started` if the client did not start the turn
        e.StateChanged: "adopt",  # the session uses only `planning` and `model_generating`
        e.TextDelta: "adopt",
        e.ThoughtDelta: "adopt",
        e.MessageSnapshot: "adopt",
        e.PartialReply: "translate",  # if it says that a message is void
        e.MessageDone: "adopt",
        e.ToolCalled: "adopt",
        e.ToolStarted: "local",
        e.ToolProgress: "remote_call",
        e.ToolFinished: "remote_call",
        e.PermissionAsked: "local",  # the server asks with a request, which the client's session records
        e.PermissionDecided: "local",
        e.QuestionAsked: "local",
        e.QuestionAnswered: "local",
        e.RuleAdded: "local",
        e.RuleRevoked: "local",
        e.TodosChanged: "adopt",
        e.UsageReported: "adopt",
        e.OptionChanged: "local",  # an echo; the value is also in `InfoChanged`
        e.Steered: "local",
        e.Delivered: "adopt",
        e.Queued: "adopt",
        e.Notice: "adopt",
        e.Waiting: "adopt",
        e.Retrying: "adopt",
        e.Reminded: "local",  # the client would send it to the server again as an unsent note
        e.Pruned: "positions",
        e.Compacted: "positions",
        e.Reverted: "positions",  # an echo of the client's own change, or made by another client
        e.Renamed: "translate",  # may be an echo of the client's own change
        e.ChildStarted: "adopt",
        e.ChildProgress: "adopt",
        e.ChildEnded: "adopt",
        e.ToolsChanged: "local",  # of the tools that run on the client
        e.ServerStateChanged: "local",
        e.RemoteCursor: "local",  # the client writes its own position in the server's log
        e.TurnEnded: "local",  # returned by `run_turn`
    }
)

ChangeTreatment = Literal["send", "local", "positions", "connection"]

# `send`: passed to the server. `local`: done by the client's session alone. `positions`: sent with the number of the
# server's record instead of the client's. `connection`: the client connects to the server in another role.
CHANGES: Mapping[type[s.SessionChange], ChangeTreatment] = MappingProxyType(
    {
        s.Steer: "send",
        s.SetQueue: "send",  # as messages that wait, and messages that are withdrawn
        s.SetOption: "send",
        s.Compact: "send",
        s.Revert: "positions",
        s.Rename: "send",
        s.RevokeRule: "local",
        s.TakeTools: "connection",
    }
)


def adopted(event: e.Event, ran_here: Callable[[str], bool]) -> e.Event | None:
    """Return the event if the client emits it unchanged, else None; an event of an unknown type is dropped.

    `ran_here` says whether the call with an id ran on the client. The caller handles events to `translate` itself.
    """
    if isinstance(event, e.UnknownEvent):
        return None
    treatment = REMOTE_EVENTS[type(event)]
    if treatment == "remote_call":
        return None if ran_here(_call_id(event)) else event
    return event if treatment == "adopt" else None


def _call_id(event: e.KnownEvent) -> str:
    match event:
        case e.ToolFinished(result):
            return result.call_id
        case e.ToolProgress(call_id):
            return call_id
        case _:
            raise TypeError(f"{type(event).__name__} has no call")
