"""Validates names and descriptions that come from files."""

from collections.abc import Collection

MAX_NAME_LENGTH = 64
NAME_RULE = f"letters, digits and - _ . / + @, {MAX_NAME_LENGTH} at most"
_PUNCTUATION = "-_./+@"
# Names of models in another program, which are ignored.
FOREIGN_MODEL_NAMES = frozenset({"inherit", "sonnet", "opus", "haiku", "opusplan", "default"})


def is_valid_name(name: str) -> bool:
    """Return whether a name can be typed and used in a rule; a wildcard would match other names."""
    if not 0 < len(name) <= MAX_NAME_LENGTH or name[0] in _PUNCTUATION:
        return False
    return all(char.isalnum() or char in _PUNCTUATION for char in name)


def to_one_line(text: str) -> str:
    """Collapse all whitespace, so that a text is on one line."""
    return " ".join(text.split())


def is_allowed_model(model: str, models: Collection[str], *, is_user_file: bool) -> bool:
    """Return whether a file may use a model: the user's own files may name any, others only the user's `models`."""
    return model in models or (is_user_file and model not in FOREIGN_MODEL_NAMES)
