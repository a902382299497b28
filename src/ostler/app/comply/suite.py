"""Runs the suite: one process for each area, and what was seen of all of them at the end."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from ostler.app.comply.beginning import errors, framing, handshake
from ostler.app.comply.bench import Bench, Seen, Subject
from ostler.app.comply.cancelling import cancelling, ending
from ostler.app.comply.check import Area, Check, Finding, NotOffered, Unmet
from ostler.app.comply.choosing import choosing
from ostler.app.comply.lending import lending
from ostler.app.comply.props import Props
from ostler.app.comply.sessions import sessions
from ostler.app.comply.turns import tools, turns
from ostler.wire.acp import AUTH_REQUIRED
from ostler.wire.jsonrpc import RpcError

AREAS = tuple(
    written.area
    for written in (handshake, sessions, turns, tools, lending, cancelling, choosing, errors, framing, ending)
)
ALWAYS = "conduct"
MOST_TOLD = 5


class Suite:
    """Goes through the areas; `told` is what the agent said of itself."""

    def __init__(self, subject: Subject, wanted: tuple[str, ...] = ()) -> None:
        """`wanted` are ids or names of areas; without any, all are run."""
        self._subject = subject
        self._wanted = wanted
        self.seen = Seen()
        self.told: dict[str, object] = {}

    async def run(self) -> AsyncGenerator[Finding]:
        for area in AREAS:
            checks = [check for check in area.checks if self._wants(area.name, check.id)]
            if checks:
                async with contextlib.aclosing(self._area(area, checks)) as findings:
                    async for finding in findings:
                        yield finding
                if not self.told:
                    return  # it does not even begin
        for finding in self._conduct():
            yield finding

    def _wants(self, *names: str) -> bool:
        return not self._wanted or any(name.lower() in self._wanted for name in names)

    async def _area(self, area: Area, checks: list[Check]) -> AsyncGenerator[Finding]:
        bench: Bench | None = None
        try:
            for check in checks:
                if bench is None or not bench.alive:
                    bench = await self._fresh(bench, area)
                yield await self._check(area, check, bench)
        finally:
            if bench:
                await bench.stop()

    async def _fresh(self, before: Bench | None, area: Area) -> Bench:
        if before:
            await before.stop()
        bench = Bench(self._subject, self.seen, Props(self._subject.cwd) if area.offers else None)
        await bench.start()
        return bench

    async def _check(self, area: Area, check: Check, bench: Bench) -> Finding:
        state, seen = "passed", ""
        try:
            if area.initialized and not bench.told:
                await bench.initialize()
            async with asyncio.timeout(self._subject.patience * 3):
                await check.run(bench)
        except NotOffered as why:
            state, seen = "skipped", str(why)
        except RpcError as error:
            state, seen = _refused(error)
        except (Unmet, TimeoutError) as unmet:
            state, seen = "failed", str(unmet) or "it took too long"
        self.told = bench.told or self.told
        return Finding(area.name, check.id, check.told, check.level, state, seen)  # type: ignore[arg-type]

    def _conduct(self) -> list[Finding]:
        """What must be so of every frame in every area."""
        seen = self.seen
        faults = [f"{told} ({count}×)" for told, count in seen.faults.items()]
        uninvited = sorted(set(seen.uninvited))
        return [
            _over_all("FRAMES", f"each of its {seen.frames} frames is as the protocol's schema has it", faults),
            _over_all("STDOUT", "nothing but frames comes out", [str(line[:80]) for line in seen.junk]),
            _over_all("INVITED", "files, terminals and forms are not asked for unless they were offered", uninvited),
        ]


def _over_all(check_id: str, told: str, faults: list[str]) -> Finding:
    more = f"; and {len(faults) - MOST_TOLD} more" if len(faults) > MOST_TOLD else ""
    return Finding(
        ALWAYS, check_id, told, "must", "failed" if faults else "passed", "; ".join(faults[:MOST_TOLD]) + more
    )


def _refused(error: RpcError) -> tuple[str, str]:
    if error.code == AUTH_REQUIRED:
        return "skipped", "it wants a login first"
    return "failed", f"it answered with the error {error.code}: {error.details}"
