"""The themes of the full-screen client: those of Textual and a set of its own."""

from functools import cache
from typing import NamedTuple

from rich.style import Style
from textual.app import App
from textual.color import Color, ColorParseError
from textual.theme import Theme
from textual.widget import Widget

DEFAULT_THEME = "studio-dark"
MIN_CONTRAST = 4.5  # AA of WCAG for text
BLEND_STEPS = 20
# Names of the line client and of other programs.
ALIASES = {
    "default": "studio-dark",
    "dark": "studio-dark",
    "light": "studio-light",
    "mono": "high-contrast",
    "claude": "studio-dark",
    "gemini": "studio-light",
    "hacker_green": "hacker-green",
}


class _Colours(NamedTuple):
    """Background, surface, panel, foreground, then the colours with a meaning."""

    background: str
    surface: str
    panel: str
    foreground: str
    primary: str
    accent: str
    success: str
    warning: str
    error: str
    dark: bool = True


_COLOURS = {
    "studio-dark": _Colours(
        "#16181d", "#1d2027", "#262a33", "#d6dae2", "#7aa2f7", "#6ec7c2", "#9ece6a", "#e0af68", "#f07178"
    ),
    "studio-light": _Colours(
        "#fbfbf9", "#f1f1ec", "#e4e4dc", "#26282e", "#2f5fb3", "#0f766e", "#2e7d32", "#9a5b00", "#b3261e", dark=False
    ),
    "high-contrast": _Colours(
        "#000000", "#000000", "#303030", "#ffffff", "#66ccff", "#ffff00", "#00ff00", "#ffff00", "#ff6666"
    ),
    "hacker-green": _Colours(
        "#050805", "#0a110a", "#112011", "#7dff8a", "#39ff57", "#b6ffbd", "#39ff57", "#d7ff5f", "#ff6b57"
    ),
    "high-tech-2026": _Colours(
        "#0b1020", "#121a30", "#1b2745", "#dce6ff", "#22d3ee", "#a78bfa", "#34d399", "#fbbf24", "#fb7185"
    ),
    "atari-800xl": _Colours(
        "#0a3a5c", "#0d4770", "#125888", "#cfe8f7", "#8fd0f5", "#f5d98f", "#a5e89a", "#f5d98f", "#ff9a8a"
    ),
    "commodore-c64": _Colours(
        "#40318d", "#4a3a9c", "#5a4bb0", "#d0c8ff", "#a59bf0", "#9ae29b", "#9ae29b", "#eef18f", "#f0938b"
    ),
    "zx-spectrum": _Colours(
        "#000000", "#0d0d0d", "#1f1f1f", "#e0e0e0", "#00d7d7", "#ff66ff", "#00e000", "#e0e000", "#ff5555"
    ),
    "atari-st": _Colours(
        "#ffffff", "#f0fff0", "#c8f0c8", "#101010", "#006000", "#007a3d", "#006b1f", "#8a5a00", "#b00020", dark=False
    ),
    "amiga-500": _Colours(
        "#0055aa", "#0a60b8", "#1a70c8", "#ffffff", "#ffaa33", "#ffcc66", "#aef0a0", "#ffcc66", "#ffb0a8"
    ),
    "ms-dos-xt-pc": _Colours(
        "#0000a8", "#0000b8", "#1c1cd0", "#e8e8e8", "#55ffff", "#ffff55", "#55ff55", "#ffff55", "#ff8585"
    ),
    "mac-one": _Colours(
        "#ffffff", "#f4f4f4", "#dddddd", "#000000", "#000000", "#333333", "#1e5c1e", "#6b4a00", "#8f0000", dark=False
    ),
    "mac-classic": _Colours(
        "#dddddd", "#e8e8e8", "#cccccc", "#1a1a1a", "#333399", "#5a4fcf", "#1f6b2d", "#7a4b00", "#a31515", dark=False
    ),
    "mac-aqua": _Colours(
        "#ecf3fb", "#ffffff", "#d5e5f7", "#1c2733", "#1467c8", "#0a84a5", "#1f7a3a", "#9a5b00", "#c0281f", dark=False
    ),
}


@cache
def own_themes() -> tuple[Theme, ...]:
    """Return the themes that are not part of Textual."""
    return tuple(
        Theme(
            name,
            primary=colours.primary,
            secondary=colours.accent,
            accent=colours.accent,
            warning=colours.warning,
            error=colours.error,
            success=colours.success,
            foreground=colours.foreground,
            background=colours.background,
            surface=colours.surface,
            panel=colours.panel,
            dark=colours.dark,
        )
        for name, colours in _COLOURS.items()
    )


def find_theme(app: App[int], name: str) -> str:
    """Return the name of the theme that a name or alias means, or an empty string."""
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    wanted = ALIASES.get(name.strip().lower(), ALIASES.get(wanted, wanted))
    return wanted if wanted in app.available_themes else ""


def palette_of(widget: Widget) -> tuple[Style, dict[str, Style]]:
    """Return the style of plain text and the styles by name, for the theme of the app."""
    variables = widget.app.theme_variables
    base = widget.rich_style
    background, foreground = widget.background_colors[1], widget.colors[3]
    has_colours = background.ansi is None and foreground.ansi is None

    def colour(name: str) -> str | None:
        """Return a colour of text, changed as little as needed to be readable on the background of the widget."""
        value = _rich_colour(variables.get(name, ""))
        return _readable(Color.parse(value), background, foreground).hex6 if value and has_colours else value

    muted = _readable(background.blend(foreground, 0.5), background, foreground).hex6 if has_colours else None
    dim = Style(color=muted, dim=widget.app.no_color or None) if muted else Style(dim=True)
    palette = {
        "bold": Style(bold=True),
        "dim": dim,
        "italic": Style(italic=True),
        "underline": Style(underline=True),
        "red": Style(color=colour("error")),
        "green": Style(color=colour("success")),
        "yellow": Style(color=colour("warning")),
        "blue": Style(color=colour("primary")),
        "magenta": Style(color=colour("secondary")),
        "cyan": Style(color=colour("accent")),
        "match": Style(reverse=True),
        "selected": Style(bgcolor=_rich_colour(variables.get("panel", "")), reverse=widget.app.no_color or None),
        "thumb": Style(color=colour("primary")),
        "track": Style(color=_rich_colour(variables.get("panel", ""))),
    }
    return base, palette


def _rich_colour(value: str) -> str | None:
    try:
        colour = Color.parse(value)
    except ColorParseError:
        return None
    return None if colour.ansi is not None else colour.hex6


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
