#!/usr/bin/env python3
"""Compare the library's rankings with bm25s (pip install bm25s) and with a brute-force program in double precision.

    tests/witness/ranking.py --lib build/libgpuidx.so DOCS.tsv QUERIES.tsv [--k 100] [--engine cpu|gpu]

DOCS.tsv and QUERIES.tsv hold an id, a tab, and text on each line. The text is tokenised here ([a-z0-9]+ of its lower
case), and both sides are given the tokens: the library with its whitespace analyzer, bm25s as lists of words. Of
every query's top k, at every rank, the score must equal the witness's score of that document, and the witness's score
at that rank, within 1e-5 (of the score, where that is above 1); so documents may differ in place only where the
witness has a tie. Exit 1 if anything differs.
"""
import argparse
import collections
import ctypes as C
import math
import re
import sys
import tempfile

import bm25s
import numpy as np

TOLERANCE = 1e-5
PRESETS = ["bm25", "bm25:lucene", "bm25:pisa", "bm25:atire", "bm25:robertson", "bm25:lucene-lossy"]


class Error(C.Structure):
    _fields_ = [("status", C.c_int), ("text", C.c_char * 1020)]


class BuilderOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("path", C.c_char_p), ("force", C.c_bool), ("duplicates", C.c_int),
                ("docid_codec", C.c_char_p), ("tf_codec", C.c_char_p), ("analyzer", C.c_char_p),
                ("stemmer", C.c_char_p), ("stopwords", C.c_char_p), ("store_titles", C.c_bool),
                ("store_text", C.c_bool), ("memory", C.c_uint64), ("source", C.c_char_p), ("threads", C.c_uint32)]


class Document(C.Structure):
    _fields_ = [("size", C.c_size_t), ("id", C.c_char_p), ("title", C.c_char_p), ("text", C.c_char_p),
                ("id_len", C.c_size_t), ("title_len", C.c_size_t), ("text_len", C.c_size_t)]


class EngineOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("kind", C.c_int), ("device", C.c_int), ("device_memory", C.c_uint64),
                ("map_memory", C.c_uint64), ("linger_us", C.c_uint32)]


class QueryOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("op", C.c_int), ("k", C.c_uint32), ("preset", C.c_int), ("k1", C.c_float),
                ("b", C.c_float), ("prune", C.c_bool), ("count", C.c_bool), ("cancel", C.c_void_p),
                ("user", C.c_void_p), ("seconds", C.c_double), ("algorithm", C.c_int), ("recursion", C.c_uint32),
                ("mask", C.c_void_p)]


class Query(C.Structure):
    _fields_ = [("size", C.c_size_t), ("kind", C.c_int), ("text", C.c_char_p), ("len", C.c_size_t),
                ("terms", C.c_void_p), ("n_terms", C.c_uint32)]


class Results(C.Structure):
    _fields_ = [("size", C.c_size_t), ("docids", C.c_void_p), ("scores", C.c_void_p), ("n_hits", C.c_void_p),
                ("n_matches", C.c_void_p)]


class Library:
    """The index of docs (lists of words) on one engine."""

    def __init__(self, path, docs, engine):
        self.lib = C.CDLL(path)
        self.err = Error()
        with tempfile.NamedTemporaryFile(suffix=".gx") as file:
            self.build(file.name.encode(), docs)
            self.index = C.c_void_p()
            self.check(self.lib.gx_index_open(C.byref(self.index), file.name.encode(), None, C.byref(self.err)))
        options = self.defaults(EngineOptions, "engine")
        options.kind = {"cpu": 1, "gpu": 2}[engine]
        self.engine, self.session = C.c_void_p(), C.c_void_p()
        self.check(self.lib.gx_engine_open(C.byref(self.engine), self.index, C.byref(options), C.byref(self.err)))
        self.check(self.lib.gx_session_open(C.byref(self.session), self.engine, C.byref(self.err)))
        self.lib.gx_engine_describe.restype = C.c_char_p
        self.name = self.lib.gx_engine_describe(self.engine).decode()

    def defaults(self, kind, name):
        options = kind()
        getattr(self.lib, "gx_%s_options_init" % name)(C.byref(options), C.c_size_t(C.sizeof(kind)))
        return options

    def check(self, status):
        if status:
            sys.exit(f"libgpuidx: {self.err.text.decode()}")

    def build(self, path, docs):
        builder = C.c_void_p()
        options = self.defaults(BuilderOptions, "builder")
        options.path, options.force, options.analyzer = path, True, b"whitespace"
        self.check(self.lib.gx_builder_open(C.byref(builder), C.byref(options), C.byref(self.err)))
        for i, words in enumerate(docs):
            name, text = b"%d" % i, " ".join(words).encode()
            doc = Document(C.sizeof(Document), name, None, text, len(name), 0, len(text))
            self.check(self.lib.gx_builder_add(builder, C.byref(doc), C.byref(self.err)))
        self.check(self.lib.gx_builder_finish(builder, C.byref(self.err)))
        self.lib.gx_builder_abort(builder)

    def search(self, queries, k, preset, k1=math.nan, b=math.nan):
        texts = [" ".join(words).encode() for words in queries]
        array = (Query * len(texts))(*[Query(C.sizeof(Query), 0, t, len(t), None, 0) for t in texts])
        docids, scores = np.zeros((len(texts), k), np.uint32), np.zeros((len(texts), k), np.float32)
        n_hits = np.zeros(len(texts), np.uint32)
        options = self.defaults(QueryOptions, "query")
        options.k, options.preset, options.k1, options.b = k, PRESETS.index(preset), k1, b
        results = Results(C.sizeof(Results), docids.ctypes.data, scores.ctypes.data, n_hits.ctypes.data, None)
        self.check(self.lib.gx_search(self.session, array, len(texts), C.byref(options), C.byref(results),
                                      C.byref(self.err)))
        return [(docids[i, :n], scores[i, :n]) for i, n in enumerate(n_hits)]


