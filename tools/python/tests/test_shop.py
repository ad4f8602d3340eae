"""The shop among the examples: its pages, against a brute force over its products."""
import collections
import importlib.util
import math
import os
import subprocess
import sys

import pytest

EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "examples", "shop.py")
SEED, N = 7, 3000


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("shop", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["shop"] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    yield module
    del sys.modules["shop"]


@pytest.fixture(scope="module")
def products(example):
    return {p["id"]: p for p in example.make_products(N, SEED)}


@pytest.fixture(scope="module")
def shop(example, products, tmp_path_factory):
    with example.opened(str(tmp_path_factory.mktemp("shop") / "shop.gx"), N, SEED) as index:
        yield example.Shop(index)


def values(product, name):
    value = product[name]
    return [str(v) for v in (value if isinstance(value, list) else [] if value is None else [value])]


def fits(product, request, without=None):
    """Whether a product meets all that is asked for, but for the check boxes of the attribute `without`."""
    has = (product["title"] + " " + product["text"]).replace(",", " ").split()
    if not all(word in has for word in request.words.split()):
        return False
    for name in {name for name, _ in request.checked} - {without}:
        if not any((name, value) in request.checked for value in values(product, name)):
            return False
    return request.price is None or (
        product["price"] is not None and request.price[0] <= product["price"] <= request.price[1])


def key_of(product, sort):
    number = int(product["id"][1:])
    rating = (product["rating"] is None, -(product["rating"] or 0))
    price, missing = product["price"] or 0, product["price"] is None
    return {"price": (missing, price, number), "price-desc": (missing, -price, number),
            "rating": (*rating, number), "newest": (-product["year"], *rating, number)}[sort]


ASKED = [
    {}, {"words": "wireless headphone"}, {"words": "lamp"}, {"words": "nothing of that"}, {"price": (10.0, 50.5)},
    {"checked": (("brand", "acme"),)},
    {"checked": (("brand", "elgin & sons"), ("brand", 'k "one"'), ("tags", "new in"))},
    {"words": "classic", "checked": (("category", "toys"), ("category", "books"), ("year", "2025")),
     "price": (5.0, 30.0)},
    {"checked": (("brand", "no such brand"),)},
    {"words": "silent", "checked": (("tags", "sale"), ("tags", "gift")), "price": (1e9, 2e9)},
]


@pytest.mark.parametrize("sort", ["relevance", "recommended", "rating", "price", "price-desc", "newest"])
@pytest.mark.parametrize("asked", ASKED)
def test_pages_of_the_shop_have_every_product_once(example, shop, products, asked, sort):
    request = example.Request(sort=sort, size=97, **asked)
    want = [p for p in products.values() if fits(p, request)]
    assert len(want) or asked in (ASKED[3], ASKED[8], ASKED[9])
    seen, pages, page = [], 0, None
    while page is None or page.next is not None:
        page = shop.page(request)
        assert page.first == len(seen) and page.matches == len(want)
        assert [h.rank for h in page.products] == list(range(len(seen) + 1, len(seen) + len(page.products) + 1))
        seen += page.products
        pages += 1
        if pages == 1 or page.next is None:
            check_figures(example, page, products, request, want)
        request = example.dataclasses.replace(request, after=page.next)
    assert pages == max(1, math.ceil(len(want) / 97))
    assert sorted(h.docno for h in seen) == sorted(p["id"] for p in want)
    for hit in seen[:200]:
        product = dict(products[hit.docno], tags=sorted(products[hit.docno]["tags"]))
        assert hit.attributes == {n: product[n] for n in example.ATTRIBUTES if product[n] not in (None, [])}
    by_score = "words" in asked and sort in ("relevance", "recommended")
    if not by_score:
        by = "rating" if sort in ("relevance", "recommended") else sort
        order = [key_of(products[h.docno], by)[:-1] for h in seen]
        assert order == sorted(order)
        if "words" not in asked:  # then equal products come as they were made
            assert [h.docno for h in seen] == [p["id"] for p in sorted(want, key=lambda p: key_of(p, by))]
    elif seen:
        scores = shop.index.score(asked["words"], [h.docno for h in seen], op="and").tolist()
        if sort == "recommended":
            ratings = [products[h.docno]["rating"] or 0 for h in seen]
            scores = [s + 0.5 * r / (r + 3) for s, r in zip(scores, ratings)]
        assert [h.score for h in seen] == pytest.approx(scores, abs=1e-5)
        assert all(a.score >= b.score for a, b in zip(seen, seen[1:]))


def check_figures(example, page, products, request, want):
    """The counts of the check boxes, and the figures of the prices."""
    for name in example.BOXES:
        counts = collections.Counter(v for p in products.values() if fits(p, request, name) for v in values(p, name))
        checked = {value for n, value in request.checked if n == name}
        order = sorted(counts, key=lambda v: v if name == "year" else (-counts[v], v))
        shown = [v for i, v in enumerate(order) if i < example.N_BOXES or v in checked] + sorted(checked - set(counts))
        assert [(str(v), n, is_set) for v, n, is_set in page.boxes[name]] == [
            (v, counts[v], v in checked) for v in shown]
    prices = [p["price"] for p in want if p["price"] is not None]
    assert page.prices["n"] == len(prices)
    assert (page.prices["min"], page.prices["max"]) == (min(prices, default=None), max(prices, default=None))
    assert page.prices["avg"] == (pytest.approx(math.fsum(prices) / len(prices)) if prices else None)


def test_the_shop_prints_pages(products, tmp_path):
    def call(*arguments, code=0):
        done = subprocess.run([sys.executable, EXAMPLE, "--index", str(tmp_path / "shop.gx"), "--products", "500",
                               "--size", "5", *arguments], capture_output=True, text=True)
        assert done.returncode == code and "Traceback" not in done.stderr, done
        return done.stdout if code == 0 else done.stderr

    first = call("--sort", "price", "--check", "brand=acme")
    assert " products" in first.split("\n")[0] and "[x] acme (" in first and "\n    5. acme" in first
    cursor = first.strip().rpartition("--after ")[2]
    assert "\n    6. acme" in call("--sort", "price", "--check", "brand=acme", "--after", cursor)
    assert "--after" in call("wireless", "--sort", "recommended")
    assert "0 products for nothing of that" in call("nothing", "of", "that")
    assert "another query" in call("--sort", "price", "--after", cursor, code=1)
    assert "this is no cursor" in call("wireless", "--sort", "recommended", "--after=-5!", code=1)
    assert "another query" in call("wireless", "--sort", "recommended", "--after=" + cursor, code=1)
    assert "invalid choice" in call("--sort", "beauty", code=2)
    for bad in ("brand", "brand=", "price=3", "=acme"):
        assert "is not NAME=VALUE" in call("--check", bad, code=2)
    assert " of processor time a page; the bar of 1.0 ms is " in call("--bench")
