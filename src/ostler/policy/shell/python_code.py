"""Analyses Python code by its syntax tree for file and process changes."""

import ast
import re

from ostler.policy.shell import sql
from ostler.policy.shell.command_call import NO_STDIN, CommandCall
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord, literal_words
from ostler.policy.shell.fork_bombs import is_fork_bomb_code
from ostler.policy.shell.program_table import group

_MAX_CODE_LENGTH = 20000
_UNKNOWN_NAME = "not_known_"  # replaces `UNKNOWN_TEXT`, so that the code can be parsed
_UNKNOWN_CODE = "runs Python code that is known only at run time"
_OS_MODULES = ("posix", "nt")  # they have the functions of os
_DANGEROUS_FUNCTIONS = group("python-changes") | {
    f"{module}{full[2:]}" for full in group("python-changes") if full.startswith("os.") for module in _OS_MODULES
}
_PROCESS_STARTERS = group("python-starts-programs")
_SPAWN_FUNCTION = re.compile(r"os\.(?:exec|spawn|posix_spawn)\w*")
_OPEN_FUNCTIONS = group("python-opens-files")
_MODE = re.compile(r"[rwxabtU+]{0,4}")
_INTERNAL_ATTRIBUTES = group("python-internals")
_RISKY_MODULES = {full.partition(".")[0] for full in _DANGEROUS_FUNCTIONS} | {"subprocess", "pty", "importlib", "runpy"}
_FALLBACK = re.compile(
    r"\b(?:remove|unlink|rmdir|rmtree|rename|replace|truncate|chmod|chown|system|popen|subprocess|exec\w*|spawn\w*|eval"
    r"|write_text|write_bytes|shutil|ctypes|getattr|__import__|compile|fork)\b"
    r"|open\s*\([^)]{0,200}?,\s*[^)]{0,200}?[wx+]"
)


def danger_reason(code: str, call: CommandCall) -> str:
    """Return why Python code needs approval, or an empty string. Commands it starts are evaluated."""
    if is_fork_bomb_code(code):
        call.evaluator.deny("starts itself endlessly")
    if code.strip() and not code.strip(UNKNOWN_TEXT + " \n"):
        return _UNKNOWN_CODE
    try:
        tree = ast.parse(code.replace(UNKNOWN_TEXT, _UNKNOWN_NAME)) if len(code) < _MAX_CODE_LENGTH else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None:
        return "runs Python code that changes files or starts programs" if _FALLBACK.search(code) else ""
    try:
        return _PythonVisitor(call).analyse(tree)
    except RecursionError:
        return "runs Python code that is nested too deeply"


_DESTRUCTIVE_METHOD = re.compile(
    r"(?:batch_)?(?:delete|remove|terminate|destroy|drop|purge|prune|kill|stop|flush|shutdown|suspend)\w*"
)


