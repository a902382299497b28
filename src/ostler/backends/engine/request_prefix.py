"""The fixed beginning of every request: system prompt and tools, built once and checked against the context window."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ostler.backends.engine.text_edits.text_editing import TextEditing
from ostler.backends.engine.token_estimate import FRAME_BYTES, TokenEstimator, byte_size
from ostler.core.errors import BackendError
from ostler.core.events import PrefixBuilt, PromptPart
from ostler.core.tool_declarations import tool_names
from ostler.core.tools import ToolSpec
from ostler.knowledge.prompt_sections import PromptSection
from ostler.knowledge.rules_files import RulesFile
from ostler.models.model_types import ModelClient

# Up to this context window, tools that others can replace are left out.
SMALL_WINDOW = 12_000
# Servers' usual default; a smaller request does not have to wait until the window is known.
MIN_WINDOW = 4_096
MAX_PREFIX_SHARE = 0.5


class ProjectPrompt(msgspec.Struct, frozen=True):
    """What the workspace contributes: the sections of the system prompt, and the rules of the folders above a path.

    `text_editing` is for models that edit in the text of their answers.
    """

    parts: Callable[[], Sequence[PromptSection]] = lambda: ()
    folder_rules: Callable[[str], Sequence[RulesFile]] = lambda path: ()
    text_editing: TextEditing = TextEditing()


def build_prefix(system: str, parts: Sequence[PromptSection], tools: Sequence[ToolSpec], window: int) -> PrefixBuilt:
    """Build the prefix for a context window of `window` tokens."""
    included = _tools_for_window(tools, window)
    prompt_parts = tuple(PromptPart(part.name, part.origin, byte_size(part.text)) for part in parts)
    return PrefixBuilt(system, tuple(msgspec.to_builtins(tool) for tool in included), prompt_parts)


def extend_prefix(prefix: PrefixBuilt, tools: Sequence[ToolSpec], window: int) -> PrefixBuilt:
    """Return the prefix with new tools appended, or unchanged if there are none.

    Tools that are no longer available stay, so that the earlier bytes do not change; the tool host refuses them.
    """
    names = {tool["name"] for tool in prefix.tools}
    new_tools = [msgspec.to_builtins(tool) for tool in _tools_for_window(tools, window) if tool.name not in names]
    return msgspec.structs.replace(prefix, tools=(*prefix.tools, *new_tools)) if new_tools else prefix


def _tools_for_window(tools: Sequence[ToolSpec], window: int) -> list[ToolSpec]:
    omitted = () if window > SMALL_WINDOW else tool_names(lambda tool: tool.window == "large")
    return [tool for tool in tools if tool.name not in omitted]


def tools_size(prefix: PrefixBuilt, guide: int | None = None) -> int:
    """Return the bytes of the tool declarations as sent; `guide` is their size where they are sent as text."""
    return _declared_size(prefix.tools) if guide is None else guide


def _declared_size(tools: Iterable[Mapping[str, Any]]) -> int:
    return sum(len(msgspec.json.encode(tool)) + 2 * FRAME_BYTES for tool in tools)


def guide_size(model: ModelClient, prefix: PrefixBuilt) -> int | None:
    """Return the bytes of the text in which a model's dialect describes the tools; None if the API declares them."""
    return model.guide_size([msgspec.convert(tool, ToolSpec) for tool in prefix.tools])


def fixed_size(prefix: PrefixBuilt, guide: int | None = None) -> int:
    """Return the bytes that every request begins with."""
    return byte_size(prefix.system) + tools_size(prefix, guide)


def prefix_parts(prefix: PrefixBuilt, guide: int | None = None) -> list[PromptPart]:
    """Return the parts of the prefix with their sizes; what no part accounts for is added to the first one."""
    known = sum(part.size for part in prefix.parts)
    rest = byte_size(prefix.system) - known
    parts = list(prefix.parts) or [PromptPart("system prompt", "", 0)]
    first = msgspec.structs.replace(parts[0], size=parts[0].size + rest)
    return [first, *parts[1:], *_tool_parts(prefix, tools_size(prefix, guide))]


def _tool_parts(prefix: PrefixBuilt, size: int) -> list[PromptPart]:
    """Return a part for the built-in tools and one for those of MCP servers, with their shares of `size`."""
    mcp = [tool for tool in prefix.tools if tool.get("namespace")]
    mcp_size = size * _declared_size(mcp) // _declared_size(prefix.tools) if mcp else 0
    own = PromptPart("tools", f"{len(prefix.tools) - len(mcp)} tools", size - mcp_size)
    return [own, PromptPart("MCP tools", f"{len(mcp)} tools", mcp_size)] if mcp else [own]


def check_prefix_fits(prefix: PrefixBuilt, model: ModelClient, estimator: TokenEstimator) -> None:
    """Raise `BackendError` if the prefix takes more than half of the context window, naming the sizes of its parts."""
    window, guide = model.context_limit, guide_size(model, prefix)
    tokens = estimator.tokens_for(fixed_size(prefix, guide))
    if not window or tokens <= window * MAX_PREFIX_SHARE:
        return
    sizes = sorted(prefix_parts(prefix, guide), key=lambda part: -part.size)
    parts_text = ", ".join(
        f"{part.name}{_origin_note(part)} {estimator.tokens_for(part.size)}" for part in sizes if part.size
    )
    raise BackendError(
        f"the system prompt and tools take about {tokens} tokens, more than half of the {window}-token context window "
        f"of {model.name}: {parts_text}",
        code="context_length",
        hint="use a model with a larger context window, shorter rules or fewer tools",
    )


def _origin_note(part: PromptPart) -> str:
    return f" ({part.origin[:80]})" if part.name.endswith("rules") or part.name == "instructions" else ""
