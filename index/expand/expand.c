/* expand.c: the words of a file or a collection that a pattern stands for. */
#include "index/expand/patterns.h"

#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_expansion.h"
#include "engine/memory/grow.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "index/analysis/analyzer.h"
#include "index/read/collection.h"

typedef struct pattern {
    gx_pattern_kind kind;
    gx_wildcard wildcard;
    gx_fuzzy fuzzy;
    gx_regex *regex;
} pattern;

/* ---- what is found ---- */

static bool is_worse(const gx_found *f, const gx_match_found *a, const gx_match_found *b)
{
    if (f->nearest && a->distance != b->distance)
        return a->distance > b->distance;
    return a->df != b->df ? a->df < b->df : a->term > b->term;
}

/* The heap's top has been replaced. */
static void sift_down(gx_found *f)
{
    gx_match_found *h = f->items;
    for (size_t i = 0, c; (c = 2 * i + 1) < f->n; i = c) {
        c += c + 1 < f->n && is_worse(f, &h[c + 1], &h[c]);
        if (!is_worse(f, &h[c], &h[i]))
            break;
        const gx_match_found x = h[i];
        h[i] = h[c];
        h[c] = x;
    }
}

static void sift_up(gx_found *f)
{
    gx_match_found *h = f->items;
    for (size_t i = f->n - 1, up; i && is_worse(f, &h[i], &h[up = (i - 1) / 2]); i = up) {
        const gx_match_found x = h[i];
        h[i] = h[up];
        h[up] = x;
    }
}

void gx_found_add(gx_found *f, uint32_t term, uint32_t distance)
{
    const uint64_t df = f->ix->lists[term].df - (f->deleted_dfs ? f->deleted_dfs[term] : 0);
    const gx_match_found x = {f->part, term, df, distance};
    if (df == 0)
        return;
    ++f->n_matched;
    if (f->all || f->n < f->most) {
        if (!gx_reserve(&f->items, &f->max, f->n + 1, sizeof *f->items)) {
            f->failed = true;
            return;
        }
        f->items[f->n++] = x;
        if (!f->all)
            sift_up(f);
    } else if (is_worse(f, &f->items[0], &x)) {
        f->items[0] = x;
        sift_down(f);
    }
}

/* ---- letters ---- */

