"""Collections from Python, against an index built of the live documents; and a filter a query."""
import os
import pickle
import math
import random
import shutil
import signal
import threading
import time

import numpy as np
import pytest

import gpuidx

WORDS = ["w%d" % i for i in range(40)]


def document(rng, i):
    return {"id": "d%d" % i, "text": " ".join(rng.choices(WORDS, weights=range(40, 0, -1), k=rng.randint(1, 30))),
            "year": 2000 + i % 25}


BUILD = dict(analyzer="whitespace", store_text=True, attributes={"year": "int"})
QUERIES = ["w0", "w1 w5", "w39 w2 w17", "w7 w7 w8"]


def assert_equal_to_a_build(index, live, tmp_path):
    """The same answers, to the bit, as of an index that was built of these documents."""
    with gpuidx.build(tmp_path / "fresh.gx", live.values(), force=True, **BUILD) as fresh:
        assert index.docnos() == list(live) == fresh.docnos()
        for arguments in ({}, {"scorer": "bm25:lucene", "op": "and"}, {"filter": "year:>2010"}):
            got, want = (ix.search(QUERIES, 20, **arguments) for ix in (index, fresh))
            assert (got.docids == want.docids).all() and (got.scores == want.scores).all()
            assert (got.counts == want.counts).all()
        assert index.texts(list(live)[:5]) == [d["text"] for d in list(live.values())[:5]]
        assert list(index.terms()) == list(fresh.terms())


@pytest.mark.parametrize("seed", [1, 2])
def test_a_collection_equals_a_build_of_its_live_documents(tmp_path, seed):
    rng = random.Random(seed)
    print("seed", seed)
    folder, live, number = tmp_path / "c", {}, 0
    with gpuidx.Collection.create(folder, **BUILD) as c:
        assert len(c) == 0
    index = gpuidx.open(folder)
    for _ in range(8):
        with gpuidx.Collection(folder) as c:
            for _ in range(rng.randint(1, 3)):
                what = rng.choice(["add", "update", "delete"])
                if what == "add" or len(live) < 20:
                    new = [document(rng, number + i) for i in range(rng.randint(1, 300))]
                    number += len(new)
                    assert c.add(iter(new)) == len(new)
                    live.update((d["id"], d) for d in new)
                elif what == "update":
                    chosen = rng.sample(list(live), 10)
                    new = [dict(document(rng, int(i[1:])), year=1990) for i in chosen] + [document(rng, number)]
                    number += 1
                    assert c.update(new) == 10
                    for d in new:
                        live.pop(d["id"], None)
                        live[d["id"]] = d
                else:
                    chosen = rng.sample(list(live), 7)
                    assert c.delete(chosen + ["nobody"]) == 7
                    for i in chosen:
                        del live[i]
            if rng.random() < 0.5:
                c.merge(all=rng.random() < 0.5)
        new = index.reopen()
        assert new is not index and new.commit > index.commit and new.reopen() is new
        assert sum(part.n_docs for part in new.parts) == len(new) == len(live)
        assert_equal_to_a_build(new, live, tmp_path)
        index.close()
        index = new
    index.close()


def test_readers_stay_with_their_commit(tmp_path):
    rng = random.Random(3)
    first = [document(rng, i) for i in range(50)]
    files = []
    for i in range(2):
        files.append(tmp_path / ("%d.gx" % i))
        gpuidx.build(files[-1], first[25 * i:25 * i + 25], **BUILD).close()
    with gpuidx.Collection.create(tmp_path / "c", files) as c:
        with c.index(engine="cpu") as before:
            want = before.search(QUERIES, 50).to_dict()
            assert [p.n_docs for p in before.parts] == [25, 25] and before.info.bytes > sum(
                p.bytes for p in before.parts) / 2
            c.delete([d["id"] for d in first[:30]])
            assert before.reopen() is before  # not committed
            c.commit()
            after = before.reopen()
            assert before.search(QUERIES, 50).to_dict() == want and len(before) == 50 and len(after) == 20
            c.merge(all=True)
            merged = after.reopen()
            assert merged.search(QUERIES, 50).to_dict() == after.search(QUERIES, 50).to_dict()
            assert before.search(QUERIES, 50).to_dict() == want and len(merged.parts) == 1
            assert c.counts == gpuidx.CollectionCounts(0, 30, 1, 1, 20)
            merged.close()
            after.close()
        assert "20 documents" in repr(c)
    with gpuidx.open(files[0]) as single:
        assert single.parts == [] and single.commit == 0 and single.reopen() is single
    with gpuidx.open(tmp_path / "c") as ix:
        assert pickle.loads(pickle.dumps(ix)).docnos() == ix.docnos()
        with ix.recode(tmp_path / "one.gx") as one:
            assert one.docnos() == ix.docnos() and one.search("w1").scores.tolist() == ix.search("w1").scores.tolist()


