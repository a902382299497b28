"""Fork bombs: functions and one-liners whose only end is a machine that stands still."""

import re

from ostler.policy.shell.tree import Command, Compound, Function, Node, Pipe, Script, Text

_CODE = re.compile(
    r"\bfork\s*(?:\(\s*\))?\s*while\b|\b(?:while|until|for|loop)\b[^;\n]{0,200}?\bfork\b"
    r"|\b(?:while|for|loop)\b\s*(?:\(?\s*(?:1|true|True|;;|:)\s*\)?)?\s*[:{]?[^}]{0,80}?\bfork\b"
)


def is_bomb(function: Function) -> bool:
    """Whether a function does nothing but start itself, more than once at a time."""
    calls = _calls(function.body, function.name, False)
    return sum(calls) >= 2 or any(behind for behind in calls)


def _calls(node: Node, name: str, behind: bool) -> list[bool]:
    """One entry for each unconditional call of the function inside itself; True when it runs in the background."""
    if isinstance(node, Command):
        first = node.words[0].parts if node.words else ()
        called = "".join(part.text for part in first if isinstance(part, Text))
        return [behind] if called == name else []
    if isinstance(node, Pipe):
        return [call for stage in node.stages for call in _calls(stage, name, behind or _several(node, name))]
    if isinstance(node, Compound) and node.kind in {"group", "subshell"}:
        return _in_script(node.scripts[0], name, behind)
    return []


def _several(pipe: Pipe, name: str) -> bool:
    return sum(bool(_calls(stage, name, False)) for stage in pipe.stages if isinstance(stage, Command)) > 1


def _in_script(script: Script, name: str, behind: bool) -> list[bool]:
    return [
        call for item in script.items if item.link == ";" for call in _calls(item.node, name, behind or item.background)
    ]


_ENDLESS = frozenset({":", "true", "false"})  # false ends no `until`
_HOLDS_UP = frozenset({"sleep", "wait", "read", "break", "exit", "return", "inotifywait", "nc", "fg"})


def starts_without_end(loop: Compound) -> bool:
    """Whether a loop that never ends starts something in the background in each round, and waits for nothing."""
    if loop.kind != "loop":
        return False
    head = "".join(part.text for word in loop.words for part in word.parts if isinstance(part, Text))
    endless = ";;" in head.replace(" ", "") if loop.words else _first_words(loop.scripts[0]) <= _ENDLESS
    behind, words = _contents(loop.scripts[-1])
    return endless and behind and not words & _HOLDS_UP


def _first_words(script: Script) -> set[str]:
    return {node.words[0].raw for item in script.items if isinstance(node := item.node, Command) and node.words}


def _contents(script: Script) -> tuple[bool, set[str]]:
    """Whether anything runs in the background, and the first words of what does not."""
    behind, words = False, _first_words(Script([item for item in script.items if not item.background]))
    for item in script.items:
        behind = behind or item.background
        for inner in item.node.scripts if isinstance(item.node, Compound) and not item.background else ():
            deeper = _contents(inner)
            behind, words = behind or deeper[0], words | deeper[1]
    return behind, words


def is_code_bomb(code: str) -> bool:
    """Whether a program text forks without end."""
    return "fork" in code and bool(_CODE.search(code))
