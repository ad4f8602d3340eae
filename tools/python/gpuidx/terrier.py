"""PyTerrier: an index as an artifact, an indexer and retrievers. Needs `pip install '.[terrier]'`.

    from gpuidx.terrier import GpuidxIndex
    index = GpuidxIndex("scifact.gpuidx").index(dataset.get_corpus_iter())
    pt.Experiment([index.bm25(), index.bm25(k1=1.2, b=0.75)], topics, qrels, ["ndcg_cut_10"])

The artifact is a folder: index.gx, which every other part of gpuidx opens, and PyTerrier's pt_meta.json.
"""
from __future__ import annotations

import json
import os
import tempfile
import threading
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np
import pandas as pd
import pyterrier as pt

from . import Index, __version__, build, import_ciff
from ._build import doc_name, listed
from ._library import absolute

_Transformer: Any = pt.Transformer
_Indexer: Any = pt.Indexer
_Artifact: Any = pt.Artifact


_MAGIC = b"\x89GPUIDX\n"  # how an index file begins
_METADATA = {"type": "sparse_index", "format": "gpuidx", "package_hint": "gpuidx"}


def metadata(path: str, dir_listing: List[str]) -> Optional[Dict[str, str]]:
    """For PyTerrier, which asks what is in a folder that says nothing about itself, or in a file. None: no index."""
    if not dir_listing and os.path.isfile(path):
        with open(path, "rb") as f:
            return dict(_METADATA) if f.read(len(_MAGIC)) == _MAGIC else None
    return dict(_METADATA) if "index.gx" in dir_listing else None


