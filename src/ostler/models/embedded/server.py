"""Starts and stops the embedded model's server process."""

import asyncio
import json
import os
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from ostler.core.errors import BackendError, ToolError
from ostler.models.embedded.threads import free_threads
from ostler.processes.child_python import python_command
from ostler.processes.helper_programs import HelperProgram, open_program

START_TIMEOUT = 300.0
CONTEXT_WINDOW = 8192
_MAX_ERROR_BYTES = 2000
_INIT_FAILURE = "Failed to init server"


class RunningServer(msgspec.Struct):
    """A server process that is ready for requests."""

    base_url: str
    api_key: str
    program: HelperProgram

    @property
    def is_alive(self) -> bool:
        return self.program.is_running

    async def stop(self) -> None:
        """Stop the process immediately."""
        await self.program.stop(grace=0)


async def start_server(
    weights: Path,
    runtime: str,
    threads: Callable[[], Awaitable[int]] = free_threads,
    *,
    name: str = "",
    port: int = 0,
    has_key: bool = True,
    states: Path | None = None,
) -> RunningServer:
    """Start a server process with the library in the folder `runtime`. Raises `BackendError`.

    Without `has_key`, all programs on this machine can use it. `states` is the folder of the `PrefixCache`.
    """
    key = secrets.token_urlsafe(24) if has_key else ""
    errors = bytearray()
    program, thread_count = await asyncio.gather(_open_process(lambda data: _append_tail(errors, data)), threads())
    config = {
        "weights": str(weights),
        "name": name or weights.stem,
        "runtime": runtime,
        "context": CONTEXT_WINDOW,
        "threads": thread_count,
        "key": key,
        "port": port,
        "states": f"{states}/" if states else "",
    }
    address = ""
    try:
        program.stdin.write(json.dumps(config).encode() + b"\n")
        address = await _read_address(program)
    finally:
        if not address.startswith("http://"):
            await program.stop(grace=0)
    if not address.startswith("http://"):
        raise _start_error(address or errors.decode("utf-8", "replace"), weights)
    return RunningServer(f"{address}/v1", key, program)


async def _open_process(on_errors: Callable[[bytes], None]) -> HelperProgram:
    argv = python_command("ostler.models.embedded.server_process:main", with_packages=True)
    try:
        return await open_program(argv, cwd="/", env={"PATH": os.defpath, "HOME": "/"}, on_stderr=on_errors)
    except ToolError as failure:
        raise BackendError(failure.fault.message, code="embedded") from failure


async def _read_address(program: HelperProgram) -> str:
    """Return the server's address, its error message, or an empty string if the process died."""
    try:
        async with asyncio.timeout(START_TIMEOUT):
            answer = json.loads(await program.stdout.readline() or b"{}")
    except (ValueError, OSError):
        return ""
    except TimeoutError:
        return f"not ready after {START_TIMEOUT:.0f} s"
    return str(answer.get("address") or answer.get("error", ""))


def _append_tail(errors: bytearray, data: bytes) -> None:
    errors += data
    del errors[:-_MAX_ERROR_BYTES]


def _start_error(output: str, weights: Path) -> BackendError:
    from ostler.text.sanitise import escape_invisible

    lines = [escape_invisible(line.strip()) for line in output.splitlines() if line.strip()] or [
        "the server process died"
    ]
    invalid = "the file is damaged or its format is not supported"
    return BackendError(
        f"the embedded model {weights.name} did not start: {invalid if _INIT_FAILURE in output else lines[-1][:300]}",
        code="embedded",
        hint="list the installed models with `ostler model list`, or reinstall with `ostler model install`",
    )
