"""The styles of text in the colours of a theme, changed as little as needed to be readable."""

from collections.abc import Mapping

from rich.style import Style
from textual.color import Color, ColorParseError
from textual.widget import Widget

MIN_CONTRAST = 4.5  # AA of WCAG for text
BLEND_STEPS = 20


def palette_of(widget: Widget) -> tuple[Style, dict[str, Style]]:
    """Return the style of plain text and the styles by name, for the theme of the app."""
    background, foreground = widget.background_colors[1], widget.colors[3]
    if widget.app.no_color or background.ansi is not None or foreground.ansi is not None:
        return widget.rich_style, {**_terminal_styles(), **_text_styles()}
    maker = _StyleMaker(widget.app.theme_variables, background, foreground)
    return widget.rich_style, {**maker.styles(), **_text_styles()}


def _text_styles() -> dict[str, Style]:
    return {
        "bold": Style(bold=True),
        "italic": Style(italic=True),
        "strike": Style(strike=True),
        "underline": Style(underline=True),
        "match": Style(reverse=True),
    }


def _terminal_styles() -> dict[str, Style]:
    """Return the styles for the colours of the terminal, which are not known, and for a terminal without colours."""
    names = ("red", "green", "yellow", "blue", "magenta", "cyan")
    return {
        **{name: Style(color=name) for name in names},
        "dim": Style(dim=True),
        "selected": Style(reverse=True),
        "cursor": Style(reverse=True),
        "prompt": Style(bold=True),
        "added_line": Style(color="green"),
        "removed_line": Style(color="red"),
        "added": Style(color="green", bold=True, underline=True),
        "removed": Style(color="red", bold=True, underline=True),
        "thumb": Style(color="blue"),
        "track": Style(dim=True),
    }


class _StyleMaker:
    """Makes the styles for one background."""

    def __init__(self, variables: Mapping[str, str], background: Color, foreground: Color) -> None:
        self._variables = variables
        self._background = background
        self._foreground = foreground

    def styles(self) -> dict[str, Style]:
        muted = _readable(self._background.blend(self._foreground, 0.5), self._background, self._foreground)
        return {
            "dim": Style(color=muted.hex6),
            "red": self._text("error"),
            "green": self._text("success"),
            "yellow": self._text("warning"),
            "blue": self._text("primary"),
            "magenta": self._text("secondary"),
            "cyan": self._text("accent"),
            "selected": Style(bgcolor=self._background.blend(self._colour("primary"), 0.15).hex6),
            "cursor": self._tinted("primary", 0.35),
            "prompt": self._tinted("primary", 0.12, bold=True),
            "added_line": self._tinted("success", 0.14, "success"),
            "removed_line": self._tinted("error", 0.14, "error"),
            "added": self._tinted("success", 0.3, bold=True),
            "removed": self._tinted("error", 0.3, bold=True),
            "thumb": self._text("primary"),
            "track": Style(color=self._colour("panel").hex6),
        }

    def _colour(self, name: str) -> Color:
        """Return a colour of the theme; plain text if the theme has none that is known."""
        try:
            colour = Color.parse(self._variables.get(name, ""))
        except ColorParseError:
            return self._foreground
        return self._foreground if colour.ansi is not None else colour

    def _text(self, name: str) -> Style:
        return Style(color=_readable(self._colour(name), self._background, self._foreground).hex6)

    def _tinted(self, name: str, share: float, text: str = "", *, bold: bool = False) -> Style:
        """Return a background with a share of a colour, below plain text or text of a colour."""
        background = self._background.blend(self._colour(name), share)
        front = self._colour(text) if text else self._foreground
        return Style(color=_readable(front, background, self._foreground).hex6, bgcolor=background.hex6, bold=bold)


def _readable(colour: Color, background: Color, foreground: Color) -> Color:
    """Blend a colour with the colour of plain text until its contrast is high enough."""
    for step in range(BLEND_STEPS):
        blended = colour.blend(foreground, step / BLEND_STEPS)
        if contrast(blended, background) >= MIN_CONTRAST:
            return blended
    return foreground


def contrast(first: Color, second: Color) -> float:
    """Return the contrast of two colours as WCAG defines it: from 1 (the same) to 21 (black and white)."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: Color) -> float:
    parts = (value / 255 for value in (colour.r, colour.g, colour.b))
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
