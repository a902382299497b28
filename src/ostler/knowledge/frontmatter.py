"""Markdown with fields at its head between two `---` lines: the fields as text, lists and objects, and the body."""

import re
from functools import cache
from typing import Any

import msgspec

from ostler.knowledge.source_folder import MAX_BYTES, SourceFolder
from ostler.text.lazy_regex import lazy_regex

MAX_HEAD_LENGTH = 16 * 1024
MAX_DEPTH = 20
_MAX_BRACKETS = 200  # beyond, YAML's reader takes ever longer for each
_FIELD = lazy_regex(r"([A-Za-z_][A-Za-z0-9_-]*):(?: +(.*))?")
_INDICATORS = "-?:,[]{}#&*!|>'\"%@`"


class FrontmatterProblem(msgspec.Struct, frozen=True):
    """What is wrong with a head, and in which line of the file."""

    line: int
    message: str


class MarkdownDocument(msgspec.Struct, frozen=True):
    """A file taken apart. Every scalar is text as it was written: what a field wants is its reader's to say."""

    fields: dict[str, Any]
    body: str
    problems: tuple[FrontmatterProblem, ...] = ()


def read_markdown(folder: SourceFolder, relative: str, limit: int = MAX_BYTES) -> MarkdownDocument | None:
    """A file's fields and body; what is wrong with it is noted, and nothing of it is fatal."""
    found = folder.read(relative, limit)
    if found is None:
        return None
    document = parse_markdown(found.text)
    for flaw in document.problems:
        folder.note(relative, flaw.message, flaw.line)
    return document


def parse_markdown(text: str) -> MarkdownDocument:
    """The fields at the head of a text, read as YAML, and by lines where they are none; and the body."""
    head, body = _split_head(text)
    if head is None:
        return MarkdownDocument({}, body)
    if len(head) > MAX_HEAD_LENGTH:
        return MarkdownDocument(
            {}, body, (FrontmatterProblem(1, f"the fields at its head have more than {MAX_HEAD_LENGTH} characters"),)
        )
    plain = _plain_fields(head)
    if plain is not None:
        return MarkdownDocument(plain, body)
    fields, flaw = _yaml_fields(head)
    if flaw:
        mended, still = _yaml_fields(_as_block_scalars(head))
        if still is None:
            return MarkdownDocument(mended, body)
        return MarkdownDocument(_line_fields(head), body, (flaw,))
    return MarkdownDocument(fields, body)


def _split_head(text: str) -> tuple[str | None, str]:
    """The head without its two lines, if there is one, and the rest."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    first, _, rest = text.partition("\n")
    if first.rstrip() != "---":
        return None, text
    end = re.search(r"^---[ \t]*$", rest, re.MULTILINE)
    if end is None:
        return None, text
    return rest[: end.start()], rest[end.end() :].strip("\n")


def _plain_fields(head: str) -> dict[str, Any] | None:
    """The fields where each is one line of plain text: what YAML would say of it, without its price."""
    fields: dict[str, Any] = {}
    for line in head.split("\n"):
        if not line or line.startswith("#"):
            continue
        found = _FIELD.fullmatch(line)
        value = _plain_value((found[2] or "").rstrip(" ")) if found else None
        if found is None or value is None:
            return None
        fields[found[1]] = value
    return fields


def _plain_value(value: str) -> str | None:
    """A value on one line; nothing when only YAML knows what it means."""
    if not value.isprintable():
        return None
    if value[:1] in ("'", '"') and len(value) >= 2:
        inner = value[1:-1]
        return inner if value[-1] == value[0] and value[0] not in inner and "\\" not in inner else None
    ambiguous = value[:1] in _INDICATORS or ": " in value or " #" in value or value.endswith(":")
    return None if value and ambiguous else value


def _yaml_fields(head: str) -> tuple[dict[str, Any], FrontmatterProblem | None]:
    """What YAML says, or its complaint."""
    if head.count("[") + head.count("{") > _MAX_BRACKETS:
        return {}, FrontmatterProblem(1, f"its fields have more than {_MAX_BRACKETS} brackets")
    import yaml

    try:
        value = yaml.load(head, _yaml_loader())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return {}, FrontmatterProblem(mark.line + 2 if mark else 1, f"its fields are not YAML: {error.problem}")
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, FrontmatterProblem(1, "its fields are not YAML")
    if value is None or value == "":
        return {}, None
    if not isinstance(value, dict):
        return {}, FrontmatterProblem(2, "its head holds no fields; write them as `name: value`")
    return {str(key): inner for key, inner in value.items()}, None


@cache
def _yaml_loader() -> Any:
    """YAML of text, lists and objects alone: tags could run code, and aliases make a short text endless."""
    import yaml

    class Loader(yaml.BaseLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            if isinstance(event, yaml.AliasEvent):
                raise yaml.MarkedYAMLError(None, None, "aliases are not taken here", event.start_mark)  # type: ignore[arg-type]
            if self.depth == MAX_DEPTH:
                raise yaml.MarkedYAMLError(None, None, "it is nested too deeply", event.start_mark)
            self.depth += 1
            try:
                return super().compose_node(parent, index)
            finally:
                self.depth -= 1

    return Loader


def _as_block_scalars(head: str) -> str:
    """The same with every value that is one line as a block of its own, where a colon means nothing."""
    given = head.split("\n")
    lines: list[str] = []
    for line, following in zip(given, [*given[1:], ""], strict=True):
        found = _FIELD.fullmatch(line)
        if found and found[2] and found[2][0] not in "|>[{'\"" and following[:1] not in (" ", "\t"):
            lines += [f"{found[1]}: |-", f"  {found[2].strip()}"]
        else:
            lines.append(line)
    return "\n".join(lines)


def _line_fields(head: str) -> dict[str, Any]:
    """What can be saved of a broken head: its `name: value` lines."""
    found = (_FIELD.fullmatch(line) for line in head.split("\n"))
    return {field[1]: field[2].strip().strip("'\"") for field in found if field and field[2]}
