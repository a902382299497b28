"""Commands that show the session's state (`/status`, `/todo`, `/cost`) or set an option (`/models`, `/set`)."""

import asyncio
from collections.abc import Sequence

from ostler.core.errors import BackendError, OstlerError, UsageError
from ostler.core.protocols import Session
from ostler.core.sessions import RevokeRule, SessionOption, SetOption
from ostler.interaction.results import ShowLines, show_lines
from ostler.interaction.services import CommandServices, NamedItem
from ostler.interaction.usage import UsageTracker
from ostler.text.closest_name import closest_name
from ostler.text.model_names import is_listed
from ostler.text.sanitise import sanitise

TODO_MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}
MAX_LINE_LENGTH = 100
LIST_SECONDS = 10.0
MAX_NAMES_IN_HINT = 20
EMPTY_VALUES = ('""', "''")
NO_VALUE = "(default)"
SERVER_MODEL_HINT = "/models NAME or NUMBER switches to another model of the server in this session"
MODEL_CHOICE_HINT = (
    "/models NAME or NUMBER switches the model in this session; ostler --model NAME sets it at the start"
)


class InfoCommands:
    """The commands that show or set something in one session."""

    def __init__(self, session: Session, services: CommandServices, usage: UsageTracker) -> None:
        self._session = session
        self._services = services
        self._usage = usage
        self._shown_models: list[NamedItem] = []

    async def status(self, rest: str) -> ShowLines:
        facts = {
            "session": self._session.id,
            "title": self._session.state.title,
            "backend": self._session.info.backend,
            **dict(self._session.info.facts),
            "agent": self._usage.option("agent"),
            "model": self._usage.option("model"),
            "context": self._usage.context_usage,
            "cost": self._cost_text() if self._usage.tokens_in else "",  # some agents report no usage
            "system": " · ".join(self._services.environment_labels()),
            "undo": self._undo_text(),
        }
        children = (f"  subagent {line}" for line in self._usage.subagents.lines())
        return show_lines(*(f"  {name:<8} {sanitise(value)}" for name, value in facts.items() if value), *children)

    async def todo(self, rest: str) -> ShowLines:
        todos = [f"  {TODO_MARKS[todo.status]} {sanitise(todo.content)}" for todo in self._session.state.todos]
        return show_lines(*(todos or ["  the todo list is empty"]))

    async def models(self, rest: str) -> ShowLines:
        """List the models, or switch to one by its name or its number in the list."""
        if rest and not (rest.isascii() and rest.isdecimal()):
            await self._check_model(rest)
            return await self._set_option("model", rest)
        if rest:
            offered = self._shown_models or (await self.available_models())[0]
            if not 1 <= int(rest[:9]) <= len(offered):
                raise UsageError(f"there is no model {rest[:40]}", hint="/models lists them by number")
            return await self._set_option("model", offered[int(rest[:9]) - 1].name)
        offered, errors = await self.available_models()
        self._shown_models = offered
        if not offered and not errors:
            return show_lines("  this backend has no model option")
        current = self.current_model(offered)
        width = max((len(model.name) for model in offered), default=0)
        lines = [
            f"  {'*' if model.name == current else ' '} {number:>2}  {model.name:<{width}}  {model.description}"
            for number, model in enumerate(offered, 1)
        ]
        hint = SERVER_MODEL_HINT if self._session.info.fact("server") else MODEL_CHOICE_HINT
        return show_lines(*(sanitise(line).rstrip() for line in (*lines, *errors)), f"  {hint}")

    async def available_models(self) -> tuple[list[NamedItem], list[str]]:
        """Return the current model, those of the settings and those of the endpoint; and error lines."""
        offered, errors = self.choices("model"), list[str]()
        if not offered and not self._session.info.fact("server"):  # a server has models of its own
            offered = [*self._services.profiles()]
            try:
                offered += [NamedItem(name) for name in await self._endpoint_models()]
            except OstlerError as error:
                errors = [f"  cannot list the models of the endpoint: {error}"]
        if not self.current_model(offered) and (current := self._usage.option("model")):
            offered = [*offered, NamedItem(current)]  # last, so that the other numbers do not change
        return list({model.name: model for model in reversed(offered)}.values())[::-1], errors

    async def _endpoint_models(self) -> Sequence[str]:
        try:
            async with asyncio.timeout(LIST_SECONDS):
                return await self._services.models()
        except TimeoutError:
            raise BackendError(f"no answer within {LIST_SECONDS:g} s") from None

    async def _check_model(self, name: str) -> None:
        """Raise `UsageError` for a name that the endpoint does not list, or that looks like a mistyped profile."""
        if self._session.info.fact("server"):
            return
        profiles = self._services.profiles()
        if self.choices("model") or name.startswith("embedded") or any(item.name == name for item in profiles):
            return
        try:
            listed = list(await self._endpoint_models())
        except OstlerError:
            listed = []
        names = [*(item.name for item in profiles), *listed]
        by_target = (item.name for item in profiles if item.target == name)
        near = next(by_target, None) or closest_name(name, names)
        if is_listed(name, listed) or not (listed or near):
            return
        shown = ", ".join(names[:MAX_NAMES_IN_HINT])
        raise UsageError(
            f"unknown model {name[:80]!r}", hint=f"did you mean {near}?" if near else f"available: {shown}"
        )

    def current_model(self, offered: Sequence[NamedItem]) -> str:
        """Return the listed name of the current model: as selected, else the active profile, else by its id."""
        current, selected = self._usage.option("model"), self._usage.selected("model")
        names = [item.name for item in offered]
        active = [item.name for item in offered if item.active and item.target in ("", current)]
        targets = [item.name for item in offered if current and item.target == current]
        found = [*([selected] if selected in names else active), *([current] if current in names else []), *targets]
        return found[0] if found else ""

    async def agents(self, rest: str) -> ShowLines:
        return await self._list_or_choose("agent", await self._services.agents(), rest)

    async def mode(self, rest: str) -> ShowLines:
        """Show or set the mode; a mode of the backend's own can be set as `backend:mode` or, if unique, by its name."""
        own, option_id = self.choices("mode"), self._backend_mode_option()
        name, theirs = option_id.removesuffix(".mode"), self.choices(option_id) if option_id else []
        if not rest:
            lines = (await self._list_or_choose("mode", own, "")).lines
            more = [f"  modes of {name}:", *_list_lines(theirs, self._usage.option(option_id))] if theirs else []
            return show_lines(*lines, *more)
        wanted = rest.removeprefix(f"{name}:") if theirs else rest
        if wanted in {item.name for item in theirs} and (wanted != rest or rest not in {item.name for item in own}):
            return await self._set_option(option_id, wanted)
        return await self._list_or_choose("mode", self.mode_choices(), rest)

    def mode_choices(self) -> list[NamedItem]:
        """Return the modes of the session, and those of the backend as `backend:mode`."""
        option_id = self._backend_mode_option()
        theirs = self.choices(option_id) if option_id else []
        prefix = option_id.removesuffix(".mode")
        return [*self.choices("mode"), *(NamedItem(f"{prefix}:{item.name}", item.description) for item in theirs)]

    async def next_mode(self) -> str:
        """Switch to the next mode. Return a line that says what it does."""
        modes = self.choices("mode")
        if not modes:
            return "this session has no modes"
        names = [mode.name for mode in modes]
        current = self._session.info.option("mode")
        following = modes[(names.index(current) + 1) % len(modes) if current in names else 0]
        await self._session.apply(SetOption("mode", following.name))
        return f"mode {following.name}: {following.description}"

    def _backend_mode_option(self) -> str:
        """Return the id of the option with the backend's own modes, or an empty string."""
        return next((option.id for option in self._session.info.options if option.id.endswith(".mode")), "")

    async def thinking(self, rest: str) -> ShowLines:
        return await self._list_or_choose("thinking", self.choices("thinking"), rest)

    async def profile(self, rest: str) -> ShowLines:
        return await self._list_or_choose("profile", self.choices("profile"), rest)

    async def set(self, rest: str) -> ShowLines:
        """List all options, or the choices of one, or set one; `""` selects the backend's default."""
        if not rest:
            return show_lines(*self._option_lines())
        option = self._find_option(rest)
        value = rest[len(option.id) :].strip()
        if not value:
            items, current = self.choices(option.id), self._value_of(option)
            shown = _list_lines(items, current) or [f"  {sanitise(option.id)}  {sanitise(current) or NO_VALUE}"]
            return show_lines(*shown, f"  /set {sanitise(option.id)} VALUE sets it")
        if value in EMPTY_VALUES:
            if not option.has_default:
                raise UsageError(f"{option.id[:80]} has no default", hint=f"/set {option.id[:80]} lists the choices")
            return await self._set_option(option.id, "")
        if option.id in ("model", "agent"):  # their choices are not part of the option
            return await (self.models(value) if option.id == "model" else self.agents(value))
        if option.choices:
            return await self._list_or_choose(option.id, self.choices(option.id), value)
        return await self._set_option(option.id, value)

    def _option_lines(self) -> list[str]:
        options = [(sanitise(option.id), option) for option in self._session.info.options]
        width = max((len(name) for name, _ in options), default=0)
        lines = [
            f"  {name:<{width}}  {sanitise(self._value_of(option)) or NO_VALUE}  {sanitise(option.label)}".rstrip()
            for name, option in options
        ]
        hint = '  /set OPTION VALUE sets one; /set OPTION lists its values; /set OPTION "" selects the default'
        return [*(line[:MAX_LINE_LENGTH] for line in lines), hint] if lines else ["  this session has no options"]

    def _find_option(self, text: str) -> SessionOption:
        """Return the option that a text begins with, the one with the longest name if several do."""
        options = self._session.info.options
        found = [option for option in options if text == option.id or text.startswith(f"{option.id} ")]
        if not found:
            name, names = text.split()[0], [option.id for option in options]
            suggestion = closest_name(name, names)
            hint = f"did you mean {suggestion}?" if suggestion else f"available: {', '.join(names)}"
            raise UsageError(f"there is no option {name[:80]!r}", hint=hint)
        return max(found, key=lambda option: len(option.id))

    def _value_of(self, option: SessionOption) -> str:
        return option.value or self._usage.option(option.id)

    def option_choices(self, text: str) -> list[NamedItem]:
        """Return the completions of the argument of `/set`: options, or the values of the option in `text`."""
        options = self._session.info.options
        named = [option for option in options if text.startswith(f"{option.id} ")]
        if not named:
            return [NamedItem(option.id, option.label) for option in options]
        option = max(named, key=lambda option: len(option.id))
        return [NamedItem(f"{option.id} {item.name}", item.description) for item in self.choices(option.id)]

    def choices(self, option_id: str) -> list[NamedItem]:
        """Return the values that the backend offers for an option."""
        found = (option.choices for option in self._session.info.options if option.id == option_id)
        return [NamedItem(choice.value, choice.description or choice.label) for choices in found for choice in choices]

    async def _list_or_choose(self, option_id: str, items: Sequence[NamedItem], rest: str) -> ShowLines:
        names = [item.name for item in items]
        if not items:
            return show_lines(f"  this backend has no {option_id} option")
        if not rest:
            return show_lines(*_list_lines(items, self._usage.option(option_id)))
        if rest not in names:
            suggestion = closest_name(rest, names)
            hint = f"did you mean {suggestion}?" if suggestion else f"available: {', '.join(names)}"
            raise UsageError(f"unknown {option_id} {rest[:80]!r}", hint=hint)
        return await self._set_option(option_id, rest)

    async def skills(self, rest: str) -> ShowLines:
        return show_lines(*(_list_lines(await self._services.skills()) or ["  no skills available"]))

    async def mcp(self, rest: str) -> ShowLines:
        lines = await self._services.mcp(self._session, rest)
        return show_lines(*([f"  {sanitise(line)}" for line in lines] or ["  no MCP server is configured"]))

    async def permissions(self, rest: str) -> ShowLines:
        rules = self._session.state.rules
        if rest:
            if not (rest.isascii() and rest.isdecimal() and 1 <= int(rest[:9]) <= len(rules)):
                raise UsageError(f"there is no rule {rest[:40]!r}", hint="/permissions lists them by number")
            rule = rules[int(rest[:9]) - 1]
            await self._session.apply(RevokeRule(rule))
            return show_lines(f"  revoked: {sanitise(f'{rule.key}: {rule.pattern}')}")
        lines = [
            f"  {number:>2}  {rule.action} {rule.key}: {rule.pattern}  ({rule.origin})"
            for number, rule in enumerate(rules, 1)
        ]
        others = "  `ostler permissions list` shows the rules of the project and the settings"
        return show_lines(*([sanitise(line) for line in lines] or ["  you added no rules in this session"]), others)

    async def context(self, rest: str) -> ShowLines:
        if lines := self._services.context(self._session):
            return show_lines(*(f"  {line}" for line in lines))
        limit = f" of {self._usage.context_limit}" if self._usage.context_limit else ""
        return show_lines(f"  {self._usage.context_used}{limit} tokens ({self._usage.context_usage})")

    async def cost(self, rest: str) -> ShowLines:
        cached = f" ({self._usage.tokens_cached} of them cached)" if self._usage.tokens_cached else ""
        return show_lines(
            f"  {self._usage.tokens_in} tokens in{cached}, {self._usage.tokens_out} out, {self._cost_text()}"
        )

    async def doctor(self, rest: str) -> ShowLines:
        return show_lines(*(f"  {sanitise(line)}" for line in await self._services.doctor()))

    def _cost_text(self) -> str:
        cost = self._session.state.cost
        return "price unknown" if cost is None else f"${cost:.4f}"

    def _undo_text(self) -> str:
        gaps = "; ".join(self._services.undo_gaps())
        return f"does not cover {gaps}" if gaps else ""

    async def _set_option(self, option_id: str, value: str) -> ShowLines:
        applied = await self._session.apply(SetOption(option_id, value))
        option_id = sanitise(option_id)
        shown = f"{option_id} {sanitise(value)}".rstrip()
        if applied:
            return show_lines(f"  now using {shown}" if value else f"  now using the default {option_id}")
        return show_lines(f"  this backend does not support {shown}")


def _list_lines(items: Sequence[NamedItem], current: str = "") -> list[str]:
    width = max((len(item.name) for item in items), default=0)
    lines = [f"  {'*' if item.name == current else ' '} {item.name:<{width}}  {item.description}" for item in items]
    return [sanitise(line)[:MAX_LINE_LENGTH].rstrip() for line in lines]
