"""What every request of a session begins with: built once, fitted to the model's window, refused where it fills it."""

from collections.abc import Callable, Sequence

import msgspec

from ostler.backends.engine.token_estimate import FRAME_BYTES, TokenEstimator, byte_size
from ostler.core.errors import BackendError
from ostler.core.events import PrefixBuilt, PromptPart
from ostler.core.tools import ToolSpec
from ostler.knowledge.prompt_sections import PromptSection
from ostler.knowledge.rules_files import RulesFile
from ostler.models.model_types import ModelClient

# In a window up to this size every tool that another can stand in for is not told of.
SMALL_WINDOW = 12_000
# What servers run models with when nobody tells them more; a request below it need not wait to learn the window.
MIN_WINDOW = 4_096
LARGE_WINDOW_TOOLS = frozenset(["patch", "todoread", "task", "glob"])
MAX_PREFIX_SHARE = 0.5


class ProjectPrompt(msgspec.Struct, frozen=True):
    """What the workspace's files tell: the parts of the prompt, and the rules of the folders that a path leads into."""

    parts: Callable[[], Sequence[PromptSection]] = lambda: ()
    folder_rules: Callable[[str], Sequence[RulesFile]] = lambda path: ()


def build_prefix(system: str, parts: Sequence[PromptSection], tools: Sequence[ToolSpec], window: int) -> PrefixBuilt:
    """The prefix for a window of so many tokens."""
    told = _tools_for_window(tools, window)
    known = tuple(PromptPart(part.name, part.origin, byte_size(part.text)) for part in parts)
    return PrefixBuilt(system, tuple(msgspec.to_builtins(tool) for tool in told), known)


def extend_prefix(prefix: PrefixBuilt, tools: Sequence[ToolSpec], window: int) -> PrefixBuilt:
    """The prefix with the tools at its end that another agent has, or that came late; itself when there are none.

    What is no longer offered stays: the door refuses it, and the bytes before it stay as they were.
    """
    names = {tool["name"] for tool in prefix.tools}
    more = [msgspec.to_builtins(tool) for tool in _tools_for_window(tools, window) if tool.name not in names]
    return msgspec.structs.replace(prefix, tools=(*prefix.tools, *more)) if more else prefix


def _tools_for_window(tools: Sequence[ToolSpec], window: int) -> list[ToolSpec]:
    return [tool for tool in tools if window > SMALL_WINDOW or tool.name not in LARGE_WINDOW_TOOLS]


def tools_size(prefix: PrefixBuilt, guide: int | None = None) -> int:
    """The bytes of the tools' declarations as they are sent; `guide` is what they are told in words, where they are."""
    if guide is not None:
        return guide
    return sum(len(msgspec.json.encode(tool)) + 2 * FRAME_BYTES for tool in prefix.tools)


def guide_size(model: ModelClient, prefix: PrefixBuilt) -> int | None:
    """The bytes in which a model's dialect tells of the tools; None where the API has a place for them."""
    measure = getattr(model, "guide_size", None)
    return measure([msgspec.convert(tool, ToolSpec) for tool in prefix.tools]) if measure else None


def fixed_size(prefix: PrefixBuilt, guide: int | None = None) -> int:
    """The bytes that every request begins with."""
    return byte_size(prefix.system) + tools_size(prefix, guide)


def prefix_parts(prefix: PrefixBuilt, guide: int | None = None) -> list[PromptPart]:
    """The same by its parts; what no part accounts for is the system prompt's."""
    known = sum(part.size for part in prefix.parts)
    rest = byte_size(prefix.system) - known
    parts = list(prefix.parts) or [PromptPart("system prompt", "", 0)]
    first = msgspec.structs.replace(parts[0], size=parts[0].size + rest)
    return [first, *parts[1:], PromptPart("tools", f"{len(prefix.tools)} tools", tools_size(prefix, guide))]


def check_prefix_fits(prefix: PrefixBuilt, model: ModelClient, estimator: TokenEstimator) -> None:
    """Refuse what would leave less than half of a window to the conversation, and say what takes how much."""
    window, guide = model.context_limit, guide_size(model, prefix)
    tokens = estimator.tokens_for(fixed_size(prefix, guide))
    if not window or tokens <= window * MAX_PREFIX_SHARE:
        return
    sizes = sorted(prefix_parts(prefix, guide), key=lambda part: -part.size)
    told = ", ".join(
        f"{part.name}{_origin_note(part)} {estimator.tokens_for(part.size)}" for part in sizes if part.size
    )
    raise BackendError(
        f"what every request begins with takes about {tokens} of the {window} tokens of {model.name}'s window, "
        f"and half of it is the most: {told}",
        code="context_length",
        hint="choose a model with a larger window, shorter rules or fewer tools",
    )


def _origin_note(part: PromptPart) -> str:
    return f" ({part.origin[:80]})" if part.name.endswith("rules") or part.name == "instructions" else ""
