"""What names and descriptions from files must be like to stand in a line, a list and a rule."""

MAX_NAME_LENGTH = 64
NAME_RULE = f"letters, digits and - _ . / + @, {MAX_NAME_LENGTH} at most"
_PUNCTUATION = "-_./+@"


def is_valid_name(name: str) -> bool:
    """Whether a name can be typed and stand in a rule: a wildcard in it would speak for other names too."""
    if not 0 < len(name) <= MAX_NAME_LENGTH or name[0] in _PUNCTUATION:
        return False
    return all(char.isalnum() or char in _PUNCTUATION for char in name)


def to_one_line(text: str) -> str:
    """A text of any layout on one line."""
    return " ".join(text.split())
