"""An ask as lines: what would happen, to what, for which reason, and which answers there are.

Whoever judges must see all of it, so nothing is shortened and what cannot be seen is spelled out.
"""

from collections.abc import Sequence

from ostler.core.display import DisplayBlock, DisplayDiff, DisplayFields, DisplayText
from ostler.core.events import PermissionAsked
from ostler.core.permission import Need, Permission
from ostler.rendering.blocks import render_display_block
from ostler.rendering.diffs import has_crlf, render_diff_for_approval
from ostler.rendering.style import Styler
from ostler.text.sanitise import escape_invisible


def render_ask(ask: PermissionAsked, paint: Styler) -> list[str]:
    """The ask without its answers."""
    permission = ask.permission
    lines = [paint(line, "bold", "yellow") for line in _hanging_lines("? ", permission.title)]
    for part in permission.preview.blocks:
        lines += [f"  {line}" for line in _preview_lines(part, permission.title, paint)]
    if permission.reason and not _shows_reason(permission):
        lines += _hanging_lines("  the model's reason: ", permission.reason)
    lines += [line for need in dict.fromkeys(permission.needs) for line in _need_lines(need, permission.title, paint)]
    lines += [paint(f"  {why}", "red") for why in _impact_lines(permission)]
    if ask.once_only:
        lines.append(paint("  this kind of thing can be allowed only once, each time anew", "dim"))
    return lines


def rule_lines(permission: Permission) -> list[str]:
    """The rules that an answer for longer would make, to the letter."""
    rules = (
        f"{escape_invisible(need.key)}: {escape_invisible(need.rule_pattern or need.subject)}"
        for need in permission.needs
    )
    return list(dict.fromkeys(rules))


def render_menu(answers: Sequence[tuple[str, str]], rules: Sequence[str], paint: Styler) -> list[str]:
    """The answers with their keys, and below the last one that lasts the rules it would make."""
    lines: list[str] = []
    lasting = [key for key, _ in answers if key in ("s", "a")]
    for key, label in answers:
        lines.append(f"  {paint(f'[{key}]', 'bold')} {label}")
        if [key] == lasting[-1:]:
            lines += [paint(f"      rule for {' and '.join(lasting)}: {rule}", "dim") for rule in rules]
    return lines


def _hanging_lines(prefix: str, text: str) -> list[str]:
    first, *more = escape_invisible(text).split("\n")
    return [prefix + first, *(" " * len(prefix) + line for line in more)]


def _preview_lines(block: DisplayBlock, title: str, paint: Styler) -> list[str]:
    """One part of the preview; what the title says word for word is not said again."""
    match block:
        case DisplayDiff(path, diff, operation, additions, deletions, cut):
            head = f"{escape_invisible(path)}: {operation}, +{additions} -{deletions}"
            ending = [paint("[the diff is longer than can be shown]", "red")] if cut else []
            crlf = [paint("lines end with \\r\\n", "dim")] if has_crlf(diff) else []
            return [head, *crlf, *render_diff_for_approval(diff, paint), *ending]
        case DisplayFields(pairs):
            new = ((name, value) for name, value in pairs if not title.endswith(f" {value}"))
            return [line for name, value in new for line in _hanging_lines(f"{name}: ", value)]
        case DisplayText(text):
            return escape_invisible(text).splitlines()
        case _:
            return render_display_block(block, paint, full=True)


def _shows_reason(permission: Permission) -> bool:
    return any(
        name.startswith("reason")
        for part in permission.preview.blocks
        if isinstance(part, DisplayFields)
        for name, _ in part.pairs
    )


def _need_lines(need: Need, title: str, paint: Styler) -> list[str]:
    """What is needed, unless the title says just that."""
    if title.partition(" ")[2] == need.subject and need.danger == "ordinary":
        return []
    return [paint(line, "dim") for line in _hanging_lines(f"  needs {need.key}: ", need.subject)]


def _impact_lines(permission: Permission) -> list[str]:
    told = {
        value
        for part in permission.preview.blocks
        if isinstance(part, DisplayFields)
        for name, value in part.pairs
        if name == "impact"
    }
    return [
        f"impact: {escape_invisible(why)}"
        for why in dict.fromkeys(n.reason for n in permission.needs)
        if why and why not in told
    ]
