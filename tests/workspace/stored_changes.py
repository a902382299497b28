"""What a finished turn changed, as its checkpoint has it."""

from ostler.workspace.checkpoint_store import CheckpointStore
from ostler.workspace.checkpoints import Checkpoints
from ostler.workspace.paths import escape_path


async def stored_changes(checkpoints: Checkpoints, turn: str) -> dict[str, str]:
    """Return the kind of each change by its path, in the order of the store."""
    return await checkpoints._run_in_store(lambda store: changes_in(store, turn))


def changes_in(store: CheckpointStore, turn: str) -> dict[str, str]:
    kinds = {}
    for change in store._checkpoint_db.changes(turn) or ():
        kind = "created" if change.before is None else "deleted" if change.after is None else "modified"
        kinds[escape_path(change.path)] = kind
    return kinds
