"""Switches the session, project, backend, model, agent, security profile and theme, each with a list to choose from."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ostler.core.errors import OstlerError
from ostler.frontends.tui.keys import ACTIONS, GROUPS
from ostler.frontends.tui.screens.choice_screen import ChoiceScreen
from ostler.frontends.tui.screens.overview_screen import OverviewChoice, OverviewScreen
from ostler.frontends.tui.themes import find_theme, own_themes
from ostler.frontends.tui.widgets.choice_rows import Choice
from ostler.frontends.tui.workers import start_work
from ostler.text.sanitise import sanitise

if TYPE_CHECKING:
    from ostler.frontends.tui.app import FullScreenApp

OPTION_COMMANDS = {"agent": "/agents", "model": "/models", "profile": "/profile"}
OPTION_NAMES = {"agent": "agent", "model": "model", "profile": "security profile"}


class Switcher:
    """Shows the lists and performs the choices."""

    def __init__(self, app: "FullScreenApp") -> None:
        self._app = app

    def show_overview(self) -> None:
        overview = OverviewScreen(self._app.live, self._app.options.projects, self._app.project.cwd)
        self._app.push_screen(overview, self._on_overview)

    def _on_overview(self, choice: OverviewChoice | None) -> None:
        if choice:
            start_work(self._app, partial(self._perform, choice), "switch")

    async def _perform(self, choice: OverviewChoice) -> None:
        cwd = choice.cwd
        projects = self._app.options.projects
        try:
            if choice.in_worktree and projects:
                cwd = await projects.make_worktree(cwd, "")
            await self._app.switch(choice.id, cwd, backend=choice.backend, prompt=choice.prompt)
        except OstlerError:
            if choice.prompt:
                self._app.chat.restore_draft(choice.prompt)
            raise

    async def choose_project(self) -> None:
        projects = self._app.options.projects
        if projects is None:
            return
        folders = dict.fromkeys([self._app.project.cwd, *(state.summary.cwd for state in await projects.sessions())])
        items = [Choice(cwd, sanitise(cwd)) for cwd in folders]
        title = "Switch to another project: choose a folder or type its path"
        self._choose(title, items, self._open_project, chosen=self._app.project.cwd, is_open=True)

    def _open_project(self, cwd: str) -> None:
        start_work(self._app, partial(self._app.switch, "", cwd), "switch")

    async def choose_backend(self) -> None:
        projects, cwd = self._app.options.projects, self._app.project.cwd
        names = await projects.backends(cwd) if projects else ()
        items = [Choice(name, sanitise(name)) for name in names]
        self._choose("Start a session with another backend", items, self._open_backend, is_open=True)

    def _open_backend(self, name: str) -> None:
        start_work(self._app, partial(self._app.switch, "", self._app.project.cwd, backend=name), "switch")

    async def choose_option(self, option_id: str) -> None:
        """Choose the value of an option of the session: agent, model or security profile."""
        controller = self._app.chat.controller
        if controller is None:
            return
        commands = controller.commands
        if option_id == "model":
            offered, _ = await commands.info.available_models()
            chosen = commands.info.current_model(offered)
        else:
            offered = commands.info.choices(option_id)
            if not offered and option_id == "agent":
                offered = list(await controller.services.agents())
            chosen = commands.usage.option(option_id)
        items = [Choice(item.name, sanitise(item.name), sanitise(item.description)) for item in offered]
        title = f"Switch the {OPTION_NAMES[option_id]} of this session"
        self._choose(title, items, partial(self._set_option, option_id), chosen=chosen, is_open=option_id == "model")

    def _set_option(self, option_id: str, value: str) -> None:
        controller = self._app.chat.controller
        if controller:
            line = f"{OPTION_COMMANDS[option_id]} {value}"
            start_work(self._app, partial(controller.submit, line), "submit")

    def choose_prompt(self) -> None:
        """Choose an earlier prompt to edit and send again."""
        prompt = self._app.chat.prompt
        texts = list(dict.fromkeys(reversed(prompt.earlier.prompts)))
        items = [Choice(text, " ".join(sanitise(text).split())) for text in texts]
        self._choose("Your earlier prompts, the newest first", items, prompt.put_text)

    # -- themes --------------------------------------------------------------------------------------------------

    def set_theme(self, name: str) -> None:
        """Switch to a theme and remember it; without a name, let the user choose one and show each."""
        if not name:
            before = self._app.theme
            own = [theme.name for theme in own_themes()]
            others = sorted(set(self._app.available_themes) - set(own))
            items = [Choice(name, name, group="OF OSTLER") for name in own]
            items += [Choice(name, name, group="OF TEXTUAL") for name in others]
            screen = ChoiceScreen("Switch the theme", items, chosen=before, on_select=self._show_theme)
            self._app.push_screen(screen, lambda chosen: self.set_theme(chosen) if chosen else self._show_theme(before))
            return
        if not find_theme(self._app, name):
            self._app.chat.show_note(f"unknown theme: {name}")
            return
        self._show_theme(find_theme(self._app, name))
        self._app.options.remember_theme(self._app.theme)
        self._app.chat.show_note(f"theme {self._app.theme}")

    def _show_theme(self, name: str) -> None:
        self._app.theme = name

    # -- the command palette -------------------------------------------------------------------------------------

    def show_palette(self) -> None:
        """Show all actions of keys and all slash commands, and run the chosen one."""
        from ostler.interaction.builtin_commands import COMMANDS  # after the first frame

        keys = self._app.chat.keys
        actions = [
            Choice(f"key:{action.name}", action.title, key=keys.label(action.name), group=GROUPS[group])
            for group in GROUPS
            for action in ACTIONS
            if action.group == group and action.name not in ("palette", "newline")
        ]
        commands = [Choice(f"/{name}", c.usage, c.description, group="COMMANDS") for name, c in COMMANDS.items()]
        first = [action for action in actions if action.group == GROUPS["general"]]
        rest = [action for action in actions if action.group != GROUPS["general"]]
        self._app.push_screen(ChoiceScreen("Commands and actions", [*first, *commands, *rest]), self._run_chosen)

    async def _run_chosen(self, value: str | None) -> None:
        chat = self._app.chat
        if not value:
            return
        if value.startswith("key:"):
            await chat.action_do(value.removeprefix("key:"))
            return
        from ostler.interaction.builtin_commands import COMMANDS

        command = COMMANDS[value.removeprefix("/")]
        if command.hint and not command.hint.startswith("["):
            chat.prompt.put_text(f"{value} ")
        elif chat.controller:
            start_work(chat, partial(chat.controller.submit, value), "submit")

    def _choose(
        self,
        title: str,
        items: Sequence[Choice],
        on_choice: Callable[[str], None],
        *,
        chosen: str = "",
        is_open: bool = False,
    ) -> None:
        """With `is_open`, text that is not in the list can be chosen, too."""
        if not items and not is_open:
            self._app.chat.show_note("there is nothing to choose from")
            return
        if self._app.screen is self._app.chat:  # otherwise the user opened another dialog meanwhile
            self._app.push_screen(
                ChoiceScreen(title, items, chosen=chosen, is_open=is_open),
                lambda value: on_choice(value) if value else None,
            )
