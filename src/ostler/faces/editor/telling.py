"""Events of a session as updates an editor shows, in the order they happened."""

from collections.abc import Iterator

from ostler.drawing.waiting import WaitingLines
from ostler.faces.editor.showing import (
    contents_of,
    locations_of,
    result_contents,
    status_of,
    title_of,
)
from ostler.text.sanitise import visible
from ostler.vocabulary.display import Display, Note
from ostler.vocabulary.events import (
    ChildProgress,
    ChildStarted,
    Envelope,
    Event,
    MessageDone,
    MessageSoFar,
    Notice,
    Renamed,
    Retrying,
    Reverted,
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
from ostler.vocabulary.message import Message, Thought
from ostler.vocabulary.prompt import Block, Image, Link, Prompt, Resource, Text
from ostler.vocabulary.tools import ToolResult
from ostler.wire.acp import Content, PlanEntry, ResourceContents, ToolContent, text_content
from ostler.wire.acp_updates import (
    AgentMessageChunk,
    AgentThoughtChunk,
    Cost,
    InfoTold,
    KnownUpdate,
    PlanTold,
    ToolCallBegun,
    ToolCallChanged,
    UsageTold,
    UserMessageChunk,
)

MOST_PRINTED = 8192


class Teller:
    """Feed it events; it yields updates. `replaying`: what the person said is told too."""

    def __init__(self, cwd: str) -> None:
        self.replaying = False
        self._cwd = cwd
        self._over: set[str] = set()
        self._waiting = WaitingLines()
        self._said: dict[str, str] = {}
        self._calls: dict[str, ToolCalled] = {}
        self._printed: dict[str, str] = {}
        self._children: dict[str, str] = {}
        self._terminals: dict[str, str] = {}
        self._cost = 0.0
        self._priced = True
        self._count = 0

    def take(self, event: Event) -> Iterator[KnownUpdate]:
        """What there is to tell of it, if anything."""
        match event:
            case TextDelta(message_id, text) if text:
                yield self._chunk(AgentMessageChunk, message_id, text)
            case ThoughtDelta(message_id, text) if text:
                yield self._chunk(AgentThoughtChunk, f"{message_id}-thought", text)
            case MessageSoFar(message_id, text, thought):
                yield from self._so_far(AgentThoughtChunk, f"{message_id}-thought", thought)
                yield from self._so_far(AgentMessageChunk, message_id, text)
            case MessageDone(message):
                yield from self._message(message)
            case TurnStarted(_, prompt) | Steered(prompt) if self.replaying:
                yield from _said_by_person(prompt)
            case TodosChanged(items):
                yield PlanTold(tuple(PlanEntry(item.content, item.priority, item.status) for item in items))
            case UsageReported():
                yield from self._usage(event)
            case Renamed(title) if title:
                yield InfoTold(title)
            case Notice(_, text):
                yield self._aside(text)
            case Waiting() | Retrying():
                yield from map(self._aside, self._waiting.take(event))
            case _:
                yield from self._call(event)

    def call(self, call_id: str) -> ToolCalled | None:
        """A call that is not over yet."""
        return self._calls.get(call_id)

    def terminal(self, command: str, terminal_id: str) -> ToolCallChanged | None:
        """The editor runs a command in a terminal of its own: it is shown in the call that wanted it."""
        for call_id, called in reversed(self._calls.items()):
            if call_id not in self._terminals and called.call.arguments.get("command") == command:
                self._terminals[call_id] = terminal_id
                return ToolCallChanged(call_id, content=(ToolContent("terminal", terminal_id=terminal_id),))
        return None

    # -- words -----------------------------------------------------------------------------------------------------

    def _chunk(self, kind: type[AgentMessageChunk | AgentThoughtChunk], message_id: str, text: str) -> KnownUpdate:
        self._said[message_id] = self._said.get(message_id, "") + text
        return kind(text_content(text), message_id)

    def _so_far(
        self, kind: type[AgentMessageChunk | AgentThoughtChunk], message_id: str, whole: str
    ) -> Iterator[KnownUpdate]:
        """What was missed of it; what it does not go on with is mended when the message is done."""
        said = self._said.get(message_id, "")
        if whole != said and whole.startswith(said):
            yield self._chunk(kind, message_id, whole[len(said) :])

    def _message(self, message: Message) -> Iterator[KnownUpdate]:
        """What its deltas have not told; where they were of an attempt that was given up, all of it anew."""
        thought = "".join(part.text for part in message.parts if isinstance(part, Thought))
        yield from self._rest(AgentThoughtChunk, f"{message.id}-thought", thought)
        yield from self._rest(AgentMessageChunk, message.id, message.text)

    def _rest(
        self, kind: type[AgentMessageChunk | AgentThoughtChunk], message_id: str, whole: str
    ) -> Iterator[KnownUpdate]:
        said = self._said.pop(message_id, "")
        if not whole.startswith(said):
            yield kind(text_content(whole), f"{message_id}-again")
        elif rest := whole[len(said) :]:
            yield kind(text_content(rest), message_id)

    def _aside(self, text: str) -> KnownUpdate:
        """For the person, and no part of the answer."""
        self._count += 1
        return AgentThoughtChunk(text_content(text), f"aside-{self._count}")

    # -- calls -----------------------------------------------------------------------------------------------------

    def _call(self, event: Event) -> Iterator[KnownUpdate]:
        match event:
            case ToolCalled(call) if call.id not in self._over:
                yield self._called(event)
            case ToolStarted(call_id):
                yield ToolCallChanged(call_id, status="in_progress")
            case ToolProgress(call_id, display):
                yield from self._progress(call_id, display)
            case ToolFinished(result):
                yield self._finished(result)
            case ChildStarted(child_id, call_id):
                self._children[child_id] = call_id
            case ChildProgress(child_id, _, last) if last and child_id in self._children:
                yield from self._progress(self._children[child_id], Display(last))
            case _:
                return

    def _called(self, event: ToolCalled) -> KnownUpdate:
        call = event.call
        known = call.id in self._calls
        self._calls[call.id] = event
        arguments = call.arguments
        fields = {
            "title": title_of(call),
            "name": visible(call.tool),
            "kind": event.kind,
            "locations": locations_of(arguments, Display(), self._cwd) or None,
            "raw_input": arguments,
        }
        if known:
            return ToolCallChanged(call.id, **fields)  # type: ignore[arg-type]
        return ToolCallBegun(call.id, status="pending", **fields)  # type: ignore[arg-type]

    def _progress(self, call_id: str, display: Display) -> Iterator[KnownUpdate]:
        """The editor draws its own terminals itself. What a command prints comes in pieces; its end is shown."""
        if call_id in self._terminals or call_id in self._over:
            return
        pieces = "".join(block.text for block in display.blocks if isinstance(block, Note) and block.kind == "output")
        if pieces:
            self._printed[call_id] = (self._printed.get(call_id, "") + pieces)[-MOST_PRINTED:]
            display = Display(display.summary, (Note(self._printed[call_id], "output"),))
        yield ToolCallChanged(call_id, status="in_progress", content=contents_of(display, self._cwd))

    def _finished(self, result: ToolResult) -> KnownUpdate:
        call_id = result.call_id
        called, terminal = self._calls.pop(call_id, None), self._terminals.pop(call_id, None)
        self._over.add(call_id)
        self._printed.pop(call_id, None)
        contents = result_contents(result, self._cwd)
        if terminal:
            contents = (ToolContent("terminal", terminal_id=terminal),)
        locations = locations_of(called.call.arguments if called else {}, result.for_human, self._cwd)
        told = ToolCallChanged(
            call_id,
            status=status_of(result),
            content=contents,
            locations=locations or None,
            raw_output={"status": result.status, "text": result.for_model},
        )
        if called is None:  # one that was never told of is told of now
            return ToolCallBegun(**{name: getattr(told, name) for name in told.__struct_fields__} | {"title": call_id})
        return told

    # -- numbers ---------------------------------------------------------------------------------------------------

    def _usage(self, event: UsageReported) -> Iterator[KnownUpdate]:
        if event.cost is None:
            self._priced = self._priced and not (event.tokens_in or event.tokens_out)
        self._cost += event.cost or 0.0
        if event.context_limit or event.context_used:
            cost = Cost(round(self._cost, 6), "USD") if self._priced and self._cost else None
            yield UsageTold(event.context_used, event.context_limit, cost)


def _said_by_person(prompt: Prompt) -> Iterator[KnownUpdate]:
    for block in prompt.blocks:
        yield UserMessageChunk(_content(block), prompt.id)


def _content(block: Block) -> Content:
    match block:
        case Text(text):
            return text_content(text)
        case Image(mime, data, name):
            return Content("image", data=data, mime_type=mime, uri=name or None)
        case Resource(uri, text, mime):
            return Content("resource", resource=ResourceContents(uri, text, mime_type=mime or None))
        case Link(uri, name, mime):
            return Content("resource_link", uri=uri, name=name or uri, mime_type=mime or None)


def counting(past: list[Envelope]) -> list[Envelope]:
    """What still counts: a revert leaves out what came after its mark, until a later one counts it again."""
    kept: list[Envelope] = []
    mark: int | None = None
    for envelope in reversed(past):
        if mark is not None and envelope.seq > mark:
            continue
        if isinstance(envelope.event, Reverted):
            mark = envelope.event.to_seq
        else:
            kept.append(envelope)
    return kept[::-1]
