"""Regular expressions that are compiled on first use, so that start-up stays fast."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, AnyStr, cast


@cache
def regex(source: str) -> re.Pattern[str]:
    """Return the compiled expression; each one is compiled once."""
    return re.compile(source)


class LinearPattern:
    """A pattern of RE2, which takes linear time. It takes any text, see `encodable`."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def search(self, text: str) -> Any:
        return self._compiled.search(encodable(text))

    def fullmatch(self, text: str) -> Any:
        return self._compiled.fullmatch(encodable(text))

    def finditer(self, text: str) -> Iterator[Any]:
        found: Iterator[Any] = self._compiled.finditer(encodable(text))
        return found


def encodable(text: str) -> str:
    """Return a text of the same length that can be encoded, as RE2 needs it; halves of surrogate pairs become `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def linear_regex(pattern: str, *, ignore_case: bool) -> LinearPattern:
    """Compile a pattern in the syntax of RE2. Raises `ValueError` if it is invalid."""
    import re2

    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    try:
        return LinearPattern(re2.compile(pattern, options))
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        raise ValueError(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)) from None


def lazy_regex(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern like `re.compile`. An invalid expression raises `re.error` on first use."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(source, flags))


class _LazyPattern:
    """Compiles on first access to an attribute and caches the attributes."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = getattr(re.compile(self._source, self._flags), name)
        return value
