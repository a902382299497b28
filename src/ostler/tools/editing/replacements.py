"""Applies several replacements to a text, all or none."""

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
    """The new text, the number of replaced matches, and the rules other than `exact` that were used."""

    text: str
    count: int
    rules: tuple[MatchRule, ...]


def apply_replacements(path: str, text: str, replacements: Sequence[Replacement]) -> EditResult:
    """Apply the replacements in order, each to the result of the previous one. Raises `ToolError`."""
    before, count = text, 0
    rules: dict[MatchRule, None] = {}
    for number, replacement in enumerate(replacements, 1):
        try:
            text, replaced, rule = _apply_replacement(path, text, replacement)
        except ToolError as error:
            if len(replacements) == 1:
                raise
            message = f"edit {number} of {len(replacements)}: {error.fault.message}; no edit was made"
            raise ToolError(message, code=error.fault.code) from None
        count += replaced
        if rule != "exact":
            rules[rule] = None
    if text == before:
        raise ToolError(f"the edit changes nothing in {path}", code="bad_edit")
    return EditResult(text, count, tuple(rules))


def _apply_replacement(path: str, text: str, replacement: Replacement) -> tuple[str, int, MatchRule]:
    if not replacement.old:
        raise ToolError("old is empty; give the text to replace, or use write for the whole file", code="bad_edit")
    if replacement.old == replacement.new:
        raise ToolError("old and new are the same", code="bad_edit")
    matches = find_text(text, replacement.old, overlapping=not replacement.replace_all)
    if matches is None:
        from ostler.tools.editing.no_match import no_match_message  # imported late: only errors need it

        raise ToolError(no_match_message(path, text, replacement.old, replacement.new), code="no_match")
    if replacement.replace_all and matches.rule in REPEATABLE_RULES:
        return _replace_all(text, replacement, matches)
    spans = list(islice(matches.spans, _MAX_COUNTED + 1))
    if len(spans) > 1:
        raise _ambiguous_error(path, text, spans, matches.rule)
    return _splice(text, spans, Replacer(text, matches.rule, replacement.old, replacement.new)), 1, matches.rule


def _replace_all(text: str, replacement: Replacement, matches: TextMatches) -> tuple[str, int, MatchRule]:
    replacer = Replacer(text, matches.rule, replacement.old, replacement.new)
    if replacer.is_literal:
        return text.replace(replacement.old, replacement.new), text.count(replacement.old), matches.rule
    spans = list(matches.spans)
    return _splice(text, spans, replacer), len(spans), matches.rule


def _splice(text: str, spans: Sequence[MatchSpan], replacer: Replacer) -> str:
    parts: list[str] = []
    offset = 0
    for span in spans:
        parts += (text[offset : span.start], replacer.text_for(span))
        offset = span.end
    return "".join([*parts, text[offset:]])


def _ambiguous_error(path: str, text: str, spans: Sequence[MatchSpan], rule: MatchRule) -> ToolError:
    times = f"{len(spans)} times" if len(spans) <= _MAX_COUNTED else f"more than {_MAX_COUNTED} times"
    lines = ", ".join(str(line_number_at(text, span.start)) for span in spans[:8])
    more = ", …" if len(spans) > 8 else ""
    if rule in REPEATABLE_RULES:
        message = f"{path} contains that text {times} (lines {lines}{more})"
        fix = "include more surrounding text, or set replace_all"
    else:
        message = f"{path} contains that text {times} (lines {lines}{more}), but only when ignoring {rule}"
        fix = "copy the text exactly"
    return ToolError(f"{message}; {fix}", code="ambiguous")
