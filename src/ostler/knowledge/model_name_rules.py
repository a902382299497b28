"""Decides which models agent and command files may name."""

from collections.abc import Collection

# Names of models in another program, which are ignored.
FOREIGN_MODEL_NAMES = frozenset({"inherit", "sonnet", "opus", "haiku", "opusplan", "default"})


def is_allowed_model(model: str, models: Collection[str], *, is_user_file: bool) -> bool:
    """Return whether a file may use a model: the user's own files may name any, others only the user's `models`."""
    return model in models or (is_user_file and model not in FOREIGN_MODEL_NAMES)
