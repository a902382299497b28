"""Every event and change has a place when there are two logs, the server's and the client's."""

import json
import re
from typing import get_args

import msgspec
import pytest
from tests.stored_examples import STORED

from ostler.core.events import EVENT_TYPES, ToolFinished, ToolProgress, UnknownEvent
from ostler.core.sessions import SessionChange
from ostler.wire.event_codec import decode_event
from ostler.wire.remote_events import CHANGES, REMOTE_EVENTS, ChangeTreatment, RemoteTreatment, adopted

EVENTS = [decode_event(line.encode()) for line in (STORED / "events.jsonl").read_text("utf-8").splitlines()]
HAS_POSITION = re.compile(r"(^|_)seq$")


def names_position(kind):
    return any(HAS_POSITION.search(field.name) for field in msgspec.structs.fields(kind))


def test_every_event_and_change_is_placed():
    assert list(REMOTE_EVENTS) == list(EVENT_TYPES)
    assert set(REMOTE_EVENTS.values()) == set(get_args(RemoteTreatment))
    assert list(CHANGES) == list(get_args(SessionChange))
    assert set(CHANGES.values()) == set(get_args(ChangeTreatment))


def test_positions_in_one_log_never_cross_to_the_other():
    with_positions = {kind.__name__ for kind in EVENT_TYPES if names_position(kind)}
    assert with_positions == {"Pruned", "Compacted", "Reverted", "RemoteCursor"}
    assert [kind for kind in EVENT_TYPES if names_position(kind) and REMOTE_EVENTS[kind] == "adopt"] == []
    changes = [kind for kind in get_args(SessionChange) if names_position(kind)]
    assert {kind.__name__: CHANGES[kind] for kind in changes} == {"Revert": "positions"}


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_event_is_adopted_as_the_table_says(event):
    treatment = REMOTE_EVENTS[type(event)]
    assert adopted(event, lambda call_id: False) == (event if treatment in ("adopt", "remote_call") else None)
    assert adopted(event, lambda call_id: True) == (event if treatment == "adopt" else None)


def test_result_and_progress_are_adopted_only_for_calls_of_the_server():
    asked = []
    for event in EVENTS:
        adopted(event, lambda call_id: asked.append(call_id) or True)
    progress = [event.call_id for event in EVENTS if isinstance(event, ToolProgress)]
    results = [event.result.call_id for event in EVENTS if isinstance(event, ToolFinished)]
    assert asked == progress + results


@pytest.mark.req("PM-2")
def test_server_cannot_give_a_client_permissions_or_start_turns_in_its_log():
    dropped = "rule_added rule_revoked permission_decided permission_asked turn_started tool_started option_changed"
    tags = {kind.__struct_config__.tag: treatment for kind, treatment in REMOTE_EVENTS.items()}
    assert {tags[name] for name in dropped.split()} == {"local"}


def test_event_of_a_newer_server_is_dropped():
    event = decode_event(json.dumps({"type": "from_the_future", "to_seq": 3}).encode())
    assert isinstance(event, UnknownEvent)
    assert adopted(event, lambda call_id: False) is None
