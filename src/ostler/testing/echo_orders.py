"""What the echo agent does in a turn: each order of a prompt, from `!say` to `!crash`."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ostler.wire.acp import (
    Content,
    Location,
    PermissionOption,
    PlanEntry,
    ToolCallFields,
    ToolContent,
    text_content,
)
from ostler.wire.acp_calls import (
    CreateTerminal,
    PermissionRequest,
    PromptAnswer,
    PromptRequest,
    PromptUsage,
    ReadTextFile,
    TerminalRef,
    WriteTextFile,
)
from ostler.wire.acp_updates import (
    AgentMessageChunk,
    AgentThoughtChunk,
    ModeChanged,
    PlanTold,
    ToolCallBegun,
    ToolCallChanged,
    UsageTold,
    UserMessageChunk,
)
from ostler.wire.jsonrpc import INTERNAL_ERROR, RpcError

if TYPE_CHECKING:
    from ostler.testing.echo_agent import EchoAgent

OPTIONS = (
    PermissionOption("always", "Always", "allow_always"),
    PermissionOption("yes", "Yes", "allow_once"),
    PermissionOption("no", "No", "reject_once"),
)


class Orders:
    """One turn. An order may end it by setting `answer`."""

    def __init__(self, agent: "EchoAgent", asked: PromptRequest) -> None:
        self._agent = agent
        self._asked = asked
        self._session = asked.session_id
        self._calls = 0
        self.told = ""
        self.answer: PromptAnswer | None = None

    async def obey(self, said: str) -> PromptAnswer:
        """Every line in turn; a cancelled turn ends as cancelled, never as an error."""
        cancelled = self._agent.cancelled[self._session]
        stop = asyncio.ensure_future(cancelled.wait())
        work = asyncio.ensure_future(self._all(said))
        try:
            await asyncio.wait({stop, work}, return_when=asyncio.FIRST_COMPLETED)
            if cancelled.is_set():
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
                return PromptAnswer("cancelled")
            work.result()
        finally:
            stop.cancel()
        return self.answer or PromptAnswer("end_turn")

    async def _all(self, said: str) -> None:
        lines = said.split("\n")
        if not any(line.startswith("!") for line in lines):
            self.say("Echo: ")
            self.say(said)
            return
        for line in lines:
            if line.startswith("!"):
                await self._one(line)

    async def _one(self, order: str) -> None:
        name, _, rest = order.removeprefix("!").partition(" ")
        await getattr(self, f"do_{name.replace('-', '_')}")(rest)

    def say(self, text: str) -> None:
        self.told += text
        self.update(AgentMessageChunk(text_content(text)))

    def update(self, update: msgspec.Struct | dict[str, Any]) -> None:
        self._agent.update(self._session, update)

    async def request(self, method: str, params: Any) -> Any:
        """Ask the client; a refusal is said, not raised."""
        try:
            return await self._agent.peer.request(method, params)
        except RpcError as error:
            self.say(f"[{method} refused: {error.code} {error.message}]")
            return None

    def _path(self, path: str) -> str:
        return os.path.join(self._agent.folder(self._session), path)

    def _call_id(self) -> str:
        self._calls += 1
        return f"{self._session[:8]}-call-{self._agent.peer._last_id}-{self._calls}"

    # -- things to show --------------------------------------------------------------------------------------------

    async def do_say(self, rest: str) -> None:
        self.say(rest)

    async def do_think(self, rest: str) -> None:
        self.update(AgentThoughtChunk(text_content(rest)))

    async def do_plan(self, rest: str) -> None:
        self.update(PlanTold((PlanEntry("look", "high", "completed"), PlanEntry("leap", "low", "pending"))))

    async def do_tool(self, rest: str) -> None:
        kind, _, title = rest.partition(" ")
        call, place = self._call_id(), (Location(self._path("a.txt"), 3),)
        self.update(ToolCallBegun(call, title, kind, "pending", locations=place, raw_input={"n": 1}))
        self.update(ToolCallChanged(call, status="in_progress"))
        shown = (ToolContent("content", text_content("what it found")),)
        self.update(ToolCallChanged(call, status="completed", content=shown, raw_output={"ok": "x" * 300}))

    async def do_fail(self, rest: str) -> None:
        call = self._call_id()
        self.update(ToolCallBegun(call, rest, "other", "in_progress"))
        self.update(ToolCallChanged(call, status="failed", content=(ToolContent("content", text_content("no")),)))

    async def do_diff(self, rest: str) -> None:
        diff = (ToolContent("diff", path=self._path(rest), old_text="old\n", new_text="new\n"),)
        self.update(ToolCallBegun(self._call_id(), "Edit", "edit", "completed", diff))

    async def do_unknown(self, rest: str) -> None:
        self.update({"sessionUpdate": "dance", "step": rest or "waltz"})

    async def do_usage(self, rest: str) -> None:
        self.update(UsageTold(1200, 200000))
        self.answer = PromptAnswer("end_turn", PromptUsage(30, 10, 20))

    async def do_updates(self, rest: str) -> None:
        for number in range(int(rest)):
            self.say(f"{number} ")

    async def do_user(self, rest: str) -> None:
        self.update(UserMessageChunk(text_content(rest)))

    async def do_mode(self, rest: str) -> None:
        self.update(ModeChanged(rest))

    async def do_image(self, rest: str) -> None:
        self.update(AgentMessageChunk(Content("image", data="AA==", mime_type="image/png")))

    # -- things to tell --------------------------------------------------------------------------------------------

    async def do_blocks(self, rest: str) -> None:
        self.say(msgspec.json.encode(self._asked.prompt).decode())

    async def do_env(self, rest: str) -> None:
        self.say(os.environ.get(rest, "(unset)"))

    async def do_args(self, rest: str) -> None:
        self.say(" ".join(self._agent.flags.rest))

    async def do_state(self, rest: str) -> None:
        """The mode, what was set, what the client can do, and what the session was opened with."""
        agent = self._agent
        told = {
            "mode": agent.modes.get(self._session, "ask"),
            "set": agent.set,
            "client": agent.client.get("clientCapabilities", {}),
            "mcp": msgspec.to_builtins(agent.mcp),
            "directories": agent.directories,
            "cwd": agent.folder(self._session),
        }
        self.say(msgspec.json.encode(told).decode())

    # -- things to ask the client for ------------------------------------------------------------------------------

    async def do_read(self, rest: str) -> None:
        path, *window = rest.split(" ")
        line, limit = (int(number) for number in window) if window else (None, None)
        answer = await self.request("fs/read_text_file", ReadTextFile(self._session, self._path(path), line, limit))
        if answer is not None:
            self.say(answer["content"])

    async def do_write(self, rest: str) -> None:
        path, _, text = rest.partition(" ")
        answer = await self.request("fs/write_text_file", WriteTextFile(self._session, self._path(path), text))
        if answer is not None:
            self.say(f"wrote {path}")

    async def do_run(self, rest: str) -> None:
        """A command, with its terminal shown in a tool call."""
        made = await self.request("terminal/create", CreateTerminal(self._session, rest, output_byte_limit=1000))
        if made is None:
            return
        terminal, call = TerminalRef(self._session, made["terminalId"]), self._call_id()
        shown = (ToolContent("terminal", terminal_id=terminal.terminal_id),)
        self.update(ToolCallBegun(call, rest, "execute", "in_progress", shown))
        ended = await self.request("terminal/wait_for_exit", terminal)
        output = await self.request("terminal/output", terminal)
        await self.request("terminal/release", terminal)
        self.update(ToolCallChanged(call, status="completed"))
        self.say(f"{output['output'].strip()} (exit {ended.get('exitCode')}, cut {output['truncated']})")

    async def do_kill(self, rest: str) -> None:
        """A command that is killed at once; its output can still be read."""
        made = await self.request("terminal/create", CreateTerminal(self._session, rest))
        terminal = TerminalRef(self._session, made["terminalId"])
        await self.request("terminal/kill", terminal)
        ended = await self.request("terminal/wait_for_exit", terminal)
        self.say(f"killed: {'exitCode' in ended or 'signal' in ended}")

    async def do_leave(self, rest: str) -> None:
        """A command whose terminal is never released."""
        await self.request("terminal/create", CreateTerminal(self._session, rest))

    async def do_ask(self, rest: str) -> None:
        kind, _, path = rest.partition(" ")
        self.say(f"[{await self._ask(kind, path)}]")

    async def _ask(self, kind: str, path: str, content: tuple[ToolContent, ...] = ()) -> str:
        command = {"command": path} if kind == "execute" else None
        places = () if kind == "execute" else (Location(self._path(path)),)
        call = ToolCallFields(self._call_id(), f"{kind} {path}", kind, "pending", content, places, command)
        answer = await self.request("session/request_permission", PermissionRequest(self._session, call, OPTIONS))
        outcome = (answer or {}).get("outcome", {})
        chosen = str(outcome.get("optionId") or outcome.get("outcome"))
        if chosen in ("yes", "always"):
            self.update(ToolCallChanged(call.tool_call_id, status="completed"))
        else:
            self.update(ToolCallChanged(call.tool_call_id, status="failed"))
        return chosen

    async def do_edit(self, rest: str) -> None:
        """Ask for an edit with its diff, then make it through the client's file system."""
        path, _, text = rest.partition(" ")
        diff = (ToolContent("diff", path=self._path(path), old_text=None, new_text=text),)
        if await self._ask("edit", path, diff) in ("yes", "always"):
            await self.do_write(rest)

    async def do_elicit(self, rest: str) -> None:
        schema = {"type": "object", "properties": {rest: {"type": "string"}}, "required": [rest]}
        asked = {"sessionId": self._session, "message": f"your {rest}?", "mode": "form", "requestedSchema": schema}
        self.say(msgspec.json.encode(await self.request("elicitation/create", asked)).decode())

    async def do_method(self, rest: str) -> None:
        await self.request(rest, {"sessionId": self._session})

    # -- faults ----------------------------------------------------------------------------------------------------

    async def do_junk(self, rest: str) -> None:
        sys.stdout.buffer.write(rest.encode() + b"\n")
        sys.stdout.buffer.flush()

    async def do_stderr(self, rest: str) -> None:
        sys.stderr.write("e" * int(rest) + "\n")
        sys.stderr.flush()

    async def do_crash(self, rest: str) -> None:
        code, _, words = rest.partition(" ")
        sys.stderr.write(f"echo_agent: {words or 'crashed as ordered'}\n")
        sys.stderr.flush()
        os._exit(int(code or 1))

    async def do_error(self, rest: str) -> None:
        raise RpcError(INTERNAL_ERROR, "Internal error", {"details": rest} if rest else None)

    async def do_stop(self, rest: str) -> None:
        self.answer = PromptAnswer(rest)

    async def do_hang(self, rest: str) -> None:
        self.say("hanging")
        await asyncio.Event().wait()

    async def do_deaf(self, rest: str) -> None:
        """Hang, and do not hear of any cancelling."""
        self._agent.cancelled[self._session].clear()
        self._agent.cancelled.pop(self._session)
        await self.do_hang(rest)

    async def do_listen(self, rest: str) -> None:
        """Go on only when words came for this turn, and tell them."""
        await self._agent.hints.wait()
        self._agent.hints.clear()
        self.say(f"[heard: {' '.join(self._agent.steered.pop(self._session, []))}]")

    async def do_hold(self, rest: str) -> None:
        """Go on only when somebody writes to this pipe."""
        written = asyncio.Event()
        pipe, loop = os.open(rest, os.O_RDONLY | os.O_NONBLOCK), asyncio.get_running_loop()
        loop.add_reader(pipe, written.set)
        try:
            await written.wait()
        finally:
            loop.remove_reader(pipe)
            os.close(pipe)

    async def do_together(self, rest: str) -> None:
        """Several orders at once: `!together !read a & !write b text`."""
        await asyncio.gather(*(self._one(order) for order in rest.split(" & ") if order))

    async def do_late(self, rest: str) -> None:
        asyncio.get_running_loop().call_later(0.02, self.say, rest)

    async def do_child(self, rest: str) -> None:
        """A program that would outlive a careless client; says its pid."""
        child = await asyncio.create_subprocess_exec("sleep", "1000", stdin=subprocess.DEVNULL)
        Path(self._path(rest)).write_text(str(child.pid))
