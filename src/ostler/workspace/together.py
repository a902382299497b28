"""Several changes of files made together: all are checked before the first is made, and undone if one fails."""

from collections.abc import Sequence

from ostler.processes.placeholders import stands_in
from ostler.vocabulary.errors import PathRefused
from ostler.vocabulary.seams import Written
from ostler.workspace.jail import Jail
from ostler.workspace.reach import refusals
from ostler.workspace.save import Target
from ostler.workspace.seen import Seen
from ostler.workspace.steps import Create, Delete, Step, Update, Wish


def make_together(jail: Jail, seen: Seen, wishes: Sequence[Wish], *, really: bool) -> list[Written]:
    """What all changes do, made if `really`; refused as a whole when one of them cannot be."""
    freed: set[str] = set()
    steps: list[Step] = []
    for wish in wishes:
        with refusals(wish.target.shown):
            steps.append(_step(jail, seen, wish, freed))
    if really:
        _make(steps)
    return [step.written for step in steps]


def _step(jail: Jail, seen: Seen, wish: Wish, freed: set[str]) -> Step:
    """A change that may be made; `freed` are the names that changes before it take away."""
    creates = wish.change.text is not None and not wish.change.base
    new = wish.target if creates else wish.goal
    if new is not None and new.where not in freed and _stands(jail, new):
        raise PathRefused("already_exists", new.shown, "something is already there", hint="read it, then change it")
    if creates:
        return Create(jail, seen, wish)
    if wish.change.delete or wish.goal:
        freed.add(wish.target.where)
    return Delete(jail, seen, wish) if wish.change.delete else Update(jail, seen, wish)


def _stands(jail: Jail, target: Target) -> bool:
    try:
        with jail.entry(target.relative) as spot:
            return spot.stat() is not None and not stands_in(spot.name, spot.directory)
    except FileNotFoundError:
        return False


def _make(steps: Sequence[Step]) -> None:
    try:
        for step in steps:
            with refusals(step.wish.target.shown):
                step.make()
    except BaseException:
        for step in reversed(steps):
            step.undo()
        raise
    for step in steps:
        step.finish()
