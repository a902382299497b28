"""Chat records: writing one message, and reading a history, damaged or not."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import examples

from ostler.xnl.chat_records import ChatRecord, read_records, write_record
from ostler.xnl.errors import XnlError

pytestmark = pytest.mark.req("SE-2")

VECTORS = json.loads((Path(__file__).parents[1] / "data/xnl/vectors.json").read_text(encoding="utf-8"))
TOOL_CALLS = [{"id": "c1", "name": "bash", "input": {"command": "ls -1"}}]
FIELDS = {"content": '\n<a>\r\t"q" \\ 好', "name": "n", "toolCalls": TOOL_CALLS, "toolCallId": None}


def test_record_equals_the_vector():
    (vector,) = [vector for vector in VECTORS["stringify"] if vector["name"] == "chat record"]
    assert write_record("assistant", vector["node"]["attributes"]) == vector["pretty2"] + "\n"


def test_fields_keep_their_order():
    assert write_record("user", {"z": 1, "a": "x"}) == '<user {\n  z = 1\n  a = "x"\n}>\n'


@examples(60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["system", "user", "assistant", "tool"]),
            st.dictionaries(
                st.text(max_size=6), st.text(max_size=20) | st.integers() | st.none() | st.booleans(), max_size=3
            ),
        ),
        max_size=4,
    )
)
def test_appended_records_can_be_read(messages):
    history = read_records("".join(write_record(role, fields) for role, fields in messages))
    assert history.errors == []
    assert [(record.role, record.fields) for record in history.records] == messages
    assert [list(record.fields) for record in history.records] == [list(fields) for _, fields in messages]


def test_only_the_first_line_of_a_record_looks_like_a_start():
    lines = write_record("user", FIELDS).splitlines()
    assert [line[:1] == "<" for line in lines] == [True] + [False] * (len(lines) - 1)


def test_truncated_record_does_not_affect_others():
    record = write_record("user", FIELDS)
    for cut in range(1, len(record) - 2):
        history = read_records(record + record[:cut] + "\n" + record)
        assert history.records == [ChatRecord("user", FIELDS)] * 2, record[:cut]
        assert len(history.errors) == 1


def test_comments_and_metadata_are_accepted():
    history = read_records('<!-- edited manually -->\n<user id="01" { text = "a\n<b>" }>\n\n<tool>')
    assert history.records == [ChatRecord("user", {"id": "01", "text": "a\n<b>"}), ChatRecord("tool", {})]


def test_text_element_is_not_a_record():
    history = read_records("<user #>x</#>\n<tool>")
    assert [record.role for record in history.records] == ["tool"]
    assert [error.code for error in history.errors] == ["INVALID_CONTENT"]


@pytest.mark.parametrize("text", ["", "\n", "<!-- none -->"])
def test_empty_history(text):
    history = read_records(text)
    assert (history.records, history.errors) == ([], [])


def test_text_before_the_first_record_is_an_error():
    history = read_records("truncated record\n<user>\n")
    assert history.records == [ChatRecord("user", {})]
    assert len(history.errors) == 1


def test_role_must_be_a_name():
    with pytest.raises(XnlError):
        write_record("two words", {})
