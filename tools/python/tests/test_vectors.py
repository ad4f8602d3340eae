"""Learned sparse weights: built from matrices and dicts, searched by matrices and dicts, against exact products."""
import os
import random
import types

import numpy as np
import pytest

import gpuidx
import models

scipy_sparse = pytest.importorskip("scipy.sparse")


def matrix(n, columns, seed, density=0.1, dtype=np.float64):
    m = scipy_sparse.random(n, columns, density, format="csr", random_state=seed, dtype=np.float64)
    m.data += 0.01
    return m.astype(dtype)


def assert_products(found, queries, documents, tolerance):
    """The k best rows of each query are those of the matrix product, within a tolerance for each of its terms."""
    exact = np.asarray((queries @ documents.T).todense())
    k = found.scores.shape[1]
    for i, row in enumerate(exact):
        limit = tolerance * np.abs(queries[i].data).sum() + 1e-6
        best = np.sort(row[row > 0])[::-1][:k]
        n = found.counts[i]
        assert n == len(best)
        assert np.abs(found.scores[i, :n] - best).max(initial=0) <= limit
        assert np.abs(found.scores[i, :n] - row[found.docids[i, :n]]).max(initial=0) <= limit


@pytest.mark.parametrize("bits, scale", [(8, None), (16, None), (12, "collection"), (8, "list")])
def test_a_matrix_is_searched_by_a_matrix(tmp_path, bits, scale):
    documents, queries = matrix(700, 300, 1), matrix(20, 300, 2)
    with gpuidx.build(tmp_path / "v.gx", vectors=documents, bits=bits, scale=scale, threads=2) as ix:
        assert ix.info.impacts and ix.info.n_docs == 700 and ix.info.n_postings == documents.nnz
        assert ix.docnos([0, 699]) == ["0", "699"] and ix.doc_len(3) == documents[3].nnz
        assert (ix.info.impact_unit == 0) == (scale == "list")
        unit = ix.info.impact_unit or documents.data.max() / (2**bits - 1)
        assert unit == pytest.approx(documents.data.max() / (2**bits - 1), rel=1e-2)
        assert_products(ix.search(queries, 10), queries, documents, unit)


def test_all_forms_of_vectors_make_the_same_index(tmp_path):
    documents = matrix(60, 40, 3)
    vocabulary = ["t%d" % c for c in range(40)]
    ids = ["d%d" % i for i in range(60)]
    dicts = [{vocabulary[c]: w for c, w in zip(documents[i].indices, documents[i].data)} for i in range(60)]
    columns = {term: c for c, term in enumerate(vocabulary)}
    halves = documents.copy()
    halves.data /= 2
    twice = scipy_sparse.csr_matrix(documents.shape)  # each weight in two parts, and zeros among them
    twice.data = np.concatenate([np.repeat(halves.data, 2), [0.0]])
    twice.indices = np.concatenate([np.repeat(documents.indices, 2), [5]]).astype(np.int32)
    twice.indptr = documents.indptr * 2
    twice.indptr[-1] += 1
    torch = types.SimpleNamespace  # the shape of a sparse tensor of PyTorch

    def tensor(values):
        return torch(numpy=lambda: values, cpu=lambda: tensor(values), float=lambda: tensor(values.astype(np.float32)))

    sparse = torch(layout="torch.sparse_csr", shape=documents.shape, values=lambda: tensor(documents.data),
                   col_indices=lambda: tensor(documents.indices), crow_indices=lambda: tensor(documents.indptr))
    sparse.detach = lambda: sparse
    forms = [
        (ids, dict(vectors=documents, vocabulary=vocabulary)),
        (ids, dict(vectors=documents, vocabulary=columns)),
        (ids, dict(vectors=documents.tocoo(), vocabulary=np.array(vocabulary))),
        (ids, dict(vectors=scipy_sparse.csr_array(documents), vocabulary=vocabulary)),
        (ids, dict(vectors=documents.toarray(), vocabulary=vocabulary)),
        (ids, dict(vectors=(documents.data, documents.indices, documents.indptr), vocabulary=vocabulary)),
        (ids, dict(vectors=twice, vocabulary=vocabulary)),
        (ids, dict(vectors=sparse, vocabulary=vocabulary)),
        (iter([{"id": i, "title": "x"} for i in ids]), dict(vectors=documents, vocabulary=vocabulary)),
        (ids, dict(vectors=iter(dicts))),
        ([(i, "a text") for i in ids], dict(vectors=[list(d.items()) for d in dicts])),
        ([{"id": i, "vector": d} for i, d in zip(ids, dicts)], dict(vectors="vector")),
        (None, dict(vectors=dict(zip(ids, dicts)))),
    ]
    want = None
    for documents_given, arguments in forms:
        with gpuidx.build(tmp_path / "f.gx", documents_given, force=True, bits=16, **arguments) as ix:
            assert ix.docnos() == ids
            got = [(t, ix.postings(t).docids.tolist(), ix.postings(t).tfs.tolist()) for t in ix.terms()]
            want = want or got
            assert got == want
    with gpuidx.open(tmp_path / "f.gx") as ix:
        queries = matrix(8, 40, 4)
        by_matrix = ix.search(queries, 5, vocabulary=vocabulary)
        by_dicts = ix.search([{vocabulary[c]: float(w) for c, w in zip(queries[i].indices, queries[i].data)}
                              for i in range(8)], 5)
        dense = ix.search(queries.toarray(), 5, vocabulary=columns)
        for other in (by_dicts, dense):
            assert (by_matrix.docids == other.docids).all() and (by_matrix.scores == other.scores).all()


