"""Merges a block that contains only some definitions of a program in a language with braces into its file."""

from collections.abc import Mapping

from ostler.knowledge.outlines import outline

_CLOSERS = ("}", ")", "]", "end")


def merge_sections(path: str, old: str, block: str, renamed: Mapping[str, str]) -> str | None:
    """Return the old text with the definitions of the block replaced or added, or None if none of them exists.

    A definition is taken to reach from its first line to the next line that is not indented and begins something new.
    `renamed` maps new names to the old names that they replace.
    """
    sections = _split(path, old)
    parts = _split(path, block)
    known = {name for name, _ in sections if name}
    if not any(renamed.get(name, name) in known for name, _ in parts if name):
        return None
    last = 0
    for name, lines in parts:
        place = next(
            (index for index, section in enumerate(sections) if name and section[0] == renamed.get(name, name)), -1
        )
        if place >= 0:
            sections[place] = (name, _with_spacing(lines, sections[place][1]))
            last = place
        elif name:
            last += 1
            sections.insert(last, (name, ["", *_stripped(lines)]))
    return "\n".join(line for _, lines in sections for line in lines).rstrip("\n") + "\n"


def _split(path: str, text: str) -> list[tuple[str, list[str]]]:
    """Return the sections of a text, each with the name that it defines, or an empty name."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in text.rstrip("\n").split("\n"):
        starts = bool(line) and not line[0].isspace() and not line.startswith(_CLOSERS)
        if starts:
            sections.append((next(iter(outline(path, line)), ""), []))
        sections[-1][1].append(line)
    return [section for section in sections if section[1]]


def _stripped(lines: list[str]) -> list[str]:
    return "\n".join(lines).strip("\n").split("\n")


def _with_spacing(lines: list[str], old: list[str]) -> list[str]:
    """Return the lines with as many empty lines at their end as the old section had."""
    count = len(old) - len("\n".join(old).rstrip("\n").split("\n"))
    return [*_stripped(lines), *[""] * count]
