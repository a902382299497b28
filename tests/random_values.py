"""Random values of a type, for JSON that a hostile peer could send: valid fields with unusual content."""

import msgspec.inspect as kinds

TEXTS = [
    "",
    "x",
    "a\nb",
    "\x1b[2J\x07",
    "\ud83d\ude00",
    "call-1",
    "../..",
    "[b]x[/b]",
    "x" * 5000,
    "0",
    "-1",
    "\u202e",
    "é\u0301",
]
NUMBERS = [0, 1, -1, 2, 100, 2**31, 2**53, 2**63 - 1, -(2**63), 2**64 - 1, 2**70, -(10**30)]
FLOATS = [0.0, -1.0, 1.5, 1e308, -1e308, 1e-300]
ANYTHING = [None, 1, "x", [1, {"a": None}], {"path": "a.txt", "operation": "deleted"}, {"": "x"}, 2**64]
MAX_DEPTH = 6


def random_value(kind, random, depth=0):
    """Return a value as JSON has it; `kind` is what `msgspec.inspect.type_info` returns."""

    def part(inner):
        return random_value(inner, random, depth + 1)

    count = random.choice([0, 1, 1, 3]) if depth < MAX_DEPTH else 0
    match kind:
        case kinds.StrType():
            return random.choice(TEXTS)
        case kinds.IntType():
            return random.choice(NUMBERS)
        case kinds.FloatType():
            return random.choice(FLOATS)
        case kinds.BoolType():
            return random.random() < 0.5
        case kinds.NoneType():
            return None
        case kinds.LiteralType(values):
            return random.choice(values)
        case kinds.UnionType(types):
            return part(random.choice(types))
        case kinds.VarTupleType(item) | kinds.ListType(item):
            return [part(item) for _ in range(count)]
        case kinds.TupleType(items):
            return [part(item) for item in items]
        case kinds.DictType(key, value):
            return {str(part(key)): part(value) for _ in range(count)}
        case kinds.StructType():
            chosen = [f for f in kind.fields if f.required or (depth < MAX_DEPTH and random.random() < 0.7)]
            fields = {field.encode_name: part(field.type) for field in chosen}
            return {**fields, kind.tag_field: kind.tag} if kind.tag_field else fields
        case _:
            return random.choice(ANYTHING)
