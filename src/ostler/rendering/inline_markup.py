"""Renders the inline markup of Markdown: code, bold, italic, strikethrough, links and images; markup is not nested.

An image looks like a link.
`__name__` is not markup here, because in answers about code it is usually a name.
"""

import re

from ostler.rendering.style import Styler

INLINE = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|\*\*\*(?P<strong>[^*]+)\*\*\*"
    r"|\*\*(?P<bold>[^*]+)\*\*"
    r"|(?<![\w*])\*(?P<italic>[^*\s][^*]*)\*(?![\w*])"
    r"|(?<![\w_])_(?P<slanted>[^_\s][^_]*)_(?![\w_])"
    r"|~~(?P<strike>[^~]+)~~"
    r"|!?\[(?P<label>[^\]\[]+)\]\((?P<target>[^()\s]+)\)"
)
NEEDS_NEXT = ("italic", "slanted")  # whether these end depends on the next character
_STYLES = {
    "code": ("cyan",),
    "strong": ("bold", "italic"),
    "bold": ("bold",),
    "italic": ("italic",),
    "slanted": ("italic",),
    "strike": ("strike",),
}


def render_inline(text: str, paint: Styler) -> str:
    """Render the markup of a text."""
    return INLINE.sub(lambda match: render_inline_match(match, paint), text)


def render_inline_match(match: "re.Match[str]", paint: Styler) -> str:
    """Render one phrase found by `INLINE`."""
    for name, styles in _STYLES.items():
        if match[name]:
            return paint(match[name], *styles)
    label, target = match["label"], match["target"]
    return paint(label, "underline") + ("" if label == target else paint(f" ({target})", "dim"))


def strip_markup(text: str) -> str:
    """Return the text without its marks; of a link, the label."""
    return INLINE.sub(lambda match: next(filter(None, match.groups())), text)
