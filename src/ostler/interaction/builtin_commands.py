"""Table of the built-in slash commands: name, description, argument, aliases."""

from typing import Literal, get_args

import msgspec

from ostler.core.sessions import Mode, Profile

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

    The method of this name runs it (`CommandDispatcher.handler`). An `idle_only` command can only run between turns.
    """

    usage: str
    description: str
    argument: ArgumentKind = ""
    aliases: str = ""
    idle_only: bool = False

    @property
    def hint(self) -> str:
        """The placeholder of the argument; empty if there is none."""
        return self.usage.partition(" ")[2]


_TABLE = (
    CommandSpec("/help [command]", "list the commands, or explain one", "commands", aliases="?"),
    CommandSpec("/new", "start a new session", aliases="clear", idle_only=True),
    CommandSpec("/sessions [words]", "list the sessions of this folder, newest first, or search them", "words"),
    CommandSpec(
        "/resume [session]",
        "resume a session (default: the previous one)",
        "sessions",
        aliases="continue",
        idle_only=True,
    ),
    CommandSpec(
        "/fork [number]", "continue in a copy of this session, complete or up to a prompt", "turns", idle_only=True
    ),
    CommandSpec("/title words", "show or set the title of this session", "words", aliases="rename"),
    CommandSpec("/undo", "undo the last prompt, including its file changes", idle_only=True),
    CommandSpec("/redo", "redo what was undone last", aliases="unrevert", idle_only=True),
    CommandSpec(
        "/revert [number]", "go back to before a prompt, including files, or list the prompts", "turns", idle_only=True
    ),
    CommandSpec("/compact", "replace the history with a summary now (also /summarize)", aliases="summarize"),
    CommandSpec("/uncompact", "undo the last summary: the model gets the full conversation again"),
    CommandSpec("/context", "show how full the context is"),
    CommandSpec("/status", "show the session, model, context and sandbox"),
    CommandSpec("/cost", "show the tokens and the cost so far"),
    CommandSpec(
        "/models [model]",
        "list the models of your settings and the endpoint, or switch to one",
        "models",
        aliases="model",
    ),
    CommandSpec("/agents [agent]", "list the agents, or switch to one", "agents", aliases="agent"),
    CommandSpec(
        "/mode [mode]",
        f"show or set the mode: {', '.join(get_args(Mode))} or the agent's own (also Shift-Tab)",
        "modes",
    ),
    CommandSpec("/thinking [level]", "show or set how much the model reasons before it answers", "thinking"),
    CommandSpec("/profile [profile]", f"show or set when you are asked: {', '.join(get_args(Profile))}", "profile"),
    CommandSpec(
        "/set [option] [value]",
        "list the options of this session and of its backend, or set one",
        "options",
        aliases="options",
    ),
    CommandSpec("/take-tools", "run the tools of this session of a server on this machine from now on"),
    CommandSpec("/todo", "show the todo list", aliases="todos"),
    CommandSpec("/skills", "list the skills the model can load"),
    CommandSpec(
        "/mcp [restart|disable|enable NAME]",
        "show the MCP servers and their errors, or restart, disable or enable one",
        "words",
    ),
    CommandSpec("/permissions [number]", "list the rules you added in this session, or revoke one"),
    CommandSpec("/diff [path]", "show the changes since the last commit", "files"),
    CommandSpec("/memory", "edit the rules for this folder (AGENTS.md)"),
    CommandSpec("/init [words]", "let the model write an AGENTS.md for this folder", "words"),
    CommandSpec("/export [file]", "write this session to a file (.md, .html or .json), without secrets", "files"),
    CommandSpec("/doctor", "check this machine and show what is missing"),
    CommandSpec("/details", "show tool calls in full, or shortened again (also Ctrl-O)"),
    CommandSpec("/theme [theme]", "list the colour themes, or switch to one", "themes", aliases="themes"),
    CommandSpec(
        "/steer words", "send text to the running turn; the model sees it before its next step (also Alt-S)", "words"
    ),
    CommandSpec("/quit", "quit (also /exit, Ctrl-D)", aliases="exit q"),
)
COMMANDS = {command.usage.split()[0].removeprefix("/"): command for command in _TABLE}
ALIASES = {alias: name for name, command in COMMANDS.items() for alias in command.aliases.split()}
COMPLETION_NAMES = (*COMMANDS, "exit", "summarize")


def requires_idle(name: str) -> bool:
    """Return whether a command can only run between turns."""
    command = COMMANDS.get(ALIASES.get(name, name))
    return command is not None and command.idle_only
