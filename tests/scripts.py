#!/usr/bin/env python3
"""scripts.py GPUIDX [--seed N] [--characters N]: terms of the analyzer `multilingual`, against a second written form.

Random text of many scripts is analysed by the program and by the rules written here: Lucene's CJK bigrams (each two
characters of Han, Hiragana, Katakana and Hangul that touch; a single character, too), and word boundaries: by ICU where
Python has PyICU, else of text without the signs that join words. Compared are bytes and positions of all terms, of
documents and of queries. Where the rules here depart from Lucene's and ICU's they say so: RULE 1, 2, ..."""
import argparse
import json
import random
import subprocess
import sys
import tempfile
import unicodedata

try:
    import icu
except ImportError:
    icu = None

HAN = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF)]
POOLS = {  # ranges of characters of which runs are drawn
    'latin': [(0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0x100, 0x17F)],
    'greek': [(0x391, 0x3A1), (0x3B1, 0x3C9)], 'cyrillic': [(0x410, 0x44F)], 'armenian': [(0x561, 0x586)],
    'hebrew': [(0x5D0, 0x5EA), (0x5B0, 0x5BD)], 'arabic': [(0x621, 0x63A), (0x641, 0x652)],
    'devanagari': [(0x904, 0x939), (0x93E, 0x94D)], 'bengali': [(0x985, 0x98C), (0x9BE, 0x9C4)],
    'tamil': [(0xB85, 0xB8A), (0xBBE, 0xBC2)], 'georgian': [(0x10D0, 0x10F0)], 'ethiopic': [(0x1200, 0x1248)],
    'digits': [(0x30, 0x39)], 'other digits': [(0x660, 0x669), (0x966, 0x96F)],
    'han': HAN, 'han ': HAN[:1], 'hiragana': [(0x3041, 0x3096)], 'katakana': [(0x30A1, 0x30FA), (0x30FC, 0x30FE)],
    'half width': [(0xFF66, 0xFF9D)], 'hangul': [(0xAC00, 0xD7A3)], 'jamo': [(0x1100, 0x1112), (0x1161, 0x1175)],
    'emoji': [(0x1F600, 0x1F64F), (0x1F680, 0x1F6C5), (0x26BD, 0x26BE), (0x2728, 0x2728)],
    'flags': [(0x1F1E6, 0x1F1FF)],
    'underscores': [(0x5F, 0x5F)],
}
EAST = {'thai': [(0xE01, 0xE2E), (0xE30, 0xE3A), (0xE40, 0xE4E)],
        'lao': [(0xE81, 0xE82), (0xE94, 0xE97), (0xEB0, 0xEB9)],
        'khmer': [(0x1780, 0x17A2), (0x17B6, 0x17C8)], 'burmese': [(0x1000, 0x1021), (0x102B, 0x1032)]}
REAL = ['ภาษาไทย', 'ประเทศไทย', 'สวัสดีครับ', 'การค้นหา', 'ພາສາລາວ', 'ປະເທດລາວ', 'ភាសាខ្មែរ', 'ប្រទេសកម្ពុជា',
        'မြန်မာဘာသာ', 'ရန်ကုန်မြို့']
PLAIN_MARKS = ['\u0301', '\u0308', '\u3099', '\uFE0F', '\u200D']  # belong to the character before
JOINING = ["'", '\u2019', '.', ':', ',', ';', '\u00B7', '"']  # may join letters or digits
SEPARATING = [' ', ' ', ' ', '\n', '、', '。', '-', '/', '(', '！', '\u200B', '€', '+']


def pick(r, ranges):
    first, last = r.choice(ranges)
    return chr(r.randint(first, last))


def generate(r, n, east):
    pools = dict(POOLS, **(EAST if east else {}))
    names = list(pools)
    parts, length = [], 0
    while length < n:
        if east and r.random() < 0.1:
            run = ''.join(r.choice(REAL) for _ in range(r.randint(1, 4)))
        else:
            ranges = pools[r.choice(names)]
            run = ''.join(pick(r, ranges) for _ in range(min(int(r.expovariate(0.25)) + 1, 20)))
        run = ''.join(c for c in run if unicodedata.category(c) not in ('Cn', 'Co'))
        while run and is_east(run[0]) and is_mark(run[0]):  # RULE 4: South-East Asian text begins with a letter
            run = run[1:]
        if r.random() < 0.05:
            run += r.choice(PLAIN_MARKS[:3] if icu else PLAIN_MARKS[:2])
        if icu and r.random() < 0.2:
            run += r.choice(JOINING)
        elif r.random() < 0.7:
            run += r.choice(SEPARATING)
        parts.append(run)
        length += len(run)
    return ''.join(parts)


