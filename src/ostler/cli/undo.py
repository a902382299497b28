"""`ostler undo` and `ostler redo`: take back what a turn changed in the workspace, whatever changed it."""

import asyncio
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from ostler.cli.arguments import Parser, add_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from ostler.workspace.changes import Kept
    from ostler.workspace.checkpoints import Checkpoints

_SHOWN = 3  # paths of a turn in the list


def main(arguments: list[str]) -> int:
    """Undo the last turn that can be, or the one named."""
    return _main("undo", arguments)


def redo(arguments: list[str]) -> int:
    """Do again what was undone last."""
    return _main("redo", arguments)


def _main(direction: str, arguments: list[str]) -> int:
    parser = Parser(
        f"ostler {direction}", description=f"{direction.capitalize()} what a turn changed in the workspace."
    )
    parser.add_argument("turn", nargs="?", default="", help="which turn (default: the last); see --list")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument("--list", action="store_true", help="the turns that can be undone")
    add_workspace(parser)
    given = parser.parse_args(arguments)
    return asyncio.run(_play(direction, given))


async def _play(direction: str, given: Namespace) -> int:
    from ostler.app.house import project_folder, workspace
    from ostler.app.undoing import checkpoints

    cwd = workspace(given.cwd)
    past = checkpoints(cwd, project_folder(cwd))
    try:
        if given.list:
            sys.stdout.write("".join(map(_line, await past.kept())) or "nothing can be undone\n")
            return 0
        return await _carry_out(past, direction, given, cwd)
    finally:
        past.close()


def _line(kept: "Kept") -> str:
    import time

    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(kept.at))
    more = f" and {len(kept.paths) - _SHOWN} more" if len(kept.paths) > _SHOWN else ""
    return f"{kept.turn}  {when}  {', '.join(kept.paths[:_SHOWN])}{more}\n"


async def _carry_out(past: "Checkpoints", direction: str, given: Namespace, cwd: "Path") -> int:
    from ostler.app.undo_told import tell_session
    from ostler.app.undoing import plan_of

    plan = await plan_of(past, direction, given.turn)
    for path in plan.restore:
        sys.stdout.write(f"restore  {path}\n")
    for path in plan.delete:
        sys.stdout.write(f"remove   {path}\n")
    for gap in (*plan.conflicts, *plan.uncovered):
        sys.stdout.write(f"leave    {gap.path}: {gap.reason}\n")
    if given.dry_run:
        return 0
    done = await past.undo(plan)
    for gap in done.left:
        sys.stdout.write(f"left     {gap.path}: {gap.reason}\n")
    paths = [*done.restored, *done.deleted]
    sys.stdout.write(f"{direction} of {plan.turn}: {len(paths)} paths\n")
    if not paths and (plan.conflicts or plan.uncovered):
        _say(f"nothing could be done; {direction} another turn by its name (ostler undo --list)")
        return 1
    if paths:
        tell_session(cwd, direction, plan.turn, paths, _say)
    return 1 if done.left or plan.conflicts else 0


def _say(told: str) -> None:
    sys.stderr.write(f"ostler: {told}\n")
