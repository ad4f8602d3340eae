#!/usr/bin/env python3
"""Compare what `gpuidx build -f warc` reads with what was written: random records of WARC,
whose pages are encoded by
Python's own codecs (pip install brotli zstandard) and come in many character sets.

    tests/witness/warc.py [--gpuidx build/tools/gpuidx] [--seed N] [--records N]

Each response has words that are known; its head or its page names the character set, in several forms,
and the body is
compressed, in chunks, both or neither,
or only said to be. Between them stand records that are to be passed over, whose
counts are compared. Read as it is and compressed, on one thread and on three. Exit 1 if anything differs.
"""
import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import zlib

import brotli
import zstandard

# Character sets as pages name them: Python's codec of what the Encoding Standard means by it, and words.
SETS = {
    "utf-8": ("utf-8", ["heron", "café", "цапля", "鷺", "😀"]),
    "iso-8859-1": ("cp1252", ["café", "straße", "l’été"]),
    "latin1": ("cp1252", ["naïve"]), "windows-1252": ("cp1252", ["déjà", "“vu”", "€5"]),
    "koi8-r": ("koi8-r", ["серая", "цапля"]),
    "koi8-u": ("koi8-u", ["їжак"]), "windows-1251": ("cp1251", ["болото"]),
    "windows-1250": ("cp1250", ["žena", "běží"]),
    "iso-8859-2": ("iso-8859-2", ["žena", "běží"]), "iso-8859-7": ("iso-8859-7", ["ερωδιός"]),
    "iso-8859-9": ("cp1254", ["ağaç"]),
    "iso-8859-15": ("iso-8859-15", ["œuvre", "€"]), "windows-1256": ("cp1256", ["مالك"]),
    "windows-1258": ("cp1258", ["đêm"]),
    "windows-874": ("cp874", ["นก"]), "macintosh": ("mac_roman", ["café"]),
    "shift_jis": ("cp932", ["鷺", "かな"]),
    "x-sjis": ("cp932", ["鷺"]), "euc-jp": ("euc-jp", ["鷺", "カナ"]),
    "iso-2022-jp": ("iso-2022-jp", ["鷺", "かな"]),
    "gb2312": ("gbk", ["苍鹭", "水"]), "gbk": ("gbk", ["蒼鷺", "水"]), "gb18030": ("gb18030", ["㐀", "水"]),
    "big5": ("big5hkscs", ["蒼鷺", "水"]),
    "euc-kr": ("cp949", ["왜가리", "물"]), "utf-16": ("utf-16le", ["heron", "цапля"]),
    "utf-16be": ("utf-16be", ["heron", "鷺"]),
}


def raw_deflate(body):
    z = zlib.compressobj(9, zlib.DEFLATED, -15)
    return z.compress(body) + z.flush()


CODINGS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": raw_deflate,
    "br": brotli.compress,
     "zstd": zstandard.ZstdCompressor().compress}


def chunked(draw, body):
    out = b""
    while body:
        n = draw.randrange(1, 40)
        size = (b"%x" if draw.random() < 0.5 else b"%X") % len(body[:n])
        out += size + (b";x=y" if draw.random() < 0.2 else b"") + b"\r\n" + body[:n] + b"\r\n"
        body = body[n:]
    return out + b"0\r\n" + (b"Trailer: x\r\n" if draw.random() < 0.2 else b"") + b"\r\n"


def record(number, kind, block):
    head = b"WARC/1.0\r\nWARC-Type: %s\r\nWARC-Record-ID: <urn:%d>\r\n" % (kind.encode(), number)
    length = b"Content-Type: application/http\r\nContent-Length: %d\r\n\r\n" % len(block)
    return head + length + block + b"\r\n\r\n"


