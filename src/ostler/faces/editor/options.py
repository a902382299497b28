"""What can be chosen in a session, as an editor shows it: config options, and modes for those that know no others."""

from collections.abc import Sequence

import msgspec

from ostler.commands.services import Named
from ostler.vocabulary.events import Event, InfoChanged, OptionChanged
from ostler.vocabulary.sessions import SessionInfo, SessionOption
from ostler.wire.acp import ConfigChoice, ConfigOption, Mode, Modes

MODES = ("agent", "mode")
UNSET = "default"  # an option's value cannot be empty in the protocol's menus


class Shape(msgspec.Struct, frozen=True):
    """How an option of ours is shown."""

    name: str
    category: str
    told: str


SHAPES = {
    "agent": Shape("Agent", "mode", "who works: what it is told and what it may do"),
    "model": Shape("Model", "model", "which model thinks"),
    "mode": Shape("Mode", "mode", ""),
    "thinking": Shape("Thinking", "thought_level", "how much the model reasons"),
    "profile": Shape("Security", "_security", "what passes without asking you"),
}


class Options:
    """The session's options as they stand; it must hear every event."""

    def __init__(self, info: SessionInfo) -> None:
        self._known = {option.id: option for option in info.options}
        self._values = {option.id: option.value for option in info.options}
        self._engine = info.backend == "engine"
        self.agents: Sequence[Named] = ()
        self.models: Sequence[str] = ()

    def hear(self, event: Event) -> bool:
        """Whether something is chosen otherwise now."""
        before = dict(self._values)
        match event:
            case OptionChanged(option_id, value) if option_id in self._values:
                self._values[option_id] = value
            case InfoChanged(info):
                self._known = {option.id: option for option in info.options}
                self._values = {option.id: option.value for option in info.options}
            case _:
                return False
        return before != self._values

    @property
    def mode_option(self) -> str:
        """The option that an editor's modes stand for."""
        return next((name for name in MODES if name in self._known), "")

    @property
    def mode(self) -> str:
        return self._values.get(self.mode_option, "")

    def listed(self) -> tuple[ConfigOption, ...]:
        """All of them, with what they may be."""
        return tuple(self._option(option) for option in self._known.values() if self._choices(option))

    def modes(self) -> Modes | None:
        """The agents as modes, or another backend's own."""
        choices = self._choices(self._known[self.mode_option]) if self.mode_option else {}
        if not choices:
            return None
        return Modes(self.mode, tuple(Mode(value, one.name, one.told or None) for value, one in choices.items()))

    def value(self, option_id: str, wanted: str) -> str | None:
        """What to set an option to for what the editor chose; None where there is no such choice."""
        option = self._known.get(option_id)
        if option is None or wanted not in self._choices(option):
            return None
        return "" if self._engine and (option_id, wanted) == ("thinking", UNSET) else wanted

    def _option(self, option: SessionOption) -> ConfigOption:
        shape = SHAPES.get(option.id, Shape(option.label or option.id, f"_{option.id}", ""))
        found = self._choices(option).items()
        choices = tuple(ConfigChoice(one.name, value, one.told or None) for value, one in found)
        now = self._values.get(option.id) or UNSET
        return ConfigOption(option.id, shape.name, "select", now, choices, shape.category, shape.told or None)

    def _choices(self, option: SessionOption) -> dict[str, Named]:
        """What each value is called, and a word on it; what is set now is always among them."""
        now = self._values.get(option.id, "")
        found = {choice.value: Named(choice.label or choice.value) for choice in option.choices}
        match option.id:
            case "agent" if not found:
                found = {one.name: one for one in self.agents}
            case "model" if not found:
                found = {name: Named(name) for name in self.models}
            case "thinking" if self._engine:
                found = {UNSET: Named(UNSET, "as the model's settings say"), **found}
            case _:
                pass
        return {**({now: Named(now)} if now and now not in found else {}), **found}
