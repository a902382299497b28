"""Fork bombs: functions and one-liners whose only end is a machine that stands still."""

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
    """Whether a function does nothing but start itself, more than once at a time."""
    calls = _self_calls(function.body, function.name, False)
    return sum(calls) >= 2 or any(behind for behind in calls)


def _self_calls(node: ShellNode, name: str, in_background: bool) -> list[bool]:
    """One entry for each unconditional call of the function inside itself; True when it runs in the background."""
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


_ENDLESS_CONDITIONS = frozenset({":", "true", "false"})  # false ends no `until`
_BLOCKING_COMMANDS = frozenset({"sleep", "wait", "read", "break", "exit", "return", "inotifywait", "nc", "fg"})


def is_endless_spawn_loop(loop: CompoundNode) -> bool:
    """Whether a loop that never ends starts something in the background in each round, and waits for nothing."""
    if loop.kind != "loop":
        return False
    head = "".join(part.text for word in loop.words for part in word.parts if isinstance(part, LiteralPart))
    endless = ";;" in head.replace(" ", "") if loop.words else _first_words(loop.scripts[0]) <= _ENDLESS_CONDITIONS
    behind, words = _background_and_words(loop.scripts[-1])
    return endless and behind and not words & _BLOCKING_COMMANDS


def _first_words(script: ScriptNode) -> set[str]:
    return {node.words[0].raw for item in script.items if isinstance(node := item.node, CommandNode) and node.words}


def _background_and_words(script: ScriptNode) -> tuple[bool, set[str]]:
    """Whether anything runs in the background, and the first words of what does not."""
    behind, words = False, _first_words(ScriptNode([item for item in script.items if not item.background]))
    for item in script.items:
        behind = behind or item.background
        for inner in item.node.scripts if isinstance(item.node, CompoundNode) and not item.background else ():
            deeper = _background_and_words(inner)
            behind, words = behind or deeper[0], words | deeper[1]
    return behind, words


def is_fork_bomb_code(code: str) -> bool:
    """Whether a program text forks without end."""
    return "fork" in code and bool(_FORK_BOMB_CODE.search(code))
