"""Switches the session, project, backend, model, agent, security profile and theme, each with a list to choose from."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ostler.core.errors import OstlerError
from ostler.frontends.tui.screens.choice_screen import Choice, ChoiceScreen
from ostler.frontends.tui.screens.overview_screen import OverviewChoice, OverviewScreen
from ostler.frontends.tui.workers import start_work
from ostler.interaction.services import CommandServices
from ostler.text.sanitise import sanitise

if TYPE_CHECKING:
    from ostler.frontends.tui.app import FullScreenApp

OPTION_COMMANDS = {"agent": "/agents", "model": "/models", "profile": "/profile", "mode": "/mode"}


class Switcher:
    """Shows the lists and performs the choices."""

    def __init__(self, app: "FullScreenApp") -> None:
        self._app = app

    async def show_overview(self) -> None:
        projects = self._app.options.projects
        stored = await projects.sessions() if projects else ()
        self._app.push_screen(OverviewScreen(self._app.live, stored, self._app.project.cwd), self._on_overview)

    def _on_overview(self, choice: OverviewChoice | None) -> None:
        if choice:
            start_work(self._app, partial(self._perform, choice), "switch")

    async def _perform(self, choice: OverviewChoice) -> None:
        cwd = choice.cwd
        projects = self._app.options.projects
        if choice.in_worktree and projects:
            try:
                cwd = await projects.make_worktree(cwd, "")
            except OstlerError as error:
                self._app.chat.show_note(str(error))
                return
        await self._app.switch(choice.id, cwd, prompt=choice.prompt)

    async def choose_project(self) -> None:
        projects = self._app.options.projects
        if projects is None:
            return
        folders = dict.fromkeys([self._app.project.cwd, *(state.summary.cwd for state in await projects.sessions())])
        items = [Choice(cwd, sanitise(cwd)) for cwd in folders]
        self._choose("folder of the project: choose one or type a path", items, self._open_project, is_open=True)

    def _open_project(self, cwd: str) -> None:
        start_work(self._app, partial(self._app.switch, "", cwd), "switch")

    async def choose_backend(self) -> None:
        projects, cwd = self._app.options.projects, self._app.project.cwd
        names = await projects.backends(cwd) if projects else ()
        items = [Choice(name, sanitise(name)) for name in names]
        self._choose("backend of a new session", items, self._open_backend)

    def _open_backend(self, name: str) -> None:
        start_work(self._app, partial(self._app.switch, "", self._app.project.cwd, backend=name), "switch")

    async def choose_option(self, option_id: str) -> None:
        """Choose the value of an option of the session: agent, model or security profile."""
        controller = self._app.chat.controller
        if controller is None:
            return
        items = [
            Choice(c.value, sanitise(c.label or c.value), sanitise(c.description))
            for option in controller.session.info.options
            if option.id == option_id
            for c in option.choices
        ]
        if not items and option_id == "model":
            items = await _model_choices(controller.services)
        elif not items and option_id == "agent":
            agents = await controller.services.agents()
            items = [Choice(agent.name, sanitise(agent.name), sanitise(agent.description)) for agent in agents]
        self._choose(option_id, items, partial(self._set_option, option_id), is_open=option_id == "model")

    def _set_option(self, option_id: str, value: str) -> None:
        controller = self._app.chat.controller
        if controller:
            line = f"{OPTION_COMMANDS[option_id]} {value}"
            start_work(self._app, partial(controller.run_command, line), "submit")

    def _choose(
        self, title: str, items: Sequence[Choice], on_choice: Callable[[str], None], *, is_open: bool = False
    ) -> None:
        """With `is_open`, text that is not in the list can be chosen, too."""
        if not items and not is_open:
            self._app.chat.show_note("there is nothing to choose from")
            return
        self._app.push_screen(
            ChoiceScreen(title, items, is_open=is_open), lambda value: on_choice(value) if value else None
        )


async def _model_choices(services: CommandServices) -> list[Choice]:
    try:
        return [Choice(name, sanitise(name)) for name in await services.models()]
    except OstlerError:
        return []  # the endpoint cannot be reached; a name can still be typed
