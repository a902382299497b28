"""Finds file changes and program starts in one-liners of Perl, Ruby, JavaScript and others."""

import re

from ostler.policy.shell.command_call import CommandCall
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.fork_bombs import is_fork_bomb_code

_RE_FLAGS = re.DOTALL
_PERL = re.compile(
    r"\b(?:unlink|rename|rmdir|system|exec|chmod|chown|truncate|symlink|link|kill|fork|chdir|syscall|sysopen|dbmopen"
    r"|utime|chroot"
    r"|remove_tree|rmtree|unlinkpath|File::(?:Copy|Path|Slurp|Temp)|Path::Tiny|IPC::|POSIX::|CORE::|spew\w*|autodie"
    r"|tie|DynaLoader)\b"
    r"|\bqx\b|`|(?<![\w$@%&:>])eval\s*(?![{\s]|\s*\{)|&\s*\{|&\$|->can\b|\bopen\b[^;]{0,200}?(?:[>|]|\+<)"
    r"|\bdo\s+[^{\s]|\brequire\b\s*[^\w\s]"
    r"|\$\^I|\bARGVOUT\b|/[a-z]{0,6}ee[a-z]{0,6}(?:[\s;}]|$)",
    _RE_FLAGS,
)
_RUBY = re.compile(
    r"\b(?:File|IO|Dir|FileUtils|Pathname|Kernel|Process|Object)\s*(?:\.|::)\s*(?:delete|unlink|rename|write|binwrite"
    r"|rmdir|truncate"
    r"|chmod|chown|lchmod|symlink|link|popen|rm(?:_\w+|tree|dir)?|mv|cp\w*|move|remove\w*|copy\w*|install|system|exec"
    r"|spawn|kill|fork|send|public_send"
    r"|const_get|method|syswrite|ln\w*)\b|\b(?:system|exec|spawn|fork|eval|instance_eval|class_eval|send|__send__"
    r"|public_send"
    r"|method|const_get|syscall|require\s+['\"]fileutils|FileUtils|Open3|PTY|Fiddle)\b|`|%x\W|\bopen\s*\(?\s*['\"]\|"
    r"|\.rm\w+\b|\.(?:unlink|delete)\b\s{0,9}(?:\(\s{0,9}\))?"
    r"\s{0,9}(?:$|[;}\n])|\b(?:File\.)?(?:open|new)\b[^;]{0,200}?['\"][rab]*(?:w|\+)[b+]*['\"]|\$-i|\$stdout\.reopen",
    _RE_FLAGS,
)
_NODE = re.compile(
    r"\b(?:unlink|rmdir|writeFile|truncate|ftruncate|chmod|chown|lchown|copyFile|outputFile|emptyDir)(?:Sync)?\b"
    r"|createWriteStream"
    r"|\b(?:rename|rm|cp|write|writev|symlink|exec|spawn|remove|move)Sync\b(?!\s*\.(?:toString|name|length)\b)|\b(?:rename|rm|cp|remove|move)\s*\("
    r"|child_process"
    r"|\bspawn\b|\beval\b|\bFunction\s*\(|process\.(?:binding|kill|dlopen|mainModule|chdir)|\brequire\s*\(\s*[^'\"\s]"
    r"|\bfs\w*\s*\["
    r"|require\([^)]{0,200}\)\s*\[|\bimport\s*\(|\bvm\b|Reflect\.|\bglobal(?:This)?\s*\[|constructor\s*\("
    r"|constructor\.constructor"
    r"|\bDeno\.(?:remove|rename|write|run|Command|truncate|chmod|copyFile)|\bBun\.(?:write|spawn|\$)|['\"]rimraf['\"]"
    r"|shelljs"
    r"|execa|['\"]w\+?['\"]",
    _RE_FLAGS,
)
_PHP = re.compile(
    r"\b(?:unlink|rename|rmdir|file_put_contents|copy|system|exec|shell_exec|passthru|popen|proc_open|pcntl_\w+|eval"
    r"|assert|chmod|chown"
    r"|chgrp|symlink|link|move_uploaded_file|create_function|call_user_func\w*|posix_kill|ftruncate|array_map"
    r"|array_walk|include"
    r"|require|dl|ReflectionFunction|mail)\s*\(|`|\$\w+\s*\(|fopen\s*\([^)]{0,200}?,\s*['\"][rab]*[wc+]|SplFileObject",
    re.IGNORECASE | _RE_FLAGS,
)
_LUA = re.compile(
    r"os\s*[.\[]\s*['\"]?(?:remove|rename|execute)|io\s*[.\[]\s*['\"]?(?:popen|output)"
    r"|io\.open\s*\([^)]{0,200}?,\s*['\"](?:w|r\+|a\+)"
    r"|\b(?:loadstring|load|dofile|loadfile)\b|os\s*\[|io\s*\[|lfs\."
)
_OTHER_LANGUAGE = re.compile(
    r"\bFile\([^)]{0,200}\)\.(?:text|bytes)\s*=(?!=)|"
    r"\b(?:(?:delete|remove|unlink|rename|system|shell|spawn|popen|write|save|truncate|chmod|chown|move|copy"
    r"|destroy|drop"
    r"|erase)\w*|del(?:_\w+)?|rm(?:_\w+|tree|dir)?|exec(?:ute)?(?:[-_]\w+|[vl]\w*)?|\w*\.command|call\w*command"
    r"|run-program"
    r"|cmd|mv|cp|spit|sink|call-process|start-process|process_create|eval|kill|fork|supersede|sh|e?syscmd|dump|term"
    r"|loadlib"
    r"|set-file-\w+|file\s+attributes\b[^;\n]{0,200}?\s-(?:permissions|owner|group)\s+[^\s;]+"
    r"|dlopen|empty trash)\b|\bf?open\b[^;]{0,200}?w|file\.create|(?:ensure|content)\s*=>|\bfile\s*=\s*['\"]"
    r"|(?:^|[;|:(.])\s*!|`",
    re.IGNORECASE | _RE_FLAGS,
)
_GDB = re.compile(
    r"^\s*(?:shell|!|python|py|pipe|\||dump|append|restore|call|make|save|source|tee|print\s.*\(|platform|script)\b"
    r"|^\s*!"
)
_DANGEROUS_WORDS: dict[str, re.Pattern[str]] = {
    "perl": _PERL,
    "ruby": _RUBY,
    "node": _NODE,
    "php": _PHP,
    "lua": _LUA,
    "gdb": _GDB,
}
_PRINTED_TEXT = re.compile(  # a call that only prints a literal
    r"""(?:console\.(?:log|error)|\b(?:print(?:ln|f)?|message|puts|putStr(?:Ln)?|display(?:ln)?|disp|say|writeln|echo|cat|show)!?)"""
    r"""[\s(]\s{0,9}(?:"[^"\\$#`]*"|'[^'\\$#`]*')(?=\s*(?:[);]|$))"""
)
_TYPE_ONLY = re.compile(r"\btypeof\s+[\w.]+(?:\(\s*['\"][\w:/]+['\"]\s*\)\s*\.\s*\w+)?")
_R_VARIABLE_REMOVAL = re.compile(r"\brm\s*\(")  # removes a variable, not a file
_WRITE_TARGETS: dict[str, re.Pattern[str]] = {
    "perl": re.compile(
        r"\bopen\b\s*\(?\s*(?:my\s+)?[\w$]+\s*,\s*(['\"])\s*>\s*(?:\1\s*,\s*(['\"])(?P<b>[^'\"$@]+)\2|(?P<a>[^'\"$@>&"
        r"|]+)\1)"
    ),
    "node": re.compile(r"\bwriteFile(?:Sync)?\s*\(\s*(['\"`])(?P<a>[^'\"`$]+)\1"),
    "ruby": re.compile(r"\b(?:File|IO)\.(?:write|open)\s*\(\s*(['\"])(?P<a>[^'\"#]+)\1(?:\s*,\s*(['\"])w\3)?"),
    "php": re.compile(r"\bfile_put_contents\s*\(\s*(['\"])(?P<a>[^'\"$]+)\1"),
    "other": re.compile(r"\bset\s+out\w*\s+(['\"])(?P<a>[^'\"]+)\1"),  # gnuplot
    "lua": re.compile(r"io\.open\s*\(\s*(['\"])(?P<a>[^'\"]+)\1\s*,\s*(['\"])w\3"),
}


