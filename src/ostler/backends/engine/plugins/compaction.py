"""Makes a conversation shorter: a summary takes the place of its beginning, and names what must not be lost."""

from ostler.backends.engine.history import HistoryEntry, latest_event
from ostler.backends.engine.plugins import compaction_digest
from ostler.backends.engine.plugins.plugin import TurnView
from ostler.backends.engine.plugins.unseen_results import find_unseen
from ostler.backends.engine.token_estimate import byte_size, message_size
from ostler.core.errors import OstlerError
from ostler.core.events import Compacted, Notice, StateChanged, TodosChanged, UsageReported
from ostler.core.prompt import TextContent
from ostler.models.model_types import (
    AssistantMessage,
    ModelRequest,
    ReplyFinished,
    TextChunk,
    TextWasThought,
    Usage,
    UserMessage,
)

# Shares of the room that is left beside the fixed part, in tokens.
TAIL_SHARE, USER_TEXT_SHARE, NOTES_SHARE, PLAN_SHARE, FILES_SHARE = 0.25, 0.25, 0.15, 0.05, 0.05
MAX_TAIL_TOKENS = 15_000
# What people said may have more than its share while all that is kept stays below this.
MAX_KEPT_SHARE = 0.6
# Where room is tight, what the model has not seen yet stays beside the summary up to this share.
MAX_UNSEEN_SHARE = 0.4
MAX_NOTES_TOKENS = 3_000


async def compact(view: TurnView, room: float, *, tight: bool = False) -> bool:
    """Emit the event that stands for the beginning from now on; False when that would make nothing shorter."""
    entries, records = view.history.entries, view.context.records()
    most = min(view.estimator.bytes_for(min(room * TAIL_SHARE, MAX_TAIL_TOKENS)), int(view.history.size * TAIL_SHARE))
    most_unseen = view.estimator.bytes_for(room * MAX_UNSEEN_SHARE) if tight else view.history.size
    tail = min(_tail_start(entries, most), _unseen_start(entries, most_unseen))
    upto_seq = entries[tail].seq if tail < len(entries) else records[len(records) - 1].seq + 1
    old = [entry for entry in entries if entry.seq < upto_seq]
    if not old:
        return False
    before = view.tokens
    summary = await _make_summary(view, old, upto_seq, room)
    if message_size(UserMessage((TextContent(summary),))) >= sum(entry.size for entry in old):
        return False
    view.context.emit(Compacted(summary, upto_seq))
    report_context_usage(view)
    view.context.emit(Notice("info", f"the conversation was shortened from about {before} to {view.tokens} tokens"))
    return True


def report_context_usage(view: TurnView) -> None:
    """How full the window is now, though no call has counted it yet."""
    view.context.emit(UsageReported(view.model.name, 0, 0, 0, 0.0, view.tokens, view.model.context_limit))


def _tail_start(entries: list[HistoryEntry], max_bytes: int) -> int:
    """Where the newest part begins that stays as it is: at a message, so that no call is parted from its result."""
    begin, size = len(entries), 0
    for index in reversed(range(len(entries))):
        size += entries[index].size
        if size > max_bytes:
            break
        if isinstance(entries[index].message, AssistantMessage | UserMessage) and entries[index].seq >= 0:
            begin = index
    return begin


def _unseen_start(entries: list[HistoryEntry], max_bytes: int) -> int:
    """Where the message begins whose results the model has not seen yet; the end if there is none that fits."""
    fresh = find_unseen(entries)
    begin = next((at for at, entry in enumerate(entries) if fresh and entry.seq == fresh.seq), len(entries))
    return begin if sum(entry.size for entry in entries[begin:]) <= max_bytes else len(entries)


async def _make_summary(view: TurnView, old: list[HistoryEntry], upto_seq: int, room: float) -> str:
    records, size = view.context.records(), view.estimator.bytes_for
    plan = latest_event(records, "todos_changed")
    drawn = compaction_digest.render_todos(plan.items) if isinstance(plan, TodosChanged) else ""
    todos = compaction_digest.fit_to_bytes(drawn.splitlines(), size(room * PLAN_SHARE))
    files = compaction_digest.fit_to_bytes(
        compaction_digest.files_in_calls(records, upto_seq), size(room * FILES_SHARE)
    )
    limit = size(min(room * NOTES_SHARE, MAX_NOTES_TOKENS))
    others = view.history.size - sum(entry.size for entry in old) + limit + sum(map(byte_size, (*todos, *files)))
    said = compaction_digest.user_texts(records, upto_seq)
    words = compaction_digest.fit_to_bytes(
        said, max(size(room * USER_TEXT_SHARE), size(room * MAX_KEPT_SHARE) - others)
    )
    if words != said:
        view.context.emit(Notice("warning", "not all that you said fits the model's window; long messages were cut"))
    notes = await _make_notes(view, old, limit) or "What was done last:\n" + compaction_digest.recent_actions(
        old, limit
    )
    parts = {
        "What the user said, in order:": "\n".join(f"{n}. {text}" for n, text in enumerate(words, 1)),
        "The plan:": "\n".join(todos),
        "Files that were named in calls:": "\n".join(files),
        "Notes:": notes,
    }
    return "\n\n".join([compaction_digest.HEADING, *(f"{title}\n{text}" for title, text in parts.items() if text)])


async def _make_notes(view: TurnView, old: list[HistoryEntry], limit: int) -> str:
    """By a hidden call of the model; nothing when that fails, or when only the user has spoken."""
    if all(isinstance(entry.message, UserMessage) and entry.seq >= 0 for entry in old):
        return ""
    system = view.internal_agents.role("compaction").prompt
    room = view.estimator.bytes_for(view.model.context_limit * 0.6) - len(system) - limit
    asked = UserMessage(
        (TextContent(f"The record:\n\n{compaction_digest.conversation_text(old, room)}\n\n(end of the record)"),)
    )
    request = ModelRequest(system, (asked,), max_tokens=max(256, int(limit / view.estimator.ratio)))
    view.context.emit(StateChanged("model_generating"))
    words: list[str] = []
    try:
        async for chunk in view.model.stream(request):
            if isinstance(chunk, TextChunk):
                words.append(chunk.text)
            elif isinstance(chunk, TextWasThought) or chunk in (ReplyFinished("refusal"), ReplyFinished("filtered")):
                words.clear()
            elif isinstance(chunk, Usage):
                view.context.emit(_to_usage_event(view, chunk))
    except OstlerError:
        return ""
    return "".join(words).strip().encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def _to_usage_event(view: TurnView, usage: Usage) -> UsageReported:
    """It costs what any call does; the context in use is that of the conversation."""
    counts = (usage.tokens_in, usage.tokens_out, usage.tokens_cached, usage.cost)
    return UsageReported(view.model.name, *counts, view.tokens, view.model.context_limit)
