"""The `!commands` of the echo agent."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ostler.wire.acp import (
    ContentBlock,
    PermissionOption,
    PlanEntry,
    ToolCallContent,
    ToolCallFields,
    ToolCallLocation,
    text_content,
)
from ostler.wire.acp_requests import (
    CreateTerminalRequest,
    PromptRequest,
    PromptResponse,
    PromptUsage,
    ReadTextFileRequest,
    RequestPermissionRequest,
    TerminalRef,
    WriteTextFileRequest,
)
from ostler.wire.acp_updates import (
    AcpToolCall,
    AcpToolCallUpdate,
    AgentMessageChunk,
    AgentThoughtChunk,
    CurrentModeUpdate,
    PlanUpdate,
    UsageUpdate,
    UserMessageChunk,
)
from ostler.wire.jsonrpc import INTERNAL_ERROR, RpcError

if TYPE_CHECKING:
    from ostler.testing.echo_agent import EchoAgent

PERMISSION_OPTIONS = (
    PermissionOption("always", "Always", "allow_always"),
    PermissionOption("yes", "Yes", "allow_once"),
    PermissionOption("no", "No", "reject_once"),
)


class EchoCommands:
    """Runs the commands of one turn. A command may set `answer`, the response to the prompt."""

    def __init__(self, agent: "EchoAgent", request: PromptRequest) -> None:
        self._agent = agent
        self._request = request
        self._session_id = request.session_id
        self._call_count = 0
        self.reply_text = ""
        self.answer: PromptResponse | None = None

    async def run(self, text: str) -> PromptResponse:
        """Run every line in order. A cancelled turn ends with `cancelled`, never with an error."""
        cancelled = self._agent.cancel_events[self._session_id]
        stop = asyncio.ensure_future(cancelled.wait())
        work = asyncio.ensure_future(self._run_lines(text))
        try:
            await asyncio.wait({stop, work}, return_when=asyncio.FIRST_COMPLETED)
            if cancelled.is_set():
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
                return PromptResponse("cancelled")
            work.result()
        finally:
            stop.cancel()
        return self.answer or PromptResponse("end_turn")

    async def _run_lines(self, text: str) -> None:
        lines = text.split("\n")
        if not any(line.startswith("!") for line in lines):
            self.send_text("Echo: ")
            self.send_text(text)
            return
        for line in lines:
            if line.startswith("!"):
                await self._run_line(line)

    async def _run_line(self, line: str) -> None:
        name, _, rest = line.removeprefix("!").partition(" ")
        await getattr(self, f"do_{name.replace('-', '_')}")(rest)

    def send_text(self, text: str) -> None:
        self.reply_text += text
        self.update(AgentMessageChunk(text_content(text)))

    def update(self, update: msgspec.Struct | dict[str, Any]) -> None:
        self._agent.update(self._session_id, update)

    async def request(self, method: str, params: Any) -> Any:
        """Send a request to the client. An error is sent as text, and None is returned."""
        try:
            return await self._agent.peer.request(method, params)
        except RpcError as error:
            self.send_text(f"[{method} refused: {error.code} {error.message}]")
            return None

    def _absolute_path(self, path: str) -> str:
        return os.path.join(self._agent.folder(self._session_id), path)

    def _new_call_id(self) -> str:
        self._call_count += 1
        return f"{self._session_id[:8]}-call-{self._agent.peer._last_id}-{self._call_count}"

    # -- updates ---------------------------------------------------------------------------------------------------

    async def do_say(self, rest: str) -> None:
        self.send_text(rest)

    async def do_think(self, rest: str) -> None:
        self.update(AgentThoughtChunk(text_content(rest)))

    async def do_plan(self, rest: str) -> None:
        self.update(PlanUpdate((PlanEntry("look", "high", "completed"), PlanEntry("leap", "low", "pending"))))

    async def do_tool(self, rest: str) -> None:
        kind, _, title = rest.partition(" ")
        call, locations = self._new_call_id(), (ToolCallLocation(self._absolute_path("a.txt"), 3),)
        self.update(AcpToolCall(call, title, kind, "pending", locations=locations, raw_input={"n": 1}))
        self.update(AcpToolCallUpdate(call, status="in_progress"))
        content = (ToolCallContent("content", text_content("what it found")),)
        self.update(AcpToolCallUpdate(call, status="completed", content=content, raw_output={"ok": "x" * 300}))

    async def do_fail(self, rest: str) -> None:
        call = self._new_call_id()
        self.update(AcpToolCall(call, rest, "other", "in_progress"))
        self.update(AcpToolCallUpdate(call, status="failed", content=(ToolCallContent("content", text_content("no")),)))

    async def do_diff(self, rest: str) -> None:
        diff = (ToolCallContent("diff", path=self._absolute_path(rest), old_text="old\n", new_text="new\n"),)
        self.update(AcpToolCall(self._new_call_id(), "Edit", "edit", "completed", diff))

    async def do_unknown(self, rest: str) -> None:
        self.update({"sessionUpdate": "dance", "step": rest or "waltz"})

    async def do_usage(self, rest: str) -> None:
        self.update(UsageUpdate(1200, 200000))
        self.answer = PromptResponse("end_turn", PromptUsage(30, 10, 20))

    async def do_updates(self, rest: str) -> None:
        for number in range(int(rest)):
            self.send_text(f"{number} ")

    async def do_user(self, rest: str) -> None:
        self.update(UserMessageChunk(text_content(rest)))

    async def do_mode(self, rest: str) -> None:
        self.update(CurrentModeUpdate(rest))

    async def do_image(self, rest: str) -> None:
        self.update(AgentMessageChunk(ContentBlock("image", data="AA==", mime_type="image/png")))

    # -- information -----------------------------------------------------------------------------------------------

    async def do_blocks(self, rest: str) -> None:
        self.send_text(msgspec.json.encode(self._request.prompt).decode())

    async def do_env(self, rest: str) -> None:
        self.send_text(os.environ.get(rest, "(unset)"))

    async def do_args(self, rest: str) -> None:
        self.send_text(" ".join(self._agent.flags.rest))

    async def do_state(self, rest: str) -> None:
        """Send mode, options, client capabilities and the parameters of the session as JSON."""
        agent = self._agent
        state = {
            "mode": agent.modes.get(self._session_id, "ask"),
            "set": agent.option_values,
            "client": agent.client.get("clientCapabilities", {}),
            "mcp": msgspec.to_builtins(agent.mcp_servers),
            "directories": agent.directories,
            "cwd": agent.folder(self._session_id),
        }
        self.send_text(msgspec.json.encode(state).decode())

    # -- requests to the client ------------------------------------------------------------------------------------

    async def do_read(self, rest: str) -> None:
        path, *line_range = rest.split(" ")
        line, limit = (int(number) for number in line_range) if line_range else (None, None)
        answer = await self.request(
            "fs/read_text_file", ReadTextFileRequest(self._session_id, self._absolute_path(path), line, limit)
        )
        if answer is not None:
            self.send_text(answer["content"])

    async def do_write(self, rest: str) -> None:
        path, _, text = rest.partition(" ")
        answer = await self.request(
            "fs/write_text_file", WriteTextFileRequest(self._session_id, self._absolute_path(path), text)
        )
        if answer is not None:
            self.send_text(f"wrote {path}")

    async def do_run(self, rest: str) -> None:
        """Run a command, with its terminal in a tool call."""
        created = await self.request(
            "terminal/create", CreateTerminalRequest(self._session_id, rest, output_byte_limit=1000)
        )
        if created is None:
            return
        terminal, call = TerminalRef(self._session_id, created["terminalId"]), self._new_call_id()
        content = (ToolCallContent("terminal", terminal_id=terminal.terminal_id),)
        self.update(AcpToolCall(call, rest, "execute", "in_progress", content))
        exit_status = await self.request("terminal/wait_for_exit", terminal)
        output = await self.request("terminal/output", terminal)
        await self.request("terminal/release", terminal)
        self.update(AcpToolCallUpdate(call, status="completed"))
        self.send_text(f"{output['output'].strip()} (exit {exit_status.get('exitCode')}, cut {output['truncated']})")

    async def do_kill(self, rest: str) -> None:
        """Run a command and kill it immediately."""
        created = await self.request("terminal/create", CreateTerminalRequest(self._session_id, rest))
        terminal = TerminalRef(self._session_id, created["terminalId"])
        await self.request("terminal/kill", terminal)
        exit_status = await self.request("terminal/wait_for_exit", terminal)
        self.send_text(f"killed: {'exitCode' in exit_status or 'signal' in exit_status}")

    async def do_leave(self, rest: str) -> None:
        """Run a command without releasing its terminal."""
        await self.request("terminal/create", CreateTerminalRequest(self._session_id, rest))

    async def do_ask(self, rest: str) -> None:
        kind, _, path = rest.partition(" ")
        self.send_text(f"[{await self._request_permission(kind, path)}]")

    async def _request_permission(self, kind: str, path: str, content: tuple[ToolCallContent, ...] = ()) -> str:
        command = {"command": path} if kind == "execute" else None
        locations = () if kind == "execute" else (ToolCallLocation(self._absolute_path(path)),)
        call = ToolCallFields(self._new_call_id(), f"{kind} {path}", kind, "pending", content, locations, command)
        answer = await self.request(
            "session/request_permission", RequestPermissionRequest(self._session_id, call, PERMISSION_OPTIONS)
        )
        outcome = (answer or {}).get("outcome", {})
        chosen = str(outcome.get("optionId") or outcome.get("outcome"))
        if chosen in ("yes", "always"):
            self.update(AcpToolCallUpdate(call.tool_call_id, status="completed"))
        else:
            self.update(AcpToolCallUpdate(call.tool_call_id, status="failed"))
        return chosen

    async def do_edit(self, rest: str) -> None:
        """Request permission for an edit with its diff, then write the file through the client."""
        path, _, text = rest.partition(" ")
        diff = (ToolCallContent("diff", path=self._absolute_path(path), old_text=None, new_text=text),)
        if await self._request_permission("edit", path, diff) in ("yes", "always"):
            await self.do_write(rest)

    async def do_elicit(self, rest: str) -> None:
        schema = {"type": "object", "properties": {rest: {"type": "string"}}, "required": [rest]}
        params = {"sessionId": self._session_id, "message": f"your {rest}?", "mode": "form", "requestedSchema": schema}
        self.send_text(msgspec.json.encode(await self.request("elicitation/create", params)).decode())

    async def do_method(self, rest: str) -> None:
        await self.request(rest, {"sessionId": self._session_id})

    # -- faults ----------------------------------------------------------------------------------------------------

    async def do_junk(self, rest: str) -> None:
        sys.stdout.buffer.write(rest.encode() + b"\n")
        sys.stdout.buffer.flush()

    async def do_stderr(self, rest: str) -> None:
        sys.stderr.write("e" * int(rest) + "\n")
        sys.stderr.flush()

    async def do_crash(self, rest: str) -> None:
        code, _, message = rest.partition(" ")
        sys.stderr.write(f"echo_agent: {message or 'crashed as ordered'}\n")
        sys.stderr.flush()
        os._exit(int(code or 1))

    async def do_error(self, rest: str) -> None:
        raise RpcError(INTERNAL_ERROR, "Internal error", {"details": rest} if rest else None)

    async def do_stop(self, rest: str) -> None:
        self.answer = PromptResponse(rest)

    async def do_hang(self, rest: str) -> None:
        self.send_text("hanging")
        await asyncio.Event().wait()

    async def do_deaf(self, rest: str) -> None:
        """Hang and ignore cancellation."""
        self._agent.cancel_events[self._session_id].clear()
        self._agent.cancel_events.pop(self._session_id)
        await self.do_hang(rest)

    async def do_listen(self, rest: str) -> None:
        """Wait for text sent during this turn and echo it."""
        await self._agent.steering_received.wait()
        self._agent.steering_received.clear()
        self.send_text(f"[heard: {' '.join(self._agent.steering_texts.pop(self._session_id, []))}]")

    async def do_hold(self, rest: str) -> None:
        """Wait until something is written to this pipe."""
        written = asyncio.Event()
        pipe, loop = os.open(rest, os.O_RDONLY | os.O_NONBLOCK), asyncio.get_running_loop()
        loop.add_reader(pipe, written.set)
        try:
            await written.wait()
        finally:
            loop.remove_reader(pipe)
            os.close(pipe)

    async def do_together(self, rest: str) -> None:
        """Run several commands concurrently: `!together !read a & !write b text`."""
        await asyncio.gather(*(self._run_line(command) for command in rest.split(" & ") if command))

    async def do_late(self, rest: str) -> None:
        asyncio.get_running_loop().call_later(0.02, self.send_text, rest)

    async def do_child(self, rest: str) -> None:
        """Start a long-running child process and write its pid to a file."""
        child = await asyncio.create_subprocess_exec("sleep", "1000", stdin=subprocess.DEVNULL)
        Path(self._absolute_path(rest)).write_text(str(child.pid))
