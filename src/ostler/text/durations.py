"""Durations as text."""


def elapsed(seconds: float) -> str:
    """Return a duration in words, such as `12 s` or `3:05 min`."""
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02d} min"
