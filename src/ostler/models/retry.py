"""Asks again where that can help and harms nothing, and lets the person see it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import msgspec

from ostler.models.failures import REPEATABLE
from ostler.models.words import Again, CallChunk, Chunk, TextChunk
from ostler.vocabulary.errors import BackendError

Attempt = Callable[[int], AsyncGenerator[Chunk, None]]


def _chance() -> float:
    from random import random

    return random()


class Retries(msgspec.Struct, frozen=True):
    """How often and how patiently: a server may ask for a longer pause than ours, up to `longest` seconds."""

    attempts: int = 5
    base: float = 0.5
    ceiling: float = 20.0
    longest: float = 60.0
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = _chance

    def pause(self, number: int, after: float | None) -> float:
        """Seconds before the attempt after this one; spread out, so that many clients do not come back at once."""
        own = min(self.ceiling, self.base * 2.0 ** (number - 1)) * (0.5 + self.chance() / 2)
        return own if after is None else max(own, after)


async def with_retries(attempt: Attempt, retries: Retries) -> AsyncGenerator[Chunk, None]:
    """Play attempts until one succeeds.

    An `Again` says that the reply begins again: thoughts that came are void. Once words or calls have been
    passed on there is no second attempt.
    """
    number = 1
    while True:
        spoken = False
        try:
            async with aclosing(attempt(number)) as chunks:
                async for chunk in chunks:
                    spoken = spoken or isinstance(chunk, TextChunk | CallChunk)
                    yield chunk
            return
        except BackendError as error:
            if error.fault.code not in REPEATABLE:
                raise
            if spoken:
                raise _cut(error) from None
            if number >= retries.attempts:
                raise
            after = getattr(error, "after", None)
            if after is not None and after > retries.longest:
                raise _later(error, after) from None
            pause = retries.pause(number, after)
            reason = error.fault.message
        number += 1
        yield Again(number, round(pause, 1), reason)
        await retries.sleep(pause)


def _cut(error: BackendError) -> BackendError:
    return BackendError(
        f"{error.fault.message}, so the reply is cut", code="cut", hint="what came is kept; ask to go on"
    )


def _later(error: BackendError, after: float) -> BackendError:
    import time

    until = time.strftime(
        "%H:%M" if after < 72_000 else "%Y-%m-%d %H:%M", time.localtime(time.time() + min(after, 1e9))
    )
    return BackendError(
        f"{error.fault.message}; it asks to wait until {until}",
        code=error.fault.code,
        hint="come back then, or take another model",
    )
