#!/usr/bin/env python3
"""A second reader of index files, written from index/FORMAT.md alone and sharing no code with the first.

    second_reader.py FILE               print every list
    second_reader.py --test DIR GPUIDX  read DIR/example.gx, blocks.gx, attributes.gx, bitmaps.gx and several.gx, and
                                        lists that the program GPUIDX packs with each of its codecs and with auto, and
                                        compare with what is in them

Checksums and the hash table are checked where the module xxhash is installed, texts are not read.
"""
import json
import math
import random
import struct
import subprocess
import sys
import tempfile

try:
    import xxhash
    xxh3 = xxhash.xxh3_64_intdigest
except ImportError:
    xxh3 = None


class Bits:
    """Of words, taken one after another, from the lowest of the first on."""

    def __init__(self, words):
        self.rest = int.from_bytes(struct.pack(f"<{len(words)}I", *words), "little")

    def take(self, n):
        value = self.rest & (1 << n) - 1
        self.rest >>= n
        return value

    def row(self, n, width):
        return [self.take(width) for _ in range(n)]

    def zeros(self):
        """As many as there are before the next one, which is taken too."""
        n = (self.rest & -self.rest).bit_length() - 1
        self.take(n + 1)
        return n

    def set(self, n):
        """The places of those among the next n that are set."""
        return [i for i, bit in enumerate(self.row(n, 1)) if bit]