def lucene_length(n):
    """A length as Lucene's norms keep it: SmallFloat.byte4ToInt(SmallFloat.intToByte4(n))."""
    if n < 24:
        return n
    v = n - 24
    bits = v.bit_length()
    return 24 + (v if bits < 4 else v >> (bits - 4) << (bits - 4))


class BruteForce:
    """Every score of a query from the formula, in double precision."""

    def __init__(self, docs):
        self.n = len(docs)
        self.lengths = np.array([len(d) for d in docs], float)
        self.lossy = np.array([lucene_length(len(d)) for d in docs], float)
        self.avgdl = self.lengths.sum() / self.n
        self.postings = collections.defaultdict(list)
        for i, words in enumerate(docs):
            for word, tf in collections.Counter(words).items():
                self.postings[word].append((i, tf))

    def idf(self, preset, df):
        rsj = math.log((self.n - df + 0.5) / (df + 0.5))
        if preset == "bm25:pisa":
            return max(1e-6, rsj)
        if preset == "bm25:robertson":
            return max(0, rsj)
        if preset == "bm25:atire":
            return math.log(self.n / df)
        return math.log(1 + (self.n - df + 0.5) / (df + 0.5))

    def scores(self, words, preset, k1, b):
        out = np.zeros(self.n)
        lengths = self.lossy if preset == "bm25:lucene-lossy" else self.lengths
        times = k1 + 1 if preset in ("bm25:pisa", "bm25:atire", "bm25:robertson") else 1
        for word in words:
            if word not in self.postings:
                continue
            docs, tfs = np.array(self.postings[word]).T
            out[docs] += self.idf(preset,
                                  len(docs)) * times * tfs / (tfs + k1 * (1 - b + b * lengths[docs] / self.avgdl))
        return out


def compare(answers, scores_of, queries, k):
    """The number of ranks at odds, of ranks compared, of documents in another place, and the greatest difference."""
    wrong = ranks = moved = 0
    greatest = 0.0
    for (docids, scores), words in zip(answers, queries):
        theirs = scores_of(words)
        order = np.argsort(-theirs, kind="stable")[: len(docids)]
        matching = int((theirs > 0).sum())
        wrong += len(docids) < min(k, matching)
        tolerance = TOLERANCE * np.maximum(1, theirs[order])
        at_doc, at_rank = np.abs(scores - theirs[docids]), np.abs(scores - theirs[order])
        wrong += int(((at_doc > tolerance) | (at_rank > tolerance)).sum())
        moved += int((order != docids).sum())
        ranks += len(docids)
        if len(docids):
            greatest = max(greatest, float(np.maximum(at_doc, at_rank).max()))
    return wrong, ranks, moved, greatest


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return [re.findall("[a-z0-9]+", line.split("\t", 1)[1].lower()) for line in file if "\t" in line]


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("docs")
    args.add_argument("queries")
    args.add_argument("--lib", default="build/libgpuidx.so")
    args.add_argument("--k", type=int, default=100)
    args.add_argument("--engine", choices=["cpu", "gpu"], default="cpu")
    args = args.parse_args()

    docs, queries = read(args.docs), read(args.queries)
    ours, brute = Library(args.lib, docs, args.engine), BruteForce(docs)
    print(f"{len(docs)} documents, {len(queries)} queries, top {args.k}, {ours.name}")
    failed = 0

    def report(what, answers, scores_of):
        nonlocal failed
        wrong, ranks, moved, greatest = compare(answers, scores_of, queries, args.k)
        failed += wrong
        print(f"{what:45} {ranks} ranks, {wrong} wrong, {moved} documents swapped within ties, "
              f"greatest difference {greatest:.1e}")

    for preset in PRESETS:
        for k1, b in [(0.9, 0.4), (1.2, 0.75), (2.0, 0.0)]:
            answers = ours.search(queries, args.k, preset, k1, b)
            k1, b = float(np.float32(k1)), float(np.float32(b))
            report(f"{preset} k1 {k1:.3g} b {b:.3g}, brute force", answers, lambda q: brute.scores(q, preset, k1, b))
            method = {"bm25": "lucene", "bm25:atire": "atire"}.get(preset)
            if method:
                witness = bm25s.BM25(k1=k1, b=b, method=method, dtype="float64")
                witness.index(docs, create_empty_token=False, show_progress=False)
                known = set(witness.vocab_dict)
                report(f"{preset} k1 {k1:.3g} b {b:.3g}, bm25s", answers,
                       lambda q: witness.get_scores([w for w in q if w in known]) if known & set(q)
                       else np.zeros(len(docs)))
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
