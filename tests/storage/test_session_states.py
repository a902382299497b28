"""The state of sessions that other processes have open."""

import json

import pytest

from ostler.storage.session_states import TAIL_BYTES, journal_state


def write(path, *types, padding=0):
    lines = [json.dumps({"v": 1, "event": {"type": kind, "text": "x" * padding}}) for kind in types]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.req("TU-9")
@pytest.mark.parametrize(
    ("types", "state"),
    [
        (("session_opened", "info_changed"), "done"),
        (("session_opened", "turn_started"), "working"),
        (("turn_started", "tool_called", "permission_asked"), "waiting"),
        (("turn_started", "permission_asked", "permission_decided", "tool_started"), "working"),
        (("turn_started", "question_asked", "question_answered", "turn_ended"), "done"),
        (("turn_started", "permission_asked", "turn_ended"), "done"),
        (("turn_started", "permission_asked", "permission_asked", "permission_decided"), "waiting"),
    ],
)
def test_state_follows_from_the_last_records(tmp_path, types, state):
    assert journal_state(write(tmp_path / "journal.jsonl", *types)) == state


@pytest.mark.req("TU-9")
def test_only_the_end_of_a_long_journal_is_read_and_damage_is_skipped(tmp_path):
    path = write(tmp_path / "journal.jsonl", *["message_done"] * 10, padding=TAIL_BYTES // 2)
    with path.open("ab") as file:
        file.write(b'{"broken\n\xff\xfe\n' + b'{"event": {"type": "permission_asked"}}\n{"event": {"type": "perm')
    assert journal_state(path) == "waiting"
    assert journal_state(tmp_path / "missing") == "done"
