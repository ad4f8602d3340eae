#!/usr/bin/env python3
"""A run of bm25-benchmarks' form: a BEIR data set indexed and searched, as JSON in RESULTS/gpuidx/, and a line of their
table.

    on_gpuidx.py FOLDER [--top_k 1000] [--n_threads 1] [--engine cpu] [--k1 1.5 --b 0.75] [--result_dir results]

FOLDER is as BEIR packs a data set: corpus.jsonl (or .gz, .xz), queries.jsonl or queries.tsv, and qrels/test.tsv or
qrels.txt of TREC. Queries are answered one batch for all, as the others' scripts do; the table counts them by the
second of wall time, and documents by the second of indexing, tokenizing included."""
import argparse
import json
import os
import resource
import tempfile
import time

import gpuidx


def lines(folder, *names):
    """The lines of the first of these files that is there, and its name."""
    import bz2
    import gzip
    import lzma
    for name in names:
        for suffix, opened in (("", open), (".gz", gzip.open), (".xz", lzma.open), (".bz2", bz2.open)):
            path = os.path.join(folder, name + suffix)
            if os.path.exists(path):
                with opened(path, "rt", encoding="utf-8") as f:
                    return f.read().splitlines(), name
    raise SystemExit("%s has none of %s" % (folder, ", ".join(names)))


def read(folder):
    corpus = [json.loads(line) for line in lines(folder, "corpus.jsonl")[0]]
    rows, name = lines(folder, "queries.jsonl", "queries.tsv")
    queries = [(q["_id"], q["text"]) for q in map(json.loads, rows)] if name.endswith("jsonl") else \
        [tuple(row.split("\t", 1)) for row in rows]
    rows, name = lines(folder, "qrels/test.tsv", "qrels.txt")
    qrels = {}
    for row in rows[1:] if name.endswith("tsv") else rows:
        words = row.split()
        qrels.setdefault(words[0], {})[words[-2]] = int(words[-1])
    return corpus, [q for q in queries if q[0] in qrels], qrels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--top_k", type=int, default=1000)
    parser.add_argument("--n_threads", type=int, default=1)
    parser.add_argument("--engine", default="cpu", choices=["auto", "cpu", "gpu"])
    parser.add_argument("--k1", type=float, default=1.5)
    parser.add_argument("--b", type=float, default=0.75)
    parser.add_argument("--result_dir", default="results")
    args = parser.parse_args()
    corpus, queries, qrels = read(args.folder)
    dataset = os.path.basename(os.path.normpath(args.folder))
    ids = [d["_id"] for d in corpus]
    texts = [(d.get("title") or "") + " " + d["text"] for d in corpus]
    with tempfile.TemporaryDirectory() as work:
        begin = time.perf_counter()
        index = gpuidx.build(os.path.join(work, "x.gx"), zip(ids, texts), threads=args.n_threads)
        indexing = time.perf_counter() - begin
        asked = [text for _, text in queries]
        index.search(asked[:10], args.top_k, engine=args.engine)
        begin = time.perf_counter()
        found = index.search(asked, args.top_k, engine=args.engine, k1=args.k1, b=args.b,
                             threads=args.n_threads)
        searching = time.perf_counter() - begin
        run = {}
        for (query, _), results in zip(queries, found):
            run[query] = {hit.docno: float(hit.score) for hit in results}
        index.close()
    measured = measures(qrels, run)
    out = {
        "model": "gpuidx", "dataset": dataset, "stemmer": "porter", "tokenizer": "gpuidx", "method": "bm25",
        "stopwords": "lucene", "k1": args.k1, "b": args.b, "date": time.strftime("%Y-%m-%d %H:%M:%S"),
        "n_threads": args.n_threads, "top_k": args.top_k,
        "max_mem_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "stats": {"num_docs": len(ids), "num_queries": len(asked)},
        "timing": {"index": {"elapsed": indexing, "per_second": len(ids) / indexing},
                   "query": {"elapsed": searching, "per_second": len(asked) / searching}},
        "scores": measured,
    }
    folder = os.path.join(args.result_dir, "gpuidx")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "%s-%s.json" % (dataset, os.urandom(8).hex())), "w") as f:
        json.dump(out, f, indent=2)
    print("| %s | %.0f documents/s | %.0f queries/s | nDCG@10 %.4f | recall@%d %.4f |" % (
        dataset, len(ids) / indexing, len(asked) / searching, measured["ndcg"]["10"], args.top_k,
        measured["recall"][str(args.top_k)]))


def measures(qrels, run):
    """nDCG@10 and recall at the depth of the run, as trec_eval has them."""
    from math import log2
    ndcg = recall = 0.0
    depth = 1
    for query, judged in qrels.items():
        ranked = sorted(run.get(query, {}).items(), key=lambda hit: (-hit[1], hit[0]))
        depth = max(depth, len(ranked))
        gain = sum(judged.get(d, 0) / log2(rank + 2) for rank, (d, _) in enumerate(ranked[:10]))
        ideal = sum(g / log2(rank + 2) for rank, g in enumerate(sorted(judged.values(), reverse=True)[:10]))
        relevant = [d for d, g in judged.items() if g > 0]
        ndcg += gain / ideal if ideal else 0
        recall += sum(d in run.get(query, {}) for d in relevant) / len(relevant) if relevant else 0
    return {"ndcg": {"10": ndcg / len(qrels)}, "recall": {str(depth): recall / len(qrels)}}


if __name__ == "__main__":
    main()
