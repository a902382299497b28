"""One question of a backend: what its schema wants is asked for piece by piece, and checked as it comes."""

from typing import Any

import msgspec

from ostler.core.events import QuestionAsked
from ostler.core.permission import QuestionReply
from ostler.frontends.repl.console import AnswerMenu
from ostler.rendering.style import Styler
from ostler.text.sanitise import escape_invisible

NUMBER_TYPES: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float)}
URL_SCHEMA = {"properties": {"go": {"type": "boolean", "title": "will you go there"}}}
YES, NO = ("y", "yes", "true"), ("n", "no", "false")


class QuestionDialog:
    """A piece that is required and left empty declines the whole; another is left out, or takes its default."""

    def __init__(self, event: QuestionAsked) -> None:
        self._question = event.question
        schema: Any = (URL_SCHEMA if event.question.url else event.question.schema) or {}
        wanted = schema.get("properties") if isinstance(schema, dict) else None
        self._fields: dict[str, Any] = dict(wanted) if isinstance(wanted, dict) and wanted else {"text": {}}
        required = schema.get("required") if isinstance(schema, dict) else None
        self._required = set(required) if isinstance(required, list) else set(self._fields)
        self._remaining = list(self._fields)
        self._values: dict[str, object] = {}
        self._error = ""

    def lines(self, paint: Styler, *, with_keys: bool) -> list[str]:
        asked = self._question
        by = f"{asked.asked_by} asks: " if asked.asked_by else ""
        first, *more = escape_invisible(by + asked.text + (f"\n{asked.url}" if asked.url else "")).split("\n")
        return ["", paint(f"? {first}", "bold", "yellow"), *(f"  {line}" for line in more), *self.step_lines(paint)]

    def step_lines(self, paint: Styler) -> list[str]:
        """What is known of the piece that is asked for next, and what was wrong with the last try."""
        piece = self._field
        told = escape_invisible(str(piece.get("description", ""))).split("\n") if piece.get("description") else []
        choices = [f"  {number:>2}  {escape_invisible(text)}" for number, text in enumerate(self._labels(), 1)]
        wrong = [paint(f"  {self._error}", "red")] if self._error else []
        return [*wrong, *(paint(f"  {line}", "dim") for line in told), *choices]

    def menu(self) -> AnswerMenu:
        piece, name = self._field, self._remaining[0]
        title = escape_invisible(str(piece.get("title") or ("answer" if name == "text" else name)))
        kind = " [y/n]" if piece.get("type") == "boolean" else " (number)" if self._labels() else ""
        empty = f"default {escape_invisible(str(piece['default']))}" if "default" in piece else self._empty_hint(name)
        return AnswerMenu(f"  {title}{kind} (empty: {empty}): ")

    def _empty_hint(self, name: str) -> str:
        return "decline" if name in self._required else "leave out"

    def submit(self, line: str) -> QuestionReply | None:
        """The reply, once every piece is there."""
        name, said = self._remaining[0], line.strip()
        self._error = ""
        if said:
            try:
                self._values[name] = self._parse(said)
            except ValueError as wrong:
                self._error = str(wrong)
                return None
        elif "default" in self._field:
            self._values[name] = self._field["default"]
        elif name in self._required:
            return QuestionReply("decline")
        self._remaining.pop(0)
        return None if self._remaining else self._reply()

    def _reply(self) -> QuestionReply:
        if self._question.url:
            return QuestionReply("accept" if self._values["go"] else "decline")
        return QuestionReply("accept", self._values)

    @property
    def _field(self) -> dict[str, Any]:
        piece = self._fields[self._remaining[0]]
        return piece if isinstance(piece, dict) else {}

    def _choices(self) -> list[tuple[object, str]]:
        """Values with what they are called."""
        piece = self._field
        if isinstance(values := piece.get("enum"), list):
            names = piece.get("enumNames")
            return list(zip(values, names if isinstance(names, list) else map(str, values), strict=False))
        given = piece.get("oneOf")
        listed = [one for one in given if isinstance(one, dict) and "const" in one] if isinstance(given, list) else []
        return [(one["const"], str(one.get("title", one["const"]))) for one in listed]

    def _labels(self) -> list[str]:
        return [label for _, label in self._choices()]

    def _parse(self, text: str) -> object:
        """What was typed as what is wanted; `ValueError` tells what that is."""
        if choices := self._choices():
            return _parse_choice(text, choices)
        kind = str(self._field.get("type"))
        if kind == "boolean":
            if text.lower() not in (*YES, *NO):
                raise ValueError("say y or n")
            return text.lower() in YES
        return _parse_number(text, kind) if kind in NUMBER_TYPES else text


def _parse_choice(text: str, choices: list[tuple[object, str]]) -> object:
    if text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= len(choices):
        return choices[int(text[:6]) - 1][0]
    for value, label in choices:
        if text in (label, str(value)):
            return value
    raise ValueError("choose one by its number")


def _parse_number(text: str, kind: str) -> object:
    try:
        value: object = msgspec.json.decode(text)
    except msgspec.DecodeError:
        value = None
    if isinstance(value, bool) or not isinstance(value, NUMBER_TYPES[kind]):
        raise ValueError("that is no whole number" if kind == "integer" else "that is no number")
    return value