uint32_t gx_pattern_letters(const gx_index *ix, bool as_is, uint32_t c, uint32_t *out)
{
    char bytes[4], folded[3 * 4 * GX_LETTER_MAX];
    uint32_t n = 0, used;
    size_t len;
    out[0] = c;
    if (as_is || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
        return 1;
    len = gx_analyzer_letters(ix->analyzer, bytes, gx_put_character(bytes, c), folded, sizeof folded);
    for (size_t at = 0; at < len && n < GX_LETTER_MAX; at += used)
        out[n++] = gx_first_character(folded + at, len - at, true, &used);
    if (n == 0)
        out[0] = c;
    return n ? n : 1;
}

/* ---- patterns ---- */

typedef struct one_term {
    char *bytes; /* [len] of the first one */
    size_t len;
    uint32_t n;
    bool failed;
} one_term;

static bool take_term(void *user, const gx_found_term *found)
{
    one_term *t = user;
    const size_t len = found->len;
    if (t->n++)
        return false;
    t->bytes = malloc(len + 1);
    t->failed = !t->bytes;
    t->len = len;
    if (t->bytes)
        memcpy(t->bytes, found->term, len);
    return !t->failed;
}

/* The word as the analyzer makes it; where it drops the word or splits it, with its letters changed alone. */
static gx_status compile_fuzzy(gx_fuzzy *z, const gx_index *ix, const char *text, size_t len,
                               const gx_expand_options *opt, gx_error *err)
{
    one_term t = {0};
    gx_status st = opt->as_is ? GX_OK : gx_analyze_query(ix->analyzer, text, len, take_term, &t);
    if (st == GX_OK && t.failed)
        st = GX_ENOMEM;
    if (st == GX_OK && t.n != 1) {
        free(t.bytes);
        t.bytes = malloc(3 * GX_LETTER_MAX * len + 1);
        t.len = 0;
        st = t.bytes ? GX_OK : GX_ENOMEM;
        for (size_t at = 0; st == GX_OK && at < len;) {
            uint32_t used, letters[GX_LETTER_MAX];
            const uint32_t c = gx_first_character(text + at, len - at, true, &used);
            const uint32_t n = c < GX_LONE_BYTE ? gx_pattern_letters(ix, opt->as_is, c, letters) : 0;
            for (uint32_t i = 0; i < n; ++i)
                t.len += gx_put_character(t.bytes + t.len, letters[i]);
            if (n == 0)
                t.bytes[t.len++] = text[at];
            at += used;
        }
    }
    st = st != GX_OK ? gx_fail(err, st, "cannot analyse a word of %zu bytes: %s", len, gx_status_name(st))
                     : gx_fuzzy_compile(z, t.bytes, t.len, opt->distance, opt->fixed_prefix, err);
    free(t.bytes);
    return st;
}

static gx_status check_text(gx_pattern_kind kind, const char *text, size_t len, gx_error *err)
{
    if (kind != GX_PATTERN_FUZZY)
        return GX_OK;
    if (len == 0)
        return gx_fail(err, GX_EUSAGE, "the pattern is empty");
    if (len > 4 * (size_t)GX_MAX_PATTERN_CHARACTERS)
        return gx_fail(err, GX_EUSAGE, "a word with typing errors has at most %u characters", GX_MAX_FUZZY_CHARACTERS);
    for (size_t at = 0; at < len;) {
        uint32_t used;
        if (gx_first_character(text + at, len - at, true, &used) >= GX_LONE_BYTE)
            return gx_fail(err, GX_EUSAGE, "byte %zu of the pattern is not UTF-8", at + 1);
        at += used;
    }
    return GX_OK;
}

static gx_status compile(pattern *p, const gx_index *ix, const char *text, size_t len, const gx_expand_options *opt,
                         gx_error *err)
{
    const gx_status st = check_text(p->kind, text, len, err);
    if (st != GX_OK)
        return st;
    switch (p->kind) {
    case GX_PATTERN_PREFIX:
    case GX_PATTERN_WILDCARD:
        return gx_wildcard_compile(&p->wildcard, ix, text, len, p->kind == GX_PATTERN_PREFIX, opt->as_is, err);
    case GX_PATTERN_FUZZY:
        return compile_fuzzy(&p->fuzzy, ix, text, len, opt, err);
    case GX_PATTERN_REGEX:
        return gx_regex_compile(&p->regex, ix, text, len, opt->as_is, err);
    }
    return gx_fail(err, GX_EUSAGE, "patterns of kind %d do not exist", (int)p->kind);
}

static void free_pattern(pattern *p)
{
    gx_wildcard_free(&p->wildcard);
    gx_regex_free(p->regex);
}

static gx_status find_in_file(pattern *p, gx_found *f, gx_error *err)
{
    return p->kind == GX_PATTERN_FUZZY   ? gx_fuzzy_find(&p->fuzzy, f, err)
           : p->kind == GX_PATTERN_REGEX ? gx_regex_find(p->regex, f, err)
                                         : gx_wildcard_find(&p->wildcard, f, err);
}

/* ---- files and collections ---- */

/* A term and its bytes, to bring the parts' terms together. */
typedef struct whole_term {
    gx_match_found found;
    const char *bytes;
    size_t len;
} whole_term;

static int by_bytes(const void *a, const void *b)
{
    const whole_term *x = a, *y = b;
    const int order = memcmp(x->bytes, y->bytes, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static int by_df(const void *a, const void *b)
{
    const whole_term *x = a, *y = b;
    return x->found.df != y->found.df ? (x->found.df < y->found.df ? 1 : -1) : by_bytes(a, b);
}

static int by_distance(const void *a, const void *b)
{
    const whole_term *x = a, *y = b;
    return x->found.distance != y->found.distance ? (x->found.distance > y->found.distance ? 1 : -1) : by_df(a, b);
}

/* Equal terms become one, whose df is the sum. Returns their number. */
static size_t merge_terms(whole_term *t, size_t n)
{
    size_t kept = 0;
    qsort(t, n, sizeof *t, by_bytes);
    for (size_t i = 0; i < n; ++i) {
        if (kept && by_bytes(&t[kept - 1], &t[i]) == 0)
            t[kept - 1].found.df += t[i].found.df;
        else
            t[kept++] = t[i];
    }
    return kept;
}

static gx_status make_expansion(gx_expansion **out, const whole_term *t, uint32_t n, uint64_t n_matched, gx_error *err)
{
    size_t n_bytes = 0;
    for (uint32_t i = 0; i < n; ++i)
        n_bytes += t[i].len + 1;
    gx_expansion *e = malloc(sizeof *e + n * sizeof *e->words + n_bytes);
    if (!e)
        return gx_fail(err, GX_ENOMEM, "no memory for %u words", n);
    *e = (gx_expansion){(gx_expanded_word *)(e + 1), n, n_matched};
    char *bytes = (char *)(e->words + n);
    for (uint32_t i = 0; i < n; ++i) {
        e->words[i] = (gx_expanded_word){bytes, t[i].len, t[i].found.df, t[i].found.distance};
        memcpy(bytes, t[i].bytes, t[i].len);
        bytes[t[i].len] = 0;
        bytes += t[i].len + 1;
    }
    *out = e;
    return GX_OK;
}

static gx_status show_found(gx_expansion **out, const gx_index *ix, const gx_found *f, gx_error *err)
{
    whole_term *t = malloc((f->n + 1) * sizeof *t);
    uint64_t n_matched = f->n_matched;
    size_t n = f->n;
    if (!t)
        return gx_fail(err, GX_ENOMEM, "no memory for %zu words", n);
    for (size_t i = 0; i < n; ++i) {
        const gx_index *file = ix->parts ? ix->parts->parts[f->items[i].part].ix : ix;
        t[i].found = f->items[i];
        t[i].bytes = gx_strings_get(&file->terms, f->items[i].term, &t[i].len);
    }
    if (ix->parts)
        n_matched = n = merge_terms(t, n);
    qsort(t, n, sizeof *t, f->nearest ? by_distance : by_df);
    const gx_status st = make_expansion(out, t, (uint32_t)(n < f->most ? n : f->most), n_matched, err);
    free(t);
    return st;
}

static gx_status find_all(pattern *p, gx_found *f, const gx_index *ix, gx_error *err)
{
    gx_status st = GX_OK;
    f->ix = ix;
    if (!ix->parts)
        return find_in_file(p, f, err);
    f->all = ix->parts->n > 1;
    for (uint32_t i = 0; i < ix->parts->n && st == GX_OK; ++i) {
        const gx_part *part = &ix->parts->parts[i];
        f->ix = part->ix;
        f->part = i;
        f->deleted_dfs = part->deletes ? part->deletes->dfs : NULL;
        st = find_in_file(p, f, err);
    }
    return st;
}

static gx_status check_options(const gx_expand_options *opt, gx_error *err)
{
    if (opt->max_words == 0 || opt->max_words > GX_MAX_EXPANSIONS)
        return gx_fail(err, GX_EUSAGE, "%u words of a pattern are asked for; from 1 to %u are possible", opt->max_words,
                       GX_MAX_EXPANSIONS);
    if (opt->distance > GX_DISTANCE_AUTO)
        return gx_fail(err, GX_EUSAGE, "the distance is %u; it must be at most %u", opt->distance, GX_MAX_DISTANCE);
    return GX_OK;
}

gx_status gx_index_expand(gx_expansion **out, const gx_index *ix, gx_pattern_kind kind, const char *text, size_t len,
                          const gx_expand_options *given, gx_error *err)
{
    gx_expand_options opt = GX_EXPAND_OPTIONS;
    pattern p = {.kind = kind};
    gx_found f = {0};
    *out = NULL;
    gx_clear_error(err);
    gx_status st =
        gx_sized_read(&opt, sizeof opt, given, GX_SIZE_THROUGH(gx_expand_options, nearest), "gx_expand_options", err);
    if (st == GX_OK && (st = check_options(&opt, err)) == GX_OK)
        st = compile(&p, ix, text, len, &opt, err);
    f.most = opt.max_words;
    f.nearest = opt.nearest;
    if (st == GX_OK && (st = find_all(&p, &f, ix, err)) == GX_OK)
        st = show_found(out, ix, &f, err);
    free_pattern(&p);
    free(f.items);
    return st;
}

void gx_expansion_free(gx_expansion *e)
{
    free(e);
}

gx_status gx_index_suggest_term(gx_expansion **out, const gx_index *ix, const char *term, size_t len, uint32_t n,
                                gx_error *err)
{
    gx_expand_options opt = GX_EXPAND_OPTIONS;
    gx_fuzzy z;
    *out = NULL;
    gx_clear_error(err);
    opt.max_words = n;
    opt.nearest = opt.as_is = true;
    const gx_status st = check_options(&opt, err);
    if (st != GX_OK)
        return st;
    if (check_text(GX_PATTERN_FUZZY, term, len, NULL) != GX_OK || gx_index_df_of(ix, term, len) ||
        gx_fuzzy_compile(&z, term, len, 0, 0, NULL) != GX_OK)
        return make_expansion(out, NULL, 0, 0, err);
    return gx_index_expand(out, ix, GX_PATTERN_FUZZY, term, len, &opt, err);
}

gx_status gx_index_suggest(gx_expansion **out, const gx_index *ix, const char *word, size_t len, uint32_t n,
                           gx_error *err)
{
    one_term t = {0};
    *out = NULL;
    gx_status st = gx_analyze_query(ix->analyzer, word, len, take_term, &t);
    if (st != GX_OK || t.failed)
        st = gx_fail(err, GX_ENOMEM, "cannot analyse a word of %zu bytes", len);
    else
        st = gx_index_suggest_term(out, ix, t.n == 1 ? t.bytes : "", t.n == 1 ? t.len : 0, n, err);
    free(t.bytes);
    return st;
}
