#!/usr/bin/env python3
"""Speed of filtered queries on the CPU engine against the same queries without filters, as a table: 20 forms of
filters, which select 50, 10, 1 and 0.1 % of the documents, a filter of its own in each query.

    tests/bench/filters.py DOCUMENTS.tsv QUERIES.txt DIR [--build=build] [--every=N] [--queries=N] [--rounds=N]
                           [--only=FORM,..]

DOCUMENTS.tsv has the columns id, year, created (a date; documents rise by it), category, categories (separated by
commas), r (0 to 999, at random), title, text; index/MEASURED.md says how arXiv is such a collection. QUERIES.txt: one
a line. The attributes f (double), w (62 bits), m (as r, a tenth missing) and tags (0 to 6 of 1,000) are drawn here,
always the same. DIR gets the documents with them, the index and the query files; what it has already stays.

build/tests/bench_search searches the files and compares every answer with the exhaustive search's. The files of a
form and the queries without filters are timed in turn in each round; each query's fastest round counts. A cell: the
speed against none, and how many times the p99 of none the p99 is; behind a semicolon, from text, plan and filter made
and freed."""

import argparse
import collections
import math
import pathlib
import random
import re
import subprocess
import sys

SHARES = (0.5, 0.1, 0.01, 0.001)
COLUMNS = "id,year,created,category,categories,r,f,w,m,tags,title,text"
TYPES = ("year:int created:date category:keyword categories:keywords r:int f:float w:int m:int "
         "tags:keywords").split()
N_TAGS = (0, 1, 1, 2, 2, 3, 4, 6)  # of documents, each with the same chance


def write_documents(source, out, every):
    rng = random.Random(11)
    with open(source, "rb") as lines, open(out, "wb") as f:
        for number, line in enumerate(lines):
            fields = line.rstrip(b"\n").split(b"\t")
            drawn = (repr(rng.random()), str(rng.getrandbits(62)), str(rng.randrange(1000)), rng.random() < 0.9,
                     ",".join("t%03d" % rng.randrange(1000) for _ in range(rng.choice(N_TAGS))))
            if number % every == 0:
                made = (drawn[0], drawn[1], drawn[2] if drawn[3] else "", drawn[4])
                f.write(b"\t".join(fields[:6] + [x.encode() for x in made] + fields[6:]) + b"\n")


def between(name, low, high):
    return f"{name}:{low}" if low == high else f"{name}:[{low} TO {high}]"


