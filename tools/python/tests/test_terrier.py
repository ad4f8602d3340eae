"""The package under PyTerrier."""
import functools
import json
import lzma
import os
import random

import pytest

pt = pytest.importorskip("pyterrier")
pandas = pytest.importorskip("pandas")

import gpuidx  # noqa: E402
import models  # noqa: E402
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


def test_pairs_of_words(tmp_path):
    index = GpuidxIndex(tmp_path / "x.gpuidx", positions=True).index(DOCS)
    got = index.sdm((.8, .15, .05))(QUERIES)
    want = index.core.search(list(QUERIES["query"]), 1000, sdm=(.8, .15, .05)).to_pandas()
    assert got["docno"].tolist() == want["docno"].tolist() and got["score"].tolist() == want["score"].tolist()
    assert len(index.text_scorer(sdm=True)(got[["qid", "query", "docno"]])) == len(got)


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


def test_a_cutoff_of_0_finds_nothing(index):
    for cutoff in (0, -1):
        for pipeline in (index.bm25() % cutoff, (index.bm25() % cutoff).compile(), (index.dph() % cutoff).compile()):
            found = pipeline(QUERIES)
            assert len(found) == 0 and {"qid", "docno", "score", "rank"} <= set(found.columns)


def test_the_scorer_takes_numbers_for_docnos(tmp_path):
    """Readers of CSV make numbers of docnos; they are not docids."""
    index = GpuidxIndex(tmp_path / "n").index([{"docno": "2", "text": "pear"}, {"docno": 0, "text": "apple"},
                                               {"docno": "1", "text": "apple pie"}])
    frame = pandas.DataFrame({"qid": ["1"] * 3, "query": ["apple"] * 3, "docno": ["0", "1", "2"]})
    want = index.text_scorer()(frame)["score"].tolist()
    assert want[0] > want[1] > want[2] == 0
    for kind in ("int64", "uint8", "float64", "Int64", "object", "category"):
        for docnos in ([0, 1, 2], ["0", "1", "2"]):
            given = frame.assign(docno=pandas.Series(docnos).astype(kind))
            assert index.text_scorer()(given)["score"].tolist() == want
    with pytest.raises(KeyError, match="'7'"):
        index.text_scorer()(frame.assign(docno=[0, 1, 7]))
    with pytest.raises(TypeError, match="document 3 has no id"):
        index.text_scorer()(frame.assign(docno=[0, 1, None]))


def test_the_scorer_scores_each_row_by_its_own_query(index):
    rows = [("1", "index", "d1"), ("1", "lists", "d1"), ("2", "index", "d3"), ("1", "compression", "d2"),
            ("2", "lists", "d2"), ("3", "index", "d2"), ("3", "index", "d1"), ("1", "index", "d2")]
    frame = pandas.DataFrame(rows, columns=["qid", "query", "docno"])
    frame.index = [5] * len(rows)
    got = index.text_scorer()(frame)
    for (_, query, docno), score in zip(rows, got["score"]):
        assert score == index.core.score(query, [docno])[0], (query, docno)
    assert got["docno"].tolist() == [docno for _, _, docno in rows] and (got["score"] > 0).sum() == 6


def test_a_frame_is_indexed(tmp_path):
    frame = pandas.DataFrame({"docno": ["a", "b"], "text": ["apple", "pear"], "title": ["x", None]})
    assert GpuidxIndex(tmp_path / "f").index(frame).core.docnos() == ["a", "b"]


def test_a_relative_path_is_pickled(tmp_path, monkeypatch):
    import pickle

    monkeypatch.chdir(tmp_path)
    index = GpuidxIndex("r").index(DOCS)
    pickled = [pickle.dumps(index.bm25()), pickle.dumps(GpuidxIndex("r").bm25())]
    monkeypatch.chdir("/")
    for one in pickled:
        assert pickle.loads(one)(QUERIES)["docno"].tolist() == index.bm25()(QUERIES)["docno"].tolist()


