#!/usr/bin/env python3
"""Checks `gpuidx recode --impacts` against the models' formulas, written from their papers, without the program's code.

    impacts.py GPUIDX

Random documents are indexed, recoded by every model with drawn parameters, bits and scales, and each term is searched.
The score of every document must be the formula's, rounded to a multiple of the unit, which index/FORMAT.md defines.
"""
import collections
import json
import math
import random
import subprocess
import sys
import tempfile

GPUIDX = sys.argv[1]
LOG2E = 1 / math.log(2)


def bm25(x, k1=0.9, b=0.4):
    return math.log(1 + (x.N - x.df + 0.5) / (x.df + 0.5)) * x.tf / (x.tf + k1 * (1 - b + b * x.dl / x.avgdl))


def bm25l(x, k1=1.2, b=0.75, delta=0.5):
    c = x.tf / (1 - b + b * x.dl / x.avgdl)
    return math.log((x.N + 1) / (x.df + 0.5)) * (k1 + 1) * (c + delta) / (k1 + c + delta)


def dph(x):
    f = 0.99999 if x.tf == x.dl else x.tf / x.dl
    norm = (1 - f) ** 2 / (x.tf + 1)
    information = x.tf * math.log((x.tf * x.avgdl / x.dl) * (x.N / x.cf), 2)
    return norm * (information + 0.5 * math.log(2 * math.pi * x.tf * (1 - f), 2))


def ql(x, mu=1000.0):
    return math.log(1 + x.tf / (mu * (x.cf / x.C))) + math.log(mu / (x.dl + mu))


def pl2(x, c=1.0):
    tfn = x.tf * math.log(1 + c * x.avgdl / x.dl, 2)
    lam = x.cf / x.N
    return (tfn * math.log(1 / lam, 2) + lam * LOG2E + 0.5 * math.log(2 * math.pi * tfn, 2)
            + tfn * (math.log(tfn, 2) - LOG2E)) / (tfn + 1)


MODELS = {"bm25": (bm25, {"k1": (0, 3), "b": (0, 1)}), "bm25l": (bm25l, {"k1": (0.1, 3), "b": (0, 1), "delta": (0, 2)}),
          "dph": (dph, {}), "ql": (ql, {"mu": (1, 3000)}), "pl2": (pl2, {"c": (0.1, 20)})}


def run(*args):
    return subprocess.run([GPUIDX, *args], check=True, capture_output=True, text=True).stdout


def unit_of(scores, bits):
    levels, most = 2**bits - 1, max(scores)
    if most <= 0 or (most <= levels and all(s == int(s) for s in scores)):
        return 1.0
    step = 2.0 ** (math.frexp(most / levels)[1] - 11)
    return math.ceil(most / levels / step) * step


def check(folder, docs, name, with_parameters):
    model, ranges = MODELS[name]
    parameters = {p: round(random.uniform(*ends), 3) for p, ends in ranges.items()} if with_parameters else {}
    bits, per_list = random.choice([4, 8, 12, 16]), random.random() < 0.4
    words = name + (":" + ",".join(f"{p}={v}" for p, v in parameters.items()) if parameters else "")
    out = folder + "/impacts.gx"
    run("recode", "-q", folder + "/tfs.gx", "-o", out, "--force", "--impacts", words, f"--bits={bits}",
        "--scale=" + ("list" if per_list else "collection"))
    meta = json.loads(run("info", "--json", out))["meta"]["impacts"]
    assert meta["of"] == name and meta["bits"] == bits and all(abs(meta[p] - v) < 1e-9 for p, v in parameters.items())
    postings = collections.defaultdict(dict)
    for d, doc in enumerate(docs):
        for term, tf in collections.Counter(doc).items():
            postings[term][d] = tf
    lens = [len(doc) for doc in docs]
    total = sum(lens)
    scores = {}
    for term, tfs in postings.items():
        facts = dict(N=len(docs), C=total, avgdl=total / len(docs), df=len(tfs), cf=sum(tfs.values()))
        row = {d: model(Facts(tf=tf, dl=lens[d], **facts), **parameters) for d, tf in tfs.items()}
        scores[term] = {d: max(0.0, s) for d, s in row.items()}
    whole = unit_of([s for row in scores.values() for s in row.values()], bits)
    with open(folder + "/terms.tsv", "w") as f:
        for term in scores:
            print(term, term, sep="\t", file=f)
    run("replay", "-q", out, folder + "/terms.tsv", "-f", "tsv", "-k", str(len(docs)), "--engine=cpu",
        "--run", folder + "/run", "--force")
    found = collections.defaultdict(dict)
    with open(folder + "/run") as f:
        for line in f:
            term, _, doc, _, score, _ = line.split()
            found[term][int(doc[1:])] = float(score)
    off = 0
    for term, row in scores.items():
        assert found[term].keys() == row.keys(), (words, term)
        unit = unit_of(row.values(), bits) if per_list else whole
        for d, s in row.items():
            impact = found[term][d] / unit
            assert abs(impact - round(impact)) < 0.01, (words, term, d)
            off += round(impact) != max(1, round(s / unit))
            assert abs(round(impact) - max(1, s / unit)) < 0.5001 or s < unit, (words, term, d, s, impact)
    assert off <= 2, (words, off)  # where s / unit lies in the middle, to the last bit
    return words


Facts = collections.namedtuple("Facts", "tf dl N C avgdl df cf")
random.seed(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
with tempfile.TemporaryDirectory() as folder:
    checked = []
    for case in range(4):
        vocabulary = [f"w{i}" for i in range(random.choice([5, 80]))]
        weights = [1 / (i + 1) for i in range(len(vocabulary))]
        docs = [random.choices(vocabulary, weights, k=random.choice([1, 3, 30, 200]))
                for _ in range(random.choice([3, 150, 400]))]
        with open(folder + "/corpus.tsv", "w") as f:
            for d, doc in enumerate(docs):
                print(f"d{d}", " ".join(doc), sep="\t", file=f)
        run("build", "-q", folder + "/corpus.tsv", "-f", "tsv", "--analyzer=whitespace",
            "-o", folder + "/tfs.gx", "--force")
        checked += [check(folder, docs, name, case % 2 == 1) for name in MODELS]
    print("scores are those of", ", ".join(checked))
