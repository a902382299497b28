"""What a piece of Python would do to files and processes, read from its syntax tree."""

import ast
import re

from ostler.policy.danger import listed
from ostler.policy.shell import sql
from ostler.policy.shell.args import HOLE, Arg, plain
from ostler.policy.shell.bombs import is_code_bomb
from ostler.policy.shell.call import NO_FEED, Call

_LONGEST = 20000
_HOLE_NAME = "not_known_"  # what a hole is called inside a program
_UNKNOWN = "runs Python that is known only when it runs"
_MODULES: dict[str, frozenset[str]] = {
    "os": frozenset(
        listed(
            "remove unlink rmdir removedirs rename renames replace truncate ftruncate chmod chown lchown lchmod"
            " fchmod fchown"
            " chflags lchflags chroot kill killpg fork forkpty dup2 setuid seteuid setgid setresuid"
        )
    ),
    "shutil": frozenset(listed("rmtree move copy copyfile copy2 copytree copymode copystat chown unpack_archive")),
    "ctypes": frozenset(listed("CDLL cdll PyDLL pythonapi LibraryLoader")),
    "signal": frozenset({"pidfd_send_signal"}),
    "distutils": frozenset({"dir_util", "file_util"}),
    "dir_util": frozenset({"remove_tree", "copy_tree"}),
    "file_util": frozenset({"move_file", "copy_file"}),
    "send2trash": frozenset({"send2trash"}),
    "builtins": frozenset({"exec", "eval", "__import__", "compile"}),
}
_MODULES["posix"] = _MODULES["nt"] = _MODULES["os"]
_SHELLS = frozenset(
    listed(
        "os.system os.popen subprocess.run subprocess.call subprocess.check_call subprocess.check_output"
        " subprocess.Popen"
        " subprocess.getoutput subprocess.getstatusoutput pty.spawn asyncio.create_subprocess_shell commands.getoutput"
        " asyncio.create_subprocess_exec os.startfile"
    )
)
_SPAWNS = re.compile(r"os\.(?:exec|spawn|posix_spawn)\w*")
_METHODS = frozenset(
    listed(
        "unlink rmdir rmtree removedirs chmod lchmod chown truncate system popen spawn hardlink_to"
        " extractall unpack_archive runsource runcode"
    )
)
_WRITERS = frozenset(
    listed("to_csv to_json to_excel to_parquet to_pickle to_html to_feather savefig save savetxt tofile savez export")
)
_OPENERS = frozenset(
    listed("open io.open codecs.open gzip.open bz2.open lzma.open zipfile.ZipFile tarfile.open os.fdopen io.FileIO")
)
_MODE = re.compile(r"[rwxabtU+]{0,4}")
_EVALUATORS = frozenset(
    listed("exec eval compile builtins.exec builtins.eval timeit.timeit timeit.repeat cProfile.run profile.run pdb.run")
)
_DEEP = frozenset({"__subclasses__", "__globals__", "__builtins__", "__getattribute__", "__loader__", "__code__"})
_RISKY = frozenset({*_MODULES, "subprocess", "pty", "importlib", "runpy"})
_LOOKERS = frozenset(
    listed("print dir help type id repr str hasattr getattr vars isinstance importlib.reload inspect.getsource")
)
_FALLBACK = re.compile(
    r"\b(?:remove|unlink|rmdir|rmtree|rename|replace|truncate|chmod|chown|system|popen|subprocess|exec\w*|spawn\w*|eval"
    r"|write_text|write_bytes|shutil|ctypes|getattr|__import__|compile|fork)\b"
    r"|open\s*\([^)]{0,200}?,\s*[^)]{0,200}?[wx+]"
)


def judge(code: str, call: Call) -> str:
    """Why a piece of Python must be asked for; empty when it only looks."""
    if is_code_bomb(code):
        call.walk.deny("starts itself without end")
    if code.strip() and not code.strip(HOLE + " \n"):
        return _UNKNOWN
    try:
        tree = ast.parse(code.replace(HOLE, _HOLE_NAME)) if len(code) < _LONGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None:
        return "runs Python that changes files or starts programs" if _FALLBACK.search(code) else ""
    try:
        return _Reading(call).of(tree)
    except RecursionError:
        return "runs Python that is nested too deeply"