def test_what_is_not_committed_is_dropped(tmp_path):
    folder = tmp_path / "c"
    with gpuidx.Collection.create(folder, **BUILD) as c:
        c.add({"id": "a", "text": "w1"})
    with pytest.raises(ZeroDivisionError):
        with gpuidx.Collection(folder) as c:
            c.add({"id": "b", "text": "w1"})
            1 / 0

    def raises_midway():
        yield {"id": "b", "text": "w1"}
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        with gpuidx.Collection(folder) as c:
            c.add(raises_midway())
    c = gpuidx.Collection(folder)
    c.delete("a")
    c.close()
    c.close()
    with gpuidx.open(folder) as ix:
        assert ix.docnos() == ["a"]


def test_bad_documents_leave_the_collection_open(tmp_path):
    with gpuidx.Collection.create(tmp_path / "c", **BUILD) as c:
        c.add([{"id": "a", "text": "w1"}, {"id": "b", "text": "w2"}])
        for bad, error, words in (({"id": "a", "text": "w3"}, gpuidx.InputError, '"a"'),
                                  ({"id": "x y", "text": "w3"}, gpuidx.InputError, "x y"),
                                  ({"id": "n", "text": "w3", "year": "soon"}, gpuidx.InputError, "year"),
                                  ({"id": "n", "text": None}, TypeError, "NoneType"),
                                  ({"id": "n"}, ValueError, "no text"),
                                  ([("n", "w3")], TypeError, "dict"),
                                  (7, TypeError, "int"), ("n", TypeError, "str"), (None, TypeError, "NoneType")):
            with pytest.raises(error, match=words):
                c.add(bad)
        with pytest.raises(TypeError, match="int"):
            c.delete([7])
        assert c.update([{"id": "a", "text": "w9", "year": 2001}]) == 1
    with gpuidx.open(tmp_path / "c") as ix:
        assert ix.docnos() == ["b", "a"] and ix.search("w9", filter="year:2001").counts == 1