class GpuidxIndex(_Artifact, _Indexer):  # type: ignore[misc]
    """An index in a folder, or to be made there.

    path        the folder; or an index file, which is then only read
    text_field  index: the fields that are indexed, joined by spaces; None: all that are strings, but docno
    threads     of building, and of retrieving many queries
    engine      "auto", "cpu" or "gpu"
    build_args  further arguments of gpuidx.build: analyzer, stemmer, stopwords, codec, store_text, ... With fields,
                ["title", "text"], these parts of a document become fields, which bm25(fields="title^3,text") weighs
    """

    ARTIFACT_TYPE = "sparse_index"
    ARTIFACT_FORMAT = "gpuidx"
    ARTIFACT_PACKAGE_HINT = "gpuidx"

    def __init__(self, path: Union[str, "os.PathLike[str]"], text_field: Union[str, List[str], None] = None, *,
                 threads: int = 1, engine: str = "auto", overwrite: bool = False, **build_args: Any) -> None:
        super().__init__(absolute(os.fspath(path)))
        self.text_field = [text_field] if isinstance(text_field, str) else text_field
        self.threads = threads
        self.engine = engine
        self.overwrite = overwrite
        self.build_args = build_args
        self._index: Optional[Index] = None
        self._by_model: Dict[Tuple[str, int], Index] = {}  # which hold impacts, by model and bits
        self._by_fields: Dict[Tuple[Any, ...], Index] = {}  # views by fields, scoring, scorer, k1 and b
        self._lock = threading.Lock()

    def __getstate__(self) -> Dict[str, Any]:
        without = ("_by_model", "_by_fields", "_lock")
        return {name: value for name, value in self.__dict__.items() if name not in without}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state, _by_model={}, _by_fields={}, _lock=threading.Lock())

    @property
    def file(self) -> str:
        """The index file: path itself, or index.gx in that folder."""
        return str(self.path) if os.path.isfile(self.path) else os.path.join(str(self.path), "index.gx")

    def built(self) -> bool:
        return os.path.exists(self.file)

    @property
    def core(self) -> Index:
        """The gpuidx.Index, opened on first use."""
        if self._index is None:
            self._index = Index(self.file, engine=self.engine)
        return self._index

    def of_model(self, impacts: str, bits: int) -> Index:
        """The index recoded into the impacts of a model, as Index.recode takes it; made on first use."""
        with self._lock:
            if (impacts, bits) not in self._by_model:
                with tempfile.TemporaryDirectory(prefix="gpuidx-") as folder:  # the file is mapped, and needs no name
                    path = os.path.join(folder, "impacts.gx")
                    self._by_model[impacts, bits] = self.core.recode(path, impacts=impacts, bits=bits)
            return self._by_model[impacts, bits]

    def of_fields(self, fields: str, field_scoring: str = "bm25f", scorer: str = "bm25", k1: Optional[float] = None,
                  b: Optional[float] = None) -> Index:
        """The index seen through its fields, as Index(fields=...) has it; kept for later searches."""
        key = (fields, field_scoring, scorer, k1, b)
        with self._lock:
            if key not in self._by_fields:
                self._by_fields[key] = Index(self.file, engine="cpu", fields=fields, field_scoring=field_scoring,
                                             scorer=scorer, k1=k1, b=b)
            return self._by_fields[key]

    def __len__(self) -> int:
        return len(self.core)

    def num_docs(self) -> int:
        return self.core.info.n_docs

    def num_terms(self) -> int:
        return self.core.info.n_terms

    def __repr__(self) -> str:
        return "GpuidxIndex(%r)" % str(self.path)

    # ---- indexing ----

    def index_inputs(self) -> List[List[str]]:
        return [["docno"] + list(self.build_args.get("fields") or self.text_field or ["text"])]

    def _document(self, document: Dict[str, Any]) -> Any:
        """What build takes: docno and text, or a dictionary where the document's parts are fields."""
        names = self.build_args.get("fields")
        if not names:
            return document["docno"], self._text(document)
        kept = {name: value for name, value in document.items() if name in names and value is not None}
        return {**kept, "docno": document["docno"]}

    def _text(self, document: Dict[str, Any]) -> str:
        fields = self.text_field or [f for f, v in document.items() if f != "docno" and isinstance(v, str)]
        missing = [f for f in fields if not isinstance(document.get(f), str)]
        if missing or not fields:
            raise ValueError("document %s has no text in %s" % (
                document["docno"], missing[0] if missing else "any field"))
        return " ".join(document[f] for f in fields)

    def index(self, iter: Union[Iterable[Dict[str, Any]], str, Any], **_: Any) -> "GpuidxIndex":
        """Build the index of dictionaries with docno and text fields, of a DataFrame with such columns, of a dataset,
        or of one by its name ("irds:beir/scifact"). Returns self."""
        dataset = pt.get_dataset(iter) if isinstance(iter, str) else iter
        if hasattr(dataset, "docs_iter"):  # of ir_datasets itself
            documents: Any = ({**d._asdict(), "docno": d.doc_id, "doc_id": None} for d in dataset.docs_iter())
        else:
            documents = listed(dataset)
        return self._build((self._document(d) for d in documents), self.build_args)

    def toks_indexer(self, scale: Optional[float] = None, *, bits: int = 8) -> "ToksIndexer":
        """An indexer of `toks`, {term: weight}: learned sparse weights, kept as impacts of so many bits (4 to 16).
        scale: the impacts are round(weight * scale), and so are the scores; None: gpuidx chooses a unit, and scores are
        told in the weights' own measure."""
        return ToksIndexer(self, scale, bits)

    def _build(self, documents: Any, arguments: Dict[str, Any]) -> "GpuidxIndex":
        self._make_folder()
        for index in [self._index, *self._by_model.values(), *self._by_fields.values()]:
            if index is not None:
                index.close()
        self._index, self._by_model, self._by_fields = None, {}, {}
        build(self.file, documents, threads=self.threads, force=self.overwrite, **arguments).close()
        self._write_metadata()
        return self

    def _make_folder(self) -> None:
        if os.path.isfile(self.path):
            raise FileExistsError("%s is a file, which is only read: an artifact is built in a folder" % self.path)
        os.makedirs(str(self.path), exist_ok=True)

    def _write_metadata(self) -> None:
        with open(os.path.join(str(self.path), "pt_meta.json"), "w", encoding="utf-8") as f:
            json.dump(dict(_METADATA, gpuidx_version=__version__), f)

    @classmethod
    def from_ciff(cls, ciff_file: str, path: Union[str, "os.PathLike[str]"], *, overwrite: bool = False,
                  **import_args: Any) -> "GpuidxIndex":
        """An artifact of a CIFF file, as Anserini, PISA and Terrier export it. import_args: those of import_ciff;
        analyzer, stemmer and stopwords say how queries become terms."""
        artifact = cls(path)
        artifact._make_folder()
        import_ciff(ciff_file, artifact.file, force=overwrite, **import_args).close()
        artifact._write_metadata()
        return artifact

    def to_ciff(self, ciff_file: str, *, overwrite: bool = False) -> None:
        """Write the postings as a CIFF file."""
        self.core.export_ciff(ciff_file, force=overwrite)

    # ---- retrieving ----

    def bm25(self, k1: Optional[float] = None, b: Optional[float] = None, *, num_results: int = 1000,
             scorer: str = "bm25", fields: Optional[str] = None, field_scoring: str = "bm25f",
             **arguments: Any) -> "Retriever":
        """BM25; k1 0.9 and b 0.4 unless given. scorer: "bm25:lucene", "bm25:pisa", ... for the variants. fields, of an
        index that was built with some: "title^3,text:b=0.6", whose field_scoring is "bm25f", "best" or "sum"."""
        if fields is None:
            return Retriever(self, num_results, dict(arguments, scorer=scorer, k1=k1, b=b))
        return Retriever(self, num_results, dict(arguments, scorer=scorer),
                         fields=(fields, field_scoring, scorer, k1, b))

    def sdm(self, weights: Sequence[float] = (0.85, 0.1, 0.05), *, num_results: int = 1000, scorer: str = "bm25",
            **arguments: Any) -> "Retriever":
        """BM25 with the sequential dependence model: the weights of the query's words, of pairs of neighbours in a row,
        and of pairs within 8 places in any order. The index must have positions (build_args positions=True)."""
        return Retriever(self, num_results, dict(arguments, scorer=scorer, sdm=tuple(weights)))

    def dph(self, *, bits: int = 16, num_results: int = 1000, **arguments: Any) -> "Retriever":
        """DPH (Amati et al., TREC 2007), as Terrier has it. When it is first used, a copy of the index is made with the
        postings' scores as whole numbers of so many bits (4 to 16), in the folder of temporary files; for large
        indexes make it once with recode, and search that with quantized."""
        return Retriever(self, num_results, dict(arguments, scorer="impact"), ("dph", bits))

    def ql(self, mu: float = 1000.0, *, bits: int = 16, num_results: int = 1000, **arguments: Any) -> "Retriever":
        """Query likelihood with Dirichlet smoothing, as Lucene and PISA have it. In the way of dph."""
        return Retriever(self, num_results, dict(arguments, scorer="impact"), ("ql:mu=%r" % float(mu), bits))

    def pl2(self, c: float = 1.0, *, bits: int = 16, num_results: int = 1000, **arguments: Any) -> "Retriever":
        """PL2 (Amati and van Rijsbergen, TOIS 2002), as Terrier has it. In the way of dph."""
        return Retriever(self, num_results, dict(arguments, scorer="impact"), ("pl2:c=%r" % float(c), bits))

    def recode(self, path: Union[str, "os.PathLike[str]"], *, overwrite: bool = False,
               **recode_args: Any) -> "GpuidxIndex":
        """This index anew at a path, as an artifact. recode_args: those of Index.recode, as impacts="dph", whose result
        is searched with quantized."""
        artifact = type(self)(path, threads=self.threads, engine=self.engine)
        artifact._make_folder()
        self.core.recode(artifact.file, force=overwrite, **recode_args).close()
        artifact._write_metadata()
        return artifact

    def quantized(self, *, num_results: int = 1000, **arguments: Any) -> "Retriever":
        """The sum of the stored impacts, for an index of learned weights; queries from query_toks or text."""
        return Retriever(self, num_results, dict(arguments, scorer="impact"))

    def text_scorer(self, k1: Optional[float] = None, b: Optional[float] = None, *, scorer: str = "bm25",
                    **arguments: Any) -> "Scorer":
        """Scores of given documents: columns query and docno in, score and rank out."""
        return Scorer(self, dict(arguments, scorer=scorer, k1=k1, b=b))


