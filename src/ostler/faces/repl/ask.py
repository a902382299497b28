"""One permission that is asked for: its answers, a message to the agent, and a choice among the hunks of a change."""

import msgspec

from ostler.drawing.asks import ask_lines, menu_lines, rule_lines
from ostler.drawing.diffs import judged_lines
from ostler.drawing.paint import Paint
from ostler.faces.repl.console import Menu
from ostler.faces.repl.hunks import Hunks
from ostler.text.sanitise import visible
from ostler.vocabulary.display import DiffShown
from ostler.vocabulary.events import PermissionAsked
from ostler.vocabulary.permission import Decision, Option

KEYS = {"allow_once": "y", "allow_session": "s", "allow_always": "a", "deny": "n", "deny_always": "d"}
LASTS = {"allow_session": "session", "allow_always": "project", "deny_always": "project"}
MESSAGE, SOME = "m", "h"
EACH = (("y", "Take this hunk"), ("n", "Leave it out"))


class Ask:
    """Shown once, then answered step by step."""

    def __init__(self, asked: PermissionAsked) -> None:
        self._asked = asked
        self._writing = False
        self._choosing: Hunks | None = None
        diffs = [part for part in asked.permission.preview.blocks if isinstance(part, DiffShown)]
        self._hunks = Hunks(diffs if asked.permission.by_hunk else ())
        self._options: dict[str, Option] = {}
        for option in asked.permission.options:
            if not (asked.once_only and option.kind in LASTS):
                self._options[_free(KEYS[option.kind], self._options)] = option

    def lines(self, paint: Paint, *, keys: bool) -> list[str]:
        """All of it; the answers too, where nobody else prints them."""
        rules = rule_lines(self._asked.permission) if self._lasting() else []
        menu = menu_lines(self._answers(), rules, paint) if keys else [f"  rule for s and a: {rule}" for rule in rules]
        return ["", *ask_lines(self._asked, paint), *menu]

    def step(self, paint: Paint) -> list[str]:
        """What there is to see before the next answer."""
        if self._choosing is None:
            return []
        number, of, name, hunk = self._choosing.now
        head = paint(f"  hunk {number} of {of}: {visible(name)}", "bold")
        before = [paint(f"  → {self._choosing.last}", "dim")] if self._choosing.last else []
        return [*before, "", head, *(f"  {line}" for line in judged_lines(hunk, paint))]

    def menu(self) -> Menu:
        if self._writing:
            return Menu("  tell the agent: ")
        if self._choosing:
            return Menu("  take it? [y/n] ", EACH)
        return Menu(f"  allow? [{'/'.join(key for key, _ in self._answers())}] ", self._answers())

    def take(self, line: str) -> Decision | None:
        """The decision, if that was one."""
        if self._writing:
            return self._denied(line.strip())
        key = line.strip().lower()
        if self._choosing:
            return self._chosen(key, self._choosing)
        if key not in dict(self._answers()):
            return None
        if key in (MESSAGE, SOME):
            self._writing, self._choosing = key == MESSAGE, self._hunks if key == SOME else None
            return None
        return _decision(self._options[key])

    def _chosen(self, key: str, hunks: Hunks) -> Decision | None:
        """Go on to the next hunk; after the last, all of them are a yes, none a no, and some are made alone."""
        if key not in ("y", "n") or not hunks.choose(key == "y"):
            return None
        once = self._of_kind("allow_once")
        if once is None or not hunks.taken:
            return self._denied("None of these hunks is wanted.")
        return msgspec.structs.replace(_decision(once), hunks=None if hunks.all_taken else hunks.taken)

    def _denied(self, feedback: str) -> Decision | None:
        option = self._of_kind("deny")
        return _decision(option, feedback) if option else None

    def _of_kind(self, kind: str) -> Option | None:
        return next((option for option in self._options.values() if option.kind == kind), None)

    def _lasting(self) -> bool:
        return any(option.kind in ("allow_session", "allow_always") for option in self._options.values())

    def _answers(self) -> tuple[tuple[str, str], ...]:
        answers = tuple((key, visible(option.label)) for key, option in self._options.items())
        if self._asked.once_only or self._of_kind("deny") is None:
            return answers
        some = ((SOME, "Allow only some hunks: choose them one by one"),) if len(self._hunks) > 1 else ()
        return (*answers, (MESSAGE, "Deny, with a message to the agent"), *some)


def _decision(option: Option, feedback: str = "") -> Decision:
    answer = "deny" if option.kind.startswith("deny") else "allow"
    lasts = LASTS.get(option.kind, "once")
    return msgspec.convert(
        {"answer": answer, "by": "person", "lasts": lasts, "option_id": option.id, "feedback": feedback}, Decision
    )


def _free(key: str, taken: dict[str, Option]) -> str:
    """Several options of one kind: the later ones by number."""
    return key if key not in taken else next(str(n) for n in range(2, 1000) if str(n) not in taken)
