"""Calls come out whole, however a server sends them."""

import json
import time

import pytest

from ostler.models.call_merge import CallMerger


def merge(*pieces, known=("read", "bash", "todo"), taken=()):
    merger = CallMerger(known, taken)
    for piece in pieces:
        merger.add(*piece)
    return [(call.id, call.tool, call.arguments) for call in merger.calls()]


A = '{"a": 1}'
B = '{"b": 2}'


@pytest.mark.req("MD-4")
@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        ([], []),
        ([(0, "x", "read", A)], [("x", "read", A)]),
        ([(0, "x", "read", ""), (0, "", "", '{"a"'), (0, "", "", ": 1}")], [("x", "read", A)]),
        # interleaved
        (
            [(0, "x", "read", '{"a"'), (1, "y", "bash", '{"b"'), (0, "", "", ": 1}"), (1, "", "", ": 2}")],
            [("x", "read", A), ("y", "bash", B)],
        ),
        # indices that begin anywhere and come in any order
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
        # the id comes late, or again, or anew with each piece
        ([(0, "", "read", '{"a"'), (0, "x", "", ": 1}")], [("x", "read", A)]),
        ([(0, "x", "read", '{"a"'), (0, "x", "read", ": 1}")], [("x", "read", A)]),
        ([(0, "x", "read", '{"a"'), (0, "x2", "", ": 1}")], [("x", "read", A)]),
        ([(0, "x", "read", '{"a"'), (0, "x2", "read", ": 1}")], [("x", "read", A)]),
        # every call has index 0
        ([(0, "x", "read", A), (0, "y", "read", B)], [("x", "read", A), ("y", "read", B)]),
        ([(0, "x", "read", ""), (0, "y", "bash", B)], [("x", "read", "{}"), ("y", "bash", B)]),
        ([(0, "", "read", A), (0, "", "bash", B)], [("call_0", "read", A), ("call_1", "bash", B)]),
        # the name in pieces, again, growing
        ([(0, "x", "re", ""), (0, "", "ad", A)], [("x", "read", A)]),
        ([(0, "x", "to", ""), (0, "", "do", A)], [("x", "todo", A)]),
        ([(0, "x", "read", ""), (0, "", "read", A)], [("x", "read", A)]),
        ([(0, "x", "read", A), (0, "", "read", "")], [("x", "read", A)]),
        ([(0, "x", "re", ""), (0, "", "read", A)], [("x", "read", A)]),
        ([(0, "x", "unknown_", ""), (0, "", "tool", A)], [("x", "unknown_tool", A)]),
        # an empty object first
        ([(0, "x", "read", "{}"), (0, "", "", A)], [("x", "read", A)]),
        # no arguments at all, and pieces that say nothing
        ([(0, "x", "read", "")], [("x", "read", "{}")]),
        ([(0, "", "", ""), (1, "x", "read", A)], [("x", "read", A)]),
        # broken arguments stay as they came
        ([(0, "x", "read", '{"a": ')], [("x", "read", '{"a": ')]),
        # nothing is lost when the name is missing
        ([(0, "x", "", A)], [("x", "", A)]),
        # the same id twice
        ([(0, "x", "read", A), (1, "x", "bash", B)], [("x", "read", A), ("call_1", "bash", B)]),
    ],
)
def test_merge(pieces, calls):
    assert merge(*pieces) == calls


@pytest.mark.req("EN-2")
def test_an_id_of_an_earlier_call_is_not_used_again():
    assert merge((0, "call_0", "read", A), taken=["call_0"]) == [("call_1", "read", A)]
    assert merge((0, "", "read", A), (1, "", "read", B), taken=["call_2", "x"]) == [
        ("call_3", "read", A),
        ("call_4", "read", B),
    ]


def test_the_same_pieces_give_the_same_ids():
    pieces = [(None, "", "read", A), (None, "", "bash", B)]
    assert merge(*pieces) == merge(*pieces)


@pytest.mark.slow
def test_many_pieces_take_linear_time():
    def cost(count: int) -> float:
        merger = CallMerger(("read",))
        begun = time.process_time()
        merger.add(0, "x", "read", '{"a": "')
        for at in range(count):
            merger.add(0, f"y{at}", "read", "}" * 20)
        merger.add(0, "", "", '"}')
        assert json.loads(merger.calls()[0].arguments) == {"a": "}" * 20 * count}
        return time.process_time() - begun

    small, large = min(cost(2_000) for _ in range(3)), min(cost(16_000) for _ in range(3))
    assert large < 8 * small * 4
