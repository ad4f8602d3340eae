#!/usr/bin/env python3
"""Show how far the engine's scores are from BM25 in double precision, where a query makes that hardest.

    tests/witness/quantum.py [GPUIDX] [--docs N]

Each part of a score is an integer on a scale that the query's total weight sets (engine/api/gpuidx.h, gx_query). A term
that stands in every document weighs little beside rare ones, so few integers are left to it. The program builds a
collection of N documents that all hold the term `common`, one to nine times, with r further terms in one document
each, asks for `common` and those r terms with k 3000, and compares with BM25 as this program computes it. It prints a
table: neighbours that stand in the wrong order, results that are not among the best, different scores, the greatest
relative error of a score. It exits with 1 where a score is off by more than the scale explains: half a unit a term,
and 2^-22 of the score."""
import argparse
import math
import os
import random
import subprocess
import tempfile

K1, B, K = 0.9, 0.4, 3000


def collection(n, rng):
    return [(rng.randint(1, 9), rng.randint(0, 30)) for _ in range(n)]  # occurrences of common, and of other words


def build(gpuidx, folder, docs, rare):
    path = os.path.join(folder, "c.tsv")
    with open(path, "w") as f:
        for i, (tf, other) in enumerate(docs):
            words = ["common"] * tf + ["filler%d" % (i * 31 + j) for j in range(other)]
            f.write("d%d\t%s\n" % (i, " ".join(words + (["rare%d" % i] if i < rare else []))))
    index = os.path.join(folder, "c.gx")
    subprocess.run([gpuidx, "build", "-q", "--force", "--analyzer=whitespace", "-f", "tsv", path, "-o", index],
                   check=True)
    return index


def expected(docs, rare):
    n, lengths = len(docs), [tf + other + (i < rare) for i, (tf, other) in enumerate(docs)]
    avgdl = sum(lengths) / n
    idf = {df: math.log(1 + (n - df + .5) / (df + .5)) for df in (1, n)}
    scores = []
    for i, (tf, _) in enumerate(docs):
        norm = K1 * (1 - B + B * lengths[i] / avgdl)
        scores.append(idf[n] * tf / (tf + norm) + (idf[1] / (1 + norm) if i < rare else 0))
    return scores, idf[n] + rare * idf[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpuidx", nargs="?", default="build/tools/gpuidx")
    parser.add_argument("--docs", type=int, default=20000)
    args = parser.parse_args()
    docs, bad = collection(args.docs, random.Random(1)), 0
    print("| rare terms | neighbours in the wrong order | not among the best %d | different scores (exact) | "
          "greatest relative error |" % K)
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for rare in (0, 1, 5, 20, 200):
            index = build(args.gpuidx, folder, docs, rare)
            query = " ".join(["common"] + ["rare%d" % i for i in range(rare)])
            out = subprocess.run([args.gpuidx, "query", "-q", "--engine=cpu", "-f", "trec", "-k", str(K), index, query],
                                 check=True, capture_output=True, text=True).stdout
            got = [(int(f[2][1:]), float(f[4])) for f in map(str.split, out.splitlines())]
            want, total = expected(docs, rare)
            unit = 2.0 ** (math.floor(math.log2(total)) + 1 - 30)
            order = sorted(range(len(docs)), key=lambda d: (-want[d], d))
            least = want[order[K - 1]]
            close = 1e-12
            inverted = sum(want[a] < want[b] * (1 - close) for (a, _), (b, _) in zip(got, got[1:]))
            missing = sum(want[d] < least * (1 - close) for d, _ in got)
            error = max(abs(s - want[d]) / want[d] for d, s in got)
            bad += sum(abs(s - want[d]) > unit + want[d] * 2 ** -22 for d, s in got)
            print("| %d | %s | %s | %d (%d) | %.1e |" % (rare, format(inverted, ","), format(missing, ","),
                                                         len({s for _, s in got}),
                                                         len({round(want[d], 15) for d, _ in got}), error))
    raise SystemExit("%d scores are off by more than the scale explains" % bad if bad else 0)


main()
