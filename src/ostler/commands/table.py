"""The table of our own commands: their names, what they do, and what they take."""

from typing import Literal

import msgspec

Takes = Literal[
    "", "models", "agents", "sessions", "turns", "files", "themes", "commands", "words", "modes", "thinking", "profile"
]


class Entry(msgspec.Struct, frozen=True):
    """One command; `takes` says what its argument is chosen from."""

    told: str
    takes: Takes = ""
    hint: str = ""


COMMANDS: dict[str, Entry] = {
    "help": Entry("this list; with a command, what it does", "commands", "[command]"),
    "new": Entry("begin a new session"),
    "sessions": Entry("the sessions here, newest first; with words, those that have them", "words", "[words]"),
    "resume": Entry("go on with an earlier session (alone: the one before this)", "sessions", "[session]"),
    "fork": Entry("go on in a copy of this session, whole or from before a prompt", "turns", "[number]"),
    "title": Entry("give this session a title", "words", "words"),
    "undo": Entry("take back the last prompt: what was said, and what it changed in the files"),
    "redo": Entry("do again what was taken back"),
    "revert": Entry("go back to before a prompt, files and all; alone: the prompts by number", "turns", "[number]"),
    "compact": Entry("make the history shorter now: a summary takes its place (also /summarize)"),
    "uncompact": Entry("take the last summary back: the model is told the conversation itself again"),
    "context": Entry("how full the context is"),
    "status": Entry("the session, the model, the context, the sandbox"),
    "cost": Entry("what was used so far"),
    "models": Entry(
        "the models of your settings and of the endpoint; with one, take it from now on", "models", "[model]"
    ),
    "agents": Entry("the agents; with a name, work with that one from now on", "agents", "[agent]"),
    "mode": Entry("the modes of an ACP agent; else like /agents, of which plan changes nothing", "modes", "[mode]"),
    "thinking": Entry("how much the model reasons before it answers", "thinking", "[level]"),
    "profile": Entry("when you are asked: paranoid, balanced or god_mode", "profile", "[profile]"),
    "todo": Entry("the plan"),
    "skills": Entry("the skills the model can load"),
    "mcp": Entry("the MCP servers"),
    "permissions": Entry("the rules you gave; with a number, take that one back", "", "[number]"),
    "diff": Entry("what differs from the last commit", "files", "[path]"),
    "memory": Entry("edit the rules for this folder (AGENTS.md)"),
    "init": Entry("let the model write an AGENTS.md for this folder", "words", "[words]"),
    "export": Entry("write this session to a file (.md, .html or .json), without secrets", "files", "[file]"),
    "doctor": Entry("what this machine has and lacks"),
    "details": Entry("show calls in full, or in short again (also Ctrl-O)"),
    "theme": Entry("the colours; with a name, take that one", "themes", "[theme]"),
    "steer": Entry("words for the turn that runs, seen before its next step (also Alt-S)", "words", "words"),
    "quit": Entry("leave (also /exit, Ctrl-D)"),
}
ALIASES = {
    "exit": "quit",
    "q": "quit",
    "clear": "new",
    "model": "models",
    "agent": "agents",
    "summarize": "compact",
    "continue": "resume",
    "rename": "title",
    "themes": "theme",
    "todos": "todo",
    "unrevert": "redo",
    "?": "help",
}
NAMES = (*COMMANDS, "exit", "summarize")  # what is completed: the requirements' names and ours
_BETWEEN_TURNS = frozenset(("new", "resume", "fork", "undo", "redo", "revert"))


def leaves_turn(name: str) -> bool:
    """Whether a command cannot be run while a turn is."""
    return ALIASES.get(name, name) in _BETWEEN_TURNS
