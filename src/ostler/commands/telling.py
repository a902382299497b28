"""Commands that tell how things stand, and those that choose a model or an agent."""

from collections.abc import Sequence

from ostler.commands.meter import Meter
from ostler.commands.outcomes import Told, told
from ostler.commands.services import Named, Services
from ostler.text.names import nearest
from ostler.text.sanitise import sanitise
from ostler.vocabulary.errors import OstlerError, UsageError
from ostler.vocabulary.seams import Session
from ostler.vocabulary.sessions import Revoke, SetOption

MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}
LONGEST = 100
HOW_TO_CHOOSE = "/models NAME or a number: from now on in this session; ostler --model NAME: from the start"


class Telling:
    """What is so in a session, in lines."""

    def __init__(self, session: Session, services: Services, meter: Meter) -> None:
        self._session = session
        self._services = services
        self._meter = meter

    async def status(self, rest: str) -> Told:
        facts = {
            "session": self._session.id,
            "title": self._session.state.title,
            "backend": self._session.info.backend,
            "agent": self._meter.option("agent"),
            "model": self._meter.option("model"),
            "context": self._meter.context,
            "cost": self._price(),
            "around": " · ".join(self._services.surroundings()),
            "undo": "; ".join(f"not {gap}" for gap in self._services.not_undone()),
        }
        children = (f"  subagent {line}" for line in self._meter.children.lines())
        return told(*(f"  {name:<8} {sanitise(value)}" for name, value in facts.items() if value), *children)

    async def todo(self, rest: str) -> Told:
        todos = [f"  {MARKS[todo.status]} {sanitise(todo.content)}" for todo in self._session.state.todos]
        return told(*(todos or ["  there is no plan"]))

    async def models(self, rest: str) -> Told:
        """One can be named by its number in the list too."""
        if rest and not (rest.isascii() and rest.isdecimal()):
            return await self._choose("model", rest)
        offered, why = await self._models()
        if rest:
            if not 1 <= int(rest[:9]) <= len(offered):
                raise UsageError(f"there is no model {rest[:40]}", hint="/models lists them by number")
            return await self._choose("model", offered[int(rest[:9]) - 1].name)
        now = _chosen(self._meter.option("model"), offered)
        width = max((len(one.name) for one in offered), default=0)
        lines = [
            f"  {'*' if one.name == now else ' '} {n:>2}  {one.name:<{width}}  {one.told}"
            for n, one in enumerate(offered, 1)
        ]
        return told(*(sanitise(line).rstrip() for line in (*lines, *why)), f"  {HOW_TO_CHOOSE}")

    async def _models(self) -> tuple[list[Named], list[str]]:
        """The one in use, those of the settings, those of the endpoint; and why the last are not known."""
        profiles = self._services.profiles()
        try:
            offered = self.choices("model") or [*profiles, *(Named(name) for name in await self._services.models())]
            why = []
        except OstlerError as error:
            offered, why = [*profiles], [f"  the models of the endpoint are not known: {error}"]
        now = self._meter.option("model")
        if now and not _chosen(now, offered):
            offered = [Named(now), *offered]
        return list({one.name: one for one in reversed(offered)}.values())[::-1], why

    async def agents(self, rest: str) -> Told:
        return await self._one_of("agent", await self._services.agents(), rest)

    async def mode(self, rest: str) -> Told:
        """The modes of a far side that has some; ours are agents."""
        modes = self.choices("mode")
        return await self._one_of("mode", modes, rest) if modes else await self.agents(rest)

    async def thinking(self, rest: str) -> Told:
        return await self._one_of("thinking", self.choices("thinking"), rest)

    async def profile(self, rest: str) -> Told:
        return await self._one_of("profile", self.choices("profile"), rest)

    def choices(self, option_id: str) -> list[Named]:
        """What the backend says an option can be."""
        found = (option.choices for option in self._session.info.options if option.id == option_id)
        return [Named(choice.value, choice.label) for choices in found for choice in choices]

    async def _one_of(self, option_id: str, known: Sequence[Named], rest: str) -> Told:
        names = [one.name for one in known]
        if not known:
            return told(f"  this backend has no {option_id} to choose")
        if not rest:
            return told(*_listed(known, self._meter.option(option_id)))
        if rest not in names:
            near = nearest(rest, names)
            hint = f"did you mean {near}?" if near else f"there is: {', '.join(names)}"
            raise UsageError(f"there is no {option_id} {rest[:80]!r} to choose", hint=hint)
        return await self._choose(option_id, rest)

    async def skills(self, rest: str) -> Told:
        return told(*(_listed(await self._services.skills()) or ["  there are no skills here"]))

    async def mcp(self, rest: str) -> Told:
        return told(*([f"  {sanitise(line)}" for line in await self._services.mcp()] or ["  no MCP server is set up"]))

    async def permissions(self, rest: str) -> Told:
        rules = self._session.state.rules
        if rest:
            if not (rest.isascii() and rest.isdecimal() and 1 <= int(rest[:9]) <= len(rules)):
                raise UsageError(f"there is no rule {rest[:40]!r}", hint="/permissions lists them by number")
            rule = rules[int(rest[:9]) - 1]
            await self._session.apply(Revoke(rule))
            return told(f"  taken back: {sanitise(f'{rule.key}: {rule.pattern}')}")
        lines = [
            f"  {number:>2}  {rule.action} {rule.key}: {rule.pattern}  ({rule.origin})"
            for number, rule in enumerate(rules, 1)
        ]
        others = "  `ostler permissions list` shows those of the project and the settings"
        return told(*([sanitise(line) for line in lines] or ["  you gave no rules in this session"]), others)

    async def context(self, rest: str) -> Told:
        if pieces := self._services.context(self._session):
            return told(*(f"  {line}" for line in pieces))
        of = f" of {self._meter.limit}" if self._meter.limit else ""
        return told(f"  {self._meter.used}{of} tokens ({self._meter.context})")

    async def cost(self, rest: str) -> Told:
        cached = f" ({self._meter.tokens_cached} of them cached)" if self._meter.tokens_cached else ""
        return told(f"  {self._meter.tokens_in} tokens in{cached}, {self._meter.tokens_out} out, {self._price()}")

    async def doctor(self, rest: str) -> Told:
        return told(*(f"  {sanitise(line)}" for line in await self._services.doctor()))

    def _price(self) -> str:
        cost = self._session.state.cost
        return "price not known" if cost is None else f"${cost:.4f}"

    async def _choose(self, option: str, value: str) -> Told:
        taken = await self._session.apply(SetOption(option, value))
        return told(f"  from now on: {sanitise(value)}" if taken else f"  this backend cannot take {sanitise(value)}")


def _chosen(now: str, offered: Sequence[Named]) -> str:
    """The name in the list of what is in use: its own, or one that stands for it."""
    return next((one.name for one in offered if one.name == now), "") or next(
        (one.name for one in offered if now and one.means == now), ""
    )


def _listed(things: Sequence[Named], now: str = "") -> list[str]:
    width = max((len(one.name) for one in things), default=0)
    lines = [f"  {'*' if one.name == now else ' '} {one.name:<{width}}  {one.told}" for one in things]
    return [sanitise(line)[:LONGEST].rstrip() for line in lines]
