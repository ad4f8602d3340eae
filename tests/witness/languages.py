#!/usr/bin/env python3
"""languages.py GPUIDX LANGUAGE [--words N] [--analyzer NAME] FILE...: words at random of texts, against a scan.

FILE is a manual page (roff, perhaps gzipped), each a document, or a .mo file of translations, each message a document.
LANGUAGE is a language of ISO 639, as in ja, zh, ko, th, tr, fr, de, ar, hi. The texts are indexed, by default with the
analyzer multilingual, and each word is searched for: its documents have to be those where a scan finds it. The scan
knows its own normal form of text. Of Chinese, Japanese and Korean a word is 1 to 4 characters of a run: of 1 and 2 with
--op=and, of 3 and 4 as a phrase. Other words are those of ICU (PyICU). With a language's analyzer (PyStemmer) words
are compared by their stems."""
import argparse
import collections
import gettext
import gzip
import json
import random
import re
import subprocess
import tempfile
import unicodedata

LIGHT = {0x629: 0x647, 0x640: None, 0x649: 0x64A, 0x6CC: 0x64A, 0x671: 0x627, 0x6A9: 0x643, 0x929: 0x928, 0x931: 0x930,
         0x934: 0x933, 0x93C: None, 0x901: 0x902}
MARKS = [(0x300, 0x36F), (0x591, 0x5C7), (0x610, 0x61A), (0x64B, 0x670), (0x6D6, 0x6ED)]
PAIRED = '[\u3400-\u4DBF\u4E00-\u9FFF\u3005\u3041-\u3096\u30A1-\u30FA\u30FC-\u30FE\uAC00-\uD7A3]'


def normal(text):
    text = ''.join(c for c in unicodedata.normalize('NFKD', text)
                   if not any(a <= ord(c) <= b for a, b in MARKS) and
                   (unicodedata.category(c) != 'Cf' or c == '\u200B'))
    text = unicodedata.normalize('NFKC', unicodedata.normalize('NFKD', text).casefold())
    text = text.replace('\u2019', "'").replace('\u02BC', "'")
    return text.translate(LIGHT).translate({c: str(unicodedata.digit(chr(c))) for c in range(0x660, 0x970)
                                            if unicodedata.category(chr(c)) == 'Nd'})


def documents(files):
    for name in files:
        if name.endswith('.mo'):
            with open(name, 'rb') as f:
                for text in gettext.GNUTranslations(f)._catalog.values():
                    if isinstance(text, str) and '\n' not in text:
                        yield text
            continue
        with (gzip.open if name.endswith('.gz') else open)(name, 'rb') as f:
            text = f.read().decode('utf-8', 'replace')
        yield re.sub(r'\\f[A-Z]|\\[-&e]|^[.\'].{0,3}', ' ', text, flags=re.M)


def french(w):
    return re.sub("^(?:[lmtnsjdc]|qu|jusqu|quoiqu|lorsqu|puisqu)['\u2019](?=.)", '', w)


def german(w):
    w = w.replace('ß', 'ss').translate({0xE4: 'a\0', 0xF6: 'o\0', 0xFC: 'u\0'})  # NUL: no umlaut of it
    w = re.sub('([ao])e', r'\1\0', w)
    w = re.sub('(^|[^aouiqye\0])(u)e', r'\1\2\0', w)
    return w.replace('\0', '')


def turkish(w):
    return re.split("['\u2019]", w)[0]


RULES = {'french': french, 'german': german, 'turkish': turkish}


def lower(text, analyzer):
    if analyzer == 'turkish':
        text = text.replace('I', 'ı').replace('İ', 'i')
    return ''.join(c.lower() if len(c.lower()) == 1 else c for c in text)


def words_of(text, language, icu_words):
    """The words of normal text, in order."""
    if language in ('zh', 'ja', 'ko'):
        return re.findall(PAIRED + '+', text)
    if language == 'th':
        return icu_words(text)
    return [w for w in icu_words(text) if re.search(r'[^\W\d_]', w) and not re.search(PAIRED, w)]