def test_whole_weights_are_kept(tmp_path):
    rng = random.Random(6)
    vectors = [{"w%d" % w: rng.randint(1, 255) for w in rng.sample(range(50), rng.randint(0, 20))} for _ in range(300)]
    with gpuidx.build(tmp_path / "w.gx", vectors=vectors, store_text=True) as ix:
        assert ix.info.impact_unit == 1
        query = {"w1": 2.5, "w2": 0.125, "unheard": 9.0}
        want = sorted((sum(query.get(t, 0) * w for t, w in v.items()) for v in vectors), reverse=True)[:10]
        assert ix.search(query).scores.tolist() == pytest.approx(want, rel=1e-6)
        assert ix.explain(query, ix.search(query).hits()[0].docid)["score"] == pytest.approx(want[0], rel=1e-6)
        assert ix.search("w1 w1").scores[0] == 2 * max(v.get("w1", 0) for v in vectors)


def test_large_matrices_come_in_batches(tmp_path):
    documents = matrix(3000, 2000, 7, 0.03, np.float32)
    with gpuidx.build(tmp_path / "l.gx", [str(i) for i in range(3000)], vectors=documents) as ix:
        assert ix.info.n_postings == documents.nnz > 2 * 65536
        assert [ix.doc_len(i) for i in range(3000)] == np.diff(documents.indptr).tolist()
        assert_products(ix.search(documents[:5], 3), documents[:5], documents, ix.info.impact_unit)


def test_attributes_texts_and_empty_vectors(tmp_path):
    documents = [{"id": "a", "vector": {"x": 1.5}, "text": "first", "title": "A", "year": 1999},
                 {"id": "b", "vector": {}, "year": 2001}, {"id": "c", "vector": [("x", 1), ("y", np.float32(2))]}]
    with gpuidx.build(tmp_path / "a.gx", documents, vectors="vector", store_text=True,
                      attributes={"year": "int"}) as ix:
        assert ix.texts(["a", "b"]) == ["first", ""] and ix.title("a") == "A"
        assert [h.docno for h in ix.search({"x": 1.0})] == ["a", "c"] and ix.doc_len("b") == 0
        assert [h.docno for h in ix.search({"x": 1.0}, filter="year:<2000")] == ["a"]
    with gpuidx.build(tmp_path / "e.gx", vectors=[]) as ix:
        assert len(ix) == 0 and ix.info.impacts
    with gpuidx.build(tmp_path / "f.gx", vectors=scipy_sparse.csr_matrix((4, 9))) as ix:
        assert len(ix) == 4 and ix.info.n_terms == 0
        assert ix.search({"1": 1.0}).counts == 0


def broken(change):
    m = matrix(10, 8, 9, 0.4)
    change(m)
    return m


def at(array, place, value):
    array[place] = value


