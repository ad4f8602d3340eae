#!/usr/bin/env python3
"""Compare the Python package with bm25s, tantivy and PISA on the same texts and queries.

    pip install bm25s numba tantivy pyterrier_pisa
    taskset -c 0 tests/witness/python_peers.py DOCS.tsv QUERIES [--documents N] [--queries N]

DOCS.tsv has an id first and the text behind it (other columns are joined), QUERIES a query a line (id:text, id TAB text
or text). Each engine analyses text in its own way:

    gpuidx    its English analyzer: stop words, Porter
    bm25s     its English stop words, no stemmer; numba's backend where it is installed
    tantivy   its default tokenizer: no stop words, no stemmer, which gives it more postings
    PISA      Terrier's stop words, Porter's second stemmer; SIMD-BP, block-max WAND

All run on the core that the command is bound to, and answer in the way that their documentation shows. The table has
seconds to build, without reading the file, and queries per second for the best 10 and 1,000. Times are of the processor
(child processes and all threads included), so that other work on the machine counts little; a rate is the best of RUNS.
"""
import argparse
import contextlib
import importlib.metadata
import os
import re
import resource
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gpuidx

RUNS = 3
KS = (10, 1000)


def processor_time():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def timed(run):
    """What run returns, and the seconds of processor time that it took."""
    begin = processor_time()
    out = run()
    return out, processor_time() - begin


def rate(n, run):
    """Queries per second; run answers n of them."""
    return n / min(timed(run)[1] for _ in range(RUNS))


@contextlib.contextmanager
def quiet():
    """Without what native code prints."""
    with open(os.devnull, "w") as null:
        kept = os.dup(1), os.dup(2)
        os.dup2(null.fileno(), 1)
        os.dup2(null.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)


def with_gpuidx(ids, texts, queries, folder):
    index, build = timed(lambda: gpuidx.build(os.path.join(folder, "x.gx"), zip(ids, texts)))
    with index:
        index.search(queries[:100], engine="cpu")
        return "gpuidx", build, [rate(len(queries), lambda: index.search(queries, k, engine="cpu")) for k in KS]


def with_bm25s(ids, texts, queries, folder):
    import bm25s

    try:
        import numba  # noqa: F401

        backend = "numba"
    except ImportError:
        backend = "numpy"

    def make():
        tokens = bm25s.tokenize(texts, stopwords="en", show_progress=False)
        retriever = bm25s.BM25(method="lucene", k1=0.9, b=0.4, backend=backend)
        retriever.index(tokens, show_progress=False)
        return retriever

    def ask(k):
        tokens = bm25s.tokenize(queries, stopwords="en", show_progress=False)
        return retriever.retrieve(tokens, k=k, show_progress=False, n_threads=1)

    retriever, build = timed(make)
    return "bm25s %s (%s)" % (bm25s.__version__, backend), build, [rate(len(queries), lambda: ask(k)) for k in KS]


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
    rates = [rate(len(queries), lambda: ask(k)) for k in KS]
    return "tantivy " + importlib.metadata.version("tantivy"), build, rates


def with_pisa(ids, texts, queries, folder):
    import pandas
    import pyterrier_pisa

    def make():
        index = pyterrier_pisa.PisaIndex(os.path.join(folder, "x"), text_field="text", threads=1)
        index.index({"docno": i, "text": t} for i, t in zip(ids, texts))
        index.bm25()  # packs the postings for this scorer
        return index

    with quiet():
        index, build = timed(make)
        frame = pandas.DataFrame({"qid": [str(i) for i in range(len(queries))], "query": queries})
        rates = []
        for k in KS:
            retriever = index.bm25(num_results=k, threads=1)
            retriever(frame[:10])
            rates.append(rate(len(queries), lambda: retriever(frame)))
    return "PISA (pyterrier_pisa %s)" % pyterrier_pisa.__version__, build, rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("docs")
    parser.add_argument("log", metavar="queries")
    parser.add_argument("--documents", type=int, default=200000)
    parser.add_argument("--queries", type=int, default=1000)
    args = parser.parse_args()
    ids, texts = [], []
    with open(args.docs, encoding="utf-8", errors="replace") as f:
        for line in f:
            docno, _, text = line.rstrip("\n").partition("\t")
            ids.append(docno)
            texts.append(text.replace("\t", " "))
            if len(ids) == args.documents:
                break
    with open(args.log, encoding="utf-8", errors="replace") as f:
        queries = [re.sub(r"^\S+?[\t:]", "", line).strip() for line in f]
    queries = [q for q in queries if re.search(r"\w", q)][:args.queries]
    print("%d documents, %d queries" % (len(ids), len(queries)))
    print("| engine | build, s | top 10, queries/s | top 1,000, queries/s |\n| --- | --- | --- | --- |")
    for engine in (with_gpuidx, with_bm25s, with_tantivy, with_pisa):
        with tempfile.TemporaryDirectory() as folder:
            try:
                name, build, rates = engine(ids, texts, queries, folder)
            except ImportError as e:
                print("| %s | not installed: %s | | |" % (engine.__name__[5:], e))
                continue
        print("| %s | %.1f | %s | %s |" % (name, build, *(format(round(r), ",") for r in rates)), flush=True)


main()
