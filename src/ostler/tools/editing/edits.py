"""Several replacements made in a text, one after the other: all of them, or a refusal that says which and why."""

from collections.abc import Sequence
from itertools import islice

import msgspec

from ostler.tools.editing.asked import Replace
from ostler.tools.editing.ladder import REPEATABLE, Found, Rule, Span, find
from ostler.tools.editing.lines import line_at
from ostler.tools.editing.replace import Replacer
from ostler.vocabulary.errors import ToolFailure

_COUNTED = 100


class Edited(msgspec.Struct, frozen=True):
    """The text afterwards, how many places were changed, and the rules other than `exact` that were needed."""

    text: str
    count: int
    rules: tuple[Rule, ...]


def edited(path: str, text: str, steps: Sequence[Replace]) -> Edited:
    """All steps made in order, each in what the one before left."""
    before, count = text, 0
    rules: dict[Rule, None] = {}
    for number, step in enumerate(steps, 1):
        try:
            text, places, rule = _made(path, text, step)
        except ToolFailure as failure:
            if len(steps) == 1:
                raise
            said = f"edit {number} of {len(steps)}: {failure.fault.message}; none of them was made"
            raise ToolFailure(said, code=failure.fault.code) from None
        count += places
        if rule != "exact":
            rules[rule] = None
    if text == before:
        raise ToolFailure(f"{path} would stay as it is; there is nothing to change", code="bad_edit")
    return Edited(text, count, tuple(rules))


def _made(path: str, text: str, step: Replace) -> tuple[str, int, Rule]:
    if not step.old:
        raise ToolFailure("old is empty; give the text to replace, or use write for the whole file", code="bad_edit")
    if step.old == step.new:
        raise ToolFailure("old and new are the same; there is nothing to change", code="bad_edit")
    found = find(text, step.old, overlapping=not step.replace_all)
    if found is None:
        from ostler.tools.editing.misses import told  # only a miss pays for it

        raise ToolFailure(told(path, text, step.old, step.new), code="no_match")
    if step.replace_all and found.rule in REPEATABLE:
        return _everywhere(text, step, found)
    spans = list(islice(found.spans, _COUNTED + 1))
    if len(spans) > 1:
        raise _ambiguous(path, text, spans, found.rule)
    return _put(text, spans, Replacer(text, found.rule, step.old, step.new)), 1, found.rule


def _everywhere(text: str, step: Replace, found: Found) -> tuple[str, int, Rule]:
    replacer = Replacer(text, found.rule, step.old, step.new)
    if replacer.literal:
        return text.replace(step.old, step.new), text.count(step.old), found.rule
    spans = list(found.spans)
    return _put(text, spans, replacer), len(spans), found.rule


def _put(text: str, spans: Sequence[Span], replacer: Replacer) -> str:
    pieces: list[str] = []
    at = 0
    for span in spans:
        pieces += (text[at : span.start], replacer.at(span))
        at = span.end
    return "".join([*pieces, text[at:]])


def _ambiguous(path: str, text: str, spans: Sequence[Span], rule: Rule) -> ToolFailure:
    times = f"{len(spans)} times" if len(spans) <= _COUNTED else f"more than {_COUNTED} times"
    lines = ", ".join(str(line_at(text, span.start)) for span in spans[:8])
    more = ", …" if len(spans) > 8 else ""
    if rule in REPEATABLE:
        said = f"{path} contains that text {times} (lines {lines}{more})"
        mend = "give more of its surroundings, or set replace_all"
    else:
        said = f"{path} contains that text only bar {rule}, and {times} (lines {lines}{more})"
        mend = "give it as it stands at the one you mean"
    return ToolFailure(f"{said}; {mend}", code="ambiguous")
