"""What can be chosen in a session, as an editor shows it: config options, and modes for those that know no others."""

from collections.abc import Sequence

import msgspec

from ostler.commands.services import NamedItem
from ostler.core.events import Event, InfoChanged, OptionChanged
from ostler.core.sessions import SessionInfo, SessionOption
from ostler.wire.acp import SessionConfigChoice, SessionConfigOption, SessionMode, SessionModeState

MODE_OPTIONS = ("agent", "mode")
UNSET = "default"  # an option's value cannot be empty in the protocol's menus


class OptionLabel(msgspec.Struct, frozen=True):
    """How an option of ours is shown."""

    name: str
    category: str
    description: str


OPTION_LABELS = {
    "agent": OptionLabel("Agent", "mode", "who works: what it is told and what it may do"),
    "model": OptionLabel("Model", "model", "which model thinks"),
    "mode": OptionLabel("Mode", "mode", ""),
    "thinking": OptionLabel("Thinking", "thought_level", "how much the model reasons"),
    "profile": OptionLabel("Security", "_security", "what passes without asking you"),
}


class EditorOptions:
    """The session's options as they stand; it must hear every event."""

    def __init__(self, info: SessionInfo) -> None:
        self._options = {option.id: option for option in info.options}
        self._values = {option.id: option.value for option in info.options}
        self._is_engine = info.backend == "engine"
        self.agents: Sequence[NamedItem] = ()
        self.models: Sequence[str] = ()

    def on_event(self, event: Event) -> bool:
        """Whether something is chosen otherwise now."""
        before = dict(self._values)
        match event:
            case OptionChanged(option_id, value) if option_id in self._values:
                self._values[option_id] = value
            case InfoChanged(info):
                self._options = {option.id: option for option in info.options}
                self._values = {option.id: option.value for option in info.options}
            case _:
                return False
        return before != self._values

    @property
    def mode_option(self) -> str:
        """The option that an editor's modes stand for."""
        return next((name for name in MODE_OPTIONS if name in self._options), "")

    @property
    def mode(self) -> str:
        return self._values.get(self.mode_option, "")

    def config_options(self) -> tuple[SessionConfigOption, ...]:
        """All of them, with what they may be."""
        return tuple(self._config_option(option) for option in self._options.values() if self._choices(option))

    def modes(self) -> SessionModeState | None:
        """The agents as modes, or another backend's own."""
        choices = self._choices(self._options[self.mode_option]) if self.mode_option else {}
        if not choices:
            return None
        return SessionModeState(
            self.mode, tuple(SessionMode(value, one.name, one.description or None) for value, one in choices.items())
        )

    def resolve_choice(self, option_id: str, choice: str) -> str | None:
        """What to set an option to for what the editor chose; None where there is no such choice."""
        option = self._options.get(option_id)
        if option is None or choice not in self._choices(option):
            return None
        return "" if self._is_engine and (option_id, choice) == ("thinking", UNSET) else choice

    def _config_option(self, option: SessionOption) -> SessionConfigOption:
        shape = OPTION_LABELS.get(option.id, OptionLabel(option.label or option.id, f"_{option.id}", ""))
        found = self._choices(option).items()
        choices = tuple(SessionConfigChoice(one.name, value, one.description or None) for value, one in found)
        now = self._values.get(option.id) or UNSET
        return SessionConfigOption(
            option.id, shape.name, "select", now, choices, shape.category, shape.description or None
        )

    def _choices(self, option: SessionOption) -> dict[str, NamedItem]:
        """What each value is called, and a word on it; what is set now is always among them."""
        now = self._values.get(option.id, "")
        found = {choice.value: NamedItem(choice.label or choice.value) for choice in option.choices}
        match option.id:
            case "agent" if not found:
                found = {one.name: one for one in self.agents}
            case "model" if not found:
                found = {name: NamedItem(name) for name in self.models}
            case "thinking" if self._is_engine:
                found = {UNSET: NamedItem(UNSET, "as the model's settings say"), **found}
            case _:
                pass
        return {**({now: NamedItem(now)} if now and now not in found else {}), **found}
