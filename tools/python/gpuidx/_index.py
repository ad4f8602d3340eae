"""An open index: searching it, and reading what it holds."""
from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import json
import math
import os
import threading
import time
import warnings
import weakref
from typing import (Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple,
                    Union, cast)

import numpy as np

from . import _queries
from ._library import (UINT32_MAX, UINT64_MAX, Interrupt, UsageError, absolute, check, encode, error, ffi, lib,
                       new_error, options, path_bytes, real, whole)
from ._results import Facet, Group, Results, hits_of
from ._words import Expansion, Synonyms, Word, expand, suggest

_OPS = {"or": lib.GX_OP_OR, "and": lib.GX_OP_AND, "and-or": lib.GX_OP_AND_OR}
_ENGINES = {"auto": lib.GX_ENGINE_AUTO, "cpu": lib.GX_ENGINE_CPU, "gpu": lib.GX_ENGINE_GPU}
_CHECKS = {"header": lib.GX_CHECK_HEADER, "structure": lib.GX_CHECK_STRUCTURE, "checksum": lib.GX_CHECK_CHECKSUM,
           "full": lib.GX_CHECK_FULL}
_LOADS = {"map": lib.GX_LOAD_MAP, "read": lib.GX_LOAD_READ}
_ALGORITHMS = {"auto": lib.GX_ALGORITHM_AUTO, "pmf": lib.GX_ALGORITHM_PMF, "taat": lib.GX_ALGORITHM_TAAT,
               "block-max": lib.GX_ALGORITHM_BLOCK_MAX, "daat": lib.GX_ALGORITHM_DAAT}
_QUOTES = {"phrase": lib.GX_QUOTES_PHRASE, "words": lib.GX_QUOTES_WORDS}
_EXPANSION_SCORINGS = {"each": lib.GX_EXPANSION_EACH, "one": lib.GX_EXPANSION_ONE,
                       "constant": lib.GX_EXPANSION_CONSTANT}
_VALUE = np.dtype([("number", np.int64), ("real", np.float64), ("string", np.uint64), ("len", np.uint64)])  # gx_value
_SPREADS = {"copies": lib.GX_SPREAD_COPIES, "parts": lib.GX_SPREAD_PARTS}
_SCALES = {"collection": False, "list": True}
_ORDERS = {"keep": lib.GX_ORDER_KEEP, "random": lib.GX_ORDER_RANDOM, "bp": lib.GX_ORDER_BP, "id": lib.GX_ORDER_ID}


def _choose(table: Mapping[str, Any], what: str, name: str) -> Any:
    try:
        return table[name]
    except (KeyError, TypeError):
        raise UsageError("%s is one of %s, not %r" % (what, ", ".join(map(repr, table)), name)) from None


def _residency(most: Union[int, str, None]) -> Tuple[int, float]:
    """The most bytes, and the greatest share, of the lists' payload in GPU memory."""
    if most is None:
        return UINT64_MAX, 1.0
    if isinstance(most, str):
        try:
            share = float(most[:-1]) / 100 if most.endswith("%") else -1.0
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            raise UsageError("resident is a number of bytes or a share from '0%%' to '100%%', not %r" % most)
        return UINT64_MAX, share
    whole(most, "resident", 0, UINT64_MAX)
    return most, 1.0


def _devices(numbers: Iterable[int], device: int, spread: str) -> List[int]:
    """The GPUs of an Index that is opened with these arguments. UsageError, TypeError."""
    listed = list(numbers)
    for i, number in enumerate(listed):
        whole(number, "devices[%d]" % i, 0, 1023)
    if len(set(listed)) < len(listed) or len(listed) > lib.GX_MAX_DEVICES:
        raise UsageError("devices is a list of at most %d GPUs, each once, not %r" % (lib.GX_MAX_DEVICES, listed))
    if listed and device:
        raise UsageError("device=%r and devices=%r: one of them" % (device, listed))
    if _choose(_SPREADS, "spread", spread) == lib.GX_SPREAD_PARTS and not listed:
        raise UsageError("spread='parts': devices lists the GPUs that hold the parts")
    return [int(number) for number in listed]


def _preset(name: str) -> int:
    found = ffi.new("gx_preset *")
    if not isinstance(name, str) or not lib.gx_preset_find(name.encode(), found):
        names = [ffi.string(lib.gx_preset_name(i)).decode() for i in range(lib.GX_N_PRESETS)]
        raise UsageError("scorer is one of %s, not %r" % (", ".join(map(repr, names)), name))
    return int(found[0])


def _values_array(found: Any) -> Any:
    """Index.values, of a gx_values."""
    starts = np.frombuffer(ffi.buffer(found.starts, (found.n + 1) * 8), np.uint64).astype(np.int64)
    total, kind = int(starts[-1]), ffi.string(lib.gx_attribute_type_name(found.type)).decode()
    fields = np.frombuffer(ffi.buffer(found.values, total * ffi.sizeof("gx_value")), _VALUE) if total else np.zeros(
        0, _VALUE)
    if kind in ("keyword", "keywords"):
        flat = np.empty(total, object)
        for i in range(total):
            value = found.values[i]
            flat[i] = bytes(ffi.buffer(value.string, value.len)).decode("utf-8", "replace") if value.len else ""
    elif kind == "float":
        flat = fields["real"].copy()
    elif kind == "date":
        flat = fields["number"].astype("datetime64[s]")
    else:
        flat = fields["number"].astype(bool if kind == "bool" else np.int64)
    if found.several:
        lists = np.empty(found.n, object)
        for i in range(found.n):
            lists[i] = flat[starts[i]:starts[i + 1]].tolist()
        return lists
    if total == found.n:
        return flat
    has = starts[1:] > starts[:-1]
    missing: Dict[str, Tuple[Any, Any]] = {"float": (np.nan, np.float64),
                                           "date": (np.datetime64("NaT"), "datetime64[s]")}
    out: Any = np.full(found.n, *missing.get(kind, (None, object)))
    out[has] = flat
    return out


@dataclasses.dataclass(frozen=True)
class IndexInfo:
    """Statistics of an index. bytes: of the file, or of a collection's files; device_bytes: what an engine on a GPU
    copies to it; impact_unit: what an impact of 1 adds to a score, 0 where each list has a unit of its own;
    positions: the places of words in documents are kept, which phrases need."""

    n_docs: int
    n_terms: int
    n_postings: int
    n_tokens: int
    avgdl: float
    min_doc_len: int
    max_doc_len: int
    block_len: int
    bytes: int
    device_bytes: int
    impacts: bool
    titles: bool
    texts: bool
    uuid: str
    impact_unit: float = 1.0
    positions: bool = False


class Part(NamedTuple):
    """A file of a collection; n_docs are its live documents, bytes those of the file."""

    path: str
    n_docs: int
    n_deleted: int
    bytes: int


class Postings(NamedTuple):
    """The list of a term: docids (uint32, or uint64 as those of Results; rising) and tfs (uint32), of equal length."""

    docids: Any
    tfs: Any


class Token(NamedTuple):
    """A term that analysis made of the bytes [begin, end) of a text's UTF-8, and its word's position from 0. Words that
    analysis leaves out count."""

    term: str
    begin: int
    end: int
    position: int


class _Facets:
    """What is counted beside each of n queries, and the counts."""

    def __init__(self, index: Any, asked: Union[str, Sequence[str], None], sums: Union[str, Sequence[str], None],
                 n: int, count: bool) -> None:
        self.asked = self._texts(asked, "a facet")
        of_all = self._texts(sums, "a sum")
        self.answers: List[Dict[str, Facet]] = [{} for _ in range(n)]
        self.sums: List[Dict[str, Any]] = [{} for _ in range(n)]
        self.matches = np.zeros(n, np.uint64) if count else None
        out, number, err = ffi.new("gx_facet_list **"), ffi.new("uint32_t *"), new_error()
        texts = [ffi.new("char[]", ",".join(t).encode()) if t else ffi.NULL for t in (self.asked, of_all)]
        check(lib.gx_facet_list_read(out, index, texts[0], texts[1], err), err)
        self._list = ffi.gc(out[0], lib.gx_facet_list_close)
        self.array = lib.gx_facet_list_get(self._list, number)
        self.n = int(number[0])

    @staticmethod
    def _texts(asked: Union[str, Sequence[str], None], what: str) -> List[str]:
        texts = [] if asked is None else [asked] if isinstance(asked, str) else list(asked)
        for text in texts:
            if not isinstance(text, str):
                raise TypeError("%s is a str, not %s" % (what, type(text).__name__))
            encode(text, what)
            if "," in text or "\0" in text or not text:
                raise UsageError("%s is one text a list's element, without commas: %r" % (what, text))
        return texts

    def count(self, first: int, n: int, session: _Session, queries: Any, opt: Any) -> None:
        out = ffi.new("gx_facets *[]", n)
        check(lib.gx_count_facets_batch(out, session.pointer, queries, n, opt, self.array, self.n, session.err),
              session.err)
        try:
            for i in range(n):
                facets, out[i] = out[i], ffi.NULL
                self._take(first + i, facets)
        finally:  # of a failure
            for i in range(n):
                lib.gx_facets_close(out[i])

    def count_documents(self, index: Any, filter: Any) -> None:
        out, err = ffi.new("gx_facets **"), new_error()
        check(lib.gx_count_facets_filtered(out, index, filter, self.array, self.n, err), err)
        self._take(0, out[0])

    def _take(self, i: int, facets: Any) -> None:
        try:
            if self.matches is not None:
                self.matches[i] = lib.gx_facets_n_matches(facets)
            for f in range(self.n):
                answer = lib.gx_facets_get(facets, f)
                if answer.name_len:
                    self.answers[i][self.asked[f]] = self._answer(answer)
                else:
                    self.sums[i] = self._figures(answer, 0)
        finally:
            lib.gx_facets_close(facets)

    @staticmethod
    def _figures(answer: Any, group: int) -> Dict[str, Any]:
        figures: Dict[str, Any] = {}
        for s in range(answer.n_sums):
            f = lib.gx_facet_figures(answer, group, s)
            text = ffi.new("gx_text *")
            try:
                lib.gx_text_add_json_figures(text, f)
                if text.failed:
                    raise MemoryError
                found = json.loads(ffi.buffer(text.bytes, text.len)[:])
            finally:
                lib.free(text.bytes)
            if "percentiles" in found:
                found["percentiles"] = {float(p): v for p, v in found["percentiles"].items()}
            figures[ffi.buffer(f.name, f.name_len)[:].decode("utf-8", "surrogateescape")] = found
        return figures

    @classmethod
    def _answer(cls, answer: Any) -> Facet:
        kind = ffi.string(lib.gx_attribute_type_name(answer.type)).decode()

        def value(group: Any) -> Any:
            text = unpack(group.text, group.len).decode("utf-8", "surrogateescape")
            if number and not text.startswith("["):
                return int(group.first) if kind == "int" else float(group.low)
            return bool(group.first) if kind == "bool" else text

        unpack, number = ffi.unpack, kind in ("int", "float")
        groups = ffi.unpack(answer.groups, answer.n) if answer.n else []
        values = [value(group) for group in groups]
        counts = [(v, group.count) for v, group in zip(values, groups)]
        name = ffi.buffer(answer.name, answer.name_len)[:].decode("utf-8", "surrogateescape")
        facet = Facet(counts, name, kind, int(answer.n_present), int(answer.n_missing), int(answer.n_groups))
        for g in range(answer.n if answer.n_sums or answer.inner else 0):
            if answer.n_sums:
                facet.sums[values[g]] = cls._figures(answer, g)
            inner = lib.gx_facet_inner(answer, g)
            if inner:
                facet.inner[values[g]] = cls._answer(inner)
        return facet