# ---- the rules ----

def within(c, ranges):
    return any(first <= ord(c) <= last for first, last in ranges)


def is_paired(c):
    """Han, Hiragana, Katakana, Hangul"""
    return within(c, HAN + [(0x3005, 0x3005), (0x3041, 0x3096), (0x30A1, 0x30FA), (0x30FC, 0x30FE), (0xFF66, 0xFF9D),
                            (0xAC00, 0xD7A3), (0x1100, 0x11FF)])


def is_katakana(c):
    return within(c, [(0x30A1, 0x30FA), (0x30FC, 0x30FE), (0xFF66, 0xFF9D)])


def is_hangul(c):
    return within(c, [(0xAC00, 0xD7A3), (0x1100, 0x11FF)])


def is_hebrew_quote(text, at):
    before = at - 1
    while before > 0 and is_mark(text[before]):
        before -= 1
    return text[at] == "'" and before >= 0 and within(text[before], [(0x5D0, 0x5F2)])


def is_mark(c):
    return unicodedata.category(c) in ('Mn', 'Mc', 'Me', 'Cf') and c != '\u200B' or c in '\uFF9E\uFF9F'


def is_east(c):
    return within(c, [(0xE01, 0xE3A), (0xE40, 0xEDF), (0x1000, 0x103F), (0x1780, 0x17DD)]) and \
        unicodedata.category(c) in ('Lo', 'Lm', 'Mn', 'Mc')


def is_flag(c):
    return 0x1F1E6 <= ord(c) <= 0x1F1FF


def is_emoji(c):
    return ord(c) >= 0x1F000 or c in '\u26BD\u26BE\u2728'


def is_word_character(c):
    return unicodedata.category(c)[0] in 'LN'


def boundaries(text):
    """Where ICU, or the rule without signs that join, divides the text."""
    if icu:
        it = icu.BreakIterator.createWordInstance(icu.Locale('sv'))  # with the colon of UAX 29
        utf16 = icu.UnicodeString(text)
        it.setText(utf16)
        ends, at, unit = {0}, 0, 0
        starts = {}
        for i, c in enumerate(text):  # UTF-16 units to characters
            starts[unit] = i
            unit += 2 if ord(c) > 0xFFFF else 1
        starts[unit] = len(text)
        for end in it:
            ends.add(starts[end])
        return ends

    def joins(c):
        return (unicodedata.category(c)[0] == 'L' or unicodedata.category(c) in ('Nd', 'Pc')) and \
            not within(c, HAN + [(0x3005, 0x3005), (0x3041, 0x3096)])

    def join(a, b):
        return joins(a) and joins(b) and (is_katakana(a) == is_katakana(b) or '_' in (a, b))
    ends, base = {0, len(text)}, ' '  # base: the last character that is no mark
    for i, c in enumerate(text):
        if not is_mark(c):
            if not join(base, c):
                ends.add(i)
            base = c
    return ends


def words(text):
    """The tokens before bigrams: (begin, end, kind), in characters."""
    ends = boundaries(text)
    found, i, n = [], 0, len(text)
    while i < n:
        c, j = text[i], i + 1
        while j < n and is_mark(text[j]) and not is_east(text[j]):
            j += 1
        if is_paired(c):  # RULE 1: a character with its marks is one; Lucene takes each code point for one
            found.append((i, j, 'paired'))
        elif is_flag(c):
            if found and found[-1][2] == 'flag' and found[-1][1] == i and found[-1][1] - found[-1][0] == 1:
                found[-1] = (found[-1][0], j, 'flag')
            else:
                found.append((i, j, 'flag'))
        elif is_emoji(c):  # RULE 2: each emoji is a term, also of those that U+200D joins
            found.append((i, j, 'emoji'))
        elif is_east(c):
            if not icu:
                raise SystemExit('no words of South-East Asia without PyICU')
            while j < n and (is_east(text[j]) or is_mark(text[j])) and j not in ends:
                j += 1
            found.append((i, j, 'word'))
        else:  # RULE 3: letters and digits are divided from Hangul and from scripts of South-East Asia
            while j < n and not (is_paired(text[j]) or is_east(text[j]) or is_emoji(text[j])) and \
                    (j not in ends or is_mark(text[j]) or
                     # RULE 6: a Hebrew letter's quote joins digits, too
                     text[j - 1] == "'" and unicodedata.category(text[j]) == 'Nd' and is_hebrew_quote(text, j - 1)):
                j += 1
            b = i  # the base of the character before
            while b > 0 and is_mark(text[b - 1]):
                b -= 1
            before, after = text[b - 1:b], text[j:j + 1]
            e = j - 1  # the base of the last character
            while e > i and is_mark(text[e]):
                e -= 1
            left = before and (is_hangul(before) or is_katakana(before) and text[i] == '_')
            right = after and (is_hangul(after) or is_katakana(after) and text[e] == '_')
            divided, k = left or right, j
            if divided and not any(map(is_word_character, text[i:j])):
                i = j
            while right and e > i and not is_word_character(text[e]):
                k, e = e, e - 1
                while e > i and is_mark(text[e]):
                    e -= 1
            while left and i < k and not is_word_character(text[i]):
                i += 1
            while before and (is_east(before) or before in JOINING) and i < k and \
                    (text[i] in JOINING or is_mark(text[i])):
                i += 1
            e = k
            while after and is_east(after) and e > i and is_mark(text[e - 1]):
                e -= 1
            if after and is_east(after) and e > i and text[e - 1] in JOINING and not is_hebrew_quote(text, e - 1):
                k = e - 1
            # RULE 5: underscores with a mark are a word
            if any(is_word_character(c) for c in text[i:k]) or '_' in text[i:k] and any(map(is_mark, text[i:k])):
                found.append((i, k, 'word'))
            elif '_' in text[i:j]:
                found.append((i, j, 'position' if not divided else 'none'))  # takes a position, and is no term
        i = j
    return [w for w in found if w[2] != 'none']