def icu_words(text):
    import icu
    it = icu.BreakIterator.createWordInstance(icu.Locale('sv'))  # with the colon of UAX 29
    # a character is a unit of UTF-16; ICU takes @ for a letter, UAX 29 does not
    text = ''.join(c if ord(c) < 0x10000 and c != '@' else ' ' for c in text)
    it.setText(icu.UnicodeString(text))
    found, begin = [], 0
    for end in it:
        if it.getRuleStatus() > 0:
            found.append(text[begin:end])
        begin = end
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('gpuidx')
    p.add_argument('language')
    p.add_argument('files', nargs='+')
    p.add_argument('--words', type=int, default=1000)
    p.add_argument('--analyzer', default='multilingual')
    p.add_argument('--seed', type=int, default=1)
    a = p.parse_args()
    r = random.Random(a.seed)
    paired = a.language in ('zh', 'ja', 'ko')
    stem = lambda w: w
    texts = list(documents(a.files))
    if a.analyzer != 'multilingual':
        import Stemmer
        stemmer = Stemmer.Stemmer(a.analyzer)
        stem = lambda w: stemmer.stemWord(RULES.get(a.analyzer, str)(w))
        plain = [lower(t, a.analyzer) for t in texts]
    else:
        plain = [normal(t) for t in texts]
    where = collections.defaultdict(set)
    runs = []
    for i, t in enumerate(plain):
        for w in words_of(t, a.language, icu_words):
            runs.append(w)
            if not paired:
                where[stem(w)].add(str(i))
    queries = {}
    if paired:
        while len(queries) < a.words:
            run = r.choice(runs)
            begin = r.randrange(len(run))
            w = run[begin:begin + r.randint(1, 4)]
            queries[w] = {str(i) for i, t in enumerate(plain) if w in t}
    else:
        some = sorted(set(runs))
        for w in r.sample(some, min(a.words, len(some))):
            queries[w] = where[stem(w)]
    with tempfile.TemporaryDirectory() as folder:
        index = folder + '/x.gx'
        corpus = '\n'.join(json.dumps({'id': str(i), 'text': t}) for i, t in enumerate(texts))
        fold = ['--fold=none'] if a.analyzer != 'multilingual' else []
        subprocess.run([a.gpuidx, 'build', '-q', '--analyzer=' + a.analyzer, '--positions', '-f', 'jsonl', '-', '-o',
                        index] + fold, input=corpus.encode(), check=True)
        names = list(queries)
        missed = extra = n = 0
        for syntax, asked in (('plain', [w for w in names if len(w) <= 2 or not paired]),
                              ('boolean', [w for w in names if len(w) > 2 and paired])):
            lines = '\n'.join('"%s"' % w if syntax == 'boolean' else w for w in asked)
            out = subprocess.run([a.gpuidx, 'query', '-q', index, '-', '--op=and', '--syntax=' + syntax, '-f', 'tsv',
                                  '-k', '1000000'], input=lines.encode(), stdout=subprocess.PIPE, check=True).stdout
            found = collections.defaultdict(set)
            for line in out.decode().splitlines():
                q, doc, _ = line.split('\t')
                found[int(q) - 1].add(doc)
            for i, w in enumerate(asked):
                n += 1
                missed += len(queries[w] - found[i])
                extra += len(found[i] - queries[w])
                if queries[w] != found[i] and missed + extra < 20:
                    print('%r: missed %s, extra %s' % (w, sorted(queries[w] - found[i])[:3],
                                                      sorted(found[i] - queries[w])[:3]))
    print('%s, %s: %d documents, %d words: %d missed, %d extra' % (
        a.language, a.analyzer, len(texts), n, missed, extra))


if __name__ == '__main__':
    main()
