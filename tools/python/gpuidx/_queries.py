"""Queries in Python's forms, laid out as the library's arrays of gx_query."""
from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ._library import encode, ffi, lib

Weighted = Mapping[str, float]

_QUERY = np.dtype({
    "names": ["size", "kind", "text", "len", "terms", "n_terms"],
    "formats": ["u8", "u4", "u8", "u8", "u8", "u4"],
    "offsets": [ffi.offsetof("gx_query", f) for f in ("size", "kind", "text", "len", "terms", "n_terms")],
    "itemsize": ffi.sizeof("gx_query"),
})
_TERM = np.dtype({
    "names": ["term", "len", "weight"],
    "formats": ["u8", "u8", "f4"],
    "offsets": [ffi.offsetof("gx_weighted_term", f) for f in ("term", "len", "weight")],
    "itemsize": ffi.sizeof("gx_weighted_term"),
})

KINDS = {"text": lib.GX_QUERY_TEXT, "boolean": lib.GX_QUERY_BOOLEAN}


class Batch:
    """n queries as an array of gx_query, and the bytes that they point to, which it keeps alive."""

    __slots__ = ("n", "array", "_keep", "_base")

    def __init__(self, array: Any, keep: Tuple[Any, ...]) -> None:
        self.n = len(array)
        self.array = array
        self._keep = keep
        self._base = int(array.ctypes.data)

    def at(self, i: int) -> Any:
        """A pointer to the i-th query."""
        return ffi.cast("gx_query *", self._base + i * _QUERY.itemsize)


def _pack(strings: Sequence[str]) -> Tuple[Any, Any, Any]:
    """The strings' UTF-8 behind each other: (bytes, offset of each, length of each)."""
    n = len(strings)
    if n == 0:
        return np.zeros(1, np.uint8), np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    try:
        data: Any = np.frombuffer("\0".join(strings).encode() + b"\0", np.uint8)
        ends: Any = np.flatnonzero(data == 0)
    except UnicodeEncodeError:
        ends = ()
    if len(ends) != n:  # a string holds a NUL itself, or a surrogate
        coded = [encode(s) for s in strings]
        data = np.frombuffer(b"\0".join(coded) + b"\0", np.uint8)
        lengths = np.fromiter((len(c) for c in coded), np.uint64, n)
        ends = np.cumsum(lengths + np.uint64(1)) - np.uint64(1)
        return data, ends.astype(np.uint64) - lengths, lengths
    begins = np.empty(n, np.uint64)
    begins[0] = 0
    begins[1:] = ends[:-1] + 1
    return data, begins, np.asarray(ends, np.uint64) - begins


def texts(queries: Sequence[str], syntax: str) -> Batch:
    data, begins, lengths = _pack(queries)
    array = np.zeros(len(queries), _QUERY)
    array["size"] = _QUERY.itemsize
    array["kind"] = KINDS[syntax]
    array["text"] = begins + np.uint64(data.ctypes.data)
    array["len"] = lengths
    return Batch(array, (array, data))


def _weighted(names: Any, n_names: Sequence[str], weights: Any, counts: Any) -> Batch:
    """Queries of weighted terms. names: for each posting of a query, which of n_names it is."""
    data, begins, lengths = _pack(n_names)
    terms = np.zeros(len(names), _TERM)
    terms["term"] = (begins + np.uint64(data.ctypes.data))[names]
    terms["len"] = lengths[names]
    terms["weight"] = weights
    array = np.zeros(len(counts), _QUERY)
    array["size"] = _QUERY.itemsize
    array["kind"] = lib.GX_QUERY_TERMS
    begins_of_query = np.cumsum(counts, dtype=np.uint64) - counts.astype(np.uint64)
    array["terms"] = begins_of_query * np.uint64(_TERM.itemsize) + np.uint64(terms.ctypes.data)
    array["n_terms"] = counts
    return Batch(array, (array, data, terms))


def weighted(queries: Sequence[Weighted]) -> Batch:
    numbers: dict[str, int] = {}
    names: List[int] = []
    weights: List[float] = []
    counts = np.zeros(len(queries), np.uint32)
    for i, q in enumerate(queries):
        if not isinstance(q, Mapping):
            raise TypeError("query %d is of type %s, not {term: weight} as the first" % (i, type(q).__name__))
        counts[i] = len(q)
        for term, weight in q.items():
            if not isinstance(term, str):
                raise TypeError("query %d: the term %r is of type %s, not str" % (i, term, type(term).__name__))
            try:
                weights.append(float(weight))
            except (TypeError, ValueError):
                raise TypeError("query %d: the weight %r of %r is no number" % (i, weight, term)) from None
            names.append(numbers.setdefault(term, len(numbers)))
    return _weighted(np.array(names, np.int64), list(numbers), np.array(weights, np.float32), counts)


