"""Ostler's side of the embedded model's process: start it, learn its address, see it out."""

import asyncio
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from ostler.models.embedded.threads import threads_now
from ostler.processes.ourselves import child
from ostler.processes.programs import Program, open_program
from ostler.vocabulary.errors import BackendError, ToolFailure

START_LIMIT = 300.0
CONTEXT = 8192
_LAST_WORDS = 2000
_REFUSED = "Failed to init server"


class Serving(msgspec.Struct):
    """A model that answers."""

    base_url: str
    key: str
    program: Program

    @property
    def alive(self) -> bool:
        return self.program.running

    async def stop(self) -> None:
        """It holds nothing worth waiting for."""
        await self.program.stop(grace=0)


async def start_server(weights: Path, runtime: str, threads: Callable[[], int] = threads_now) -> Serving:
    """Load the model in a process of its own, with the library in the folder `runtime`."""
    key = secrets.token_urlsafe(24)
    order = {
        "weights": str(weights),
        "name": weights.stem,
        "runtime": runtime,
        "context": CONTEXT,
        "threads": threads(),
        "key": key,
    }
    errors = bytearray()
    program = await _open(lambda data: _keep_last(errors, data))
    address = ""
    try:
        program.stdin.write(json.dumps(order).encode() + b"\n")
        address = await _address(program)
    finally:
        if not address.startswith("http://"):
            await program.stop(grace=0)
    if not address.startswith("http://"):
        raise _not_started(address or errors.decode("utf-8", "replace"), weights)
    return Serving(f"{address}/v1", key, program)


async def _open(on_errors: Callable[[bytes], None]) -> Program:
    argv = child("ostler.models.embedded.serving:main", packages=True)
    try:
        return await open_program(argv, cwd="/", env={"PATH": os.defpath, "HOME": "/"}, on_errors=on_errors)
    except ToolFailure as failure:
        raise BackendError(failure.fault.message, code="embedded") from failure


async def _address(program: Program) -> str:
    """Where it listens, or why it does not; nothing when it died over it."""
    try:
        async with asyncio.timeout(START_LIMIT):
            answer = json.loads(await program.stdout.readline() or b"{}")
    except (ValueError, OSError):
        return ""
    except TimeoutError:
        return f"it was not ready after {START_LIMIT:.0f} s"
    return str(answer.get("address") or answer.get("error", ""))


def _keep_last(errors: bytearray, data: bytes) -> None:
    errors += data
    del errors[:-_LAST_WORDS]


def _not_started(told: str, weights: Path) -> BackendError:
    from ostler.text.sanitise import visible

    lines = [visible(line.strip()) for line in told.splitlines() if line.strip()] or ["its process died"]
    torn = "the file is damaged, or of a kind that the library does not know"
    return BackendError(
        f"the embedded model {weights.name} did not start: {torn if _REFUSED in told else lines[-1][:300]}",
        code="embedded",
        hint="`ostler model list` shows what is installed, `ostler model install` installs it anew",
    )
