"""Several replacements made in a text, one after the other: all of them, or a refusal that says which and why."""

from collections.abc import Sequence
from itertools import islice

import msgspec

from ostler.core.errors import ToolError
from ostler.tools.editing.replacement import Replacement
from ostler.tools.editing.replacement_text import Replacer
from ostler.tools.editing.text_lines import line_number_at
from ostler.tools.editing.text_match import REPEATABLE_RULES, MatchRule, MatchSpan, TextMatches, find_text

_MAX_COUNTED = 100


class EditResult(msgspec.Struct, frozen=True):
    """The text afterwards, how many places were changed, and the rules other than `exact` that were needed."""

    text: str
    count: int
    rules: tuple[MatchRule, ...]


def apply_replacements(path: str, text: str, replacements: Sequence[Replacement]) -> EditResult:
    """All steps made in order, each in what the one before left."""
    before, count = text, 0
    rules: dict[MatchRule, None] = {}
    for number, step in enumerate(replacements, 1):
        try:
            text, places, rule = _apply_replacement(path, text, step)
        except ToolError as failure:
            if len(replacements) == 1:
                raise
            said = f"edit {number} of {len(replacements)}: {failure.fault.message}; none of them was made"
            raise ToolError(said, code=failure.fault.code) from None
        count += places
        if rule != "exact":
            rules[rule] = None
    if text == before:
        raise ToolError(f"{path} would stay as it is; there is nothing to change", code="bad_edit")
    return EditResult(text, count, tuple(rules))


def _apply_replacement(path: str, text: str, replacement: Replacement) -> tuple[str, int, MatchRule]:
    if not replacement.old:
        raise ToolError("old is empty; give the text to replace, or use write for the whole file", code="bad_edit")
    if replacement.old == replacement.new:
        raise ToolError("old and new are the same; there is nothing to change", code="bad_edit")
    found = find_text(text, replacement.old, overlapping=not replacement.replace_all)
    if found is None:
        from ostler.tools.editing.no_match import no_match_message  # only a miss pays for it

        raise ToolError(no_match_message(path, text, replacement.old, replacement.new), code="no_match")
    if replacement.replace_all and found.rule in REPEATABLE_RULES:
        return _replace_all(text, replacement, found)
    spans = list(islice(found.spans, _MAX_COUNTED + 1))
    if len(spans) > 1:
        raise _ambiguous_error(path, text, spans, found.rule)
    return _splice(text, spans, Replacer(text, found.rule, replacement.old, replacement.new)), 1, found.rule


def _replace_all(text: str, replacement: Replacement, found: TextMatches) -> tuple[str, int, MatchRule]:
    replacer = Replacer(text, found.rule, replacement.old, replacement.new)
    if replacer.is_literal:
        return text.replace(replacement.old, replacement.new), text.count(replacement.old), found.rule
    spans = list(found.spans)
    return _splice(text, spans, replacer), len(spans), found.rule


def _splice(text: str, spans: Sequence[MatchSpan], replacer: Replacer) -> str:
    pieces: list[str] = []
    at = 0
    for span in spans:
        pieces += (text[at : span.start], replacer.text_for(span))
        at = span.end
    return "".join([*pieces, text[at:]])


def _ambiguous_error(path: str, text: str, spans: Sequence[MatchSpan], rule: MatchRule) -> ToolError:
    times = f"{len(spans)} times" if len(spans) <= _MAX_COUNTED else f"more than {_MAX_COUNTED} times"
    lines = ", ".join(str(line_number_at(text, span.start)) for span in spans[:8])
    more = ", …" if len(spans) > 8 else ""
    if rule in REPEATABLE_RULES:
        said = f"{path} contains that text {times} (lines {lines}{more})"
        mend = "give more of its surroundings, or set replace_all"
    else:
        said = f"{path} contains that text only bar {rule}, and {times} (lines {lines}{more})"
        mend = "give it as it stands at the one you mean"
    return ToolError(f"{said}; {mend}", code="ambiguous")
