"""Decodes compressed replies, which some gateways send although compression was not requested."""

import zlib
from collections.abc import Iterator

from ostler.http.body import FramingError

SUPPORTED_ENCODINGS = ("gzip", "x-gzip", "deflate")
_PIECE_BYTES = 262_144
_GZIP_OR_ZLIB, _RAW_DEFLATE = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS


class ContentDecoder:
    """Decompresses the content of one response in pieces of bounded size, however much a few bytes expand to."""

    def __init__(self) -> None:
        self._inflater: zlib._Decompress | None = None

    @property
    def is_incomplete(self) -> bool:
        return self._inflater is not None and not self._inflater.eof

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed content of these bytes. Raises `FramingError`."""
        while data:
            if self._inflater is None or self._inflater.eof:
                has_header = data[0] == 0x1F or data[0] & 0x0F == 8
                self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB if has_header else _RAW_DEFLATE)
            try:
                piece = self._inflater.decompress(data, _PIECE_BYTES)
            except zlib.error:
                raise FramingError("the compressed data is damaged") from None
            if piece:
                yield piece
            data = self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail
