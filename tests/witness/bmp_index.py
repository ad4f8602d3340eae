"""Write an index of BMP (pip's bmp 0.2.8) from ds2i's files, byte for byte what its ciff2bmp writes.

ciff2bmp needs 7 to 10 KB of memory a document and one thread; this takes ranges of documents and of terms by all
processors, 2 GB of memory each. The dictionary of the terms is the one part that BMP itself makes, from a collection of
one document in which each term occurs once.

The file is bincode's: numbers of 8 bytes, before a vector its length. The number of documents; of each term the
largest weight of each block of documents, all of them or, in superblocks of 256, those above 0 with their places, and
its 10th, 100th and 1,000th weight; the dictionary; the names of the documents; then of each block its terms, and of
each term the places in the block and the weights.
"""
import functools
import multiprocessing
import os
import shutil

import numpy as np

SUPERBLOCK = 256  # blocks


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def message(*fields):
    """A protobuf message, with its length, of (number of the field, value): numbers and bytes."""
    body = b"".join(varint(8 * f) + varint(v) if isinstance(v, int) else varint(8 * f + 2) + varint(len(v)) + v
                    for f, v in fields)
    return varint(len(body)) + body


def dictionary(terms, stem):
    """The bytes of BMP's dictionary of the terms, in their order."""
    from bmp import ciff2bmp
    with open(stem + ".ciff", "wb") as file:
        file.write(message((1, 1), (2, len(terms)), (3, 1), (4, len(terms)), (5, 1), (6, len(terms))))
        for term in terms:
            file.write(message((1, term.encode()), (2, 1), (3, 1), (4, message((1, 0), (2, 1))[1:])))
        file.write(message((1, 0), (2, b"0"), (3, len(terms))))
    ciff2bmp(ciff_file=stem + ".ciff", output=stem + ".one", bsize=8, compress_range=False)
    data = open(stem + ".one", "rb").read()
    at = 16 + len(terms) * (4 + 8 + 1 + 8 + 3)  # one block a list, and three weights
    size = int.from_bytes(data[at:at + 8], "little")
    for end in ".ciff", ".one":
        os.unlink(stem + end)
    return data[at:at + 8 + size]


class Lists:
    """The lists of ds2i's files, which are mapped."""

    def __init__(self, stem):
        self.docs, self.freqs = (np.memmap(stem + end, dtype="<u4", mode="r") for end in (".docs", ".freqs"))
        self.n_documents, self.at, self.size = int(self.docs[1]), [], []
        at = 2
        while at < len(self.docs):
            self.at.append(at + 1)
            self.size.append(int(self.docs[at]))
            at += 1 + self.size[-1]

    def __getitem__(self, term):
        docs_at, size = self.at[term], self.size[term]
        # .freqs has no two numbers at its beginning
        return self.docs[docs_at:docs_at + size], self.freqs[docs_at - 2:docs_at - 2 + size]


lists_of = functools.lru_cache(Lists)


def u64(n):
    return int(n).to_bytes(8, "little")


