"""Merges a Python block that contains only some statements of a file into that file."""

import ast
from collections.abc import Collection, Mapping, Sequence

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Assignment = ast.Assign | ast.AnnAssign
Import = ast.Import | ast.ImportFrom


def missing_statements(old: str, new: str) -> list[str]:
    """Return the keys of the old top-level statements that the new text lacks; none if a text cannot be parsed."""
    before, after = _parse(old), _parse(new)
    if before is None or after is None:
        return []
    present = {_key(node) for node in after}
    return [key for node in before if (key := _key(node)) not in present]


def merge_definitions(old: str, block: str, renamed: Mapping[str, str], removed: Collection[str] = ()) -> str | None:
    """Return the old text with the statements of the block replaced or added, or None if it cannot be merged.

    Classes are merged method by method. `renamed` maps new names to the old names that they replace; the `removed`
    names are deleted.
    """
    before, after = _parse(old), _parse(block)
    if before is None or after is None or not any(isinstance(node, Definition | Assignment) for node in after):
        return None
    changes = _Changes(old.splitlines(), block.splitlines(), renamed)
    changes.merge(before, after, blank_lines=2)
    changes.remove([node for node in before if _key(node) in removed])
    return changes.text()


def _parse(text: str) -> list[ast.stmt] | None:
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return None


def _key(node: ast.stmt) -> str:
    """Return what identifies a statement, however its content changes."""
    if isinstance(node, Definition):
        return node.name
    if isinstance(node, ast.Assign):
        return " ".join(map(ast.unparse, node.targets))
    if isinstance(node, ast.AnnAssign):
        return ast.unparse(node.target)
    if isinstance(node, ast.ImportFrom):
        return f"from {'.' * node.level}{node.module or ''}"
    if isinstance(node, ast.If):
        return f"if {ast.unparse(node.test)}"
    return ast.unparse(node)


def _line_range(node: ast.stmt) -> tuple[int, int]:
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
    return first, node.end_lineno or node.lineno


class _Changes:
    """Replacements of lines and insertions, applied at the end."""

    def __init__(self, old: list[str], new: list[str], renamed: Mapping[str, str]) -> None:
        self._old = old
        self._new = new
        self._renamed = renamed
        self._edits: list[tuple[int, int, list[str]]] = []

    def merge(self, old: Sequence[ast.stmt], new: Sequence[ast.stmt], blank_lines: int) -> None:
        """Merge the statements of a module or a class."""
        known = {_key(node): node for node in old}
        for node in new:
            same = known.get(self._renamed.get(_key(node), _key(node)))
            if same is None:
                self._add(node, old, blank_lines)
            elif isinstance(same, ast.ClassDef) and isinstance(node, ast.ClassDef) and _lacks_methods(node, same):
                self.merge(same.body, node.body, 1)
            elif ast.dump(same) != ast.dump(node):
                self._edits.append((*_line_range(same), self._lines_of(node, same.col_offset)))

    def remove(self, nodes: Sequence[ast.stmt]) -> None:
        """Remove statements and the empty lines before them."""
        for node in nodes:
            start, end = _line_range(node)
            while start > 1 and not self._old[start - 2].strip():
                start -= 1
            self._edits.append((start, end, []))

    def text(self) -> str:
        lines = list(self._old)
        for start, end, replacement in sorted(self._edits, key=lambda edit: edit[:2], reverse=True):
            lines[start - 1 : end] = replacement
        return "\n".join(lines).rstrip("\n") + "\n"

    def _add(self, node: ast.stmt, old: Sequence[ast.stmt], blank_lines: int) -> None:
        """Add a statement after the last one of its kind. Calls and texts outside definitions are examples."""
        if isinstance(node, ast.Expr | ast.Pass):
            return
        kind = next((kind for kind in (Definition, Import, Assignment) if isinstance(node, kind)), ast.stmt)
        same_kind = [_line_range(other)[1] for other in old if isinstance(other, kind)]
        line = same_kind[-1] if same_kind else _fallback_line(node, old)
        spaces = [""] * (blank_lines if isinstance(node, Definition | ast.If) else 0 if same_kind else 1)
        lines = self._lines_of(node, old[0].col_offset if old else 0)
        self._edits.append((line + 1, line, [*spaces, *lines] if line else [*lines, *spaces]))

    def _lines_of(self, node: ast.stmt, indent: int) -> list[str]:
        start, end = _line_range(node)
        shift = indent - node.col_offset
        lines = self._new[start - 1 : end]
        if shift > 0:
            return [" " * shift + line if line.strip() else line for line in lines]
        return [line[-shift:] if line[:-shift].isspace() else line for line in lines] if shift else lines


def _fallback_line(node: ast.stmt, old: Sequence[ast.stmt]) -> int:
    """Return the line after which the first statement of a kind belongs."""
    has_docstring = old and isinstance(old[0], ast.Expr) and isinstance(old[0].value, ast.Constant)
    first = _line_range(old[0])[1] if has_docstring else 0
    if isinstance(node, Import):
        return first
    imports = [_line_range(other)[1] for other in old if isinstance(other, Import)]
    if isinstance(node, Assignment):
        return max([*imports, first])
    return _line_range(old[-1])[1] if old else 0


def _lacks_methods(new: ast.ClassDef, old: ast.ClassDef) -> bool:
    names = {_key(node) for node in new.body}
    return any(isinstance(node, Definition) and node.name not in names for node in old.body)
