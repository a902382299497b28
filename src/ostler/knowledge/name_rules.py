"""Validates names and descriptions that come from files."""

MAX_NAME_LENGTH = 64
NAME_RULE = f"letters, digits and - _ . / + @, {MAX_NAME_LENGTH} at most"
_PUNCTUATION = "-_./+@"


def is_valid_name(name: str) -> bool:
    """Return whether a name can be typed and used in a rule; a wildcard would match other names."""
    if not 0 < len(name) <= MAX_NAME_LENGTH or name[0] in _PUNCTUATION:
        return False
    return all(char.isalnum() or char in _PUNCTUATION for char in name)


def to_one_line(text: str) -> str:
    """Collapse all whitespace, so that a text is on one line."""
    return " ".join(text.split())
