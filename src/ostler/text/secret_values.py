"""Distinguishes secret values from placeholders, code, types and sentences."""

from ostler.text.lazy_regex import regex
from ostler.text.secret_names import Grade, split_words
from ostler.text.secret_words import word_list

REDACTION_MARKER = "***REDACTED***"


_VARIABLE = r"\$(?:[A-Z_][A-Z0-9_]*|[a-z_]+|[0-9])|%[A-Za-z_]+%|[:@](?:[a-z_]+|[A-Z_]+)|%s|__\w+__|@\w+@"
_REFERENCE = (
    r"(?:vault|env|file|op|ssm|keyring|secret|ref\+\w+|arn|projects|@Microsoft\.KeyVault)[:/(]"
    r"|!(?:Ref|Sub|GetAtt|ImportValue|vault|secret|env|env_var|include|reference|Join)(?:\s|$)"
)
_TEMPLATE = (
    r"[$#]\{[^{}]{1,200}\}|\{\{|\{[A-Za-z_.]{1,60}\}|<[A-Za-z_ \-]{1,60}>|\$\([^()]{1,200}\)"
    r"|%\(\w{1,60}\)s|(?<![A-Za-z0-9])%[sdr](?![A-Za-z0-9])"
)
_EXPRESSION = (
    r"[A-Za-z_$][\w.$:>?!\-]*[(\[]"  # a call or an index
    r"|[A-Za-z_][\w.:]*<[\w<>, |&'\[\]]*>\??[;,)]*\Z"  # a generic type
    r"|(?:new|await|not|lambda|function|async|func|fn|typeof|yield|if|return|&mut|&'static)\s"
    r"|(?:\[\]|\*|&|-)+[A-Za-z_]+\Z|\w+ \| \w|\w+\s*=>|\w+ [+?|&]+ |\w+\[\]\Z|f?[\"'`]"
)


