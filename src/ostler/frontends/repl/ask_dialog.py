"""One permission that is asked for: its answers, a message to the agent, and a choice among the hunks of a change."""

import msgspec

from ostler.core.display import DisplayDiff
from ostler.core.events import PermissionAsked
from ostler.core.permission import AnswerOption, Decision
from ostler.frontends.repl.console import AnswerMenu
from ostler.frontends.repl.hunk_picker import HunkPicker
from ostler.rendering.asks import render_ask, render_menu, rule_lines
from ostler.rendering.diffs import render_diff_for_approval
from ostler.rendering.style import Styler
from ostler.text.sanitise import escape_invisible

OPTION_KEYS = {"allow_once": "y", "allow_session": "s", "allow_always": "a", "deny": "n", "deny_always": "d"}
SCOPES = {"allow_session": "session", "allow_always": "project", "deny_always": "project"}
MESSAGE_KEY, HUNKS_KEY = "m", "h"
HUNK_ANSWERS = (("y", "Take this hunk"), ("n", "Leave it out"))


class AskDialog:
    """Shown once, then answered step by step."""

    def __init__(self, event: PermissionAsked) -> None:
        self._event = event
        self._is_writing_message = False
        self._picker: HunkPicker | None = None
        diffs = [part for part in event.permission.preview.blocks if isinstance(part, DisplayDiff)]
        self._hunks = HunkPicker(diffs if event.permission.by_hunk else ())
        self._options: dict[str, AnswerOption] = {}
        for option in event.permission.options:
            if not (event.once_only and option.kind in SCOPES):
                self._options[_free_key(OPTION_KEYS[option.kind], self._options)] = option

    def lines(self, paint: Styler, *, with_keys: bool) -> list[str]:
        """All of it; the answers too, where nobody else prints them."""
        rules = rule_lines(self._event.permission) if self._has_lasting_option() else []
        menu = (
            render_menu(self._answers(), rules, paint)
            if with_keys
            else [f"  rule for s and a: {rule}" for rule in rules]
        )
        return ["", *render_ask(self._event, paint), *menu]

    def step_lines(self, paint: Styler) -> list[str]:
        """What there is to see before the next answer."""
        if self._picker is None:
            return []
        number, of, name, hunk = self._picker.current
        head = paint(f"  hunk {number} of {of}: {escape_invisible(name)}", "bold")
        before = [paint(f"  → {self._picker.last_choice}", "dim")] if self._picker.last_choice else []
        return [*before, "", head, *(f"  {line}" for line in render_diff_for_approval(hunk, paint))]

    def menu(self) -> AnswerMenu:
        if self._is_writing_message:
            return AnswerMenu("  tell the agent: ")
        if self._picker:
            return AnswerMenu("  take it? [y/n] ", HUNK_ANSWERS)
        return AnswerMenu(f"  allow? [{'/'.join(key for key, _ in self._answers())}] ", self._answers())

    def submit(self, line: str) -> Decision | None:
        """The decision, if that was one."""
        if self._is_writing_message:
            return self._deny(line.strip())
        key = line.strip().lower()
        if self._picker:
            return self._choose_hunk(key, self._picker)
        if key not in dict(self._answers()):
            return None
        if key in (MESSAGE_KEY, HUNKS_KEY):
            self._is_writing_message, self._picker = key == MESSAGE_KEY, self._hunks if key == HUNKS_KEY else None
            return None
        return _decision(self._options[key])

    def _choose_hunk(self, key: str, hunks: HunkPicker) -> Decision | None:
        """Go on to the next hunk; after the last, all of them are a yes, none a no, and some are made alone."""
        if key not in ("y", "n") or not hunks.choose(key == "y"):
            return None
        once = self._option_of_kind("allow_once")
        if once is None or not hunks.selected:
            return self._deny("None of these hunks is wanted.")
        return msgspec.structs.replace(_decision(once), hunks=None if hunks.all_selected else hunks.selected)

    def _deny(self, feedback: str) -> Decision | None:
        option = self._option_of_kind("deny")
        return _decision(option, feedback) if option else None

    def _option_of_kind(self, kind: str) -> AnswerOption | None:
        return next((option for option in self._options.values() if option.kind == kind), None)

    def _has_lasting_option(self) -> bool:
        return any(option.kind in ("allow_session", "allow_always") for option in self._options.values())

    def _answers(self) -> tuple[tuple[str, str], ...]:
        answers = tuple((key, escape_invisible(option.label)) for key, option in self._options.items())
        if self._event.once_only or self._option_of_kind("deny") is None:
            return answers
        some = ((HUNKS_KEY, "Allow only some hunks: choose them one by one"),) if len(self._hunks) > 1 else ()
        return (*answers, (MESSAGE_KEY, "Deny, with a message to the agent"), *some)


def _decision(option: AnswerOption, feedback: str = "") -> Decision:
    answer = "deny" if option.kind.startswith("deny") else "allow"
    lasts = SCOPES.get(option.kind, "once")
    return msgspec.convert(
        {"answer": answer, "by": "person", "lasts": lasts, "option_id": option.id, "feedback": feedback}, Decision
    )


def _free_key(key: str, used: dict[str, AnswerOption]) -> str:
    """Several options of one kind: the later ones by number."""
    return key if key not in used else next(str(n) for n in range(2, 1000) if str(n) not in used)
