#!/usr/bin/env python3
"""A page of a shop: products by words or by check boxes with counts, figures of prices, an order, the next page.

    shop.py [WORDS...] [--check brand=acme] [--price 20 80] [--sort price] [--after CURSOR]
    shop.py --bench                  # the time that a page takes

The products are made: the same seed gives the same shop. `--index` keeps the index for the next call.
"""
import argparse
import collections
import contextlib
import dataclasses
import os
import random
import statistics
import sys
import tempfile
import time
from typing import Dict, List, Optional, Tuple

import gpuidx

ATTRIBUTES = {"price": "float", "brand": "keyword", "category": "keyword", "year": "int", "rating": "float",
              "tags": "keywords"}
BOXES = {"brand": "brand:all", "category": "category:all", "year": "year:all:order=value", "tags": "tags:all"}
N_BOXES = 8  # of an attribute; those that are set are shown besides
SORTS = {"relevance": "", "recommended": "", "rating": "rating:desc", "price": "price", "price-desc": "price:desc",
         "newest": "year:desc,rating:desc"}
PRIOR = "rating:w=0.5,form=sat,half=3"  # recommended: of two products that fit as well, the better rated one
BAR_MS = 1.0  # most time that a page may take on one core

CATEGORIES = {  # names of things, and about what one costs
    "audio": (["headphone", "speaker", "turntable", "microphone"], 90),
    "bikes": (["bicycle", "helmet", "saddle", "pump"], 160),
    "books": (["novel", "atlas", "cookbook", "dictionary"], 18),
    "cameras": (["camera", "lens", "tripod", "flash"], 340),
    "computers": (["laptop", "keyboard", "monitor", "printer"], 420),
    "garden": (["spade", "hose", "lantern", "mower"], 45),
    "kitchen": (["kettle", "toaster", "pan", "blender"], 55),
    "lamps": (["lamp", "candle", "bulb", "torch"], 30),
    "shoes": (["sandal", "boot", "sneaker", "slipper"], 75),
    "toys": (["puzzle", "robot", "kite", "drum"], 22),
}
BRANDS = ["acme", "borealis", "cobalt", "dunmore", "elgin & sons", "fjord", "granit", "halcyon", "indigo", "juniper",
          'k "one"', "lumen", "mistral", "nimbus", "orchard", "pinnacle"]
TAGS = ["bestseller", "eco", "gift", "handmade", "new in", "outlet", "refurbished", "sale", "used", "vegan"]
KINDS = ["compact", "silent", "heavy", "folding", "classic", "wireless", "robust", "bright", "portable", "vintage"]
COLOURS = ["black", "white", "red", "green", "blue", "silver", "yellow", "brown"]
USES = ["home", "travel", "office", "children", "winter", "summer", "beginner", "expert"]


def make_products(n, seed=1):
    """Dicts of n products: id, title, text, and a value for most attributes."""
    rng = random.Random(seed)
    names = list(CATEGORIES)
    often = [1 / (1 + i) for i in range(len(BRANDS))]
    for i in range(n):
        category = names[int(len(names) * rng.random() ** 1.5)]
        things, about = CATEGORIES[category]
        thing, brand = rng.choice(things), rng.choices(BRANDS, often)[0]
        kind, colour, use = rng.choice(KINDS), rng.choice(COLOURS), rng.choice(USES)
        product = {
            "id": "p%d" % i,
            "title": "%s %s %s %d" % (brand, kind, thing, rng.randrange(100, 1000)),
            "text": "a %s %s %s for the %s, %s too" % (colour, kind, thing, use, rng.choice(USES)),
            "price": round(about * rng.lognormvariate(0, 0.7), 2),
            "brand": brand, "category": category, "year": 2026 - int(rng.expovariate(0.5)) % 12,
            "rating": round(min(5, max(1, rng.gauss(3.8, 0.7))), 1) if rng.random() < 0.9 else None,
            "tags": rng.sample(TAGS, rng.choice((0, 1, 1, 2, 3))),
        }
        if rng.random() < 0.01:
            product["price"] = None  # ask for it
        yield product