def csr(matrix: Any, vocabulary: Optional[Sequence[str]]) -> Batch:
    """The rows of a scipy sparse matrix; column c is the term vocabulary[c], or c in decimal."""
    matrix = matrix.tocsr()
    if np.asarray(matrix.data).dtype.kind not in "biuf":
        raise TypeError("the weights of the matrix are numbers, not %s" % matrix.data.dtype)
    counts = np.diff(matrix.indptr).astype(np.uint32)
    columns = np.asarray(matrix.indices, np.int64)
    if len(columns) and (columns.min() < 0 or columns.max() >= matrix.shape[1]):
        raise ValueError("the matrix has a column outside [0, %d)" % matrix.shape[1])
    if vocabulary is not None and len(vocabulary) < matrix.shape[1]:
        raise ValueError("the vocabulary has %d terms, the matrix %d columns" % (len(vocabulary), matrix.shape[1]))
    used, names = np.unique(columns, return_inverse=True)
    terms = [str(c) if vocabulary is None else vocabulary[c] for c in used.tolist()]
    return _weighted(names.reshape(-1), terms, np.asarray(matrix.data, np.float32), counts)


Queries = Union[str, Sequence[str], Weighted, Sequence[Weighted], Any]


def of(queries: Any, syntax: str, vocabulary: Optional[Sequence[str]]) -> Tuple[Batch, Optional[List[str]], bool]:
    """The batch, the queries' ids (None: they are numbered from 1), and whether it is one query alone."""
    if syntax not in KINDS:
        raise ValueError("syntax is 'text' or 'boolean', not %r" % (syntax,))
    if isinstance(queries, str):
        return texts([queries], syntax), None, True
    if queries is None or isinstance(queries, (bytes, bytearray, int, float)):
        raise TypeError("queries are a str, {term: weight}, or many of these, not %s" % type(queries).__name__)
    if hasattr(queries, "tocsr"):  # any sparse matrix
        return csr(queries, vocabulary), None, False
    if hasattr(queries, "columns") and hasattr(queries, "itertuples"):  # a DataFrame: qid, query or query_toks
        ids = [str(q) for q in queries["qid"]] if "qid" in queries.columns else None
        if "query_toks" in queries.columns:
            return weighted(list(queries["query_toks"])), ids, False
        if "query" not in queries.columns:
            raise ValueError("the DataFrame has neither a column query nor query_toks, but %s" % (
                ", ".join(map(repr, queries.columns))))
        return of(list(queries["query"]), syntax, vocabulary)[0], ids, False
    if isinstance(queries, Mapping):
        values = list(queries.values())
        if values and isinstance(values[0], (str, Mapping)):  # ids to queries
            return of(values, syntax, vocabulary)[0], [str(q) for q in queries], False
        if values and not hasattr(values[0], "__float__"):
            raise TypeError("a dict of queries has values of type str or dict, one of weights numbers, not %s" % (
                type(values[0]).__name__))
        return weighted([queries]), None, True
    listed = queries if isinstance(queries, (list, tuple)) else list(queries)
    if listed and isinstance(listed[0], Mapping):
        return weighted(listed), None, False
    if listed and isinstance(listed[0], (tuple, list)):  # (id, query)
        if hasattr(listed[0], "_fields"):  # ir_datasets' named tuples: query_id, text
            found = [q.default_text() if hasattr(q, "default_text") else q.text for q in listed]
            return of(found, syntax, vocabulary)[0], [str(q.query_id) for q in listed], False
        for i, q in enumerate(listed):
            if not isinstance(q, (tuple, list)) or len(q) != 2:
                raise TypeError("query %d is no pair (id, query) as the first" % i)
        return of([q for _, q in listed], syntax, vocabulary)[0], [str(i) for i, _ in listed], False
    try:
        return texts(listed, syntax), None, False
    except TypeError:
        for i, q in enumerate(listed):
            if not isinstance(q, str):
                raise TypeError("query %d is of type %s, not str" % (i, type(q).__name__)) from None
        raise
