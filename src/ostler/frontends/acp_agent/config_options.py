"""Presents session options as ACP config options and modes."""

from collections.abc import Sequence

import msgspec

from ostler.core.events import Event, InfoChanged, OptionChanged
from ostler.core.sessions import SessionInfo, SessionOption
from ostler.interaction.services import NamedItem
from ostler.wire.acp import SessionConfigChoice, SessionConfigOption, SessionMode, SessionModeState

MODE_OPTIONS = ("mode", "agent")
UNSET = "default"  # ACP does not allow empty option values


class OptionLabel(msgspec.Struct, frozen=True):
    """How an editor shows an option of Ostler."""

    name: str
    category: str
    description: str


OPTION_LABELS = {
    "agent": OptionLabel("Agent", "_agent", "the agent, with its prompt and permissions"),
    "model": OptionLabel("Model", "model", "the model to use"),
    "mode": OptionLabel("Mode", "mode", "what runs without asking you"),
    "thinking": OptionLabel("Thinking", "thought_level", "how much the model reasons"),
    "profile": OptionLabel("Security", "_security", "what is allowed without asking you"),
}


class EditorOptions:
    """The current options of a session; `on_event` must receive every event."""

    def __init__(self, info: SessionInfo) -> None:
        self._options = {option.id: option for option in info.options}
        self._values = {option.id: option.value for option in info.options}
        self.agents: Sequence[NamedItem] = ()
        self.models: Sequence[str] = ()

    def on_event(self, event: Event) -> bool:
        """Apply an event. Return whether a value changed."""
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
        """Id of the option that is presented as the editor's modes, or an empty string."""
        return next((name for name in MODE_OPTIONS if name in self._options), "")

    @property
    def mode(self) -> str:
        return self._values.get(self.mode_option, "")

    def config_options(self) -> tuple[SessionConfigOption, ...]:
        """Return all options that have choices."""
        return tuple(self._config_option(option) for option in self._options.values() if self._choices(option))

    def modes(self) -> SessionModeState | None:
        """Return Ostler's modes, then those of the backend under its name; None if there are none."""
        choices = self._choices(self._options[self.mode_option]) if self.mode_option else {}
        if not choices:
            return None
        for option in self._options.values():
            name, _, kind = option.id.rpartition(".")
            if kind == "mode" and name:
                choices |= {f"{name}:{value}": _prefixed(name, item) for value, item in self._choices(option).items()}
        return SessionModeState(
            self.mode, tuple(SessionMode(value, item.name, item.description or None) for value, item in choices.items())
        )

    def mode_choice(self, mode_id: str) -> tuple[str, str]:
        """Return the option and the value that an editor's mode stands for."""
        name, _, value = mode_id.partition(":")
        option_id = f"{name}.mode"
        return (option_id, value) if value and option_id in self._options else (self.mode_option, mode_id)

    def resolve_choice(self, option_id: str, choice: str) -> str | None:
        """Return the value to set for the editor's choice, or None if there is no such choice."""
        option = self._options.get(option_id)
        if option is None or choice not in self._choices(option):
            return None
        return "" if option.has_default and choice == UNSET else choice

    def _config_option(self, option: SessionOption) -> SessionConfigOption:
        label = OPTION_LABELS.get(option.id, OptionLabel(option.label or option.id, f"_{option.id}", ""))
        items = self._choices(option).items()
        choices = tuple(SessionConfigChoice(item.name, value, item.description or None) for value, item in items)
        current = self._values.get(option.id) or UNSET
        return SessionConfigOption(
            option.id, label.name, "select", current, choices, label.category, label.description or None
        )

    def _choices(self, option: SessionOption) -> dict[str, NamedItem]:
        """Return the names and descriptions of the values; the current value is always included."""
        current = self._values.get(option.id, "")
        found = {choice.value: NamedItem(choice.label or choice.value, choice.description) for choice in option.choices}
        match option.id:
            case "agent" if not found:
                found = {agent.name: agent for agent in self.agents}
            case "model" if not found:
                found = {name: NamedItem(name) for name in self.models}
            case _:
                pass
        if option.has_default:
            found = {UNSET: NamedItem(UNSET, "from the model's settings"), **found}
        return {**({current: NamedItem(current)} if current and current not in found else {}), **found}


def _prefixed(name: str, item: NamedItem) -> NamedItem:
    return NamedItem(f"{name}: {item.name}", item.description)
