"""What every request of a session begins with: built once, fitted to the model's window, refused where it fills it."""

from collections.abc import Callable, Sequence

import msgspec

from ostler.backends.engine.measure import FRAME, Meter, byte_size
from ostler.knowledge.parts import Part
from ostler.knowledge.rules import RulesFile
from ostler.models.words import ModelClient
from ostler.vocabulary.errors import BackendError
from ostler.vocabulary.events import PrefixBuilt, PromptPart
from ostler.vocabulary.tools import ToolSpec

# In a window up to this size every tool that another can stand in for is not told of.
SMALL_WINDOW = 12_000
# What servers run models with when nobody tells them more; a request below it need not wait to learn the window.
SMALLEST_WINDOW = 4_096
NOT_IN_SMALL = frozenset(["patch", "todoread", "task", "glob"])
LARGEST_SHARE = 0.5


class Surroundings(msgspec.Struct, frozen=True):
    """What the workspace's files tell: the parts of the prompt, and the rules of the folders that a path leads into."""

    parts: Callable[[], Sequence[Part]] = lambda: ()
    nested: Callable[[str], Sequence[RulesFile]] = lambda path: ()


def build(system: str, parts: Sequence[Part], tools: Sequence[ToolSpec], window: int) -> PrefixBuilt:
    """The prefix for a window of so many tokens."""
    told = _told(tools, window)
    known = tuple(PromptPart(part.name, part.origin, byte_size(part.text)) for part in parts)
    return PrefixBuilt(system, tuple(msgspec.to_builtins(tool) for tool in told), known)


def extended(built: PrefixBuilt, tools: Sequence[ToolSpec], window: int) -> PrefixBuilt:
    """The prefix with the tools at its end that another agent has, or that came late; itself when there are none.

    What is no longer offered stays: the door refuses it, and the bytes before it stay as they were.
    """
    names = {tool["name"] for tool in built.tools}
    more = [msgspec.to_builtins(tool) for tool in _told(tools, window) if tool.name not in names]
    return msgspec.structs.replace(built, tools=(*built.tools, *more)) if more else built


def _told(tools: Sequence[ToolSpec], window: int) -> list[ToolSpec]:
    return [tool for tool in tools if window > SMALL_WINDOW or tool.name not in NOT_IN_SMALL]


def tools_size(built: PrefixBuilt, guide: int | None = None) -> int:
    """The bytes of the tools' declarations as they are sent; `guide` is what they are told in words, where they are."""
    if guide is not None:
        return guide
    return sum(len(msgspec.json.encode(tool)) + 2 * FRAME for tool in built.tools)


def guide_size(model: ModelClient, built: PrefixBuilt) -> int | None:
    """The bytes in which a model's dialect tells of the tools; None where the API has a place for them."""
    measure = getattr(model, "guide_size", None)
    return measure([msgspec.convert(tool, ToolSpec) for tool in built.tools]) if measure else None


def fixed_size(built: PrefixBuilt, guide: int | None = None) -> int:
    """The bytes that every request begins with."""
    return byte_size(built.system) + tools_size(built, guide)


def pieces(built: PrefixBuilt, guide: int | None = None) -> list[PromptPart]:
    """The same by its parts; what no part accounts for is the system prompt's."""
    known = sum(part.size for part in built.parts)
    rest = byte_size(built.system) - known
    parts = list(built.parts) or [PromptPart("system prompt", "", 0)]
    first = msgspec.structs.replace(parts[0], size=parts[0].size + rest)
    return [first, *parts[1:], PromptPart("tools", f"{len(built.tools)} tools", tools_size(built, guide))]


def check_room(built: PrefixBuilt, model: ModelClient, meter: Meter) -> None:
    """Refuse what would leave less than half of a window to the conversation, and say what takes how much."""
    window, guide = model.context_limit, guide_size(model, built)
    tokens = meter.worth(fixed_size(built, guide))
    if not window or tokens <= window * LARGEST_SHARE:
        return
    sizes = sorted(pieces(built, guide), key=lambda part: -part.size)
    told = ", ".join(f"{part.name}{_where(part)} {meter.worth(part.size)}" for part in sizes if part.size)
    raise BackendError(
        f"what every request begins with takes about {tokens} of the {window} tokens of {model.name}'s window, "
        f"and half of it is the most: {told}",
        code="context_length",
        hint="choose a model with a larger window, shorter rules or fewer tools",
    )


def _where(part: PromptPart) -> str:
    return f" ({part.origin[:80]})" if part.name.endswith("rules") or part.name == "instructions" else ""
