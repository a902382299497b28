"""Drives Ostler's MCP client for the official conformance suite: `conformance_client.py URL`.

The suite sets `MCP_CONFORMANCE_SCENARIO` and, for one version of the protocol, `MCP_CONFORMANCE_PROTOCOL_VERSION`.
"""

import asyncio
import json
import os
import sys
import tempfile
import urllib.request
from pathlib import Path

from ostler.core.errors import OstlerError, ToolError
from ostler.core.events import QuestionAsked
from ostler.credentials.store import LocalCredentials
from ostler.interaction.question_form import QuestionForm
from ostler.mcp.connection import ServerGone
from ostler.mcp.http_connection import connect_http
from ostler.mcp.oauth_access import RemoteAccess
from ostler.mcp.oauth_login import LoginFlow, find_challenge
from ostler.mcp.oauth_logins import Logins
from ostler.mcp.server import McpServer
from ostler.mcp.server_entry import OAuthEntry, ServerEntry
from ostler.mcp.tool_list_cache import ToolListCache

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CLIENT_DOCUMENT = "https://conformance-test.local/client-metadata.json"
MAX_LOGINS = 2


async def accept(question):
    """Fill in the form as a user who presses Enter for each default, and types `x` where there is none."""
    form = QuestionForm(QuestionAsked(question))
    while True:
        reply = form.submit("" if "default" in form.menu().prompt else "x")
        if reply is None and form.error:
            reply = form.submit("1") or form.submit("y")
        if reply is not None:
            return reply


def arguments_for(tool):
    """Return values for the required parameters."""
    examples = {"number": 2, "integer": 2, "boolean": True, "string": "x", "object": {}, "array": []}
    properties = tool.schema.get("properties", {})
    return {name: examples.get(properties.get(name, {}).get("type"), "x") for name in tool.schema.get("required", [])}


async def call_all(server):
    for tool in server.tools:
        await server.call(tool.name, arguments_for(tool), accept)


async def echo_schema(server):
    schema = server.find_tool("json_schema_2020_12_tool").schema
    await server.call("json_schema_echo", {"schema": schema}, accept)


async def call_listed(server):
    """Make the calls that the scenario lists."""
    for call in CONTEXT["toolCalls"]:
        if server.find_tool(call["name"]):
            await server.call(call["name"], call["arguments"], accept)


async def only_list(server):
    """Do nothing after the tools are listed."""


SCENARIOS = {
    "initialize": only_list,
    "request-metadata": only_list,
    "json-schema-ref-no-deref": only_list,
    "json-schema-2020-12-preservation": echo_schema,
    "http-custom-headers": call_listed,
}


def oauth_settings():
    """Return the client that the scenario provides; without one, Ostler registers itself."""
    if SCENARIO == "auth/basic-cimd":
        return OAuthEntry(CLIENT_DOCUMENT)
    return OAuthEntry(CONTEXT.get("client_id", ""), CONTEXT.get("client_secret", ""))


async def sign_in(entry, logins, folder):
    """Log in as a user whose browser is signed in already: it only follows the redirect."""
    pages = []

    def show(address, issuer):
        pages.append(asyncio.ensure_future(asyncio.to_thread(open_page, address)))

    try:
        await LoginFlow(entry, logins, folder, {}, show).run(await find_challenge(entry, {}, "1"))
    finally:
        await asyncio.gather(*pages)


def open_page(address):
    with urllib.request.urlopen(address, timeout=10) as page:
        page.read()


async def run(server, scenario):
    await server.client()
    await scenario(server)


async def main(url):
    entry = ServerEntry("suite", url=url, start_timeout=10.0, call_timeout=10.0, oauth=oauth_settings())
    scenario = SCENARIOS.get(SCENARIO, call_all)
    with tempfile.TemporaryDirectory() as folder:
        store = LocalCredentials(Path(folder))
        access = RemoteAccess(entry, lambda: store, {}, Path(folder))

        async def connect(handler):
            return await connect_http(entry, handler, {}, access)

        server = McpServer(entry, connect, ToolListCache(Path(folder)), "1", interactive=True)
        try:
            for left in reversed(range(MAX_LOGINS + 1)):
                try:
                    return await run(server, scenario)
                except ToolError as error:
                    if "needs login" not in str(error) or not left:
                        raise
                    await sign_in(entry, Logins(store), Path(folder))
        finally:
            await server.aclose()


try:
    asyncio.run(main(sys.argv[1]))
except (OstlerError, ServerGone) as error:
    sys.exit(f"failed: {error}")