@dataclasses.dataclass(frozen=True)
class Request:
    """What a customer asks for."""

    words: str = ""                             # without words all products are shown
    checked: Tuple[Tuple[str, str], ...] = ()   # (attribute, value) of each check box that is set
    price: Optional[Tuple[float, float]] = None
    sort: str = "relevance"
    after: Optional[str] = None                 # Page.next of the page before
    size: int = 24


@dataclasses.dataclass
class Page:
    first: int                     # products before this page
    matches: int                   # products on all pages
    products: List[gpuidx.Hit]
    boxes: Dict[str, List[Tuple]]  # of each attribute (value, products that there would be, whether it is set)
    prices: Dict                   # n, min, max, avg
    next: Optional[str]            # Request.after of the next page; None: this is the last one


def quote(value):
    """A value as a filter takes it, whatever characters it has."""
    return '"%s"' % value.replace("\\", "\\\\").replace('"', '\\"')


def filter_of(request):
    """One operand of AND for each attribute, which exclude-own can leave out; boxes of one attribute are OR."""
    boxes = collections.defaultdict(list)
    for name, value in request.checked:
        boxes[name].append("%s:%s" % (name, quote(value)))
    parts = ["(%s)" % " OR ".join(conditions) for conditions in boxes.values()]
    if request.price is not None:
        parts.append("price:[%r TO %r]" % request.price)
    return " AND ".join(parts) or None


def boxes_of(counts, checked):
    """[(value, products, whether it is set)] of the check boxes that are shown."""
    shown = [(value, n, str(value) in checked) for value, n in counts.items()]
    there = {str(value) for value in counts}
    return [box for i, box in enumerate(shown) if i < N_BOXES or box[2]] + \
        [(value, 0, True) for value in sorted(checked - there)]


class Shop:
    def __init__(self, index):
        self.index = index

    def page(self, request):
        """One call of the index finds the products, counts the check boxes and takes the figures of the prices."""
        words, checked = request.words.strip(), collections.defaultdict(set)
        for name, value in request.checked:
            checked[name].add(value)
        facets = {name: facet + ":exclude-own" * (name in checked) for name, facet in BOXES.items()}
        arguments = dict(op="and", filter=filter_of(request), count=True, facets=list(facets.values()),
                         sums="price:min:max:avg")
        sort = SORTS[request.sort] or (None if words else "rating:desc")
        prior = PRIOR if request.sort == "recommended" and words else None
        found = self.index.search(words, request.size, sort=sort, prior=prior, after=request.after, cursor=True,
                                  **arguments)
        first, hits, after = found.first, found.hits(), found.cursor
        boxes = {name: boxes_of(found.facets[facet], checked[name]) for name, facet in facets.items()}
        return Page(first, found.matches, hits, boxes, found.sums["price"],
                    after if first + len(hits) < found.matches else None)


def text_of(shop, request, page):
    """The page as lines of text."""
    prices = page.prices
    yield "%d products%s%s" % (page.matches, " for " + request.words if request.words else "", "" if not prices["n"]
                               else ", %.2f to %.2f, on average %.2f" % (prices["min"], prices["max"], prices["avg"]))
    for name, boxes in page.boxes.items():
        yield "  %-9s%s" % (name, "  ".join("[%s] %s (%d)" % (" x"[is_set], value, n) for value, n, is_set in boxes))
    for hit, title in zip(page.products, shop.index.titles(h.docid for h in page.products)):
        has = hit.attributes
        yield "%5d. %-36s %10s  %4s  %d  %s" % (
            hit.rank, title, "%.2f" % has["price"] if "price" in has else "ask us",
            "%.1f*" % has["rating"] if "rating" in has else "", has["year"], ", ".join(has.get("tags", ())))
    if page.next is not None:
        yield "next page: --after %s" % page.next


