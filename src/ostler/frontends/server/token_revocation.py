"""Lets a client revoke the token that it uses, so that a logout also counts on the server."""

import asyncio
from typing import TYPE_CHECKING

from ostler.core.accounts import Accounts
from ostler.core.errors import OstlerError
from ostler.frontends.server.asgi_answer import answer_error
from ostler.frontends.server.audit_log import AuditEntry, AuditLog
from ostler.wire.pairing import TOKEN_PATH

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


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
