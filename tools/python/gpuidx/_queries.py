"""Queries in Python's forms, laid out as the library's arrays of gx_query."""
from __future__ import annotations

from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from ._library import encode, ffi, lib

Weighted = Mapping[str, float]

_QUERY = np.dtype({
    "names": ["size", "kind", "text", "len", "terms", "n_terms", "filter"],
    "formats": ["u8", "u4", "u8", "u8", "u8", "u4", "u8"],
    "offsets": [ffi.offsetof("gx_query", f) for f in ("size", "kind", "text", "len", "terms", "n_terms", "filter")],
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

    def set_filters(self, filters: Sequence[Any]) -> None:
        """Give each query a filter: a pointer to a gx_filter, or NULL."""
        self.array["filter"] = [int(ffi.cast("uintptr_t", f)) for f in filters]


def pack(strings: Sequence[str]) -> Tuple[Any, Any, Any]:
    """The strings' UTF-8 behind each other: (bytes, offset of each, length of each). TypeError: not all are str."""
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
    """Texts; one without words is a query of all documents."""
    data, begins, lengths = pack(queries)
    array = np.zeros(len(queries), _QUERY)
    array["size"] = _QUERY.itemsize
    array["kind"] = KINDS[syntax]
    for i in np.flatnonzero(data[begins.astype(np.int64)] <= 32).tolist():  # a blank, or the NUL behind nothing
        if not queries[i].strip():
            array["kind"][i] = lib.GX_QUERY_ALL
    array["text"] = begins + np.uint64(data.ctypes.data)
    array["len"] = lengths
    return Batch(array, (array, data))


def weighted_terms(places: Any, lengths: Any, weights: Any) -> Any:
    """An array of gx_weighted_term."""
    terms = np.zeros(len(places), _TERM)
    terms["term"], terms["len"], terms["weight"] = places, lengths, weights
    return terms


def is_number(weight: Any) -> bool:
    if isinstance(weight, (str, bytes)):
        return False
    try:
        float(weight)
    except (TypeError, ValueError):
        return False
    return True


def numbers(weights: Sequence[Any]) -> Any:
    """Weights as float32, infinite where they are too great; integers and what float() takes are numbers, strings are
    not. TypeError."""
    array: Any = np.asarray(weights) if weights else np.zeros(0, np.float32)
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        if not all(map(is_number, weights)):
            raise TypeError("not all weights are numbers")
        array = np.array([float(weight) for weight in weights])
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _weighted(names: Any, n_names: Sequence[str], weights: Any, counts: Any) -> Batch:
    """Queries of weighted terms. names: for each posting of a query, which of n_names it is."""
    data, begins, lengths = pack(n_names)
    terms = weighted_terms((begins + np.uint64(data.ctypes.data))[names], lengths[names], weights)
    array = np.zeros(len(counts), _QUERY)
    array["size"] = _QUERY.itemsize
    array["kind"] = lib.GX_QUERY_TERMS
    begins_of_query = np.cumsum(counts, dtype=np.uint64) - counts.astype(np.uint64)
    array["terms"] = begins_of_query * np.uint64(_TERM.itemsize) + np.uint64(terms.ctypes.data)
    array["n_terms"] = counts
    return Batch(array, (array, data, terms))


def weighted(queries: Sequence[Weighted]) -> Batch:
    index_of: dict[str, int] = {}
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
            if not is_number(weight):
                raise TypeError("query %d: the weight %r of %r is no number" % (i, weight, term))
            weights.append(float(weight))
            names.append(index_of.setdefault(term, len(index_of)))
    return _weighted(np.array(names, np.int64), list(index_of), numbers(weights), counts)


class Rows(NamedTuple):
    """A sparse matrix by rows, verified. Row i has the columns (int64) and weights (float32) [ends[i], ends[i + 1]);
    ends is int64 [n + 1]."""

    ends: Any
    columns: Any
    weights: Any
    n_columns: int


def is_matrix(given: Any) -> bool:
    """Whether this is a matrix in one of the forms that rows_of takes."""
    if isinstance(given, np.ndarray):
        return given.ndim == 2 and given.dtype.kind in "biuf"
    return hasattr(given, "tocsr") or hasattr(given, "crow_indices") or (
        isinstance(given, tuple) and len(given) == 3 and all(isinstance(part, np.ndarray) for part in given))


def _from_torch(matrix: Any) -> Tuple[Any, Any, Any, int]:
    """The parts of a sparse tensor of PyTorch, of the layout COO or CSR, on any device."""
    matrix = matrix.detach()
    if str(matrix.layout) != "torch.sparse_csr":
        matrix = matrix.coalesce().to_sparse_csr()
    return (matrix.values().float().cpu().numpy(), matrix.col_indices().cpu().numpy(),
            matrix.crow_indices().cpu().numpy(), int(matrix.shape[1]))


def _checked(matrix: Any) -> Any:
    """A matrix of scipy, whose conversion to rows writes outside its arrays where indices are out of their range.
    ValueError."""
    kind = getattr(matrix, "format", None)
    if kind in ("csc", "bsr"):
        matrix.check_format(full_check=True)
    elif kind == "coo":
        for what, places, n in zip(("row", "column"), (matrix.row, matrix.col), matrix.shape):
            if len(places) and (places.min() < 0 or places.max() >= n):
                raise ValueError("the matrix has a %s outside [0, %d)" % (what, n))
    return matrix


def rows_of(matrix: Any, merge: bool = False) -> Rows:
    """The rows of a scipy sparse matrix of any format, of a sparse tensor of PyTorch, of a 2-D numpy array, or of
    (data, indices, indptr) of a CSR matrix; zeros are left out. merge: weights of the same row and column are added
    up. TypeError; ValueError: the offsets or columns are out of their range."""
    n_columns = None
    if isinstance(matrix, np.ndarray):
        if matrix.ndim != 2:
            raise ValueError("a matrix has 2 dimensions, not %d" % matrix.ndim)
        row, columns = np.nonzero(matrix)
        data, n_columns = matrix[row, columns], matrix.shape[1]
        ends = np.searchsorted(row, np.arange(matrix.shape[0] + 1))
    elif isinstance(matrix, tuple):
        data, columns, ends = matrix
    elif hasattr(matrix, "tocsr"):
        if len(matrix.shape) != 2:
            raise ValueError("a matrix has 2 dimensions, not %d" % len(matrix.shape))
        matrix = _checked(matrix).tocsr()
        data, columns, ends, n_columns = matrix.data, matrix.indices, matrix.indptr, matrix.shape[1]
    else:
        data, columns, ends, n_columns = _from_torch(matrix)
    data, columns, ends = np.asarray(data), np.asarray(columns), np.asarray(ends)
    if data.dtype.kind not in "biuf":
        raise TypeError("the weights of the matrix are numbers, not %s" % data.dtype)
    if columns.dtype.kind not in "iu" or ends.dtype.kind not in "iu":
        raise TypeError("the columns and offsets of the matrix are integers, not %s and %s" % (
            columns.dtype, ends.dtype))
    if data.ndim != 1 or data.shape != columns.shape or ends.ndim != 1 or len(ends) == 0:
        raise ValueError("the matrix has %s weights, %s columns and %s offsets" % (
            data.shape, columns.shape, ends.shape))
    columns, ends = columns.astype(np.int64), ends.astype(np.int64)
    if ends[0] != 0 or (np.diff(ends) < 0).any() or ends[-1] > len(data):
        raise ValueError("the offsets of the matrix do not rise from 0 to at most %d" % len(data))
    columns, data = columns[:ends[-1]], data[:ends[-1]]
    most = int(columns.max()) if len(columns) else -1
    n_columns = most + 1 if n_columns is None else int(n_columns)
    if len(columns) and (columns.min() < 0 or most >= n_columns):
        raise ValueError("the matrix has a column outside [0, %d)" % n_columns)
    with np.errstate(over="ignore"):  # to infinity, which the library refuses
        weights = data.astype(np.float32)
    rows = Rows(ends, columns, weights, n_columns)
    return _without_zeros(_merged(rows) if merge else rows)


def _of_places(ends: Any) -> Any:
    """The row of each place of a matrix with these offsets."""
    return np.repeat(np.arange(len(ends) - 1), np.diff(ends))


def _merged(rows: Rows) -> Rows:
    ends, columns, weights, n_columns = rows
    row = _of_places(ends)
    if not ((row[1:] == row[:-1]) & (columns[1:] <= columns[:-1])).any():
        return rows
    order = np.lexsort((columns, row))
    columns, weights = columns[order], weights[order]
    first = np.flatnonzero(np.concatenate(([True], (row[1:] != row[:-1]) | (columns[1:] != columns[:-1]))))
    sums = np.add.reduceat(weights, first, dtype=np.float32)
    return Rows(np.searchsorted(row[first], np.arange(len(ends))), columns[first], sums, n_columns)


def _without_zeros(rows: Rows) -> Rows:
    kept = rows.weights != 0
    if kept.all():
        return rows
    row = _of_places(rows.ends)[kept]
    return Rows(np.searchsorted(row, np.arange(len(rows.ends))), rows.columns[kept], rows.weights[kept],
                rows.n_columns)


def column_names(rows: Rows, vocabulary: Any) -> Tuple[Any, List[str]]:
    """(numbers, names): the term of rows.columns[i] is names[numbers[i]]. vocabulary: the term of each column, a
    sequence or {term: column}; None: the column in decimal."""
    if isinstance(vocabulary, Mapping):
        by_column: Any = {int(column): term for term, column in vocabulary.items()}
    elif vocabulary is not None and not isinstance(vocabulary, (str, bytes)):
        by_column = vocabulary
        if len(vocabulary) < rows.n_columns:
            raise ValueError("the vocabulary has %d terms, the matrix %d columns" % (len(vocabulary), rows.n_columns))
    elif vocabulary is not None:
        raise TypeError("a vocabulary is a sequence of str or {str: column}, not %s" % type(vocabulary).__name__)
    if rows.n_columns <= 1 << 24:
        seen = np.zeros(rows.n_columns, bool)
        seen[rows.columns] = True
        used = np.flatnonzero(seen)
        number = np.cumsum(seen) - 1
        numbers = number[rows.columns]
    else:
        used, numbers = np.unique(rows.columns, return_inverse=True)
        numbers = numbers.reshape(-1)
    if vocabulary is None:
        return numbers, [str(c) for c in used.tolist()]
    try:
        names = [by_column[c] for c in used.tolist()]
    except KeyError as missing:
        raise ValueError("the vocabulary has no term for column %s" % missing) from None
    for column, name in zip(used.tolist(), names):
        if not isinstance(name, str):
            raise TypeError("the vocabulary's term of column %d is of type %s, not str" % (column, type(name).__name__))
    return numbers, names


def csr(matrix: Any, vocabulary: Any) -> Batch:
    """The rows of a matrix as queries; column c is the term that the vocabulary gives, or c in decimal."""
    rows = rows_of(matrix)
    numbers, names = column_names(rows, vocabulary)
    return _weighted(numbers, names, rows.weights, np.diff(rows.ends).astype(np.uint32))


Queries = Union[None, str, Sequence[str], Weighted, Sequence[Weighted], Any]


def of(queries: Any, syntax: str, vocabulary: Any) -> Tuple[Batch, Optional[List[str]], bool]:
    """The batch, the queries' ids (None: they are numbered from 1), and whether it is one query alone."""
    if syntax not in KINDS:
        raise ValueError("syntax is 'text' or 'boolean', not %r" % (syntax,))
    if queries is None or isinstance(queries, str):
        return texts([queries or ""], syntax), None, True
    if isinstance(queries, (bytes, bytearray, int, float)):
        raise TypeError("queries are a str, {term: weight}, or many of these, not %s" % type(queries).__name__)
    if is_matrix(queries):
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
