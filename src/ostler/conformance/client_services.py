"""Checks of how an agent uses the client's files and terminals."""

import os

from ostler.conformance.agent_driver import AgentDriver, text_block
from ostler.conformance.check import Area, CheckSkipped, require, skip_unless
from ostler.conformance.fake_client import FakeClientServices
from ostler.conformance.turns import STOP_REASONS, WRITE_PROMPT

RUN_PROMPT = "Run the command `echo comply` in a shell, with your tools, and ask nothing back."
client_services = Area("files and terminals", offers_services=True)


async def _run_turn(driver: AgentDriver, prompt: str) -> tuple[FakeClientServices, str]:
    assert driver.client_services is not None
    driver.permission_answer = "allow"
    session = await driver.new_session_id()
    return driver.client_services, await driver.prompt(session, text_block(prompt))


@client_services.check("FS-1", "files are requested with absolute paths")
async def _(driver: AgentDriver) -> None:
    services, _ = await _run_turn(driver, WRITE_PROMPT.format(name="comply-lent.txt"))
    skip_unless(services.requested_paths(), "it requested no file")
    relative = [path for path in services.requested_paths() if not os.path.isabs(path)]
    require(not relative, f"{', '.join(relative)}")


@client_services.check("FS-2", "a failed write does not break the turn")
async def _(driver: AgentDriver) -> None:
    assert driver.client_services is not None
    driver.client_services.rejects_writes = True
    before = driver.client_services.write_count()
    try:
        services, reason = await _run_turn(driver, WRITE_PROMPT.format(name="comply-not-lent.txt"))
    finally:
        driver.client_services.rejects_writes = False
    if services.write_count() == before:
        raise CheckSkipped("it did not write a file through the client")
    require(reason in STOP_REASONS, f"the stop reason was {reason!r}")


@client_services.check("TERM-1", "every terminal is released before the turn ends")
async def _(driver: AgentDriver) -> None:
    services, _ = await _run_turn(driver, RUN_PROMPT)
    skip_unless(services.terminal_count(), "it created no terminal")
    require(not services.terminals, f"{', '.join(sorted(services.terminals))} was not released")
