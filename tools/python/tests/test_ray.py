"""gpuidx.ray: shards of a collection, against the collection itself. Needs ray, and for the deployment ray[serve]."""
import json
import os
import pickle
import random
import signal
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

import gpuidx

ray = pytest.importorskip("ray")
import gpuidx.ray  # noqa: E402

WORDS = ["w%d" % i for i in range(60)]


def document(rng, i):
    return {"id": "d%d" % i, "title": "T%d" % i, "year": 2000 + i % 25,
            "text": " ".join(rng.choices(WORDS, weights=range(60, 0, -1), k=rng.randint(1, 30)))}


QUERIES = ["w0", "w1 w5", "w59 w2 w17", "w7 w7 w8", "nowhere", "", "w3 w4 w5 w6 w50"]


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
    yield
    ray.shutdown()


@pytest.fixture
def folder(tmp_path):
    """A collection of five files, with documents that were deleted."""
    rng, folder = random.Random(5), tmp_path / "c"
    with gpuidx.Collection.create(folder, analyzer="whitespace", store_text=True, attributes={"year": "int"}) as c:
        for i in range(5):
            c.add(document(rng, 300 * i + n) for n in range(300))
            c.commit()
        c.delete(["d%d" % n for n in range(0, 1500, 7)])
        c.commit()
    return folder


def same(got, want):
    assert got.docids.dtype == want.docids.dtype and got.scores.dtype == want.scores.dtype
    assert got.docids.tobytes() == want.docids.tobytes() and got.scores.tobytes() == want.scores.tobytes()
    assert np.array_equal(got.counts, want.counts)
    assert (got.matches is None) == (want.matches is None) and np.array_equal(got.matches, want.matches)
    assert got.qids == want.qids and got.single == want.single


ASKED = [{}, {"k": 1}, {"k": 5000}, {"op": "and"}, {"op": "and-or", "k": 3}, {"op": "and-or", "k": 400},
         {"scorer": "bm25:lucene", "k1": 25.0, "b": 1.0}, {"filter": "year:>2010"}, {"count": True},
         {"op": "and-or", "k": 20, "count": True}, {"algorithm": "taat"}]


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_answers_are_those_of_the_whole(cluster, folder, n):
    with gpuidx.open(folder, engine="cpu") as index, gpuidx.ray.Shards(folder, n) as shards:
        for asked in ASKED:
            same(shards.search(QUERIES, **asked), index.search(QUERIES, **asked))
            for q in QUERIES[:4]:
                same(shards.search(q, **asked), index.search(q, **asked))
        same(shards.search(["+w1 -w2", "w1 OR year:2003"], syntax="boolean"),
             index.search(["+w1 -w2", "w1 OR year:2003"], syntax="boolean"))
        same(shards.search({"q1": "w1", "q2": "w2"}, filter=["year:2003", None]),
             index.search({"q1": "w1", "q2": "w2"}, filter=["year:2003", None]))
        same(shards.search([{"w1": 2.0, "w3": 0.5}]), index.search([{"w1": 2.0, "w3": 0.5}]))
        assert [h.docno for h in shards.search("w1")] == [h.docno for h in index.search("w1")]
        assert len({d["pid"] for d in shards.describe()}) == n
        again = pickle.loads(pickle.dumps(shards))
        same(again.search(QUERIES), index.search(QUERIES))
        again.close()
        same(shards.search("w2"), index.search("w2"))


def test_an_actor_that_dies_costs_no_query(cluster, folder):
    with gpuidx.open(folder, engine="cpu") as index, gpuidx.ray.Shards(folder, 2) as shards:
        want, faults, done, going = index.search(QUERIES, 50), [], [0], [True]

        def ask():
            while going[0]:
                try:
                    same(shards.search(QUERIES, 50), want)
                    done[0] += 1
                except BaseException as e:
                    faults.append(e)
                    return

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for t in threads:
            t.start()
        killed = set()
        for i in range(2):
            pid = shards.describe()[i]["pid"]
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
            before, end = done[0], time.monotonic() + 600
            while done[0] < before + 4 and not faults and time.monotonic() < end:
                time.sleep(0.05)
        going[0] = False
        for t in threads:
            t.join(600)
        assert faults == [] and done[0] >= 8
        assert not killed & {d["pid"] for d in shards.describe()}


