"""Reads the log: how a turn ended, and the conversation as a snapshot."""

from collections.abc import Collection

import msgspec

from ostler.core.events import (
    Envelope,
    MessageDone,
    Queued,
    Steered,
    ToolCalled,
    ToolFinished,
    TurnEnded,
    TurnStarted,
    UsageReported,
)
from ostler.core.prompt import Prompt
from ostler.core.protocols import Session
from ostler.core.session_view import Records
from ostler.wire.frames_shared import SessionSnapshot, SnapshotCall, SnapshotMessage, TurnMetadata, TurnUsage

SNAPSHOT_BYTES = 2 * 1024 * 1024
_CONVERSATION = frozenset({"turn_started", "steered", "message_done", "tool_called", "tool_finished"})


def turn_metadata(ended: TurnEnded, envelope: Envelope, records: Records) -> TurnMetadata:
    """Return how a turn ended, with its usage, read from its records."""
    usage, model, began = TurnUsage(0, 0, 0, 0.0), "", envelope.time
    for index in range(records.index_after(envelope.seq) - 1, -1, -1):
        kind = records.type_at(index)
        if kind == "usage_reported":
            event = records[index].event
            assert isinstance(event, UsageReported)
            usage, model = _add(usage, event), model or event.model
        elif kind == "turn_started":
            began = records[index].time
            break
    fault = ended.fault
    return TurnMetadata(
        ended.turn_id,
        ended.reason,
        model,
        usage,
        max(0, round((envelope.time - began) * 1000)),
        fault.code if fault else "",
        fault.message if fault else "",
        ended.limit,
    )


def _add(usage: TurnUsage, event: UsageReported) -> TurnUsage:
    known = usage.cost is not None and (event.cost is not None or not event.tokens_in)
    return TurnUsage(
        usage.tokens_in + event.tokens_in,
        usage.tokens_out + event.tokens_out,
        usage.tokens_cached + event.tokens_cached,
        (usage.cost or 0) + (event.cost or 0) if known else None,
    )


def snapshot(session: Session) -> SessionSnapshot:
    """Return the conversation of a session, newest messages first if it is too large for all."""
    records, messages, size, truncated = session.records(), list[SnapshotMessage](), 0, False
    names: dict[str, str] = {}
    for index in records.indexes_of(("tool_called",)):
        event = records[index].event
        if isinstance(event, ToolCalled):
            names[event.call.id] = event.call.tool
    for index in reversed(list(records.indexes_of(_CONVERSATION - {"tool_called"}))):
        message = _message(records[index], names)
        if message is None:
            continue
        size += len(msgspec.json.encode(message))
        if size > SNAPSHOT_BYTES:
            truncated = True
            break
        messages.append(message)
    turn = session.turn
    return SessionSnapshot(
        session.state.title, turn.id if turn else "", tuple(reversed(messages)), tuple(session.state.todos), truncated
    )


def _message(envelope: Envelope, names: dict[str, str]) -> SnapshotMessage | None:
    match envelope.event:
        case TurnStarted(_, prompt) | Steered(prompt):
            return SnapshotMessage("user", prompt.text, envelope.seq, prompt.id, prompt.who)
        case MessageDone(message):
            calls = tuple(SnapshotCall(call.id, call.tool, call.arguments) for call in message.calls)
            return SnapshotMessage("assistant", message.text, envelope.seq, message.id, tool_calls=calls)
        case ToolFinished(result):
            return SnapshotMessage(
                "tool",
                result.for_model,
                envelope.seq,
                tool_call_id=result.call_id,
                name=names.get(result.call_id, ""),
                status=result.status,
            )
        case _:
            return None


def undelivered_prompts(records: Records, ids: Collection[str]) -> list[Prompt]:
    """Return the steering prompts with these ids, in order."""
    if not ids:  # it is usual, and saves the search
        return []
    events = (records[index].event for index in records.indexes_of(("steered",)))
    return [event.prompt for event in events if isinstance(event, Steered) and event.prompt.id in ids]


def received_prompts(records: Records) -> tuple[set[str], tuple[Prompt, ...]]:
    """Return the ids of all messages that were received, and the prompts that still wait in the queue."""
    seen: set[str] = set()
    begun: set[str] = set()
    queued: tuple[Prompt, ...] = ()
    for index in records.indexes_of(("turn_started", "steered", "queued")):
        match records[index].event:
            case TurnStarted(_, prompt) | Steered(prompt):
                begun.add(prompt.id)
            case Queued(_, prompts):
                queued = prompts
                seen.update(prompt.id for prompt in prompts)
            case _:
                pass
    return seen | begun, tuple(prompt for prompt in queued if prompt.id not in begun)