class Filters:
    """Random filters that select about a share of the documents."""

    def __init__(self, documents):
        self.rng = random.Random(5)
        self.dates, self.sets = [], []
        self.category, self.categories = collections.Counter(), collections.Counter()
        with open(documents, "rb") as lines:
            for line in lines:
                fields = line.split(b"\t", 6)
                self.dates.append(fields[2].decode())
                self.category[fields[3].decode()] += 1
                self.sets.append(tuple(sorted(set(fields[4].decode().split(",")))))
                self.categories.update(self.sets[-1])
        self.n = len(self.dates)
        self.sample = self.rng.sample(self.sets, min(20000, self.n))
        self.ranges = {}

    def r(self, p, name="r"):
        width = max(1, round(1000 * min(1, p)))
        low = self.rng.randrange(1000 - width + 1)
        return between(name, low, low + width - 1)

    def f(self, p):
        low = self.rng.random() * (1 - p)
        return f"f:[{low!r} TO {low + p!r}]"

    def w(self, p):
        width = int(2 ** 62 * p)
        low = self.rng.randrange(2 ** 62 - width)
        return f"w:[{low} TO {low + width}]"

    def created(self, p):
        width = int(self.n * p)
        low = self.rng.randrange(self.n - width)
        return between("created", self.dates[low], self.dates[low + width])

    def category_range(self, p):
        """Categories in order, and the documents' share, which is at least p."""
        names, below = sorted(self.category), [0]
        for name in names:
            below.append(below[-1] + self.category[name])
        first = self.rng.randrange(len(names))
        while below[-1] - below[first] < p * self.n:
            first = self.rng.randrange(first) if first else 0
        last = first
        while below[last + 1] - below[first] < p * self.n:
            last += 1
        return between("category", names[first], names[last]), (below[last + 1] - below[first]) / self.n

    def categories_range(self, p):
        names = sorted(self.categories)
        while len(self.ranges.setdefault(p, [])) < 12:
            first = last = self.rng.randrange(len(names))
            share = 0
            while share < 0.8 * p and last < len(names):
                low, high = names[first], names[last]
                share = sum(any(low <= x <= high for x in s) for s in self.sample) / len(self.sample)
                last += 1
            if 0.8 * p <= share <= 1.3 * p or (first == 0 and last == len(names)):
                self.ranges[p].append(between("categories", low, high))
        return self.rng.choice(self.ranges[p])

    def tags(self, p):
        low, high = 0, 1
        for _ in range(40):
            x = (low + high) / 2
            low, high = (x, high) if sum(1 - (1 - x) ** k for k in N_TAGS) / len(N_TAGS) < p else (low, x)
        width = max(1, round(1000 * low))
        first = self.rng.randrange(1000 - width + 1)
        return between("tags", f"t{first:03d}", f"t{first + width - 1:03d}")

    def one(self, counts, p, least, most):
        """A value that so many times p of the documents have; else the most frequent one."""
        known = [x for x in counts if least * p <= counts[x] / self.n <= most * p]
        return self.rng.choice(known) if known else max(counts, key=counts.get)

    def category_and_r(self, p):
        if p >= 0.1:
            text, share = self.category_range(math.sqrt(p) if p < 0.5 else 0.75)
        else:
            x = self.one(self.category, p, 1.25, 50)
            text, share = f"category:{x}", self.category[x] / self.n
        return f"{text} AND {self.r(p / share)}"

    def categories_and_r(self, p):
        if p >= 0.1:
            part = math.sqrt(p) if p < 0.5 else 0.7
            return f"{self.categories_range(part)} AND {self.r(part)}"
        x = self.one(self.categories, p, 1.25, 50)
        return f"categories:{x} AND {self.r(p * self.n / self.categories[x])}"

    def or_categories(self, p):
        known = [x for x in self.category if self.category[x] <= p * self.n]
        self.rng.shuffle(known)
        n, out = 0, []
        for x in known:
            if n + self.category[x] <= 1.2 * p * self.n and len(out) < 6:
                out.append(f"category:{x}")
                n += self.category[x]
        return " OR ".join(out) or f"category:{min(self.category, key=self.category.get)}"

    def forms(self):
        """Name, what the table shows, and what makes a filter of a share."""
        root, part = math.sqrt, lambda p: max(p / 2, 0.001)
        return (
            ("r", "`r:[a TO b]`", self.r),
            ("created", "`created:[x TO y]`", self.created),
            ("m", "`m:[a TO b]`, of which a tenth is missing", lambda p: self.r(p / 0.9, "m")),
            ("f", "`f:[x TO y]`, doubles", self.f),
            ("w", "`w:[x TO y]`, 8 bytes", self.w),
            ("category", "`category:[x TO y]`", lambda p: self.category_range(p)[0]),
            ("category_and_r", "`category:x AND r:[a TO b]`", self.category_and_r),
            ("created_and_r", "`created:[x TO y] AND r:[a TO b]`",
             lambda p: f"{self.created(root(p))} AND {self.r(root(p))}"),
            ("and_not", "`r:[a TO b] AND NOT category:x`",
             lambda p: f"{self.r(1.05 * p)} AND NOT category:{self.one(self.category, 0.03, 0.5, 2)}"),
            ("not_r", "`NOT r:[a TO b]`", lambda p: f"NOT {self.r(1 - p)}"),
            ("or_categories", "`category:x OR category:y OR ..`", self.or_categories),
            ("r_or_m", "`r:[a TO b] OR m:[c TO d]`", lambda p: f"{self.r(part(p))} OR {self.r(p / 2, 'm')}"),
            ("r_or_f", "`r:[a TO b] OR f:[x TO y]`", lambda p: f"{self.r(part(p))} OR {self.f(p / 2)}"),
            ("or3", "`created:.. OR r:.. OR w:..`",
             lambda p: f"{self.created(p / 3)} OR {self.r(p / 3)} OR {self.w(p / 3)}"),
            ("and_or", "`r:.. AND (f:.. OR w:..)`",
             lambda p: f"{self.r(root(p))} AND ({self.f(root(p) / 2)} OR {self.w(root(p) / 2)})"),
            ("categories", "`categories:x`",
             lambda p: f"categories:{self.one(self.categories, p, 0.5, 2)}" if p < 0.2 else self.categories_range(p)),
            ("categories_range", "`categories:[x TO y]`", self.categories_range),
            ("categories_and_r", "`categories:x AND r:[a TO b]`", self.categories_and_r),
            ("tags", "`tags:[x TO y]`", self.tags),
            ("tags_or_r", "`tags:[x TO y] OR r:[a TO b]`", lambda p: f"{self.tags(p / 2)} OR {self.r(part(p))}"),
        )


