"""Regular expressions that are compiled on first use, so that start-up stays fast."""

import re
from functools import cache
from typing import Any, AnyStr, cast


@cache
def regex(source: str) -> re.Pattern[str]:
    """Return the compiled expression; each one is compiled once."""
    return re.compile(source)


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
