"""Which model a file may name: the person's own files any, others only one that the person has."""

from collections.abc import Collection

# Words of another program for models that only it has.
FOREIGN = frozenset({"inherit", "sonnet", "opus", "haiku", "opusplan", "default"})


def usable_model(model: str, models: Collection[str], *, own: bool) -> bool:
    """`models` are the names of the person's; `own` says that the person wrote the file for Ostler."""
    return model in models or (own and model not in FOREIGN)
