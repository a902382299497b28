"""Detects fork bombs in functions, loops and one-liners."""

import re

from ostler.policy.shell.syntax_tree import (
    CommandNode,
    CompoundNode,
    FunctionNode,
    LiteralPart,
    PipelineNode,
    ScriptNode,
    ShellNode,
)

_FORK_BOMB_CODE = re.compile(
    r"\bfork\s*(?:\(\s*\))?\s*while\b|\b(?:while|until|for|loop)\b[^;\n]{0,200}?\bfork\b"
    r"|\b(?:while|for|loop)\b\s*(?:\(?\s*(?:1|true|True|;;|:)\s*\)?)?\s*[:{]?[^}]{0,80}?\bfork\b"
)


def is_fork_bomb(function: FunctionNode) -> bool:
    """Return whether a function always calls itself in the background or in parallel."""
    calls = _self_calls(function.body, function.name, False)
    return sum(calls) >= 2 or any(in_background for in_background in calls)


def _self_calls(node: ShellNode, name: str, in_background: bool) -> list[bool]:
    """Return one entry for each unconditional self-call; True if it runs in the background or in parallel."""
    if isinstance(node, CommandNode):
        first = node.words[0].parts if node.words else ()
        called = "".join(part.text for part in first if isinstance(part, LiteralPart))
        return [in_background] if called == name else []
    if isinstance(node, PipelineNode):
        return [
            call
            for stage in node.stages
            for call in _self_calls(stage, name, in_background or _has_several_calls(node, name))
        ]
    if isinstance(node, CompoundNode) and node.kind in {"group", "subshell"}:
        return _self_calls_in_script(node.scripts[0], name, in_background)
    return []


def _has_several_calls(pipeline: PipelineNode, name: str) -> bool:
    return sum(bool(_self_calls(stage, name, False)) for stage in pipeline.stages if isinstance(stage, CommandNode)) > 1


def _self_calls_in_script(script: ScriptNode, name: str, in_background: bool) -> list[bool]:
    return [
        call
        for item in script.items
        if item.operator == ";"
        for call in _self_calls(item.node, name, in_background or item.background)
    ]


_ENDLESS_CONDITIONS = frozenset({":", "true", "false"})  # an `until` loop does not end on false
_BLOCKING_COMMANDS = frozenset({"sleep", "wait", "read", "break", "exit", "return", "inotifywait", "nc", "fg"})


def is_endless_spawn_loop(loop: CompoundNode) -> bool:
    """Return whether an endless loop starts background processes without ever waiting."""
    if loop.kind != "loop":
        return False
    header = "".join(part.text for word in loop.words for part in word.parts if isinstance(part, LiteralPart))
    endless = ";;" in header.replace(" ", "") if loop.words else _first_words(loop.scripts[0]) <= _ENDLESS_CONDITIONS
    in_background, commands = _background_and_words(loop.scripts[-1])
    return endless and in_background and not commands & _BLOCKING_COMMANDS


def _first_words(script: ScriptNode) -> set[str]:
    return {node.words[0].raw for item in script.items if isinstance(node := item.node, CommandNode) and node.words}


def _background_and_words(script: ScriptNode) -> tuple[bool, set[str]]:
    """Return whether anything runs in the background, and the names of the foreground commands."""
    in_background, words = False, _first_words(ScriptNode([item for item in script.items if not item.background]))
    for item in script.items:
        in_background = in_background or item.background
        for inner in item.node.scripts if isinstance(item.node, CompoundNode) and not item.background else ():
            nested = _background_and_words(inner)
            in_background, words = in_background or nested[0], words | nested[1]
    return in_background, words


def is_fork_bomb_code(code: str) -> bool:
    """Return whether code forks in an endless loop."""
    return "fork" in code and bool(_FORK_BOMB_CODE.search(code))
