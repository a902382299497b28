"""Chooses the server's session of a local session, and gets the texts that the journal leaves out."""

import msgspec

from ostler.backends.remote.log_position import LogPosition
from ostler.backends.remote.message_ids import conversation_texts
from ostler.backends.remote.plan import RemotePlan
from ostler.backends.remote.server import RemoteServer


class ChosenSession(msgspec.Struct, frozen=True):
    """A session of the server. With `resumes` its log is continued."""

    id: str
    model: str
    resumes: bool = True


async def choose_session(
    server: RemoteServer, plan: RemotePlan, position: LogPosition, root: str, model: str
) -> ChosenSession:
    """Return the session of the journal, a copy of it, the named one, or a new one. Raises `BackendError`."""
    if position.is_copied:
        copy = await server.fork(position.session_id, position.seq)
        position.begin(copy.session_id, copy.epoch, position.seq)
    if not position.session_id and plan.session_id:
        position.session_id = plan.session_id  # with an empty epoch: the server sends the conversation so far
    if position.session_id:
        return ChosenSession(position.session_id, model)
    created = await server.create(root, model, plan.version)
    return ChosenSession(created.session_id, created.model or model, resumes=False)


async def restore_texts(server: RemoteServer, plan: RemotePlan, position: LogPosition) -> None:
    """Get the texts of the conversation, if there is one to resume. Raises `BackendError`."""
    if plan.restore and position.session_id and position.seq:
        plan.restore(*conversation_texts(await server.messages(position.session_id)))
