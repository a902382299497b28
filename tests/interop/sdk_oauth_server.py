"""A remote server of the official Python SDK that is its own authorization server: `sdk_oauth_server.py PORT`.

Access tokens are valid for a few requests, so that the client must refresh them. Everybody may sign in.
"""

import secrets
import sys
import time

from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken

PORT = int(sys.argv[1])
ROOT = f"http://127.0.0.1:{PORT}"
CALLS = 6


class Provider:
    """Clients, codes and tokens in memory."""

    def __init__(self):
        self.clients, self.codes, self.access, self.refresh, self.left = {}, {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = secrets.token_urlsafe(32)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state, iss=ROOT)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issue(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.refresh[refresh_token.token]
        return self.issue(client.client_id, scopes or refresh_token.scopes, refresh_token.resource)

    async def load_access_token(self, token):
        self.left[token] = self.left.get(token, 0) - 1
        return self.access.get(token) if self.left[token] >= 0 else None

    async def revoke_token(self, token):
        self.refresh.clear()
        self.access.clear()

    def issue(self, client_id, scopes, resource):
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self.access[access] = AccessToken(token=access, client_id=client_id, scopes=scopes, resource=resource)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes, resource=resource)
        self.left[access] = CALLS
        return OAuthToken(access_token=access, refresh_token=refresh, token_type="Bearer", scope=" ".join(scopes))


server = MCPServer(
    "protected",
    auth_server_provider=Provider(),
    auth=AuthSettings(
        issuer_url=ROOT,
        resource_server_url=f"{ROOT}/mcp",
        required_scopes=["use"],
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["use"], default_scopes=["use"]
        ),
        revocation_options=RevocationOptions(enabled=True),
    ),
)


@server.tool()
def double(number: int) -> int:
    """Return twice the number."""
    return 2 * number


server.run("streamable-http", port=PORT)