def test_there_is_one_writer(tmp_path):
    folder = tmp_path / "c"
    with gpuidx.Collection.create(folder) as c:
        with pytest.raises(gpuidx.StorageError, match="another process"):
            gpuidx.Collection(folder)
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(c)
        threads = [threading.Thread(target=lambda i=i: c.add([("%d-%d" % (i, j), "w1 w2") for j in range(300)]))
                   for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    for call in (c.commit, c.merge, lambda: c.add(("a", "b")), lambda: c.delete("a"), lambda: c.counts, lambda: len(c)):
        with pytest.raises(ValueError, match="closed"):
            call()
    with gpuidx.Collection(folder) as c, gpuidx.open(folder) as ix:
        assert len(c) == len(ix) == 2400 and "closed" not in repr(c)


def test_a_forked_child_leaves_the_writer_alone(tmp_path):
    folder = tmp_path / "c"
    with gpuidx.Collection.create(folder) as c:
        c.add([("a", "w1")])
        child = os.fork()
        if child == 0:
            try:
                c.add([("b", "w1")])
            except ValueError:
                c.close()
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        c.add([("c", "w1")])
    with gpuidx.open(folder) as ix:
        assert ix.docnos() == ["a", "c"]


@pytest.fixture
def ctrl_c():
    """The signal ends calls even where a shell has started the tests in the background, with the signal ignored."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old)


def test_ctrl_c_ends_a_merge_and_loses_nothing(tmp_path, ctrl_c):
    rng = random.Random(4)
    folder, n = tmp_path / "c", 0
    with gpuidx.Collection.create(folder, analyzer="whitespace") as c:
        for _ in range(12):
            c.add([("d%d" % (n + i), " ".join(rng.choices(WORDS, k=60))) for i in range(2500)])
            n += 2500
            c.commit()
        interrupted = 0
        for _ in range(20):
            timer = threading.Timer(0.002, os.kill, (os.getpid(), signal.SIGINT))
            try:
                timer.start()
                c.merge(all=True)
                time.sleep(100)  # where the merge was faster
            except KeyboardInterrupt:
                interrupted += 1
            with gpuidx.open(folder) as ix:
                assert len(ix) == n
                if len(ix.parts) == 1:
                    break
        assert interrupted
        c.merge(all=True)
        c.add([("last", "w1")])
    with gpuidx.open(folder) as ix:
        assert len(ix) == n + 1 and len(ix.parts) == 2


def test_bad_folders_and_files_are_named(tmp_path):
    gpuidx.build(tmp_path / "a.gx", [("a", "w1")]).close()
    gpuidx.build(tmp_path / "b.gx", [("a", "w1")]).close()
    gpuidx.build(tmp_path / "c.gx", [("c", "w1")], analyzer="simple").close()
    gpuidx.build(tmp_path / "v.gx", vectors=[{"x": 1.0}]).close()
    create = gpuidx.Collection.create
    for call, error, words in (
            (lambda: gpuidx.Collection(tmp_path / "none"), gpuidx.NotFoundError, "none"),
            (lambda: gpuidx.Collection(tmp_path / "a.gx"), gpuidx.Error, "a.gx"),
            (lambda: create(tmp_path / "n", [tmp_path / "a.gx", tmp_path / "b.gx"]), gpuidx.UsageError, '"a"'),
            (lambda: create(tmp_path / "n", [tmp_path / "a.gx", tmp_path / "c.gx"]), gpuidx.UsageError, "analyzer"),
            (lambda: create(tmp_path / "n", [tmp_path / "none.gx"]), gpuidx.NotFoundError, "none.gx"),
            (lambda: create(tmp_path / "a.gx", [tmp_path / "b.gx"]), gpuidx.ExistsError, "a.gx"),
            (lambda: create(tmp_path / "n", [tmp_path / "a.gx"], analyzer="simple"), gpuidx.UsageError, "analyzer"),
            (lambda: create(tmp_path / "n", analyzer="simpel"), gpuidx.UsageError, "simpel")):
        with pytest.raises(error, match=words):
            call()
    assert sorted(os.listdir(tmp_path)) == ["a.gx", "b.gx", "c.gx", "v.gx"]
    with create(tmp_path / "vs", [tmp_path / "v.gx"]) as c:
        with pytest.raises(TypeError, match="vectors"):
            c.add([("n", "w1")])


def test_every_query_has_its_filter(tmp_path):
    docs = [{"id": str(i), "text": "word w%d" % (i % 3), "year": 2000 + i % 20} for i in range(400)]
    with gpuidx.build(tmp_path / "x.gx", docs, attributes={"year": "int"}) as ix:
        filters = ["year:2003", None, "year:[2005 TO 2007]", "year:2003", "NOT year:2003", "year:1990"] * 40
        queries = ["word", "w1", "w2", "w0", "w1 w2", "word"] * 40
        for threads in (1, 2):
            found = ix.search(queries, 30, filter=filters, batch=64, threads=threads, count=True)
            for i in range(0, len(queries), 7):
                alone = ix.search(queries[i], 30, filter=filters[i], count=True)
                n = int(alone.counts)
                assert found.counts[i] == n and found.docids[i, :n].tolist() == alone.docids.tolist()
                assert found.scores[i, :n].tolist() == alone.scores.tolist() and found.matches[i] == alone.matches
        with ix.mask([str(i) for i in range(0, 400, 2)]) as even:
            both = ix.search(["word"] * 2, 400, mask=even, filter=["year:2004", "year:2005"])
            assert both.counts.tolist() == [20, 0]
            assert ix.search("word", 400, mask=even, filter="year:2004").counts == 20
        assert ix.search({"a": "word", "b": "w1"}, filter=["year:2003", None]).qids == ["a", "b"]
        assert ix.search({"word": 2.0}, filter=["year:2003"]).counts == 10
        assert ix.search([], filter=[]).counts.tolist() == []
        assert ix.score("word", [3, 23, 4], filter="year:2003").astype(bool).tolist() == [True, True, False]
        for bad, error, words in ((["year:2003"], ValueError, "1 filters and 2 queries"),
                                  (["year:2003", "yaer:1"], gpuidx.UsageError, "year"), ([1, 2], TypeError, "int"),
                                  ({"a": "year:1"}, TypeError, "dict"),
                                  (["id:@/etc/passwd", None], gpuidx.UsageError, "id")):
            with pytest.raises(error, match=words):
                ix.search(["word", "w1"], filter=bad)
        assert ix.search("word", filter="year:2003").counts == 10
    with pytest.raises(ValueError, match="closed"):
        ix.search("word", filter="year:2003")



def test_conditions_stand_in_boolean_queries(tmp_path):
    docs = [{"id": str(i), "text": "word w%d" % (i % 3), "year": 2000 + i % 20} for i in range(400)]
    with gpuidx.build(tmp_path / "x.gx", docs, attributes={"year": "int"}) as ix:
        def search(query, **how):
            return ix.search(query, 400, syntax="boolean", count=True, **how)
        found = search(["+w1 +year:[2003 TO 2005]", "w2 OR year:2004", "year:2006", "w1 -year:<2019"])
        assert found.matches.tolist() == [20, 147, 20, 7]
        plain = ix.search("w1", 400, filter="year:[2003 TO 2005]")
        assert found.docids[0, :20].tolist() == plain.docids.tolist()
        assert found.scores[0, :20].tolist() == plain.scores.tolist()
        assert found.docids[2, :20].tolist() == list(range(6, 400, 20)) and not found.scores[2, :20].any()
        assert search("w1 AND year:>2009", filter="year:<2012").matches == \
            ix.search("w1", filter="year:[2010 TO 2011]", count=True).matches
        assert search("w1 AND year:2004", facets="year:all").facets["year:all"] == {2004: 7}
        for query, words in (("w1 AND yaer:1", "column 8.*did you mean year"), ("id:@x", "cannot be read here")):
            with pytest.raises(gpuidx.UsageError, match=words):
                search(query)


def test_facets_count_all_matches(tmp_path):
    docs = [{"id": str(i), "text": "word w%d" % (i % 3), "year": 2000 + i % 20, "tags": ["a", "b"][:i % 3],
             "price": i / 2, "open": i % 2 == 0, "day": "2019-0%d-01" % (1 + i % 9)} for i in range(400)]
    types = {"year": "int", "tags": "keywords", "price": "float", "open": "bool", "day": "date"}
    with gpuidx.build(tmp_path / "x.gx", docs, attributes=types) as ix:
        asked = ["tags", "year:2", "price:bins=4", "open:all", "day:all:by=month:order=value", "price:1"]
        one = ix.search("w1", k=3, facets=asked, filter="year:<2010", count=True)
        kept = [d for i, d in enumerate(docs) if i % 3 == 1 and d["year"] < 2010]
        assert len(one) == 3 and one.matches == len(kept) and list(one.facets) == asked
        tags = one.facets["tags"]
        assert tags == {"a": len(kept)} and (tags.present, tags.missing, tags.type) == (len(kept), 0, "keywords")
        for year, n in one.facets["year:2"].items():
            assert type(year) is int and n == sum(d["year"] == year for d in kept)
        assert len(one.facets["year:2"]) == 2 and one.facets["year:2"].n_groups == 10
        assert list(one.facets["open:all"]) in ([True, False], [False, True])
        assert one.facets["open:all"][True] == sum(d["open"] for d in kept)
        assert list(one.facets["day:all:by=month:order=value"]) == ["2019-0%d" % m for m in range(1, 10)
                                                                    if any(d["day"][5:7] == "0%d" % m for d in kept)]
        bins = one.facets["price:bins=4"]
        assert len(bins) == 4 and sum(bins.values()) == len(kept)
        for text, n in bins.items():
            assert ix.search("w1", 400, filter="year:<2010 AND price:" + text).counts == n
        assert list(one.facets["price:1"]) == [min(d["price"] for d in kept)]
        for threads in (1, 2):
            many = ix.search(["w1", "w0 w2", "nowhere"] * 40, k=1, facets=["tags"], batch=32, threads=threads)
            assert many.matches is None and len(many.facets) == 120
            for i in range(0, 120, 7):
                alone = ix.search(["w1", "w0 w2", "nowhere"][i % 3], facets="tags")
                assert many.facets[i]["tags"] == alone.facets["tags"]
        assert ix.facets(["open:all"])["open:all"] == {True: 200, False: 200}
        assert ix.facets("year:all", filter="year:<2002")["year:all"] == {2000: 20, 2001: 20}
        assert many.facets[2]["tags"] == {} and ix.search("w1").facets is None
        assert ix.search("+w1 -w2", syntax="boolean", facets=["open"]).facets["open"].present == 133
        for bad, error, words in ((["yaer"], gpuidx.UsageError, "did you mean year"), ([1], TypeError, "int"),
                                  (["tags:bins=3"], gpuidx.UsageError, "no bins")):
            with pytest.raises(error, match=words):
                ix.search("w1", facets=bad)


def test_figures_of_all_matches_and_of_groups(tmp_path):
    docs = [{"id": str(i), "text": "word w%d" % (i % 3), "year": 2000 + i % 20, "far": 2 ** 63 - 1 - i, "x": 0.1 * i,
             "brand": "abc"[i % 3 % 2], "day": "2019-0%d-01" % (1 + i % 9)} for i in range(300)]
    types = {"year": "int", "far": "int", "x": "float", "brand": "keyword", "day": "date"}
    with gpuidx.build(tmp_path / "x.gx", docs, attributes=types) as ix:
        kept = [d for d in docs if "w1" in d["text"]]
        one = ix.search("w1", k=1, facets=["brand:sum=far:avg=x/year:all", "year:quantiles=2", "brand:exclude-own"],
                        sums=["far:sum:max", "x:sum:avg:p50:distinct", "day"], filter="brand:b", count=True)
        assert one.matches == len(kept) == 100 and one.sums["far"]["sum"] == sum(d["far"] for d in kept)
        x = sorted(d["x"] for d in kept)
        assert one.sums["x"] == {"n": 100, "sum": math.fsum(x), "avg": one.sums["x"]["avg"], "distinct": 100,
                                 "percentiles": {50.0: x[49]}}
        assert abs(one.sums["x"]["avg"] - sum(x) / 100) < 1e-9 and one.sums["day"]["min"] == "2019-02-01"
        brands = one.facets["brand:sum=far:avg=x/year:all"]
        assert brands == {"b": 100} and brands.sums["b"]["far"]["sum"] == sum(d["far"] for d in kept)
        assert brands.inner["b"] == {year: sum(d["year"] == year for d in kept) for year in range(2000, 2020)}
        for text, n in one.facets["year:quantiles=2"].items():
            assert ix.search("w1", 400, filter="year:" + text).counts == n
        own = ix.search("w0 w1", k=1, facets="brand:exclude-own", filter="brand:b AND year:<2010", count=True)
        assert own.facets["brand:exclude-own"] == {"a": 50, "b": 50} and own.matches == 50
        assert ix.sums("year:min:max", filter="year:>2004") == {"year": {"n": 225, "min": 2005, "max": 2019}}
        assert ix.sums("x:avg:p1:sum", filter="year:>3000")["x"] == {"n": 0, "sum": 0.0, "avg": None,
                                                                     "percentiles": {1.0: None}}
        assert ix.facets("brand:exclude-own", filter="brand:b")["brand:exclude-own"] == {"a": 200, "b": 100}
        many = ix.search(["w1", "w0", "nowhere"], k=1, sums="year:sum")
        assert [s["year"]["sum"] for s in many.sums] == [sum(d["year"] for d in docs if w in d["text"])
                                                         for w in ("w1", "w0", "nowhere")]
        assert many.facets == [{}, {}, {}] and ix.search("w1").sums is None
        for bad, words in (("yaer", "did you mean year"), ("brand", "no figures"), ("x:p101", "no percentile"),
                           ("x:pnan", "percentile"), ("day:sum", "no sum"), ("x:mean", "none of min")):
            with pytest.raises(gpuidx.UsageError, match=words):
                ix.search("w1", sums=bad)
        with pytest.raises(gpuidx.UsageError, match="cannot be left out"):
            ix.search("w1", facets="brand:exclude-own", filter="brand:b OR year:2000")


def test_a_prior_is_part_of_the_score(tmp_path):
    docs = [{"id": str(i), "text": "word " * (1 + i % 5) + "w%d" % (i % 3), "pagerank": (i * 37 % 101) / 10}
            for i in range(200)]
    with gpuidx.build(tmp_path / "x.gx", docs, attributes={"pagerank": "float"}) as ix:
        plain = {h.docno: h.score for h in ix.search("word w1", k=200)}
        for form, f in (("log", math.log1p), ("linear", lambda x: x), ("sat,half=2", lambda x: x / (x + 2))):
            got = ix.search("word w1", k=5, prior="pagerank:w=0.5,form=" + form)
            want = sorted(((plain[d["id"]] + 0.5 * f(d["pagerank"]), -int(d["id"])) for d in docs), reverse=True)[:5]
            for hit, (score, docid) in zip(got, want):
                assert abs(hit.score - score) < 1e-5 and hit.docno == str(-docid)
        for bad, words in (("pagerang", "did you mean pagerank"), ("pagerank:w=0", "above 0")):
            with pytest.raises(gpuidx.UsageError, match=words):
                ix.search("word", prior=bad)


def test_attributes_travel_beside_ciff(tmp_path):
    docs = [{"id": str(i), "text": "word", "year": 2000 + i % 20, "x": 0.1 * i, "tags": ["a,b", "c\\d\t"][:i % 3]}
            for i in range(50)]
    with gpuidx.build(tmp_path / "x.gx", docs, attributes={"year": "int", "x": "float", "tags": "keywords"}) as ix:
        ix.export_ciff(tmp_path / "x.ciff")
        ix.export_attributes(tmp_path / "x.tsv")
        with gpuidx.import_ciff(tmp_path / "x.ciff", tmp_path / "y.gx", attributes=tmp_path / "x.tsv") as other:
            other.check()
            other.export_attributes(tmp_path / "y.tsv")
            assert (tmp_path / "x.tsv").read_bytes() == (tmp_path / "y.tsv").read_bytes()
            for expression in ("x:0.30000000000000004", 'tags:"a,b"', "year:<2003"):
                assert other.search("word", 50, filter=expression).docids.tolist() == \
                    ix.search("word", 50, filter=expression).docids.tolist() != []
        with pytest.raises(gpuidx.ExistsError, match="x.tsv"):
            ix.export_attributes(tmp_path / "x.tsv")
    (tmp_path / "bad.tsv").write_text("id\tyear:int\n1\tmany\n")
    with pytest.raises(gpuidx.InputError, match="bad.tsv:2: .*'many' is no whole number"):
        gpuidx.import_ciff(tmp_path / "x.ciff", tmp_path / "z.gx", attributes=tmp_path / "bad.tsv")


def test_close_waits_for_a_search_with_filters(tmp_path):
    rng = random.Random(5)
    docs = [document(rng, i) for i in range(20000)]
    ix = gpuidx.build(tmp_path / "x.gx", docs, **BUILD)
    started, outcome = threading.Event(), []

    def search():
        started.set()
        try:
            outcome.append(ix.search(["w0 w1 w2"] * 20000, 50, filter=["year:>2003", "year:<2010"] * 10000))
        except ValueError as e:
            outcome.append(e)

    thread = threading.Thread(target=search)
    thread.start()
    started.wait()
    ix.close()
    thread.join()
    assert len(outcome) == 1


def test_scores_of_filters_are_those_without(tmp_path):
    rng = random.Random(6)
    docs = [document(rng, i) for i in range(300)]
    with gpuidx.build(tmp_path / "x.gx", docs, **BUILD) as ix:
        free = ix.search(QUERIES, 300)
        kept = ix.search(QUERIES, 300, filter="year:[2005 TO 2010]")
        for i in range(len(QUERIES)):
            years = np.array([docs[d]["year"] for d in free.docids[i, :free.counts[i]]])
            chosen = (years >= 2005) & (years <= 2010)
            n = int(kept.counts[i])
            assert free.docids[i, :free.counts[i]][chosen].tolist() == kept.docids[i, :n].tolist()
            assert free.scores[i, :free.counts[i]][chosen].tolist() == kept.scores[i, :n].tolist()


def raising(documents, error):
    yield from documents
    raise error


BAD = {
    "text": (lambda: {"id": "bad", "text": None}, TypeError),
    "bytes": (lambda: {"id": "bad", "text": b"w1"}, TypeError),
    "id": (lambda: {"id": None, "text": "w1"}, TypeError),
    "no text": (lambda: {"id": "bad"}, Exception),
    "type": (lambda: 7, Exception),
    "attribute": (lambda: {"id": "bad", "text": "w1", "year": "x"}, gpuidx.InputError),
    "taken": (lambda: {"id": "kept", "text": "w1"}, Exception),
}


@pytest.mark.parametrize("attributes", [None, {"year": "int"}])
@pytest.mark.parametrize("n", [0, 1, 100, 256, 300, 1000])
def test_the_documents_before_a_bad_one_are_added(tmp_path, n, attributes):
    for what in list(BAD) + ["iterator", "interrupt"]:
        if what == "attribute" and not attributes:
            continue
        for change in ("add", "update"):
            if what == "taken" and change == "update":
                continue
            path = tmp_path / ("c-%s-%s" % (what, change))
            good = [{"id": "n%d" % i, "text": "w1"} for i in range(n)]
            behind = [{"id": "z%d" % i, "text": "w1"} for i in range(400)]
            with gpuidx.Collection.create(path, attributes=attributes) as c:
                c.add({"id": "kept", "text": "w0"})
                if what in BAD:
                    made, error = BAD[what]
                    documents = good + [made()] + behind
                else:
                    error = KeyboardInterrupt if what == "interrupt" else OSError
                    documents = raising(good, error("of the iterator"))
                with pytest.raises(error):
                    getattr(c, change)(documents)
                c.add({"id": "later", "text": "w2"})
            with gpuidx.open(path) as index:
                assert index.docnos() == ["kept"] + ["n%d" % i for i in range(n)] + ["later"], (what, change)


def test_a_bad_document_is_told_by_its_number(tmp_path):
    with gpuidx.Collection.create(tmp_path / "c") as c:
        with pytest.raises(TypeError, match="document 301 "):
            c.add([("n%d" % i, "w1") for i in range(300)] + [(None, "w1")])


def test_a_forked_child_does_not_keep_the_lock(tmp_path):
    c = gpuidx.Collection.create(tmp_path / "c")
    hold, release = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(release)
        c.close()
        os.read(hold, 1)
        os._exit(0)
    os.close(hold)
    with pytest.raises(gpuidx.StorageError):
        gpuidx.Collection(tmp_path / "c")
    c.add([("a", "w1")])
    c.commit()
    c.close()
    with gpuidx.Collection(tmp_path / "c") as again:
        assert len(again) == 1
    os.close(release)
    os.waitpid(child, 0)


def test_a_writer_waits_for_another_one(tmp_path):
    first = gpuidx.Collection.create(tmp_path / "c")
    for wait in (False, 0, 0.01):
        with pytest.raises(gpuidx.StorageError):
            gpuidx.Collection(tmp_path / "c", wait=wait)
    with pytest.raises(gpuidx.UsageError):
        gpuidx.Collection(tmp_path / "c", wait=-1)
    timer = threading.Timer(0.2, first.close)
    timer.start()
    with gpuidx.Collection(tmp_path / "c", wait=True) as second:
        second.add([("a", "w1")])
    timer.join()
    assert len(gpuidx.open(tmp_path / "c")) == 1


@pytest.mark.parametrize("link", [False, True])
def test_a_writer_whose_folder_was_replaced_writes_nothing(tmp_path, link):
    real = tmp_path / ("real" if link else "c")
    gpuidx.Collection.create(real).close()
    with gpuidx.Collection.create(tmp_path / "new") as new:
        new.add(("n%d" % i, "w1") for i in range(10))
    if link:
        (tmp_path / "c").symlink_to(real)
    c = gpuidx.Collection(tmp_path / "c")
    c.add([("a", "w1")])
    if link:
        (tmp_path / "c").unlink()
        (tmp_path / "c").symlink_to(tmp_path / "new")
    else:
        os.rename(tmp_path / "c", tmp_path / "old")
        os.rename(tmp_path / "new", tmp_path / "c")
    with pytest.raises(gpuidx.StorageError, match="nothing is written"):
        c.commit()
    with pytest.raises(ValueError):
        c.add([("b", "w1")])
    assert gpuidx.open(tmp_path / "c").docnos() == ["n%d" % i for i in range(10)]
    with gpuidx.Collection(tmp_path / "c") as again:
        again.add([("b", "w1")])
    assert len(gpuidx.open(tmp_path / "c")) == 11


@pytest.mark.parametrize("change", ["add", "delete", "update"])
def test_reopen_sees_that_a_backup_was_put_back(tmp_path, change):
    path, backup = tmp_path / "c", tmp_path / "backup"
    with gpuidx.Collection.create(path) as c:
        c.add([("a1", "fish"), ("a2", "fish")])
    gpuidx.Collection.create(backup, [path]).close()
    with gpuidx.Collection(path) as c:
        c.add([("lost", "fish")])
    reader = gpuidx.open(path)
    assert len(reader.search("fish")) == 3
    shutil.rmtree(path)
    os.rename(backup, path)
    with gpuidx.Collection(path) as c:
        if change == "delete":
            c.delete("a1")
        else:
            getattr(c, change)([("new" if change == "add" else "a1", "fish")])
    want = sorted(h.docno for h in gpuidx.open(path).search("fish"))
    assert "lost" not in want
    assert sorted(h.docno for h in reader.reopen().search("fish")) == want


def test_vectors_are_added_to_a_collection_of_one_unit(tmp_path):
    vectors = {"d%d" % i: {"t%d" % (j % 7): 0.13 * (i + j + 1) for j in range(i % 4 + 1)} for i in range(20)}
    docs = [{"id": name, "vector": v} for name, v in vectors.items()]
    with gpuidx.build(tmp_path / "x.gx", docs[:9], vectors="vector", unit=0.05) as first:
        assert first.info.impact_unit == pytest.approx(0.05)
        gpuidx.Collection.create(tmp_path / "c", [first]).close()
    with gpuidx.Collection(tmp_path / "c") as c:
        assert c.add(docs[9:]) == 11
        assert c.update({"id": "d3", "vector": {"t1": 70}}) == 1
        with pytest.raises(gpuidx.InputError, match="the most of the unit"):
            c.add({"id": "big", "vector": {"t1": 1e6}})
        with pytest.raises((gpuidx.Error, TypeError, ValueError)):
            c.add({"id": "text", "text": "no vector"})
    vectors.pop("d3")
    vectors["d3"] = {"t1": 70}
    with gpuidx.Collection.create(tmp_path / "empty", vectors="vector", unit=tmp_path / "c") as e:
        e.add({"id": name, "vector": v} for name, v in vectors.items())
    with gpuidx.open(tmp_path / "c") as c, gpuidx.open(tmp_path / "empty") as e, \
            gpuidx.build(tmp_path / "whole.gx", None, vectors=vectors, unit=c) as whole:
        for query in ({"t1": 1}, {"t0": 2, "t5": 0.5}, {"t2": 1, "t3": 1, "t4": 3}):
            want = [(h.docno, h.score) for h in whole.search(query, 30)]
            assert len(want) > 2
            assert [(h.docno, h.score) for h in c.search(query, 30)] == want
            assert [(h.docno, h.score) for h in e.search(query, 30)] == want
    for bad in (0, -1, float("nan"), float("inf"), "missing.gx"):
        with pytest.raises((gpuidx.Error, FileNotFoundError)):
            gpuidx.build(tmp_path / "y.gx", None, vectors=vectors, unit=bad)
    with pytest.raises(gpuidx.UsageError, match="of vectors"):
        gpuidx.build(tmp_path / "y.gx", [("1", "text")], unit=1)
