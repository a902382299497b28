"""The words the engine tells every model first; the text is the .md beside this file."""

from pathlib import Path


def base_prompt() -> str:
    """The system prompt without what depends on the workspace."""
    return Path(__file__).with_name("system.md").read_text(encoding="utf-8").strip()
