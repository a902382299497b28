"""Options and commands of a conversation over the connector: profile, project, model preset, reset, compaction."""

import asyncio
from typing import Any

from ostler.backends.agent_zero.connector_server import ConnectorServer
from ostler.backends.agent_zero.transport import COMMON_OPTIONS, TurnListener
from ostler.core.errors import BackendError
from ostler.core.sessions import OptionChoice, SessionOption, SlashCommand
from ostler.text.sanitise import sanitise
from ostler.wire.agent_zero.loose_values import first_text

NUDGE, COMPACT, PROFILE = "nudge", "compact", "agent_profile"
MAX_CHOICES = 500
# Name: route, description.
_COMMANDS = {
    "reset": ("chat_reset", "delete the conversation's messages on the server"),
    "terminate": ("chat_delete", "delete the conversation on the server; the next prompt starts a new one"),
    NUDGE: ("nudge", "let the agent go on after a stop"),
    COMPACT: ("compact_chat", "let the server summarise the conversation"),
    "tokens": ("token_status", "show how many tokens the conversation has"),
}
# Name: route that sets it, label; route that lists the choices, where they are, the member with the value.
_OPTIONS = {
    "agent_profile": ("agent_profile_set", COMMON_OPTIONS["agent_profile"], "agents_list", "data", ("key", "name")),
    "project": ("projects", COMMON_OPTIONS["project"], "projects", "projects", ("name",)),
    "model_preset": ("model_switcher", "Agent Zero model preset", "model_presets", "presets", ("name",)),
}


class ConnectorControls:
    """Options and commands of a conversation, if the server has their routes."""

    def __init__(
        self, server: ConnectorServer, listener: TurnListener, features: tuple[str, ...], values: dict[str, str]
    ) -> None:
        self._server = server
        self._listener = listener
        self._features = features
        self._values = {name: values.get(name, "") for name in _OPTIONS}
        self._choices: dict[str, tuple[OptionChoice, ...]] = {}

    def has(self, route: str) -> bool:
        """Return whether the server has a route; one that lists no features is assumed to have all."""
        return not self._features or route in self._features

    async def load_choices(self) -> None:
        """Ask the server for the values of the options; without an answer every value is accepted."""
        await asyncio.gather(*(self._load(name) for name in _OPTIONS))

    async def _load(self, name: str) -> None:
        _, _, route, member, keys = _OPTIONS[name]
        if not self._features or route not in self._features:
            return
        try:
            rows = (await self._server.call(route, {"action": "list"})).get(member)
        except BackendError:
            return
        found: dict[str, OptionChoice] = {}
        for row in rows[:MAX_CHOICES] if isinstance(rows, list) else ():
            value = sanitise(first_text(row, *keys)) if isinstance(row, dict) else ""
            if value:
                found[value] = OptionChoice(value, sanitise(first_text(row, "label", "title")) or value)
        self._choices[name] = tuple(found.values())

    # -- options ---------------------------------------------------------------------------------------------------

    def options(self) -> tuple[SessionOption, ...]:
        return tuple(
            SessionOption(name, self._values[name], label, self._choices.get(name, ()), has_default=True)
            for name, (route, label, *_) in _OPTIONS.items()
            if self.has(route)
        )

    async def set_option(self, name: str, value: str, context_id: str) -> bool:
        """Set an option, also on the server if there is a conversation. Raises `BackendError` if it refuses.

        A conversation cannot get the default profile back; it is used from the next one on.
        """
        if name not in _OPTIONS or not self.has(_OPTIONS[name][0]):
            return False
        if context_id and name == PROFILE and not value:
            text = "the default profile is used from the next conversation on; /terminate ends this one"
            self._listener.on_notice(text)
        elif context_id:
            await self._apply(name, value, context_id)
        self._values[name] = value
        return True

    async def apply_all(self, context_id: str) -> None:
        """Set the options of a new conversation on the server."""
        for name, value in self._values.items():
            if value:
                await self._apply(name, value, context_id)

    async def _apply(self, name: str, value: str, context_id: str) -> None:
        body: dict[str, Any] = {"context_id": context_id}
        if name == PROFILE:
            body["agent_profile"] = value
        elif name == "project":
            body |= {"action": "activate", "name": value} if value else {"action": "deactivate"}
        else:
            body |= {"action": "set_preset", "preset_name": value} if value else {"action": "clear"}
        await self._server.call(_OPTIONS[name][0], body)

    # -- commands --------------------------------------------------------------------------------------------------

    def commands(self) -> tuple[SlashCommand, ...]:
        return tuple(
            SlashCommand(name, description) for name, (route, description) in _COMMANDS.items() if self.has(route)
        )

    async def run(self, name: str, context_id: str) -> str:
        """Run a command that needs no turn and return the message for the user. Raises `BackendError`."""
        route, body = _COMMANDS[name][0], {"context_id": context_id}
        if name == "tokens":
            used, limit = await self.tokens(context_id)
            of_limit = f" of {limit:,}" if limit else ""
            return f"the conversation has {used:,}{of_limit} tokens" if used else "the server reports no tokens"
        if name == COMPACT:
            await self._server.call(route, {**body, "action": "compact", "use_chat_model": True}, seconds=120.0)
            return "the server summarises the conversation"
        await self._server.call(route, body)
        return f"deleted the {'messages of the ' if name == 'reset' else ''}conversation on the server"

    async def tokens(self, context_id: str) -> tuple[int, int]:
        """Return the tokens of the conversation and how many fit; 0 if the server does not know. May raise."""
        answer = await self._server.call("token_status", {"context_id": context_id})
        values = [answer.get(name) for name in ("token_count", "context_window")]
        used, limit = (value if isinstance(value, int) and 0 <= value < 10**12 else 0 for value in values)
        return used, limit