def list_bytes(docs, weights, n_documents, block, sparse):
    """A list's largest weights and its three weights."""
    maxima = np.zeros(-(-n_documents // block), np.uint8)
    if len(docs):
        blocks = docs // block
        first = np.flatnonzero(np.diff(blocks, prepend=blocks[0] + 1 & 0xffffffff))
        maxima[blocks[first]] = np.maximum.reduceat(weights, first)
    ordered = np.sort(weights)[::-1]
    tail = u64(3) + bytes(int(ordered[k - 1]) if k <= len(ordered) else 0 for k in (10, 100, 1000))
    if not sparse:
        return (1).to_bytes(4, "little") + u64(len(maxima)) + maxima.tobytes() + tail
    places = np.flatnonzero(maxima)
    n_super = -(-len(maxima) // SUPERBLOCK)
    # of each superblock 8 bytes, of each weight 9
    counts = np.bincount(places // SUPERBLOCK, minlength=n_super)
    out = np.zeros(8 * n_super + 9 * len(places), np.uint8)
    begin = 8 * np.arange(n_super) + 9 * (np.cumsum(counts) - counts)
    out[begin], out[begin + 1] = counts & 255, counts >> 8
    at = 8 * (places // SUPERBLOCK + 1) + 9 * np.arange(len(places))
    out[at], out[at + 8] = places % SUPERBLOCK, maxima[places]
    return (0).to_bytes(4, "little") + u64(n_super) + out.tobytes() + tail


def write_lists(stem, begin, end, block, sparse, path):
    lists = lists_of(stem)
    with open(path, "wb") as file:
        for term in range(begin, end):
            docs, weights = lists[term]
            file.write(list_bytes(np.asarray(docs), np.asarray(weights).astype(np.uint8), lists.n_documents, block,
                                  sparse))


def write_blocks(stem, begin, end, block, path):
    """The blocks of documents begin to end - 1, which are at most 65,536."""
    lists = lists_of(stem)
    terms, docs, weights = [], [], []
    for term in range(len(lists.at)):
        of, w = lists[term]
        part = slice(*np.searchsorted(of, (begin, end)))
        docs.append(of[part] - np.uint32(begin))
        weights.append(w[part].astype(np.uint8))
        terms.append(np.full(len(docs[-1]), term, np.uint16))
    docs, weights, terms = map(np.concatenate, (docs, weights, terms))
    order = np.argsort((docs // block).astype(np.uint16), kind="stable")
    docs, weights, terms = docs[order], weights[order], terms[order]
    blocks = docs // block
    n_blocks = -(-(end - begin) // block)
    # an entry: 2 bytes for the term, 8 for the number of its postings, 2 for each of them
    opens = np.ones(len(docs), bool)
    opens[1:] = (blocks[1:] != blocks[:-1]) | (terms[1:] != terms[:-1])
    first = np.flatnonzero(opens)
    counts = np.diff(first, append=len(docs))
    entries = np.bincount(blocks[first], minlength=n_blocks)
    at = 8 * (blocks[first].astype(np.int64) + 1) + 10 * np.arange(len(first)) + 2 * first
    out = np.zeros(8 * n_blocks + 10 * len(first) + 2 * len(docs), np.uint8)
    postings = np.repeat(at + 10 - 2 * first, counts) + 2 * np.arange(len(docs))
    out[at], out[at + 1], out[at + 2] = terms[first] & 255, terms[first] >> 8, counts
    out[postings], out[postings + 1] = docs % block, weights
    before = np.cumsum(entries) - entries  # of each block, entries before it
    head = 8 * np.arange(n_blocks) + 10 * before + 2 * np.append(first, len(docs))[before]
    out[head], out[head + 1] = entries & 255, entries >> 8
    out.tofile(path)


def append(file, path):
    with open(path, "rb") as part:
        shutil.copyfileobj(part, file, 1 << 24)
    os.unlink(path)


def write_index(stem, path, block, sparse, processes=None):
    """stem: how ds2i's files begin; block: documents of a block, at most 255; sparse: only weights above 0."""
    with open(stem + ".terms", encoding="utf-8") as lines:
        terms = lines.read().split("\n")[:-1]
    with open(stem + ".documents", "rb") as lines:
        documents = lines.read().split(b"\n")[:-1]
    n, step = len(documents), 65536 // block * block
    parts = [(i, min(i + 512, len(terms))) for i in range(0, len(terms), 512)]
    ranges = [(i, min(i + step, n)) for i in range(0, n, step)]
    whole = path + ".new"
    with multiprocessing.Pool(processes) as pool, open(whole, "wb") as file:
        file.write(u64(n) + u64(len(terms)))
        made = [pool.apply_async(write_lists, (stem, *p, block, sparse, "%s.l%d" % (path, p[0]))) for p in parts]
        made += [pool.apply_async(write_blocks, (stem, *r, block, "%s.b%d" % (path, r[0]))) for r in ranges]
        for job, (begin, _) in zip(made, parts):
            job.get()
            append(file, "%s.l%d" % (path, begin))
        file.write(dictionary(terms, path) + u64(n) + b"".join(u64(len(d)) + d for d in documents))
        file.write(u64(len(ranges) and -(-n // block)))
        for job, (begin, _) in zip(made[len(parts):], ranges):
            job.get()
            append(file, "%s.b%d" % (path, begin))
        file.write(u64(block))
    os.replace(whole, path)