def row_words(n, width):
    return -(-n * width // 32)


# Each codec's decoder: n integers of a block's words and the list's parameter.

def raw(words, n, _):
    return list(words)


def packed(words, n, _=0):
    return Bits(words).row(n, 32 if len(words) >= n else 32 * len(words) // n)


def byte_lengths(words, n, _):
    n_selectors = -(-n // 16)
    selectors, data = Bits(words[:n_selectors]), Bits(words[n_selectors:])
    return [data.take(8 * (selectors.take(2) + 1)) for _ in range(n)] if words else [0] * n


def lanes(words, n, _):
    return packed(words, n) if n < 1024 else [v for lane in range(32) for v in packed(words[lane::32], 32)]


def with_exceptions(words, n, _):
    if n < 128 or len(words) in (0, 128):
        return packed(words, n)
    b, h, e = Bits([words[-1] >> 17]).row(3, 5)
    values, bits = Bits(words).row(128, b), Bits(words[4 * b:])
    for k, place in enumerate(bits.set(e + 7) if e else []):
        p = 16 * (place - k) + bits.take(4)
        values[p] += bits.take(h) + 1 << b
    return values


SIMPLE9 = "28x1,14x2,9x3,7x4,5x5,4x7,3x9,2x14,1x28"
SIMPLE16 = ("28x1,7x2 14x1,7x1 7x2 7x1,14x1 7x2,14x2,1x4 8x3,1x3 4x4 3x3,7x4,"
            "4x5 2x4,2x4 4x5,3x6 2x5,2x5 3x6,4x7,1x10 2x9,2x14,1x28")
SIMPLE8B = "240x0,120x0,60x1,30x2,20x3,15x4,12x5,10x6,8x7,7x8,6x10,5x12,4x15,3x20,2x30,1x60"


def simple(table, escape=None):
    """escape: the top 12 bits of an escape."""
    layouts = [[[int(x) for x in row.split("x")] for row in layout.split()] for layout in table.split(",")]
    size = 64 if table == SIMPLE8B else 32

    def decode(words, n, _):
        values, more, bits = [] if words else [0] * n, 0, Bits(words)
        for word in bits.row(len(words) * 32 // size, size):
            if word >> size - 12 == escape:
                more = (word & 0xfffff) << 12
                continue
            for count, width in layouts[word >> size - 4]:
                for _ in range(count):
                    values.append((word & (1 << width) - 1) + more)
                    word >>= width
                    more = 0
        return values[:n]
    return decode


def elias_fano(words, n, _):
    if not words:
        return [0] * n
    b = words[0] & 31
    n_high = len(words) - row_words(n, b)
    high, low = Bits(words[:n_high]), Bits(words[n_high:]).row(n, b)
    high.take(5)
    sums = [place - i << b | low[i] for i, place in enumerate(high.set(32 * n_high - 5))]
    return [after - before for before, after in zip([0] + sums, sums)]


def varint(read):
    return lambda words, n, _: read(Bits(words), n, len(words)) if words else [0] * n


def bytes_with_a_flag(data, n, _):
    values = []
    for _ in range(n):
        value, shift, more = 0, 0, 1
        while more:
            value |= data.take(7) << shift
            shift += 7
            more = data.take(1)
        values.append(value)
    return values


def unary_length(data, n, _):
    values = []
    for _ in range(n):
        size = 1
        while data.take(1):
            size += 1
        values.append(data.take(7 * size))
    return values


def binary_length(data, n, n_words):
    return data.row(n, 32) if n_words > n else [data.take(8 * (data.take(2) + 1) - 2) for _ in range(n)]


def groups_of_eight(goes_on):
    def read(data, n, n_words):
        values, value, size = [], 0, 0
        for _ in range(4 * n_words // 9):
            for more in data.row(8, 1):
                value |= data.take(8) << 8 * size
                size += 1
                if not more:
                    values.append(value)
                    value, size = 0, 0
            if not goes_on:
                value, size = 0, 0
        return values[:n]
    return read


def groups_of_four(data, n, _):
    values = []
    while len(values) < n:
        sizes = data.row(4, 2)
        values += [data.take(8 * (size + 1)) for size in sizes[:n - len(values)]]
    return values


def rice(words, n, b):
    if len(words) in (0, n):
        return packed(words, n)
    low, ones = Bits(words).row(n, b), Bits(words[row_words(n, b):])
    return [ones.zeros() << b | v for v in low]


def pfordelta(words, n, b):
    r = row_words(n, b)
    if len(words) in (0, n):
        return packed(words, n)
    values = Bits(words).row(n, b)
    if len(words) > r:
        bits = Bits(words[r:])
        e, g, a, ge, gh, ae, ah, _ = (bits.take(size) for size in (7, 3, 5, 4, 3, 4, 5, 1))
        e += 1
        gaps, highs = bits.row(e, g), bits.row(e, a)
        for slots, width, n_more, more_bits in (gaps, g, ge, gh), (highs, a, ae, ah):
            for _ in range(n_more):
                place = bits.take(7)
                slots[place] += bits.take(more_bits) + 1 << width
        p = -1
        for gap, high in zip(gaps, highs):
            p += 1 + gap
            values[p] += high + 1 << b
    return values


CODECS = {1: raw, 2: packed, 3: packed, 4: byte_lengths, 5: byte_lengths, 6: lanes, 7: with_exceptions,
          16: simple(SIMPLE9, 0x900), 17: simple(SIMPLE16, 0xfff), 18: simple(SIMPLE8B), 19: elias_fano,
          24: varint(bytes_with_a_flag), 25: varint(unary_length), 26: varint(groups_of_eight(False)),
          27: varint(groups_of_eight(True)), 28: varint(binary_length), 29: varint(groups_of_four), 32: rice,
          33: pfordelta}


IMPACTS, UNIT, POSITIONS, FIELDS = 1, 2, 4, 8  # the header's flags: tfs are impacts, with a unit; there are ..
REQUIRED = 1  # a section's
KINDS = ("PAYL LIST HEAD DEND TEND DLEN META TERM THSH DIDS TITL TEXT ATTR ATTV ATTS ATTB UNIT POSN PEND PLEN "
         "FLDS").split()
TYPES = {1: "int", 2: "float", 3: "date", 4: "keyword", 5: "keywords", 6: "bool"}  # of attributes


class Index:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.file = f.read()
        (magic, version, header_bytes, self.uuid, file_bytes, n_sections, self.block_len, self.n_docs, self.n_terms,
         self.n_postings, self.n_tokens, self.sum_tfs, self.n_blocks, _, _) = struct.unpack_from("<8sII16sQIIIIQQQQQQ",
                                                                                                 self.file)
        assert magic == b"\x89GPUIDX\n" and version == 1 and header_bytes == 256 and file_bytes == len(self.file)
        self.flags, zero, unit, *reserved = struct.unpack_from("<IId24I", self.file, 136)
        assert self.flags in (0, IMPACTS, IMPACTS | UNIT, POSITIONS, FIELDS, POSITIONS | FIELDS)
        assert not any(reserved) and zero == 0
        assert 0 < unit < math.inf and self.flags & IMPACTS if self.flags & UNIT else self.file[144:152] == bytes(8)
        self.codings = [tuple(self.file[104 + 2 * i:106 + 2 * i]) for i in range(16)]
        table = self.file[256:256 + 64 * n_sections]
        if xxh3:
            assert struct.unpack_from("<Q", self.file, 248)[0] == xxh3(self.file[:248] + bytes(8) + table)
        self.sections = {}
        end = 256 + len(table)
        for i in range(n_sections):
            kind, flags, offset, size, checksum, param = struct.unpack_from("<4sIQQQQ", table, 64 * i)
            assert offset == -(-end // 256) * 256 and not any(self.file[end:offset])
            end = offset + size
            assert kind.decode() in KINDS or not flags & REQUIRED
            self.sections[kind.decode()] = (self.file[offset:end], param)
            assert not xxh3 or checksum == xxh3(self.file[offset:end])
        assert end == len(self.file)
        self.heads, self.docid_ends, self.tf_ends, self.payload, self.doc_lens = (
            self.words(kind) for kind in ("HEAD", "DEND", "TEND", "PAYL", "DLEN"))
        self.terms = self.strings("TERM", self.n_terms)
        self.doc_ids = self.strings("DIDS", self.n_docs)
        self.units = [unit if self.flags & UNIT else 1] * self.n_terms
        if "UNIT" in self.sections:
            assert self.flags == IMPACTS
            self.units = struct.unpack(f"<{self.n_terms}f", self.sections["UNIT"][0])
        self.titles = self.strings("TITL", self.n_docs) if "TITL" in self.sections else []
        self.title_positions = [0] * self.n_docs
        assert ("POSN" in self.sections) == ("PEND" in self.sections) == bool(self.flags & POSITIONS)
        assert ("FLDS" in self.sections) == bool(self.flags & FIELDS)
        if "PLEN" in self.sections:
            data, width = self.sections["PLEN"]
            n = self.n_docs * (self.sections["FLDS"][1] % 256 - 1 if self.flags & FIELDS else 1)
            self.title_positions = list(struct.unpack(f"<{n}{ {1: 'B', 2: 'H', 4: 'I'}[width]}", data))

    def words(self, kind):
        data = self.sections[kind][0]
        return struct.unpack(f"<{len(data) // 4}I", data)

    def strings(self, kind, n):
        data, width = self.sections[kind]
        offsets = struct.unpack_from(f"<{n + 1}{'I' if width == 4 else 'Q'}", data)
        data = data[(n + 1) * width:]
        assert offsets[0] == 0 and offsets[n] == len(data)
        return [data[a:b].decode() for a, b in zip(offsets, offsets[1:])]

    def attributes(self):
        """By name: the type and the documents' values, None where one is missing, a list where there can be several."""
        if "ATTR" not in self.sections:
            assert "ATTV" not in self.sections and "ATTS" not in self.sections
            return {}
        entries = list(struct.iter_unpack("<BBBBIqQQII24s", self.sections["ATTR"][0]))
        values, n = self.sections["ATTV"][0], self.n_docs
        assert len(entries) == self.sections["ATTR"][1]
        strings = self.strings("ATTS", len(entries) + sum(entry[9] for entry in entries))
        at, string, found = 0, len(entries), {}

        def take(n_items, code):
            nonlocal at
            part = struct.unpack_from(f"<{n_items}{code}", values, at)
            end = at + n_items * struct.calcsize(code)
            at = -(-end // 8) * 8
            assert not any(values[end:at])
            return part

        for name, (kind, width, several, zero, n_present, base, begin, n_values, first, n_strings, zeros) in zip(
                strings, entries):
            kind = TYPES[kind]
            assert several in (0, 1) and not (several and (kind.startswith("keyword") or n_values <= n_present))
            assert zero == 0 and not any(zeros) and begin == at and first == (string if kind.startswith("keyword")
                                                                              else 0)
            row = take(n_values, "d" if kind == "float" else {1: "B", 2: "H", 4: "I", 8: "Q"}[width])
            if kind.startswith("keyword"):
                own = strings[string:string + n_strings]
                assert own == sorted(set(own), key=str.encode) and "" not in own
                row, string = [own[i] for i in row] if own else [None] * n_values, string + n_strings
            elif kind in ("int", "date"):
                row = [base + x for x in row]
            if kind == "keywords" or several:
                starts = take(n + 1, "I")
                assert starts[0] == 0 and starts[n] == n_values
                row = [list(row[a:b]) or None for a, b in zip(starts, starts[1:])]
                order = str.encode if kind == "keywords" else None
                assert all(x is None or x == sorted(set(x), key=order) for x in row)
            elif n_present < n:
                present = take(-(-n // 64), "Q")
                row = [x if present[d // 64] >> d % 64 & 1 else None for d, x in enumerate(row)]
            assert sum(x is not None for x in row) == n_present
            found[name] = (kind, list(row))
        assert at == len(values) and string == len(strings)
        return found

    def bitmaps(self):
        """By name of the attributes that have bitmap columns: the encoding, what was asked, the bins and the columns,
        each a set of documents."""
        if "ATTB" not in self.sections:
            return {}
        section, n_attributes = self.sections["ATTB"]
        values = self.attributes()
        attributes = list(struct.iter_unpack("<BBBBIqQQII24s", self.sections["ATTR"][0]))
        assert n_attributes == len(attributes) and not any(section[-64:])
        at, found, first = 32 * n_attributes, {}, n_attributes
        for i, name in enumerate(values):
            kind, width, several, _, _, base, _, _, first_string, n_strings, _ = attributes[i]
            encoding, *asked, zero, n_asked, n_bins, zeros, begin, size = struct.unpack_from("<BBBBIIIQQ", section,
                                                                                             32 * i)
            assert zero == zeros == 0 and encoding in (1, 2, 3) and begin == (at if encoding > 1 else 0)
            if encoding == 1:
                assert n_bins == size == 0
                continue
            assert not several or encoding == 2
            part = section[begin:begin + size]
            bins, used = None, 0
            if TYPES[kind].startswith("keyword"):
                assert encoding == 2 and n_bins == n_strings
            else:
                bounds = struct.unpack_from(f"<{2 * n_bins}{'d' if kind == 2 else ' BH I   Q'[width]}", part)
                bins = [(base + a, base + b) for a, b in zip(bounds, bounds[n_bins:])]
                used = -(-2 * n_bins * width // 8) * 8
                assert not any(part[2 * n_bins * width:used])
            n_columns = n_bins if encoding == 2 else n_bins - 1
            directory = list(struct.iter_unpack("<II", part[used:used + 8 * n_columns]))
            ends = [0] + [end for _, end in directory]
            words = struct.unpack_from(f"<{ends[-1]}I", part, used + 8 * n_columns)
            assert size == -(-(used + 8 * n_columns + 4 * ends[-1]) // 8) * 8
            columns = [self.bitmap(n >> 30, n & 0x3fffffff, words[a:b])
                       for (n, _), a, b in zip(directory, ends, ends[1:])]
            found[name] = (encoding, (asked[0], asked[1], n_asked), bins, columns)
            at += size
        assert at + 64 == len(section)
        return found

    def bitmap(self, form, n, words):
        """The documents of a bitmap column."""
        if form == 2:
            documents = {d for d in range(32 * len(words)) if words[d // 32] >> d % 32 & 1}
            assert len(words) == -(-self.n_docs // 32) and len(documents) == n
            return documents
        m = -(-n // 128)
        heads, ends, blocks, numbers = words[:m], words[m:max(2 * m - 1, m)], words[max(2 * m - 1, 0):], []
        for j, (head, begin, end) in enumerate(zip(heads, (0,) + ends, ends + (len(blocks),))):
            gaps = packed(blocks[begin:end], min(128, n - 128 * j), 0)
            assert gaps[0] == 0
            for gap in gaps:
                numbers.append(numbers[-1] + gap + 1 if len(numbers) % 128 else head)
        assert numbers == sorted(set(numbers)) and len(numbers) == n
        if form == 0:
            return set(numbers)
        assert form == 1 and n % 2 == 0
        return {d for a, b in zip(numbers[::2], numbers[1::2]) for d in range(a, b)}

    def postings(self, term_id):
        df, first, lo, hi, coding, docid_param, tf_param = struct.unpack_from("<IIIBBBB", self.sections["LIST"][0],
                                                                              16 * term_id)
        words = self.payload[hi << 32 | lo:]
        m = -(-df // self.block_len)
        docids, tfs = [], []
        for j in range(m):
            n = self.block_len if j + 1 < m else df - j * self.block_len
            begin = self.docid_ends[first + j - 1] if j else 0
            gaps = CODECS[self.codings[coding][0]](words[begin:self.docid_ends[first + j]], n, docid_param)
            assert len(gaps) == n and gaps[0] == 0
            docids.append(self.heads[first + j])
            for gap in gaps[1:]:
                docids.append(docids[-1] + gap + 1)
            begin = self.tf_ends[first + j - 1] if j else self.docid_ends[first + m - 1]
            tfs += [v + 1 for v in CODECS[self.codings[coding][1]](words[begin:self.tf_ends[first + j]], n, tf_param)]
        assert len(tfs) == df
        return list(zip(docids, tfs))

    def positions(self, term_id):
        """Of each posting the positions."""
        df, first = struct.unpack_from("<II", self.sections["LIST"][0], 16 * term_id)
        words, ends, passed = self.words("POSN"), self.words("PEND"), self.sections["PEND"][1]
        assert not any(words[-16:]) and len(ends) == self.n_blocks + passed

        def end(block):
            return ends[block] + 2**32 * sum(k <= block for k in ends[self.n_blocks:]) if block >= 0 else 0

        tfs, found = [tf for _, tf in self.postings(term_id)], []
        for j in range(-(-df // self.block_len)):
            here = tfs[j * self.block_len:(j + 1) * self.block_len]
            bits = Bits(words[end(first + j - 1):end(first + j)])
            b, n = bits.take(5), sum(here)
            low = bits.row(n, b)
            values = [v + (bits.zeros() << b) for v in low]
            for tf in here:
                own, values = values[:tf], values[tf:]
                found.append([sum(own[:i + 1]) + i for i in range(tf)])
        return found

    def fields(self):
        """The fields' names, of each document the lengths in all fields, and by term id of each posting the tfs."""
        data, param = self.sections["FLDS"]
        n, width, passed = param & 255, param >> 8 & 255, param >> 32
        names = [f["name"] for f in json.loads(self.sections["META"][0])["fields"]]
        assert len(names) == n and param >> 16 & 0xffff == 0
        at = self.n_docs * (n - 1)
        lens = struct.unpack_from(f"<{at}{ {1: 'B', 2: 'H', 4: 'I'}[width]}", data)
        lens = [lens[d * (n - 1):(d + 1) * (n - 1)] for d in range(self.n_docs)]
        lens = [own + (whole - sum(own),) for own, whole in zip(lens, self.doc_lens)]
        at = -(-at * width // 8) * 8
        ends = struct.unpack_from(f"<{self.n_terms + passed}I", data, at)
        at += -(-len(ends) * 4 // 8) * 8
        lists, begin = [], 0
        for t in range(self.n_terms):
            end = ends[t] + 2**32 * sum(k <= t for k in ends[self.n_terms:])
            lists.append(self.field_tfs(data[at + begin:at + end], [tf for _, tf in self.postings(t)], n))
            begin = end
        assert data[at + begin:] == bytes(64)
        return names, lens, lists

    @staticmethod
    def field_tfs(data, tfs, n):
        bits = iter("".join(f"{byte:08b}"[::-1] for byte in data))

        def take(count):
            return sum(1 << i for i in range(count) if next(bits) == "1")

        def zeros():
            count = 0
            while next(bits) == "0":
                count += 1
            return count

        def gamma():
            count = zeros()
            return 1 << count | take(count)

        rows = [[0] * (n - 1) for _ in tfs]
        if data:
            counts = [gamma() - 1 for _ in range(n)]
            for f, count in enumerate(counts[:-1]):
                low, at = take(5) if count else 0, -1
                for _ in range(count):
                    high = zeros()
                    at += 1 + (high << low | take(low))
                    rows[at][f] = gamma()
            rest = list(bits)
            assert len(rest) < 8 and "1" not in rest
            assert counts[-1] == sum(sum(row) == tf for row, tf in zip(rows, tfs))
        return [row + [tf - sum(row)] for row, tf in zip(rows, tfs)]

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
    """What tests/unit/index/test_index_golden.c puts into blocks.gx."""
    lists = {}
    for t in range(4):
        docid, postings = t, []
        while docid < 600:
            postings.append((docid, 1 + docid % (t + 2) + (70000 if docid == 300 else 0)))
            docid += t + 1 + (t > 0 and docid % 7 == 0)
        lists[f"every-{t + 1}"] = postings
    return lists


def check_positions(index):
    """What tests/unit/index/test_index_golden.c puts into positions.gx."""
    lists = {term: [(d, tf - 69300 * (tf > 70000)) for d, tf in postings] for term, postings in blocks().items()}
    check(index, lists)
    assert index.title_positions == [300 if d == 300 else d % 9 for d in range(index.n_docs)]
    for t, term in enumerate(index.terms):
        assert index.positions(t) == [[(d * 5 + t) % 40 + k * (1 + (d + t) % 3) for k in range(tf)]
                                      for d, tf in lists[term]], term


def golden_attributes():
    """What tests/unit/index/attributes/test_attributes.c puts into attributes.gx."""
    docs = range(70)
    return {"year": ("int", [None if d % 10 == 9 else 1990 + d * 7 % 31 for d in docs]),
            "price": ("float", [None if d % 7 == 3 else (d - 35) / 4 for d in docs]),
            "when": ("date", [86400 * (10957 + d % 28) for d in docs]),
            "cat": ("keyword", [None if d % 5 == 4 else f"c{d * 3 % 11}" for d in docs]),
            "tags": ("keywords", [sorted(f"t{(d + i) % 6}" for i in range(d % 4)) or None for d in docs]),
            "open": ("bool", [None if d % 3 == 0 else d % 2 for d in docs])}


def golden_rows():
    """What tests/unit/index/attributes/test_bitmap_columns.c puts into bitmaps.gx."""
    docs = range(2500)
    return {"year": ("int", [None if d % 400 == 9 else 1990 + d // 150 for d in docs]),
            "price": ("float", [None if d % 7 == 3 else (d * 37 % 101 - 35) / 4 for d in docs]),
            "when": ("date", [86400 * (10957 + d * 5 % 28) for d in docs]),
            "cat": ("keyword", [None if d % 5 == 4 else f"c{d // 100 if d < 500 else d * 7 % 12}" for d in docs]),
            "tags": ("keywords", [sorted({f"t{(d + 3 * i) % (6 if d % 2 else 40)}" for i in range(d % 4)}) or None
                                  for d in docs]),
            "open": ("bool", [None if d % 3 == 0 else d % 2 for d in docs])}


def golden_several():
    """What tests/unit/index/attributes/test_several.c puts into several.gx."""
    def values(f, counts):
        return [sorted({f(d, i) for i in range(n)}) or None for d, n in enumerate(counts)]

    docs = range(300)
    return {"year": ("int", values(lambda d, i: 1990 + (d * 7 + i * 11) % 31, [d % 4 for d in docs])),
            "price": ("float", values(lambda d, i: ((d * 37 + i * 53) % 101 - 35) / 8, [d % 3 for d in docs])),
            "when": ("date", values(lambda d, i: 86400 * (10957 + (d + 9 * i) % 28), [(d + 1) % 3 for d in docs])),
            "open": ("bool", values(lambda d, i: (d + i) % 2, [1 + (d % 5 == 0) for d in docs])),
            "big": ("int", values(lambda d, i: d * 1000000007 * (-1) ** i + i, [3 * (d % 7 == 0) for d in docs]))}


def check_several(index):
    """An equality column has each document once, whichever of its values are of the bin."""
    assert index.attributes() == golden_several()
    bitmaps = index.bitmaps()
    assert {name: entry[:2] for name, entry in bitmaps.items()} == {
        "year": (2, (2, 0, 0)), "price": (2, (3, 2, 5)), "open": (2, (2, 1, 0))}
    assert len(bitmaps["price"][2]) == 5 and len(bitmaps["year"][2]) == 31
    for name, (_, _, bins, columns) in bitmaps.items():
        rows = golden_several()[name][1]
        for (low, high), column in zip(bins, columns):
            own = [x for row in rows for x in row or [] if low <= x <= high]
            assert (min(own), max(own)) == (low, high)
            assert column == {d for d, row in enumerate(rows) if any(low <= x <= high for x in row or [])}
        assert all(any(low <= x <= high for low, high in bins) for row in rows for x in row or [])


def check_bitmaps(index):
    """Each column has the documents that their values put there."""
    assert index.attributes() == golden_rows()
    bitmaps = index.bitmaps()
    assert {name: entry[:2] for name, entry in bitmaps.items()} == {
        "year": (3, (3, 0, 0)), "price": (3, (3, 2, 5)), "when": (2, (2, 1, 4)), "cat": (2, (2, 0, 0)),
        "tags": (2, (2, 0, 0))}
    for name, (encoding, _, bins, columns) in bitmaps.items():
        kind, rows = index.attributes()[name]
        if bins is None:
            strings = sorted({string for row in rows if row for string in (row if kind == "keywords" else [row])})
            assert columns == [{d for d, row in enumerate(rows)
                                if row and string in (row if kind == "keywords" else [row])} for string in strings]
            continue
        bin_of = [None if row is None else [a <= row <= b for a, b in bins].index(True) for row in rows]
        for i, (low, high) in enumerate(bins):
            own = [row for row, b in zip(rows, bin_of) if b == i]
            assert (min(own), max(own)) == (low, high) and (i == 0 or bins[i - 1][1] < low)
        if encoding == 2:
            assert columns == [{d for d, b in enumerate(bin_of) if b == i} for i in range(len(bins))]
            continue
        for d in range(1, len(rows)):
            bin_of[d] = bin_of[d - 1] if bin_of[d] is None else bin_of[d]
        assert columns == [{d for d, b in enumerate(bin_of) if b is not None and b <= i} for i in range(len(bins) - 1)]


def drawn():
    """Lists of all lengths, docids near and far, tfs of every width, and some much greater than the others."""
    def docid_gap(kind):
        return random.choice(([1], [1, 1, 1, 2], [1, 2, 3, 20], [1] * 20 + [300], [7, 60])[kind])

    def tf(kind):
        return 1 + (0, random.getrandbits(1), random.getrandbits(6),
                    random.getrandbits(4) << (random.random() < 0.1) * random.randrange(28),
                    int(random.random() < 0.01), random.getrandbits(random.randrange(33)) % (2**32 - 1),
                    2**32 - 2 - random.getrandbits(9))[kind]

    lists = {}
    for docid_kind in range(5):
        for tf_kind in range(7):
            n, docid, postings = random.choice([1, 2, 31, 127, 128, 129, 300, 1023, 1024, 1100]), -1, []
            for _ in range(n):
                docid += docid_gap(docid_kind)
                postings.append((docid, tf(tf_kind)))
            lists[str(len(lists))] = postings
    return lists


def write_ds2i(base, lists, n_docs):
    """As index/convert/ds2i.h has it: sequences of u32, each behind its length."""
    lens = [0] * n_docs
    for docid, tf in (posting for postings in lists.values() for posting in postings):
        lens[docid] = min(lens[docid] + tf, 2**32 - 1)
    for suffix, sequences in {"docs": [[n_docs]] + [[docid for docid, _ in postings] for postings in lists.values()],
                              "freqs": [[tf for _, tf in postings] for postings in lists.values()],
                              "sizes": [lens]}.items():
        with open(f"{base}.{suffix}", "wb") as f:
            for row in sequences:
                f.write(struct.pack(f"<{len(row) + 1}I", len(row), *row))
    return lens


def check_codecs(gpuidx):
    """The drawn lists, packed with every codec that an index can use, and with auto."""
    listed = json.loads(subprocess.run([gpuidx, "bench", "codecs", "--list", "--format=json"], capture_output=True,
                                       check=True).stdout)
    names = [codec["name"] for codec in listed["codecs"] if codec["id"] is not None]
    assert {codec["id"] for codec in listed["codecs"]} - {None} == set(CODECS)
    random.seed(1)
    lists = drawn()
    with tempfile.TemporaryDirectory() as folder:
        lens = write_ds2i(folder + "/lists", lists, 70000)
        for name in names + ["auto"]:
            subprocess.run([gpuidx, "import", "--quiet", folder + "/lists", "-o", f"{folder}/{name}.gx",
                            f"--codec={name}"], check=True)
            index = Index(f"{folder}/{name}.gx")
            assert index.terms == sorted(lists) and list(index.doc_lens) == lens, name
            for term_id, term in enumerate(index.terms):
                assert index.postings(term_id) == lists[term], f"{name}: list {term}"
        check_flags(gpuidx, folder, lists)
    return names


def check_flags(gpuidx, folder, lists):
    """The same lists as impacts; and a flag that no reader knows."""
    path = folder + "/impacts.gx"
    subprocess.run([gpuidx, "import", "--quiet", folder + "/lists", "-o", path, "--impacts"], check=True)
    impacts, tfs = Index(path), Index(folder + "/gpubp128.gx")
    assert impacts.flags == IMPACTS and tfs.flags == 0
    assert all(impacts.postings(term_id) == lists[term] for term_id, term in enumerate(impacts.terms))
    with open(path, "r+b") as f:
        f.seek(136)
        f.write(struct.pack("<I", IMPACTS | 4))
    try:
        Index(path)
    except AssertionError:
        return
    raise AssertionError("an unknown flag is not refused")


def unit_of(weights, bits):
    """The unit of the page, from its words: the greatest weight by 2^bits - 1, up to 11 significant bits."""
    levels, most = 2**bits - 1, max(weights, default=0)
    if most <= levels and all(w == int(w) for w in weights):
        return 1.0
    step = 2.0 ** (math.frexp(most / levels)[1] - 11)
    return max(math.ceil(most / levels / step) * step, 2.0**-126)


def check_vectors(gpuidx):
    """Drawn vectors of weights of all sizes: every impact and every unit is what the page says."""
    draws = [lambda: random.expovariate(2), lambda: random.randrange(1, 256), lambda: random.randrange(1, 2**17),
             lambda: 2.0 ** random.randrange(-140, 90) * (1 + random.random()), lambda: float(random.randrange(1, 16))]
    with tempfile.TemporaryDirectory() as folder:
        for case in range(40):
            draw, bits, per_list = random.choice(draws), random.choice([4, 8, 8, 13, 16]), case % 2
            docs = [{f"t{t}": draw() for t in random.sample(range(40), random.randrange(12))}
                    for _ in range(random.choice([1, 200]))]
            docs = [{t: struct.unpack("f", struct.pack("f", w))[0] for t, w in doc.items()} for doc in docs]
            with open(folder + "/v.jsonl", "w") as f:
                for i, doc in enumerate(docs):
                    print(json.dumps({"id": f"d{i}", "contents": "words", "vector": doc}), file=f)
            subprocess.run([gpuidx, "build", "-qf", "vectors", folder + "/v.jsonl", "-o", folder + "/v.gx", "--force",
                            f"--bits={bits}", "--scale=" + ("list" if per_list else "collection"),
                            f"--threads={1 + case % 3}",
                            "--store=" + random.choice(["none", "title", "text"])], check=True)
            index = Index(folder + "/v.gx")
            assert index.n_docs == len(docs) and list(index.doc_lens) == [len(doc) for doc in docs]
            assert index.terms == sorted({t for doc in docs for t in doc})
            whole = unit_of([w for doc in docs for w in doc.values()], bits)
            for term_id, term in enumerate(index.terms):
                weights = [(d, doc[term]) for d, doc in enumerate(docs) if term in doc]
                unit = unit_of([w for _, w in weights], bits) if per_list else whole
                assert index.units[term_id] == unit, (case, term)
                assert index.postings(term_id) == [(d, max(1, round(w / unit))) for d, w in weights], (case, term)
                assert all(tf < 2**bits for _, tf in index.postings(term_id))


def check_fields(gpuidx):
    """Documents with fields, drawn; the terms of each field, counted here."""
    names = ["title", "text", "note"]
    for n_fields in (1, 2, 3):
        docs = [{name: [f"w{int(random.expovariate(.2))}" for _ in range(random.choice([0, 3, most]))]
                 for name, most in zip(names, (9, 60, 300))} for _ in range(400)]
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/docs.jsonl", "w", encoding="utf-8") as f:
                f.writelines(json.dumps({"id": f"d{i}", **{k: " ".join(v) for k, v in doc.items()}}) + "\n"
                             for i, doc in enumerate(docs))
            subprocess.run([gpuidx, "build", "--quiet", folder + "/docs.jsonl", "-o", folder + "/x.gx",
                            "--analyzer=whitespace", "--field=" + ",".join(names[:n_fields])], check=True)
            index = Index(folder + "/x.gx")
            subprocess.run([gpuidx, "build", "--quiet", folder + "/docs.jsonl", "-o", folder + "/y.gx", "--positions",
                            "--analyzer=whitespace", "--field=" + ",".join(names[:n_fields])], check=True)
            placed = Index(folder + "/y.gx")
        found, lens, lists = index.fields()
        assert found == names[:n_fields] and index.flags == FIELDS
        assert placed.fields() == (found, lens, lists) and placed.flags == FIELDS | POSITIONS
        assert n_fields == 1 or placed.title_positions == [len(doc[name]) for doc in docs for name in found[:-1]]
        for term_id, term in enumerate(placed.terms):
            rows = [[word for name in found for word in doc[name]] for doc in docs]
            want = [[i for i, word in enumerate(row) if word == term] for row in rows]
            assert placed.positions(term_id) == [places for places in want if places]
        assert lens == [tuple(len(doc[name]) for name in found) for doc in docs]
        for term_id, term in enumerate(index.terms):
            want = [(d, [doc[name].count(term) for name in found]) for d, doc in enumerate(docs)]
            want = [(d, tfs) for d, tfs in want if any(tfs)]
            assert index.postings(term_id) == [(d, sum(tfs)) for d, tfs in want]
            assert lists[term_id] == [tfs for _, tfs in want]


if sys.argv[1] == "--test":
    example = Index(sys.argv[2] + "/example.gx")
    check(example, {"be": [(0, 2)], "do": [(1, 1)], "not": [(0, 1), (1, 1)], "or": [(0, 1)], "to": [(0, 2)]})
    assert example.doc_ids == ["d0", "d1"] and example.titles == ["Hamlet", ""]
    check(Index(sys.argv[2] + "/blocks.gx"), blocks())
    check_positions(Index(sys.argv[2] + "/positions.gx"))
    assert example.attributes() == {}
    assert Index(sys.argv[2] + "/attributes.gx").attributes() == golden_attributes()
    assert Index(sys.argv[2] + "/attributes.gx").bitmaps() == {}
    check_bitmaps(Index(sys.argv[2] + "/bitmaps.gx"))
    check_several(Index(sys.argv[2] + "/several.gx"))
    random.seed(7)
    check_vectors(sys.argv[3])
    check_fields(sys.argv[3])
    print("the files hold what they should, and so do the drawn lists in", ", ".join(check_codecs(sys.argv[3])),
          "and auto"
          + ("" if xxh3 else "; no module xxhash, so checksums were not checked"))
else:
    whole = Index(sys.argv[1])
    for i, name in enumerate(whole.terms):
        print(name, *(f"{docid}:{tf}" for docid, tf in whole.postings(i)))