class _Page:
    """Which page of each answer is asked for, and its end."""

    def __init__(self, sort: Union[str, Sequence[str], None], offset: int, after: Optional[str],
                 collapse: Optional[str]) -> None:
        self._sort = encode(sort if isinstance(sort, str) else ",".join(sort or ()), "sort")
        self._after = encode(after or "", "after")
        self._page = options("gx_page")
        self._page.sort, self._page.sort_len = ffi.from_buffer(self._sort), len(self._sort)
        self._page.after, self._page.after_len = ffi.from_buffer(self._after), len(self._after)
        self._page.offset = whole(offset, "offset", 0)
        self._collapse = encode(collapse or "", "collapse")
        self._page.collapse, self._page.collapse_len = ffi.from_buffer(self._collapse), len(self._collapse)
        if collapse is not None and not collapse:
            raise UsageError("collapse: the name of an attribute is expected")
        self.collapses = collapse is not None
        self.groups: Dict[int, List[Tuple[Any, int, Any, Any]]] = {}
        self.cursors: Dict[int, str] = {}
        self.first, self.moved = 0, False

    def search(self, session: "_Session", queries: Any, first: int, n: int, opt: Any, results: Any) -> None:
        ends = ffi.new("gx_page_end[]", n)
        for i in range(n):
            ends[i].size = ffi.sizeof("gx_page_end")
        if lib.gx_search_page(session.pointer, queries, n, opt, self._page, results, ends, session.err):
            check(session.err.status, session.err)
        for i in range(n):
            if ends[i].next != ffi.NULL:
                self.cursors[first + i] = bytes(ffi.buffer(ends[i].next, ends[i].next_len)).decode()
                lib.free(ends[i].next)
            self.first, self.moved = int(ends[i].first), bool(ends[i].moved)
            if ends[i].groups != ffi.NULL:
                try:
                    self.groups[first + i] = self._groups(ends[i].groups)
                finally:
                    lib.gx_groups_free(ends[i].groups)

    @staticmethod
    def _groups(groups: Any) -> List[Tuple[Any, int, Any, Any]]:
        """Of each group its value, the number of its matches, docids and scores."""
        found = []
        text = ffi.new("gx_text *")
        try:
            for g in (groups.groups[i] for i in range(groups.n)):
                text.len = 0
                if g.missing:
                    lib.gx_text_add_string(text, b"null")
                else:
                    lib.gx_text_add_json_value(text, groups.type, ffi.addressof(g.value))
                if text.failed:
                    raise MemoryError
                found.append((json.loads(ffi.buffer(text.bytes, text.len)[:]), int(g.n_matches),
                              np.frombuffer(ffi.buffer(g.docids, 8 * g.n), np.uint64).copy(),
                              np.frombuffer(ffi.buffer(g.scores, 8 * g.n), np.float64).astype(np.float32)))
        finally:
            lib.free(text.bytes)
        return found

    def groups_of(self, index: "Index", n: int) -> List[List[Group]]:
        return [[Group(value, matches, hits_of(index, docids, scores)) for value, matches, docids, scores in
                 self.groups.get(i, ())] for i in range(n)]


class Mask:
    """The set of documents that a search may return. Made by Index.mask; close it, or let it be collected."""

    def __init__(self, index: "Index", engine: str, words: Any) -> None:
        out, err = ffi.new("gx_mask **"), new_error()
        self.engine = engine
        self.n_docs = int(np.bitwise_count(words).sum()) if hasattr(np, "bitwise_count") else int(
            np.unpackbits(words.view(np.uint8)).sum())
        self._lock = threading.Lock()
        self._n_users = 0  # searches under way
        with index._use():
            check(lib.gx_mask_open(out, index._engine(engine), ffi.from_buffer("uint64_t[]", words), err), err)
            self._mask = out[0]
            self._index: Optional[Index] = index
            index._masks.add(self)

    @contextlib.contextmanager
    def _use(self) -> Iterator[None]:
        """Let close wait with the memory until the block ends."""
        with self._lock:
            self._n_users += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_users -= 1
                self._free()

    def close(self) -> None:
        """Free the mask, when the searches of other threads that use it have ended. Later ones raise ValueError."""
        with self._lock:
            index, self._index = self._index, None
            if index is not None and index._pid != os.getpid():
                self._mask = ffi.NULL  # a forked child leaves it alone
            self._free()

    def _free(self) -> None:
        if self._index is None and self._n_users == 0:
            lib.gx_mask_close(self._mask)
            self._mask = ffi.NULL

    def __enter__(self) -> "Mask":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass

    def __repr__(self) -> str:
        return "<gpuidx.Mask: %d documents>" % self.n_docs


class _Session:
    """One thread's session, and the structs that its calls pass: made once, filled in for each."""

    def __init__(self, engine: Any) -> None:
        out, err = ffi.new("gx_session **"), new_error()
        check(lib.gx_session_open(out, engine, err), err)
        self.pointer = out[0]
        self.err = err
        self.query = ffi.new("gx_query *")
        lib.gx_query_init(self.query, ffi.sizeof("gx_query"), b"", 0)
        self.results = ffi.new("gx_results *")
        self.results.size = ffi.sizeof("gx_results")
        self.n_hits = ffi.new("uint32_t[1]")
        self.n_matches = ffi.new("uint64_t[1]")
        self.one = ffi.new("gx_results *")  # of one query
        self.one.size = ffi.sizeof("gx_results")
        self.one.n_hits = self.n_hits
        self.one.n_matches = self.n_matches
        self.room = 0
        self.options: Dict[Any, Any] = {}
        self.busy = False  # a search of the thread `owner` is under way
        self.owner = 0

    def reserve(self, k: int, wide: bool) -> None:
        """Room for the k hits of one query; wide: with docids of 64 bits."""
        if k > self.room:
            self.docids = np.empty(k, np.uint64 if wide else np.uint32)
            self.scores = np.empty(k, np.float32)
            if wide:
                self.one.docids64 = ffi.from_buffer("uint64_t[]", self.docids)
            else:
                self.one.docids = ffi.from_buffer("uint32_t[]", self.docids)
            self.one.scores = ffi.from_buffer("float[]", self.scores)
            self.room = k

    def close(self) -> None:
        lib.gx_session_close(self.pointer)
        self.pointer = ffi.NULL


class _Held:
    """The sessions of one thread. When the thread ends they wait for another thread."""

    __slots__ = ("sessions", "_idle")

    def __init__(self, idle: "Dict[str, List[_Session]]") -> None:
        self.sessions: Dict[str, _Session] = {}
        self._idle = idle

    def __del__(self) -> None:
        for kind, session in self.sessions.items():
            self._idle.setdefault(kind, []).append(session)


def _reopen(path: str, arguments: Dict[str, Any]) -> "Index":
    return Index(path, **arguments)


