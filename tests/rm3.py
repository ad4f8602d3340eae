#!/usr/bin/env python3
"""Compare `gpuidx query --rm3` with RM3 written out here, in double precision, as gpuidx_advanced.h defines it.

    rm3.py GPUIDX SCIFACT [--engine=cpu|gpu] [--all]    SCIFACT: the folder with corpus.jsonl.xz, queries.tsv

Two collections: SciFact, and a generated one of Vaswani's shape (11,429 abstracts of about 40 words, 93 queries).
Both are tokenised here ([a-z0-9]+ of the lower case) and given to the program with its whitespace analyzer. For every
query the weights of the expanded query and the scores of the best 100 documents must agree to 1e-6 (of the value,
where that is above 1). A query is passed over where the witness has two documents or two terms within 1e-6 at a cut,
since either may stay; of those there may be no more than one in twenty. Exit 1 if anything differs.
"""
import argparse
import collections
import heapq
import itertools
import json
import lzma
import math
import os
import random
import re
import subprocess
import sys
import tempfile

K1, B, TOLERANCE = 0.9, 0.4, 1e-6


def words_of(text):
    return re.findall("[a-z0-9]+", text.lower())


def near(a, b):
    return abs(a - b) <= TOLERANCE * max(1, abs(a))


class Tie(Exception):
    pass


def best(items, k):
    """The k best of (name, value), by falling value and then rising name; Tie where the cut is not clear."""
    ranked = sorted(items, key=lambda x: (-x[1], x[0]))
    if len(ranked) > k and ranked[k - 1][1] != ranked[k][1] and abs(ranked[k - 1][1] / ranked[k][1] - 1) < TOLERANCE:
        raise Tie
    return ranked[:k]


class Witness:
    def __init__(self, docs):
        self.docs = docs
        self.n = len(docs)
        self.avgdl = sum(map(len, docs)) / self.n
        self.postings = collections.defaultdict(list)
        for i, words in enumerate(docs):
            for word, tf in collections.Counter(words).items():
                self.postings[word].append((i, tf))

    def search(self, query):
        """Scores by document of a query {term: weight}."""
        scores = collections.defaultdict(float)
        for term, weight in query.items():
            df = len(self.postings.get(term, ()))
            idf = math.log(1 + (self.n - df + 0.5) / (df + 0.5))
            for i, tf in self.postings.get(term, ()):
                scores[i] += weight * idf * tf / (tf + K1 * (1 - B + B * len(self.docs[i]) / self.avgdl))
        return scores

    def expand(self, words, fb_docs, fb_terms, weight):
        model = collections.defaultdict(float)
        for i, score in best(self.search(collections.Counter(words)).items(), fb_docs):
            tfs = collections.Counter(w for w in self.docs[i] if re.fullmatch("[a-z0-9]{2,20}", w))
            tfs = best(((w, tf) for w, tf in tfs.items() if 10 * len(self.postings[w]) <= self.n), fb_terms)
            total = sum(tf for _, tf in tfs)
            for w, tf in tfs:
                model[w] += tf / total * score
        model = best(model.items(), fb_terms)
        total = sum(value for _, value in model)
        out = collections.defaultdict(float)
        for w in words:
            out[w] += weight / len(words)
        for w, value in model:
            out[w] += (1 - weight) * value / total
        return {w: value for w, value in out.items() if value > 0}


def scifact(folder):
    with lzma.open(os.path.join(folder, "corpus.jsonl.xz"), "rt") as f:
        docs = [(words_of(d["title"]), words_of(d["text"])) for d in map(json.loads, f)]
    with open(os.path.join(folder, "queries.tsv")) as f:
        return docs, [words_of(line.split("\t")[1]) for line in f]


def like_vaswani(seed=1):
    """Words by Zipf's law; a document keeps to one of 300 topics for half of its words."""
    rng = random.Random(seed)
    vocabulary = [f"w{i}" for i in range(8000)]
    weights = list(itertools.accumulate(1 / (i + 2.7) for i in range(8000)))
    topics = [rng.sample(vocabulary[50:], 40) for _ in range(300)]

    def text(topic, n):
        return [rng.choice(topic) if rng.random() < .5 else rng.choices(vocabulary, cum_weights=weights)[0]
                for _ in range(n)]

    docs = [([], text(rng.choice(topics), max(3, int(rng.gauss(42, 20))))) for _ in range(11429)]
    return docs, [text(rng.choice(topics), rng.randint(3, 12)) for _ in range(93)]


def ask(gpuidx, index, queries, rm3, engine):
    text = "".join(f"{i}\t{' '.join(words)}\n" for i, words in enumerate(queries))
    out = subprocess.run([gpuidx, "query", index, "-", "--format=jsonl", "-k", "100", "--snippets=off", f"--rm3={rm3}",
                          f"--engine={engine}"], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def compare(name, witness, words, rm3, answer):
    fb_docs, fb_terms, weight = (float(x) if "." in x else int(x) for x in rm3.split(","))
    query = witness.expand(words, fb_docs, fb_terms, weight)
    given = {t["term"]: t["weight"] for t in answer["expanded"]}
    wrong = []
    if set(given) != set(query):
        wrong.append(f"terms {sorted(set(given) ^ set(query))}")
    wrong += [f"weight of {t}: {given[t]} against {w}" for t, w in query.items() if t in given
              and not near(w, given[t])]
    scores = witness.search(query)
    ranked = heapq.nlargest(100, scores.values())
    if len(answer["hits"]) != len(ranked):
        wrong.append(f"{len(answer['hits'])} hits against {len(ranked)}")
    for hit, expected in zip(answer["hits"], ranked):
        if not near(expected, hit["score"]) or not near(scores[hit["docid"]], hit["score"]):
            wrong.append(f"rank {hit['rank']}: {hit['score']} against {expected}, {scores[hit['docid']]}")
    for text in wrong[:5]:
        print(f"{name}, --rm3={rm3}, query {answer['qid']}: {text}")
    return not wrong


def check(gpuidx, folder, name, collection, engine, whole):
    docs, queries = collection
    corpus, index = os.path.join(folder, "corpus.jsonl"), os.path.join(folder, "corpus.gx")
    with open(corpus, "w") as f:
        for i, (title, text) in enumerate(docs):
            f.write(json.dumps({"id": str(i), "title": " ".join(title), "text": " ".join(text)}) + "\n")
    subprocess.run([gpuidx, "build", "-q", corpus, "-o", index, "--force", "--analyzer=whitespace", "--store=text"],
                   check=True)
    witness = Witness([title + text for title, text in docs])
    counts = collections.Counter()
    for rm3, n in (("10,10,0.5", 100), ("5,40,0.3", 30), ("1,1,0", 30), ("20,5,1", 30), ("1000,1000,0.9", 2)):
        n = len(queries) if whole else n
        for words, answer in zip(queries, ask(gpuidx, index, queries[:n], rm3, engine)):
            try:
                counts["equal" if compare(name, witness, words, rm3, answer) else "different"] += 1
            except Tie:
                counts["passed over"] += 1
    print(f"{name}: {dict(counts)}")
    return counts["different"] == 0 and counts["equal"] >= 19 * counts["passed over"] and counts["equal"] > 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("gpuidx")
    p.add_argument("scifact")
    p.add_argument("--engine", default="cpu")
    p.add_argument("--all", action="store_true", help="every query by every setting")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = [check(args.gpuidx, folder, name, collection, args.engine, args.all)
                   for name, collection in (("SciFact", scifact(args.scifact)), ("like Vaswani", like_vaswani()))]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
