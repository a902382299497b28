"""Converts session events to ACP session updates."""

from collections.abc import Iterator

from ostler.core.display import Display, DisplayText
from ostler.core.events import (
    ChildProgress,
    ChildStarted,
    Event,
    MessageDone,
    MessageSnapshot,
    Notice,
    Retrying,
    ServerStateChanged,
    Steered,
    TextDelta,
    ThoughtDelta,
    TodosChanged,
    ToolCalled,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnStarted,
    UsageReported,
    Waiting,
)
from ostler.core.message import Message, ThoughtPart
from ostler.core.prompt import EmbeddedResource, ImageContent, Prompt, PromptContent, ResourceLink, TextContent
from ostler.core.tools import ToolResult
from ostler.frontends.acp_agent.tool_content import (
    contents_of,
    locations_of,
    result_contents,
    status_of,
    title_of,
)
from ostler.rendering.wait_notices import WaitNotices
from ostler.text.sanitise import escape_invisible
from ostler.wire.acp import ContentBlock, PlanEntry, ResourceContents, ToolCallContent, text_content
from ostler.wire.acp_updates import (
    AcpToolCall,
    AcpToolCallUpdate,
    AgentMessageChunk,
    AgentThoughtChunk,
    Cost,
    KnownUpdate,
    PlanUpdate,
    UsageUpdate,
    UserMessageChunk,
)

MAX_OUTPUT_LENGTH = 8192