class Index:
    """An index, open. Any number of threads may use one Index: each gets a session of its own.

    path           the file, or the folder of a collection, whose last commit is opened (Collection; reopen)
    engine         "auto" (a GPU where one can be used that has room for the index, if need be without its lists; else
                   the CPU), "cpu" or "gpu"
    device         CUDA's number of the GPU
    devices        the numbers of several GPUs, such as [0, 1], in place of device. It takes several threads, or large
                   batches, to keep all of them busy
    spread         what each of them holds: "copies" of the whole index, or "parts" of a collection, for one that is
                   larger than the memory of a GPU
    device_memory  most bytes of GPU memory, of each GPU, for the index and all sessions; 0: what is free
    resident       most of the lists' payload in GPU memory: bytes, or a share such as "25%"; the rest stays in host
                   memory, from which the GPU reads it, slower; None: all where it fits
    map_memory     most bytes for tables that are derived when an engine opens; None: no limit
    check          how much of the file is verified: "structure", "checksum" or "full"
    result_cache   most bytes of host memory that keep answers, for queries that come again; 0: none
    fields         of an index with fields (build): search these fields, each with a weight: "title^3,text:b=0.4", or
                   "all". The CPU searches then; the first query of a word is slower, since its list is made for these
                   weights. None: the fields are searched as one text
    field_scoring  with fields: "bm25f"; "best": a document has the greatest score of its fields; "sum": their sum
    scorer, k1, b  with fields: those of the fields' scores; k1 and b None: the scorer's. search and explain take this
                   scorer unless they are given another, which "best" and "sum" refuse
    load           "map" the file (pages are read when they are first used, and processes share them), or "read" it
                   whole

    Pickling an Index pickles its path, made absolute, and these arguments. After os.fork the child opens its engines
    anew on first use: that works on the CPU; CUDA refuses it, so use the "spawn" start method with a GPU.
    """

    _shard: Any = ffi.NULL  # gpuidx.ray: the gx_shard that its engines are

    def __init__(self, path: Union[str, "os.PathLike[str]"], *, engine: str = "auto", device: int = 0,
                 device_memory: int = 0, map_memory: Optional[int] = None, result_cache: int = 0,
                 check: str = "checksum", load: str = "map", devices: Iterable[int] = (),
                 spread: str = "copies", resident: Union[int, str, None] = None, fields: Optional[str] = None,
                 field_scoring: str = "bm25f", scorer: str = "bm25", k1: Optional[float] = None,
                 b: Optional[float] = None) -> None:
        devices = _devices(devices, device, spread)
        _residency(resident)
        self._begin(os.fsdecode(path), {"engine": engine, "device": device, "device_memory": device_memory,
                                        "map_memory": map_memory, "result_cache": result_cache, "check": check,
                                        "load": load, "devices": devices, "spread": spread, "resident": resident,
                                        "fields": fields, "field_scoring": field_scoring, "scorer": scorer, "k1": k1,
                                        "b": b})
        _choose(_ENGINES, "engine", engine)
        whole(device, "device", 0, 1023)
        for what in ("device_memory", "map_memory", "result_cache"):
            if self._arguments[what] is not None:
                whole(self._arguments[what], what, 0, UINT64_MAX)
        err, out = new_error(), ffi.new("gx_index **")
        _check(lib.gx_index_open(out, path_bytes(self.path), self._file_options(), err), err)
        if lib.gx_index_analysis_change(out[0], err) != lib.GX_ANALYSIS_SAME:
            warnings.warn("%s: %s" % (self.path, ffi.string(err.text).decode("utf-8", "replace")), RuntimeWarning, 2)
        if fields is not None:
            self._view(out, fields, field_scoring, scorer, k1, b)
        elif (field_scoring, scorer, k1, b) != ("bm25f", "bm25", None, None):
            lib.gx_index_close(out[0])
            raise UsageError("field_scoring, scorer, k1 and b of an Index need fields; search takes scorer, k1 and b")
        self._take(out[0])

    @staticmethod
    def _view(out: Any, fields: str, scoring: str, scorer: str, k1: Optional[float], b: Optional[float]) -> None:
        """Let *out be the view of its fields."""
        opt, err, view = options("gx_view_options"), new_error(), ffi.new("gx_index **")
        found = ffi.new("gx_field_scoring *")
        try:
            if not isinstance(fields, str):
                raise TypeError("fields is a str, not %s" % type(fields).__name__)
            if not isinstance(scoring, str) or not lib.gx_field_scoring_find(found, encode(scoring, "field_scoring")):
                raise UsageError('field_scoring is one of "bm25f", "best", "sum", not %r' % (scoring,))
            opt.preset = _preset(scorer)
        except Exception:
            lib.gx_index_close(out[0])
            raise
        opt.scoring = found[0]
        text = ffi.new("char[]", encode(fields, "fields"))
        opt.fields = ffi.NULL if fields == "all" else text
        if k1 is not None:
            opt.k1 = k1
        if b is not None:
            opt.b = b
        status = lib.gx_index_open_view(view, out[0], opt, err)
        lib.gx_index_close(out[0])  # the view holds it
        check(status, err)
        out[0] = view[0]

    def _scorer(self) -> str:
        """What search takes unless it is given another."""
        if self._arguments.get("fields") is not None:
            return str(self._arguments["scorer"])
        return "impact" if self.info.impacts else "bm25"

    def _begin(self, path: str, arguments: Dict[str, Any]) -> None:
        """An Index without a file yet."""
        self._index = ffi.NULL
        self.path = path
        self._place = absolute(path)  # where the process goes elsewhere, or the Index to another one
        self._arguments = arguments
        self._default = arguments["engine"]
        self._engines: Dict[str, Any] = {}
        self._sessions: List[_Session] = []
        self._idle: Dict[str, List[_Session]] = {}
        self._calls: Set[Any] = set()  # calls under way that use the file, but for searches
        self._closing = False
        self._masks: "weakref.WeakSet[Mask]" = weakref.WeakSet()
        self._local = threading.local()
        self._lock = threading.Lock()
        self._pools: Dict[int, concurrent.futures.ThreadPoolExecutor] = {}
        self._pid = os.getpid()

    def _file_options(self) -> Any:
        opt = options("gx_index_options")
        opt.check = _choose(_CHECKS, "check", self._arguments["check"])
        opt.load = _choose(_LOADS, "load", self._arguments["load"])
        return opt

    def _take(self, file: Any) -> None:
        """Own the gx_index."""
        self._index = file
        st, err = ffi.new("gx_index_stats *"), new_error()
        st.size = ffi.sizeof("gx_index_stats")
        _check(lib.gx_index_get_stats(file, st), err)
        self._wide = st.n_docs == UINT32_MAX  # docids take 64 bits
        self.info = IndexInfo(st.n_documents, st.n_terms, st.n_postings, st.n_tokens, st.avgdl, st.min_doc_len,
                              st.max_doc_len, st.block_len, st.file_bytes, st.device_bytes, bool(st.impacts),
                              bool(st.titles), bool(st.texts), bytes(st.uuid).hex(), st.impact_unit,
                              bool(st.positions))

    @classmethod
    def open(cls, path: Union[str, "os.PathLike[str]"], **arguments: Any) -> "Index":
        """Open an index; the arguments are those of Index."""
        return cls(path, **arguments)

    # ---- collections ----

    @property
    def commit(self) -> int:
        """The number of a collection's commit; 0 of an index that is one file."""
        with self._use() as file:
            return int(lib.gx_index_commit(file))

    @property
    def parts(self) -> List[Part]:
        """The files of a collection; none of an index that is one file."""
        parts, part = [], ffi.new("gx_part_info *")
        part.size = ffi.sizeof("gx_part_info")
        with self._use() as file:
            for i in range(lib.gx_index_n_parts(file)):
                lib.gx_index_get_part(file, i, part)
                parts.append(Part(os.fsdecode(ffi.string(part.path)), part.n_docs, part.n_deleted, part.bytes))
        return parts

    def reopen(self) -> "Index":
        """The last commit of the collection: this Index where it has that already, and where it is one file; else a
        new Index, with the files and tables that both commits have shared. This one stays as it is, and open."""
        out, err = ffi.new("gx_index **"), new_error()
        with self._use() as file:
            check(lib.gx_index_reopen(out, file, self._file_options(), err), err)
            if out[0] == ffi.NULL:
                return self
            new: Index = object.__new__(type(self))
            new._begin(self.path, self._arguments)
            new._place, new._shard = self._place, self._shard
            new._take(out[0])
            for kind, engine in list(self._engines.items()) if self._pid == os.getpid() else ():
                opened = ffi.new("gx_engine **")
                check(lib.gx_engine_reopen(opened, engine, new._index, err), err)
                new._engines[kind] = opened[0]
        return new

    # ---- life ----

    def close(self) -> None:
        """Close the sessions, engines and the file, after the calls that other threads have under way. Further calls
        raise ValueError."""
        if self._index == ffi.NULL or self._closing:
            return
        self._closing = True
        if self._pid == os.getpid():
            me = threading.get_ident()
            while any(s.busy and s.owner != me for s in self._sessions) or any(c[0] != me for c in list(self._calls)):
                time.sleep(0.001)
            for pool in self._pools.values():
                pool.shutdown()
            for mask in list(self._masks):
                mask.close()
            for session in self._sessions:
                session.close()
            for engine in self._engines.values():
                lib.gx_engine_close(engine)
        self._pools, self._idle = {}, {}
        self._sessions, self._engines, self._local = [], {}, threading.local()
        lib.gx_index_close(self._index)
        self._index = ffi.NULL

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass

    def __reduce__(self) -> Any:
        return _reopen, (self._place, self._arguments)

    def __len__(self) -> int:
        """The number of documents."""
        return self.info.n_docs

    def __repr__(self) -> str:
        state = "" if self._index != ffi.NULL else ", closed"
        return "<gpuidx.Index %r: %s documents, %s terms%s>" % (
            self.path, format(self.info.n_docs, ","), format(self.info.n_terms, ","), state)

    def _repr_html_(self) -> str:
        import html

        rows = "".join("<tr><td>%s</td><td>%s</td></tr>"
                       % (k, html.escape(format(v, ",") if type(v) is int else str(v)))
                       for k, v in dataclasses.asdict(self.info).items())
        return "<p><b>gpuidx.Index</b> %s</p><table>%s</table>" % (html.escape(self.path), rows)

    def _open(self) -> Any:
        if self._index == ffi.NULL:
            raise ValueError("the index %s is closed" % self.path)
        return self._index

    def _after_fork(self) -> None:
        """A forked child has neither the threads nor the GPU of its parent: it leaves their objects alone."""
        self._engines, self._sessions, self._local = {}, [], threading.local()
        self._lock, self._pools, self._idle, self._calls = threading.Lock(), {}, {}, set()
        self._masks = weakref.WeakSet()
        self._pid = os.getpid()

    def _engine(self, kind: Optional[str]) -> Any:
        kind = kind or self._default
        if self._pid != os.getpid():
            self._after_fork()
        self._open()
        with self._lock:
            if kind not in self._engines:
                opt, err, out = options("gx_engine_options"), new_error(), ffi.new("gx_engine **")
                opt.kind = _choose(_ENGINES, "engine", kind)
                opt.device = self._arguments["device"]
                opt.n_devices = len(self._arguments["devices"])
                opt.devices[0:opt.n_devices] = self._arguments["devices"]
                opt.spread = _SPREADS[self._arguments["spread"]]
                opt.device_memory = self._arguments["device_memory"] or 0
                opt.resident_memory, opt.resident_share = _residency(self._arguments.get("resident"))
                maps = self._arguments["map_memory"]
                opt.map_memory = UINT64_MAX if maps is None else maps
                opt.result_cache = self._arguments["result_cache"] or 0
                opt.shard = self._shard
                check(lib.gx_engine_open(out, self._index, opt, err), err)
                self._engines[kind] = out[0]
            return self._engines[kind]

    def _session(self, kind: str) -> _Session:
        if self._pid != os.getpid():
            self._after_fork()
        try:
            session: _Session = self._local.held.sessions[kind]
            return session
        except (AttributeError, KeyError):
            pass
        with self._use():  # close must not free the index before the engine and the session are known to it
            try:
                session = self._idle[kind].pop()
            except LookupError:
                session = _Session(self._engine(kind))
                with self._lock:
                    self._sessions.append(session)
        session.owner = threading.get_ident()
        if not hasattr(self._local, "held"):
            self._local.held = _Held(self._idle)
        self._local.held.sessions[kind] = session
        return session

    @contextlib.contextmanager
    def _use(self) -> Iterator[Any]:
        """The file, which close leaves open until the block ends."""
        call = (threading.get_ident(), object())
        self._calls.add(call)
        try:
            if self._closing:
                raise ValueError("the index %s is closed" % self.path)
            yield self._open()
        finally:
            self._calls.discard(call)

    def engine_name(self, engine: Optional[str] = None) -> str:
        """The engine that answers: "CPU (AVX-512)" or "GPU 0: NVIDIA H200"."""
        with self._use():
            return str(ffi.string(lib.gx_engine_describe(self._engine(engine))).decode())

    # ---- searching ----

    def _options(self, session: _Session, key: Any) -> Any:
        (k, op, scorer, k1, b, mask, count, prune, algorithm, seconds, approximate, prior, quotes,
         max_expansions, fuzzy_prefix, sdm, expansion_scoring, query_k1, query_b, synonyms) = key
        if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
            raise UsageError("k is an integer of at least 1, not %r" % (k,))
        o = options("gx_query_options")
        o.op = _choose(_OPS, "op", op)
        o.k = max(1, min(int(k), self.info.n_docs, UINT32_MAX))
        o.preset = _preset(scorer)
        o.k1 = math.nan if k1 is None else real(k1, "k1")
        o.b = math.nan if b is None else real(b, "b")
        o.prune = bool(prune)
        o.count = bool(count)
        o.algorithm = _choose(_ALGORITHMS, "algorithm", algorithm)
        if not o.prune and algorithm != "auto":
            raise UsageError("algorithm=%r means nothing beside prune=False, which scores every posting in one way"
                             % (algorithm,))
        if algorithm == "block-max" and op == "and":
            raise UsageError('algorithm="block-max" means something to op="or" alone')
        o.quotes = _choose(_QUOTES, "quotes", quotes)
        o.seconds = real(seconds, "seconds")
        if isinstance(approximate, str):
            check(lib.gx_approximate_read(o, encode(approximate, "approximate"), session.err), session.err)
        else:
            o.approximate = real(approximate, "approximate")
        if prior is not None:
            if not isinstance(prior, str):
                raise TypeError("prior is a str, not %s" % type(prior).__name__)
            check(lib.gx_prior_read(ffi.addressof(o, "prior"), encode(prior, "prior"), session.err), session.err)
        if sdm is not None:
            check(lib.gx_sdm_read(ffi.addressof(o, "sdm"), encode(sdm, "sdm"), session.err), session.err)
        o.expansion.max_words = whole(max_expansions, "max_expansions", 1)
        o.expansion.fixed_prefix = whole(fuzzy_prefix, "fuzzy_prefix")
        o.expansion.scoring = _choose(_EXPANSION_SCORINGS, "expansion_scoring", expansion_scoring)
        o.query_k1 = math.nan if query_k1 is None else real(query_k1, "query_k1")
        o.query_b = math.nan if query_b is None else real(query_b, "query_b")
        if synonyms is not None:
            if not isinstance(synonyms, Synonyms):
                raise TypeError("synonyms are Synonyms (Index.synonyms), not %s" % type(synonyms).__name__)
            o.synonyms = synonyms.pointer
        if mask is not None:
            if mask._index is not self:
                raise ValueError("the mask is closed, or of another index")
            o.mask = mask._mask
        elif len(session.options) < 256:
            session.options[key] = o
        return o

    @staticmethod
    def _sdm(sdm: Any) -> Optional[str]:
        """The weights as the library reads them."""
        if sdm is None or isinstance(sdm, str):
            return sdm
        if isinstance(sdm, bool):
            return "on" if sdm else "off"
        return ",".join("%.9g" % real(w, "sdm") for w in sdm)

    def search(self, queries: _queries.Queries = None, k: int = 10, *, op: str = "or", scorer: Optional[str] = None,
               k1: Optional[float] = None, b: Optional[float] = None, engine: Optional[str] = None,
               mask: Optional[Mask] = None, filter: Union[str, Sequence[Optional[str]], None] = None,
               count: bool = False, syntax: str = "text", threads: int = 1, batch: int = 1024, prune: bool = True,
               algorithm: str = "auto", seconds: float = 0.0, vocabulary: Any = None,
               approximate: Union[float, str] = 0.0, prior: Optional[str] = None,
               max_expansions: int = 50, fuzzy_prefix: int = 0, expansion_scoring: str = "each",
               query_k1: Optional[float] = None, query_b: Optional[float] = None,
               synonyms: Optional[Synonyms] = None,
               facets: Union[str, Sequence[str], None] = None,
               sums: Union[str, Sequence[str], None] = None, sort: Union[str, Sequence[str], None] = None,
               offset: int = 0, after: Optional[str] = None, cursor: bool = False, quotes: str = "phrase",
               collapse: Optional[str] = None,
               sdm: Union[str, bool, Sequence[float], None] = None) -> Results:
        """Find the k best documents of one query or of many.

        queries     one query: a string, or {term: weight}; None, or a string without words: all documents that mask
                    and filter leave, each with score 0, by docid. Many: a list of either, (qid, query) pairs,
                    {qid: query}, a DataFrame with qid and query (or query_toks), or a matrix of weights, as build
                    takes it. Terms with weights are looked up as they are; a string is analysed as the documents were
        k           most hits of a query
        op          "or", "and", or "and-or": AND's answer where it has k hits, else OR's
        scorer      "bm25" (the default), "bm25:lucene", ...; "impact" (the default where the index holds impacts)
        k1, b       None: the scorer's own
        engine      None: as the index was opened
        mask        only these documents are found (Index.mask)
        filter      the same by an expression over attributes, as Index.filter takes it: one for all queries, or a list
                    with one a query, None for a query without. With a mask, both count
        count       count all matching documents too, exactly
        syntax      "text", or "boolean": +must -not (a OR b) term^2.5 year:[2015 TO 2019], and of an
                    index with positions "a b", "a b"~3, NEAR/5(a b), ONEAR/5(a b); in a view of fields title:a and
                    title:"a b". Conditions select as filters do;
                    documents that match by them alone have score 0 and come last
        quotes      what "new york" and "new york"~3 mean with syntax="text", of an index with positions: "phrase", or
                    "words": nothing
        sdm         of syntax="text", and an index with positions: also weigh pairs of neighbouring words, as the
                    sequential dependence model does. The weights of a word, of a pair in a row, and of a pair within 8
                    places in any order: (0.85, 0.1, 0.05), which True is, or "0.85,0.1,0.05"
        threads     many queries: threads that share them
        batch       many queries: queries of one call
        seconds     most time for one call of the library, 0: no limit. DeadlineError
        vocabulary  of a matrix: the terms of the columns, a sequence or {term: column}; None: the columns' numbers
        approximate of op="or": give up some of the answer for speed, from 0 (exact) to 1. The terms that weigh least,
                    as many as have at most this share of the query's weight, do not find documents, but count in the
                    scores of the 2 k + 40 best that the others find. Or a text that names one or more of
                    "terms:0.3,blocks:50": terms is that share; on the CPU engine only so many blocks of 256
                    neighbouring documents are searched, those with the greatest bounds
        prior       add a number of each document to its score: "pagerank:w=0.3,form=log" (ln(1 + x), where x is the
                    document's value of the attribute), form=sat,half=10 (x / (x + half)) or form=linear; exact,
                    with sort, collapse and pages, too
        facets      also count all matching documents by attributes: a list of "category", "category:20" (the 20 largest
                    counts; 10), "year:all", "created:by=month", "price:bins=10", ..., as the manual page
                    gpuidx-query(1) says. Results.facets has the counts, which are exact. "brand:avg=price" adds
                    figures of each group's matches, "brand/year" a facet of them, "brand:exclude-own" counts as if the
                    filter had no condition on the attribute
        sums        figures of attributes over all matching documents: a list of "price", "price:sum:avg:p50", ..., in
                    Results.sums. Sums of ints are exact; those of floats, and averages, are exact and rounded once

        sort        order hits by the values of attributes, not by score: "price:desc,year", or a list of such. Behind a
                    name stand :asc (the default) or :desc, :missing-last (the default) or :missing-first. Of several
                    values of a document the least counts, with :desc the greatest. Equal hits come by falling score,
                    then by docid
        collapse    only the best hit of each value of an attribute, such as "shop" or the document that passages are
                    of; "shop:3" also gives the best 3 of each in Results.groups, which tells how many match. Documents
                    without a value are one group. k, offset and after count groups. Attributes of several values a
                    document are refused
        offset      leave out so many hits: the next page of k hits has offset=k
        after       the cursor of an earlier page of the same query, filter, order and scorer (Results.cursor): the hits
                    behind it. It names the commit of a collection; Results.moved tells that the index has another one
        cursor      also make Results.cursor, which sort, collapse, offset and after do, too

        max_expansions  of syntax="boolean": a word such as neutrin*, n?utrino, neutrino~1 or /neutrin[os]/ stands for
                    at most so many words of the index, those of greatest df (Index.expand)
        fuzzy_prefix    the first so many characters of neutrino~1 have no typing errors
        expansion_scoring  how such a word scores: "each", the sum of its words, each by its own idf, of typing errors
                    divided by 1 + their number; "one", as one word whose tf is the sum of theirs and whose df is the
                    greatest; "constant", 1 or the weight that the query gives
        query_k1, query_b  of syntax="text", for long queries: a term that a query of qlen terms has qtf times weighs
                    idf * qtf / (qtf + query_k1 * (1 - query_b + query_b * qlen / avgdl)) instead of qtf, with the
                    documents' avgdl; one of them alone: 0.9 and 0.4. Quotes mean nothing then. None: off
        synonyms    words of the queries are replaced by these rules (Index.synonyms)

        Without approximate the answers are exact. They are the same on every engine, to the bit.
        UsageError, OutOfMemoryError, CUDAError. Threads: any number at a time; the GIL is released meanwhile."""
        if scorer is None:
            scorer = self._scorer()
        if mask is not None and not isinstance(mask, Mask):
            raise TypeError("mask is a Mask (Index.mask), not %s" % type(mask).__name__)
        key = (k, op, scorer, k1, b, mask, count, prune, algorithm, seconds, approximate, prior, quotes,
               max_expansions, fuzzy_prefix, self._sdm(sdm), expansion_scoring, query_k1, query_b, synonyms)
        kind = engine if engine is not None else (mask.engine if mask is not None else self._default)
        plain = type(queries) is str and queries[:1] > " " and syntax == "text"
        page = (_Page(sort, offset, after, collapse)
                if sort or offset or after or cursor or collapse is not None else None)
        counts = facets is not None or sums is not None
        if plain and filter is None and mask is None and not counts and page is None:
            session = self._session(kind)
            try:
                opt = session.options[key]
            except (KeyError, TypeError):
                opt = self._options(session, key)
            if opt.k > session.room:
                session.reserve(opt.k, self._wide)
            text = encode(queries)
            query = session.query
            query.text = pin = ffi.from_buffer(text)
            query.len = len(text)
            session.busy = True
            try:
                if self._closing:
                    raise ValueError("the index %s is closed" % self.path)
                if lib.gx_search(session.pointer, query, 1, opt, session.one, session.err):
                    check(session.err.status, session.err)
            finally:
                session.busy = False
            del pin
            n = session.n_hits[0]
            return Results(self, session.docids[:n].copy(), session.scores[:n].copy(), n,
                           session.n_matches[0] if count else None, None, True)
        made, qids, single = _queries.of(queries, syntax, vocabulary)
        with contextlib.ExitStack() as stack:
            if mask is not None:
                stack.enter_context(self._use())  # the engine, too, must stay until the mask is not used any more
                stack.enter_context(mask._use())
            if filter is not None:
                made.set_filters(stack.enter_context(self._filters(filter, made.n)))
            if not counts:
                return self._search_batch(made, qids, single, key, kind, threads, batch, None, page)
            with self._use() as file:
                counted = _Facets(file, facets, sums, made.n, count)
                without_count = key[:6] + (False,) + key[7:]  # facets count the matches too
                return self._search_batch(made, qids, single, without_count, kind, threads, batch, counted, page)

    @contextlib.contextmanager
    def _filters(self, given: Union[str, Sequence[Optional[str]]], n: int) -> Iterator[List[Any]]:
        """The filters of n queries, open until the block ends: a pointer for each, NULL for None."""
        if isinstance(given, Mapping) or not isinstance(given, (str, Iterable)):
            raise TypeError("filter is a str, or a list with one a query, not %s" % type(given).__name__)
        each = [given] * n if isinstance(given, str) else list(given)
        if len(each) != n:
            raise ValueError("there are %d filters and %d queries" % (len(each), n))
        err = new_error()
        opened: Dict[Optional[str], Any] = {None: ffi.NULL}
        with self._use() as file:
            try:
                for expression in each:
                    if expression not in opened:
                        out, text = ffi.new("gx_filter **"), encode(expression, "a filter")
                        check(lib.gx_filter_open(out, file, ffi.from_buffer(text), len(text), ffi.NULL, err), err)
                        opened[expression] = out[0]
                yield [opened[expression] for expression in each]
            finally:
                for pointer in opened.values():
                    lib.gx_filter_close(pointer)

    def _search_batch(self, made: _queries.Batch, qids: Optional[List[str]], single: bool, key: Any, kind: str,
                      threads: int, batch: int, facets: "Optional[_Facets]" = None,
                      page: "Optional[_Page]" = None) -> Results:
        batch, threads, n = whole(batch, "batch", 1), whole(threads, "threads", 1, 1024), made.n
        opt = self._options(self._session(kind), key)
        k = int(opt.k)
        docids = np.full((n, k), UINT64_MAX, np.uint64) if self._wide else np.full((n, k), UINT32_MAX, np.uint32)
        scores = np.zeros((n, k), np.float32)
        counts = np.zeros(n, np.uint32)
        matches = np.zeros(n, np.uint64) if key[6] else None
        arrays = (docids, scores, counts, matches)
        places = [a.ctypes.data if a is not None else 0 for a in arrays]

        def run(first: int, _: Any = arrays) -> None:  # which keeps the arrays as long as it runs
            session = self._session(kind)
            size = min(batch, n - first)
            r = session.results
            if self._wide:
                r.docids64 = ffi.cast("uint64_t *", places[0] + 8 * first * k)
            else:
                r.docids = ffi.cast("uint32_t *", places[0] + 4 * first * k)
            r.scores = ffi.cast("float *", places[1] + 4 * first * k)
            r.n_hits = ffi.cast("uint32_t *", places[2] + 4 * first)
            r.n_matches = ffi.cast("uint64_t *", places[3] + 8 * first) if places[3] else ffi.NULL
            session.busy = True
            try:
                if self._closing:
                    raise ValueError("the index %s is closed" % self.path)
                if page is not None:
                    page.search(session, made.at(first), first, size, opt, r)
                elif lib.gx_search(session.pointer, made.at(first), size, opt, r, session.err):
                    check(session.err.status, session.err)
                if facets is not None:
                    facets.count(first, size, session, made.at(first), opt)
            finally:
                session.busy = False

        parts = range(0, n, batch)
        if threads == 1 or len(parts) < 2:
            for first in parts:
                run(first)
        else:
            running = [self._threads(threads).submit(run, first) for first in parts]
            try:
                for part in running:
                    part.result()
            finally:  # of a failure or of Ctrl-C the others are told, and waited for
                for part in running:
                    part.cancel()
                concurrent.futures.wait(running)
        if facets is not None:
            matches = facets.matches
        answers = facets.answers if facets is not None else None
        sums = facets.sums if facets is not None else None
        if single:
            hits = int(counts[0])
            found = Results(self, docids[0, :hits], scores[0, :hits], hits,
                            int(matches[0]) if matches is not None else None, qids, True,
                            answers[0] if answers is not None else None, sums[0] if sums is not None else None)
        else:
            found = Results(self, docids, scores, counts, matches, qids, False, answers, sums)
        if page is not None:
            cursors = [page.cursors.get(i) for i in range(n)]
            found.cursor = cursors[0] if single else cursors
            found.first, found.moved = page.first, page.moved
            if page.collapses:
                groups = page.groups_of(self, n)
                found.groups = groups[0] if single else groups
        return found

    def _threads(self, n: int) -> concurrent.futures.ThreadPoolExecutor:
        with self._lock:
            if n not in self._pools:
                self._pools[n] = concurrent.futures.ThreadPoolExecutor(n, "gpuidx")
            return self._pools[n]

    def search_scorers(self, queries: _queries.Queries, k: int = 10, *, scorers: Sequence[Any],
                       **arguments: Any) -> List[Results]:
        """The same queries by several scorers: a Results for each, in their order, as search gives it. A scorer is a
        name, or a dict of what search calls scorer, k1, b, query_k1, query_b and expansion_scoring:

            a, b = index.search_scorers(queries, 1000, scorers=["bm25", {"k1": 1.2, "b": 0.9}])

        gpuidx.fuse makes one ranking of several."""
        known = {"scorer", "k1", "b", "query_k1", "query_b", "expansion_scoring"}
        found = []
        for given in scorers:
            own = {"scorer": given} if isinstance(given, str) else dict(given)
            if not known.issuperset(own):
                raise TypeError("a scorer has no %s" % ", ".join(sorted(set(own) - known)))
            found.append(self.search(queries, k, **{**arguments, **own}))
        return found

    async def asearch(self, queries: _queries.Queries, k: int = 10, **arguments: Any) -> Results:
        """search in a thread of the running event loop's executor."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, lambda: self.search(queries, k, **arguments))

    def mask(self, documents: Any, *, engine: Optional[str] = None, invert: bool = False) -> Mask:
        """The set of documents that a search may return.

        documents  docids (integers, a list or an array), docnos (strings), or a boolean array [n_docs]
        engine     on which it is used; None: as the index was opened
        invert     all documents but these"""
        bits = np.zeros((self.info.n_docs + 63) // 64 * 64, bool)
        if isinstance(documents, (str, bytes)):
            raise TypeError("documents are many, not one %s" % type(documents).__name__)
        given = documents if isinstance(documents, np.ndarray) and documents.dtype.kind in "biu" else list(documents)
        if isinstance(given, list) and any(isinstance(d, str) for d in given):
            given = [self._docid_of(d) for d in given]
        array = np.asarray(given)
        if array.dtype == bool:
            if array.shape != (self.info.n_docs,):
                raise ValueError("a boolean mask has %d elements, one a document, not %s"
                                 % (self.info.n_docs, array.shape))
            bits[:self.info.n_docs] = array
        elif array.size:
            bits[self._docids(array)] = True
        if invert:
            bits[:self.info.n_docs] ^= True
        words = np.packbits(bits, bitorder="little").view(np.uint64)
        return Mask(self, engine or self._default, words)

    def facets(self, facets: Union[str, Sequence[str]], *, filter: Optional[str] = None) -> Dict[str, Facet]:
        """All documents, or those that a filter selects, counted by attributes, without a query; see search."""
        return self._counted(facets, None, filter).answers[0]

    def sums(self, sums: Union[str, Sequence[str]], *, filter: Optional[str] = None) -> Dict[str, Any]:
        """Figures of attributes over all documents, or those that a filter selects; see search and Results.sums."""
        return self._counted(None, sums, filter).sums[0]

    def _counted(self, facets: Union[str, Sequence[str], None], sums: Union[str, Sequence[str], None],
                 filter: Optional[str]) -> _Facets:
        with self._use() as file, contextlib.ExitStack() as stack:
            counted = _Facets(file, facets, sums, 1, False)
            given = ffi.NULL if filter is None else stack.enter_context(self._filters([filter], 1))[0]
            counted.count_documents(file, given)
        return counted

    def _selected(self, file: Any, expression: str) -> Any:
        """The words of the documents that a filter selects."""
        words = np.zeros((self.info.n_docs + 63) // 64, np.uint64)
        out, err, text = ffi.new("gx_filter **"), new_error(), encode(expression, "a filter")
        check(lib.gx_filter_open(out, file, ffi.from_buffer(text), len(text), ffi.NULL, err), err)
        try:
            check(lib.gx_filter_evaluate(out[0], ffi.from_buffer("uint64_t[]", words), ffi.NULL, err), err)
        finally:
            lib.gx_filter_close(out[0])
        return words

    def filter(self, expression: str, *, engine: Optional[str] = None) -> Mask:
        """The documents that an expression over the index's attributes selects, as a mask:

            year:[2015 TO 2019] AND category:cs.IR AND NOT price:>20 AND has:doi

        UsageError names the column of what is wrong, and the nearest attribute. Make it once and use it for many
        searches; `search(..., filter=expression)` makes it for one call."""
        with self._use() as file:
            words = self._selected(file, expression)
        return Mask(self, engine or self._default, words)

    @property
    def attributes(self) -> Dict[str, str]:
        """{name: type} of the attributes that the index keeps of its documents."""
        found, a = {}, ffi.new("gx_attribute_info *")
        a.size = ffi.sizeof("gx_attribute_info")
        with self._use() as file:
            for i in range(lib.gx_index_n_attributes(file)):
                lib.gx_index_get_attribute(file, i, a)
                name = bytes(ffi.buffer(a.name, a.name_len)).decode()
                found[name] = ffi.string(lib.gx_attribute_type_name(a.type)).decode()
        return found

    def attributes_of(self, document: Union[str, int]) -> Dict[str, Any]:
        """{name: value} of a document's attributes, by docid or docno. An int, float, bool or keyword is itself, a
        date a str as filters write it. An attribute of which documents may have several values is always a list; one
        of which the document has none is left out."""
        return self._attributes_of([document])[0]

    def _attributes_of(self, documents: Iterable[Union[str, int]]) -> List[Dict[str, Any]]:
        text, values, err = ffi.new("gx_text *"), ffi.new("gx_values *"), new_error()
        with self._use() as file:
            n = lib.gx_index_n_attributes(file)
            try:
                lib.gx_text_add(text, b"[", 1)
                for i, document in enumerate(documents):
                    lib.gx_text_add(text, b",", i > 0)
                    check(lib.gx_text_add_attributes(text, file, self._docid_of(document), ffi.NULL, n, values, err),
                          err)
                lib.gx_text_add(text, b"]", 1)
                if text.failed:
                    raise MemoryError
                return cast(List[Dict[str, Any]], json.loads(bytes(ffi.buffer(text.bytes, text.len))))
            finally:
                lib.gx_values_free(values)
                lib.free(text.bytes)

    def values(self, attribute: str, docids: Any) -> Any:
        """The values of one attribute of many documents, an array in their order.

        An int is int64, a float float64, a bool bool, a date datetime64[s], a keyword str in an array of objects.
        Where a document has no value, a float is NaN, a date NaT, and of the other types the array is one of objects
        with None there. Of an attribute of which documents may have several values, each element is a list.
        UsageError: there is no such attribute; IndexError: no such document."""
        wanted = np.ascontiguousarray(self._docids(docids), np.uint64)
        name = encode(attribute, "an attribute")
        number, found, err = ffi.new("uint32_t *"), ffi.new("gx_values *"), new_error()
        with self._use() as file:
            try:
                check(lib.gx_index_find_attribute(file, name, len(name), number, err), err)
                check(lib.gx_index_values(file, number[0], ffi.cast("uint64_t *", wanted.ctypes.data), len(wanted),
                                          found, err), err)
                return _values_array(found)
            finally:
                lib.gx_values_free(found)

    def _docids(self, docids: Any) -> Any:
        array = np.asarray(docids).reshape(-1)
        if array.size == 0:
            return np.zeros(0, np.int64)
        if array.dtype.kind not in "iu":
            raise TypeError("docids are integers, not %s" % array.dtype)
        outside = (array < 0) | (array >= self.info.n_docs)
        if outside.any():
            raise IndexError("docid %d is outside [0, %d)" % (array[outside][0], self.info.n_docs))
        return array.astype(np.int64)

    def score(self, query: Any, docnos: Sequence[str], **arguments: Any) -> Any:
        """The scores of these documents for a query, float32 [len(docnos)]; 0 where a document matches no term. They
        are named by docno, or by docid. The arguments are those of search, but for k and mask."""
        if isinstance(docnos, (str, bytes)):
            raise TypeError("docnos are many, not one %s" % type(docnos).__name__)
        wanted = self._docids([self.docid(d) if isinstance(d, str) else d for d in docnos])
        if not len(wanted):
            self._open()
            return np.zeros(0, np.float32)
        different = np.unique(wanted)
        with self.mask(different, engine=arguments.get("engine")) as mask:
            found = self.search(query, len(different), mask=mask, **arguments)
            if not found.single:
                raise TypeError("score takes one query")
            by_docid = np.zeros(len(different), np.float32)
            by_docid[np.searchsorted(different, found.docids)] = found.scores
        return by_docid[np.searchsorted(different, wanted)]

    def _one(self, query: Any) -> Any:
        """A batch of this one query: a string, or {term: weight}."""
        made, _, single = _queries.of(query, "text", None)
        if not single:
            raise TypeError("one query is wanted: a str or {term: weight}, not %s" % type(query).__name__)
        return made

    def explain(self, query: Any, document: Union[str, int], *, scorer: Optional[str] = None,
                k1: Optional[float] = None, b: Optional[float] = None,
                sdm: Union[str, bool, Sequence[float], None] = None) -> Dict[str, Any]:
        """Why a document has its score for a query (a string, or {term: weight}): the formula, the terms' numbers."""
        e, err, made, opt = ffi.new("gx_explanation *"), new_error(), self._one(query), options("gx_query_options")
        opt.preset = _preset(scorer or self._scorer())
        opt.k1, opt.b = math.nan if k1 is None else real(k1, "k1"), math.nan if b is None else real(b, "b")
        weights = self._sdm(sdm)
        if weights is not None:
            check(lib.gx_sdm_read(ffi.addressof(opt, "sdm"), encode(weights, "sdm"), err), err)
        docid = self._docid_of(document)
        with self._use() as file:
            check(lib.gx_explain(e, file, made.at(0), opt, docid, err), err)
        try:
            terms = [{"term": bytes(ffi.buffer(t.term, t.term_len)).decode("utf-8", "replace"), "df": t.df,
                      "qtf": t.qtf, "tf": t.tf, "idf": t.idf, "weight": t.weight, "score": t.score}
                     for t in (e.terms[i] for i in range(e.n_terms))]
            return {"docid": e.docid, "score": e.score, "scorer": ffi.string(e.preset).decode(),
                    "formula": ffi.string(e.formula).decode(), "k1": e.k1, "b": e.b, "dl": e.dl, "avgdl": e.avgdl,
                    "unknown_terms": e.n_unknown, "terms": terms}
        finally:
            lib.gx_explanation_free(e)

    def snippet(self, query: Any, document: Union[str, int], words: int = 30) -> Tuple[str, List[Tuple[int, int]]]:
        """The part of a document's stored text that shows best why it was found, and the words in it to mark, as
        (begin, end) in characters of the part."""
        whole(words, "words", 1)
        text = self.text(document).encode()
        out, err, made, s = ffi.new("gx_highlighter **"), new_error(), self._one(query), ffi.new("gx_snippet *")
        with self._use() as file:
            check(lib.gx_highlighter_open(out, file, made.at(0), err), err)
            try:
                check(lib.gx_highlighter_snippet(out[0], ffi.from_buffer(text), len(text), words, s, err), err)
            finally:
                lib.gx_highlighter_close(out[0])
        part = text[s.begin:s.end]
        marks = [(len(part[:s.marks[i].begin - s.begin].decode("utf-8", "replace")),
                  len(part[:s.marks[i].end - s.begin].decode("utf-8", "replace"))) for i in range(s.n_marks)]
        return part.decode("utf-8", "replace"), marks

    # ---- documents ----

    def docid(self, docno: str) -> int:
        """The docid of an external id. KeyError if no document has it."""
        found = self._find_doc(encode(docno, "a docno"))
        if found == UINT64_MAX:
            raise KeyError("no document has the id %r" % docno)
        return found

    def _find_doc(self, coded: bytes) -> int:
        with self._use() as file:
            return int(lib.gx_index_find_doc64(file, coded, len(coded)))

    def __contains__(self, docno: object) -> bool:
        if not isinstance(docno, str):
            return False
        return self._find_doc(encode(docno)) != UINT64_MAX

    def docno(self, docid: int) -> str:
        """The external id of a docid. IndexError."""
        return self.docnos([docid])[0]

    def docnos(self, docids: Optional[Any] = None) -> List[str]:
        """The external ids of docids (None: of all documents, in order)."""
        dtype = np.uint64 if self._wide else np.uint32
        join = lib.gx_index_join_doc_ids64 if self._wide else lib.gx_index_join_doc_ids
        array = np.arange(self.info.n_docs, dtype=dtype) if docids is None else np.ascontiguousarray(
            self._docids(docids), dtype=dtype)
        with self._use() as file:
            if not len(array):
                return []
            wanted = ffi.from_buffer("uint64_t[]" if self._wide else "uint32_t[]", array)
            size = join(file, wanted, len(array), ffi.NULL, 0)
            joined = bytearray(size)
            join(file, wanted, len(array), ffi.from_buffer("char[]", joined), size)
        return joined.decode("utf-8", "surrogateescape").split("\n")[:-1]

    def _docid_of(self, document: Union[str, int]) -> int:
        if isinstance(document, str):
            return self.docid(document)
        if type(document) is int and 0 <= document < self.info.n_docs:  # an array takes longer than most that follows
            return document
        return int(self._docids([document])[0])

    def title(self, document: Union[str, int]) -> str:
        """The stored title of a document; "" where there is none."""
        return self.titles([document])[0]

    def titles(self, documents: Iterable[Union[str, int]]) -> List[str]:
        """The stored titles of documents, by docid or docno."""
        if isinstance(documents, (str, bytes)):
            raise TypeError("documents are many, not one %s: Index.title gives one title" % type(documents).__name__)
        n, titles = ffi.new("size_t *"), []
        with self._use() as file:
            for document in documents:
                text = lib.gx_index_doc_title(file, self._docid_of(document), n)
                titles.append(bytes(ffi.buffer(text, n[0])).decode("utf-8", "replace") if n[0] else "")
        return titles

    def text(self, document: Union[str, int]) -> str:
        """The stored text of a document. NotFoundError where the index keeps no texts."""
        return self.texts([document])[0]

    def texts(self, documents: Iterable[Union[str, int]]) -> List[str]:
        """The stored texts of documents, by docid or docno."""
        if isinstance(documents, (str, bytes)):
            raise TypeError("documents are many, not one %s: Index.text gives one text" % type(documents).__name__)
        buf, cap, n, err = ffi.new("char **"), ffi.new("size_t *"), ffi.new("size_t *"), new_error()
        texts: List[str] = []
        with self._use() as file:
            try:
                for document in documents:
                    check(lib.gx_index_doc_text(file, self._docid_of(document), buf, cap, n, err), err)
                    texts.append(bytes(ffi.buffer(buf[0], n[0])).decode("utf-8", "replace") if n[0] else "")
            finally:
                lib.free(buf[0])
        return texts

    def doc_len(self, document: Union[str, int]) -> int:
        """The number of a document's terms, repeated ones included."""
        with self._use() as file:
            return int(lib.gx_index_doc_len(file, self._docid_of(document)))

    # ---- terms ----

    def _find_term(self, term: Union[str, int]) -> int:
        if isinstance(term, (int, np.integer)):
            if not 0 <= term < self.info.n_terms:
                raise IndexError("term %d is outside [0, %d)" % (term, self.info.n_terms))
            return int(term)
        coded = encode(term, "a term")
        with self._use() as file:
            found = lib.gx_index_find_term(file, coded, len(coded))
        if found == UINT32_MAX:
            raise KeyError("the index has no term %r (terms are what analysis makes of words: Index.analyze)" % term)
        return int(found)

    def term(self, number: int) -> str:
        """The term with this number; terms are numbered in byte order."""
        n = ffi.new("size_t *")
        with self._use() as file:
            text = lib.gx_index_term(file, self._find_term(int(number)), n)
            return bytes(ffi.buffer(text, n[0])).decode("utf-8", "surrogateescape")

    def terms(self) -> Iterator[str]:
        """All terms, in byte order."""
        n = ffi.new("size_t *")
        for first in range(0, self.info.n_terms, 1024):
            with self._use() as file:
                part = [bytes(ffi.buffer(lib.gx_index_term(file, i, n), n[0])).decode("utf-8", "surrogateescape")
                        for i in range(first, min(first + 1024, self.info.n_terms))]
            yield from part

    def field_dfs(self, term: str) -> Dict[str, int]:
        """How many documents have the term, as analysis leaves it, in each field of the index; {}: it has no fields."""
        err = new_error()
        names: List[str] = []
        with self._use() as file:
            while lib.gx_index_field(file, len(names), ffi.NULL) != ffi.NULL:
                names.append(ffi.string(lib.gx_index_field(file, len(names), ffi.NULL)).decode())
            if not names:
                return {}
            dfs, text = ffi.new("uint64_t[]", len(names)), encode(term, "term")
            check(lib.gx_index_field_dfs(file, text, len(text), dfs, err), err)
        return dict(zip(names, map(int, dfs)))

    def df(self, term: Union[str, int]) -> int:
        """The number of documents that hold the term; 0 for one that the index lacks."""
        try:
            with self._use() as file:
                return int(lib.gx_index_df(file, self._find_term(term)))
        except KeyError:
            return 0

    def cf(self, term: Union[str, int]) -> int:
        """How often the term stands in all documents together; 0 for one that the index lacks."""
        try:
            with self._use() as file:
                return int(lib.gx_index_cf(file, self._find_term(term)))
        except KeyError:
            return 0

    def iter_postings(self, term: Union[str, int]) -> Iterator[Postings]:
        """The list of a term, block by block (at most info.block_len postings each)."""
        out, err = ffi.new("gx_postings **"), new_error()
        with self._use() as file:
            check(lib.gx_postings_open(out, file, self._find_term(term), err), err)
        docids, tfs, n = ffi.new("uint32_t **"), ffi.new("uint32_t **"), ffi.new("uint32_t *")
        try:
            while True:
                with self._use():
                    check(lib.gx_postings_next(out[0], docids, tfs, n, err), err)
                    if n[0] == 0:
                        return
                    found = np.frombuffer(ffi.buffer(docids[0], 4 * n[0]), np.uint32)
                    block = Postings(found + np.uint64(lib.gx_postings_base(out[0])) if self._wide else found.copy(),
                                     np.frombuffer(ffi.buffer(tfs[0], 4 * n[0]), np.uint32).copy())
                yield block
        finally:
            lib.gx_postings_close(out[0])

    def postings(self, term: Union[str, int]) -> Postings:
        """The list of a term, whole. KeyError for a term that the index lacks."""
        blocks = list(self.iter_postings(term))
        if not blocks:
            return Postings(np.zeros(0, np.uint32), np.zeros(0, np.uint32))
        return Postings(np.concatenate([b.docids for b in blocks]), np.concatenate([b.tfs for b in blocks]))

    def positions(self, term: Union[str, int]) -> Any:
        """Where the documents of a term's list have it, posting by posting: the first tfs[0] numbers are the places in
        document docids[0], rising, and so on (see postings). Words count from 0 through title and text. Of an index
        that was built with positions, else UsageError."""
        out, err, blocks = ffi.new("gx_postings **"), new_error(), []
        with self._use() as file:
            check(lib.gx_postings_open(out, file, self._find_term(term), err), err)
            docids, n, found, n_found = (ffi.new(t) for t in ("uint32_t **", "uint32_t *", "uint32_t **", "size_t *"))
            try:
                while True:
                    check(lib.gx_postings_next(out[0], docids, ffi.NULL, n, err), err)
                    if n[0] == 0:
                        break
                    check(lib.gx_postings_positions(out[0], found, n_found, err), err)
                    blocks.append(np.frombuffer(ffi.buffer(found[0], 4 * n_found[0]), np.uint32).copy())
            finally:
                lib.gx_postings_close(out[0])
        return np.concatenate(blocks) if blocks else np.zeros(0, np.uint32)

    def expand(self, pattern: str, kind: str = "wildcard", *, max_words: int = 50, distance: Optional[int] = None,
               fixed_prefix: int = 0, as_is: bool = False, nearest: bool = False) -> Expansion:
        """The words of the index that a pattern stands for: at most max_words, those of greatest df, of equal ones the
        first in byte order; with nearest True those of least distance first.

        kind        "prefix": words that begin with it; "wildcard": ? is a character, * any number; "fuzzy": words with
                    at most `distance` typing errors (0 to 2; None: 0, 1 or 2 by the word's length), none of them in
                    the first fixed_prefix characters; "regex": a regular expression that matches whole words
        as_is       the pattern's letters stay as they are; else they become lower case, or are folded, as a text's

        UsageError: the pattern is wrong, or matches every word."""
        with self._use() as file:
            return expand(file, pattern, kind, max_words, distance, fixed_prefix, as_is, nearest)

    def synonyms(self, rules: Optional[str] = None, *, path: Union[str, "os.PathLike[str]", None] = None) -> Synonyms:
        """Rules by which search(..., synonyms=...) replaces words of queries: a str, or a file, in the form of Solr's
        synonym files, one a line: "tv, telly => television, tv" or "sofa, couch". They fit indexes of this index's
        analysis. InputError names the line and column of what is wrong."""
        with self._use() as file:
            return Synonyms(file, rules, path)

    def suggest(self, word: str, n: int = 3) -> List[Word]:
        """The n nearest words to one that no document holds, then by falling df; none if a document holds it."""
        with self._use() as file:
            return suggest(file, word, n)

    def analyze(self, text: str, query: bool = False) -> List[Token]:
        """The terms of a text by the index's analyzer, each with the bytes of the text's UTF-8 of which it was made.
        With query True, those of a query."""
        coded = encode(text, "a text")
        out, n, err = ffi.new("gx_text_term **"), ffi.new("size_t *"), new_error()
        with self._use() as file:
            analyze = lib.gx_index_analyze_query if query else lib.gx_index_analyze
            check(analyze(file, coded, len(coded), out, n, err), err)
        try:
            return [Token(bytes(ffi.buffer(t.term, t.len)).decode("utf-8", "replace"), t.begin, t.end, t.position)
                    for t in (out[0][i] for i in range(n[0]))]
        finally:
            lib.free(out[0])

    @property
    def meta(self) -> Dict[str, Any]:
        """What the file says about itself: the analyzer, the source, and more."""
        n = ffi.new("size_t *")
        with self._use() as file:
            text = lib.gx_index_meta(file, n)
            found: Dict[str, Any] = json.loads(bytes(ffi.buffer(text, n[0])).decode("utf-8")) if n[0] else {}
        return found

    # ---- other forms ----

    def recode(self, path: Union[str, "os.PathLike[str]"], codec: Optional[str] = None, *,
               tf_codec: Optional[str] = None, impacts: Optional[str] = None, bits: Optional[int] = None,
               scale: Optional[str] = None, force: bool = False, drop_titles: bool = False,
               drop_texts: bool = False) -> "Index":
        """Write the index anew, and open it. Ctrl-C stops it, as it stops reorder, import_ciff and export_ciff, and
        nothing is left behind.

        codec, tf_codec  another codec: "gpubp128", ..., "auto": one a list; None: as they are
        impacts          a model: "bm25", "bm25l", "dph", "ql" or "pl2", with parameters as in "ql:mu=2000". The new
                         index holds each posting's score by it in place of the tf, and is searched with "impact"
        bits             of impacts: scores are kept as whole numbers of so many bits, 4 to 16; None: 8
        scale            of impacts: the greatest whole number stands for the greatest score of the "collection"
                         (None), or of each term's "list"
        """
        if impacts is None and (bits is not None or scale is not None):
            raise UsageError("bits and scale are of impacts")
        if bits is not None:
            whole(bits, "bits", 4, 16)

        def set_options(o: Any) -> None:
            names = [ffi.new("char[]", encode(c, "a codec")) if c is not None else ffi.NULL for c in (codec, tf_codec)]
            o.docid_codec, o.tf_codec = names
            o.drop_titles, o.drop_texts = drop_titles, drop_texts
            keep.extend(names)
            if impacts is not None:
                o.impacts.bits, o.impacts.list_units = bits or 0, _choose(_SCALES, "scale", scale or "collection")
                err = new_error()
                check(lib.gx_impact_options_parse(ffi.addressof(o, "impacts"), encode(impacts, "impacts"), err), err)

        keep: List[Any] = []
        return self._rewrite(path, force, set_options)

    def reorder(self, path: Union[str, "os.PathLike[str]"], order: Any = "bp", *, threads: int = 1, seed: int = 0,
                force: bool = False) -> "Index":
        """Write the index anew with other docids, and open it. order: "bp" (recursive graph bisection), "id", "random",
        or a permutation: an integer array [n_docs], the new docid of each document."""
        new_docids = np.zeros(max(1, self.info.n_docs), np.uint32)
        if isinstance(order, str):
            o, err, interrupt = options("gx_order_options"), new_error(), Interrupt()
            o.kind, o.cancel = _choose(_ORDERS, "order", order), interrupt.cancel
            o.threads, o.seed = whole(threads, "threads"), whole(seed, "seed", 0, UINT64_MAX)
            with self._use() as file:
                interrupt.check(lib.gx_order_make(file, o, ffi.from_buffer("uint32_t[]", new_docids), err), err)
        else:
            given = self._docids(order)
            if len(given) != self.info.n_docs:
                raise ValueError("the order has %d docids, the index %d documents" % (len(given), self.info.n_docs))
            new_docids[:len(given)] = given
        return self._rewrite(path, force, lambda o: setattr(o, "new_docids", ffi.from_buffer("uint32_t[]", new_docids)))

    def _rewrite(self, path: Any, force: bool, set_options: Callable[[Any], None]) -> "Index":
        o, err, interrupt = options("gx_rewrite_options"), new_error(), Interrupt()
        o.force, o.cancel = force, interrupt.cancel
        set_options(o)
        with self._use() as file:
            interrupt.check(lib.gx_index_rewrite(file, path_bytes(path), o, err), err)
        return Index(path, **self._arguments)

    def export_ciff(self, path: Union[str, "os.PathLike[str]"], *, force: bool = False) -> None:
        """Write the postings as a CIFF file, which Anserini, PISA, Terrier and others read."""
        o, err, interrupt = options("gx_export_options"), new_error(), Interrupt()
        o.force, o.cancel = force, interrupt.cancel
        with self._use() as file:
            interrupt.check(lib.gx_ciff_export(file, path_bytes(path), o, err), err)

    def export_attributes(self, path: Union[str, "os.PathLike[str]"], *, force: bool = False) -> None:
        """Write ids and attributes as tab-separated values; `gpuidx help export` describes the file. import_ciff reads
        it, and the values come back the same."""
        o, err, interrupt = options("gx_export_options"), new_error(), Interrupt()
        o.force, o.cancel = force, interrupt.cancel
        with self._use() as file:
            interrupt.check(lib.gx_attributes_export(file, path_bytes(path), o, err), err)

    def check(self, level: str = "full") -> None:
        """Verify the file anew: "structure", "checksum" or "full" (every list decoded). CorruptError has the fault."""
        err = new_error()
        check(lib.gx_index_verify(path_bytes(self._place), _choose(_CHECKS, "level", level), err), err)


