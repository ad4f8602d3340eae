#!/usr/bin/env python3
"""Index the output of a sparse encoder: a matrix of documents by vocabulary, as sentence-transformers' SparseEncoder
gives it (convert a torch tensor with scipy.sparse.csr_matrix). The weights here are random; with a model, replace
encode().

    sparse_encoder.py
"""
import os
import tempfile

import numpy as np
import scipy.sparse

import gpuidx
from gpuidx import Index

SCALE = 50  # a weight w becomes the impact round(w * SCALE)


def encode(n, vocabulary, rng):
    weights = rng.exponential(size=(n, vocabulary)) * (rng.random((n, vocabulary)) < 0.02)
    return scipy.sparse.csr_matrix(weights)


def build(path, matrix, ids) -> Index:
    def documents():
        for row, docno in enumerate(ids):
            part = slice(matrix.indptr[row], matrix.indptr[row + 1])
            impacts = np.rint(matrix.data[part] * SCALE).astype(int)
            yield docno, " ".join(" ".join([str(c)] * n) for c, n in zip(matrix.indices[part], impacts))

    return gpuidx.build(path, documents(), analyzer="whitespace")


def main():
    rng = np.random.default_rng(1)
    documents, queries = encode(2000, 500, rng), encode(5, 500, rng)
    with tempfile.TemporaryDirectory() as work:
        with build(os.path.join(work, "sparse.gx"), documents, ["d%d" % i for i in range(2000)]) as index:
            found = index.search(queries, k=3, scorer="impact")
    rounded = documents.copy()
    rounded.data = np.rint(rounded.data * SCALE)
    exact = np.asarray((queries @ rounded.T).todense())
    for i in range(5):
        best = np.sort(exact[i])[::-1][:3]
        print("query %d: %s, by matrix product %s" % (i, found.scores[i].round(2), best.round(2)))
        assert np.allclose(found.scores[i], best, rtol=1e-5)


main()
