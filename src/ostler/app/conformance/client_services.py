"""Checks of how an agent uses the client's files and terminals."""

import os

from ostler.app.conformance.agent_driver import AgentDriver, text_block
from ostler.app.conformance.check import AreaBuilder, CheckSkipped, require
from ostler.app.conformance.fake_client import FakeClientServices
from ostler.app.conformance.turns import STOP_REASONS, WRITE_PROMPT

RUN_PROMPT = "Run the command `echo comply` in a shell, with your tools, and ask nothing back."
client_services = AreaBuilder("files and terminals", offers_services=True)


async def _run_turn(driver: AgentDriver, prompt: str) -> tuple[FakeClientServices, str]:
    assert driver.client_services is not None
    driver.permission_answer = "allow"
    session = str((await driver.new_session())["sessionId"])
    return driver.client_services, await driver.prompt(session, text_block(prompt))


@client_services.check("FS-1", "files are requested with absolute paths")
async def _(driver: AgentDriver) -> None:
    services, _ = await _run_turn(driver, WRITE_PROMPT.format(name="comply-lent.txt"))
    if not services.requested_paths():
        raise CheckSkipped("it requested no file")
    relative = [path for path in services.requested_paths() if not os.path.isabs(path)]
    require(not relative, f"{', '.join(relative)}")


@client_services.check("FS-2", "a failed write does not break the turn")
async def _(driver: AgentDriver) -> None:
    assert driver.client_services is not None
    driver.client_services.rejects_writes = True
    try:
        services, reason = await _run_turn(driver, WRITE_PROMPT.format(name="comply-not-lent.txt"))
    finally:
        driver.client_services.rejects_writes = False
    if not services.rejected_writes:
        raise CheckSkipped("it requested no write")
    require(reason in STOP_REASONS, f"the stop reason was {reason!r}")


@client_services.check("TERM-1", "every terminal is released before the turn ends")
async def _(driver: AgentDriver) -> None:
    services, _ = await _run_turn(driver, RUN_PROMPT)
    if not services.terminal_count():
        raise CheckSkipped("it created no terminal")
    require(not services.terminals, f"{', '.join(sorted(services.terminals))} was not released")
