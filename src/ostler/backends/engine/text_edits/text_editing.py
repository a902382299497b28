"""What the engine needs for models that edit in the text: folder, checks, system prompt and tools."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ostler.core.tools import ToolSpec
from ostler.knowledge.prompt_sections import PromptSection

# The tools that a small model may call in its text, although it is not told about them.
TOOLS = ("read", "grep", "list", "bash", "write", "edit")
WRITE_TOOLS = ("write", "edit")
MAX_RULES_LENGTH = 1_500


class TextEditing(msgspec.Struct, frozen=True):
    """`root` is the workspace's folder; if it is empty, no model edits in the text.

    `find_checks` returns the commands that check changed files; `may_write` is whether the policy allows changes.
    """

    root: str = ""
    find_checks: Callable[[Sequence[str]], Sequence[str]] = lambda changed: ()
    may_write: Callable[[], bool] = lambda: True

    def select_tools(self, tools: Sequence[ToolSpec]) -> list[ToolSpec]:
        """Return the tools for a small model; none that writes if the policy allows no changes."""
        may_write = self.may_write()
        return [tool for tool in tools if tool.name in TOOLS and (may_write or tool.name not in WRITE_TOOLS)]

    def system_prompt(self, tools: Sequence[ToolSpec], rules: Sequence[PromptSection] = ()) -> str:
        """Return the system prompt with the rules. It has no example that could be mistaken for the project."""
        name = "edit.md" if any(tool.name == "write" for tool in tools) else "answer.md"
        text = Path(__file__).with_name(name).read_text(encoding="utf-8").strip()
        return "\n\n".join([text, *(section.text for section in rules)])


def short_rules(sections: Sequence[PromptSection]) -> list[PromptSection]:
    """Return the rules and instructions among the sections, or none if they are too long for a small model."""
    rules = [section for section in sections if section.name.endswith(("rules", "instructions"))]
    return rules if sum(len(section.text) for section in rules) <= MAX_RULES_LENGTH else []
