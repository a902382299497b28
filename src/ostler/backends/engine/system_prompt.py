"""Loads the base system prompt from `system.md`."""

from pathlib import Path


def base_prompt() -> str:
    """Return the part of the system prompt that does not depend on the workspace."""
    return Path(__file__).with_name("system.md").read_text(encoding="utf-8").strip()