class ToksIndexer(_Indexer):  # type: ignore[misc]
    def __init__(self, target: GpuidxIndex, scale: Optional[float], bits: int) -> None:
        super().__init__()
        self.target, self.scale, self.bits = target, scale, bits

    def index_inputs(self) -> List[List[str]]:
        return [["docno", "toks"]]

    def index(self, iter: Iterable[Dict[str, Any]], **_: Any) -> GpuidxIndex:
        """Build the index of dictionaries with docno and toks. Weights are finite and above 0."""
        def scaled(documents: Iterable[Dict[str, Any]], scale: float) -> Iterator[Dict[str, Any]]:
            for d in documents:
                weights = ((term, round(weight * scale)) for term, weight in d["toks"].items())
                yield {**d, "toks": {term: weight for term, weight in weights if weight}}

        documents = iter if self.scale is None else scaled(iter, self.scale)
        return self.target._build(documents, dict(self.target.build_args, vectors="toks", bits=self.bits))


class Retriever(_Transformer):  # type: ignore[misc]
    """The best documents of each query: columns qid and query (or query_toks, {term: weight}) in; docid, docno, rank
    (from 0) and score out; with collapse="shop", as Index.search has it, also group (the value) and group_matches.
    model: the impacts that are searched, and their bits; fields: what of_fields takes; both None: the
    index itself."""

    def __init__(self, index: GpuidxIndex, num_results: int, arguments: Dict[str, Any],
                 model: Optional[Tuple[str, int]] = None, fields: Optional[Tuple[Any, ...]] = None) -> None:
        super().__init__()
        self.index, self.num_results, self.arguments, self.model = index, num_results, arguments, model
        self.fields = fields

    def fuse_rank_cutoff(self, k: int) -> Optional["Retriever"]:
        """For PyTerrier's compile. None: a cutoff of 0 stays what it is, for a search finds at least one document."""
        if k < 1:
            return None
        return self if k >= self.num_results else Retriever(self.index, k, self.arguments, self.model, self.fields)

    def transform(self, inp: Any) -> Any:
        with pt.validate.any(inp) as v:
            v.query_frame(extra_columns=["query_toks"], mode="toks")
            v.query_frame(extra_columns=["query"], mode="text")
        rows = inp.reset_index(drop=True)
        queries = list(rows["query_toks"] if v.mode == "toks" else rows["query"])
        if len(queries) == 0:
            of_query, docids, scores, rank = (np.zeros(0, t) for t in (np.int64, np.int64, np.float64, np.int64))
            docnos: List[str] = []
        else:
            core = (self.index.of_model(*self.model) if self.model else
                    self.index.of_fields(*self.fields) if self.fields else self.index.core)
            found = core.search(queries, self.num_results, threads=self.index.threads, **self.arguments)
            of_query, docids, scores, rank = found.flat()
            docnos = core.docnos(docids)
        grouped = "collapse" in self.arguments
        columns = ["docid", "docno", "rank", "score"] + (["group", "group_matches"] if grouped else [])
        kept = rows.drop(columns=[c for c in columns if c in rows.columns])
        out = kept.iloc[of_query].reset_index(drop=True)
        if grouped:
            groups = [g for of_one in found.groups for g in of_one] if len(queries) else []
            out = out.assign(group=pd.Series([g.value for g in groups], dtype=object),
                             group_matches=np.array([g.matches for g in groups], np.int64))
        return out.assign(docid=np.asarray(docids, np.int64), docno=pd.Series(docnos, dtype=object),
                          rank=np.asarray(rank, np.int64) - (1 if len(queries) else 0),
                          score=np.asarray(scores, np.float64))

    def __repr__(self) -> str:
        return "gpuidx(%s)" % (self.model[0] if self.model else self.arguments["scorer"])

    def schematic(self, *, input_columns: Optional[List[str]] = None) -> Dict[str, Any]:
        """How PyTerrier draws it; it looks nothing up on the network then."""
        settings = {name: value for name, value in self.arguments.items() if value is not None}
        if self.model:
            settings.update(impacts=self.model[0], bits=self.model[1])
        if self.fields:
            settings.update(zip(("fields", "field_scoring"), self.fields))
        return {"label": "gpuidx", "settings": dict(settings, num_results=self.num_results), "help_url": None}


