"""Answers one approval request: its options, a message to the agent, and the choice of hunks."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from ostler.core.display import DisplayDiff
from ostler.core.events import PermissionAsked
from ostler.core.permission import AnswerOption, Decision
from ostler.interaction.answer_menu import AnswerMenu
from ostler.session.answer_options import EDITS_ID, FOLDER_ID
from ostler.text.hunks import split_hunks
from ostler.text.sanitise import escape_invisible

ID_KEYS = {EDITS_ID: "e", FOLDER_ID: "f"}
OPTION_KEYS = {"allow_once": "y", "allow_session": "s", "allow_always": "a", "deny": "n", "deny_always": "d"}
SCOPES: dict[str, Literal["session", "project"]] = {
    "allow_session": "session",
    "allow_always": "project",
    "deny_always": "project",
}
MESSAGE_KEY, HUNKS_KEY = "m", "h"
HUNK_ANSWERS = (("y", "Accept this hunk"), ("n", "Skip this hunk"))


class HunkPicker:
    """The hunks of several diffs, each with its file, and the choices so far."""

    def __init__(self, diffs: Sequence[DisplayDiff]) -> None:
        self._hunks = [
            (f"{diff.path}, would be {diff.operation}", hunk) for diff in diffs for hunk in split_hunks(diff.diff)
        ]
        self._choices: list[bool] = []

    def __len__(self) -> int:
        return len(self._hunks)

    @property
    def current(self) -> tuple[int, int, str, str]:
        """The next hunk: its number, the number of hunks, its file and operation, and its text."""
        return len(self._choices) + 1, len(self._hunks), *self._hunks[len(self._choices)]

    def choose(self, accept: bool) -> bool:
        """Accept or skip the current hunk. Return whether it was the last."""
        self._choices.append(accept)
        return len(self._choices) == len(self._hunks)

    def go_back(self) -> bool:
        """Take back the last choice. Return whether there was one."""
        had_choice = bool(self._choices)
        del self._choices[-1:]
        return had_choice

    @property
    def is_last(self) -> bool:
        """Whether the choice for the current hunk completes the answer."""
        return len(self._choices) + 1 == len(self._hunks)

    @property
    def last_choice(self) -> str:
        """The choice for the previous hunk."""
        return ("skipped", "accepted")[self._choices[-1]] if self._choices else ""

    @property
    def selected(self) -> tuple[int, ...]:
        """Numbers of the accepted hunks, starting at 1."""
        return tuple(number for number, accepted in enumerate(self._choices, 1) if accepted)

    @property
    def all_selected(self) -> bool:
        return all(self._choices)


class ApprovalForm:
    """An approval request that is answered in one or more steps."""

    def __init__(self, event: PermissionAsked) -> None:
        self.event = event
        self._is_writing_message = False
        self.hunks: HunkPicker | None = None  # the choice of hunks, while the user makes it
        diffs = [part for part in event.permission.preview.blocks if isinstance(part, DisplayDiff)]
        self._picker = HunkPicker(diffs if event.permission.by_hunk else ())
        self._options: dict[str, AnswerOption] = {}
        for option in event.permission.options:
            if not (event.once_only and option.kind in SCOPES):
                self._options[_free_key(_usual_key(option), self._options)] = option

    def menu(self) -> AnswerMenu:
        """Return the possible answers of the next step."""
        if self._is_writing_message:
            return AnswerMenu("  message to the agent: ")
        if self.hunks:
            return AnswerMenu("  accept? [y/n] ", HUNK_ANSWERS, quick=not self.hunks.is_last)
        answers = self.answers()
        return AnswerMenu(f"  allow? [{'/'.join(key for key, _ in answers)}] ", answers, self.lasting_keys())

    def submit(self, line: str) -> Decision | None:
        """Handle an answer. Return the decision, or None if another step follows or the answer is invalid."""
        if self._is_writing_message:
            return self._deny(line.strip())
        key = line.strip().lower()
        if self.hunks:
            return self._choose_hunk(key, self.hunks)
        if key not in dict(self.answers()):
            return None
        if key in (MESSAGE_KEY, HUNKS_KEY):
            self._is_writing_message, self.hunks = key == MESSAGE_KEY, self._picker if key == HUNKS_KEY else None
            return None
        return decision_of(self._options[key])

    @property
    def can_go_back(self) -> bool:
        """Whether the shown step follows another one."""
        return self._is_writing_message or self.hunks is not None

    def go_back(self) -> None:
        """Return to the step before: from the message and the first hunk to the answers."""
        self._is_writing_message = False
        if self.hunks and not self.hunks.go_back():
            self.hunks = None

    def _choose_hunk(self, key: str, hunks: HunkPicker) -> Decision | None:
        """Continue with the next hunk. After the last, allow the accepted hunks, or deny if there are none."""
        if key not in ("y", "n") or not hunks.choose(key == "y"):
            return None
        allow_once = self._option_of_kind("allow_once")
        if allow_once is None or not hunks.selected:
            return self._deny("No hunk was accepted.")
        return msgspec.structs.replace(decision_of(allow_once), hunks=None if hunks.all_selected else hunks.selected)

    def _deny(self, feedback: str) -> Decision | None:
        option = self._option_of_kind("deny")
        return decision_of(option, feedback) if option else None

    def _option_of_kind(self, kind: str) -> AnswerOption | None:
        return next((option for option in self._options.values() if option.kind == kind), None)

    def lasting_keys(self) -> tuple[str, ...]:
        """Return the keys of the answers that apply to more than this call."""
        return tuple(key for key, option in self._options.items() if option.kind in SCOPES)

    def harmless_keys(self) -> tuple[str, ...]:
        """Return the keys of the answers that allow nothing of what is shown."""
        if self.hunks:
            return ("n",)
        denials = (key for key, option in self._options.items() if option.kind.startswith("deny"))
        return (MESSAGE_KEY, HUNKS_KEY, *denials)

    def answers(self) -> tuple[tuple[str, str], ...]:
        """Return the keys and labels of all answers."""
        answers = tuple((key, escape_invisible(option.label)) for key, option in self._options.items())
        if self.event.once_only or self._option_of_kind("deny") is None:
            return answers
        by_hunk = ((HUNKS_KEY, "Allow only some hunks: choose them one by one"),) if len(self._picker) > 1 else ()
        return (*answers, (MESSAGE_KEY, "Deny, with a message to the agent"), *by_hunk)


def decision_of(option: AnswerOption, feedback: str = "") -> Decision:
    """Return the user's decision for an option."""
    answer: Literal["allow", "deny"] = "deny" if option.kind.startswith("deny") else "allow"
    return Decision(answer, "person", SCOPES.get(option.kind, "once"), option.id, feedback)


def _usual_key(option: AnswerOption) -> str:
    """Return the key for an option; those with rules of their own have their own keys."""
    return ID_KEYS.get(option.id, OPTION_KEYS[option.kind]) if option.rules else OPTION_KEYS[option.kind]


def _free_key(key: str, used: dict[str, AnswerOption]) -> str:
    """Return the key, or a number if another option of the same kind already uses it."""
    return key if key not in used else next(str(n) for n in range(2, 1000) if str(n) not in used)
