#include "engine/api/gpuidx_advanced.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sized.h"
#include "engine/status.h"
#include "index/analysis/analyzer.h"
#include "index/index.h"
#include "query/plan/boolean.h"
#include "query/plan/phrases.h"

#define MAX_LOOKED_THROUGH ((size_t)1 << 20) /* bytes of a text; what comes later is not shown */
#define MAX_MATCHES 4096u

typedef struct query_term {
    char *bytes; /* NUL-terminated */
    size_t len;
    double weight;
    bool known;
    bool alone; /* it is marked wherever it stands, and not in phrases alone */
} query_term;

typedef struct match {
    size_t begin, end; /* bytes */
    size_t word;       /* number of the word it begins in */
    uint32_t term;
    uint32_t position; /* of the word in the text */
} match;

struct gx_highlighter {
    const gx_index *ix;
    uint32_t n_terms, n_unknown;
    bool taking_phrases; /* while the query is read */
    bool no_memory;      /* a term of the query was lost */
    gx_boolean *boolean; /* the query, for its phrases and the words that its patterns stand for; or NULL */
    gx_phrase_text *phrases;
    uint32_t n_phrases;
    /* of the text being looked through */
    const char *text;
    size_t at, word; /* words begun before `at` */
    bool in_word;
    uint32_t n_matches;
    /* Not set to zero when it is opened, which would take longer than many a search: */
    query_term terms[GX_MAX_TERMS]; /* [n_terms] */
    match matches[MAX_MATCHES];     /* [n_matches] */
    uint32_t seen[GX_MAX_TERMS];    /* stamp of the last window that counted the term */
};

static uint32_t find_term(const gx_highlighter *h, const char *term, size_t len)
{
    for (uint32_t i = 0; i < h->n_terms; ++i)
        if (h->terms[i].len == len && memcmp(h->terms[i].bytes, term, len) == 0)
            return i;
    return UINT32_MAX;
}

static bool take_query_term(void *user, const gx_found_term *found)
{
    gx_highlighter *h = user;
    const uint32_t there = find_term(h, found->term, found->len);
    if (there != UINT32_MAX) {
        h->terms[there].alone = h->terms[there].alone || !h->taking_phrases;
        return true;
    }
    if (h->n_terms == GX_MAX_TERMS)
        return false;
    query_term *t = &h->terms[h->n_terms];
    const uint64_t df = gx_index_df_of(h->ix, found->term, found->len);
    t->bytes = strndup(found->term, found->len);
    t->len = found->len;
    t->known = df != 0;
    t->alone = !h->taking_phrases;
    if (!t->bytes) {
        h->no_memory = true;
        return false;
    }
    t->weight = t->known ? log(1.0 + (double)gx_index_n_docs(h->ix) / (double)df) : 0.1;
    ++h->n_terms;
    h->n_unknown += !t->known;
    return true;
}

static gx_status take_text(gx_highlighter *h, const char *text, size_t len, gx_error *err)
{
    const gx_status st = gx_analyze_query(h->ix->analyzer, text, len, take_query_term, h);
    return st ? gx_fail(err, st, "cannot analyse a query of %zu bytes: %s", len, gx_status_name(st)) : st;
}

/* The words of a phrase; of a group those that some document has, or the first. */
static void take_phrase(gx_highlighter *h, const gx_phrase_text *p)
{
    const bool group = gx_phrase_is_group(p->kind);
    h->taking_phrases = !group;
    for (uint32_t w = 0; w < p->n; ++w) {
        const gx_phrase_text_word *x = &p->words[w];
        if (x->len && (!group || w == 0 || gx_index_df_of(h->ix, x->term, x->len)))
            take_query_term(h, &(gx_found_term){.term = x->term, .len = x->len});
    }
    h->taking_phrases = false;
}

/* The terms of a boolean query; of a pattern without words, none. */
static gx_status take_boolean(gx_highlighter *h, const gx_query *q, const gx_query_options *opt, gx_error *err)
{
    gx_status st = q->kind == GX_QUERY_TEXT
                       ? gx_boolean_open_text(&h->boolean, h->ix, q->text, q->len, opt, err)
                       : gx_boolean_open(&h->boolean, h->ix, NULL, q->text, q->len, opt, NULL, err);
    if (st == GX_OK && !(h->phrases = gx_boolean_phrases(h->boolean, &h->n_phrases)))
        st = gx_fail(err, GX_ENOMEM, "no memory for the phrases of a query");
    for (uint32_t i = 0; st == GX_OK && i < gx_boolean_n_words(h->boolean); ++i) {
        size_t len;
        const char *term = gx_boolean_term(h->boolean, i, &len);
        if (len)
            take_query_term(h, &(gx_found_term){.term = term, .len = len});
    }
    for (uint32_t i = 0; st == GX_OK && i < h->n_phrases; ++i)
        take_phrase(h, &h->phrases[i]);
    return st;
}