def response(draw, number, words, name, codec):
    """A record whose page has the words."""
    html = draw.random() < 0.75
    where = draw.choice(["head", "meta", "equiv", "xml"]) if html and not name.startswith("utf-16") else "head"
    text = " ".join(words)
    if html:
        meta = {"meta": "<meta charset=%s>" % draw.choice([name, '"%s"' % name.upper(), "' %s '" % name]),
                "equiv": "<META HTTP-EQUIV = \"content-type\" content='text/html;charset=%s'>" % name}.get(where, "")
        text = "<!-- x --><html><head>%s</head><body><p>%s</p></body></html>" % (meta, text)
        if where == "xml":
            text = '<?xml version="1.0" encoding="%s"?>' % name + text
    body = text.encode(codec)
    if name.startswith("utf-16") and draw.random() < 0.5:
        body = (b"\xff\xfe" if name == "utf-16" else b"\xfe\xff") + body
    kind = draw.choice(["text/html", "text/html", "application/xhtml+xml"]) if html else "text/plain"
    if where == "head":
        kind += draw.choice(["; charset=%s", '; charset="%s"', ";\r\n charset=%s", "; x=y; Charset = %s"]) % name
    heads = [("Content-Type: " + kind).encode()]
    codings = [draw.choice(list(CODINGS)) for _ in range(draw.choice([0, 0, 1, 1, 2]))]
    for coding in codings:
        body = CODINGS[coding](body)
    if codings:
        heads.append(b"Content-Encoding: " + ", ".join(codings).encode())
    elif draw.random() < 0.2 and not name.startswith(("utf-16", "iso-2022")):
        heads.append(b"Content-Encoding: " + draw.choice([b"gzip", b"br", b"deflate", b"identity"]))
    if draw.random() < 0.4:
        heads.append(b"Transfer-Encoding: chunked")
        body = chunked(draw, body)
    elif draw.random() < 0.1 and not codings:
        heads.append(b"transfer-encoding: chunked")
    draw.shuffle(heads)
    status = draw.choice([b"HTTP/1.1 200 OK\r\n"] * 4 + [b"ICY 200 OK\r\n",
                         b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\n"])
    return record(number, "response", status + b"\r\n".join(heads) + b"\r\n\r\n" + body)


def passed_over(draw, number):
    """A record that is no page, and the detail of its note."""
    if draw.random() < 0.5:
        kind = draw.choice(["request", "metadata", "warcinfo", "revisit"])
        return kind, record(number, kind, b"x\0y" * 9)
    kind = draw.choice(["text/css", "image/png", "application/javascript", "text/dns"])
    return kind, record(number, "response", b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n.x{}\0\0" % kind.encode())


def read(gpuidx, path, threads, index):
    """Words of the documents by id, and counts of the notes by detail."""
    out = subprocess.run([gpuidx,
    "build",
    "-q",
    "-f",
    "warc",
    "--analyzer=whitespace",
    "--store=text",
    "--json",
    "--force",
    "-j",
    threads,
    path,
    "-o",
    index],
    check=True,
     capture_output=True)
    report = json.loads(out.stdout)
    ids = ["#%d" % i for i in range(report["documents"])]
    words = {}
    for at in range(0, len(ids), 2000):
        lines = subprocess.run([gpuidx, "doc", index, "-f", "json"] + ids[at:at + 2000],
                               check=True, capture_output=True).stdout
        for line in lines.splitlines():
            doc = json.loads(line)
            words[doc["id"]] = doc.get("text", "").split()
    return words, {note["detail"]: note["count"] for note in report["notes"]}


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--gpuidx", default="build/tools/gpuidx")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--records", type=int, default=2000)
    opt = a.parse_args()
    draw = random.Random(opt.seed)
    want, notes, out = {}, {}, b""
    for i in range(opt.records):
        name = draw.choice(list(SETS))
        codec, some = SETS[name]
        words = [draw.choice(some) for _ in range(draw.randrange(1, 8))] + ["w%d" % i]
        want["urn:%d" % i] = words
        out += response(draw, i, words, name, codec)
        if draw.random() < 0.5:
            kind, more = passed_over(draw, opt.records + i)
            notes[kind] = notes.get(kind, 0) + 1
            out += more
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        files = {"x.warc": out,
        "x.warc.gz": gzip.compress(out[:len(out) // 2]) + gzip.compress(out[len(out) // 2:])}
        for name, data in files.items():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
            for threads in "1", "3":
                got, told = read(opt.gpuidx, os.path.join(folder, name), threads, os.path.join(folder, "x.gx"))
                odd = [i for i in {**want, **got} if got.get(i) != want.get(i)]
                wrong += len(odd) + (told != notes)
                print("%s, -j %s: %d records, %d differ; notes %s" % (name, threads, len(want), len(odd),
                                                                      "are right" if told == notes else told))
                for i in odd[:5]:
                    print("  ", i, want.get(i), got.get(i))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