@pytest.mark.parametrize("vectors, error, words", [
    ([{"x": -1.0}], gpuidx.InputError, "'x' is -1"),
    ([{"y": 1.0}, {"x": float("nan")}], gpuidx.InputError, "'x' is nan"),
    ([{"x": float("inf")}], gpuidx.InputError, "'x' is inf"),
    ([{"x": 1e300}], gpuidx.InputError, "'x' is inf"),
    ([{"x": 0.0}], gpuidx.InputError, "'x' is 0"),
    ([{"": 1.0}], gpuidx.InputError, "empty term"),
    ([{"x" * 70000: 1.0}], gpuidx.InputError, "70000 bytes"),
    ([[("x", 1.0), ("x", 2.0)]], gpuidx.InputError, "twice"),
    ([{"y": 1.0}, {"x": "1.5"}], TypeError, "document 2: the weight '1.5' of 'x'"),
    ([{"x": None}], TypeError, "None"),
    ([{"x": [1.0]}], TypeError, "[1.0]"),
    ([{"y": 1.0}, {7: 1.0}], TypeError, "document 2: the term 7"),
    ([{"y": 1.0}, 7], TypeError, "document 2"),
    ([["x"]], TypeError, "pairs"),
    (7, TypeError, "int"),
    (b"abc", TypeError, "bytes"),
    (np.ones(4), TypeError, "ndarray"),
    (np.ones((2, 2, 2)), TypeError, "ndarray"),
    (np.full((2, 2), -1.0), gpuidx.InputError, "is -1"),
    (np.full((2, 2), np.nan), gpuidx.InputError, "is nan"),
    (scipy_sparse.csr_matrix(np.full((2, 2), np.inf)), gpuidx.InputError, "is inf"),
    (scipy_sparse.csr_matrix(np.full((2, 2), 1j)), TypeError, "complex128"),
    (broken(lambda m: at(m.indptr, 3, -5)), ValueError, "offsets"),
    (broken(lambda m: at(m.indptr, 3, 10**6)), ValueError, "offsets"),
    (broken(lambda m: at(m.indptr, 0, 1)), ValueError, "offsets"),
    (broken(lambda m: at(m.indptr, -1, len(m.data) + 1)), ValueError, "offsets"),
    (broken(lambda m: at(m.indices, 2, 8)), ValueError, "[0, 8)"),
    (broken(lambda m: at(m.indices, 2, -1)), ValueError, "[0, 8)"),
    ((np.ones(3), np.zeros(2, int), np.array([0, 2])), ValueError, "(3,) weights"),
    ((np.ones(2), np.zeros(2), np.array([0, 2])), TypeError, "float64"),
    ((np.array(["a", "b"]), np.zeros(2, int), np.array([0, 2])), TypeError, "<U1"),
    ((np.ones(0), np.zeros(0, int), np.zeros(0, int)), ValueError, "(0,) offsets"),
])
def test_bad_vectors_are_named_and_leave_nothing(tmp_path, vectors, error, words):
    with pytest.raises(error) as caught:
        gpuidx.build(tmp_path / "x.gx", vectors=vectors)
    assert words in str(caught.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("arguments, error, words", [
    (dict(vectors=np.eye(3), bits=3), gpuidx.UsageError, "bits"),
    (dict(vectors=np.eye(3), bits=0), gpuidx.UsageError, "bits"),
    (dict(vectors=np.eye(3), scale="document"), gpuidx.UsageError, "'collection'"),
    (dict(vectors=np.eye(3), vocabulary=["a", "b"]), ValueError, "2 terms"),
    (dict(vectors=np.eye(3), vocabulary={"a": 0, "b": 1}), ValueError, "column 2"),
    (dict(vectors=np.eye(3), vocabulary=["a", "b", 3]), TypeError, "column 2"),
    (dict(vectors=np.eye(3), vocabulary="abc"), TypeError, "vocabulary"),
    (dict(documents=["a", "b"], vectors=np.eye(3)), ValueError, "2 documents"),
    (dict(documents=["a", "b", "c", "d"], vectors=np.eye(3)), ValueError, "3 rows"),
    (dict(documents=["a", "b"], vectors=[{"x": 1}]), ValueError, "1"),
    (dict(documents=["a"], vectors=[{"x": 1}, {"y": 1}]), ValueError, "1"),
    (dict(documents=["a", "a"], vectors=[{"x": 1}, {"y": 1}]), gpuidx.InputError, '"a"'),
    (dict(documents=[{"id": "a"}], vectors="vector"), ValueError, "no vector"),
    (dict(documents=[("a", "b")], vectors="vector"), TypeError, "dict"),
    (dict(vectors="vector"), gpuidx.UsageError, "documents"),
    (dict(documents=[("a", "b")], bits=8), gpuidx.UsageError, "vectors"),
    (dict(documents=[("a", "b")], vocabulary=[]), gpuidx.UsageError, "vectors"),
])
def test_bad_arguments_leave_nothing(tmp_path, arguments, error, words):
    with pytest.raises(error) as caught:
        gpuidx.build(tmp_path / "x.gx", **arguments)
    assert words in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_an_iterator_of_vectors_that_raises_leaves_nothing(tmp_path):
    def vectors():
        for i in range(1000):
            yield {"x": i + 1}
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        gpuidx.build(tmp_path / "x.gx", vectors=vectors())
    assert os.listdir(tmp_path) == []


def test_bad_matrices_of_queries_are_named(tmp_path):
    with gpuidx.build(tmp_path / "q.gx", vectors=np.eye(8)) as ix:
        for change, words in ((lambda m: at(m.indptr, 3, -5), "offsets"), (lambda m: at(m.indptr, 3, 10**6), "offsets"),
                              (lambda m: at(m.indices, 2, 8), "outside"), (lambda m: at(m.data, 2, np.nan), "weight"),
                              (lambda m: at(m.data, 2, -1.0), "weight"), (lambda m: at(m.data, 2, 1e300), "weight")):
            with pytest.raises(ValueError, match=words):
                ix.search(broken(change))
        zero = broken(lambda m: at(m.data, 2, 0.0))
        assert ix.search(zero, 8).counts.sum() == zero.nnz - 1


def test_answers_that_need_not_be_exact(tmp_path):
    documents, queries = matrix(3000, 200, 5), matrix(30, 200, 6)
    gpuidx.build(tmp_path / "v.gx", vectors=documents).close()
    with gpuidx.open(tmp_path / "v.gx", engine="cpu") as ix:
        exact, every = ix.search(queries, 10), ix.search(queries, 3000)
        scores = [dict(zip(every.docids[i].tolist(), every.scores[i].tolist())) for i in range(30)]
        for approximate in (0.5, "0.5", "terms:0.5", "blocks:2", "terms:0.2,blocks:8"):
            found = ix.search(queries, 10, approximate=approximate)
            assert found.scores.sum() < exact.scores.sum()
            assert all(scores[i][d] == s for i in range(30)
                       for d, s in zip(found.docids[i].tolist(), found.scores[i].tolist()) if s)
            again = ix.search(queries, 10, approximate=approximate, threads=3, batch=4)
            assert (again.docids == found.docids).all() and (again.scores == found.scores).all()
        for approximate in (0, "0", "blocks:4000", "terms:0,blocks:16"):
            found = ix.search(queries, 10, approximate=approximate)
            assert (found.docids == exact.docids).all() and (found.scores == exact.scores).all()
        for approximate, words in (("threshold:2", "no threshold any more"), ("blocks:0", "between 1"),
                                   ("alpha:1", "alpha"), ("blocks:2,blocks:3", "twice"), ("", "there is no"),
                                   (1.5, "between 0")):
            with pytest.raises(gpuidx.UsageError, match=words):
                ix.search(queries, 10, approximate=approximate)


@pytest.mark.parametrize("name, parameters", [
    ("bm25", {}), ("bm25", {"k1": 1.5, "b": 0.2}), ("bm25l", {}), ("bm25l", {"delta": 1.0}), ("dph", {}), ("ql", {}),
    ("ql", {"mu": 50}), ("pl2", {}), ("pl2", {"c": 2.5})])
@pytest.mark.parametrize("scale", ["collection", "list"])
def test_an_index_recoded_to_impacts_scores_by_the_formula(tmp_path, name, parameters, scale):
    rng = random.Random(8)
    texts = [rng.choices(["a", "b", "c", "d", "e"], weights=[5, 4, 3, 2, 1], k=rng.randint(1, 30)) for _ in range(80)]
    impacts = name + "".join(":,"[i > 0] + "%s=%r" % item for i, item in enumerate(parameters.items()))
    with gpuidx.build(tmp_path / "t.gx", enumerate(map(" ".join, texts)), analyzer="whitespace") as ix, ix.recode(
            tmp_path / "i.gx", impacts=impacts, bits=16, scale=scale) as scored:
        assert scored.info.impacts and scored.meta["impacts"]["of"] == name and scored.docnos() == ix.docnos()
        for query in (["a"], ["e", "b"], ["c", "c", "d"]):
            found = scored.search(" ".join(query), 80)
            want = models.scores(texts, query, getattr(models, name), **parameters)
            assert dict(zip(found.docids.tolist(), found.scores.tolist())) == pytest.approx(want, abs=1e-3)
        with pytest.raises(gpuidx.UsageError, match="impacts"):
            scored.recode(tmp_path / "n.gx", impacts="dph")
        with pytest.raises(gpuidx.UsageError, match="impact"):
            scored.search("a", scorer="bm25")


def test_bad_models_are_named(tmp_path):
    with gpuidx.build(tmp_path / "t.gx", [("a", "x")]) as ix:
        for arguments, words in ((dict(impacts="bm26"), "bm26"), (dict(impacts="ql:mu=-1"), "mu"),
                                 (dict(impacts="ql:k1=1"), "k1"), (dict(impacts="dph", bits=17), "bits"),
                                 (dict(impacts="dph", scale="x"), "scale"), (dict(bits=8), "impacts")):
            with pytest.raises(ValueError, match=words):
                ix.recode(tmp_path / "n.gx", **arguments)
        with pytest.raises(TypeError):
            ix.recode(tmp_path / "n.gx", impacts=5)
    assert os.listdir(tmp_path) == ["t.gx"]