_MASKABLE_LANGUAGES = frozenset({"perl", "ruby", "node", "php"})
# constructs that use a string as code, as a name or as a file name
_INDIRECT_CODE = re.compile(
    r"\b(?:require|import|f?open|new|eval|\w*send|method|call\w*|const_get|do|exec|system|spawn|load\w*|array_\w+|can|use"
    r"|process|global\w*|Function|Object|Kernel|vm)\b|&\$|->\s*\$|\[\s*['\"]|%[xwq]"
)
_INTERPOLATION = re.compile(r"[&@$#]\{|`")
_STRING_LITERALS = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?P<before>(?:\b(?:if|unless|and|or|not|grep|split)|[=!]~|[(,{!]|^)\s*)/(?:[^/\\\n]|\\.)+/"
)


def _strip_literals(code: str) -> str:
    """Remove string and pattern literals, unless the code may use them as code or names."""
    masked = _STRING_LITERALS.sub(lambda match: (match["before"] or "") + '""', code)
    return code if _INTERPOLATION.search(code) or _INDIRECT_CODE.search(masked) else masked


def danger_reason(language: str, code: str, call: CommandCall) -> str:
    """Return why a one-liner needs approval, or an empty string. Creating a new file does not."""
    if is_fork_bomb_code(code):
        call.evaluator.deny("starts itself endlessly")
    if code.strip() and not code.strip(UNKNOWN_TEXT + " \n"):
        return "runs code that is known only at run time"
    rest = _PRINTED_TEXT.sub("_", code)
    if language == "node":
        rest = _TYPE_ONLY.sub("_", rest)
    if call.name in {"R", "Rscript", "r", "littler"}:
        rest = _R_VARIABLE_REMOVAL.sub("_(", rest)
    if targets := _WRITE_TARGETS.get(language):
        for match in targets.finditer(code):
            name = match.groupdict().get("a") or match.groupdict().get("b") or UNKNOWN_TEXT
            if reason := call.overwrite_reason(ExpandedWord(name.strip())):
                return reason
        rest = targets.sub("", rest)
    if re.search(rf"[\w.>:]{UNKNOWN_TEXT}\s*\(|(?:^|[;{{}}\n])\s*{UNKNOWN_TEXT}", rest):
        return "runs code that is known only at run time"
    word = _DANGEROUS_WORDS.get(language, _OTHER_LANGUAGE).search(
        _strip_literals(rest) if language in _MASKABLE_LANGUAGES else rest
    )
    return f"runs code that changes files or starts programs ({word.group().strip()[:20]})" if word else ""