def test_learned_weights(tmp_path):
    weights = [{"docno": "a", "toks": {"x": 1.5, "y": 0.25, "z": 0.01}}, {"docno": "b", "toks": {"y": 2.0}}]
    queries = pandas.DataFrame({"qid": ["1"], "query_toks": [{"x": 1.0, "y": 0.5, "z": 1.0}]})
    scaled = GpuidxIndex(tmp_path / "w").toks_indexer(scale=4).index(weights)
    got = scaled.quantized()(queries)
    assert dict(zip(got["docno"], got["score"])) == {"a": pytest.approx(6 + 0.5), "b": pytest.approx(4)}
    assert scaled.core.df("z") == 0
    index = GpuidxIndex(tmp_path / "v").toks_indexer(bits=16).index(weights)
    got = index.quantized()(queries)
    assert dict(zip(got["docno"], got["score"])) == {"a": pytest.approx(1.5 + 0.125 + 0.01, abs=1e-4),
                                                     "b": pytest.approx(1, abs=1e-4)}
    with pytest.raises(gpuidx.InputError, match="-1"):
        GpuidxIndex(tmp_path / "n").toks_indexer().index([{"docno": "a", "toks": {"x": -1.0}}])


def random_texts(n=120, seed=3):
    rng = random.Random(seed)
    words = ["w%d" % i for i in range(30)]
    return [{"docno": "d%d" % i, "text": " ".join(rng.choices(words, weights=range(30, 0, -1), k=rng.randint(1, 40)))}
            for i in range(n)]


@pytest.mark.parametrize("of_index, model, parameters", [
    (lambda index: index.dph(), models.dph, {}),
    (lambda index: index.ql(), models.ql, {}),
    (lambda index: index.ql(mu=25), models.ql, {"mu": 25}),
    (lambda index: index.pl2(), models.pl2, {}),
    (lambda index: index.pl2(c=7.5), models.pl2, {"c": 7.5}),
    (lambda index: index.recode(str(index.path) + "-dph", impacts="dph", bits=16).quantized(), models.dph, {}),
], ids=["dph", "ql", "ql:mu", "pl2", "pl2:c", "recoded"])
def test_models_score_by_their_formulas(tmp_path, of_index, model, parameters):
    texts = random_texts()
    index = GpuidxIndex(tmp_path / "m", analyzer="whitespace").index(texts)
    queries = pandas.DataFrame({"qid": ["1", "2", "3"], "query": ["w0 w7", "w29", "w3 w12 w12 w25 unheard"]})
    words = [d["text"].split() for d in texts]
    retriever = of_index(index)
    for _ in range(2):  # the second time from what the first has made
        got = retriever(queries)
        for qid, query in zip(queries["qid"], queries["query"]):
            want = models.scores(words, query.split(), model, **parameters)
            found = dict(zip(got[got["qid"] == qid]["docid"], got[got["qid"] == qid]["score"]))
            assert found == pytest.approx(want, abs=2e-3) and len(want) > 5
    assert (retriever % 2)(queries).groupby("qid").size().tolist() == [2, 2, 2]


def test_models_follow_the_index(tmp_path):
    """An index that is built anew is recoded anew, and an index of impacts is refused."""
    import pickle

    index = GpuidxIndex(tmp_path / "f", overwrite=True).index(DOCS)
    retriever = index.dph()
    assert set(retriever(QUERIES)["docno"]) == {"d1", "d2", "d3"}
    assert pickle.loads(pickle.dumps(retriever))(QUERIES).equals(retriever(QUERIES))
    index.index(DOCS[:1])
    assert set(retriever(QUERIES)["docno"]) == {"d1"}
    learned = GpuidxIndex(tmp_path / "l").toks_indexer().index([{"docno": "a", "toks": {"x": 1.5}}])
    with pytest.raises(gpuidx.UsageError, match="impacts"):
        learned.dph()(QUERIES)
    assert sorted(os.listdir(index.path)) == ["index.gx", "pt_meta.json"]


def test_an_artifact_is_loaded_by_its_folder(index):
    loaded = pt.Artifact.load(str(index.path))
    assert isinstance(loaded, GpuidxIndex) and loaded.num_docs() == 3
    assert gpuidx.open(os.path.join(str(index.path), "index.gx")).docnos() == ["d1", "d2", "d3"]


def test_artifacts_are_recognised_by_what_they_are(index, tmp_path):
    import shutil

    shutil.copy(index.file, tmp_path / "index.gx")  # a folder that says nothing about itself
    assert pt.Artifact.load(str(tmp_path)).num_docs() == 3
    loaded = pt.Artifact.load(str(tmp_path / "index.gx"))  # a file, as `gpuidx build` writes it
    assert loaded.bm25()(QUERIES)["docno"].tolist() == index.bm25()(QUERIES)["docno"].tolist()
    with pytest.raises(FileExistsError, match="only read"):
        loaded.index(DOCS)
    (tmp_path / "other").write_bytes(b"something else")
    with pytest.raises(ValueError, match="No implementation"):
        pt.Artifact.load(str(tmp_path / "other"))