def looks_random(value: str) -> bool:
    """Return whether a value looks machine-generated: long, with mixed characters and without words."""
    if not 16 <= len(value) <= 4096 or not regex(r"[A-Za-z0-9+/=_.~%\-]+").fullmatch(value):
        return False
    if regex(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch(value):
        return False
    digits = sum(char.isdigit() for char in value)
    if digits == len(value) or len(set(value)) < 8:
        return False
    if digits < 2:
        return value.isalnum() and len(_camel_words(value)) * 5 > len(value) * 2
    longest_word = max(map(len, _camel_words(value)), default=0)
    return longest_word <= 6 or (longest_word <= 9 and len(value) >= 30)


def _camel_words(value: str) -> list[str]:
    return regex(r"[A-Z]?[a-z]+|[A-Z]+").findall(value)


def is_mixed(value: str) -> bool:
    """Return whether a value has letters together with digits or signs, like a typical password."""
    return bool(regex(r"[A-Za-z]").search(value)) and bool(regex(r"[0-9!@#$%^&*?~+=]").search(value))


def is_secret(value: str, grade: Grade) -> bool:
    """Return whether a value is secret, given the grade of its name."""
    if len(value) < 3 or REDACTION_MARKER in value or not regex(r"[^\W_]").search(value):
        return False
    if grade == "soft":
        return looks_random(value) and not is_placeholder(value)
    if grade == "cookie":
        return regex(r"[\w.$\-]+=").match(value) is not None and not is_placeholder(value.split("=", 1)[1])
    if is_placeholder(value) or _is_known_word(value, grade) or _is_path_or_url(value):
        return False
    if regex(r"[+-]?[0-9][0-9._]*").fullmatch(value):
        return _is_secret_number(value, grade)
    if grade == "weak":
        return len(value) >= 5 and is_mixed(value) and " " not in value
    if grade == "auth" and (_is_scheme(value) or regex(r"[\w.+-]+@[\w-]+(?:\.\w+)+").fullmatch(value)):
        return False
    return not is_sentence(value, word_list("message") if grade == "password" else word_list("sentence"))


def _is_scheme(value: str) -> bool:
    lowered = value.lower()
    return lowered in word_list("schemes") or (
        len(value) < 16 and regex(r"[-_ ]").split(lowered)[0] in word_list("schemes")
    )


def _is_secret_number(value: str, grade: Grade) -> bool:
    return "." not in value and len(value) >= {"password": 4, "secret": 8}.get(grade, 12)


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder or reference rather than a secret."""
    lowered = value.lower()
    if not value or lowered in word_list("constants") or REDACTION_MARKER in value:
        return True
    if _is_reference(value) or regex(r"x{4,}|X{4,}|\*{3,}|•{3,}|\.{3}|…|[xX]{2,}[-_][xX]{2,}").search(value):
        return True
    if regex(r"(.)\1*").fullmatch(value) and len(value) < 16:
        return True
    return len(value) < 64 and regex(r"[\w\-. ]+").fullmatch(value) is not None and _has_placeholder_word(value)


def _has_placeholder_word(value: str) -> bool:
    if word_list("placeholder").intersection(regex(r"[\W_]+").split(value.lower())):
        return True
    if regex(r"[0-9]").search(value):
        return False
    return not (word_list("placeholder") | word_list("mild-placeholder")).isdisjoint(split_words(value))


def _is_reference(value: str) -> bool:
    """Match variables, templates and references: `$X`, `${X}`, `%X%`, `{{ x }}`, `<x>`, `:name`, `vault:...`."""
    if regex(_VARIABLE).fullmatch(value) or regex(_REFERENCE).match(value):
        return True
    if (value[0] + value[-1]) in ("{}", "<>", "[]") or (value[0] == "$" and value[1:2] in ("{", "(")):
        return True
    return regex(_TEMPLATE).search(value) is not None


def _is_known_word(value: str, grade: Grade) -> bool:
    lowered = value.lower().rstrip("?;,")
    if lowered in word_list("types") or lowered in word_list("states"):
        return True
    if regex(r"v?[0-9]+(?:\.[0-9]+)+").fullmatch(value):
        return True
    # The name of another setting: `password: db_password`, `"token": "GITHUB_TOKEN"`.
    if regex(r"[A-Za-z]+(?:[_\- ][A-Za-z]+)+|[a-z]+(?:[A-Z][a-z]+)+|(?:[A-Z][a-z]+)+").fullmatch(value):
        return (
            word_list("name").issuperset(split_words(value))
            or regex(r"[A-Z]+(?:_[A-Z]+)+").fullmatch(value) is not None
        )
    return False


def _is_path_or_url(value: str) -> bool:
    """Match paths, URLs, colours and regular expressions."""
    if regex(r"[a-z][a-z0-9+.-]*://.*").match(value) or value.startswith("data:"):
        return True
    if regex(r"(?:~|\.{1,2})?/[\w.\-/]+|[A-Za-z]:\\.*|\./.*").fullmatch(value):
        return value[0] in ".~" or (len(parts := value.split("/")) > 2 and not any(map(_is_scrambled, parts)))
    if regex(r"#[0-9A-Fa-f]{3,8}").fullmatch(value):
        return True
    return (
        regex(r"^\^.*[\[(.\\$]|\[[^\]]{0,40}(?:a-z|A-Z|0-9)|\\[dws][+*{]|\(\?[:=!]|[.\]][+*]\$?$").search(value[:400])
        is not None
    )


def _is_scrambled(part: str) -> bool:
    return len(part) >= 10 and bool(regex(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[^0-9]*[0-9]").match(part))


def is_sentence(value: str, sentence_words: frozenset[str]) -> bool:
    parts = value.lower().split(maxsplit=40)
    return len(parts) > 1 and any(part.strip(".,:;!?\"'()") in sentence_words for part in parts)


def is_code(value: str) -> bool:
    """Return whether unquoted text is an expression: a call, an attribute, an index, a generic type."""
    if regex(_EXPRESSION).match(value):
        return True
    if regex(r"[A-Za-z_]\w*(?:(?:\??\.|::|->)[A-Za-z_]\w*)+\??[;,)]*").fullmatch(value):
        return split_words(value)[0] in word_list("code-roots") or not regex(r"[0-9]").search(value)
    return _is_type(value)


def _is_type(value: str) -> bool:
    """Match capitalised type names such as `AuthToken` and `_TokenType`."""
    if not regex(r"_?(?:[A-Z]+[a-z]+[0-9]?){2,}").fullmatch(value):
        return False
    return not word_list("type").isdisjoint(split_words(value))


def is_variable_name(value: str) -> bool:
    """Return whether unquoted text within a line looks like a variable name."""
    if not regex(r"[A-Za-z_$]\w*").fullmatch(value):
        return False
    letters = value.rstrip("0123456789")
    return not regex(r"[0-9]").search(letters) and (
        letters == value or word_list("variable").issuperset(split_words(letters)) or len(letters) <= 1
    )
