"""Runs all areas, one agent process per area."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from ostler.conformance.agent_driver import AgentDriver, AgentUnderTest, Observations
from ostler.conformance.cancellation import cancellation, process_exit
from ostler.conformance.check import Area, CheckFailed, CheckFinding, CheckSkipped, ConformanceCheck
from ostler.conformance.client_services import client_services
from ostler.conformance.fake_client import FakeClientServices
from ostler.conformance.handshake import errors, framing, handshake
from ostler.conformance.session_options import session_options
from ostler.conformance.sessions import sessions
from ostler.conformance.turns import tools, turns
from ostler.core.errors import UsageError
from ostler.wire.acp import AUTH_REQUIRED
from ostler.wire.jsonrpc import RpcError

AREAS = (
    handshake,
    sessions,
    turns,
    tools,
    client_services,
    cancellation,
    session_options,
    errors,
    framing,
    process_exit,
)
OVERALL_AREA = "conduct"
MAX_FAULTS_SHOWN = 5


class ConformanceSuite:
    """Runs the areas; `agent_info` is the agent's answer to `initialize`."""

    def __init__(self, target: AgentUnderTest, selected: tuple[str, ...] = ()) -> None:
        """`selected` are check ids or area names in lower case; if empty, everything is run."""
        self._target = target
        names = {OVERALL_AREA, *(name.lower() for area in AREAS for name in (area.name, *(c.id for c in area.checks)))}
        if unknown := next((name for name in selected if name not in names), ""):
            areas = ", ".join((*(area.name for area in AREAS), OVERALL_AREA))
            raise UsageError(f"no area and no check is named {unknown!r}", hint=f"areas: {areas}")
        self._selected = selected
        self.observations = Observations()
        self.agent_info: dict[str, object] = {}

    async def run(self) -> AsyncGenerator[CheckFinding]:
        for area in AREAS:
            checks = [check for check in area.checks if self._is_selected(area.name, check.id)]
            if checks:
                async with contextlib.aclosing(self._run_area(area, checks)) as findings:
                    async for finding in findings:
                        yield finding
                if not self.agent_info:
                    return  # the agent does not even initialize
        for finding in self._overall_findings():
            yield finding

    def _is_selected(self, *names: str) -> bool:
        return not self._selected or any(name.lower() in self._selected for name in names)

    async def _run_area(self, area: Area, checks: list[ConformanceCheck]) -> AsyncGenerator[CheckFinding]:
        driver: AgentDriver | None = None
        try:
            for check in checks:
                if driver is None or not driver.is_alive:
                    driver = await self._restart_driver(driver, area)
                yield await self._run_check(area, check, driver)
        finally:
            if driver:
                await driver.stop()

    async def _restart_driver(self, previous: AgentDriver | None, area: Area) -> AgentDriver:
        if previous:
            await previous.stop()
        driver = AgentDriver(
            self._target, self.observations, FakeClientServices(self._target.cwd) if area.offers_services else None
        )
        await driver.start()
        return driver

    async def _run_check(self, area: Area, check: ConformanceCheck, driver: AgentDriver) -> CheckFinding:
        state, detail = "passed", ""
        try:
            if area.initialized and not driver.agent_info:
                await driver.initialize()
            async with asyncio.timeout(self._target.timeout * 3):
                await check.run(driver)
        except CheckSkipped as reason:
            state, detail = "skipped", str(reason)
        except RpcError as error:
            state, detail = _error_outcome(error)
        except (CheckFailed, TimeoutError) as failure:
            state, detail = "failed", str(failure) or "it took too long"
        self.agent_info = driver.agent_info or self.agent_info
        return CheckFinding(area.name, check.id, check.title, check.level, state, detail)  # type: ignore[arg-type]

    def _overall_findings(self) -> list[CheckFinding]:
        """Return the findings about all frames of all areas."""
        observed = self.observations
        faults = [f"{fault} ({count}×)" for fault, count in observed.faults.items()]
        unoffered = sorted(set(observed.unoffered))
        return [
            _overall_finding("FRAMES", f"all {observed.frames} frames match the protocol's schema", faults),
            _overall_finding(
                "STDOUT", "standard output contains only frames", [str(line[:80]) for line in observed.junk]
            ),
            _overall_finding(
                "INVITED", "files, terminals and forms are only requested if they were offered", unoffered
            ),
        ]


def _overall_finding(check_id: str, title: str, faults: list[str]) -> CheckFinding:
    more = f"; and {len(faults) - MAX_FAULTS_SHOWN} more" if len(faults) > MAX_FAULTS_SHOWN else ""
    return CheckFinding(
        OVERALL_AREA,
        check_id,
        title,
        "must",
        "failed" if faults else "passed",
        "; ".join(faults[:MAX_FAULTS_SHOWN]) + more,
    )


def _error_outcome(error: RpcError) -> tuple[str, str]:
    if error.code == AUTH_REQUIRED:
        return "skipped", "it requires a login"
    return "failed", f"it answered with the error {error.code}: {error.details}"
