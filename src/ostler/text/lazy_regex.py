"""Regular expressions that are compiled on first use, so that start-up stays fast."""

import re
from functools import cache
from typing import Any, AnyStr, cast


@cache
def regex(source: str) -> re.Pattern[str]:
    """Return the compiled expression; each one is compiled once."""
    return re.compile(source)


def linear_regex(pattern: str, *, ignore_case: bool) -> Any:
    """Compile a pattern in the syntax of RE2, which takes linear time. Raises `ValueError` if it is invalid."""
    import re2

    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
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
