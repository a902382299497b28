"""Merges a Python block that contains only some definitions of a file into that file."""

import ast
from collections.abc import Iterator, Sequence

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def merge_definitions(old: str, block: str) -> str | None:
    """Return the old text with the definitions of the block replaced or added, or None if it cannot be merged.

    Classes are merged method by method. Imports and constants that the file does not have are added.
    """
    try:
        old_tree, new_tree = ast.parse(old), ast.parse(block)
    except (SyntaxError, ValueError, RecursionError):
        return None
    changes = _Changes(old.splitlines(), block.splitlines())
    if not any(isinstance(node, Definition) for node in new_tree.body):
        return None
    _merge_body(old_tree.body, new_tree.body, changes, top_level=True)
    return changes.text()


class _Changes:
    """Replacements of lines and insertions, applied at the end."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        self.old = old
        self.new = new
        self._replaced: list[tuple[int, int, list[str]]] = []

    def replace(self, old_node: ast.stmt, new_node: ast.stmt) -> None:
        start, end = _line_range(old_node)
        self._replaced.append((start, end, self._lines_of(new_node, old_node.col_offset)))

    def insert(self, line: int, new_node: ast.stmt, indent: int, blank_lines: int) -> None:
        """Insert a statement after a line, counted from 1."""
        lines = self._lines_of(new_node, indent)
        self._replaced.append((line + 1, line, [*[""] * blank_lines, *lines] if line else [*lines, *[""] * blank_lines]))

    def _lines_of(self, node: ast.stmt, indent: int) -> list[str]:
        start, end = _line_range(node)
        shift = indent - node.col_offset
        lines = self.new[start - 1 : end]
        if shift > 0:
            return [" " * shift + line if line.strip() else line for line in lines]
        return [line[-shift:] if line[:-shift].isspace() else line for line in lines] if shift else lines

    def text(self) -> str:
        lines = list(self.old)
        for start, end, replacement in sorted(self._replaced, key=lambda item: (item[0], item[1]), reverse=True):
            lines[start - 1 : end] = replacement
        return "\n".join(lines).rstrip("\n") + "\n"


def _line_range(node: ast.stmt) -> tuple[int, int]:
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
    return first, node.end_lineno or node.lineno


def _merge_body(
    old_body: Sequence[ast.stmt], new_body: Sequence[ast.stmt], changes: _Changes, *, top_level: bool
) -> None:
    known = {node.name: node for node in old_body if isinstance(node, Definition)}
    kept = {ast.dump(node) for node in old_body}
    blank_lines = 2 if top_level else 1
    last = max((_line_range(node)[1] for node in old_body), default=0)
    indent = old_body[0].col_offset if old_body else 0
    for node in _merged_nodes(new_body):
        if ast.dump(node) in kept:
            continue
        if isinstance(node, Definition):
            same = known.get(node.name)
            if isinstance(same, ast.ClassDef) and isinstance(node, ast.ClassDef) and _is_part(same, node):
                _merge_body(same.body, node.body, changes, top_level=False)
            elif same is not None:
                changes.replace(same, node)
            else:
                changes.insert(last, node, indent, blank_lines)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports = [_line_range(other)[1] for other in old_body if isinstance(other, ast.Import | ast.ImportFrom)]
            changes.insert(max(imports, default=_docstring_end(old_body)), node, indent, 0 if imports else 1)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            _merge_assignment(old_body, node, changes, last if not top_level else _docstring_end(old_body), indent)


def _merged_nodes(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that can be merged; docstrings and calls in a partial block are left out."""
    yield from (node for node in body if not isinstance(node, ast.Expr | ast.If | ast.Pass))


def _is_part(old: ast.ClassDef, new: ast.ClassDef) -> bool:
    """Return whether the new class lacks methods of the old one."""
    names = {node.name for node in new.body if isinstance(node, Definition)}
    return any(isinstance(node, Definition) and node.name not in names for node in old.body)


def _docstring_end(body: Sequence[ast.stmt]) -> int:
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        return body[0].end_lineno or 0
    return 0


def _merge_assignment(
    old_body: Sequence[ast.stmt], node: ast.Assign | ast.AnnAssign, changes: _Changes, line: int, indent: int
) -> None:
    targets = _target_names(node)
    same = next(
        (o for o in old_body if isinstance(o, ast.Assign | ast.AnnAssign) and _target_names(o) == targets), None
    )
    if same is not None:
        changes.replace(same, node)
    else:
        imports = [_line_range(other)[1] for other in old_body if isinstance(other, ast.Import | ast.ImportFrom)]
        changes.insert(max([*imports, line]), node, indent, 1)


def _target_names(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [ast.unparse(target) for target in targets]
