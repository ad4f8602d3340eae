#!/usr/bin/env python3
"""A second reader of index files, written from index/FORMAT.md alone and sharing no code with the first.

    second_reader.py FILE        print every list
    second_reader.py --test DIR  read DIR/example.gx and DIR/blocks.gx and compare with what is in them

Checksums and the hash table are checked where the module xxhash is installed, texts are not read.
"""
import struct
import sys

try:
    import xxhash
    xxh3 = xxhash.xxh3_64_intdigest
except ImportError:
    xxh3 = None


def packed(words, n):
    b = 32 if len(words) >= n else 32 * len(words) // n
    row = int.from_bytes(struct.pack(f"<{len(words)}I", *words), "little")
    return [row >> i * b & (1 << b) - 1 for i in range(n)]


def byte_lengths(words, n):
    if not words:
        return [0] * n
    n_selectors = (n + 15) // 16
    data = struct.pack(f"<{len(words) - n_selectors}I", *words[n_selectors:])
    values, at = [], 0
    for i in range(n):
        size = (words[i // 16] >> 2 * (i % 16) & 3) + 1
        values.append(int.from_bytes(data[at:at + size], "little"))
        at += size
    return values


def lanes(words, n):
    return packed(words, n) if n < 1024 else [v for lane in range(32) for v in packed(words[lane::32], 32)]


CODECS = {1: lambda words, n: list(words), 2: packed, 3: packed, 4: byte_lengths, 5: byte_lengths, 6: lanes}


class Index:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.file = f.read()
        (magic, version, header_bytes, self.uuid, file_bytes, n_sections, self.block_len, self.n_docs, self.n_terms,
         self.n_postings, self.n_tokens, self.sum_tfs, self.n_blocks, _, _) = struct.unpack_from("<8sII16sQIIIIQQQQQQ", self.file)
        assert magic == b"\x89GPUIDX\n" and version == 1 and header_bytes == 256 and file_bytes == len(self.file)
        self.codings = [tuple(self.file[104 + 2 * i:106 + 2 * i]) for i in range(16)]
        table = self.file[256:256 + 64 * n_sections]
        if xxh3:
            assert struct.unpack_from("<Q", self.file, 248)[0] == xxh3(self.file[:248] + bytes(8) + table)
        self.sections = {}
        end = 256 + len(table)
        for i in range(n_sections):
            kind, _, offset, size, checksum, param = struct.unpack_from("<4sIQQQQ", table, 64 * i)
            assert offset == -(-end // 256) * 256 and not any(self.file[end:offset])
            end = offset + size
            self.sections[kind.decode()] = (self.file[offset:end], param)
            assert not xxh3 or checksum == xxh3(self.file[offset:end])
        assert end == len(self.file)
        self.heads, self.docid_ends, self.tf_ends, self.payload, self.doc_lens = (
            self.words(kind) for kind in ("HEAD", "DEND", "TEND", "PAYL", "DLEN"))
        self.terms = self.strings("TERM", self.n_terms)
        self.doc_ids = self.strings("DIDS", self.n_docs)
        self.titles = self.strings("TITL", self.n_docs) if "TITL" in self.sections else []

    def words(self, kind):
        data = self.sections[kind][0]
        return struct.unpack(f"<{len(data) // 4}I", data)

    def strings(self, kind, n):
        data, width = self.sections[kind]
        offsets = struct.unpack_from(f"<{n + 1}{'I' if width == 4 else 'Q'}", data)
        data = data[(n + 1) * width:]
        assert offsets[0] == 0 and offsets[n] == len(data)
        return [data[a:b].decode() for a, b in zip(offsets, offsets[1:])]

    def postings(self, term_id):
        df, first, lo, hi, coding, _, _ = struct.unpack_from("<IIIBBBB", self.sections["LIST"][0], 16 * term_id)
        words = self.payload[hi << 32 | lo:]
        m = -(-df // self.block_len)
        docids, tfs = [], []
        for j in range(m):
            n = self.block_len if j + 1 < m else df - j * self.block_len
            begin = self.docid_ends[first + j - 1] if j else 0
            gaps = CODECS[self.codings[coding][0]](words[begin:self.docid_ends[first + j]], n)
            assert gaps[0] == 0
            docids.append(self.heads[first + j])
            for gap in gaps[1:]:
                docids.append(docids[-1] + gap + 1)
            begin = self.tf_ends[first + j - 1] if j else self.docid_ends[first + m - 1]
            tfs += [v + 1 for v in CODECS[self.codings[coding][1]](words[begin:self.tf_ends[first + j]], n)]
        return list(zip(docids, tfs))

    def find(self, term):
        slots, bits = self.words("THSH"), self.sections["THSH"][1]
        slot = xxh3(term.encode()) % (1 << bits)
        while slots[slot] and self.terms[slots[slot] - 1] != term:
            slot = (slot + 1) % (1 << bits)
        return slots[slot] - 1


def check(index, lists):
    assert index.terms == sorted(lists)
    lens = [0] * index.n_docs
    for term_id, term in enumerate(index.terms):
        postings = index.postings(term_id)
        assert postings == lists[term], term
        assert not xxh3 or index.find(term) == term_id
        for docid, tf in postings:
            lens[docid] += tf
    assert list(index.doc_lens) == lens and index.n_tokens == index.sum_tfs == sum(lens)
    assert index.n_postings == sum(len(postings) for postings in lists.values())
    assert not xxh3 or index.find("absent") == -1


def blocks():
    """What tests/test_index_golden.c puts into blocks.gx."""
    lists = {}
    for t in range(4):
        docid, postings = t, []
        while docid < 600:
            postings.append((docid, 1 + docid % (t + 2) + (70000 if docid == 300 else 0)))
            docid += t + 1 + (t > 0 and docid % 7 == 0)
        lists[f"every-{t + 1}"] = postings
    return lists


if sys.argv[1] == "--test":
    example = Index(sys.argv[2] + "/example.gx")
    check(example, {"be": [(0, 2)], "do": [(1, 1)], "not": [(0, 1), (1, 1)], "or": [(0, 1)], "to": [(0, 2)]})
    assert example.doc_ids == ["d0", "d1"] and example.titles == ["Hamlet", ""]
    check(Index(sys.argv[2] + "/blocks.gx"), blocks())
    print("both files hold what they should" + ("" if xxh3 else "; no module xxhash, so checksums were not checked"))
else:
    whole = Index(sys.argv[1])
    for i, name in enumerate(whole.terms):
        print(name, *(f"{docid}:{tf}" for docid, tf in whole.postings(i)))
