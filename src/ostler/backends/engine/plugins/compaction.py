"""Replaces the beginning of the conversation by a summary."""

from ostler.backends.engine.history import HistoryEntry
from ostler.backends.engine.internal_agents import read_reply, usage_event
from ostler.backends.engine.plugins import compaction_digest
from ostler.backends.engine.plugins.plugin import TurnView
from ostler.backends.engine.plugins.unseen_results import find_unseen
from ostler.backends.engine.token_estimate import byte_size, message_size
from ostler.core.events import Compacted, Notice, StateChanged, TodosChanged, UsageReported
from ostler.core.prompt import TextContent
from ostler.core.session_view import latest_event
from ostler.models.model_types import (
    AssistantMessage,
    ModelRequest,
    Usage,
    UserMessage,
)

# Shares of the room, which is what the prefix leaves of a request.
TAIL_SHARE, USER_TEXT_SHARE, NOTES_SHARE, PLAN_SHARE, FILES_SHARE = 0.25, 0.25, 0.15, 0.05, 0.05
MAX_TAIL_TOKENS = 15_000
# User messages may exceed their share while everything kept stays below this one.
MAX_VERBATIM_SHARE = 0.6
# With `tight`, unseen results stay in the history up to this share.
MAX_UNSEEN_SHARE = 0.4
MAX_NOTES_TOKENS = 3_000
# Notes of the model are rarely shorter.
MIN_NOTES_BYTES = 100


async def compact(view: TurnView, room: float, *, tight: bool = False) -> bool:
    """Emit a summary of the beginning of the conversation. Return False if it would not be shorter."""
    entries, records = view.history.entries, view.context.records()
    max_tail = min(
        view.estimator.bytes_for(min(room * TAIL_SHARE, MAX_TAIL_TOKENS)), int(view.history.size * TAIL_SHARE)
    )
    max_unseen = view.estimator.bytes_for(room * MAX_UNSEEN_SHARE) if tight else view.history.size
    tail = min(_tail_start(entries, max_tail), _unseen_start(entries, max_unseen))
    upto_seq = entries[tail].seq if tail < len(entries) else records[len(records) - 1].seq + 1
    old = [entry for entry in entries if entry.seq < upto_seq]
    if not old:
        return False
    before = view.tokens
    summary = await _make_summary(view, old, upto_seq, room)
    if not summary or _summary_size(summary) >= sum(entry.size for entry in old):
        return False
    view.context.emit(Compacted(summary, upto_seq))
    report_context_usage(view)
    view.context.emit(Notice("info", f"the conversation was compacted from about {before} to {view.tokens} tokens"))
    return True


def report_context_usage(view: TurnView) -> None:
    """Report the estimated context usage before the next call reports it."""
    view.context.emit(UsageReported(view.model.name, 0, 0, 0, 0.0, view.tokens, view.model.context_limit))


def _tail_start(entries: list[HistoryEntry], max_bytes: int) -> int:
    """Return where the unchanged end of the conversation begins; calls are not separated from their results."""
    start, size = len(entries), 0
    for index in reversed(range(len(entries))):
        size += entries[index].size
        if size > max_bytes:
            break
        if isinstance(entries[index].message, AssistantMessage | UserMessage) and entries[index].seq >= 0:
            start = index
    return start


def _unseen_start(entries: list[HistoryEntry], max_bytes: int) -> int:
    """Return where the message with unseen results begins, or the end if there is none or it does not fit."""
    unseen = find_unseen(entries)
    start = next((index for index, entry in enumerate(entries) if unseen and entry.seq == unseen.seq), len(entries))
    return start if sum(entry.size for entry in entries[start:]) <= max_bytes else len(entries)


def _summary_size(summary: str) -> int:
    return message_size(UserMessage((TextContent(summary),)))


async def _make_summary(view: TurnView, old: list[HistoryEntry], upto_seq: int, room: float) -> str:
    """Return the summary. It is empty if it would not be shorter, whatever notes the model would write."""
    records, size = view.context.records(), view.estimator.bytes_for
    plan = latest_event(records, "todos_changed")
    checklist = compaction_digest.render_todos(plan.items) if isinstance(plan, TodosChanged) else ""
    todos = compaction_digest.fit_to_bytes(checklist.splitlines(), size(room * PLAN_SHARE))
    files = compaction_digest.fit_to_bytes(
        compaction_digest.files_in_calls(records, upto_seq), size(room * FILES_SHARE)
    )
    limit = size(min(room * NOTES_SHARE, MAX_NOTES_TOKENS))
    others = view.history.size - sum(entry.size for entry in old) + limit + sum(map(byte_size, (*todos, *files)))
    messages = compaction_digest.user_texts(records, upto_seq)
    fitted = compaction_digest.fit_to_bytes(
        messages, max(size(room * USER_TEXT_SHARE), size(room * MAX_VERBATIM_SHARE) - others)
    )
    parts = {
        "User messages, in order:": "\n".join(f"{n}. {text}" for n, text in enumerate(fitted, 1)),
        "The plan:": "\n".join(todos),
        "Files named in tool calls:": "\n".join(files),
    }
    if _summary_size(_join_parts(parts)) + MIN_NOTES_BYTES >= sum(entry.size for entry in old):
        return ""
    if fitted != messages:
        view.context.emit(
            Notice(
                "warning", "your messages do not all fit the context window; long ones were shortened in the summary"
            )
        )
    notes = await _make_notes(view, old, limit) or "Last actions:\n" + compaction_digest.recent_actions(old, limit)
    return _join_parts({**parts, "Notes:": notes})


def _join_parts(parts: dict[str, str]) -> str:
    return "\n\n".join([compaction_digest.HEADING, *(f"{title}\n{text}" for title, text in parts.items() if text)])


async def _make_notes(view: TurnView, old: list[HistoryEntry], limit: int) -> str:
    """Let the model write notes. Return an empty string if that fails or there are only user messages."""
    if all(isinstance(entry.message, UserMessage) and entry.seq >= 0 for entry in old):
        return ""
    system = view.internal_agents.role("compaction").prompt
    room = view.estimator.bytes_for(view.model.context_limit * 0.6) - len(system) - limit
    message = UserMessage(
        (
            TextContent(
                f"The conversation:\n\n{compaction_digest.conversation_text(old, room)}\n\n(end of the conversation)"
            ),
        )
    )
    request = ModelRequest(system, (message,), max_tokens=max(256, int(limit / view.estimator.ratio)))
    view.context.emit(StateChanged("model_generating"))
    text = await read_reply(view.model, request, lambda usage: view.context.emit(_to_usage_event(view, usage)))
    return text.strip().encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def _to_usage_event(view: TurnView, usage: Usage) -> UsageReported:
    """Convert usage to an event; the reported context is that of the conversation."""
    return usage_event(usage, view.model.name, view.tokens, view.model.context_limit)
