"""A regular expression that is compiled when it is first used: most of those a module names, a start never needs."""

import re
from typing import Any, AnyStr, cast


def lazy_regex(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """To be used as `re.compile`; a wrong expression is told only at its first use."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(source, flags))


class _LazyPattern:
    """Compiles for the first thing that is wanted of it, and keeps each as its own."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        wanted = self.__dict__[name] = getattr(re.compile(self._source, self._flags), name)
        return wanted