_check = check


def import_ciff(ciff: Union[str, "os.PathLike[str]"], path: Union[str, "os.PathLike[str]"], *, force: bool = False,
                codec: Optional[str] = None, analyzer: Optional[str] = None, stemmer: Optional[str] = None,
                stopwords: Optional[str] = None, impacts: bool = False, fold: Optional[str] = None,
                ngrams: Optional[str] = None,
                attributes: Union[str, "os.PathLike[str]", None] = None) -> Index:
    """Make an index of a CIFF file, and open it. analyzer: how queries become terms; None: what the file says.
    attributes: a file of the documents' attributes, as Index.export_attributes writes it."""
    o, err, interrupt = options("gx_import_options"), new_error(), Interrupt()
    given = {"docid_codec": codec, "analyzer": analyzer, "stemmer": stemmer, "stopwords": stopwords, "fold": fold,
             "ngrams": ngrams}
    keep = {name: ffi.new("char[]", v.encode()) for name, v in given.items() if v is not None}
    if attributes is not None:
        keep["attributes_file"] = ffi.new("char[]", path_bytes(attributes))
    for name, value in keep.items():
        setattr(o, name, value)
    o.force, o.impacts, o.cancel = force, impacts, interrupt.cancel
    interrupt.check(lib.gx_ciff_import(path_bytes(ciff), path_bytes(path), o, err), err)
    return Index(path)


__all__ = ["Index", "IndexInfo", "Mask", "Part", "Postings", "Token", "import_ciff", "error"]
