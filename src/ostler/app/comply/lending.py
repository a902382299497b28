"""Checks of how an agent uses the files and terminals that it is offered."""

import os

from ostler.app.comply.bench import Bench, text
from ostler.app.comply.check import NotOffered, Writing, demand
from ostler.app.comply.props import Props
from ostler.app.comply.turns import REASONS, WRITE

RUN = "Run the command `echo comply` in a shell, with your tools, and ask nothing back."
lending = Writing("files and terminals", offers=True)


async def _turn(bench: Bench, words: str) -> tuple[Props, str]:
    assert bench.props is not None
    bench.answers = "allow"
    session = str((await bench.new())["sessionId"])
    return bench.props, await bench.prompt(session, text(words))


@lending.check("FS-1", "files are asked for by absolute paths")
async def _(bench: Bench) -> None:
    props, _ = await _turn(bench, WRITE.format(name="comply-lent.txt"))
    if not props.paths():
        raise NotOffered("it asked for no file")
    relative = [path for path in props.paths() if not os.path.isabs(path)]
    demand(not relative, f"{', '.join(relative)}")


@lending.check("FS-2", "a file that cannot be written does not break the turn")
async def _(bench: Bench) -> None:
    assert bench.props is not None
    bench.props.refuses_writing = True
    try:
        _, reason = await _turn(bench, WRITE.format(name="comply-not-lent.txt"))
    finally:
        bench.props.refuses_writing = False
    demand(reason in REASONS, f"the stop reason was {reason!r}")


@lending.check("TERM-1", "every terminal is released by the end of its turn")
async def _(bench: Bench) -> None:
    props, _ = await _turn(bench, RUN)
    if not props.made():
        raise NotOffered("it made no terminal")
    demand(not props.terminals, f"{', '.join(sorted(props.terminals))} was not released")
