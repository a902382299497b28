"""Decodes ACP structs: requests strictly, everything else leniently (invalid fields are dropped)."""

from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from ostler.wire.jsonrpc import INVALID_PARAMS, Params, RpcError

W = TypeVar("W", bound=msgspec.Struct)

_INVALID = object()
_BLANKS: dict[Any, Any] = {str: "", tuple: (), int: 0, float: 0.0, bool: False}


def decode_params(kind: type[W], params: Params) -> W:
    """Decode the parameters of a request; null means absent. Raises `RpcError` with the location of the problem."""
    present = {name: value for name, value in params.items() if value is not None}
    if not isinstance(present.get("_meta"), dict):
        present.pop("_meta", None)
    try:
        return msgspec.convert(present, kind)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {error}") from None


def decode_lenient(kind: type[W], raw: Any) -> W:
    """Decode a struct; invalid or missing required fields get an empty value."""
    if not isinstance(raw, dict):
        raw = {}
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError:
        return _decode_fields(kind, raw)


def _decode_fields(kind: type[W], raw: dict[str, Any]) -> W:
    values = {}
    for field in msgspec.structs.fields(kind):
        value = _decode_value(field.type, raw[field.encode_name]) if field.encode_name in raw else _INVALID
        if value is not _INVALID:
            values[field.name] = value
        elif field.required:
            values[field.name] = _blank_value(field.type)
    return kind(**values)


def _decode_value(kind: Any, raw: Any) -> Any:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError:
        pass
    inner = _without_none(kind)
    if get_origin(inner) is tuple and isinstance(raw, list):
        items = (_decode_value(get_args(inner)[0], item) for item in raw)
        return tuple(item for item in items if item is not _INVALID)
    if isinstance(inner, type) and issubclass(inner, msgspec.Struct) and isinstance(raw, dict):
        return _decode_fields(inner, raw)
    return _INVALID


def _without_none(kind: Any) -> Any:
    """Return `X` for `X | None`."""
    if get_origin(kind) in (Union, UnionType):
        return next(part for part in get_args(kind) if part is not NoneType)
    return kind


def _blank_value(kind: Any) -> Any:
    inner = _without_none(kind)
    if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        return _decode_fields(inner, {})
    return _BLANKS.get(get_origin(inner) or inner)
