"""Known secrets taken out of JSON: by their very values, wherever they stand, and nothing else."""

from collections.abc import Iterable

MARK = "***WITHHELD-BY-OSTLER***"


class Withheld:
    """Replaces values by the mark in bytes of JSON; one object serves any number of texts."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = {form for value in values for form in _written(value.strip()) if value.strip()}
        self._forms = sorted((form.encode("utf-8", "surrogatepass") for form in forms), key=len, reverse=True)
        self._mark = MARK.encode()

    def found_in(self, data: bytes) -> bool:
        """Whether there is anything to take out."""
        return any(form in data for form in self._forms)

    def out_of(self, data: bytes) -> bytes:
        """The same JSON without them; a second time changes nothing."""
        for form in self._forms:
            data = data.replace(form, self._mark)
        return data

    def __bool__(self) -> bool:
        return bool(self._forms)


def _written(value: str) -> set[str]:
    """The value as JSON and as addresses write it."""
    import json
    from urllib.parse import quote, quote_plus

    return {
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value, safe=""),
        quote_plus(value),
    }