def test_ciff_and_back(index, tmp_path):
    index.to_ciff(str(tmp_path / "x.ciff"))
    again = GpuidxIndex.from_ciff(str(tmp_path / "x.ciff"), tmp_path / "y", analyzer="english")
    assert again.bm25()(QUERIES)["docno"].tolist() == index.bm25()(QUERIES)["docno"].tolist()
    assert pt.Artifact.load(str(tmp_path / "y")).num_terms() == index.num_terms()


def test_pipelines_are_pickled(index):
    import pickle

    for pipeline in (index.bm25(), index.bm25() % 2 >> index.text_scorer(), index):
        again = pickle.loads(pickle.dumps(pipeline))
        if pipeline is not index:
            assert again(QUERIES)["docno"].tolist() == pipeline(QUERIES)["docno"].tolist()


def test_the_hub_carries_an_artifact(index, tmp_path, monkeypatch):
    """to_hf and from_hf, with a folder in place of the hub."""
    import http.server
    import shutil
    import sys
    import threading
    import types

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    hub, error = tmp_path / "hub", type("HfHubHTTPError", (Exception,), {})
    fake = types.SimpleNamespace(
        create_repo=lambda *a, **k: None, create_branch=lambda *a, **k: None,
        utils=types.SimpleNamespace(HfHubHTTPError=error),
        upload_folder=lambda folder_path, **k: shutil.copytree(folder_path, hub) and str(hub))
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    monkeypatch.setenv("PYTERRIER_HOME", str(tmp_path / "home"))
    index.to_hf("someone/x.gpuidx")
    package = next(f for f in os.listdir(hub) if f.startswith("artifact") and not f.endswith(".json"))
    assert "gpuidx" in (hub / "README.md").read_text()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(hub)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    resolved, address = [], "http://127.0.0.1:%d/%s" % (server.server_address[1], package)
    monkeypatch.setattr(sys.modules["pyterrier._artifact"], "_hf_url_resolver",
                        lambda url: resolved.append(url.path) or address)
    loaded = pt.Artifact.from_hf("someone/x.gpuidx")
    server.shutdown()
    server.server_close()
    assert resolved == ["someone/x.gpuidx"] and isinstance(loaded, GpuidxIndex)
    assert loaded.bm25()(QUERIES)["docno"].tolist() == index.bm25()(QUERIES)["docno"].tolist()


def test_fields_of_text(tmp_path):
    titled = GpuidxIndex(tmp_path / "t", text_field=["title", "text"]).index([DOCS[0]])
    assert titled.index_inputs() == [["docno", "title", "text"]] and titled.core.df("list") == 1
    assert GpuidxIndex(tmp_path / "b", text_field="text").index([DOCS[0]]).core.df("list") == 0
    for bad in ({"docno": "a"}, {"docno": "a", "text": None}):
        with pytest.raises(ValueError, match="document a has no text"):
            GpuidxIndex(tmp_path / "c", text_field=None if len(bad) == 1 else "text").index([bad])
    with pytest.raises(FileExistsError):
        GpuidxIndex(tmp_path / "t").index(DOCS)
    assert GpuidxIndex(tmp_path / "t", overwrite=True).index(DOCS).num_docs() == 3


def test_weighted_fields(tmp_path):
    docs = [{"docno": "a", "title": "red fox", "text": "a fox"}, {"docno": "b", "title": "snow", "text": "red red fox"},
            {"docno": "c", "text": "blue whale fox"}]
    index = GpuidxIndex(tmp_path / "f", fields=["title", "text"]).index(docs)
    queries = pandas.DataFrame({"qid": ["1", "2"], "query": ["red fox", "whale"]})
    for how in ["bm25f", "best", "sum"]:
        retriever = index.bm25(fields="title^3,text", field_scoring=how)
        assert retriever(queries)["docno"].tolist() == ["a", "b", "c", "c"]
        assert retriever.schematic()["settings"]["field_scoring"] == how
        view = gpuidx.Index(index.file, fields="title^3,text", field_scoring=how)
        assert retriever(queries)["score"].tolist()[:3] == view.search("red fox", 3).scores.tolist()
    assert index.core.field_dfs("fox") == {"title": 1, "text": 3}
    assert index.core.field_dfs("cow") == {"title": 0, "text": 0}
    with pytest.raises(gpuidx.UsageError, match="nearest is title"):
        index.bm25(fields="tilte")(queries)


