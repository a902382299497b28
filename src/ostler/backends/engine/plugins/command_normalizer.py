"""Normalizes a shell command for comparison: no comments, echo or quoting differences."""

from ostler.text.lazy_regex import lazy_regex

MAX_COMMAND_LENGTH = 4000
_SEPARATORS = frozenset([";", "&&", "||", "&"])
_NOISE = frozenset(["echo", "printf", "true", ":"])
_ACTIVE = lazy_regex(r"[$`]|^[();<>|&]+$")
_NUMBERS = lazy_regex(r"\d+")


def normalize_command(command: str) -> tuple[str, list[str]]:
    """Return the normalized command and the lines that it only prints itself."""
    if "<<" in command or len(command) > MAX_COMMAND_LENGTH:
        return command.strip(), []
    try:
        parts = [part for line in command.splitlines() for part in _split_commands(line)]
    except ValueError:  # a quoted string over several lines
        return " ".join(command.split()), []
    effective = [" ".join(part) for part in parts if not _is_noise(part)]
    printed = [" ".join(part[1:]) for part in parts if _is_noise(part)]
    if not effective:  # only printed text; numbers in it are ignored
        return _NUMBERS.sub("", "; ".join(" ".join(part) for part in parts)), printed
    return "; ".join(effective), [line for line in printed if line]


def _split_commands(line: str) -> list[list[str]]:
    """Split a line into commands, each a list of words, without comments."""
    import shlex

    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    parts: list[list[str]] = [[]]
    for word in lexer:
        if word in _SEPARATORS:
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part]


def _is_noise(part: list[str]) -> bool:
    return part[0] in _NOISE and not any(map(_ACTIVE.search, part))
