#!/usr/bin/env python3
"""Time the CPU engine against PISA, and Tantivy for AND, on one core, query by query, in one run.

    tests/witness/pisa.py --docs DOCS.tsv --queries QUERIES.txt --index INDEX.gx --pisa DIR [--tantivy DIR]
    tests/witness/pisa.py --generate DIR

In the first form DOCS.tsv holds an id, a tab, and text on each line; QUERIES.txt a query a line; INDEX.gx is an index
of DOCS.tsv with `--analyzer=simple`, so that all sides have nearly the same postings (the others without stemmer and
stop words). What the others index is made in their DIR if it is not there; Tantivy's k1 and b are its own.

In the second form the collection is made by `gpuidx generate` in DIR, and both sides read the same postings: 1.5
million documents, 418,000 postings a query, unless --documents and --density tell otherwise.

Of every query its fastest round counts, the number of rounds being the same on all sides, which leaves out what other
programs took; PISA's time is the better of one call a query and calls of 20 queries, for the best of all algorithms
that it has for an operation. Ours is given twice, of plans that are ready and from text, as PISA's is. Results are
those of each --map-memory, in bytes. Run it under `taskset -c 1`; an index of PISA's from text cannot be made on one
core, so make it before. bench_search checks its answers first. Needs pip's pyterrier-pisa, and tantivy.
"""
import argparse
import glob
import importlib
import os
import re
import subprocess
import tempfile
import time

import numpy as np

ALGORITHMS = {
    "or": ["block_max_maxscore", "block_max_wand", "maxscore", "wand", "ranked_or", "ranked_or_taat",
           "ranked_or_taat_lazy"],
    "and": ["ranked_and", "block_max_ranked_and"],
}
ALL = str(2**64 - 1)


