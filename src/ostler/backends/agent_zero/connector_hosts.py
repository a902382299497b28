"""Notices tools of the agent that ran on another machine than this one."""

import re
from typing import Any

import msgspec

from ostler.text.sanitise import sanitise
from ostler.wire.agent_zero.connector_events import ConnectorEvent
from ostler.wire.agent_zero.loose_values import first_text

_TOOLS = {"connector_file_op": "text_editor_remote", "connector_exec_op": "code_execution_remote"}
# Results of these tools for which the server asked no machine.
_UNANSWERED = re.compile(r"(?:text_editor_remote|code_execution_remote):|\w+ is required|session must|Unknown|provide ")


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


class HostWatch:
    """Compares the tools in the log with the operations that this machine got. It belongs to one turn."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._operations = dict.fromkeys(_TOOLS.values(), 0)
        self._results: dict[str, set[int]] = {tool: set() for tool in _TOOLS.values()}

    def on_operation(self, event: str) -> None:
        if tool := _TOOLS.get(event):
            self._operations[tool] += 1

    def on_event(self, event: ConnectorEvent) -> str:
        """Return a warning if the event has the result of a tool that was not run here; else an empty text."""
        tool = next((name for name in self._results if name in event.heading), "")
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
