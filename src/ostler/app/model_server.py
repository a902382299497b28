"""`ostler model serve`: keeps an embedded model loaded and serves it to programs on this machine."""

import asyncio
import sys
from collections.abc import Mapping

from ostler.app.embedded_model import NAME, find_installed
from ostler.core.errors import BackendError
from ostler.models.embedded.server import start_server
from ostler.models.embedded.threads import free_threads


def serve_model(env: Mapping[str, str], name: str, port: int, threads: int) -> int:
    """Serve a model until the process is stopped. Return the exit status. Raises `OstlerError`."""
    try:
        asyncio.run(_serve(env, name, port, threads))
    except KeyboardInterrupt:
        return 0
    return 1


async def _serve(env: Mapping[str, str], name: str, port: int, threads: int) -> None:
    weights, runtime = find_installed(env, f"{NAME}/{name}" if name else NAME)

    async def thread_count() -> int:
        return threads or await free_threads()

    sys.stderr.write(f"loading {weights.name} …\n")
    server = await start_server(
        weights.path.resolve(), runtime, thread_count, name=weights.name, port=port, has_key=False
    )
    try:
        sys.stdout.write(f"{weights.name} is served at {server.base_url} (OpenAI chat API). Press Ctrl-C to stop.\n")
        sys.stdout.flush()
        await server.program.wait()
    finally:
        await server.stop()
    raise BackendError("the server process of the embedded model ended", code="embedded")
