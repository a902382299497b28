"""Joins a headless run: settings, house, printer, and the one line that says what it runs with."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ostler.app.house import LocalHouse, workspace
from ostler.app.knowing import Knowledge
from ostler.app.may import may_told
from ostler.app.options import RunOptions
from ostler.app.prompting import Prompting
from ostler.app.trusting import load_settings
from ostler.drawing.paint import Paint, wants_colour, window_columns
from ostler.faces.printer.aside import say
from ostler.faces.printer.face import Printer
from ostler.faces.printer.outputs import Output, make_output
from ostler.faces.printer.summary import Tally
from ostler.knowledge.agents import DEFAULT
from ostler.vocabulary.errors import OstlerError
from ostler.vocabulary.prompt import Prompt, Text
from ostler.vocabulary.seams import Session
from ostler.vocabulary.sessions import Opening

if TYPE_CHECKING:
    from ostler.faces.printer.fitting import Fitting


class Headless(msgspec.Struct, frozen=True):
    """One prompt from start to exit status; `context` was piped in beside it, and mentions and chooses nothing."""

    prompt: str
    context: str
    options: RunOptions
    output: str = "text"
    resume: str = ""
    fork: bool = False
    timeout: float | None = None
    schema: str = ""

    def play(self) -> int:
        """The exit status; errors before the first event are raised."""
        return asyncio.run(self._play())

    async def _play(self) -> int:
        house = LocalHouse(self.options, say)
        paint = Paint(wants_colour(sys.stdout, os.environ), columns=lambda: window_columns(sys.stdout))
        opening = Opening(self.options.cwd, self.options.backend, resume=self.resume, fork=self.fork, attended=False)
        output = make_output(self.output, paint, shaped=bool(self.schema))
        with recorded(output):
            fitting = self._fitting()
        prompt = partial(self._prompt, fitting.ask if fitting else str)
        return await Printer(opening, prompt, output, self.timeout, fitting).run(house)

    def _fitting(self) -> "Fitting | None":
        if not self.schema:
            return None
        from ostler.faces.printer.fitting import Fitting

        return Fitting(self.schema)

    async def _prompt(self, wanting: Callable[[str], str], session: Session) -> Prompt:
        """A path outside the workspace is read only where everything may be; `wanting` adds what answers must be."""
        cwd = workspace(self.options.cwd)
        settings = load_settings(cwd, trust=self.options.trust)
        ready = await Prompting(cwd, settings, outside=self.options.yolo).ready(self.prompt, session.call)
        agents = Knowledge(str(cwd), settings).agents(trusted=settings.trusted)
        say(may_told(settings, self.options, agents, _worker(session, ready.prompt)))
        for line in ready.told:
            say(line)
        more = f"\n\n{self.context}" if self.context else ""
        return _extended(ready.prompt, lambda text: wanting(text + more))


def _extended(prompt: Prompt, extend: Callable[[str], str]) -> Prompt:
    """The words that whoever works is told, made longer: those of a task, else the prompt's own, which come first."""
    if prompt.cast and prompt.cast.task:
        cast = msgspec.structs.replace(prompt.cast, task=extend(prompt.cast.task))
        return msgspec.structs.replace(prompt, cast=cast)
    words, *more = prompt.blocks
    said = words.text if isinstance(words, Text) else ""
    return msgspec.structs.replace(prompt, blocks=(Text(extend(said)), *more))


def _worker(session: Session, prompt: Prompt) -> str:
    """The agent of ours that works on a prompt; whoever thinks elsewhere is bound by what holds for all."""
    if session.info.backend != "engine":
        return DEFAULT
    if prompt.cast and prompt.cast.agent and not prompt.cast.task:
        return prompt.cast.agent
    return next((option.value for option in session.info.options if option.id == "agent"), DEFAULT)


@contextmanager
def recorded(output: Output) -> Iterator[None]:
    """An error before the run begins is a record too, where records are wanted."""
    try:
        yield
    except OstlerError as error:
        if output.records:
            output.close(Tally().failed(error))
        raise
