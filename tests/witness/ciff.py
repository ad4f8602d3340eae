#!/usr/bin/env python3
"""Hold gpuidx's CIFF against ciff-toolkit, which is Google's protobuf and the format's own definition.

    tests/witness/ciff.py GPUIDX [--index INDEX.gx] [--seeds N]      compare; needs pip's ciff-toolkit
    tests/witness/ciff.py --make FILE [--seed S] [--documents N]     write a random collection, by ciff-toolkit alone

Compared are, for N random collections that ciff-toolkit has written, plain and gzipped: what import and export make
of them, message by message; that ciff-toolkit would write the exported bytes; and, for an index, its export by CIFF
against that by ds2i, number by number.
"""
import argparse
import array
import gzip
import os
import random
import shutil
import subprocess
import tempfile

from ciff_toolkit.ciff_pb2 import DocRecord, Header, PostingsList
from ciff_toolkit.read import CiffReader
from ciff_toolkit.write import CiffWriter


def make(path, seed, n_docs):
    rng = random.Random(seed)
    n_lists = rng.randrange(1, 60)
    terms = sorted({"".join(rng.choices("abcdeé中𝄞z0'", k=rng.randrange(1, 9))) for _ in range(n_lists)},
                   key=lambda term: term.encode())
    lengths = [0] * n_docs
    lists = []
    for term in terms:
        docids = sorted(rng.sample(range(n_docs), max(1, int(n_docs * rng.random() ** 4))))
        tfs = [rng.choice([1, 1, 1, 2, 3, 200, 70000]) for _ in docids]
        message = PostingsList(term=term, df=len(docids), cf=sum(tfs))
        last = 0
        for docid, tf in zip(docids, tfs):
            message.postings.add(docid=docid - last, tf=tf)
            last = docid
            lengths[docid] += tf
        lists.append(message)
    with CiffWriter(path) as writer:
        writer.write_header(Header(
            version=1, num_postings_lists=len(lists), num_docs=n_docs, total_postings_lists=len(lists),
            total_docs=n_docs, total_terms_in_collection=sum(lengths), average_doclength=sum(lengths) / n_docs,
            description=f"random, seed {seed}"))
        writer.write_postings_lists(lists)
        writer.write_documents(DocRecord(docid=d, collection_docid=f"DOC-{d}", doclength=n)
                               for d, n in enumerate(lengths))


def read(path):
    with CiffReader(path) as reader:
        header = reader.read_header()
        return header, list(reader.read_postings_lists()), list(reader.read_documents())


def write(path, header, lists, documents):
    with CiffWriter(path) as writer:
        writer.write_header(header)
        writer.write_postings_lists(lists)
        writer.write_documents(documents)


def same_bytes(a, b):
    with open(a, "rb") as f, open(b, "rb") as g:
        return f.read() == g.read()


def check_collection(gpuidx, folder, seed):
    there, index, back, again = (os.path.join(folder, name) for name in ("x.ciff", "x.gx", "y.ciff", "z.ciff"))
    make(there, seed, random.Random(seed).randrange(1, 3000))
    if seed % 2:
        with open(there, "rb") as plain, gzip.open(there + ".gz", "wb") as packed:
            shutil.copyfileobj(plain, packed)
    subprocess.run([gpuidx, "import", "-q", there + (".gz" if seed % 2 else ""), "-o", index, "--force"], check=True)
    subprocess.run([gpuidx, "check", "-q", index], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([gpuidx, "export", "-q", index, "-o", back, "--force"], check=True)
    (h, lists, documents), (h2, lists2, documents2) = read(there), read(back)
    assert lists == lists2 and documents == documents2, seed
    h.description = h2.description = ""
    assert h == h2, seed
    write(again, *read(back))
    assert same_bytes(back, again), seed
    return sum(len(l.postings) for l in lists)


def sequences(path):
    numbers = array.array("I")
    with open(path, "rb") as file:
        numbers.frombytes(file.read())
    at = 0
    while at < len(numbers):
        yield numbers[at + 1:at + 1 + numbers[at]]
        at += 1 + numbers[at]


def check_index(gpuidx, folder, index):
    base, file = os.path.join(folder, "base"), os.path.join(folder, "i.ciff")
    subprocess.run([gpuidx, "export", "-q", index, "-o", base], check=True)
    subprocess.run([gpuidx, "export", "-q", index, "-o", file], check=True)
    docs, freqs, (sizes,) = sequences(base + ".docs"), sequences(base + ".freqs"), sequences(base + ".sizes")
    n_docs = next(docs)[0]
    n = 0
    with CiffReader(file) as reader, open(base + ".terms", "rb") as terms, open(base + ".documents", "rb") as names:
        assert reader.read_header().num_docs == n_docs
        for message in reader.read_postings_lists():
            gaps, tfs = next(docs), next(freqs)
            assert message.term.encode() == next(terms)[:-1] and message.df == len(gaps) and message.cf == sum(tfs)
            last = 0
            for posting, docid, tf in zip(message.postings, gaps, tfs, strict=True):
                assert last + posting.docid == docid and posting.tf == tf
                last = docid
            n += len(gaps)
        for record, size in zip(reader.read_documents(), sizes, strict=True):
            assert record.collection_docid.encode() == next(names)[:-1] and record.doclength == size
    return n


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpuidx", nargs="?")
    parser.add_argument("--index")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--make")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--documents", type=int, default=100)
    args = parser.parse_args()
    if args.make:
        make(args.make, args.seed, args.documents)
        return
    with tempfile.TemporaryDirectory() as folder:
        n = sum(check_collection(args.gpuidx, folder, seed) for seed in range(1, args.seeds + 1))
        print(f"{args.seeds} collections, {n} postings: equal")
        if args.index:
            print(f"{args.index}, {check_index(args.gpuidx, folder, args.index)} postings: equal")


if __name__ == "__main__":
    main()
