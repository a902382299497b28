"""Names and values in the JSON of events: journals of earlier versions hold them, so they must not change."""

import ast
import json
from pathlib import Path

import msgspec
import pytest
from msgspec.inspect import (
    CollectionType,
    DictType,
    ListType,
    LiteralType,
    StructType,
    TupleType,
    UnionType,
    VarTupleType,
    type_info,
)
from tests.stored import STORED, check

from ostler.core.events import EVENT_TYPES, UnknownEvent
from ostler.wire.event_codec import decode_event, encode_event

pytestmark = pytest.mark.req("SE-1")
EXAMPLES = [json.loads(line) for line in (STORED / "events.jsonl").read_text("utf-8").splitlines()]
SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["type"])
def test_an_event_keeps_its_names_when_it_is_read_and_written_again(example):
    event = decode_event(json.dumps(example).encode())
    assert not isinstance(event, UnknownEvent)
    assert json.loads(encode_event(event)) == example


def test_there_is_an_example_of_every_event():
    tags = [example["type"] for example in EXAMPLES]
    assert tags == [kind.__struct_config__.tag for kind in EVENT_TYPES]


def test_which_events_are_kept():
    kept = [example["type"] for example in EXAMPLES if decode_event(json.dumps(example).encode()).persisted]
    check("kept_events", sorted(kept))


def parts(value):
    """Yield every struct in a value."""
    if isinstance(value, msgspec.Struct):
        yield value
        for field in msgspec.structs.fields(value):
            yield from parts(getattr(value, field.name))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from parts(item)


def test_the_examples_set_every_field_of_every_struct():
    set_fields, kinds = set(), set()
    for example in EXAMPLES:
        for part in parts(decode_event(json.dumps(example).encode())):
            kinds.add(type(part))
            for field in msgspec.structs.fields(part):
                if field.required or getattr(part, field.name) != default(field):
                    set_fields.add((type(part), field.name))
    all_fields = {(kind, field.name) for kind in kinds for field in msgspec.structs.fields(kind)}
    assert {(kind.__name__, name) for kind, name in all_fields - set_fields} == set()
    assert {
        node.cls for kind in EVENT_TYPES for _, node in walk(type_info(kind), "") if isinstance(node, StructType)
    } == kinds


def default(field):
    """Return what a field has when nobody sets it."""
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def walk(node, path):
    """Yield every type in a type, with the encoded names that lead there."""
    yield path, node
    if isinstance(node, StructType):
        name = f"{path}<{node.tag}>" if node.tag and path else path or str(node.tag)
        for field in node.fields:
            yield from walk(field.type, f"{name}.{field.encode_name}")
    elif isinstance(node, UnionType):
        for one in node.types:
            yield from walk(one, path)
    elif isinstance(node, TupleType):
        for number, one in enumerate(node.item_types):
            yield from walk(one, f"{path}[{number}]")
    elif isinstance(node, VarTupleType | ListType | CollectionType):
        yield from walk(node.item_type, f"{path}[]")
    elif isinstance(node, DictType):
        yield from walk(node.value_type, f"{path}.*")


def test_fixed_values_in_events():
    """Every value of a field that takes only certain words."""
    values = {}
    for kind in EVENT_TYPES:
        for path, node in walk(type_info(kind), ""):
            if isinstance(node, LiteralType):
                values[path] = sorted(node.values)
    check("event_values", values)


@pytest.mark.parametrize(("path", "values"), json.loads((STORED / "event_values.json").read_text("utf-8")).items())
def test_every_fixed_value_is_read_and_written(path, values):
    example = next(one for one in EXAMPLES if one["type"] == path.partition(".")[0])
    assert [rewritten(example, path, value) for value in values] == values


def rewritten(example, path, value):
    """Put a value at a path of an example, and return what stands there after reading and writing."""
    event = json.loads(json.dumps(example))
    holder, name = holder_of(event, path)
    holder[name] = value
    again = json.loads(encode_event(decode_event(json.dumps(event).encode())))
    holder, name = holder_of(again, path)
    return holder.get(name, value) if isinstance(holder, dict) else holder[name]


def holder_of(event, path):
    """Return the object or list that a path leads into, and the last name or index of the path."""
    steps = path.replace("[", ".[").replace("<", ".<").split(".")[1:]
    holder, name = {"": event}, ""
    for step in steps:
        if step.startswith("<"):
            name = next(n for n, item in enumerate(holder) if item["type"] == step[1:-1])
        elif step == "[]":
            holder, name = holder[name], 0
        else:
            holder, name = holder[name], int(step[1:-1]) if step.startswith("[") else step
    return holder, name


def test_error_codes_are_still_in_the_source():
    """Faults in journals and outputs carry these codes; programs look at them."""
    codes = json.loads((STORED / "error_codes.json").read_text("utf-8"))
    constants = set()
    for path in (SOURCE / "ostler").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                constants.add(node.value)
    assert [code for code in codes if code not in constants] == []
