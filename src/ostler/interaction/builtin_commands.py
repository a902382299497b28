"""Table of the built-in slash commands: name, description, function, argument, aliases."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from ostler.core.sessions import Mode, Profile

if TYPE_CHECKING:
    from ostler.interaction.dispatcher import CommandDispatcher
    from ostler.interaction.results import SlashCommandResult

ArgumentKind = Literal[
    "",
    "models",
    "agents",
    "sessions",
    "turns",
    "files",
    "themes",
    "commands",
    "words",
    "modes",
    "thinking",
    "profile",
    "options",
]


class CommandSpec(msgspec.Struct, frozen=True):
    """A built-in command. `usage` is its name, with a placeholder if it takes an argument of the kind `argument`.

    `handler` returns the function that runs it for a session. An `idle_only` command can only run between turns.
    """

    usage: str
    description: str
    handler: "Callable[[CommandDispatcher], Callable[[str], Awaitable[SlashCommandResult]]]"
    argument: ArgumentKind = ""
    aliases: str = ""
    idle_only: bool = False

    @property
    def hint(self) -> str:
        """The placeholder of the argument; empty if there is none."""
        return self.usage.partition(" ")[2]


_TABLE = (
    CommandSpec("/help [command]", "list the commands, or explain one", lambda on: on.help, "commands", aliases="?"),
    CommandSpec("/new", "start a new session", lambda on: on.new, aliases="clear", idle_only=True),
    CommandSpec(
        "/sessions [words]",
        "list the sessions of this folder, newest first, or search them",
        lambda on: on.sessions.sessions,
        "words",
    ),
    CommandSpec(
        "/resume [session]",
        "resume a session (default: the previous one)",
        lambda on: on.sessions.resume,
        "sessions",
        aliases="continue",
        idle_only=True,
    ),
    CommandSpec(
        "/fork [number]",
        "continue in a copy of this session, complete or up to a prompt",
        lambda on: on.sessions.fork,
        "turns",
        idle_only=True,
    ),
    CommandSpec(
        "/title words", "show or set the title of this session", lambda on: on.sessions.title, "words", aliases="rename"
    ),
    CommandSpec(
        "/undo", "undo the last prompt, including its file changes", lambda on: on.sessions.undo, idle_only=True
    ),
    CommandSpec("/redo", "redo what was undone last", lambda on: on.sessions.redo, aliases="unrevert", idle_only=True),
    CommandSpec(
        "/revert [number]",
        "go back to before a prompt, including files, or list the prompts",
        lambda on: on.sessions.revert,
        "turns",
        idle_only=True,
    ),
    CommandSpec(
        "/compact",
        "replace the history with a summary now (also /summarize)",
        lambda on: on.sessions.compact,
        aliases="summarize",
    ),
    CommandSpec(
        "/uncompact",
        "undo the last summary: the model gets the full conversation again",
        lambda on: on.sessions.uncompact,
    ),
    CommandSpec("/context", "show how full the context is", lambda on: on.info.context),
    CommandSpec("/status", "show the session, model, context and sandbox", lambda on: on.info.status),
    CommandSpec("/cost", "show the tokens and the cost so far", lambda on: on.info.cost),
    CommandSpec(
        "/models [model]",
        "list the models of your settings and the endpoint, or switch to one",
        lambda on: on.info.models,
        "models",
        aliases="model",
    ),
    CommandSpec(
        "/agents [agent]", "list the agents, or switch to one", lambda on: on.info.agents, "agents", aliases="agent"
    ),
    CommandSpec(
        "/mode [mode]",
        f"show or set the mode: {', '.join(get_args(Mode))} or the agent's own (also Shift-Tab)",
        lambda on: on.info.mode,
        "modes",
    ),
    CommandSpec(
        "/thinking [level]",
        "show or set how much the model reasons before it answers",
        lambda on: on.info.thinking,
        "thinking",
    ),
    CommandSpec(
        "/profile [profile]",
        f"show or set when you are asked: {', '.join(get_args(Profile))}",
        lambda on: on.info.profile,
        "profile",
    ),
    CommandSpec(
        "/set [option] [value]",
        "list the options of this session and of its backend, or set one",
        lambda on: on.info.set,
        "options",
        aliases="options",
    ),
    CommandSpec(
        "/take-tools",
        "run the tools of this session of a server on this machine from now on",
        lambda on: on.sessions.take_tools,
    ),
    CommandSpec("/todo", "show the todo list", lambda on: on.info.todo, aliases="todos"),
    CommandSpec("/skills", "list the skills the model can load", lambda on: on.info.skills),
    CommandSpec(
        "/mcp [restart|disable|enable NAME]",
        "show the MCP servers and their errors, or restart, disable or enable one",
        lambda on: on.info.mcp,
        "words",
    ),
    CommandSpec(
        "/permissions [number]",
        "list the rules you added in this session, or revoke one",
        lambda on: on.info.permissions,
    ),
    CommandSpec("/diff [path]", "show the changes since the last commit", lambda on: on.diff, "files"),
    CommandSpec("/memory", "edit the rules for this folder (AGENTS.md)", lambda on: on.memory),
    CommandSpec("/init [words]", "let the model write an AGENTS.md for this folder", lambda on: on.init, "words"),
    CommandSpec(
        "/export [file]",
        "write this session to a file (.md, .html or .json), without secrets",
        lambda on: on.sessions.export,
        "files",
    ),
    CommandSpec("/doctor", "check this machine and show what is missing", lambda on: on.info.doctor),
    CommandSpec("/details", "show tool calls in full, or shortened again (also Ctrl-O)", lambda on: on.details),
    CommandSpec(
        "/theme [theme]", "list the colour themes, or switch to one", lambda on: on.theme, "themes", aliases="themes"
    ),
    CommandSpec(
        "/steer words",
        "send text to the running turn; the model sees it before its next step (also Alt-S)",
        lambda on: on.steer,
        "words",
    ),
    CommandSpec("/quit", "quit (also /exit, Ctrl-D)", lambda on: on.quit, aliases="exit q"),
)
COMMANDS = {command.usage.split()[0].removeprefix("/"): command for command in _TABLE}
ALIASES = {alias: name for name, command in COMMANDS.items() for alias in command.aliases.split()}
COMPLETION_NAMES = (*COMMANDS, "exit", "summarize")


def requires_idle(name: str) -> bool:
    """Return whether a command can only run between turns."""
    command = COMMANDS.get(ALIASES.get(name, name))
    return command is not None and command.idle_only
