"""Converts decimal numerals to numbers and back, in JavaScript's spelling."""

_MAX_EXACT_INT = 2**53
_MAX_DIGITS = 309
_LIMIT = int("1" + "0" * _MAX_DIGITS)


def read_decimal(numeral: str) -> int | float | None:
    """Return the number of a numeral, integers as int, or None if it is out of a double's range."""
    unsigned = numeral.lstrip("+-")
    if unsigned.isdecimal():
        digits = unsigned.lstrip("0") or "0"
        if len(digits) > _MAX_DIGITS:
            return None
        return -int(digits) if numeral[0] == "-" else int(digits)
    value = float(numeral)
    if value in (float("inf"), float("-inf")):
        return None
    return int(value) if value.is_integer() and abs(value) <= _MAX_EXACT_INT else value


def in_range(number: int) -> bool:
    return abs(number) < _LIMIT


def write_number(number: int | float) -> str:
    """Return the numeral of a finite number that is in range."""
    if isinstance(number, int):
        return str(number)
    if number.is_integer() and abs(number) < 1e21:
        return str(int(number))
    mantissa, mark, exponent = repr(number).partition("e")
    if not mark:
        return mantissa
    power = int(exponent)
    if power < -6 or power > 0:
        return f"{mantissa}e{power:+d}"
    sign = "-" if number < 0 else ""
    return f"{sign}0.{'0' * (-power - 1)}{mantissa.lstrip('-').replace('.', '')}"