static gx_status take_query(gx_highlighter *h, const gx_query *q, const gx_query_options *opt, gx_error *err)
{
    switch (q->kind) {
    case GX_QUERY_TEXT:
        if (gx_has_phrases(h->ix, q, opt))
            return take_boolean(h, q, opt, err);
        return take_text(h, q->text, q->len, err);
    case GX_QUERY_TERMS:
        for (uint32_t i = 0; i < q->n_terms; ++i)
            take_query_term(h, &(gx_found_term){.term = q->terms[i].term, .len = q->terms[i].len});
        return GX_OK;
    case GX_QUERY_ALL:
        return GX_OK;
    case GX_QUERY_BOOLEAN:
        return take_boolean(h, q, opt, err);
    }
    return gx_fail(err, GX_EUSAGE, "queries of kind %d do not exist", (int)q->kind);
}

gx_status gx_highlighter_open(gx_highlighter **out, const gx_index *ix, const gx_query *query, gx_error *err)
{
    return gx_highlighter_open_options(out, ix, query, NULL, err);
}

gx_status gx_highlighter_open_options(gx_highlighter **out, const gx_index *ix, const gx_query *query,
                                      const gx_query_options *options, gx_error *err)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    *out = NULL;
    gx_query q = GX_TEXT_QUERY("", 0);
    gx_status st = gx_sized_read(&q, sizeof q, query, GX_SIZE_THROUGH(gx_query, n_terms), "gx_query", err);
    if (st == GX_OK)
        st = gx_sized_read(&opt, sizeof opt, options, GX_SIZE_THROUGH(gx_query_options, mask), "gx_query_options", err);
    if (st != GX_OK)
        return st;
    opt.op = GX_OP_OR;
    opt.sdm = (gx_sdm){0, 0, 0}; /* pairs are words that are marked anyway */
    gx_highlighter *h = malloc(sizeof *h);
    if (!h)
        return gx_fail(err, GX_ENOMEM, "no memory to show snippets");
    memset(h, 0, offsetof(gx_highlighter, terms));
    h->ix = ix;
    st = take_query(h, &q, &opt, err);
    if (st == GX_OK && h->no_memory)
        st = gx_fail(err, GX_ENOMEM, "no memory to show snippets");
    if (st == GX_OK)
        *out = h;
    else
        gx_highlighter_close(h);
    return st;
}

void gx_highlighter_close(gx_highlighter *h)
{
    if (!h)
        return;
    for (uint32_t i = 0; i < h->n_terms; ++i)
        free(h->terms[i].bytes);
    gx_boolean_close(h->boolean);
    free(h->phrases);
    free(h);
}

uint32_t gx_highlighter_n_patterns(const gx_highlighter *h)
{
    return h->boolean ? gx_boolean_n_expanded(h->boolean) : 0;
}

const gx_expansion *gx_highlighter_pattern(const gx_highlighter *h, uint32_t i, gx_text *pattern)
{
    return gx_boolean_expanded(h->boolean, i, pattern);
}

uint32_t gx_highlighter_n_terms(const gx_highlighter *h)
{
    return h->n_terms;
}
uint32_t gx_highlighter_n_unknown(const gx_highlighter *h)
{
    return h->n_unknown;
}

const char *gx_highlighter_unknown(const gx_highlighter *h, uint32_t i)
{
    for (uint32_t t = 0; t < h->n_terms; ++t)
        if (!h->terms[t].known && i-- == 0)
            return h->terms[t].bytes;
    return "";
}

gx_status gx_highlighter_suggest(gx_expansion **out, const gx_highlighter *h, uint32_t i, uint32_t n, gx_error *err)
{
    return gx_index_suggest_term(out, h->ix, gx_highlighter_unknown(h, i), strlen(gx_highlighter_unknown(h, i)), n,
                                 err);
}

/* ---- the text ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}
static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
} /* inside a UTF-8 character */

