#!/usr/bin/env python3
"""Index the output of a sparse encoder: a matrix of documents by vocabulary, as sentence-transformers' SparseEncoder
gives it, and search it by the queries' matrix. The weights here are random; with a model, encode() is

    model.encode_document(texts)      # a sparse tensor, which gpuidx takes as it is; of queries: model.encode_query
    model.tokenizer.convert_ids_to_tokens(range(len(model.tokenizer)))      # the vocabulary

    sparse_encoder.py
"""
import argparse
import os
import tempfile

import numpy as np
import scipy.sparse

import gpuidx

VOCABULARY = ["token%d" % i for i in range(500)]


def encode(n, rng):
    weights = rng.exponential(size=(n, len(VOCABULARY))) * (rng.random((n, len(VOCABULARY))) < 0.02)
    return scipy.sparse.csr_matrix(weights, dtype=np.float32)


def main():
    rng = np.random.default_rng(1)
    documents, queries = encode(2000, rng), encode(5, rng)
    ids = ["d%d" % i for i in range(2000)]
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "sparse.gx")
        with gpuidx.build(path, ids, vectors=documents, vocabulary=VOCABULARY, bits=12) as index:
            found = index.search(queries, k=3, vocabulary=VOCABULARY)
            unit = index.info.impact_unit
            by_words = index.search({VOCABULARY[c]: w for c, w in zip(queries[0].indices, queries[0].data)}, k=3)
    assert by_words.docids.tolist() == found.docids[0].tolist()
    exact = (queries @ documents.T).toarray()
    for i in range(5):
        best = np.sort(exact[i])[::-1][:3]
        print("query %d: %s, by matrix product %s" % (i, found.scores[i].round(3), best.round(3)))
        assert np.abs(found.scores[i] - best).max() <= unit * queries[i].data.sum()


argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
main()
