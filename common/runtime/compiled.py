"""Loops over rows that are compiled to machine code: what numpy does in twenty calls, each with arrays of its own.

Small batches cost next to nothing that way, and the code is so little that a forward does not drive it out of the
processor's cache. Compiled for the stated types when a module is first imported (seconds), read from a cache beside
it from then on; where there can be none, or it is torn, every start takes those seconds. NUMBA_DISABLE_JIT=1 runs them
as the plain Python they are.

numba reads a function from its cache as long as the function's own file is unchanged. The machine code of a function
also contains the functions that it calls and the constants that it reads: its cache is void as soon as any Python file
of its folder changes, so they belong into the same folder.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from llvmlite import ir
from numba import config, njit, types
from numba.cpython.unsafe.numbers import trailing_zeros as _trailing_zeros
from numba.extending import intrinsic

P = ParamSpec("P")
R = TypeVar("R")

BOOL, UINT8, INT16, INT32, INT64 = types.boolean, types.uint8, types.int16, types.int32, types.int64
UINT16, UINT32, UINT64 = types.uint16, types.uint32, types.uint64
FLOAT32, FLOAT64 = types.float32, types.float64


def column(dtype: types.Type, dimensions: int = 1) -> types.Array:
    """An array that a loop writes: contiguous, aligned."""
    return types.Array(dtype, dimensions, "C")


def read(dtype: types.Type, dimensions: int = 1, *, aligned: bool = False) -> types.Array:
    """An array that a loop reads: contiguous; where not `aligned`, also one such as the frames of a message are."""
    return types.Array(dtype, dimensions, "C", readonly=True, aligned=aligned)


def columns(kind: type[tuple[Any, ...]], *arrays: types.Array) -> types.BaseTuple:
    """A namedtuple of arrays that a loop takes: as one argument, with the columns as attributes."""
    return types.BaseTuple.from_types(arrays, kind)


REORDERED = {"reassoc", "contract"}  # NaN and infinities stay what they are


def compiled(
    *arguments: types.Type, nogil: bool = False, reorder: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function for these types of arguments; others raise TypeError.

    Without types it is compiled on its first call, for each combination of types that it is called with, all signed
    integers as int64 and no constant apart from others.

    Args:
        nogil: other threads of the process run while the function does.
        reorder: sums of floats may be added up in any order, many at once.
    """
    fast: set[str] | bool = REORDERED if reorder else False

    def compile_it(function: Callable[P, R]) -> Callable[P, R]:
        def compiled_with(**caching: bool) -> Any:
            kept = njit(error_model="numpy", nogil=nogil, fastmath=fast, **caching)(function)
            if config.DISABLE_JIT:
                return kept
            if caching:
                kept._cache._cache_file._source_stamp = _digest(Path(inspect.getfile(function)).parent)
            if arguments:
                kept.compile(arguments)
                kept.disable_compile()
                return kept
            compile_for = kept.compile
            kept.compile = lambda called_with: compile_for(tuple(map(_general, called_with)))
            return kept

        try:
            kept = compiled_with(cache=True)
        except Exception:  # noqa: BLE001 no folder to write to, or a torn file, which may raise anything
            kept = compiled_with()
        return cast(Callable[P, R], kept)

    return compile_it


def _general(argument: types.Type) -> types.Type:
    """Without it, numba compiles a function again for each constant and each width of integer that callers pass."""
    kind = types.unliteral(argument)
    return INT64 if isinstance(kind, types.Integer) and kind.signed else kind


@functools.cache
def _digest(folder: Path) -> str:
    """SHA-256 of the Python files of a folder, in hex digits."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        text = file.read_bytes()
        digest.update(f"{file.name} {len(text)}\n".encode() + text)
    return digest.hexdigest()


def _counted_zeros(bits: int) -> int:
    return (int(bits) & -int(bits)).bit_length() - 1


trailing_zeros: Callable[[Any], int] = _counted_zeros if config.DISABLE_JIT else _trailing_zeros  # of a number not 0
STREAMS = not config.DISABLE_JIT  # `stream_line` is there only where loops are compiled
LINE = 64  # bytes of a line of the processor's cache


@intrinsic
def stream_line(_typing: Any, target: Any, source: Any) -> Any:
    """Copy LINE bytes past the cache, for data that the server does not read again. `target` % LINE must be 0."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        words = ir.VectorType(ir.IntType(64), LINE // 8).as_pointer()
        to, come_from = (builder.inttoptr(address, words) for address in arguments)
        stored = builder.store(builder.load(come_from, align=1), to, align=LINE)
        stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), generate
