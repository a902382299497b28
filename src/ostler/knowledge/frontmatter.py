"""Parses Markdown with YAML front matter into fields and body."""

import re
from functools import cache
from typing import Any

import msgspec

from ostler.knowledge.source_folder import MAX_BYTES, SourceFolder
from ostler.text.lazy_regex import lazy_regex

MAX_HEAD_LENGTH = 16 * 1024
MAX_DEPTH = 20
_MAX_BRACKETS = 200  # with more, the YAML parser takes quadratic time
_FIELD = lazy_regex(r"([A-Za-z_][A-Za-z0-9_-]*):(?: +(.*))?")
_INDICATORS = "-?:,[]{}#&*!|>'\"%@`"


class FrontmatterProblem(msgspec.Struct, frozen=True):
    """A problem in front matter, with its line in the file."""

    line: int
    message: str


class MarkdownDocument(msgspec.Struct, frozen=True):
    """The fields and the body of a file. Every scalar is text as written; the caller converts it."""

    fields: dict[str, Any]
    body: str
    problems: tuple[FrontmatterProblem, ...] = ()


def read_markdown(folder: SourceFolder, relative: str, limit: int = MAX_BYTES) -> MarkdownDocument | None:
    """Read and parse a file. Return None if it cannot be read; problems are added to the folder's notes."""
    source = folder.read(relative, limit)
    if source is None:
        return None
    document = parse_markdown(source.text)
    for problem in document.problems:
        folder.note(relative, problem.message, problem.line)
    return document


def parse_markdown(text: str) -> MarkdownDocument:
    """Parse front matter as YAML, or line by line if it is not valid YAML, and return it with the body."""
    head, body = _split_head(text)
    if head is None:
        return MarkdownDocument({}, body)
    if len(head) > MAX_HEAD_LENGTH:
        return MarkdownDocument(
            {}, body, (FrontmatterProblem(1, f"the front matter is longer than {MAX_HEAD_LENGTH} characters"),)
        )
    plain = _plain_fields(head)
    if plain is not None:
        return MarkdownDocument(plain, body)
    fields, problem = _yaml_fields(head)
    if problem:
        repaired, remaining_problem = _yaml_fields(_as_block_scalars(head))
        if remaining_problem is None:
            return MarkdownDocument(repaired, body)
        return MarkdownDocument(_line_fields(head), body, (problem,))
    return MarkdownDocument(fields, body)


def _split_head(text: str) -> tuple[str | None, str]:
    """Return the front matter without its two `---` lines, or None, and the body."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    first, _, rest = text.partition("\n")
    if first.rstrip() != "---":
        return None, text
    end = re.search(r"^---[ \t]*$", rest, re.MULTILINE)
    if end is None:
        return None, text
    return rest[: end.start()], rest[end.end() :].strip("\n")


def _plain_fields(head: str) -> dict[str, Any] | None:
    """Parse front matter of simple one-line fields without the YAML parser. Return None if that is not possible."""
    fields: dict[str, Any] = {}
    for line in head.split("\n"):
        if not line or line.startswith("#"):
            continue
        field = _FIELD.fullmatch(line)
        value = _plain_value((field[2] or "").rstrip(" ")) if field else None
        if field is None or value is None:
            return None
        fields[field[1]] = value
    return fields


def _plain_value(value: str) -> str | None:
    """Return a one-line value, or None if it needs the YAML parser."""
    if not value.isprintable():
        return None
    if value[:1] in ("'", '"') and len(value) >= 2:
        inner = value[1:-1]
        return inner if value[-1] == value[0] and value[0] not in inner and "\\" not in inner else None
    ambiguous = value[:1] in _INDICATORS or ": " in value or " #" in value or value.endswith(":")
    return None if value and ambiguous else value


def _yaml_fields(head: str) -> tuple[dict[str, Any], FrontmatterProblem | None]:
    """Parse front matter as YAML. Return the fields and the problem, if any."""
    if head.count("[") + head.count("{") > _MAX_BRACKETS:
        return {}, FrontmatterProblem(1, f"the front matter has more than {_MAX_BRACKETS} brackets")
    import yaml

    try:
        value = yaml.load(head, _yaml_loader())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return {}, FrontmatterProblem(
            mark.line + 2 if mark else 1, f"the front matter is not valid YAML: {error.problem}"
        )
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, FrontmatterProblem(1, "the front matter is not valid YAML")
    if value is None or value == "":
        return {}, None
    if not isinstance(value, dict):
        return {}, FrontmatterProblem(2, "the front matter has no fields; write them as `name: value`")
    return {str(key): inner for key, inner in value.items()}, None


@cache
def _yaml_loader() -> Any:
    """Return a loader for text, lists and objects only.

    Tags could run code, and aliases could expand a short text without limit.
    """
    import yaml

    class Loader(yaml.BaseLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            if isinstance(event, yaml.AliasEvent):
                raise yaml.MarkedYAMLError(None, None, "aliases are not supported", event.start_mark)  # type: ignore[arg-type]
            if self.depth == MAX_DEPTH:
                raise yaml.MarkedYAMLError(None, None, "nested too deeply", event.start_mark)
            self.depth += 1
            try:
                return super().compose_node(parent, index)
            finally:
                self.depth -= 1

    return Loader


def _as_block_scalars(head: str) -> str:
    """Convert one-line values to block scalars, in which a colon has no special meaning."""
    lines = head.split("\n")
    converted: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        field = _FIELD.fullmatch(line)
        if field and field[2] and field[2][0] not in "|>[{'\"" and following[:1] not in (" ", "\t"):
            converted += [f"{field[1]}: |-", f"  {field[2].strip()}"]
        else:
            converted.append(line)
    return "\n".join(converted)


def _line_fields(head: str) -> dict[str, Any]:
    """Return the `name: value` lines of invalid front matter."""
    fields = (_FIELD.fullmatch(line) for line in head.split("\n"))
    return {field[1]: field[2].strip().strip("'\"") for field in fields if field and field[2]}
