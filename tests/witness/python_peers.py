#!/usr/bin/env python3
"""Compare the Python package with bm25s and tantivy (pip install bm25s tantivy) on the same texts and queries.

    taskset -c 0 tests/witness/python_peers.py DOCS.tsv QUERIES [--documents N] [--queries N]

DOCS.tsv has an id first and the text behind it (other columns are joined), QUERIES a query a line (id:text, id TAB
text or text). Each engine analyses text in its own way: gpuidx with its English analyzer (stop words, Porter), bm25s
with its English stop words and no stemmer, tantivy with its default tokenizer (no stop words, no stemmer), which
gives it more postings. All run on the core that the command is bound to. The table has seconds to build, without
reading the file, and queries per second for the best 10 and 1,000; tantivy and bm25s answer in the way that their
documentation shows.
"""
import argparse
import os
import re
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gpuidx


def timed(run):
    begin = time.perf_counter()
    out = run()
    return out, time.perf_counter() - begin


def with_gpuidx(ids, texts, queries, folder):
    index, build = timed(lambda: gpuidx.build(os.path.join(folder, "x.gx"), zip(ids, texts)))
    with index:
        index.search(queries[:100], engine="cpu")
        rates = [len(queries) / min(timed(lambda: index.search(queries, k, engine="cpu"))[1] for _ in range(3))
                 for k in (10, 1000)]
    return "gpuidx", build, rates


def with_bm25s(ids, texts, queries, folder):
    import bm25s

    def make():
        tokens = bm25s.tokenize(texts, stopwords="en", show_progress=False)
        retriever = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
        retriever.index(tokens, show_progress=False)
        return retriever

    def ask(k):
        tokens = bm25s.tokenize(queries, stopwords="en", show_progress=False)
        return retriever.retrieve(tokens, k=k, show_progress=False, n_threads=1)

    retriever, build = timed(make)
    return "bm25s " + bm25s.__version__, build, [len(queries) / timed(lambda: ask(k))[1] for k in (10, 1000)]


def with_tantivy(ids, texts, queries, folder):
    import tantivy

    def make():
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("id", stored=True, tokenizer_name="raw")
        schema.add_text_field("text")
        index = tantivy.Index(schema.build(), path=folder)
        writer = index.writer(heap_size=512 << 20, num_threads=1)
        for docno, text in zip(ids, texts):
            writer.add_document(tantivy.Document(id=docno, text=text))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        return index

    def ask(k):
        for q in queries:
            searcher.search(index.parse_query(re.sub(r"\W+", " ", q).lower(), ["text"]), k)

    index, build = timed(make)
    searcher = index.searcher()
    rates = [len(queries) / timed(lambda: ask(k))[1] for k in (10, 1000)]
    return "tantivy " + getattr(tantivy, "__version__", ""), build, rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("docs")
    parser.add_argument("queries")
    parser.add_argument("--documents", type=int, default=200000)
    parser.add_argument("--n-queries", type=int, default=2000)
    args = parser.parse_args()
    ids, texts = [], []
    with open(args.docs, encoding="utf-8", errors="replace") as f:
        for line in f:
            docno, _, text = line.rstrip("\n").partition("\t")
            ids.append(docno)
            texts.append(text.replace("\t", " "))
            if len(ids) == args.documents:
                break
    with open(args.queries, encoding="utf-8", errors="replace") as f:
        queries = [re.sub(r"^\S+?[\t:]", "", line).strip() for line in f]
    queries = [q for q in queries if q][:args.n_queries]
    print("%d documents, %d queries" % (len(ids), len(queries)))
    print("| engine | build, s | top 10, queries/s | top 1,000, queries/s |\n| --- | --- | --- | --- |")
    for engine in (with_gpuidx, with_bm25s, with_tantivy):
        with tempfile.TemporaryDirectory() as folder:
            try:
                name, build, rates = engine(ids, texts, queries, folder)
            except ImportError as e:
                print("| %s | not installed: %s | | |" % (engine.__name__[5:], e))
                continue
        print("| %s | %.1f | %.0f | %.0f |" % (name, build, *rates), flush=True)


main()
