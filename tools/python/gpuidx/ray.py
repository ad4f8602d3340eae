"""gpuidx.ray: a collection that Ray actors search together, each of which has some of its files.

    import ray, gpuidx.ray
    ray.init()
    with gpuidx.ray.Shards("news/", shards=4, gpus=1) as news:
        for hit in news.search("inverted index", k=10):
            print(hit.docno, hit.score)

Every actor opens the whole collection, which all machines see under one path, and makes an engine of its own files
alone, on a GPU where it was given one. Statistics are those of the whole, so that answers are those of Index.search,
bit for bit. An actor that dies is started again by Ray, and the query that it had is asked again. A query is
answered from one commit by all actors, the last one that this process has opened (Shards.refresh).

application(...) is a deployment of Ray Serve that answers POST requests as `gpuidx serve` answers /retrieve."""
from __future__ import annotations

import contextlib
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

try:
    import ray
except ImportError as e:  # pragma: no cover
    raise ImportError("gpuidx.ray needs Ray: pip install ray") from e

from . import _queries
from ._index import Index
from ._library import UINT32_MAX, UINT64_MAX, Error, UsageError, check, ffi, lib, whole
from ._results import Results

__all__ = ["Shards", "application"]

_ASKED = ("op", "scorer", "k1", "b", "filter", "count", "syntax", "prune", "algorithm", "seconds", "vocabulary",
          "quotes", "max_expansions", "fuzzy_prefix")
_Found = Tuple[Any, Any, Any, Any]  # docids [n, k], exact scores [n, k], counts [n], matches [n]


class _OtherCommit(Exception):
    """The actor has a later commit than the one that was asked for."""


def _exchange(_user: Any, _keys: Any, _highs: Any, _n_keys: Any, _ks: Any, _n: int, _err: Any) -> int:
    """What a shard exchanges while it searches: nothing. Its own best are merged with the others' at the end."""
    return int(lib.GX_OK)


_keep = ffi.callback("gx_status(void *, uint64_t *, uint32_t *, uint32_t *, const uint32_t *, uint32_t, gx_error *)",
                     _exchange)


class _Part(Index):
    """An Index whose engines have one shard's files."""

    def __init__(self, path: str, number: int, n: int, **arguments: Any) -> None:
        self._shard = ffi.new("gx_shard *")
        self._shard.number, self._shard.n, self._shard.exchange = number, n, _keep
        super().__init__(path, **arguments)

    def best(self, queries: Any, k: int, asked: Dict[str, Any]) -> _Found:
        """The k best of this shard's documents for each query, with exact scores."""
        a = asked
        scorer = a.get("scorer") or ("impact" if self.info.impacts else "bm25")
        key = (k, a.get("op", "or"), scorer, a.get("k1"), a.get("b"), None, True, a.get("prune", True),
               a.get("algorithm", "auto"), a.get("seconds", 0.0), 0.0, None, a.get("quotes", "phrase"),
               a.get("max_expansions", 50), a.get("fuzzy_prefix", 0))
        if not a.get("count"):
            key = key[:6] + (False,) + key[7:]
        made, _, _ = _queries.of(queries, a.get("syntax", "text"), a.get("vocabulary"))
        session = self._session(self._default)
        opt = self._options(session, key)
        n, k, batch = made.n, int(opt.k), 1024
        docids, scores = np.full((n, k), UINT64_MAX, np.uint64), np.zeros((n, k))
        counts, matches = np.zeros(n, np.uint32), np.zeros(n, np.uint64)
        results = ffi.new("gx_results *")
        results.size = ffi.sizeof("gx_results")
        with contextlib.ExitStack() as stack:
            if a.get("filter") is not None:
                made.set_filters(stack.enter_context(self._filters(a["filter"], n)))
            for first in range(0, n, batch):
                results.docids64 = ffi.cast("uint64_t *", docids.ctypes.data + 8 * first * k)
                results.exact_scores = ffi.cast("double *", scores.ctypes.data + 8 * first * k)
                results.n_hits = ffi.cast("uint32_t *", counts.ctypes.data + 4 * first)
                results.n_matches = ffi.cast("uint64_t *", matches.ctypes.data + 8 * first)
                size = min(batch, n - first)
                check(lib.gx_search(session.pointer, made.at(first), size, opt, results, session.err), session.err)
        return docids, scores, counts, matches


class _Actor:
    """A shard in a process of its own."""

    def __init__(self, path: str, number: int, n: int, arguments: Dict[str, Any]) -> None:
        self._index: Any = _Part(path, number, n, **arguments)
        self._index.engine_name()  # the engine opens now, so that a collection of too few files is told at once

    def search(self, commit: int, queries: Any, k: int, asked: Dict[str, Any]) -> _Found:
        if self._index.commit < commit:
            self._index = self._index.reopen()
        if self._index.commit != commit:
            raise _OtherCommit("%d, not %d" % (self._index.commit, commit))
        found: _Found = self._index.best(queries, k, asked)
        return found

    def describe(self) -> Dict[str, Any]:
        return {"engine": self._index.engine_name(), "commit": self._index.commit, "pid": os.getpid()}