def reference(text, query):
    offsets, at = [], 0
    for c in text:
        offsets.append(at)
        at += len(c.encode())
    offsets.append(at)
    out, position, tokens = [], 0, words(text)
    for i, (begin, end, kind) in enumerate(tokens):
        before = i > 0 and tokens[i - 1][2] == kind and tokens[i - 1][1] == begin
        behind = i + 1 < len(tokens) and tokens[i + 1][2] == kind and tokens[i + 1][0] == end
        if kind != 'paired':
            if kind != 'position':
                out.append((position, offsets[begin], offsets[end]))
        else:
            if not query or not (before or behind):
                out.append((position, offsets[begin], offsets[end]))
            if behind:
                out.append((position, offsets[begin], offsets[tokens[i + 1][1]]))
        position += 1
    return out


# ---- the comparison ----

def analyzed(gpuidx, text, index=None):
    how = ['-i', index, '--query'] if index else ['--analyzer=multilingual', '--fold=none']
    out = subprocess.run([gpuidx, 'analyze', '-f', 'json'] + how, input=text.encode(), stdout=subprocess.PIPE,
                         check=True).stdout
    return [(t['position'], t['begin'], t['end']) for t in json.loads(out)['terms']]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('gpuidx')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--characters', type=int, default=20000)
    a = p.parse_args()
    r = random.Random(a.seed)
    bad = n_terms = 0
    with tempfile.TemporaryDirectory() as folder:
        index, corpus = folder + '/m.gx', folder + '/m.jsonl'
        with open(corpus, 'w', encoding='utf-8') as f:
            f.write('{"id": "1", "text": "a"}\n')
        subprocess.run([a.gpuidx, 'build', '-q', '--analyzer=multilingual', '--fold=none', corpus, '-o', index],
                       check=True)
        info = subprocess.run([a.gpuidx, 'info', index], stdout=subprocess.PIPE, check=True).stdout.decode()
        east = icu is not None and 'dictionary' in info and '(ICU %s)' % icu.ICU_VERSION in info
        left = a.characters
        while left > 0:
            text = generate(r, min(left, 5000), east)
            left -= len(text)
            for query in (False, True):
                want, got = reference(text, query), analyzed(a.gpuidx, text, index if query else None)
                n_terms += len(want)
                if want != got:
                    bad += 1
                    i = next((i for i, (w, g) in enumerate(zip(want, got)) if w != g), min(len(want), len(got)))
                    raw = text.encode()
                    at = want[i][1] if i < len(want) else 0
                    print('seed %d: term %d: want %r, got %r near %r' % (
                        a.seed, i, [(w[0], raw[w[1]:w[2]].decode('utf-8', 'replace')) for w in want[i:i + 3]],
                        [(g[0], raw[g[1]:g[2]].decode('utf-8', 'replace')) for g in got[i:i + 3]],
                        raw[max(0, at - 30):at + 30].decode('utf-8', 'replace')))
                    if bad == 5:
                        sys.exit(1)
    print('%d characters, %d terms, %s: %d texts differ' % (
        a.characters, n_terms, 'words by ICU ' + icu.ICU_VERSION if icu else 'words without joining signs', bad))
    sys.exit(bad != 0)


if __name__ == '__main__':
    main()
