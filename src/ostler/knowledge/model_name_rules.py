"""Which model a file may name: the person's own files any, others only one that the person has."""

from collections.abc import Collection

# Words of another program for models that only it has.
FOREIGN_MODEL_NAMES = frozenset({"inherit", "sonnet", "opus", "haiku", "opusplan", "default"})


def is_allowed_model(model: str, models: Collection[str], *, is_user_file: bool) -> bool:
    """`models` are the names of the person's; `own` says that the person wrote the file for Ostler."""
    return model in models or (is_user_file and model not in FOREIGN_MODEL_NAMES)
