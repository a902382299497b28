"""Merging call fragments, however a server sends them."""

import json
import time

import pytest

from ostler.models.call_merge import CallMerger


def merge(*fragments, tool_names=("read", "bash", "todo"), used_ids=()):
    merger = CallMerger(tool_names, used_ids)
    for fragment in fragments:
        merger.add(*fragment)
    return [(call.id, call.tool, call.arguments) for call in merger.calls()]


A = '{"a": 1}'
B = '{"b": 2}'


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    ("fragments", "calls"),
    [
        ([], []),
        ([(0, "x", "read", A)], [("x", "read", A)]),
        ([(0, "x", "read", ""), (0, "", "", '{"a"'), (0, "", "", ": 1}")], [("x", "read", A)]),
        # interleaved
        (
            [(0, "x", "read", '{"a"'), (1, "y", "bash", '{"b"'), (0, "", "", ": 1}"), (1, "", "", ": 2}")],
            [("x", "read", A), ("y", "bash", B)],
        ),
        # indices that start anywhere and arrive in any order
        ([(7, "x", "read", A), (3, "y", "bash", B)], [("x", "read", A), ("y", "bash", B)]),
        # by id without index, interleaved
        (
            [
                (None, "x", "read", '{"a"'),
                (None, "y", "bash", '{"b"'),
                (None, "x", "", ": 1}"),
                (None, "y", "", ": 2}"),
            ],
            [("x", "read", A), ("y", "bash", B)],
        ),
        # neither index nor id
        ([(None, "", "read", '{"a"'), (None, "", "", ": 1}")], [("call_0", "read", A)]),
        ([(None, "", "read", A), (None, "", "read", B)], [("call_0", "read", A), ("call_1", "read", B)]),
        # the id arrives late, again, or changes with each fragment
        ([(0, "", "read", '{"a"'), (0, "x", "", ": 1}")], [("x", "read", A)]),
        ([(0, "x", "read", '{"a"'), (0, "x", "read", ": 1}")], [("x", "read", A)]),
        ([(0, "x", "read", '{"a"'), (0, "x2", "", ": 1}")], [("x", "read", A)]),
        ([(0, "x", "read", '{"a"'), (0, "x2", "read", ": 1}")], [("x", "read", A)]),
        # every call has index 0
        ([(0, "x", "read", A), (0, "y", "read", B)], [("x", "read", A), ("y", "read", B)]),
        ([(0, "x", "read", ""), (0, "y", "bash", B)], [("x", "read", "{}"), ("y", "bash", B)]),
        ([(0, "", "read", A), (0, "", "bash", B)], [("call_0", "read", A), ("call_1", "bash", B)]),
        # the name in fragments, repeated, growing
        ([(0, "x", "re", ""), (0, "", "ad", A)], [("x", "read", A)]),
        ([(0, "x", "to", ""), (0, "", "do", A)], [("x", "todo", A)]),
        ([(0, "x", "read", ""), (0, "", "read", A)], [("x", "read", A)]),
        ([(0, "x", "read", A), (0, "", "read", "")], [("x", "read", A)]),
        ([(0, "x", "re", ""), (0, "", "read", A)], [("x", "read", A)]),
        ([(0, "x", "unknown_", ""), (0, "", "tool", A)], [("x", "unknown_tool", A)]),
        # an empty object first
        ([(0, "x", "read", "{}"), (0, "", "", A)], [("x", "read", A)]),
        # no arguments at all, and empty fragments
        ([(0, "x", "read", "")], [("x", "read", "{}")]),
        ([(0, "", "", ""), (1, "x", "read", A)], [("x", "read", A)]),
        # invalid arguments are unchanged
        ([(0, "x", "read", '{"a": ')], [("x", "read", '{"a": ')]),
        # nothing is lost when the name is missing
        ([(0, "x", "", A)], [("x", "", A)]),
        # the same id twice
        ([(0, "x", "read", A), (1, "x", "bash", B)], [("x", "read", A), ("call_1", "bash", B)]),
    ],
)
def test_merge(fragments, calls):
    assert merge(*fragments) == calls


@pytest.mark.req("EN-2")
def test_id_of_an_earlier_call_is_not_reused():
    assert merge((0, "call_0", "read", A), used_ids=["call_0"]) == [("call_1", "read", A)]
    assert merge((0, "", "read", A), (1, "", "read", B), used_ids=["call_2", "x"]) == [
        ("call_3", "read", A),
        ("call_4", "read", B),
    ]


def test_same_fragments_give_the_same_ids():
    fragments = [(None, "", "read", A), (None, "", "bash", B)]
    assert merge(*fragments) == merge(*fragments)


@pytest.mark.slow
def test_many_fragments_take_linear_time():
    def cost(count: int) -> float:
        merger = CallMerger(("read",))
        started = time.process_time()
        merger.add(0, "x", "read", '{"a": "')
        for number in range(count):
            merger.add(0, f"y{number}", "read", "}" * 20)
        merger.add(0, "", "", '"}')
        assert json.loads(merger.calls()[0].arguments) == {"a": "}" * 20 * count}
        return time.process_time() - started

    small, large = min(cost(2_000) for _ in range(3)), min(cost(16_000) for _ in range(3))
    assert large < 8 * small * 4
