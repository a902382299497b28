"""What names and descriptions from files must be like to stand in a line, a list and a rule."""

LONGEST_NAME = 64
NAME_RULE = f"letters, digits and - _ . / + @, {LONGEST_NAME} at most"
_JOINTS = "-_./+@"


def usable_name(name: str) -> bool:
    """Whether a name can be typed and stand in a rule: a wildcard in it would speak for other names too."""
    if not 0 < len(name) <= LONGEST_NAME or name[0] in _JOINTS:
        return False
    return all(char.isalnum() or char in _JOINTS for char in name)


def one_line(text: str) -> str:
    """A text of any layout on one line."""
    return " ".join(text.split())
