"""`ostler undo` and `ostler redo`: revert or reapply the file changes of a turn."""

import asyncio
import sys
from argparse import Namespace
from contextlib import closing
from typing import TYPE_CHECKING

from ostler.cli.arguments import Parser, add_workspace
from ostler.text.stderr import notify

if TYPE_CHECKING:
    from pathlib import Path

    from ostler.journal.journal_store import JournalStore
    from ostler.workspace.checkpoints import Checkpoints
    from ostler.workspace.undo_types import UndoableTurn, UndoDirection

_MAX_PATHS_SHOWN = 3


def main(arguments: list[str]) -> int:
    """Undo the last session's last turn that can be undone, or the named one."""
    return _main("undo", arguments)


def redo(arguments: list[str]) -> int:
    """Redo the last session's last undone turn, or the named one."""
    return _main("redo", arguments)


def _main(direction: "UndoDirection", arguments: list[str]) -> int:
    parser = Parser(f"ostler {direction}", description=f"{direction.capitalize()} the file changes of a turn.")
    parser.add_argument(
        "turn", nargs="?", default="", help="the turn's id from --list (default: the last turn of the last session)"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be done, without doing it")
    parser.add_argument("--list", action="store_true", help="list the turns that can be undone or redone")
    add_workspace(parser)
    args = parser.parse_args(arguments)
    return asyncio.run(_run(direction, args))


async def _run(direction: "UndoDirection", args: Namespace) -> int:
    from ostler.settings.project_paths import project_folder, workspace_path
    from ostler.workspace.session_undo import open_checkpoints

    cwd = workspace_path(args.cwd)
    with closing(open_checkpoints(cwd, project_folder(cwd))) as checkpoints:
        if args.list:
            await _list_turns(checkpoints, cwd)
            return 0
        return await _execute_plan(checkpoints, direction, args, cwd)


async def _list_turns(checkpoints: "Checkpoints", cwd: "Path") -> None:
    from ostler.workspace.session_undo import session_of

    last_session = _last_session(cwd)
    lines = []
    for turn in await checkpoints.undoable_turns():
        is_other = last_session and session_of(turn.turn_id) != last_session
        remark = "  (undone)" if turn.undone else ""
        remark += "  (of another session: name the turn to undo it)" if is_other else ""
        lines.append(f"{_turn_line(turn)}{remark}\n")
    sys.stdout.write("".join(lines) or "nothing can be undone\n")


def _last_session(cwd: "Path") -> str:
    """Return the id of the session that was used last in this workspace; empty if there is none."""
    from ostler.core.errors import UsageError
    from ostler.knowledge.trusted_settings import load_settings_leniently
    from ostler.settings.home import project_id
    from ostler.storage.session_stores import session_store

    try:
        return session_store(load_settings_leniently(cwd, lambda line: None)).latest(project_id(cwd)).id
    except UsageError:
        return ""


def _turn_line(turn: "UndoableTurn") -> str:
    import time

    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(turn.started_at))
    more = f" and {len(turn.paths) - _MAX_PATHS_SHOWN} more" if len(turn.paths) > _MAX_PATHS_SHOWN else ""
    return f"{turn.turn_id}  {when}  {', '.join(turn.paths[:_MAX_PATHS_SHOWN])}{more}"


async def _execute_plan(checkpoints: "Checkpoints", direction: "UndoDirection", args: Namespace, cwd: "Path") -> int:
    from ostler.workspace.session_undo import make_plan

    plan = await make_plan(checkpoints, direction, args.turn, "" if args.turn else _last_session(cwd))
    if args.dry_run:
        sys.stdout.write(f"turn     {plan.turn_id}\n")
    for path in plan.restore:
        sys.stdout.write(f"restore  {path}\n")
    for path in plan.delete:
        sys.stdout.write(f"remove   {path}\n")
    for gap in (*plan.conflicts, *plan.uncovered):
        sys.stdout.write(f"keep     {gap.path}: {gap.reason}\n")
    if args.dry_run:
        return 0
    result = await checkpoints.undo(plan)
    for gap in result.skipped:
        sys.stdout.write(f"skipped  {gap.path}: {gap.reason}\n")
    paths = [*result.restored, *result.deleted]
    verb = "undid" if direction == "undo" else "redid"
    sys.stdout.write(f"{verb} turn {plan.turn_id}: {len(paths)} path{'' if len(paths) == 1 else 's'} changed\n")
    if not paths and (plan.conflicts or plan.uncovered):
        notify(f"nothing to {direction} in this turn; choose another one from `ostler undo --list`")
        return 1
    if paths:
        _notify_session(cwd, direction, plan.turn_id, paths)
    return 1 if result.skipped or plan.conflicts else 0


def _notify_session(cwd: "Path", direction: str, checkpoint: str, paths: list[str]) -> None:
    """Tell the session of the turn which files changed."""
    from ostler.knowledge.trusted_settings import load_settings_leniently
    from ostler.session.undo_notice import notify_session
    from ostler.settings.home import project_id
    from ostler.storage.session_stores import session_store

    def open_store() -> "JournalStore":
        return session_store(load_settings_leniently(cwd, notify))

    notify_session(open_store, project_id(cwd), direction, checkpoint, paths, notify)
