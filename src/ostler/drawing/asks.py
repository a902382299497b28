"""An ask as lines: what would happen, to what, for which reason, and which answers there are.

Whoever judges must see all of it, so nothing is shortened and what cannot be seen is spelled out.
"""

from collections.abc import Sequence

from ostler.drawing.diffs import has_crlf, judged_lines
from ostler.drawing.lines import display_lines
from ostler.drawing.paint import Paint
from ostler.text.sanitise import visible
from ostler.vocabulary.display import DiffShown, DisplayBlock, Fields, Note
from ostler.vocabulary.events import PermissionAsked
from ostler.vocabulary.permission import Need, Permission


def ask_lines(asked: PermissionAsked, paint: Paint) -> list[str]:
    """The ask without its answers."""
    permission = asked.permission
    lines = [paint(line, "bold", "yellow") for line in _several("? ", permission.title)]
    for part in permission.preview.blocks:
        lines += [f"  {line}" for line in _part_lines(part, permission.title, paint)]
    if permission.reason and not _tells_reason(permission):
        lines += _several("  the model's reason: ", permission.reason)
    lines += [line for need in dict.fromkeys(permission.needs) for line in _need_lines(need, permission.title, paint)]
    lines += [paint(f"  {why}", "red") for why in _impacts(permission)]
    if asked.once_only:
        lines.append(paint("  this kind of thing can be allowed only once, each time anew", "dim"))
    return lines


def rule_lines(permission: Permission) -> list[str]:
    """The rules that an answer for longer would make, to the letter."""
    rules = (f"{visible(need.key)}: {visible(need.always or need.subject)}" for need in permission.needs)
    return list(dict.fromkeys(rules))


def menu_lines(answers: Sequence[tuple[str, str]], rules: Sequence[str], paint: Paint) -> list[str]:
    """The answers with their keys, and below the last one that lasts the rules it would make."""
    lines: list[str] = []
    lasting = [key for key, _ in answers if key in ("s", "a")]
    for key, label in answers:
        lines.append(f"  {paint(f'[{key}]', 'bold')} {label}")
        if [key] == lasting[-1:]:
            lines += [paint(f"      rule for {' and '.join(lasting)}: {rule}", "dim") for rule in rules]
    return lines


def _several(head: str, text: str) -> list[str]:
    first, *more = visible(text).split("\n")
    return [head + first, *(" " * len(head) + line for line in more)]


def _part_lines(part: DisplayBlock, title: str, paint: Paint) -> list[str]:
    """One part of the preview; what the title says word for word is not said again."""
    match part:
        case DiffShown(path, diff, operation, additions, deletions, cut):
            head = f"{visible(path)}: {operation}, +{additions} -{deletions}"
            ending = [paint("[the diff is longer than can be shown]", "red")] if cut else []
            crlf = [paint("lines end with \\r\\n", "dim")] if has_crlf(diff) else []
            return [head, *crlf, *judged_lines(diff, paint), *ending]
        case Fields(pairs):
            new = ((name, value) for name, value in pairs if not title.endswith(f" {value}"))
            return [line for name, value in new for line in _several(f"{name}: ", value)]
        case Note(text):
            return visible(text).splitlines()
        case _:
            return display_lines(part, paint, whole=True)


def _tells_reason(permission: Permission) -> bool:
    return any(
        name.startswith("reason")
        for part in permission.preview.blocks
        if isinstance(part, Fields)
        for name, _ in part.pairs
    )


def _need_lines(need: Need, title: str, paint: Paint) -> list[str]:
    """What is needed, unless the title says just that."""
    if title.partition(" ")[2] == need.subject and need.danger == "ordinary":
        return []
    return [paint(line, "dim") for line in _several(f"  needs {need.key}: ", need.subject)]


def _impacts(permission: Permission) -> list[str]:
    told = {
        value
        for part in permission.preview.blocks
        if isinstance(part, Fields)
        for name, value in part.pairs
        if name == "impact"
    }
    return [
        f"impact: {visible(why)}" for why in dict.fromkeys(n.why for n in permission.needs) if why and why not in told
    ]