def _merge(parts: Sequence[_Found], k: int) -> _Found:
    """The k best of all shards: by falling score, then by rising docid."""
    docids, scores = np.hstack([p[0] for p in parts]), np.hstack([p[1] for p in parts])
    there = np.hstack([np.arange(p[0].shape[1]) < p[2][:, None] for p in parts])
    scores = np.where(there, scores, -np.inf)
    docids = np.where(there, docids, np.uint64(UINT64_MAX))
    order = np.lexsort((docids, -scores), axis=1)[:, :k]
    found = np.take_along_axis(docids, order, 1)
    best = np.take_along_axis(scores, order, 1)
    counts = np.minimum(there.sum(axis=1), k).astype(np.uint32)
    return found, np.where(np.isneginf(best), 0.0, best), counts, sum(p[3] for p in parts)


def _failure(e: Exception) -> Exception:
    """What an actor has raised, as it raised it."""
    cause = getattr(e, "cause", None)
    return cause if isinstance(cause, Exception) else e


class Shards:
    """A collection, searched by actors.

    path      the folder of the collection, the same for this process and for all actors
    shards    actors; the collection has as many files at least (Index.parts)
    gpus      GPUs of each actor, as Ray counts them: 1, or 0.5 for two actors a GPU; 0: the CPU
    cpus      processors that Ray keeps for each actor
    timeout   seconds that a search may wait for its actors, restarts among them; None: as long as it takes
    options   what else Ray is told of the actors, such as {"scheduling_strategy": "SPREAD"}
    arguments those of Index, such as check="structure" or device_memory=...

    Any number of threads may search. Pickling it passes the same actors on."""

    def __init__(self, path: Union[str, "os.PathLike[str]"], shards: int = 2, *, gpus: float = 0, cpus: float = 1,
                 timeout: Optional[float] = None, options: Optional[Dict[str, Any]] = None, **arguments: Any) -> None:
        whole(shards, "shards", 1, 4096)
        self.path = os.path.abspath(os.fsdecode(path))
        self._timeout = timeout
        self._index = Index(self.path, engine="cpu", check=arguments.get("check", "checksum"))
        if not self._index.parts:
            raise UsageError("%s is one file, and shards are of a collection" % self.path)
        if len(self._index.parts) < shards:
            raise UsageError("%s has %d files, too few for %d shards" % (self.path, len(self._index.parts), shards))
        arguments.setdefault("engine", "gpu" if gpus else "cpu")
        remote = ray.remote(_Actor).options(num_gpus=gpus, num_cpus=cpus, max_restarts=-1, max_task_retries=-1,
                                            **(options or {}))
        self._actors: List[Any] = [remote.remote(self.path, i, shards, arguments) for i in range(shards)]
        self._owner = True
        self.describe()  # all are there, or the first that cannot be is told

    @classmethod
    def _of(cls, path: str, actors: List[Any], timeout: Optional[float]) -> "Shards":
        other: Shards = object.__new__(cls)
        other.path, other._actors, other._timeout, other._owner = path, actors, timeout, False
        other._index = Index(path, engine="cpu", check="structure")
        return other

    def __reduce__(self) -> Any:
        return Shards._of, (self.path, self._actors, self._timeout)

    def _ask(self, refs: List[Any]) -> List[Any]:
        try:
            return list(ray.get(refs, timeout=self._timeout))
        except ray.exceptions.RayTaskError as e:
            raise _failure(e) from None

    def describe(self) -> List[Dict[str, Any]]:
        """Of each actor its engine, its commit and its process."""
        return self._ask([a.describe.remote() for a in self._actors])

    @property
    def commit(self) -> int:
        """The commit that searches are answered from."""
        return self._index.commit

    def refresh(self) -> int:
        """Search the collection's last commit from now on; its number."""
        self._index = self._index.reopen()
        return self.commit

    def _search(self, index: Index, queries: Any, k: int, asked: Dict[str, Any]) -> _Found:
        commit, most = index.commit, max(1, min(k, index.info.n_docs))
        if asked.get("op") == "and-or":  # AND's answer where all shards together have k hits
            both = self._search(index, queries, k, {**asked, "op": "and"})
            ored = self._search(index, queries, k, {**asked, "op": "or"})
            enough = both[2] == most
            rows = enough[:, None]
            return (np.where(rows, both[0], ored[0]), np.where(rows, both[1], ored[1]),
                    np.where(enough, both[2], ored[2]), np.where(enough, both[3], ored[3]))
        return _merge(self._ask([a.search.remote(commit, queries, k, asked) for a in self._actors]), most)

    def search(self, queries: Any = None, k: int = 10, **asked: Any) -> Results:
        """Index.search of the whole collection, with its queries, k, op, scorer, k1, b, filter, count, syntax, quotes,
        prune, algorithm, seconds, vocabulary, max_expansions and fuzzy_prefix. Pages, facets, masks and priors are
        those of an Index alone. UsageError and others as Index.search; ray.exceptions.GetTimeoutError."""
        for name in asked:
            if name not in _ASKED:
                raise TypeError("%s is not there for shards; there are %s" % (name, ", ".join(_ASKED)))
        whole(k, "k", 1)
        _, qids, single = _queries.of(queries, asked.get("syntax", "text"), asked.get("vocabulary"))
        while True:
            index = self._index
            try:
                docids, scores, counts, matches = self._search(index, queries, k, asked)
                break
            except _OtherCommit:  # an actor that was started again has the last commit
                if self.refresh() == index.commit:
                    raise
        if not index._wide:
            docids = np.where(docids == UINT64_MAX, UINT32_MAX, docids).astype(np.uint32)
        values = scores.astype(np.float32)
        told = matches if asked.get("count") else None
        if not single:
            return Results(index, docids, values, counts, told, qids, False)
        n = int(counts[0])
        return Results(index, docids[0, :n], values[0, :n], n, None if told is None else int(told[0]), qids, True)

    def close(self) -> None:
        """End the actors, where this object has started them."""
        if self._owner:
            for actor in self._actors:
                ray.kill(actor)
        self._actors = []
        self._index.close()

    def __enter__(self) -> "Shards":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _text(index: Index, docid: int) -> Dict[str, str]:
    title, text = index.title(docid), index.text(docid)
    return {"id": index.docno(docid), "contents": '"%s"\n%s' % (title, text) if title else text}


