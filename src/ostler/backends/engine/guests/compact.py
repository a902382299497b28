"""Makes a conversation shorter: a summary takes the place of its beginning, and names what must not be lost."""

from ostler.backends.engine.guests import digest
from ostler.backends.engine.guests.guest import View
from ostler.backends.engine.guests.unseen import unseen
from ostler.backends.engine.history import Entry, newest
from ostler.backends.engine.measure import byte_size, size_of
from ostler.models.words import Finished, ModelSaid, Request, TextChunk, Usage, UserSaid, WasThought
from ostler.vocabulary.errors import OstlerError
from ostler.vocabulary.events import Compacted, Notice, StateChanged, TodosChanged, UsageReported
from ostler.vocabulary.prompt import Text

# Shares of the room that is left beside the fixed part, in tokens.
TAIL_SHARE, WORDS_SHARE, NOTES_SHARE, PLAN_SHARE, FILES_SHARE = 0.25, 0.25, 0.15, 0.05, 0.05
MOST_TAIL = 15_000
# What people said may have more than its share while all that is kept stays below this.
KEPT_SHARE = 0.6
# Where room is tight, what the model has not seen yet stays beside the summary up to this share.
UNSEEN_SHARE = 0.4
MOST_NOTES = 3_000


async def compact(view: View, room: float, *, tight: bool = False) -> bool:
    """Emit the event that stands for the beginning from now on; False when that would make nothing shorter."""
    entries, records = view.history.entries, view.stage.records()
    most = min(view.meter.bytes(min(room * TAIL_SHARE, MOST_TAIL)), int(view.history.size * TAIL_SHARE))
    most_unseen = view.meter.bytes(room * UNSEEN_SHARE) if tight else view.history.size
    tail = min(_tail(entries, most), _unseen_tail(entries, most_unseen))
    upto_seq = entries[tail].seq if tail < len(entries) else records[len(records) - 1].seq + 1
    old = [entry for entry in entries if entry.seq < upto_seq]
    if not old:
        return False
    before = view.tokens
    summary = await _summary(view, old, upto_seq, room)
    if size_of(UserSaid((Text(summary),))) >= sum(entry.size for entry in old):
        return False
    view.stage.emit(Compacted(summary, upto_seq))
    tell_size(view)
    view.stage.emit(Notice("info", f"the conversation was shortened from about {before} to {view.tokens} tokens"))
    return True


def tell_size(view: View) -> None:
    """How full the window is now, though no call has counted it yet."""
    view.stage.emit(UsageReported(view.model.name, 0, 0, 0, 0.0, view.tokens, view.model.context_limit))


def _tail(entries: list[Entry], most: int) -> int:
    """Where the newest part begins that stays as it is: at a message, so that no call is parted from its result."""
    begin, size = len(entries), 0
    for index in reversed(range(len(entries))):
        size += entries[index].size
        if size > most:
            break
        if isinstance(entries[index].said, ModelSaid | UserSaid) and entries[index].seq >= 0:
            begin = index
    return begin


def _unseen_tail(entries: list[Entry], most: int) -> int:
    """Where the message begins whose results the model has not seen yet; the end if there is none that fits."""
    fresh = unseen(entries)
    begin = next((at for at, entry in enumerate(entries) if fresh and entry.seq == fresh.seq), len(entries))
    return begin if sum(entry.size for entry in entries[begin:]) <= most else len(entries)


async def _summary(view: View, old: list[Entry], upto_seq: int, room: float) -> str:
    records, size = view.stage.records(), view.meter.bytes
    plan = newest(records, "todos_changed")
    drawn = digest.drawn(plan.items) if isinstance(plan, TodosChanged) else ""
    todos = digest.fitted(drawn.splitlines(), size(room * PLAN_SHARE))
    files = digest.fitted(digest.files_named(records, upto_seq), size(room * FILES_SHARE))
    limit = size(min(room * NOTES_SHARE, MOST_NOTES))
    others = view.history.size - sum(entry.size for entry in old) + limit + sum(map(byte_size, (*todos, *files)))
    said = digest.user_words(records, upto_seq)
    words = digest.fitted(said, max(size(room * WORDS_SHARE), size(room * KEPT_SHARE) - others))
    if words != said:
        view.stage.emit(Notice("warning", "not all that you said fits the model's window; long messages were cut"))
    notes = await _notes(view, old, limit) or "What was done last:\n" + digest.deeds(old, limit)
    parts = {
        "What the user said, in order:": "\n".join(f"{n}. {text}" for n, text in enumerate(words, 1)),
        "The plan:": "\n".join(todos),
        "Files that were named in calls:": "\n".join(files),
        "Notes:": notes,
    }
    return "\n\n".join([digest.HEADING, *(f"{title}\n{text}" for title, text in parts.items() if text)])


async def _notes(view: View, old: list[Entry], limit: int) -> str:
    """By a hidden call of the model; nothing when that fails, or when only the user has spoken."""
    if all(isinstance(entry.said, UserSaid) and entry.seq >= 0 for entry in old):
        return ""
    system = view.helpers.role("compaction").prompt
    room = view.meter.bytes(view.model.context_limit * 0.6) - len(system) - limit
    asked = UserSaid((Text(f"The record:\n\n{digest.record(old, room)}\n\n(end of the record)"),))
    request = Request(system, (asked,), max_tokens=max(256, int(limit / view.meter.ratio)))
    view.stage.emit(StateChanged("model_generating"))
    words: list[str] = []
    try:
        async for chunk in view.model.stream(request):
            if isinstance(chunk, TextChunk):
                words.append(chunk.text)
            elif isinstance(chunk, WasThought) or chunk in (Finished("refusal"), Finished("filtered")):
                words.clear()
            elif isinstance(chunk, Usage):
                view.stage.emit(_usage(view, chunk))
    except OstlerError:
        return ""
    return "".join(words).strip().encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def _usage(view: View, usage: Usage) -> UsageReported:
    """It costs what any call does; the context in use is that of the conversation."""
    counts = (usage.tokens_in, usage.tokens_out, usage.tokens_cached, usage.cost)
    return UsageReported(view.model.name, *counts, view.tokens, view.model.context_limit)
