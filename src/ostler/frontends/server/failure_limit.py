"""Counts refused requests of each client, so that guessing is slowed down and the audit log cannot be flooded."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from ostler.http.rate_limit import RateLimit

FAILURES_PER_MINUTE = 30
MAX_CLIENTS = 10_000


class Failure(msgspec.Struct, frozen=True):
    """What to do about a refused request: seconds to wait, and whether it is logged, with the number of those not."""

    wait: float
    is_logged: bool
    unlogged: int = 0


class _FailingClient:
    def __init__(self, limit: RateLimit) -> None:
        self.limit = limit
        self.wait_until = 0.0
        self.unlogged = 0


class FailureLimit:
    """The failures of all clients by address; IPv6 addresses of one network count together."""

    def __init__(self, per_minute: int = FAILURES_PER_MINUTE, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._clients: OrderedDict[str, _FailingClient] = OrderedDict()

    def add(self, address: str) -> Failure:
        """Count a failure."""
        client = self._client(_network(address))
        wait = client.limit.take()
        if not wait:
            unlogged, client.unlogged = client.unlogged, 0
            return Failure(0, is_logged=True, unlogged=unlogged)
        client.wait_until = self._clock() + wait
        client.unlogged += 1
        return Failure(wait, is_logged=client.unlogged == 1)

    def wait(self, address: str) -> float:
        """Return for how many seconds a client has to wait."""
        client = self._clients.get(_network(address))
        return max(0.0, client.wait_until - self._clock()) if client else 0.0

    def _client(self, network: str) -> _FailingClient:
        client = self._clients.pop(network, None) or _FailingClient(RateLimit(self._per_minute, self._clock))
        self._clients[network] = client
        if len(self._clients) > MAX_CLIENTS:
            self._clients.popitem(last=False)
        return client


def _network(address: str) -> str:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.IPv6Network((int(found), 64), strict=False))
    return address