def bench(shop, seed=2, rounds=40):
    """Print the processor time of pages of several kinds. Each page has words, boxes and an order of its own."""
    rng = random.Random(seed)
    things = [thing for names, _ in CATEGORIES.values() for thing in names]

    def request_of(kind):
        asked = {"sort": rng.choice(list(SORTS))}
        if "words" in kind:
            asked["words"] = "%s %s" % (rng.choice(KINDS), rng.choice(things))
        if "boxes" in kind:
            asked["checked"] = tuple(("brand", b) for b in rng.sample(BRANDS, rng.choice((1, 2))))
            asked["checked"] += (("tags", rng.choice(TAGS)),)
            asked["price"] = (10.0, float(rng.randrange(50, 500)))
        request = Request(**asked)
        return dataclasses.replace(request, after=shop.page(request).next) if "next" in kind else request

    print("%-26s %9s %9s %9s %9s" % ("ms a page, medians", "search", "text", "both", "mean"))
    every = []
    for kind in ("words", "words, next page", "words, boxes", "words, boxes, next page", "boxes", "boxes, next page",
                 "all products", "all products, next page"):
        searching, showing = [], []
        for request in [request_of(kind) for _ in range(rounds)]:
            begin = time.process_time()
            page = shop.page(request)
            found = time.process_time()
            "\n".join(text_of(shop, request, page))
            searching.append(1000 * (found - begin))
            showing.append(1000 * (time.process_time() - found))
        both = [a + b for a, b in zip(searching, showing)]
        every += both
        print("%-26s %9.3f %9.3f %9.3f %9.3f" % (kind, statistics.median(searching), statistics.median(showing),
                                                statistics.median(both), statistics.mean(both)))
    mean = statistics.mean(every)
    print("%d products: %.3f ms of processor time a page; the bar of %.1f ms is %s"
          % (len(shop.index), mean, BAR_MS, "met" if mean <= BAR_MS else "missed"))


@contextlib.contextmanager
def opened(path, n, seed=1):
    """The index at path, which is built where there is none; without a path, of a temporary file."""
    with contextlib.ExitStack() as stack:
        if path is None:
            path = os.path.join(stack.enter_context(tempfile.TemporaryDirectory()), "shop.gx")
        if not os.path.exists(path):
            gpuidx.build(path, make_products(n, seed), attributes=ATTRIBUTES).close()
        yield stack.enter_context(gpuidx.open(path, engine="cpu"))


def check_box(text):
    name, equals, value = text.partition("=")
    if name not in BOXES or not equals or not value:
        raise argparse.ArgumentTypeError("%r is not NAME=VALUE with a name of %s" % (text, ", ".join(BOXES)))
    return name, value


def main(given):
    price = tuple(given.price) if given.price else None
    request = Request(" ".join(given.words), tuple(given.check), price, given.sort, given.after, given.size)
    with opened(given.index, given.products) as index:
        shop = Shop(index)
        if given.bench:
            bench(shop)
            return
        try:
            for line in text_of(shop, request, shop.page(request)):
                print(line)
        except ValueError as e:  # a cursor of another search, an index that is no shop's
            sys.exit("shop.py: %s" % e)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("words", metavar="WORDS", nargs="*", help="all of them are in a product; none: all products")
    parser.add_argument("--check", metavar="NAME=VALUE", type=check_box, action="append", default=[],
                        help="set a check box; several of one name: any of them")
    parser.add_argument("--price", metavar=("LOW", "HIGH"), type=float, nargs=2, help="only prices from LOW to HIGH")
    parser.add_argument("--sort", choices=list(SORTS), default="relevance", help="the order (%(default)s)")
    parser.add_argument("--after", metavar="CURSOR", help="the page behind the one that gave this cursor")
    parser.add_argument("--size", metavar="N", type=int, default=24, help="products a page (%(default)s)")
    parser.add_argument("--products", metavar="N", type=int, default=200_000, help="products of the shop (%(default)s)")
    parser.add_argument("--index", metavar="PATH", help="open this index; where there is none, keep the new one there")
    parser.add_argument("--bench", action="store_true", help="print the time that a page takes")
    main(parser.parse_args())
