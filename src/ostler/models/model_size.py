"""The size of a model, from its name or from what its server reports."""

from ostler.text.lazy_regex import lazy_regex

# Models up to this size edit better in the text of their answer than with tools.
SMALL_PARAMETERS = 4_000_000_000
# A window of this size leaves no room for tool descriptions and long histories.
SMALL_WINDOW = 8_192

_SIZE_IN_NAME = lazy_regex(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)(b|m)(?![a-z0-9])")


def parameters_by_name(name: str) -> int:
    """Return the number of parameters in a model's name, such as `qwen2.5-coder:1.5b`, or 0 if it has none."""
    match = _SIZE_IN_NAME.search(name.lower().rpartition("/")[2])
    if match is None:
        return 0
    return int(int(match[1] or 1) * float(match[2]) * (1e9 if match[3] == "b" else 1e6))


def is_small(parameters: int, window: int) -> bool:
    """Return whether a model is small: few parameters, or a small window if their number is unknown."""
    return parameters <= SMALL_PARAMETERS if parameters else 0 < window <= SMALL_WINDOW
