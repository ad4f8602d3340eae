"""The C library: found, loaded, and its errors made exceptions."""
from __future__ import annotations

import os
from typing import Any

from ._bindings import ffi as _ffi  # type: ignore[import-not-found, unused-ignore]

ffi: Any = _ffi
_HERE = os.path.dirname(os.path.abspath(__file__))


def _find() -> str:
    """The library's path: GPUIDX_LIBRARY, or the one that lies in this package."""
    path = os.environ.get("GPUIDX_LIBRARY")
    if path:
        return path
    for name in ("libgpuidx.so", "libgpuidx.so.0"):
        if os.path.exists(os.path.join(_HERE, name)):
            return os.path.join(_HERE, name)
    raise ImportError("the package %s has no libgpuidx.so; install it with pip, or set GPUIDX_LIBRARY" % _HERE)


lib: Any = ffi.dlopen(_find())
UINT32_MAX = 0xFFFFFFFF
UINT64_MAX = 0xFFFFFFFFFFFFFFFF


class Error(Exception):
    """A call of the library failed. `status` is its name for the kind of failure ("corrupt", "usage", ...)."""

    status = "error"


class UsageError(Error, ValueError):
    """An argument is out of its range."""


class InputError(Error, ValueError):
    """A document, corpus, query log, qrels file or run is malformed."""


class CorruptError(Error):
    """An index is damaged, truncated or of an unknown version."""


class StorageError(Error, OSError):
    """The system refused to open, read or write."""


class ExistsError(Error, FileExistsError):
    """The output exists already."""


class NotFoundError(Error, FileNotFoundError):
    """A file, or a named thing, is not there."""


class OutOfMemoryError(Error, MemoryError):
    """There is not enough host memory."""


class NoGPUError(Error, RuntimeError):
    """A GPU is required and none can be used."""


class CUDAError(Error, RuntimeError):
    """The GPU failed, was lost, or is too small."""


class Cancelled(Error):
    """The search was cancelled."""


class DeadlineError(Error, TimeoutError):
    """The time that the call was given has passed."""


class InternalError(Error, RuntimeError):
    """A defect of the library."""


_CLASSES = {
    "GX_EUSAGE": UsageError,
    "GX_EINPUT": InputError,
    "GX_ECORRUPT": CorruptError,
    "GX_EIO": StorageError,
    "GX_EEXISTS": ExistsError,
    "GX_ENOTFOUND": NotFoundError,
    "GX_ENOMEM": OutOfMemoryError,
    "GX_ENOGPU": NoGPUError,
    "GX_ECUDA": CUDAError,
    "GX_ECANCELLED": Cancelled,
    "GX_EDEADLINE": DeadlineError,
    "GX_EINTERNAL": InternalError,
}
_BY_STATUS = {int(getattr(lib, name)): cls for name, cls in _CLASSES.items()}


def error(status: int, text: str) -> Error:
    """The exception of a status, with these words."""
    e: Error = _BY_STATUS.get(int(status), Error)(text)
    e.status = ffi.string(lib.gx_status_name(status)).decode()
    return e


def check(status: int, err: Any) -> None:
    """Raise what the status and the gx_error * say; return where it is GX_OK."""
    if status:
        text = ffi.string(err.text).decode("utf-8", "replace")
        raise error(status, text or ffi.string(lib.gx_status_name(status)).decode())


def new_error() -> Any:
    return ffi.new("gx_error *")


def options(kind: str) -> Any:
    """A new options struct with its defaults. kind: "gx_query_options", say."""
    o = ffi.new(kind + " *")
    getattr(lib, kind + "_init")(o, ffi.sizeof(kind))
    return o


def whole(value: Any, what: str, least: int = 0, most: int = UINT32_MAX) -> int:
    """An integer in [least, most]. UsageError."""
    if not hasattr(value, "__index__") or isinstance(value, bool) or not least <= value.__index__() <= most:
        raise UsageError("%s is an integer from %d to %d, not %r" % (what, least, most, value))
    return int(value)


def real(value: Any, what: str) -> float:
    """A number. TypeError."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError("%s is a number, not %r" % (what, value))
    return float(value)


def encode(text: Any, what: str = "a query") -> bytes:
    """The UTF-8 of a str. What another call decoded with surrogates becomes the same bytes again. TypeError."""
    if not isinstance(text, str):
        raise TypeError("%s is of type %s, not str" % (what, type(text).__name__))
    try:
        return text.encode()
    except UnicodeEncodeError:
        try:
            return text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return text.encode("utf-8", "surrogatepass")


def path_bytes(path: Any) -> bytes:
    """A path as C takes it. ValueError where it holds a NUL, which would end it there."""
    coded = os.fsencode(path)
    if b"\0" in coded:
        raise ValueError("the path %r holds a NUL" % (path,))
    return coded


def absolute(path: str) -> str:
    """The path from the root, by the working directory as it is now; `..` is left alone, for links may come before."""
    try:
        return os.path.join(os.getcwd(), path)
    except OSError:  # the working directory is gone
        return path


class Interrupt:
    """Lets Ctrl-C stop long calls of the library: `cancel` goes into their options, and check takes what each call
    returned. Python's handler of the signal runs in the callback; an exception of it ends the call, and check raises
    it."""

    def __init__(self) -> None:
        self._raised: Any = None
        self.cancel = ffi.callback("bool(void *)", lambda _: False, error=True, onerror=self._keep)

    def _keep(self, _: Any, exception: Any, __: Any) -> None:
        self._raised = self._raised or exception

    def check(self, status: int, err: Any) -> None:
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised
        check(status, err)


def version() -> str:
    return str(ffi.string(lib.gx_version()).decode())
