"""Builds what the status cards, the activity row, the panel and the footer show, from the state of a session."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ostler.core.display import DisplayText
from ostler.frontends.tui.keys import KeyTable
from ostler.frontends.tui.live_sessions import OtherSessions
from ostler.frontends.tui.strips import PAINT
from ostler.frontends.tui.transcript.model import TranscriptModel
from ostler.frontends.tui.widgets.status_cards import StatusCard
from ostler.rendering.blocks import TODO_MARKS
from ostler.rendering.wrapping import wrap
from ostler.text.durations import elapsed
from ostler.text.sanitise import sanitise
from ostler.text.width import clip

if TYPE_CHECKING:
    from ostler.frontends.tui.session_controller import SessionController

EXIT_HINT = "press Ctrl-C again to quit"
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
NO_OTHERS = OtherSessions()
FOOTER = (
    ("help", "help"),
    ("palette", "commands"),
    ("sessions", "sessions"),
    ("next_mode", "mode"),
    ("panel", "panel"),
    ("search", "search"),
    ("newline", "new line"),
    ("quit", "quit"),
)


def status_cards(controller: "SessionController", project: str, others: OtherSessions = NO_OTHERS) -> list[StatusCard]:
    """Return the cards, the most important ones first."""
    session, usage = controller.session, controller.commands.usage
    state, style = _connection(controller)
    cost = session.state.cost
    speed = controller.speed.tokens_per_second
    sandbox = next((label[8:] for label in controller.environment_labels if label.startswith("sandbox ")), "")
    branch = next((label for label in controller.environment_labels if not label.startswith("sandbox ")), "")
    share = usage.context_used / usage.context_limit if usage.context_limit else None
    mode = usage.option("mode") or "ask"
    title = _clean(controller.title)
    cards = [
        StatusCard("STATE", f"● {state}", style),
        StatusCard("OTHERS", str(others), "yellow" if others.waiting else "green") if others else None,
        StatusCard("MODEL", _clean(usage.option("model")) or session.info.backend, max_columns=28),
        StatusCard("CONTEXT", usage.context_usage, share=share),
        StatusCard("MODE", mode, {"plan": "blue", "accept-edits": "yellow"}.get(mode, "")),
        StatusCard("COST", f"${cost:.2f}" if cost else "–"),
        StatusCard("SPEED", f"{speed:.0f} tok/s" if speed else "–"),
        StatusCard("PROFILE", profile, "red" if profile == "god_mode" else "")
        if (profile := usage.option("profile"))
        else None,
        StatusCard("GIT", _clean(branch), max_columns=24) if branch else None,
        StatusCard("SANDBOX", _clean(sandbox)) if sandbox else None,
        StatusCard("PROJECT", _clean(project), max_columns=24),
        StatusCard("SESSION", title, max_columns=40, min_columns=12),
        StatusCard("AGENT", _clean(agent)) if (agent := usage.option("agent")) else None,
        StatusCard("BACKEND", session.info.backend),
    ]
    return [card for card in cards if card is not None]


def _connection(controller: "SessionController") -> tuple[str, str]:
    if controller.requests.has_unanswered:
        return "asks you", "yellow"
    if controller.waiting:
        return "no reply yet", "yellow"
    if controller.turns.busy:
        return "working", "green"
    return ("failed", "red") if controller.last_turn == "failed" else ("ready", "")


def activity_line(controller: "SessionController", model: TranscriptModel, columns: int, frame: int) -> str:
    """Return what is running now, or the last event if nothing is."""
    turns = controller.turns
    if controller.warned:
        return PAINT(EXIT_HINT, "yellow")
    queued = f" · {turns.queued} queued" if turns.queued else ""
    if not turns.busy:
        return PAINT(clip(f"{controller.news}{queued}", max(columns - 4, 8)), "dim")
    seconds = time.monotonic() - controller.turn_started_at if turns.in_turn else 0
    head = f"{SPINNER[frame % len(SPINNER)]} {elapsed(seconds)}{queued} · Esc cancels"
    detail = "" if controller.requests else _detail(controller, model)
    return PAINT(head, "cyan") + PAINT(clip(f"  {detail}" if detail else "", max(columns - len(head) - 3, 0)), "dim")


def _detail(controller: "SessionController", model: TranscriptModel) -> str:
    if controller.waiting:
        return controller.waiting
    if model.activity:
        return model.activity
    if call := model.running_call:
        notes = [part.text for part in call.display.blocks if isinstance(part, DisplayText)]
        last = sanitise(notes[-1][-2000:]).rstrip("\n").rpartition("\n")[2] if notes else ""
        name = sanitise(call.call.tool) if call.call else ""
        return f"{name} {last}".strip()
    return controller.feed.last


def panel_sections(controller: "SessionController", columns: int, rows: int) -> list[str]:
    """Return the lines of the panel: tasks, subagents, queued prompts and the newest events."""
    lines: list[str] = []
    if todos := controller.session.state.todos:
        done = sum(todo.status == "completed" for todo in todos)
        lines.append(PAINT("TASKS", "bold") + PAINT(f" {done}/{len(todos)}", "dim"))
        lines += [line for todo in todos for line in _todo_lines(todo.status, todo.content, columns)]
        lines.append("")
    if children := controller.commands.usage.subagents.lines():
        lines += [PAINT("SUBAGENTS", "bold"), *(clip(f"◆ {line}", columns) for line in children), ""]
    if queued := controller.turns.queued_texts:
        lines += [PAINT("QUEUED", "bold"), *(clip(f"› {_clean(text)}", columns) for text in queued), ""]
    lines.append(PAINT("EVENTS", "bold"))
    room = max(rows - len(lines), 0)
    newest = list(controller.feed.lines)[-room:] if room else []
    return [*lines, *(PAINT(moment, "dim") + clip(f" {text}", columns - len(moment)) for moment, text in newest)]


def _todo_lines(status: str, content: str, columns: int) -> list[str]:
    """Return the lines of a task; only the current one has more than one."""
    text = f"{TODO_MARKS[status]} {_clean(content)}"
    if status == "in_progress":
        return [PAINT(line, "bold") for line in wrap(text, columns, "  ")]
    return [PAINT(clip(text, columns), "dim") if status == "completed" else clip(text, columns)]


def welcome_lines(project: str, keys: KeyTable) -> Sequence[str]:
    """Return what an empty transcript shows."""
    hints = (
        (("Enter", "send"), ("@", "attach a file")),
        ((keys.label("newline"), "new line"), ("/", "commands")),
        ((keys.label("next_mode"), "mode"), ("!", "run a command")),
        ((keys.label("help"), "all keys"), (keys.label("sessions"), "sessions")),
    )
    return [
        PAINT("Ostler", "bold", "blue") + PAINT(f"  {sanitise(project)}", "dim"),
        "",
        "Type what you want done. For example:",
        PAINT("  explain how this project is built", "dim", "italic"),
        PAINT("  find out why the last test fails, and fix it", "dim", "italic"),
        "",
        *(_hint_pair(*left, 10, 12) + _hint_pair(*right, 4, 0) for left, right in hints),
    ]


def _hint_pair(key: str, label: str, key_columns: int, label_columns: int) -> str:
    return PAINT(f"{key:<{key_columns}} ", "cyan") + PAINT(f"{label:<{label_columns}}", "dim")


def _clean(text: str) -> str:
    return " ".join(sanitise(text).split())


def footer_hints(keys: KeyTable) -> list[tuple[str, str]]:
    """Return the most important keys and what they do."""
    return [("Enter", "send"), *((keys.label(name), label) for name, label in FOOTER)]