def test_commits(cluster, folder):
    with gpuidx.ray.Shards(folder, 2) as shards:
        old = gpuidx.open(folder, engine="cpu")
        with gpuidx.Collection(folder) as c:
            c.add([{"id": "new", "text": "w1 w1 w1", "year": 2001}])
            c.commit()
        same(shards.search(QUERIES), old.search(QUERIES))  # until it is told
        os.kill(shards.describe()[0]["pid"], signal.SIGKILL)  # one that comes back has the last commit
        now = gpuidx.open(folder, engine="cpu")
        same(shards.search(QUERIES), now.search(QUERIES))
        assert shards.commit == now.commit > old.commit
        with gpuidx.Collection(folder) as c:
            c.delete(["new"])
            c.commit()
        assert shards.refresh() == now.commit + 1
        same(shards.search(QUERIES), gpuidx.open(folder, engine="cpu").search(QUERIES))


def test_bad_input(cluster, folder, tmp_path):
    with gpuidx.build(tmp_path / "one.gx", [{"id": "1", "text": "a"}]):
        with pytest.raises(gpuidx.UsageError, match="one file"):
            gpuidx.ray.Shards(tmp_path / "one.gx")
    with pytest.raises(gpuidx.UsageError, match="too few"):
        gpuidx.ray.Shards(folder, 50)
    with pytest.raises(gpuidx.NotFoundError):
        gpuidx.ray.Shards(tmp_path / "nowhere")
    with pytest.raises(gpuidx.UsageError, match="shards"):
        gpuidx.ray.Shards(folder, 0)
    with gpuidx.ray.Shards(folder, 2) as shards:
        for asked, words in [({"op": "xor"}, "op is one of"), ({"k": 0}, "k is"), ({"scorer": "x"}, "scorer is"),
                             ({"filter": "yeer:3"}, "year")]:
            with pytest.raises(gpuidx.UsageError, match=words):
                shards.search("w1", **asked)
        with pytest.raises(TypeError, match="facets"):
            shards.search("w1", facets=["year"])
        with pytest.raises(gpuidx.UsageError):
            shards.search("(w1", syntax="boolean")
        same(shards.search("w1"), gpuidx.open(folder, engine="cpu").search("w1"))


def test_a_deployment_answers_over_http(cluster, folder):
    serve = pytest.importorskip("ray.serve")

    def post(body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data), timeout=60) as r:
                return r.status, json.loads(r.read())
        except urllib.error.HTTPError as e:
            return e.code, json.loads(e.read())

    with gpuidx.open(folder, engine="cpu") as index, gpuidx.ray.Shards(folder, 2) as shards:
        serve.start(http_options={"host": "127.0.0.1", "port": 18461})
        serve.run(gpuidx.ray.application(shards, max_queries=20, max_k=100), route_prefix="/retrieve")
        url = "http://127.0.0.1:18461/retrieve"
        try:
            status, answer = post({"queries": QUERIES[:4], "topk": 4, "return_scores": True})
            assert status == 200
            for found, hits in zip(answer["result"], index.search(QUERIES[:4], 4)):
                assert [(f["document"]["id"], f["score"]) for f in found] == [(h.docno, h.score) for h in hits]
                assert found[0]["document"]["contents"] == '"%s"\n%s' % (hits[0].title, index.text(hits[0].docid))
            assert post({"queries": []}) == (200, {"result": []})
            for body in [b"{", {"queries": "w1"}, {"queries": [1]}, {"queries": ["w1"], "topk": 0}, [],
                         {"queries": ["w1"], "topk": 101}, {"queries": ["w1"] * 21}, {"queries": ["w1"], "k": 1}]:
                status, answer = post(body)
                assert status == 400 and answer["error"]["message"], body
            with urllib.request.urlopen(url, timeout=60) as r:
                assert json.loads(r.read())["status"] == "ready"
        finally:
            serve.shutdown()