def test_scored_frames_keep_their_columns(index):
    frame = pandas.DataFrame({"qid": ["1", "2", "1"], "query": ["index lists", "compression", "index lists"],
                              "docno": ["d3", "d2", "d1"], "more": [7, 8, 9]}, index=[5, 5, 1])
    got = index.text_scorer()(frame)
    assert sorted(got["more"]) == [7, 8, 9]
    assert got[got["qid"] == "1"].sort_values("rank")["docno"].tolist() == ["d1", "d3"]
    assert index.text_scorer()(frame.iloc[:0]).columns.tolist()[:4] == ["qid", "query", "docno", "more"]
    with pytest.raises(KeyError, match="d9"):
        index.text_scorer()(frame.assign(docno="d9"))


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


_testing = pytest.importorskip("pyterrier.testing")


def test_a_corpus_of_ir_datasets_by_its_name(tmp_path):
    """A corpus under SciFact's name, laid out as ir_datasets keeps what it has fetched, in a process of its own."""
    import subprocess
    import sys
    import zipfile

    home = tmp_path / "home" / "beir" / "scifact"
    home.mkdir(parents=True)
    with zipfile.ZipFile(home / "source.zip", "w") as archive:
        docs = [{"_id": "d%d" % i, "title": "title%d" % i, "text": "word%d" % (i % 5)} for i in range(20)]
        archive.writestr("scifact/corpus.jsonl", "".join(json.dumps(d) + "\n" for d in docs))
    program = """if True:
        import sys, ir_datasets, pyterrier as pt
        from gpuidx.terrier import GpuidxIndex
        of_name = GpuidxIndex(sys.argv[1]).index("irds:beir/scifact")
        of_pyterrier = GpuidxIndex(sys.argv[2]).index(pt.get_dataset("irds:beir/scifact"))
        of_ir_datasets = GpuidxIndex(sys.argv[3]).index(ir_datasets.load("beir/scifact"))
        for index in (of_name, of_pyterrier, of_ir_datasets):
            assert index.core.docnos() == ["d%d" % i for i in range(20)]
            assert index.core.df("title3") == 1 and index.core.df("word3") == 4
        """
    env = dict(os.environ, IR_DATASETS_HOME=str(tmp_path / "home"), IR_DATASETS_TMP=str(tmp_path / "tmp"))
    places = [str(tmp_path / name) for name in "abc"]
    subprocess.run([sys.executable, "-c", program, *places], check=True, env=env)


TestBM25 = _testing.transformer_test_class(lambda: GpuidxIndex("unused").bm25())
TestDPH = _testing.transformer_test_class(lambda: GpuidxIndex("unused").dph())
TestQL = _testing.transformer_test_class(lambda: GpuidxIndex("unused").ql(mu=2000))
TestPL2 = _testing.transformer_test_class(lambda: GpuidxIndex("unused").pl2())
TestQuantized = _testing.transformer_test_class(lambda: GpuidxIndex("unused").quantized())
TestScorer = _testing.transformer_test_class(lambda: GpuidxIndex("unused").text_scorer())


def test_results_collapse_to_one_of_each_value(tmp_path):
    path = str(tmp_path / "x.gx")
    with gpuidx.build(path, [{"id": "d%d" % i, "text": "word" + " other" * i, "page": "p%d" % (i // 2)}
                             for i in range(6)], attributes={"page": "keyword"}):
        pass
    out = GpuidxIndex(path).bm25(collapse="page", num_results=2)(pandas.DataFrame([["1", "other"], ["2", "nowhere"]],
                                                                              columns=["qid", "query"]))
    assert out["docno"].tolist() == ["d5", "d3"] and out["group"].tolist() == ["p2", "p1"]
    assert out["group_matches"].tolist() == [2, 2] and out["rank"].tolist() == [0, 1]
    assert (GpuidxIndex(path).bm25(num_results=2, collapse="page") % 1)(
        pandas.DataFrame([["1", "other"]], columns=["qid", "query"]))["group"].tolist() == ["p2"]