class _PythonVisitor(ast.NodeVisitor):
    """Visits a module once: records imports and constants, checks calls and names."""

    def __init__(self, call: CommandCall) -> None:
        self.call = call
        self.reason = ""
        self.names: dict[str, str] = {}
        self.constants: dict[str, str] = {}
        self.called_nodes: set[int] = set()

    def analyse(self, tree: ast.AST) -> str:
        self.visit(tree)
        return self.reason

    def _add_reason(self, reason: str) -> None:
        self.reason = self.reason or reason

    # names

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.names[alias.asname or alias.name.partition(".")[0]] = (
                alias.name if alias.asname else alias.name.partition(".")[0]
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        for alias in node.names:
            if alias.name == "*":
                known = _DANGEROUS_FUNCTIONS | _PROCESS_STARTERS | _OPEN_FUNCTIONS
                self.names.update({full.rpartition(".")[2]: full for full in known if full.startswith(module + ".")})
            else:
                self.names[alias.asname or alias.name] = f"{module}.{alias.name}"

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._bind(target.id, node.value)
        self.generic_visit(node)

    def _bind(self, name: str, value: ast.expr) -> None:
        text = self._constant_text(value)
        full = self._full_name(value)
        self.constants.pop(name, None)
        if text is not None:
            self.constants[name] = text
        elif full and full.partition(".")[0] in _RISKY_MODULES:
            self.names[name] = full

    def _full_name(self, node: ast.expr) -> str:
        """Return the dotted name of an expression; it starts with a dot if the object is unknown."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self._full_name(node.value)}.{node.attr}"
        if isinstance(node, ast.Call):
            return self._dynamic_name(node)
        if isinstance(node, ast.Subscript) and self._full_name(node.value) == "sys.modules":
            return self._constant_text(node.slice) or "os"
        return ""

    def _dynamic_name(self, node: ast.Call) -> str:
        name = self._full_name(node.func)
        if name in {"__import__", "importlib.import_module", "builtins.__import__"} and node.args:
            return self._constant_text(node.args[0]) or "os"
        if name in {"eval", "builtins.eval"} and node.args:
            return self._evaluated_name(self._constant_text(node.args[0]) or "")
        if name == "vars" and node.args:
            return f"{self._full_name(node.args[0])}.__dict__"
        if name == "getattr" and len(node.args) > 1:
            return f"{self._full_name(node.args[0])}.{self._constant_text(node.args[1]) or '?'}"
        return ""

    def _evaluated_name(self, code: str) -> str:
        try:
            return self._full_name(ast.parse(code, mode="eval").body)
        except (SyntaxError, ValueError):
            return ""

    def _constant_text(self, node: ast.expr | None) -> str | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            return text.replace(_UNKNOWN_NAME, UNKNOWN_TEXT)
        if isinstance(node, ast.Name):
            return self.constants.get(node.id)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self._constant_text(node.left), self._constant_text(node.right)
            return None if left is None or right is None else left + right
        return None

    # checks

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Name) and _UNKNOWN_NAME in node.value.id:
            self._add_reason(_UNKNOWN_CODE)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        full = self.names.get(node.id, node.id)
        if _UNKNOWN_NAME in full and id(node) in self.called_nodes:
            self._add_reason(_UNKNOWN_CODE)
        elif full == "open" and id(node) not in self.called_nodes:
            self._add_reason("opens files indirectly")
        elif full in {"exec", "eval"} and id(node) not in self.called_nodes:
            self._add_reason(_UNKNOWN_CODE)
        elif node.id in _INTERNAL_ATTRIBUTES:
            self._add_reason("uses Python internals")
        else:
            self._check_reference(node, full)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in group("python-describing-attributes") and self._full_name(node.value):
            return
        self._check_reference(node, self._full_name(node))
        if _UNKNOWN_NAME in node.attr:
            self._add_reason(_UNKNOWN_CODE)
        elif node.attr in _INTERNAL_ATTRIBUTES:
            self._add_reason("uses Python internals")
        self.visit(node.value)

    def _check_reference(self, node: ast.expr, full_name: str) -> None:
        """Check a function that is referenced, but not called."""
        if id(node) not in self.called_nodes and (
            full_name in _PROCESS_STARTERS or _SPAWN_FUNCTION.fullmatch(full_name)
        ):
            self._add_reason("starts programs from Python")
        self._check_name(full_name)

    def _check_name(self, full_name: str) -> None:
        module, _, name = full_name.rpartition(".")
        module = module.rpartition(".")[2]  # pathlib.os.remove is os.remove
        if f"{module}.{name}" in _DANGEROUS_FUNCTIONS or (name == "?" and module in _RISKY_MODULES):
            self._add_reason(f"Python's {full_name.replace('?', '')} changes files or processes")
        elif name == "__dict__" and module in _RISKY_MODULES:
            self._add_reason("uses Python internals")
        elif name in group("python-changing-methods") and module != "platform" and full_name not in _PROCESS_STARTERS:
            self._add_reason(f"Python's {name} changes files or starts programs")

    def visit_Call(self, node: ast.Call) -> None:
        self.called_nodes.add(id(node.func))
        full = ".".join(self._full_name(node.func).split(".")[-2:])
        if full in group("python-describes") and all(self._full_name(arg) for arg in node.args):
            return
        name = full.rpartition(".")[2]
        if full not in group("python-reads-modules") and any(
            self._full_name(arg) in _RISKY_MODULES for arg in node.args
        ):
            self._add_reason("passes on a module that can change files or start programs")
        if full in _PROCESS_STARTERS or _SPAWN_FUNCTION.fullmatch(full):
            self._check_process_call(node, full)
        elif re.fullmatch(r"\w*\.?git\.[a-z_]+", full):  # GitPython: repo.git.reset("--hard")
            self.call.evaluate_argv(
                literal_words(
                    "git", name.replace("_", "-"), *(self._constant_text(arg) or UNKNOWN_TEXT for arg in node.args)
                ),
                NO_STDIN,
            )
        elif full in _OPEN_FUNCTIONS or name == "open":
            self._check_open(node, full)
        elif full in group("python-runs-code"):
            self._check_nested_code(node)
        elif full.startswith("sh.") or full in {"runpy.run_path", "runpy.run_module"}:
            self._add_reason("starts programs from Python")
        else:
            self._check_method(node, full, name)
        self._check_name(self._dynamic_name(node))
        self.generic_visit(node)

    def _check_process_call(self, node: ast.Call, full_name: str) -> None:
        first = node.args[0] if node.args else None
        text = self._constant_text(first)
        if text is not None and not _SPAWN_FUNCTION.fullmatch(full_name):
            self.call.evaluate_text(text, NO_STDIN)
            return
        words = (
            [self._constant_text(item) for item in first.elts] if isinstance(first, (ast.List, ast.Tuple)) else [None]
        )
        if None in words or not words or _SPAWN_FUNCTION.fullmatch(full_name):
            self._add_reason("starts programs from Python")
        else:
            self.call.evaluate_argv(literal_words(*(word for word in words if word is not None)), NO_STDIN)

    def _check_nested_code(self, node: ast.Call) -> None:
        text = self._constant_text(node.args[0]) if node.args else None
        if text is None:
            self._add_reason(_UNKNOWN_CODE)
        else:
            self._add_reason(danger_reason(text, self.call))

    def _check_open(self, node: ast.Call, full_name: str) -> None:
        first_text = (
            self._constant_text(node.args[0]) if node.args else None
        )  # wave.open("name", "wb"), unlike path.open("wb")
        first_is_path = first_text is not None and not _MODE.fullmatch(first_text)
        method = "." in full_name and full_name not in _OPEN_FUNCTIONS and full_name != "os.open" and not first_is_path
        position = 0 if method else 1
        mode_node = node.args[position] if len(node.args) > position else None
        mode_node = next((word.value for word in node.keywords if word.arg == "mode"), mode_node)
        mode = "r" if mode_node is None else self._constant_text(mode_node)
        if full_name == "os.open":
            flags = ast.unparse(node.args[1]) if len(node.args) > 1 else "0"
            mode = "r" if flags in {"0", "os.O_RDONLY", "O_RDONLY"} else "w"
        if mode is None or "w" in mode or "+" in mode:
            target = (
                node.func.value
                if method and isinstance(node.func, ast.Attribute)
                else node.args[0]
                if node.args
                else None
            )
            self._check_write(target)

    def _check_write(self, target: ast.expr | None) -> None:
        if isinstance(target, ast.Call) and target.args:
            target = target.args[0]  # Path("name")
        text = self._constant_text(target)
        self._add_reason(self.call.overwrite_reason(ExpandedWord(text if text is not None else UNKNOWN_TEXT)))

    def _check_remote_method(self, name: str, text: str | None) -> None:
        if _DESTRUCTIVE_METHOD.fullmatch(name):
            self._add_reason(f"Python's {name} deletes or stops something")
        elif name in {"run", "exec_command", "sudo", "exec_run", "spawn"} and text:
            self.call.evaluate_text(text, NO_STDIN)

    def _check_method(self, node: ast.Call, full_name: str, name: str) -> None:
        first = node.args[0] if node.args else None
        if not group("python-remote-libraries").isdisjoint(full.partition(".")[0] for full in self.names.values()):
            self._check_remote_method(name, self._constant_text(first))
        if name in {"write_text", "write_bytes"} and isinstance(node.func, ast.Attribute):
            self._check_write(node.func.value)
        elif name in {"replace", "rename"} and len(node.args) == 1 and not node.keywords:
            self._add_reason("Python moves a file")
        elif name in group("python-writing-methods") and self._constant_text(first) is not None:
            self._check_write(first)
        elif name in {"execute", "executescript", "executemany"} and sql.changes_data(self._constant_text(first) or ""):
            self._add_reason("changes a database")
        elif any(word.arg == "inplace" for word in node.keywords) and "input" in name.lower():
            self._add_reason("changes files in place")
        elif any(word.arg == "filemode" for word in node.keywords):
            self._check_write(next((word.value for word in node.keywords if word.arg == "filename"), None))
        elif full_name == "os.chdir":
            self.call.shell = self.call.shell.fork()
            self.call.shell.cwd = ()
        elif name == "urlretrieve" and len(node.args) > 1:
            self._check_write(node.args[1])
