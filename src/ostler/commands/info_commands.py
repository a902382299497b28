"""Commands that tell how things stand, and those that choose a model or an agent."""

from collections.abc import Sequence

from ostler.commands.results import ShowLines, show_lines
from ostler.commands.services import CommandServices, NamedItem
from ostler.commands.usage import UsageTracker
from ostler.core.errors import OstlerError, UsageError
from ostler.core.protocols import Session
from ostler.core.sessions import RevokeRule, SetOption
from ostler.text.closest_name import closest_name
from ostler.text.sanitise import sanitise

TODO_MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}
MAX_LINE_LENGTH = 100
MODEL_CHOICE_HINT = "/models NAME or a number: from now on in this session; ostler --model NAME: from the start"


class InfoCommands:
    """What is so in a session, in lines."""

    def __init__(self, session: Session, services: CommandServices, usage: UsageTracker) -> None:
        self._session = session
        self._services = services
        self._usage = usage

    async def status(self, rest: str) -> ShowLines:
        facts = {
            "session": self._session.id,
            "title": self._session.state.title,
            "backend": self._session.info.backend,
            "agent": self._usage.option("agent"),
            "model": self._usage.option("model"),
            "context": self._usage.context_usage,
            "cost": self._cost_text(),
            "around": " · ".join(self._services.environment_labels()),
            "undo": "; ".join(f"not {gap}" for gap in self._services.undo_gaps()),
        }
        children = (f"  subagent {line}" for line in self._usage.subagents.lines())
        return show_lines(*(f"  {name:<8} {sanitise(value)}" for name, value in facts.items() if value), *children)

    async def todo(self, rest: str) -> ShowLines:
        todos = [f"  {TODO_MARKS[todo.status]} {sanitise(todo.content)}" for todo in self._session.state.todos]
        return show_lines(*(todos or ["  there is no plan"]))

    async def models(self, rest: str) -> ShowLines:
        """One can be named by its number in the list too."""
        if rest and not (rest.isascii() and rest.isdecimal()):
            return await self._set_option("model", rest)
        offered, why = await self._available_models()
        if rest:
            if not 1 <= int(rest[:9]) <= len(offered):
                raise UsageError(f"there is no model {rest[:40]}", hint="/models lists them by number")
            return await self._set_option("model", offered[int(rest[:9]) - 1].name)
        now = _current_name(self._usage.option("model"), offered)
        width = max((len(one.name) for one in offered), default=0)
        lines = [
            f"  {'*' if one.name == now else ' '} {n:>2}  {one.name:<{width}}  {one.description}"
            for n, one in enumerate(offered, 1)
        ]
        return show_lines(*(sanitise(line).rstrip() for line in (*lines, *why)), f"  {MODEL_CHOICE_HINT}")

    async def _available_models(self) -> tuple[list[NamedItem], list[str]]:
        """The one in use, those of the settings, those of the endpoint; and why the last are not known."""
        profiles = self._services.profiles()
        try:
            offered = self.choices("model") or [*profiles, *(NamedItem(name) for name in await self._services.models())]
            why = []
        except OstlerError as error:
            offered, why = [*profiles], [f"  the models of the endpoint are not known: {error}"]
        now = self._usage.option("model")
        if now and not _current_name(now, offered):
            offered = [NamedItem(now), *offered]
        return list({one.name: one for one in reversed(offered)}.values())[::-1], why

    async def agents(self, rest: str) -> ShowLines:
        return await self._list_or_choose("agent", await self._services.agents(), rest)

    async def mode(self, rest: str) -> ShowLines:
        """The modes of a far side that has some; ours are agents."""
        modes = self.choices("mode")
        return await self._list_or_choose("mode", modes, rest) if modes else await self.agents(rest)

    async def thinking(self, rest: str) -> ShowLines:
        return await self._list_or_choose("thinking", self.choices("thinking"), rest)

    async def profile(self, rest: str) -> ShowLines:
        return await self._list_or_choose("profile", self.choices("profile"), rest)

    def choices(self, option_id: str) -> list[NamedItem]:
        """What the backend says an option can be."""
        found = (option.choices for option in self._session.info.options if option.id == option_id)
        return [NamedItem(choice.value, choice.label) for choices in found for choice in choices]

    async def _list_or_choose(self, option_id: str, items: Sequence[NamedItem], rest: str) -> ShowLines:
        names = [one.name for one in items]
        if not items:
            return show_lines(f"  this backend has no {option_id} to choose")
        if not rest:
            return show_lines(*_list_lines(items, self._usage.option(option_id)))
        if rest not in names:
            near = closest_name(rest, names)
            hint = f"did you mean {near}?" if near else f"there is: {', '.join(names)}"
            raise UsageError(f"there is no {option_id} {rest[:80]!r} to choose", hint=hint)
        return await self._set_option(option_id, rest)

    async def skills(self, rest: str) -> ShowLines:
        return show_lines(*(_list_lines(await self._services.skills()) or ["  there are no skills here"]))

    async def mcp(self, rest: str) -> ShowLines:
        return show_lines(
            *([f"  {sanitise(line)}" for line in await self._services.mcp()] or ["  no MCP server is set up"])
        )

    async def permissions(self, rest: str) -> ShowLines:
        rules = self._session.state.rules
        if rest:
            if not (rest.isascii() and rest.isdecimal() and 1 <= int(rest[:9]) <= len(rules)):
                raise UsageError(f"there is no rule {rest[:40]!r}", hint="/permissions lists them by number")
            rule = rules[int(rest[:9]) - 1]
            await self._session.apply(RevokeRule(rule))
            return show_lines(f"  taken back: {sanitise(f'{rule.key}: {rule.pattern}')}")
        lines = [
            f"  {number:>2}  {rule.action} {rule.key}: {rule.pattern}  ({rule.origin})"
            for number, rule in enumerate(rules, 1)
        ]
        others = "  `ostler permissions list` shows those of the project and the settings"
        return show_lines(*([sanitise(line) for line in lines] or ["  you gave no rules in this session"]), others)

    async def context(self, rest: str) -> ShowLines:
        if pieces := self._services.context(self._session):
            return show_lines(*(f"  {line}" for line in pieces))
        of = f" of {self._usage.context_limit}" if self._usage.context_limit else ""
        return show_lines(f"  {self._usage.context_used}{of} tokens ({self._usage.context_usage})")

    async def cost(self, rest: str) -> ShowLines:
        cached = f" ({self._usage.tokens_cached} of them cached)" if self._usage.tokens_cached else ""
        return show_lines(
            f"  {self._usage.tokens_in} tokens in{cached}, {self._usage.tokens_out} out, {self._cost_text()}"
        )

    async def doctor(self, rest: str) -> ShowLines:
        return show_lines(*(f"  {sanitise(line)}" for line in await self._services.doctor()))

    def _cost_text(self) -> str:
        cost = self._session.state.cost
        return "price not known" if cost is None else f"${cost:.4f}"

    async def _set_option(self, option_id: str, value: str) -> ShowLines:
        taken = await self._session.apply(SetOption(option_id, value))
        return show_lines(
            f"  from now on: {sanitise(value)}" if taken else f"  this backend cannot take {sanitise(value)}"
        )


def _current_name(current: str, offered: Sequence[NamedItem]) -> str:
    """The name in the list of what is in use: its own, or one that stands for it."""
    return next((one.name for one in offered if one.name == current), "") or next(
        (one.name for one in offered if current and one.target == current), ""
    )


def _list_lines(items: Sequence[NamedItem], current: str = "") -> list[str]:
    width = max((len(one.name) for one in items), default=0)
    lines = [f"  {'*' if one.name == current else ' '} {one.name:<{width}}  {one.description}" for one in items]
    return [sanitise(line)[:MAX_LINE_LENGTH].rstrip() for line in lines]
