"""The names of Textual that are not documented are used in three modules, and are those of the pinned version."""

import importlib
import inspect
import pkgutil
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from textual import _compositor, events
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Region
from textual.message_pump import MessagePump
from textual.strip import Strip

from ostler.frontends import tui
from ostler.frontends.tui import painted_app

SOURCE = Path(tui.__file__).parent
CHANGED = "Textual changed: adapt the modules that `INTERNAL` finds, then this test and the pinned version"
INTERNAL = r"from textual[\w.]*\._\w+ import|from textual\.(_|drivers)|\._driver\b|\._compositor\b"


def parameters(function):
    return list(inspect.signature(function).parameters)


def test_installed_version_is_the_pinned_one():
    pinned = re.search(r'tui = \["textual==([\d.]+)"\]', Path("pyproject.toml").read_text())[1]
    assert version("textual") == pinned == "8.2.8", CHANGED


def test_internal_names_are_as_expected():
    assert parameters(App._display) == ["self", "screen", "renderable"], CHANGED
    assert parameters(_compositor.CompositorUpdate.render_segments) == ["self", "console"], CHANGED
    assert parameters(_compositor.LayoutUpdate) == ["strips", "region"], CHANGED
    assert parameters(_compositor.ChopsUpdate) == ["chops", "spans", "chop_ends"], CHANGED
    update = _compositor.LayoutUpdate([[Strip([])]], Region(0, 0, 1, 1))
    assert {"strips", "region"} <= vars(update).keys(), CHANGED
    update = _compositor.ChopsUpdate([], [], [])
    assert {"chops", "spans", "chop_ends"} <= vars(update).keys(), CHANGED
    source = inspect.getsource(App._display)
    assert "renderable.render_segments(console)" in source and "cursor_position" in source, CHANGED
    assert "_driver" in vars(App(None)) and parameters(LinuxDriver._enable_mouse_support) == ["self"], CHANGED
    assert "self._mouse" in inspect.getsource(LinuxDriver._disable_mouse_support), CHANGED
    assert "WriterThread(self._file)" in inspect.getsource(LinuxDriver.start_application_mode), CHANGED
    assert "while not self.exit_event.is_set()" in inspect.getsource(LinuxDriver.run_input_thread), CHANGED
    assert {"fileno", "input_tty"} <= set(LinuxDriver.__init__.__code__.co_names), CHANGED
    assert "XTermParser(self._debug)" in inspect.getsource(LinuxDriver.run_input_thread), CHANGED
    assert parameters(XTermParser._sequence_to_key_events) == ["self", "sequence", "alt"], CHANGED
    assert {"_app", "_loop"} <= set(Driver.__init__.__code__.co_names), CHANGED


def test_no_other_module_uses_internal_modules_of_textual():
    used = [path.name for path in SOURCE.rglob("*.py") if re.search(INTERNAL, path.read_text())]
    assert sorted(used) == ["key_parser.py", "painted_app.py", "terminal_driver.py"]


EVENTS = [kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, events.Event)]
HANDLERS = {f"{prefix}{kind.handler_name}" for kind in EVENTS for prefix in ("", "_")}


def widget_classes():
    for module in pkgutil.walk_packages(tui.__path__, f"{tui.__name__}."):
        for name, kind in vars(importlib.import_module(module.name)).items():
            if isinstance(kind, type) and issubclass(kind, MessagePump) and kind.__module__ == module.name:
                yield name, kind


def test_no_method_has_the_name_of_a_handler_by_accident():
    """Textual calls every method with such a name, and the client ends if it needs other arguments."""
    wrong = [
        f"{name}.{method}"
        for name, kind in widget_classes()
        for method in HANDLERS & set(vars(kind))
        if len(inspect.signature(vars(kind)[method]).parameters) > 2
    ]
    assert not wrong
    assert "on_leave" in HANDLERS


@pytest.mark.req("TU-7")
async def test_every_frame_is_painted(monkeypatch):
    displayed = []
    display = App._display

    def record(self, screen, update):
        displayed.append(type(update).__name__)
        display(self, screen, update)

    monkeypatch.setattr(App, "_display", record)
    app = painted_app.PaintedApp()
    async with app.run_test() as pilot:
        app.redraw()
        await pilot.pause()
    assert "PaintedUpdate" in displayed, CHANGED
    assert not {"LayoutUpdate", "ChopsUpdate"} & set(displayed), CHANGED