class SessionUpdateBuilder:
    """Converts events to updates. While `replaying`, prompts of the user are included."""

    def __init__(self, cwd: str) -> None:
        self.replaying = False
        self._cwd = cwd
        self._finished_calls: set[str] = set()
        self._waiting = WaitNotices()
        self._sent_text: dict[str, str] = {}
        self._calls: dict[str, ToolCalled] = {}
        self._output: dict[str, str] = {}
        self._children: dict[str, str] = {}
        self._terminals: dict[str, str] = {}
        self._cost = 0.0
        self._cost_known = True
        self._notice_count = 0

    def updates_for(self, event: Event) -> Iterator[KnownUpdate]:
        """Yield the updates for an event, if any."""
        match event:
            case TextDelta(message_id, text) if text:
                yield self._chunk(AgentMessageChunk, message_id, text)
            case ThoughtDelta(message_id, text) if text:
                yield self._chunk(AgentThoughtChunk, f"{message_id}-thought", text)
            case MessageSnapshot(message_id, text, thought):
                yield from self._missed_text(AgentThoughtChunk, f"{message_id}-thought", thought)
                yield from self._missed_text(AgentMessageChunk, message_id, text)
            case MessageDone(message):
                yield from self._message(message)
            case TurnStarted(_, prompt) | Steered(prompt) if self.replaying:
                yield from _user_message_chunks(prompt)
            case TodosChanged(items):
                yield PlanUpdate(tuple(PlanEntry(item.content, item.priority, item.status) for item in items))
            case UsageReported():
                yield from self._usage(event)
            case Notice(_, text):
                yield self.notice(text)
            case ServerStateChanged() if event.failure:
                yield self.notice(event.failure)
            case Waiting() | Retrying():
                yield from map(self.notice, self._waiting.render(event))
            case _:
                yield from self._call_updates(event)

    def find_call(self, call_id: str) -> ToolCalled | None:
        """Return an unfinished call, or None."""
        return self._calls.get(call_id)

    def attach_terminal(self, command: str, terminal_id: str) -> AcpToolCallUpdate | None:
        """Return an update that shows the editor's terminal in the call of its command, or None."""
        for call_id, called in reversed(self._calls.items()):
            if call_id not in self._terminals and called.call.arguments.get("command") == command:
                self._terminals[call_id] = terminal_id
                return AcpToolCallUpdate(call_id, content=(ToolCallContent("terminal", terminal_id=terminal_id),))
        return None

    # -- text ------------------------------------------------------------------------------------------------------

    def _chunk(self, kind: type[AgentMessageChunk | AgentThoughtChunk], message_id: str, text: str) -> KnownUpdate:
        self._sent_text[message_id] = self._sent_text.get(message_id, "") + text
        return kind(text_content(text), message_id)

    def _missed_text(
        self, kind: type[AgentMessageChunk | AgentThoughtChunk], message_id: str, full_text: str
    ) -> Iterator[KnownUpdate]:
        """Yield the text that was missed. A text that does not continue the sent one is fixed by `_message`."""
        sent = self._sent_text.get(message_id, "")
        if full_text != sent and full_text.startswith(sent):
            yield self._chunk(kind, message_id, full_text[len(sent) :])

    def _message(self, message: Message) -> Iterator[KnownUpdate]:
        """Yield the text that was not sent yet; all of it if the deltas came from an abandoned attempt."""
        thought = "".join(part.text for part in message.parts if isinstance(part, ThoughtPart))
        yield from self._remaining_text(AgentThoughtChunk, f"{message.id}-thought", thought)
        yield from self._remaining_text(AgentMessageChunk, message.id, message.text)

    def _remaining_text(
        self, kind: type[AgentMessageChunk | AgentThoughtChunk], message_id: str, full_text: str
    ) -> Iterator[KnownUpdate]:
        sent = self._sent_text.pop(message_id, "")
        if not full_text.startswith(sent):
            yield kind(text_content(full_text), f"{message_id}-again")
        elif rest := full_text[len(sent) :]:
            yield kind(text_content(rest), message_id)

    def notice(self, text: str) -> KnownUpdate:
        """Return a notice for the user, which is not part of the answer."""
        self._notice_count += 1
        return AgentThoughtChunk(text_content(text), f"aside-{self._notice_count}")

    # -- calls -----------------------------------------------------------------------------------------------------

    def _call_updates(self, event: Event) -> Iterator[KnownUpdate]:
        match event:
            case ToolCalled(call) if call.id not in self._finished_calls:
                yield self._tool_called(event)
            case ToolStarted(call_id):
                yield AcpToolCallUpdate(call_id, status="in_progress")
            case ToolProgress(call_id, display):
                yield from self._tool_progress(call_id, display)
            case ToolFinished(result):
                yield self._tool_finished(result)
            case ChildStarted(child_id, call_id):
                self._children[child_id] = call_id
            case ChildProgress(child_id, _, last) if last and child_id in self._children:
                yield from self._tool_progress(self._children[child_id], Display(last))
            case _:
                return

    def _tool_called(self, event: ToolCalled) -> KnownUpdate:
        call = event.call
        known = call.id in self._calls
        self._calls[call.id] = event
        arguments = call.arguments
        fields = {
            "title": title_of(call),
            "name": escape_invisible(call.tool),
            "kind": event.kind,
            "locations": locations_of(arguments, Display(), self._cwd) or None,
            "raw_input": arguments,
        }
        if known:
            return AcpToolCallUpdate(call.id, **fields)  # type: ignore[arg-type]
        return AcpToolCall(call.id, status="pending", **fields)  # type: ignore[arg-type]

    def _tool_progress(self, call_id: str, display: Display) -> Iterator[KnownUpdate]:
        """Show the end of a call's output. Calls in a terminal of the editor need no update."""
        if call_id in self._terminals or call_id in self._finished_calls:
            return
        chunk = "".join(
            block.text for block in display.blocks if isinstance(block, DisplayText) and block.kind == "output"
        )
        if chunk:
            self._output[call_id] = (self._output.get(call_id, "") + chunk)[-MAX_OUTPUT_LENGTH:]
            display = Display(display.summary, (DisplayText(self._output[call_id], "output"),))
        yield AcpToolCallUpdate(call_id, status="in_progress", content=contents_of(display, self._cwd))

    def _tool_finished(self, result: ToolResult) -> KnownUpdate:
        call_id = result.call_id
        called, terminal = self._calls.pop(call_id, None), self._terminals.pop(call_id, None)
        self._finished_calls.add(call_id)
        self._output.pop(call_id, None)
        contents = result_contents(result, self._cwd)
        if terminal:
            contents = (ToolCallContent("terminal", terminal_id=terminal),)
        locations = locations_of(called.call.arguments if called else {}, result.for_human, self._cwd)
        update = AcpToolCallUpdate(
            call_id,
            status=status_of(result),
            content=contents,
            locations=locations or None,
            raw_output={"status": result.status, "text": result.for_model},
        )
        if called is None:  # the editor does not know the call yet
            return AcpToolCall(
                **{name: getattr(update, name) for name in update.__struct_fields__} | {"title": call_id}
            )
        return update

    # -- usage -----------------------------------------------------------------------------------------------------

    def _usage(self, event: UsageReported) -> Iterator[KnownUpdate]:
        if event.cost is None:
            self._cost_known = self._cost_known and not (event.tokens_in or event.tokens_out)
        self._cost += event.cost or 0.0
        if event.context_limit or event.context_used:
            cost = Cost(round(self._cost, 6), "USD") if self._cost_known and self._cost else None
            yield UsageUpdate(event.context_used, event.context_limit, cost)


def _user_message_chunks(prompt: Prompt) -> Iterator[KnownUpdate]:
    for block in prompt.blocks:
        yield UserMessageChunk(_content_block(block), prompt.id)


def _content_block(block: PromptContent) -> ContentBlock:
    match block:
        case TextContent(text):
            return text_content(text)
        case ImageContent(mime, data, name):
            return ContentBlock("image", data=data, mime_type=mime, uri=name or None)
        case EmbeddedResource(uri, text, mime):
            return ContentBlock("resource", resource=ResourceContents(uri, text, mime_type=mime or None))
        case ResourceLink(uri, name, mime):
            return ContentBlock("resource_link", uri=uri, name=name or uri, mime_type=mime or None)
