"""What the server believes that this machine offers, and tools of the agent that ran on another machine."""

import re
from collections.abc import Container, Iterator
from typing import Any

import msgspec

from ostler.backends.agent_zero.connector_server import ConnectorServer
from ostler.backends.agent_zero.transport import TurnListener
from ostler.core.errors import BackendError
from ostler.text.sanitise import sanitise
from ostler.wire.agent_zero.connector_events import Capabilities, ConnectorEvent
from ostler.wire.agent_zero.loose_values import first_text

KNOWN_VERSION = "0.1"  # of the connector
_OFFERS = {"remote_files": "read files", "remote_file_writes": "write files", "remote_exec": "run commands"}
_TOOLS = {"connector_file_op": "text_editor_remote", "connector_exec_op": "code_execution_remote"}
# Results of these tools for which the server asked no machine.
_UNANSWERED = re.compile(r"(?:text_editor_remote|code_execution_remote):|\w+ is required|session must|Unknown|provide ")


def offer_notices(
    capabilities: Capabilities, hello: dict[str, Any], host: str, expected: dict[str, bool]
) -> Iterator[tuple[str, bool]]:
    """Yield what the server believes that this machine offers, and warnings if that is wrong or versions do not fit."""
    version = sanitise(capabilities.version)
    if version and not f"{version}.".startswith(f"{KNOWN_VERSION}."):
        yield (
            f"the server's connector has version {version}, and Ostler was written for {KNOWN_VERSION}; "
            "update the older one if something fails",
            True,
        )
    tools = hello.get("remote_tools")
    if not isinstance(tools, dict):
        yield f"the server does not say which tools it may use on {host}", False
        return
    offered = [label for name, label in _OFFERS.items() if tools.get(name) is True]
    known = capabilities.server_version.removeprefix("unknown")  # as a server without its git history says
    server = f"Agent Zero {sanitise(known)}".rstrip()
    yield f"{server} may request on {host}: {', '.join(offered) or 'nothing'}; your rules decide", False
    wrong = [label for name, label in _OFFERS.items() if (tools.get(name) is True) is not expected[name]]
    if wrong:
        yield f"the server and Ostler disagree about whether the server can {', '.join(wrong)}", True


class OtherHost(msgspec.Struct, frozen=True):
    """A machine that the server can use besides this one."""

    name: str
    runs_commands: bool = False


def read_hosts(answer: dict[str, Any]) -> list[OtherHost]:
    """Return the machines of the server's answer that are connected and not switched off."""
    rows = answer.get("gateways")
    hosts = []
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("master_enabled") is not False and row.get("state") != "disconnected":
            scopes = row.get("scopes")
            name = sanitise(first_text(row, "host_label", "id"))[:100] or "an unnamed machine"
            hosts.append(OtherHost(name, isinstance(scopes, dict) and scopes.get("code_execution") is True))
    return hosts


async def check_hosts(
    server: ConnectorServer, listener: TurnListener, host: str, agreed: Container[str], allow_shell: bool
) -> None:
    """Find other machines that the server can use. Raises `BackendError` unless the user agrees to them."""
    try:
        hosts = read_hosts(await server.call("launcher_gateway_status", {}))
    except BackendError:
        return
    hosts = [other for other in hosts if other.name not in agreed]
    if not hosts:
        return
    names = ", ".join(dict.fromkeys(other.name for other in hosts))
    commands = [other.name for other in hosts if other.runs_commands and not allow_shell]
    more = f" Commands run on {', '.join(commands)}, because they are switched off here." if commands else ""
    question = (
        f"Agent Zero at {server.address} can also use {names}. It may select that machine instead of {host}, and "
        f"Ostler does not check what runs there.{more} Continue?"
    )
    if not await listener.confirm(question):
        raise BackendError(
            f"Agent Zero can use both {host} and {names}, and which one it selects is not certain",
            code="ambiguous_host",
            hint=f"disconnect {names} from the server, agree when `ostler zero` asks, or list the names in "
            "connection.other_hosts",
        )


class HostWatch:
    """Compares the tools in the log with the operations that this machine got. It belongs to one turn."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._operations = dict.fromkeys(_TOOLS.values(), 0)
        self._results: dict[str, set[int]] = {tool: set() for tool in _TOOLS.values()}
        self._texts: dict[str, list[list[str]]] = {tool: [] for tool in _TOOLS.values()}  # of results sent from here
        self._repeated: set[int] = set()  # numbers of events that have them

    def on_operation(self, event: str) -> None:
        if tool := _TOOLS.get(event):
            self._operations[tool] += 1

    def on_result(self, event: str, result: dict[str, Any]) -> None:
        """Store what this machine has sent as the result of an operation."""
        if tool := _TOOLS.get(event.removesuffix("_result")):
            shown = result.get("result")
            shown = shown if isinstance(shown, dict) else {}
            texts = (first_text(shown, "message"), first_text(shown, "content", "output"), first_text(result, "error"))
            self._texts[tool].append([text.strip() for text in texts if text.strip()])

    def on_event(self, event: ConnectorEvent) -> str:
        """Return a warning if the event has the result of a tool that was not run here; else an empty text."""
        tool = self._tool(event)
        if not tool or not event.text.strip() or _UNANSWERED.match(event.text.lstrip()):
            return ""
        results = self._results[tool]
        if event.seq in results:
            return ""
        results.add(event.seq)
        if len(results) <= self._operations[tool]:
            return ""
        return (
            f"{tool} ran on another machine that is connected to the server, not on {self._host}; "
            "Ostler did not check it"
        )

    def is_local(self, event: ConnectorEvent) -> bool:
        """Return whether the event only repeats the result of an operation of this machine, or has no result yet."""
        tool = self._tool(event)
        if not tool or not event.text.strip():
            return bool(tool)
        fitting = [texts for texts in self._texts[tool] if texts and all(text in event.text for text in texts)]
        if event.seq not in self._repeated and fitting:
            self._texts[tool].remove(max(fitting, key=lambda texts: sum(map(len, texts))))
            self._repeated.add(event.seq)
        return event.seq in self._repeated

    def _tool(self, event: ConnectorEvent) -> str:
        return next((name for name in self._results if name in event.heading), "")