class _Replica:
    """What answers a request of Ray Serve: {"queries": [...], "topk": 3, "return_scores": true}."""

    def __init__(self, shards: Shards, max_queries: int, max_k: int) -> None:
        self._shards, self._max_queries, self._max_k = shards, max_queries, max_k

    def answer(self, body: Any) -> Dict[str, Any]:
        """UsageError, of a body that is malformed."""
        if not isinstance(body, dict):
            raise UsageError("a JSON object is expected")
        other = set(body) - {"queries", "topk", "return_scores"}
        if other:
            raise UsageError("there is no member %r; there are queries, topk, return_scores" % sorted(other)[0])
        queries, k = body.get("queries"), body.get("topk", 3)
        if not isinstance(queries, list) or not all(isinstance(q, str) for q in queries):
            raise UsageError("queries: an array of strings is expected")
        if len(queries) > self._max_queries:
            raise UsageError("queries: there are at most %d" % self._max_queries)
        whole(k, "topk", 1, self._max_k)
        found: Any = self._shards.search(queries, k) if queries else []
        results: List[List[Dict[str, Any]]] = []
        for hits in found:
            documents = [_text(self._shards._index, h.docid) for h in hits]
            if body.get("return_scores"):
                results.append([{"document": d, "score": float(h.score)} for d, h in zip(documents, hits)])
            else:
                results.append([dict(d) for d in documents])
        return {"result": results}

    async def __call__(self, request: Any) -> Any:
        import asyncio

        from starlette.responses import JSONResponse

        if request.method == "GET":  # a probe of readiness
            return JSONResponse({"status": "ready", "commit": self._shards.commit})
        try:
            body = await request.json()
        except ValueError as e:
            return JSONResponse({"error": {"status": 400, "message": "the body is not valid JSON: %s" % e}}, 400)
        try:
            return JSONResponse(await asyncio.get_running_loop().run_in_executor(None, self.answer, body))
        except (UsageError, TypeError) as e:
            return JSONResponse({"error": {"status": 400, "message": str(e)}}, 400)
        except Error as e:
            return JSONResponse({"error": {"status": 500, "message": str(e)}}, 500)


def application(shards: Shards, *, name: str = "gpuidx", replicas: int = 1, max_queries: int = 10000,
                max_k: int = 10000, max_ongoing: int = 64) -> Any:
    """An application of Ray Serve over the shards, which ray.serve.run takes:

        serve.run(gpuidx.ray.application(shards), route_prefix="/retrieve")

    POST {"queries": [...], "topk": 3, "return_scores": true} is answered {"result": [[{"document": {"id", "contents"},
    "score"}]]}, as Search-R1's server has it; GET tells that it is ready. A malformed body gets status 400."""
    from ray import serve

    kind = serve.deployment(name=name, num_replicas=replicas, max_ongoing_requests=max_ongoing)(_Replica)
    return kind.bind(shards, max_queries, max_k)
