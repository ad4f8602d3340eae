#!/usr/bin/env python3
"""Compare the words that `gpuidx build -f files` takes from HTML with those of html5lib (pip install html5lib), a
parser by the HTML standard.

    tests/witness/html_pages.py [--gpuidx build/tools/gpuidx] [--seed N] [--pages N] [FILE...]

Random pages are made of the pieces below, whole and cut in two: tags, attributes with and without quotes, comments,
scripts, declarations, references; every named reference alone, with and without its semicolon. Files are compared
instead, if given. Left out is what the tree does with misplaced tags: elements of tables and frames are not among the
pieces; where an end tag ends nothing, gpuidx parts words and the tree does not, so there white space is not compared.
Prints the pages that differ; exit 1 if any does.
"""
import sys

sys.path.pop(0)  # this folder, in which `html` is this file

import argparse
import html.entities
import json
import os
import random
import subprocess
import tempfile

import html5lib

INLINE = set(
    "a abbr acronym b bdi bdo big blink cite code data del dfn em font i ins kbd label mark nobr output q ruby s "
    "samp small span strike strong sub sup time tt u var wbr".split())
HTML = "{http://www.w3.org/1999/xhtml}"
PIECES = ( ["heron",
    "reed",
    " ",
    "\n",
    "x",
    "7",
    "é",
    "<p>",
    "</p>",
    "<div class=a>",
    "</div>",
    "<b>",
    "</b>",
    "<i x>",
    "</i>",
    "<br>",
    "<br/>",
    "<hr>",
    "<mark>",
    "</mark>",
    "<time>",
    "</time>",
    "<bdi>",
    "</bdi>",
    "<x-y>",
    "</x-y>",
    "<P>"] + ["<p title = \"gt > lt\" class=x>",
    "<p a='b>c'>",
    "<p a=b\"c>",
    "<p a=\"b\"c='>'/>",
    "<p/a='>'/>",
    "<p a =>",
    "<p =\">\">",
    "<p a\t=\n'x'>",
    "<a href=\"?q=\">",
    "</a>",
    "<p a=b/>",
    "<p a=",
    "<p '",
    "\"",
    "'",
    "=",
    ">",
    "/>",
    "<",
    "</",
    "</>",
    "</ x>",
    "</3>",
    "<3",
    "<?pi?>",
    "<!x>",
    "<!>",
    "<![CDATA[",
    "]]>",
    "<!DOCTYPE html \">\">"] + ["<!--",
    "-->",
    "--!>",
    "<!-->",
    "<!--->",
    "<!---->",
    "<!--!>",
    "<!---!>",
    "--",
    "->",
    "!",
    "-",
    "<!-- x -->",
    "<!--[if IE]>"] + ["<script>",
    "</script>",
    "</script >",
    "</scripts>",
    "<script",
    "</SCRIPT/>",
    "<style>",
    "</style>",
    "</styled>",
    "<textarea>",
    "</textarea>",
    "<title>",
    "</title>",
    "<xmp>",
    "</xmp>",
    "<noscript>",
    "</noscript>",
    "<svg>",
    "</svg>",
    "<math>",
    "</math>"] + ["&amp;",
    "&AMP",
    "&lt",
    "&LT;",
    "&copy2024",
    "&eacutes",
    "&notit;",
    "&notin;",
    "&#146;",
    "&#x80",
    "&#0;",
    "&#xD800;",
    "&#00000000000233;",
    "&#x110000;",
    "&#",
    "&#x",
    "&",
    ";",
    "&alpha ",
    "&alpha;",
    "&Ccaron;",
    "&unknown;",
    "&nbsp;",
    "&zwj;",
    "&#1114111;",
    "&bne;",
     "&fjlig;"])


