"""Applies changes to a session: steer, queue, options, revert, rename, revoked rules."""

from typing import TYPE_CHECKING

import msgspec

from ostler.core.events import Notice, Queued, Renamed, Reverted, RuleRevoked, Steered
from ostler.core.protocols import Backend, StandingRules
from ostler.core.sessions import Rename, Revert, RevokeRule, SessionChange, SetOption, SetQueue, Steer
from ostler.session.journal_sync import JournalSync
from ostler.session.session_options import SessionOptions

if TYPE_CHECKING:
    from ostler.session.session import LocalSession


class SessionChanges(msgspec.Struct, frozen=True):
    """The changes of one session, recorded as events and passed to the backend where it must know them."""

    session: "LocalSession"
    backend: Backend
    options: SessionOptions
    standing_rules: StandingRules
    journal_sync: JournalSync

    async def apply(self, change: SessionChange) -> bool:
        """Apply a change. Return False if the backend does not support it or it is not possible now."""
        match change:
            case Rename(title):
                self.session.emit(Renamed(title))
                await self.backend.apply(change)
                return True
            case RevokeRule(rule):
                self.standing_rules.revoke(rule)
                self.session.emit(RuleRevoked(rule))
                return True
            case Revert():
                return await self._revert(change)
            case Steer():
                return await self._steer(change)
            case SetQueue() if self.session.info.keeps_queue:
                return await self.backend.apply(change)  # which reports the queue of the remote side
            case SetQueue(texts, prompts):
                self.session.emit(Queued(texts, prompts))
                self.journal_sync.start()
                return True
            case SetOption():
                return await self.options.set(change)
            case _:
                return await self.backend.apply(change)

    async def _steer(self, steer: Steer) -> bool:
        """Send a prompt to the running turn, or to the next one. Return False if the turn is already ending."""
        session = self.session
        too_late = session.turn is not None and session.turn.is_cleaning_up
        steered = Steered(steer.prompt)
        masked = Steer(session.mask(steered).prompt)
        if too_late or not (session.info.can_steer and await self.backend.apply(masked)):
            return False
        session.emit(steered)
        return True

    async def _revert(self, revert: Revert) -> bool:
        session = self.session
        if session.turn is not None or not 0 <= revert.to_seq <= session.last_seq:
            return False
        before = len(session.records())
        session.emit(Reverted(revert.to_seq))
        removed = len(session.records()) <= before  # otherwise it restored reverted events
        if await self.backend.apply(revert):
            session.skip_revert_note()
        elif removed:
            text = f"reverted here, but {session.info.backend} still has the messages in its context"
            session.emit(Notice("warning", text))
        return True
