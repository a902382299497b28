"""Names and values in the JSON of events must not change, because stored journals contain them."""

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
from tests.stored_examples import STORED, check

from ostler.core.events import EVENT_TYPES, UnknownEvent
from ostler.wire.event_codec import decode_event, encode_event

pytestmark = pytest.mark.req("SE-1")
EXAMPLES = [json.loads(line) for line in (STORED / "events.jsonl").read_text("utf-8").splitlines()]
SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["type"])
@pytest.mark.invariant("E3")
def test_events_keep_their_field_names(example):
    event = decode_event(json.dumps(example).encode())
    assert not isinstance(event, UnknownEvent)
    assert json.loads(encode_event(event)) == example


@pytest.mark.invariant("E1")
def test_every_event_type_has_an_example():
    tags = [example["type"] for example in EXAMPLES]
    assert tags == [kind.__struct_config__.tag for kind in EVENT_TYPES]


@pytest.mark.invariant("E3")
def test_persisted_event_types():
    persisted = [example["type"] for example in EXAMPLES if decode_event(json.dumps(example).encode()).persisted]
    check("persisted_events", sorted(persisted))


def iter_structs(value):
    """Yield every struct in a value."""
    if isinstance(value, msgspec.Struct):
        yield value
        for field in msgspec.structs.fields(value):
            yield from iter_structs(getattr(value, field.name))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from iter_structs(item)


def test_examples_set_every_field():
    set_fields, kinds = set(), set()
    for example in EXAMPLES:
        for part in iter_structs(decode_event(json.dumps(example).encode())):
            kinds.add(type(part))
            for field in msgspec.structs.fields(part):
                if field.required or getattr(part, field.name) != default(field):
                    set_fields.add((type(part), field.name))
    all_fields = {(kind, field.name) for kind in kinds for field in msgspec.structs.fields(kind)}
    assert {(kind.__name__, name) for kind, name in all_fields - set_fields} == set()
    assert {
        node.cls for kind in EVENT_TYPES for _, node in walk(type_info(kind), "") if isinstance(node, StructType)
    } == kinds


@pytest.mark.invariant("E3")
def test_required_fields_of_events():
    """A field that is added later has a default, because the events of older versions do not have it."""
    nodes = (node for kind in EVENT_TYPES for _, node in walk(type_info(kind), ""))
    kinds = {node.cls.__name__: node for node in nodes if isinstance(node, StructType)}
    required = {name: [field.encode_name for field in kinds[name].fields if field.required] for name in sorted(kinds)}
    check("event_required_fields", required)


def default(field):
    """Return a field's default value."""
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def walk(node, path):
    """Yield every type in a type, with the encoded names that lead there."""
    yield path, node
    if isinstance(node, StructType):
        name = f"{path}<{node.tag}>" if node.tag and path else path or str(node.tag)
        for field in node.fields:
            yield from walk(field.type, f"{name}.{field.encode_name}")
    elif isinstance(node, UnionType):
        for inner in node.types:
            yield from walk(inner, path)
    elif isinstance(node, TupleType):
        for number, inner in enumerate(node.item_types):
            yield from walk(inner, f"{path}[{number}]")
    elif isinstance(node, VarTupleType | ListType | CollectionType):
        yield from walk(node.item_type, f"{path}[]")
    elif isinstance(node, DictType):
        yield from walk(node.value_type, f"{path}.*")


def test_literal_values_in_events():
    """Pin the values of all literal fields."""
    values = {}
    for kind in EVENT_TYPES:
        for path, node in walk(type_info(kind), ""):
            if isinstance(node, LiteralType):
                values[path] = sorted(node.values)
    check("event_values", values)


@pytest.mark.parametrize(("path", "values"), json.loads((STORED / "event_values.json").read_text("utf-8")).items())
def test_every_literal_value_survives_a_round_trip(path, values):
    example = next(candidate for candidate in EXAMPLES if candidate["type"] == path.partition(".")[0])
    assert [round_trip(example, path, value) for value in values] == values


def round_trip(example, path, value):
    """Set a value at a path of an example, and return the value there after decoding and encoding."""
    event = json.loads(json.dumps(example))
    parent, name = find_parent(event, path)
    parent[name] = value
    decoded = json.loads(encode_event(decode_event(json.dumps(event).encode())))
    parent, name = find_parent(decoded, path)
    return parent.get(name, value) if isinstance(parent, dict) else parent[name]


def find_parent(event, path):
    """Return the parent object or list of a path, and the path's last name or index."""
    steps = path.replace("[", ".[").replace("<", ".<").split(".")[1:]
    parent, name = {"": event}, ""
    for step, following in zip(steps, [*steps[1:], ""], strict=True):
        if step.startswith("<"):
            name = next(n for n, item in enumerate(parent) if item["type"] == step[1:-1])
        elif step == "[]":
            parent = parent[name]
            name = next((n for n, item in enumerate(parent) if isinstance(item, list) == (following == "[]")), 0)
        else:
            parent, name = parent[name], int(step[1:-1]) if step.startswith("[") else step
    return parent, name


def test_error_codes_exist_in_the_source():
    """Stored faults and outputs contain these codes, and programs depend on them."""
    codes = json.loads((STORED / "error_codes.json").read_text("utf-8"))
    source = "".join(path.read_text("utf-8") for path in (SOURCE / "ostler").rglob("*.py"))
    assert [code for code in codes if f'"{code}"' not in source] == []
