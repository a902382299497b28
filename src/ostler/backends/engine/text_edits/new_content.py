"""Computes the new content of a file from a code block, and checks it before anything is written."""

import re

from ostler.backends.engine.text_edits.definitions import merge_definitions, missing_statements
from ostler.backends.engine.text_edits.sections import merge_sections
from ostler.core.errors import ToolError
from ostler.knowledge.outlines import outline
from ostler.knowledge.repo_map import renamed_symbols
from ostler.text.request_kind import asks_for_removal

_PLACEHOLDER = re.compile(
    r"^\s*(?:#|//|--|/\*|<!--|\.\.\.)?\s*(?:\.\.\.|…|\[?\(?(?:rest|remainder) of|existing code|unchanged|same as before"
    r"|other (?:code|functions|methods))",
    re.IGNORECASE,
)
_REMOVAL = re.compile(
    r"\b(remov|delet|drop|replac|rewrit|clear|empt|shorten|split|mov(e|ing)|merg|simplif|clean)\w*", re.IGNORECASE
)
_MIN_LINES_KEPT = 0.5
_FEW_LINES = 4


def new_content(path: str, old: str | None, content: str, prompt: str) -> str:
    """Return the complete new text of a file. Raises `ToolError` if the block cannot be right.

    `old` is the current text, or None if there is no such file. A block with only some definitions of a program
    replaces these. Content that the prompt asks to rename or remove may be missing.
    """
    if not content.strip():
        raise ToolError(f"the new content of {path} is empty", code="bad_edit")
    content = content.strip("\n") + "\n"
    if old is None or not old.strip():
        return _checked(path, content)
    merged = _merge(path, old, content, prompt)
    if merged is not None:
        return _checked(path, merged)
    if _has_placeholder(content, old):
        raise ToolError(f"{path} is not complete: write every line of it, without placeholders", code="bad_edit")
    _checked(path, content)
    if lost := _lost_names(path, old, content, prompt):
        raise ToolError(f"{path} would lose {', '.join(lost[:5])}: write the complete file", code="bad_edit")
    if _loses_lines(old, content, prompt):
        raise ToolError(f"{path} would lose most of its lines: write the complete file", code="bad_edit")
    return content if old.endswith("\n") else content.rstrip("\n")


def _merge(path: str, old: str, content: str, prompt: str) -> str | None:
    """Return the old text with the definitions of a partial block, or None if the block is complete."""
    plain = _without_placeholders(content, old)
    renamed = renamed_symbols(prompt)
    names = {renamed[1]: renamed[0]} if renamed else {}
    if path.endswith((".py", ".pyi")):
        lost = [key for key in missing_statements(old, plain) if key not in names.values()]
        removed = [key for key in lost if asks_for_removal(prompt) and _is_mentioned(key, prompt)]
        return merge_definitions(old, plain, names, removed) if len(removed) < len(lost) else None
    if not _lost_names(path, old, plain, prompt):
        return None
    return merge_sections(path, old, plain, names)


def check_syntax(path: str, text: str) -> str:
    """Return why a text is not valid in the language of its file, or an empty string."""
    try:
        if path.endswith((".py", ".pyi")):
            compile(text, path, "exec", dont_inherit=True)
        elif path.endswith(".json"):
            import json

            json.loads(text)
        elif path.endswith(".toml"):
            import tomllib

            tomllib.loads(text)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error)[:200]
    return ""


def _checked(path: str, text: str) -> str:
    if error := check_syntax(path, text):
        raise ToolError(f"the new content of {path} is not valid: {error}", code="bad_edit")
    return text


def _has_placeholder(content: str, old: str) -> bool:
    lines = frozenset(old.splitlines())
    return any(
        _PLACEHOLDER.match(line) and line not in lines and line.strip() != "..." for line in content.splitlines()
    )


def _without_placeholders(content: str, old: str) -> str:
    lines = frozenset(old.splitlines())
    kept = (line for line in content.splitlines() if line in lines or not _PLACEHOLDER.match(line))
    return "\n".join(kept) + "\n"


def _lost_names(path: str, old: str, new: str, prompt: str) -> list[str]:
    """Return the top-level names (keys, for JSON) that vanished without being mentioned in the prompt."""
    if path.endswith(".json"):
        before, after = _json_keys(old), _json_keys(new)
    else:
        before, after = list(outline(path, old)), list(outline(path, new))
    if path.endswith((".md", ".txt")):
        return []
    renamed = renamed_symbols(prompt)
    lost = [name for name in before if name not in after and name != (renamed or ("",))[0]]
    return [name for name in lost if not (_REMOVAL.search(prompt) and _is_mentioned(name, prompt))]


def _is_mentioned(name: str, prompt: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", prompt) is not None


def _json_keys(text: str) -> list[str]:
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [str(key) for key in value] if isinstance(value, dict) else []


def _loses_lines(old: str, new: str, prompt: str) -> bool:
    """Return whether most lines vanish, although the prompt does not ask to remove something."""
    lines = [line.strip() for line in old.splitlines() if line.strip()]
    after = frozenset(line.strip() for line in new.splitlines())
    kept = sum(line in after for line in lines)
    return len(lines) >= _FEW_LINES and kept < len(lines) * _MIN_LINES_KEPT and not _REMOVAL.search(prompt)
