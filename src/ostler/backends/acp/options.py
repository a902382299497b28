"""An agent's config options, modes and models as session options."""

import msgspec

from ostler.backends.acp.agent_client import AcpAgentClient
from ostler.core.errors import UsageError
from ostler.core.sessions import OptionChoice, SessionOption
from ostler.wire.acp import SessionConfigOption, SessionMode, SessionModeState
from ostler.wire.acp_requests import OpenSessionResponse

_NAME_BY_CATEGORY = {"mode": "mode", "model": "model", "thought_level": "thinking"}


class AgentOptions:
    """The current options. If there are config options, modes and models are ignored, as the protocol requires."""

    def __init__(self, agent: AcpAgentClient, session_id: str, opened: OpenSessionResponse) -> None:
        self._agent = agent
        self._session_id = session_id
        self._config = opened.config_options or ()
        self._states: dict[str, SessionModeState] = {}  # modes and, in the same form, the models of older agents
        if opened.modes:
            self._states["mode"] = opened.modes
        if models := opened.models:
            available = tuple(SessionMode(model.model_id, model.name) for model in models.available_models)
            self._states["model"] = SessionModeState(models.current_model_id, available)

    def config_changed(self, options: tuple[SessionConfigOption, ...]) -> None:
        """Replace the config options with those the agent sent."""
        self._config = options

    def mode_changed(self, mode_id: str) -> None:
        """Store the agent's new mode."""
        if "mode" in self._states:
            self._set_state("mode", mode_id)
        self._set_current("mode", mode_id)

    @property
    def modes(self) -> SessionModeState | None:
        """The modes, from the config option or from the session's modes."""
        option = self._find("mode")
        if option is None:
            return self._states.get("mode")
        available = tuple(SessionMode(choice.value or "", choice.name) for choice in option.choices)
        return SessionModeState(str(option.current_value), available)

    def session_options(self) -> tuple[SessionOption, ...]:
        """Return all options under Ostler's names."""
        result = [_to_session_option(self._option_name(option), option) for option in self._config]
        names = {option.id for option in result}
        for name, state in self._states.items():
            if name not in names:
                choices = tuple(OptionChoice(mode.id, mode.name) for mode in state.available_modes)
                result.append(SessionOption(name, state.current_mode_id, name.capitalize(), choices))
        return tuple(result)

    async def set(self, name: str, value: str) -> None:
        """Set an option by Ostler's name or the agent's. Raises `UsageError` if the option or value is unknown."""
        option = self._find(name)
        if option is not None:
            return await self._set_config(option, value)
        if name in self._states:
            pairs = [(mode.id, mode.name) for mode in self._states[name].available_modes]
            chosen = self._resolve_choice(name, value, pairs)
            await (self._agent.set_mode if name == "mode" else self._agent.set_model)(self._session_id, chosen)
            return self._set_state(name, chosen)
        known = [option.id for option in self.session_options()]
        hint = f"available: {', '.join(known)}" if known else "this agent has no options"
        raise UsageError(f"{self._agent.name} has no option {name!r}", hint=hint)

    async def _set_config(self, option: SessionConfigOption, value: str) -> None:
        if option.type == "boolean":
            if value not in ("true", "false"):
                raise UsageError(f"{option.name} of {self._agent.name} must be true or false, not {value!r}")
            new_value: str | bool = value == "true"
        else:
            pairs = [(choice.value or "", choice.name) for choice in option.choices]
            new_value = self._resolve_choice(option.name, value, pairs)
        answer = await self._agent.set_option(self._session_id, option.id, new_value)
        if answer.config_options:
            self._config = answer.config_options
        else:
            self._set_current(option.id, new_value)

    def _set_state(self, name: str, value: str) -> None:
        self._states[name] = msgspec.structs.replace(self._states[name], current_mode_id=value)

    def _resolve_choice(self, label: str, value: str, pairs: list[tuple[str, str]]) -> str:
        """Return the value with this id or, if there is none, this name."""
        matches = [known for known, _ in pairs if known == value] or [known for known, name in pairs if name == value]
        if matches:
            return matches[0]
        known = ", ".join(known for known, _ in pairs) or "none"
        raise UsageError(f"{self._agent.name} has no {label.lower()} {value!r}", hint=f"available: {known}")

    def _find(self, name: str) -> SessionConfigOption | None:
        by_id = [option for option in self._config if option.id == name]
        by_category = [option for option in self._config if _NAME_BY_CATEGORY.get(option.category or "") == name]
        return next(iter([*by_category, *by_id]), None)

    def _option_name(self, option: SessionConfigOption) -> str:
        standard_name = _NAME_BY_CATEGORY.get(option.category or "", "")
        first = next((other for other in self._config if standard_name and other.category == option.category), option)
        return standard_name if standard_name and first is option else option.id

    def _set_current(self, name: str, value: str | bool) -> None:
        target = self._find(name)
        self._config = tuple(
            msgspec.structs.replace(option, current_value=value) if option is target else option
            for option in self._config
        )


def _to_session_option(name: str, option: SessionConfigOption) -> SessionOption:
    if option.type == "boolean":
        return SessionOption(
            name, str(option.current_value).lower(), option.name, (OptionChoice("true"), OptionChoice("false"))
        )
    choices = tuple(OptionChoice(choice.value or "", choice.name) for choice in option.choices)
    return SessionOption(name, str(option.current_value), option.name, choices)