/* Count the words that begin before byte `to`. */
static void count_words(gx_highlighter *h, size_t to)
{
    for (; h->at < to; ++h->at) {
        const bool space = is_space(h->text[h->at]);
        h->word += !space && !h->in_word;
        h->in_word = !space;
    }
}

static bool take_text_term(void *user, const gx_found_term *found)
{
    gx_highlighter *h = user;
    const uint32_t t = find_term(h, found->term, found->len);
    if (t == UINT32_MAX)
        return true;
    if (h->n_matches == MAX_MATCHES)
        return false;
    count_words(h, found->begin + 1); /* the word of this term is the last begun one */
    h->matches[h->n_matches++] = (match){found->begin, found->end, h->word - 1, t, found->position};
    return true;
}

/* ---- phrases in the text ---- */

/* The words of a phrase in the text. */
typedef struct text_places {
    uint32_t n;            /* places of the phrase */
    gx_word_places *words; /* [n] */
    uint32_t *positions;   /* [n_places] */
    uint32_t *matches;     /* [n_places] their matches' numbers */
    uint32_t *begins;      /* [n] of each word's places */
    bool *keep;            /* [n_matches] */
} text_places;

static void keep_place(void *user, uint32_t word, uint32_t place)
{
    text_places *t = user;
    t->keep[t->matches[t->begins[word] + place]] = true;
}

static bool is_one_of(const gx_highlighter *h, uint32_t term, const gx_phrase_text_word *words, uint32_t n)
{
    const query_term *t = &h->terms[term];
    for (uint32_t i = 0; i < n; ++i)
        if (t->len == words[i].len && memcmp(t->bytes, words[i].term, t->len) == 0)
            return true;
    return false;
}

/* Find where the words of the phrase stand. false: no memory. */
static bool find_places(text_places *t, const gx_highlighter *h, const gx_phrase_text *p)
{
    const size_t room = (size_t)p->n * h->n_matches + 1;
    uint32_t n = 0;
    t->words = malloc((p->n + 1ull) * sizeof *t->words);
    t->begins = malloc((p->n + 1ull) * sizeof *t->begins);
    t->positions = malloc(room * sizeof *t->positions);
    t->matches = malloc(room * sizeof *t->matches);
    if (!t->words || !t->begins || !t->positions || !t->matches)
        return false;
    t->n = 0;
    for (uint32_t w = 0, end; w < p->n; w = end) {
        for (end = w + 1; end < p->n && p->words[end].other; ++end)
            ;
        const uint32_t place = t->n++;
        t->begins[place] = n;
        for (uint32_t i = 0; i < h->n_matches; ++i) {
            if (!is_one_of(h, h->matches[i].term, p->words + w, end - w))
                continue;
            t->positions[n] = h->matches[i].position;
            t->matches[n++] = i;
        }
        t->words[place] = (gx_word_places){t->positions + t->begins[place], n - t->begins[place], p->words[w].offset,
                                           find_term(h, p->words[w].term, p->words[w].len)};
    }
    return true;
}

#define MOST_MARKED_WORDS 64u /* longer phrases have their words marked wherever they stand */

static bool keep_phrase(bool *keep, const gx_highlighter *h, const gx_phrase_text *p)
{
    text_places t = {.keep = keep};
    if (gx_phrase_is_group(p->kind))
        return true;
    bool good = (p->n <= MOST_MARKED_WORDS || p->words[p->n - 1].other) && find_places(&t, h, p);
    const gx_phrase phrase = {p->kind, p->slop, t.n, NULL};
    uint32_t *scratch = good ? malloc(((size_t)p->n * (h->n_matches + 1ull) + 1) * sizeof *scratch) : NULL;
    good = good && scratch;
    if (good)
        gx_phrase_mark_places(&phrase, t.words, scratch, keep_place, &t);
    free(scratch);
    free(t.words);
    free(t.begins);
    free(t.positions);
    free(t.matches);
    return good;
}

/* Leave out words that the query has in phrases alone, and that stand in none here. Without memory they stay. */
static void keep_phrases(gx_highlighter *h)
{
    bool *keep = h->n_phrases && h->n_matches ? malloc(h->n_matches * sizeof *keep) : NULL;
    bool good = keep != NULL;
    uint32_t kept = 0;
    for (uint32_t i = 0; good && i < h->n_matches; ++i)
        keep[i] = h->terms[h->matches[i].term].alone;
    for (uint32_t i = 0; good && i < h->n_phrases; ++i)
        good = keep_phrase(keep, h, &h->phrases[i]);
    for (uint32_t i = 0; good && i < h->n_matches; ++i)
        if (keep[i])
            h->matches[kept++] = h->matches[i];
    if (good)
        h->n_matches = kept;
    free(keep);
}

