"""Answers one question: asks for each field of its schema and validates the input."""

from typing import Any

import msgspec

from ostler.core.events import QuestionAsked
from ostler.core.permission import CONFIRMED, QuestionReply
from ostler.interaction.answer_menu import AnswerMenu
from ostler.text.sanitise import escape_invisible

NUMBER_TYPES: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float)}
URL_SCHEMA = {"properties": {"go": {"type": "boolean", "title": "will you open this URL"}}}
YES, NO = ("y", "yes", "true"), ("n", "no", "false")


class QuestionForm:
    """An open question. An empty answer to a required field without a default declines the question."""

    def __init__(self, event: QuestionAsked) -> None:
        self.question = event.question
        schema: Any = (URL_SCHEMA if event.question.url else event.question.schema) or {}
        properties = schema.get("properties") if isinstance(schema, dict) else None
        self._fields: dict[str, Any] = dict(properties) if isinstance(properties, dict) and properties else {"text": {}}
        required = schema.get("required") if isinstance(schema, dict) else None
        self._required = [name for name in self._fields if not isinstance(required, list) or name in required]
        self._remaining = list(self._fields)
        self._values: dict[str, object] = {}
        self.error = ""  # why the last input was invalid

    @property
    def field_description(self) -> str:
        """The description of the next field."""
        return str(self._field.get("description") or "")

    @property
    def field_choices(self) -> list[str]:
        """The labels of the next field's choices; empty if any value is possible."""
        return [label for _, label in self._choices()]

    def menu(self) -> AnswerMenu:
        """Return the prompt for the next field."""
        field, name = self._field, self._remaining[0]
        title = escape_invisible(str(field.get("title") or ("answer" if name == "text" else name)))
        empty = f"default {escape_invisible(str(field['default']))}" if "default" in field else self._empty_hint(name)
        return AnswerMenu(f"  {title}{self._kind_hint()} (empty: {empty}): ")

    def _kind_hint(self) -> str:
        if self._field.get("type") == "boolean":
            return " [y/n]"
        if not self.field_choices:
            return ""
        return " (numbers, such as 1,2)" if self._is_list else " (number)"

    def _empty_hint(self, name: str) -> str:
        return "decline" if name in self._required else "skip"

    def submit(self, line: str) -> QuestionReply | None:
        """Handle the input for the next field. Return the reply once all fields are done."""
        name, text = self._remaining[0], line.strip()
        self.error = ""
        if text:
            try:
                self._values[name] = self._parse(text)
            except ValueError as error:
                self.error = str(error)
                return None
        elif "default" in self._field:
            self._values[name] = self._field["default"]
        elif name in self._required:
            return QuestionReply("decline")
        self._remaining.pop(0)
        return None if self._remaining else self._reply()

    def _reply(self) -> QuestionReply:
        if self.question.url:
            return QuestionReply("accept" if self._values["go"] else "decline")
        return QuestionReply("decline") if self._values == {CONFIRMED: False} else QuestionReply("accept", self._values)

    @property
    def _field(self) -> dict[str, Any]:
        field = self._fields[self._remaining[0]]
        return field if isinstance(field, dict) else {}

    @property
    def _is_list(self) -> bool:
        """Whether several choices can be selected."""
        return self._field.get("type") == "array"

    def _choices(self) -> list[tuple[object, str]]:
        """Return the values of a choice with their labels."""
        field = self._field.get("items") if self._is_list else self._field
        if not isinstance(field, dict):
            return []
        if isinstance(values := field.get("enum"), list):
            names = field.get("enumNames")
            names = names if isinstance(names, list) and len(names) == len(values) else values
            return list(zip(values, map(str, names), strict=True))
        schemas = field.get("anyOf" if self._is_list else "oneOf")
        if not isinstance(schemas, list):
            return []
        constants = [schema for schema in schemas if isinstance(schema, dict) and "const" in schema]
        return [(schema["const"], str(schema.get("title", schema["const"]))) for schema in constants]

    def _parse(self, text: str) -> object:
        """Convert the input to the type of the field. Raises `ValueError` with what to enter."""
        choices = self._choices()
        if self._is_list:
            words = [word for part in text.split(",") if (word := part.strip())]
            selected = [_parse_choice(word, choices) if choices else word for word in words]
            return self._checked(selected, len(selected), ("minItems", "maxItems"), "select {} {} of them")
        if choices:
            return _parse_choice(text, choices)
        kind = str(self._field.get("type"))
        if kind == "boolean":
            if text.lower() not in (*YES, *NO):
                raise ValueError("enter y or n")
            return text.lower() in YES
        if kind in NUMBER_TYPES:
            number = _parse_number(text, kind)
            return self._checked(number, number, ("minimum", "maximum"), "enter a number of {} {}")
        return self._checked(text, len(text), ("minLength", "maxLength"), "enter {} {} characters")

    def _checked(self, value: object, size: float, keys: tuple[str, str], message: str) -> object:
        """Return a value whose size is within the limits of the field. Raises `ValueError`."""
        minimum, maximum = (self._field.get(key) for key in keys)
        if isinstance(minimum, int | float) and size < minimum:
            raise ValueError(message.format("at least", str(minimum)[:20]))
        if isinstance(maximum, int | float) and size > maximum:
            raise ValueError(message.format("at most", str(maximum)[:20]))
        return value


def _parse_choice(text: str, choices: list[tuple[object, str]]) -> object:
    if text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= len(choices):
        return choices[int(text[:6]) - 1][0]
    for value, label in choices:
        if text in (label, str(value)):
            return value
    raise ValueError("enter the number of a choice")


def _parse_number(text: str, kind: str) -> float:
    try:
        value: Any = msgspec.json.decode(text)
    except msgspec.DecodeError:
        value = None
    if isinstance(value, int | float) and not isinstance(value, bool) and isinstance(value, NUMBER_TYPES[kind]):
        return value
    raise ValueError("enter a whole number" if kind == "integer" else "enter a number")
