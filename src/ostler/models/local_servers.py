"""Finds model servers on this machine."""

import asyncio
from collections.abc import Mapping

import msgspec

from ostler.core.errors import BackendError
from ostler.http.client import HttpClient
from ostler.http.dialer import Dialer
from ostler.http.url import BaseUrl, ServerOrigin
from ostler.models.server_models import ModelEntry, list_models

COMMON_PORTS: Mapping[int, str] = {8000: "vLLM", 11434: "Ollama", 8080: "llama.cpp", 1234: "LM Studio"}

_SERVER_BY_OWNER = {"vllm": "vLLM", "library": "Ollama", "llamacpp": "llama.cpp", "organization_owner": "LM Studio"}


class LocalServer(msgspec.Struct, frozen=True):
    """A running server and its models."""

    name: str
    base_url: str
    models: tuple[str, ...]


async def find_local_servers(ports: Mapping[int, str] = COMMON_PORTS, timeout: float = 0.3) -> list[LocalServer]:
    """Query all ports at once and return the servers with at least one model, in the order of the ports."""
    results = await asyncio.gather(*(_query_server(port, name, timeout) for port, name in ports.items()))
    return [found for found in results if found is not None]


async def _query_server(port: int, name: str, timeout: float) -> LocalServer | None:
    base = BaseUrl(ServerOrigin("http", "127.0.0.1", port), "/v1")
    http = HttpClient(Dialer(base.origin, timeout=timeout))
    try:
        entries = await list_models(http, base, timeout=timeout)
    except BackendError:
        return None
    finally:
        await http.aclose()
    return (
        LocalServer(_server_name(entries, name), str(base), tuple(entry.id for entry in entries)) if entries else None
    )


def _server_name(entries: tuple[ModelEntry, ...], default: str) -> str:
    """Return the server's name by the owner of its models, else `default`, which is guessed from the port."""
    return next((_SERVER_BY_OWNER[entry.owner] for entry in entries if entry.owner in _SERVER_BY_OWNER), default)