/* The first of the matches that make the best window of max_words words, and how many there are in
 * it. */
static uint32_t best_window(gx_highlighter *h, uint32_t max_words, uint32_t *count)
{
    uint32_t best = 0;
    double best_weight = -1;
    memset(h->seen, 0, sizeof h->seen);
    *count = 0;
    for (uint32_t i = 0; i < h->n_matches; ++i) {
        double weight = 0;
        uint32_t j = i;
        for (; j < h->n_matches && h->matches[j].word < h->matches[i].word + max_words; ++j) {
            const uint32_t t = h->matches[j].term;
            weight += h->seen[t] == i + 1 ? 0.01 : h->terms[t].weight;
            h->seen[t] = i + 1;
        }
        if (weight > best_weight * 1.0000001) {
            best_weight = weight;
            best = i;
            *count = j - i;
        }
    }
    return best;
}

/* Go back from `at` (the begin of a word) over up to n words, but not past `least` or a sentence's
 * end. */
static size_t back_words(const char *text, size_t at, size_t least, uint32_t n)
{
    while (n-- > 0 && at > least) {
        size_t p = at;
        while (p > least && is_space(text[p - 1]))
            --p;
        if (p == least)
            break;
        if (p > least + 1 && (text[p - 1] == '.' || text[p - 1] == '?' || text[p - 1] == '!') && !is_space(text[p - 2]))
            break;
        while (p > least && !is_space(text[p - 1]))
            --p;
        at = p;
    }
    return at;
}

/* Go forth from `at` over n words, not past `most`. */
static size_t forth_words(const char *text, size_t at, size_t most, uint32_t n)
{
    while (n-- > 0 && at < most) {
        while (at < most && is_space(text[at]))
            ++at;
        while (at < most && !is_space(text[at]))
            ++at;
    }
    return at;
}

gx_status gx_highlighter_snippet(gx_highlighter *h, const char *text, size_t len, uint32_t max_words, gx_snippet *out,
                                 gx_error *err)
{
    h->text = text;
    h->at = h->word = 0;
    h->in_word = false;
    h->n_matches = 0;
    if (len > MAX_LOOKED_THROUGH)
        for (len = MAX_LOOKED_THROUGH; len > 0 && continues(text[len]); --len)
            ;
    const gx_status st = gx_analyze(h->ix->analyzer, text, len, take_text_term, h);
    if (st != GX_OK)
        return gx_fail(err, st, "cannot analyse a stored text: %s", gx_status_name(st));

    keep_phrases(h);
    uint32_t count;
    const uint32_t first = best_window(h, max_words, &count);
    gx_snippet s = {0};
    size_t anchor = 0, marked = 0;
    if (count) {
        const match *m = &h->matches[first];
        const uint32_t span = (uint32_t)(m[count - 1].word - m->word) + 1;
        anchor = m->begin;
        size_t start = m->begin; /* of the word that the match lies in, which may begin with a bracket */
        while (start > 0 && !is_space(text[start - 1]) && m->begin - start < GX_SNIPPET_BYTES / 4)
            --start;
        s.begin = back_words(text, start, m->begin > GX_SNIPPET_BYTES / 4 ? m->begin - GX_SNIPPET_BYTES / 4 : 0,
                             (max_words - span) / 2);
    }
    while (s.begin < len && is_space(text[s.begin]))
        ++s.begin;
    s.end = forth_words(text, s.begin, len, max_words);
    if (s.end - s.begin > GX_SNIPPET_BYTES)
        s.end = s.begin + GX_SNIPPET_BYTES;
    while (s.begin < anchor && continues(text[s.begin]))
        ++s.begin;
    while (s.end > s.begin && s.end < len && continues(text[s.end]))
        --s.end;
    for (uint32_t i = 0; i < h->n_matches && s.n_marks < GX_MAX_MARKS; ++i)
        if (h->matches[i].begin >= s.begin && h->matches[i].end <= s.end && h->matches[i].end > marked) {
            const size_t begin = h->matches[i].begin; /* of a character that belongs to the mark before, too */
            s.marks[s.n_marks].begin = begin < marked ? marked : begin;
            s.marks[s.n_marks++].end = marked = h->matches[i].end;
        }
    *out = s;
    return GX_OK;
}