class Scorer(_Transformer):  # type: ignore[misc]
    """The scores of given documents: a result frame with query in, the same with score and rank out."""

    def __init__(self, index: GpuidxIndex, arguments: Dict[str, Any]) -> None:
        super().__init__()
        self.index, self.arguments = index, arguments

    def transform(self, inp: Any) -> Any:
        pt.validate.result_frame(inp, extra_columns=["query"])
        out = inp.reset_index(drop=True)
        scores = np.zeros(len(out))
        # By query and not by qid, for nothing keeps a frame from having several queries under one.
        rows_of: Dict[Any, List[int]] = {}
        queries = list(out["query"])
        for i, query in enumerate(queries):
            rows_of.setdefault(query if isinstance(query, str) else id(query), []).append(i)
        docnos = [doc_name(docno, i) for i, docno in enumerate(out["docno"], 1)]  # numbers too are docnos, not docids
        for rows in rows_of.values():
            scores[rows] = self.index.core.score(queries[rows[0]], [docnos[i] for i in rows], **self.arguments)
        return pt.model.add_ranks(out.assign(score=scores))

    def __repr__(self) -> str:
        return "gpuidx.score(%s)" % self.arguments["scorer"]

    def schematic(self, *, input_columns: Optional[List[str]] = None) -> Dict[str, Any]:
        settings = {name: value for name, value in self.arguments.items() if value is not None}
        return {"label": "gpuidx scorer", "settings": settings, "help_url": None}


__all__ = ["GpuidxIndex", "Retriever", "Scorer", "ToksIndexer"]
