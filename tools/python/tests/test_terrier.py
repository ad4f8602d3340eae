"""The package under PyTerrier."""
import json
import lzma
import os

import pytest

pt = pytest.importorskip("pyterrier")
pandas = pytest.importorskip("pandas")

import gpuidx  # noqa: E402
from gpuidx.terrier import GpuidxIndex  # noqa: E402

DATA = os.environ.get("GX_TEST_DATA", os.path.join(os.path.dirname(__file__), "..", "..", "..", "tests", "data"))
DOCS = [{"docno": "d1", "text": "an inverted index", "title": "lists"}, {"docno": "d2", "text": "compression of lists"},
        {"docno": "d3", "text": "ranked retrieval with an index"}]
QUERIES = pandas.DataFrame({"qid": ["1", "2", "3"], "query": ["index lists", "compression", "unheard"]})


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return GpuidxIndex(tmp_path_factory.mktemp("pt") / "x.gpuidx").index(DOCS)


def test_a_retriever_finds_what_the_index_finds(index):
    got = index.bm25(num_results=2)(QUERIES)
    want = index.core.search(list(QUERIES["query"]), 2).to_pandas()
    assert got["docno"].tolist() == want["docno"].tolist() and got["score"].tolist() == want["score"].tolist()
    assert got["rank"].tolist() == (want["rank"] - 1).tolist() and set(got["qid"]) == {"1", "2"}
    assert got["query"].tolist()[0] == "index lists"


def test_weighted_terms(index):
    got = index.bm25()(pandas.DataFrame({"qid": ["1"], "query_toks": [{"index": 2.0, "list": 1.0}]}))
    want = index.core.search({"index": 2.0, "list": 1.0}).to_pandas()
    assert got["docno"].tolist() == want["docno"].tolist() and got["score"].tolist() == want["score"].tolist()


def test_a_rank_cutoff_is_fused(index):
    fused = (index.bm25() % 1).compile()
    assert "gpuidx" in repr(fused) and "%" not in repr(fused)
    assert fused(QUERIES)["docno"].tolist() == (index.bm25() % 1)(QUERIES)["docno"].tolist()
    assert index.bm25(num_results=5).fuse_rank_cutoff(9).num_results == 5


def test_given_documents_are_scored(index):
    found = index.bm25()(QUERIES)
    again = index.text_scorer()(found[["qid", "query", "docno"]])
    assert sorted(again["score"]) == pytest.approx(sorted(found["score"]))


def test_learned_weights(tmp_path):
    weights = [{"docno": "a", "toks": {"x": 1.5, "y": 0.25}}, {"docno": "b", "toks": {"y": 2.0}}]
    index = GpuidxIndex(tmp_path / "w").toks_indexer(scale=4).index(weights)
    got = index.quantized()(pandas.DataFrame({"qid": ["1"], "query_toks": [{"x": 1.0, "y": 0.5}]}))
    assert dict(zip(got["docno"], got["score"])) == {"a": pytest.approx(6 + 0.5), "b": pytest.approx(4)}


def test_an_artifact_is_loaded_by_its_folder(index):
    loaded = pt.Artifact.load(str(index.path))
    assert isinstance(loaded, GpuidxIndex) and loaded.num_docs() == 3
    assert gpuidx.open(os.path.join(str(index.path), "index.gx")).docnos() == ["d1", "d2", "d3"]


def test_an_artifact_travels_as_a_package(index, tmp_path):
    package = index.build_package(str(tmp_path / "x.tar.lz4"))
    import tarfile

    from lz4.frame import LZ4FrameFile

    with tarfile.open(fileobj=LZ4FrameFile(package), mode="r") as tar:
        assert sorted(tar.getnames()) == ["index.gx", "pt_meta.json"]


def test_scifact_in_an_experiment(tmp_path):
    from pyterrier.measures import nDCG

    folder = os.path.join(DATA, "scifact")
    queries = pandas.read_csv(os.path.join(folder, "queries.tsv"), sep="\t", names=["qid", "query"], dtype=str,
                              quoting=3)
    qrels = pandas.read_csv(os.path.join(folder, "qrels.txt"), sep=r"\s+", names=["qid", "q0", "docno", "label"],
                            dtype={"qid": str, "docno": str, "label": int})[["qid", "docno", "label"]]
    index = GpuidxIndex(tmp_path / "s").index(corpus(folder))
    table = pt.Experiment([index.bm25()], queries, qrels, [nDCG @ 10])
    assert round(float(table["nDCG@10"].iloc[0]), 4) == 0.6777


def corpus(folder):
    with lzma.open(os.path.join(folder, "corpus.jsonl.xz"), "rt", encoding="utf-8") as f:
        for line in f:
            d = json.loads(line)
            yield {"docno": d.get("_id") or d["id"], "text": ((d.get("title") or "") + " " + d["text"]).strip()}


TestBM25 = pytest.importorskip("pyterrier.testing").transformer_test_class(
    lambda: GpuidxIndex("unused").bm25())
