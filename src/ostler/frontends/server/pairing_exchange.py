"""Exchanges a one-time pairing code for a token, and revokes the token of a request.

The only other request that needs no token is the health check.
"""

import asyncio
import logging
import math
from typing import TYPE_CHECKING

import msgspec

from ostler.core.accounts import Accounts
from ostler.core.errors import OstlerError
from ostler.frontends.server.asgi_answer import answer_error, answer_json, client_address, header_values
from ostler.frontends.server.audit_log import AuditEntry, AuditLog
from ostler.frontends.server.failure_limit import FailureLimit
from ostler.wire.pairing import PAIR_PATH, TOKEN_PATH, PairingReply, PairingRequest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger("ostler.server")
MAX_BODY = 4096
BODY_SECONDS = 10.0
PAIRINGS_PER_MINUTE = 10


class _BadRequest(Exception):
    """A request that is not an exchange; the HTTP status and the text of the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class PairingExchange:
    """ASGI middleware that answers `POST /api/agent/pair` and passes everything else on."""

    def __init__(
        self, app: "ASGIApp", accounts: Accounts, audit: AuditLog, failures: FailureLimit | None = None
    ) -> None:
        self._app = app
        self._accounts = accounts
        self._audit = audit
        self._failures = failures or FailureLimit(PAIRINGS_PER_MINUTE)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http" or scope["path"] != PAIR_PATH:
            await self._app(scope, receive, send)
            return
        address = client_address(scope)
        if wait := self._failures.wait(address):
            retry = {"retry-after": str(math.ceil(wait))}
            await answer_error(scope, send, 429, "rate_limited", "too many wrong pairing codes", retry)
            return
        try:
            request = await _read_request(scope, receive)
            issued = await asyncio.to_thread(self._accounts.exchange, request.code, request.label)
        except _BadRequest as error:
            allow = {"allow": "POST"} if error.status == 405 else None
            await answer_error(scope, send, error.status, "bad_message", str(error), allow)
            return
        except OstlerError as error:
            log.error("a pairing code cannot be checked: %s", error)
            await answer_error(scope, send, 503, "internal", "codes cannot be checked at the moment")
            return
        if issued is None:
            self._record_failure(address)
            await answer_error(scope, send, 401, "unauthenticated", "the pairing code is wrong, used or expired")
            return
        token = issued.token
        self._audit.write(AuditEntry(event="paired", user=token.user, token=token.id, client=address, status=200))
        reply = PairingReply(issued.text, token.user, token.expires)
        await answer_json(scope, send, 200, msgspec.to_builtins(reply))

    def _record_failure(self, address: str) -> None:
        failure = self._failures.add(address)
        if failure.is_logged:
            reason = "wrong pairing code"
            entry = AuditEntry(event="refused", client=address, path=PAIR_PATH, status=401, reason=reason)
            self._audit.write(msgspec.structs.replace(entry, unlogged=failure.unlogged))


async def _read_request(scope: "Scope", receive: "Receive") -> PairingRequest:
    if scope["method"] != "POST":
        raise _BadRequest(405, "a pairing code is sent with POST")
    kinds = header_values(scope, b"content-type")
    if len(kinds) != 1 or kinds[0].partition(";")[0].strip().lower() != "application/json":
        raise _BadRequest(415, "the content type must be application/json")  # a form of a web page cannot send it
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await _read_body(receive)
        return msgspec.json.decode(body, type=PairingRequest)
    except TimeoutError:
        raise _BadRequest(408, "the body did not arrive in time") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _BadRequest(400, "the body must be a JSON object with a code") from None


async def _read_body(receive: "Receive") -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _BadRequest(400, "the body is incomplete")
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            raise _BadRequest(413, f"the body has more than {MAX_BODY} bytes")
        if not message.get("more_body", False):
            return bytes(body)


class TokenRevocation:
    """ASGI middleware behind the guard that answers `DELETE /api/agent/token` and passes everything else on."""

    def __init__(self, app: "ASGIApp", accounts: Accounts, audit: AuditLog) -> None:
        self._app = app
        self._accounts = accounts
        self._audit = audit

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http" or scope["path"] != TOKEN_PATH:
            await self._app(scope, receive, send)
            return
        state = scope.get("state", {})
        token, user = state.get("token", ""), state.get("user", "")
        if scope["method"] != "DELETE" or not token:
            await answer_error(scope, send, 405, "bad_message", "a token is revoked with DELETE", {"allow": "DELETE"})
            return
        try:
            await asyncio.to_thread(self._accounts.revoke, token)
        except OstlerError:
            await answer_error(scope, send, 503, "internal", "the token cannot be revoked at the moment")
            return
        self._audit.write(AuditEntry(event="token.revoked", user=user, token=token))
        await send({"type": "http.response.start", "status": 204, "headers": [(b"cache-control", b"no-store")]})
        await send({"type": "http.response.body", "body": b""})
