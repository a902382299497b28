"""Composes sessions; the only place where one is constructed."""

from collections.abc import Callable

from ostler.app.project import Project
from ostler.core.protocols import Backend, Journal, StandingRules, ToolRunner
from ostler.core.undo import Undo
from ostler.policy.verdict import Policy
from ostler.session.access import SessionAccess
from ostler.session.masking import MaskSecrets
from ostler.session.session import LocalSession, Spawner


def compose(
    project: Project,
    *,
    backend: Backend,
    tools: ToolRunner,
    access: Policy | SessionAccess,
    journal: Callable[[], Journal],
    standing_rules: StandingRules | None = None,
    undo: Undo | None = None,
    spawner: Spawner | None = None,
    mask: MaskSecrets | None = None,
    make_session: Callable[..., LocalSession] = LocalSession,
) -> LocalSession:
    """Return a session that is not open yet. By default the secrets that the project uses are masked.

    `journal` is called last, so that an earlier failure leaves no lock.
    """
    return make_session(
        backend=backend,
        tools=tools,
        policy=access,
        standing_rules=standing_rules,
        undo=undo,
        spawner=spawner,
        cwd=project.root,
        mask=mask or project.mask(),
        journal=journal(),
    )


def with_hooks(project: Project, backend: Backend) -> Backend:
    """Return the backend with the project's hooks for prompts and turn ends, if there are any."""
    if not project.hooks:
        return backend
    from ostler.hooks.hooked_backend import HookedBackend

    return HookedBackend(backend, project.hooks)
