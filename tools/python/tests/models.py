"""Scores of a posting by the models that an index can be recoded to, written from their papers.

tf: in the document, dl: the document's length, cf and df: occurrences of the term and documents with it, n: documents,
tokens: occurrences of all terms."""
import math


def bm25(tf, dl, cf, df, n, tokens, k1=0.9, b=0.4):
    return math.log(1 + (n - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * dl * n / tokens))


def bm25l(tf, dl, cf, df, n, tokens, k1=1.2, b=0.75, delta=0.5):
    c = tf / (1 - b + b * dl * n / tokens) + delta
    return math.log((n + 1) / (df + 0.5)) * (k1 + 1) * c / (k1 + c)


def dph(tf, dl, cf, df, n, tokens):
    f = tf / dl if tf < dl else 0.99999
    return (1 - f) ** 2 / (tf + 1) * (tf * math.log2(tf * (tokens / n) / dl * n / cf)
                                      + 0.5 * math.log2(2 * math.pi * tf * (1 - f)))


def ql(tf, dl, cf, df, n, tokens, mu=1000):
    return math.log(1 + tf / (mu * cf / tokens)) + math.log(mu / (dl + mu))


def pl2(tf, dl, cf, df, n, tokens, c=1):
    t, rate = tf * math.log2(1 + c * (tokens / n) / dl), cf / n
    return (t * math.log2(t / rate) + (rate - t) * math.log2(math.e) + 0.5 * math.log2(2 * math.pi * t)) / (t + 1)


def scores(texts, query, model, **parameters):
    """{number of the text: score} of the texts with a term of the query. texts: lists of words; a score of a posting
    below 0 counts as 0, and a word that the query repeats counts again."""
    n, tokens = len(texts), sum(map(len, texts))
    found = {}
    for word in query:
        tfs = {i: text.count(word) for i, text in enumerate(texts) if word in text}
        for i, tf in tfs.items():
            score = model(tf, len(texts[i]), sum(tfs.values()), len(tfs), n, tokens, **parameters)
            found[i] = found.get(i, 0.0) + max(0.0, score)
    return found