class Bench:
    def __init__(self, args):
        self.args = args
        self.dir = pathlib.Path(args.dir)

    def prepare(self):
        self.dir.mkdir(exist_ok=True)
        documents, index = self.dir / "filters.tsv", self.dir / "filters.gx"
        if not documents.exists():
            part = self.dir / "part.tsv"
            write_documents(self.args.documents, part, self.args.every)
            part.rename(documents)
        if not index.exists():
            attributes = [x for t in TYPES for x in ("--attr", t)]
            subprocess.run([f"{self.args.build}/tools/gpuidx", "build", documents, f"--columns={COLUMNS}", *attributes,
                            "-o", index], check=True)
        queries = [x.strip() for x in open(self.args.queries_file, encoding="utf-8") if x.strip()]
        random.Random(5).shuffle(queries)
        return Filters(documents), queries[: self.args.queries]

    def write(self, name, queries, make=None):
        lines = [f"{q}\t{make()}\n" if make else f"{q}\n" for q in queries]
        (self.dir / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")

    def time(self, names, n):
        """Time files of n queries; returns of each its mean and p99, in microseconds, of the plan and from text."""
        times = self.dir / "times"
        done = subprocess.run([f"{self.args.build}/tests/bench_search", self.dir / "filters.gx",
                               ",".join(str(self.dir / f"{name}.tsv") for name in names), "or", "10", str(n),
                               str(self.args.rounds), str(2 ** 64 - 1), times], capture_output=True, text=True)
        if done.returncode or len(re.findall(r"\b0 wrong", done.stdout)) != len(names):
            sys.exit(f"{names}: {done.stdout}{done.stderr}")
        columns = list(zip(*([float(x) for x in line.split()] for line in times.read_text().splitlines())))
        of = [[c[at:at + n] for c in columns] for at in range(0, len(columns[0]), n)]
        return [[(sum(x) / n, sorted(x)[n * 99 // 100]) for x in c] for c in of]

    def run(self):
        filters, queries = self.prepare()
        self.write("none", queries)
        print("| filters | " + " | ".join(f"{100 * p:g} %" for p in SHARES) + " | none, us: mean, p99 |")
        print("| --- " * 6 + "|")
        for name, title, make in filters.forms():
            for p in SHARES:
                self.write(f"{name}.{p}", queries, lambda: make(p))
            if self.args.only and name not in self.args.only.split(","):
                continue
            none, *timed = self.time(["none"] + [f"{name}.{p}" for p in SHARES], len(queries))
            cells = ["; ".join(f"{a[0] / b[0]:.2f}, {b[1] / a[1]:.1f}" for a, b in zip(none, of)) for of in timed]
            cells.append("; ".join("%.1f, %.0f" % a for a in none))
            print(f"| {title} | " + " | ".join(cells) + " |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("documents")
    p.add_argument("queries_file")
    p.add_argument("dir")
    p.add_argument("--build", default="build")
    p.add_argument("--every", type=int, default=1, help="take each N-th document")
    p.add_argument("--queries", type=int, default=1000)
    p.add_argument("--rounds", type=int, default=12)
    p.add_argument("--only", default="")
    Bench(p.parse_args()).run()


if __name__ == "__main__":
    main()