# libraries that act on other machines, services and processes; what their methods do is told by their names
_AGENTS = frozenset(listed("boto3 docker psutil paramiko fabric kubernetes redis pymongo elasticsearch invoke pexpect"))
_LOSES = re.compile(
    r"(?:batch_)?(?:delete|remove|terminate|destroy|drop|purge|prune|kill|stop|flush|shutdown|suspend)\w*"
)
_TELLERS = frozenset(listed("help print dir callable inspect.getsource inspect.signature inspect.getdoc"))
_ABOUT = frozenset({"__doc__", "__name__", "__module__", "__qualname__"})  # what a function says of itself


class _Reading(ast.NodeVisitor):
    """One pass over a module: imports and constants are noted, calls and names judged."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.why = ""
        self.names: dict[str, str] = {}
        self.constants: dict[str, str] = {}
        self.called: set[int] = set()

    def of(self, tree: ast.AST) -> str:
        self.visit(tree)
        return self.why

    def _ask(self, why: str) -> None:
        self.why = self.why or why

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
                self.names.update({name: f"{module}.{name}" for name in _MODULES.get(module, ())})
                known = (full for full in _SHELLS | _OPENERS if full.startswith(module + "."))
                self.names.update({full.rpartition(".")[2]: full for full in known})
            else:
                self.names[alias.asname or alias.name] = f"{module}.{alias.name}"

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._bind(target.id, node.value)
        self.generic_visit(node)

    def _bind(self, name: str, value: ast.expr) -> None:
        text = self._text(value)
        full = self._full(value)
        self.constants.pop(name, None)
        if text is not None:
            self.constants[name] = text
        elif full and full.partition(".")[0] in _RISKY:
            self.names[name] = full

    def _full(self, node: ast.expr) -> str:
        """The dotted name an expression stands for; a leading dot when it belongs to something unknown."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self._full(node.value)}.{node.attr}"
        if isinstance(node, ast.Call):
            return self._imported(node)
        if isinstance(node, ast.Subscript) and self._full(node.value) == "sys.modules":
            return self._text(node.slice) or "os"
        return ""

    def _imported(self, node: ast.Call) -> str:
        name = self._full(node.func)
        if name in {"__import__", "importlib.import_module", "builtins.__import__"} and node.args:
            return self._text(node.args[0]) or "os"
        if name in {"eval", "builtins.eval"} and node.args:
            return self._evaluated(self._text(node.args[0]) or "")
        if name == "vars" and node.args:
            return f"{self._full(node.args[0])}.__dict__"
        if name == "getattr" and len(node.args) > 1:
            return f"{self._full(node.args[0])}.{self._text(node.args[1]) or '?'}"
        return ""

    def _evaluated(self, code: str) -> str:
        try:
            return self._full(ast.parse(code, mode="eval").body)
        except (SyntaxError, ValueError):
            return ""

    def _text(self, node: ast.expr | None) -> str | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            return text.replace(_HOLE_NAME, HOLE)
        if isinstance(node, ast.Name):
            return self.constants.get(node.id)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self._text(node.left), self._text(node.right)
            return None if left is None or right is None else left + right
        return None

    # judging

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Name) and _HOLE_NAME in node.value.id:
            self._ask(_UNKNOWN)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        full = self.names.get(node.id, node.id)
        if _HOLE_NAME in full and id(node) in self.called:
            self._ask(_UNKNOWN)
        elif full == "open" and id(node) not in self.called:
            self._ask("opens files in a roundabout way")
        elif full in {"exec", "eval"} and id(node) not in self.called:
            self._ask(_UNKNOWN)
        elif node.id in _DEEP:
            self._ask("reaches for Python's inner workings")
        else:
            self._indirect(node, full)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in _ABOUT and self._full(node.value):
            return
        self._indirect(node, self._full(node))
        if _HOLE_NAME in node.attr:
            self._ask(_UNKNOWN)
        elif node.attr in _DEEP:
            self._ask("reaches for Python's inner workings")
        self.visit(node.value)

    def _indirect(self, node: ast.expr, full: str) -> None:
        """A function that is passed on rather than called."""
        if id(node) not in self.called and (full in _SHELLS or _SPAWNS.fullmatch(full)):
            self._ask("starts programs from Python")
        self._reference(full)

    def _reference(self, full: str) -> None:
        module, _, name = full.rpartition(".")
        module = module.rpartition(".")[2]  # pathlib.os.remove is os.remove
        if name in _MODULES.get(module, ()) or (name == "?" and module in _RISKY):
            self._ask(f"Python's {full.replace('?', '')} changes files or processes")
        elif name == "__dict__" and module in _RISKY:
            self._ask("reaches for Python's inner workings")
        elif name in _METHODS and module != "platform" and full not in _SHELLS:
            self._ask(f"Python's {name} changes files or starts programs")

    def visit_Call(self, node: ast.Call) -> None:
        self.called.add(id(node.func))
        full = ".".join(self._full(node.func).split(".")[-2:])
        if full in _TELLERS and all(self._full(arg) for arg in node.args):
            return
        name = full.rpartition(".")[2]
        if full not in _LOOKERS and any(self._full(arg) in _RISKY for arg in node.args):
            self._ask("hands on a module that changes files or starts programs")
        if full in _SHELLS or _SPAWNS.fullmatch(full):
            self._shell(node, full)
        elif re.fullmatch(r"\w*\.?git\.[a-z_]+", full):  # GitPython: repo.git.reset("--hard")
            self.call.run(
                plain("git", name.replace("_", "-"), *(self._text(arg) or HOLE for arg in node.args)), NO_FEED
            )
        elif full in _OPENERS or name == "open":
            self._open(node, full)
        elif full in _EVALUATORS:
            self._nested(node)
        elif full.startswith("sh.") or full in {"runpy.run_path", "runpy.run_module"}:
            self._ask("starts programs from Python")
        else:
            self._method(node, full, name)
        self._reference(self._imported(node))
        self.generic_visit(node)

    def _shell(self, node: ast.Call, full: str) -> None:
        first = node.args[0] if node.args else None
        text = self._text(first)
        if text is not None and not _SPAWNS.fullmatch(full):
            self.call.text(text, NO_FEED)
            return
        words = [self._text(item) for item in first.elts] if isinstance(first, (ast.List, ast.Tuple)) else [None]
        if None in words or not words or _SPAWNS.fullmatch(full):
            self._ask("starts programs from Python")
        else:
            self.call.run(plain(*(word for word in words if word is not None)), NO_FEED)

    def _nested(self, node: ast.Call) -> None:
        text = self._text(node.args[0]) if node.args else None
        if text is None:
            self._ask(_UNKNOWN)
        else:
            self._ask(judge(text, self.call))

    def _open(self, node: ast.Call, full: str) -> None:
        named = self._text(node.args[0]) if node.args else None  # wave.open("name", "wb"), unlike path.open("wb")
        by_name = named is not None and not _MODE.fullmatch(named)
        method = "." in full and full not in _OPENERS and full != "os.open" and not by_name
        position = 0 if method else 1
        given = node.args[position] if len(node.args) > position else None
        given = next((word.value for word in node.keywords if word.arg == "mode"), given)
        mode = "r" if given is None else self._text(given)
        if full == "os.open":
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
            self._writes(target)

    def _writes(self, target: ast.expr | None) -> None:
        if isinstance(target, ast.Call) and target.args:
            target = target.args[0]  # Path("name")
        text = self._text(target)
        self._ask(self.call.overwrites(Arg(text if text is not None else HOLE)))

    def _by_agent(self, name: str, text: str | None) -> None:
        if _LOSES.fullmatch(name):
            self._ask(f"Python's {name} deletes or stops something")
        elif name in {"run", "exec_command", "sudo", "exec_run", "spawn"} and text:
            self.call.text(text, NO_FEED)

    def _method(self, node: ast.Call, full: str, name: str) -> None:
        first = node.args[0] if node.args else None
        if not _AGENTS.isdisjoint(full.partition(".")[0] for full in self.names.values()):
            self._by_agent(name, self._text(first))
        if name in {"write_text", "write_bytes"} and isinstance(node.func, ast.Attribute):
            self._writes(node.func.value)
        elif name in {"replace", "rename"} and len(node.args) == 1 and not node.keywords:
            self._ask("Python moves a file")
        elif name in _WRITERS and self._text(first) is not None:
            self._writes(first)
        elif name in {"execute", "executescript", "executemany"} and sql.changes(self._text(first) or ""):
            self._ask("changes a database")
        elif any(word.arg == "inplace" for word in node.keywords) and "input" in name.lower():
            self._ask("changes files in place")
        elif any(word.arg == "filemode" for word in node.keywords):
            self._writes(next((word.value for word in node.keywords if word.arg == "filename"), None))
        elif full == "os.chdir":
            self.call.scope = self.call.scope.fork()
            self.call.scope.cwd = ()
        elif name == "urlretrieve" and len(node.args) > 1:
            self._writes(node.args[1])
