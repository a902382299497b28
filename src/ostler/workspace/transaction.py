"""Applies several file changes as one transaction."""

from collections.abc import Sequence

from ostler.core.errors import PathError
from ostler.core.protocols import WriteResult
from ostler.processes.placeholders import is_placeholder
from ostler.workspace.change_steps import ChangeStep, CreateStep, DeleteStep, ResolvedChange, UpdateStep
from ostler.workspace.jail import Jail
from ostler.workspace.path_access import path_errors
from ostler.workspace.read_tracker import ReadTracker
from ostler.workspace.text_save import WriteTarget


def apply_changes(
    jail: Jail, tracker: ReadTracker, changes: Sequence[ResolvedChange], *, dry_run: bool = False
) -> list[WriteResult]:
    """Apply all changes or none and return what each one does; with `dry_run` write nothing.

    Raises `PathError` if one of them is not possible.
    """
    freed_paths: set[str] = set()
    steps: list[ChangeStep] = []
    for resolved in changes:
        with path_errors(resolved.target.display_path):
            steps.append(_make_step(jail, tracker, resolved, freed_paths))
    if not dry_run:
        _apply_all(steps)
    return [step.result for step in steps]


def _make_step(jail: Jail, tracker: ReadTracker, resolved: ResolvedChange, freed_paths: set[str]) -> ChangeStep:
    """Validate a change. `freed_paths` are the paths that earlier changes delete or rename."""
    creates = resolved.change.text is not None and not resolved.change.base_version
    new = resolved.target if creates else resolved.new_target
    if new is not None and new.real_path not in freed_paths and _exists(jail, new):
        raise PathError("already_exists", new.display_path, "it already exists", hint="read it, then change it")
    if creates:
        return CreateStep(jail, tracker, resolved)
    if resolved.change.delete or resolved.new_target:
        freed_paths.add(resolved.target.real_path)
    return DeleteStep(jail, tracker, resolved) if resolved.change.delete else UpdateStep(jail, tracker, resolved)


def _exists(jail: Jail, target: WriteTarget) -> bool:
    try:
        with jail.open_entry(target.relative) as entry:
            return entry.stat() is not None and not is_placeholder(entry.name, entry.directory_fd)
    except FileNotFoundError:
        return False


def _apply_all(steps: Sequence[ChangeStep]) -> None:
    try:
        for step in steps:
            with path_errors(step.resolved.target.display_path):
                step.apply()
    except BaseException:
        for step in reversed(steps):
            step.roll_back()
        raise
    for step in steps:
        step.finish()
