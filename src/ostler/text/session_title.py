"""Makes the title of a session from its first prompt."""

MAX_TITLE_LENGTH = 80


def session_title(text: str) -> str:
    """Return the beginning of a text on one line."""
    title = " ".join(text[: MAX_TITLE_LENGTH * 4].split())
    return title if len(title) <= MAX_TITLE_LENGTH else title[: MAX_TITLE_LENGTH - 1] + "…"