def documents(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, text = line.rstrip("\n").partition("\t")
            yield {"docno": name, "text": text}


class Pisa:
    def __init__(self, path):
        self.lib = importlib.import_module("pyterrier_pisa._pisathon")
        for names, lexicon in (("fwd.terms", "fwd.termlex"), ("fwd.documents", "fwd.doclex")):
            if not os.path.exists(os.path.join(path, lexicon)):
                self.lib.build_binlex(os.path.join(path, names), os.path.join(path, lexicon))
        self.context = self.lib.RetrievalContext()
        self.lib.prepare_index(self.context, path, "block_simdbp", "bm25", "", bm25_k1=0.9, bm25_b=0.4)

    def seconds(self, queries, k, algorithm):
        n = len(queries) * k
        queries = list(enumerate(queries))
        begin = time.perf_counter()
        self.lib.retrieve(self.context, algorithm, queries, k=k, threads=1, query_weighted=0, pretokenised=False,
                          result_qidxs=np.zeros(n, np.int32), result_docnos=np.empty(n, object),
                          result_ranks=np.zeros(n, np.int32), result_scores=np.zeros(n, np.float32))
        return time.perf_counter() - begin


class Tantivy:
    def __init__(self, path, docs):
        self.lib = importlib.import_module("tantivy")
        schema = self.lib.SchemaBuilder()
        schema.add_text_field("text", stored=False, tokenizer_name="default", index_option="freq")
        self.schema = schema.build()
        new = not os.path.exists(path)
        if new:
            os.makedirs(path)
        index = self.lib.Index(self.schema, path=path)
        if new:
            writer = index.writer(heap_size=2_000_000_000, num_threads=1)
            for doc in documents(docs):
                writer.add_document(self.lib.Document(text=doc["text"]))
            writer.commit()
            writer.wait_merging_threads()
        index.reload()
        self.searcher = index.searcher()

    def conjunction(self, query):
        words = re.findall(r"[^\W_]+", query.lower())
        must = [(self.lib.Occur.Must, self.lib.Query.term_query(self.schema, "text", w, index_option="freq"))
                for w in words]
        return self.lib.Query.boolean_query(must)

    def seconds(self, query, k):
        begin = time.perf_counter()
        self.searcher.search(query, limit=k, count=False)
        return time.perf_counter() - begin


def generate(args):
    """The collection, our index of it, and PISA's names for its files."""
    base, args.pisa = os.path.join(args.generate, "collection"), os.path.join(args.generate, "pisa")
    args.queries, args.index = base + ".queries", base + ".gx"
    os.makedirs(args.pisa, exist_ok=True)
    if not os.path.exists(args.queries):
        subprocess.run([args.gpuidx, "generate", "-o", base, f"--documents={args.documents}",
                        f"--density={args.density}"], check=True)
    if not os.path.exists(args.index):
        subprocess.run([args.gpuidx, "import", base, "-o", args.index], check=True)
    for suffix, name in ((".docs", "inv.docs"), (".freqs", "inv.freqs"), (".sizes", "inv.sizes"),
                         (".terms", "fwd.terms"), (".documents", "fwd.documents")):
        if not os.path.exists(os.path.join(args.pisa, name)):
            os.symlink(os.path.abspath(base + suffix), os.path.join(args.pisa, name))


def describe(name, times):
    return f"{name}: mean {times[0]:.2f} p50 {times[1]:.2f} p95 {times[2]:.1f} p99 {times[3]:.1f} us"


def summary(seconds, calls=None):
    mean = min(seconds.sum(), seconds.sum() if calls is None else calls.sum()) / len(seconds)
    return 1e6 * np.array([mean, *np.percentile(seconds, [50, 95, 99])])


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--docs")
    args.add_argument("--queries")
    args.add_argument("--index")
    args.add_argument("--pisa")
    args.add_argument("--tantivy")
    args.add_argument("--generate", metavar="DIR")
    args.add_argument("--documents", type=int, default=1500000)
    args.add_argument("--density", type=float, default=2.035)
    args.add_argument("--gpuidx", default="build/tools/gpuidx")
    args.add_argument("--bench", default="build/tests/bench_search")
    args.add_argument("--map-memory", action="append", metavar="BYTES")
    args.add_argument("--first", type=int, default=1000, metavar="N", help="queries")
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--operations", default="or10,or1000,and10,and1000")
    args = args.parse_args()

    if args.generate:
        generate(args)
    elif not glob.glob(os.path.join(args.pisa, "inv.docs")):
        build = importlib.import_module("pyterrier_pisa").PisaIndex
        build(args.pisa, stemmer="none", stops="none", threads=1, batch_size=100000).index(documents(args.docs))
    pisa = Pisa(args.pisa)
    tantivy = Tantivy(args.tantivy, args.docs) if args.tantivy else None
    with open(args.queries, encoding="latin-1") as file:
        queries = [line.strip() for line in file][: args.first]
    n = len(queries)
    maps = args.map_memory or [ALL]

    for op, k in ((o.rstrip("0123456789"), int(re.sub(r"\D", "", o))) for o in args.operations.split(",")):
        alone = {a: np.full(n, np.inf) for a in ALGORITHMS[op]}
        twenty = {a: np.full((n + 19) // 20, np.inf) for a in ALGORITHMS[op]}
        musts = [tantivy.conjunction(q) for q in queries] if tantivy and op == "and" else []
        theirs = np.full(len(musts), np.inf)
        ours = {m: np.full((n, 2), np.inf) for m in maps}
        for _ in range(args.rounds):
            for a in ALGORITHMS[op]:
                for i in range(n):
                    alone[a][i] = min(alone[a][i], pisa.seconds(queries[i : i + 1], k, a))
                for i in range(0, n, 20):
                    twenty[a][i // 20] = min(twenty[a][i // 20], pisa.seconds(queries[i : i + 20], k, a))
            for i, must in enumerate(musts):
                theirs[i] = min(theirs[i], tantivy.seconds(must, k))
            for m in maps:
                with tempfile.NamedTemporaryFile("r") as times:
                    subprocess.run([args.bench, args.index, args.queries, op, str(k), str(n), "1", m, times.name],
                                   stdout=subprocess.DEVNULL, check=True)
                    ours[m] = np.minimum(ours[m], np.loadtxt(times) / 1e6)
        best = min(ALGORITHMS[op], key=lambda a: min(alone[a].sum(), twenty[a].sum()))
        for a in ALGORITHMS[op]:
            print("    " + describe("PISA " + a, summary(alone[a], twenty[a])))
        peers = [("PISA " + best, summary(alone[best], twenty[best]))]
        if musts:
            peers.append(("Tantivy", summary(theirs)))
        print(f"{op.upper()} top-{k}", *(describe(*p) for p in peers), sep="\n  ")
        for m in maps:
            for i, what in enumerate(("plans ready", "from text")):
                mine = summary(ours[m][:, i])
                print("  " + describe("gpuidx, " + what + ("" if m == ALL else f", maps of {int(m) / 1e6:.1f} MB"),
                                      mine), end="")
                for name, times in peers:
                    print(f"; {times[0] / mine[0]:.1f} times {name.split()[0]}, p99 {times[3] / mine[3]:.1f} times",
                          end="")
                print(flush=True)


if __name__ == "__main__":
    main()
