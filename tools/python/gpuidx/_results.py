"""What a search found."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, TextIO, Tuple, Union

import numpy as np

if TYPE_CHECKING:
    from ._index import Index


class _HitFields(NamedTuple):
    docno: str
    score: float
    docid: int
    rank: int


class Hit(_HitFields):
    """One document of an answer: (docno, score, docid, rank)."""

    _index: "Optional[Index]" = None
    _read: "Optional[_Attributes]" = None

    @property
    def attributes(self) -> Dict[str, Any]:
        """{name: value} of the document's attributes, as Index.attributes_of gives them. ValueError where the index is
        closed, or where the hit does not know it (it was unpickled)."""
        if self._index is None:
            raise ValueError("this hit does not know its index; Index.attributes_of(hit.docno) does")
        return self._index.attributes_of(self.docid) if self._read is None else self._read.of(self._index, self.docid)

    def __getstate__(self) -> None:
        return None  # the index stays behind


class _Attributes:
    """Attributes of the documents of one answer, which are read some at a time: who shows one shows others."""

    AT_ONCE = 32

    def __init__(self, docids: List[int]) -> None:
        self._docids, self._found = docids, {}  # type: List[int], Dict[int, Dict[str, Any]]

    def of(self, index: "Index", docid: int) -> Dict[str, Any]:
        found = None if index._closing else self._found.get(docid)
        if found is None:
            at = self._docids.index(docid)
            some = self._docids[at:at + self.AT_ONCE]
            self._found = there = dict(zip(some, index._attributes_of(some)))
            found = there[docid]
        return {name: list(v) if isinstance(v, list) else v for name, v in found.items()}


def _hit(index: "Index", docno: str, score: float, docid: int, rank: int, read: Optional[_Attributes] = None) -> Hit:
    hit = Hit(docno, score, docid, rank)
    hit._index, hit._read = index, read
    return hit


def hits_of(index: "Index", docids: Any, scores: Any) -> List[Hit]:
    """Documents as hits, with ranks from 1."""
    rows = zip(index.docnos(docids), scores.tolist(), docids.tolist())
    return [_hit(index, n, s, d, r) for r, (n, s, d) in enumerate(rows, 1)]


class Facet(Dict[Any, int]):
    """The documents that match a query, counted by an attribute: {value: count}, in the order asked for.

    A value is a str of keywords, an int, a float or a bool; of dates "2019", "2019-05" or "2019-05-31"; a range is a
    str such as "[0 TO 9]" or "[0.5 TO 1}". A document of several values counts once in each
    group. Behind the attribute's name and a colon, a group's text is a filter.

    name      of the attribute
    type      of the attribute: "keyword", "int", ...
    present   matches that have a value
    missing   matches that have none
    n_groups  values or ranges that there are, also those that were not asked for
    sums      {value: {attribute: figures}}, where figures were asked for; see Results.sums
    inner     {value: Facet} of the matches of each group, where an inner facet was asked for
    """

    def __init__(self, counts: Any, name: str, type: str, present: int, missing: int, n_groups: int) -> None:
        super().__init__(counts)
        self.name, self.type, self.present, self.missing, self.n_groups = name, type, present, missing, n_groups
        self.sums: Dict[Any, Dict[str, Any]] = {}
        self.inner: Dict[Any, "Facet"] = {}


class Group(NamedTuple):
    """The documents that match and have one value of the attribute that search(collapse=...) names.

    value    a str, int, float or bool, of dates a str; None: the documents without a value
    matches  how many documents match
    hits     the best of them, as many as were asked for; their ranks count in the group
    """

    value: Any
    matches: int
    hits: List[Hit]


class Results:
    """The answers to one query or to n.

    docids   uint32 [n, k], best first; UINT32_MAX behind the last hit. Of a collection of more than 2^32 - 2 documents
             uint64, and UINT64_MAX
    scores   float32 [n, k]; 0 behind the last hit
    counts   uint32 [n], the number of hits of each query
    matches  uint64 [n], all matching documents; None unless count=True was asked
    facets   [n] dicts {what was asked for: Facet}; None unless facets or sums were asked for
    sums     [n] dicts {attribute: figures}; None unless facets or sums were asked for. Figures are a dict of n, the
             number of values, and what was asked for: min, max, sum, avg, distinct, percentiles {50.0: value}. Dates
             are str, as a filter writes them; what there is not, such as the average of nothing, is None
    cursor   [n], for search(after=...): goes on behind the last hit; None where there is none, and unless a page was
             asked for
    groups   [n] lists of a Group for each hit; None unless collapse was asked for
    first    hits before the first one: ranks begin behind them
    moved    the cursor that was given is of another commit of the collection

    Of one query alone (`single`) docids and scores are [hits], counts and matches numbers, facets and sums a dict,
    cursor a str, groups a list. Iterating gives the hits of one query, or for each query a list of its hits.
    """

    __slots__ = ("index", "docids", "scores", "counts", "matches", "qids", "single", "facets", "sums", "cursor",
                 "groups", "first", "moved")

    def __init__(self, index: "Index", docids: Any, scores: Any, counts: Any, matches: Any, qids: Optional[List[str]],
                 single: bool, facets: Any = None, sums: Any = None) -> None:
        self.index = index
        self.docids = docids
        self.scores = scores
        self.counts = counts
        self.matches = matches
        self.qids = qids
        self.single = single
        self.facets = facets
        self.sums = sums
        self.cursor: Union[None, str, List[Optional[str]]] = None
        self.groups: Any = None
        self.first = 0
        self.moved = False

    def __len__(self) -> int:
        """Hits of one query, or the number of queries."""
        return len(self.docids)

    def hits(self, i: int = 0) -> List[Hit]:
        """The hits of the i-th query, best first."""
        docids, scores = self._row(i)
        names, numbers = self.index.docnos(docids), docids.tolist()
        read = _Attributes(numbers)
        rows = zip(names, scores.tolist(), numbers)
        return [_hit(self.index, n, s, d, r, read) for r, (n, s, d) in enumerate(rows, self.first + 1)]

    def _row(self, i: int) -> Tuple[Any, Any]:
        if self.single:
            if i not in (0, -1):
                raise IndexError("there is one query, not %d" % (i + 1))
            return self.docids, self.scores
        n = int(self.counts[i])
        return self.docids[i, :n], self.scores[i, :n]

    def __iter__(self) -> Iterator[Any]:
        if self.single:
            return iter(self.hits())
        return (self.hits(i) for i in range(len(self.counts)))

    def __getitem__(self, i: Any) -> Any:
        if self.single:
            return self.hits()[i]
        if isinstance(i, slice):
            return [self.hits(q) for q in range(len(self.counts))[i]]
        if not -len(self.counts) <= i < len(self.counts):
            raise IndexError("there are %d queries" % len(self.counts))
        return self.hits(i)

    def _n_queries(self) -> int:
        return 1 if self.single else len(self.counts)

    def _qid(self, i: int) -> str:
        return self.qids[i] if self.qids is not None else str(i + 1)

    def _check_qids(self) -> None:
        """ValueError: several queries have the same id."""
        seen: Set[str] = set()
        for qid in self.qids or ():
            if qid in seen:
                raise ValueError("several queries have the id %r; to_pandas gives all of their hits" % qid)
            seen.add(qid)

    def flat(self) -> Tuple[Any, Any, Any, Any]:
        """All hits, one after another, in four arrays: number of the query, docid, score, rank from 1."""
        if self.single:
            n = len(self.docids)
            return np.zeros(n, np.int64), self.docids, self.scores, self.first + np.arange(1, n + 1, dtype=np.int64)
        counts = self.counts.astype(np.int64)
        k = self.docids.shape[1]
        filled = np.arange(k)[None, :] < counts[:, None]
        of_query, rank = np.nonzero(filled)
        return of_query, self.docids[filled], self.scores[filled], rank + self.first + 1

    def to_pandas(self, attributes: Union[None, bool, str, Sequence[str]] = None) -> Any:
        """A DataFrame with a row for each hit: qid, docid, docno, rank (from 1), score, and a column for each of
        these attributes, or for all of them (True), as Index.values gives it."""
        import pandas

        of_query, docids, scores, rank = self.flat()
        qids = np.array([self._qid(i) for i in range(self._n_queries())], dtype=object)
        names = list(self.index.attributes) if attributes is True else [attributes] if isinstance(
            attributes, str) else list(attributes or [])
        columns = {
            "qid": qids[of_query] if len(qids) else np.zeros(0, object),
            "docid": docids.astype(np.int64),
            "docno": np.array(self.index.docnos(docids), dtype=object),
            "rank": rank,
            "score": scores.astype(np.float64),
        }
        for name in names:
            if name in columns:
                raise ValueError("the attribute %r has the name of another column; Index.values gives it" % name)
            columns[name] = self.index.values(name, docids)
        return pandas.DataFrame(columns)

    def to_dict(self) -> "dict[str, dict[str, float]]":
        """{qid: {docno: score}}, as ir-measures, ranx and pytrec_eval take it. ValueError where several queries have
        the same id: a dict has one answer for each."""
        self._check_qids()
        return {self._qid(i): {h.docno: h.score for h in self.hits(i)} for i in range(self._n_queries())}

    def to_trec(self, out: Union[str, "os.PathLike[str]", TextIO], tag: str = "gpuidx") -> None:
        """Write a TREC run to a path or an open text file. Ranks count from 1. ValueError where a query's id or the tag
        holds white space, which separates the columns of a run, or where several queries have the same id."""
        self._check_qids()
        for name in [tag] + [self._qid(i) for i in range(self._n_queries())]:
            if not name or len(name.split()) != 1:
                raise ValueError("a run cannot hold %r: it is empty or has white space" % name)
        if isinstance(out, (str, os.PathLike)):
            with open(out, "w", encoding="utf-8", errors="surrogateescape") as f:
                self.to_trec(f, tag)
            return
        for i in range(self._n_queries()):
            qid = self._qid(i)
            out.writelines("%s Q0 %s %d %.9g %s\n" % (qid, h.docno, h.rank, h.score, tag) for h in self.hits(i))

    def __repr__(self) -> str:
        if self.single:
            if not len(self.docids):
                return "<gpuidx.Results: 0 hits>"
            try:
                best = self.index.docno(int(self.docids[0]))
            except ValueError:  # the index is closed
                best = "docid %d" % self.docids[0]
            return "<gpuidx.Results: %d hits, best %s %.4f>" % (len(self.docids), best, self.scores[0])
        return "<gpuidx.Results: %d queries, %d hits>" % (len(self.counts), int(self.counts.sum()))

    def _repr_html_(self) -> str:
        import html

        head = "<p>%s</p>" % html.escape(repr(self))
        try:
            hits = self.hits()[:20] if self.single else []
        except ValueError:  # the index is closed
            hits = []
        if not hits:
            return head
        rows = "".join("<tr><td>%d</td><td>%s</td><td>%.4f</td></tr>" % (h.rank, html.escape(h.docno), h.score)
                       for h in hits)
        return head + "<table><tr><th>rank</th><th>docno</th><th>score</th></tr>%s</table>" % rows
