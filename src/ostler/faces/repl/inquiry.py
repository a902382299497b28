"""One question of a backend: what its schema wants is asked for piece by piece, and checked as it comes."""

from typing import Any

import msgspec

from ostler.drawing.paint import Paint
from ostler.faces.repl.console import Menu
from ostler.text.sanitise import visible
from ostler.vocabulary.events import QuestionAsked
from ostler.vocabulary.permission import Reply

NUMBERS: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float)}
GOING = {"properties": {"go": {"type": "boolean", "title": "will you go there"}}}
YES, NO = ("y", "yes", "true"), ("n", "no", "false")


class Inquiry:
    """A piece that is required and left empty declines the whole; another is left out, or takes its default."""

    def __init__(self, asked: QuestionAsked) -> None:
        self._question = asked.question
        schema: Any = (GOING if asked.question.url else asked.question.schema) or {}
        wanted = schema.get("properties") if isinstance(schema, dict) else None
        self._wanted: dict[str, Any] = dict(wanted) if isinstance(wanted, dict) and wanted else {"text": {}}
        required = schema.get("required") if isinstance(schema, dict) else None
        self._required = set(required) if isinstance(required, list) else set(self._wanted)
        self._waiting = list(self._wanted)
        self._given: dict[str, object] = {}
        self._wrong = ""

    def lines(self, paint: Paint, *, keys: bool) -> list[str]:
        asked = self._question
        by = f"{asked.by} asks: " if asked.by else ""
        first, *more = visible(by + asked.text + (f"\n{asked.url}" if asked.url else "")).split("\n")
        return ["", paint(f"? {first}", "bold", "yellow"), *(f"  {line}" for line in more), *self.step(paint)]

    def step(self, paint: Paint) -> list[str]:
        """What is known of the piece that is asked for next, and what was wrong with the last try."""
        piece = self._piece
        told = visible(str(piece.get("description", ""))).split("\n") if piece.get("description") else []
        choices = [f"  {number:>2}  {visible(text)}" for number, text in enumerate(self._labels(), 1)]
        wrong = [paint(f"  {self._wrong}", "red")] if self._wrong else []
        return [*wrong, *(paint(f"  {line}", "dim") for line in told), *choices]

    def menu(self) -> Menu:
        piece, name = self._piece, self._waiting[0]
        title = visible(str(piece.get("title") or ("answer" if name == "text" else name)))
        kind = " [y/n]" if piece.get("type") == "boolean" else " (number)" if self._labels() else ""
        empty = f"default {visible(str(piece['default']))}" if "default" in piece else self._empty(name)
        return Menu(f"  {title}{kind} (empty: {empty}): ")

    def _empty(self, name: str) -> str:
        return "decline" if name in self._required else "leave out"

    def take(self, line: str) -> Reply | None:
        """The reply, once every piece is there."""
        name, said = self._waiting[0], line.strip()
        self._wrong = ""
        if said:
            try:
                self._given[name] = self._value(said)
            except ValueError as wrong:
                self._wrong = str(wrong)
                return None
        elif "default" in self._piece:
            self._given[name] = self._piece["default"]
        elif name in self._required:
            return Reply("decline")
        self._waiting.pop(0)
        return None if self._waiting else self._reply()

    def _reply(self) -> Reply:
        if self._question.url:
            return Reply("accept" if self._given["go"] else "decline")
        return Reply("accept", self._given)

    @property
    def _piece(self) -> dict[str, Any]:
        piece = self._wanted[self._waiting[0]]
        return piece if isinstance(piece, dict) else {}

    def _choices(self) -> list[tuple[object, str]]:
        """Values with what they are called."""
        piece = self._piece
        if isinstance(values := piece.get("enum"), list):
            names = piece.get("enumNames")
            return list(zip(values, names if isinstance(names, list) else map(str, values), strict=False))
        given = piece.get("oneOf")
        listed = [one for one in given if isinstance(one, dict) and "const" in one] if isinstance(given, list) else []
        return [(one["const"], str(one.get("title", one["const"]))) for one in listed]

    def _labels(self) -> list[str]:
        return [label for _, label in self._choices()]

    def _value(self, said: str) -> object:
        """What was typed as what is wanted; `ValueError` tells what that is."""
        if choices := self._choices():
            return _choice(said, choices)
        kind = str(self._piece.get("type"))
        if kind == "boolean":
            if said.lower() not in (*YES, *NO):
                raise ValueError("say y or n")
            return said.lower() in YES
        return _number(said, kind) if kind in NUMBERS else said


def _choice(said: str, choices: list[tuple[object, str]]) -> object:
    if said.isascii() and said.isdecimal() and 1 <= int(said[:6]) <= len(choices):
        return choices[int(said[:6]) - 1][0]
    for value, label in choices:
        if said in (label, str(value)):
            return value
    raise ValueError("choose one by its number")


def _number(said: str, kind: str) -> object:
    try:
        value: object = msgspec.json.decode(said)
    except msgspec.DecodeError:
        value = None
    if isinstance(value, bool) or not isinstance(value, NUMBERS[kind]):
        raise ValueError("that is no whole number" if kind == "integer" else "that is no number")
    return value