def text_of(page):
    """Title and words of a page, by html5lib; and whether an end tag in it ends nothing."""
    parser = html5lib.HTMLParser(namespaceHTMLElements=True)
    tree = parser.parse(page)
    words, titles = [], []

    def walk(e):
        if not isinstance(e.tag, str):
            return
        name = e.tag.rsplit("}", 1)[-1].lower()
        if name in ("script", "style"):
            words.append(" ")
        elif e.tag == HTML + "title" and not titles and (e.text or "").split():
            titles.append(e.text)
            words.append(" ")
        else:
            gap = "" if name in INLINE else " "
            words.append(gap + (e.text or ""))
            for child in e:
                walk(child)
                words.append(child.tail or "")
            words.append(gap)

    walk(tree)
    return titles[0] if titles else "", "".join(words), any("end-tag" in code for _, code, _ in parser.errors)


def plain(text):
    """As the corpus reader has it: no NULs, U+00A0 as a space, runs of white space of HTML as one."""
    return " ".join(
    text.replace(
        "\0",
        " ").replace(
            "\xa0",
            " ").replace(
                "\u226b\u20d2",
                "\u226b").replace(
                    "\u226a\u20d2",
                    "\u226a") .replace(
                        "\t",
                        " ").replace(
                            "\n",
                            " ").replace(
                                "\f",
                                " ").replace(
                                    "\r",
                                     " ").split(" ")).split(" ")


def same(a, b, gaps):
    a, b = [[w for w in plain(x) if w] for x in (a, b)]
    return a == b if gaps else "".join(a) == "".join(b)


def read(gpuidx, pages):
    """Title and text of each page, by the program."""
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/pages")
        for i, page in enumerate(pages):
            with open("%s/pages/%06d.html" % (folder, i), "wb") as f:
                f.write(page.encode("utf-8", "surrogatepass") if isinstance(page, str) else page)
        index = folder + "/x.gx"
        subprocess.run([gpuidx, "build", "-q", "-f", "files", "--id=stem", "--analyzer=simple",
                       "--store=text", folder + "/pages", "-o", index], check=True)
        ids = ["#%d" % i for i in range(len(pages))]
        for at in range(0, len(ids), 2000):
            lines = subprocess.run([gpuidx, "doc", index, "-f", "json"] + \
                                   ids[at:at + 2000], check=True, capture_output=True)
            for line in lines.stdout.splitlines():
                doc = json.loads(line)
                out[int(doc["id"])] = (doc.get("title") or "", doc.get("text") or "")
    return [out[i] for i in range(len(pages))]


def is_comparable(page):
    """Not where the tree, not the tokenizer, decides: html5lib 1.1 reads some newer rules of svg and math in its own
    way."""
    low = page.lower()
    return not (
    ("<svg" in low or "<math" in low) and any(
        t in low for t in (
            "<title",
            "<style",
            "<script",
            "<textarea",
            "<xmp",
            "</p",
             "</br")))


def random_page(draw):
    page = "".join(draw.choice(PIECES) for _ in range(draw.randrange(1, 14)))
    if draw.random() < 0.2:
        page = page[:draw.randrange(len(page) + 1)]
    return page


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--gpuidx", default="build/tools/gpuidx")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--pages", type=int, default=20000)
    a.add_argument("files", nargs="*")
    opt = a.parse_args()
    draw = random.Random(opt.seed)
    if opt.files:
        pages = [open(f, encoding="utf-8", errors="replace").read() for f in opt.files]
    else:
        names = sorted(html.entities.html5)
        pages = ["<p>x&%sy" % n for n in names] + ["<title>x&%s y</title>" % n.rstrip(";") for n in names]
        while len(pages) < opt.pages + 2 * len(names):
            page = "<!DOCTYPE html><body>" + random_page(draw)
            if is_comparable(page):
                pages.append(page)
    wrong = 0
    for page, (title, text) in zip(pages, read(opt.gpuidx, pages)):
        want_title, want_text, stray = text_of(page)
        if not same(title, want_title, True) or not same(text, want_text, not stray):
            wrong += 1
            if wrong <= 20:
                print("page %r\n  html5lib %r %r\n  gpuidx   %r %r" %
     (page[:500], want_title, " ".join(plain(want_text))[:300], title, text[:300]))
    print("%d pages, %d differ" % (len(pages), wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
