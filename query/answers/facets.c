/* facets.c: what a caller asks of facets, and the answer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/heap.h"
#include "engine/memory/grow.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "index/read/collection.h"
#include "query/engine/session.h"
#include "query/facet/facet_ordinals.h"

#define MAX_WIDTH 0x1p62 /* of whole numbers */

/* ---- what is asked ---- */

/* Whether text[len] begins with the key, which ends with '='; *value is then what follows it. */
static bool take_key(const char *text, size_t len, const char *key, const char **value, size_t *n)
{
    const size_t k = strlen(key);
    *value = text + k;
    *n = len - k;
    return len >= k && memcmp(text, key, k) == 0;
}

static bool is_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(text, word, len) == 0;
}

static bool read_count(const char *text, size_t len, uint64_t most, uint32_t *out)
{
    int64_t n;
    if (gx_parse_int(text, len, &n) || n < 1 || (uint64_t)n > most)
        return false;
    *out = (uint32_t)n;
    return true;
}

/* What has been read of a facet's text. */
typedef struct reader {
    gx_facet *f;
    bool n, order, grouping; /* they are given */
    gx_error *err;
} reader;

static gx_status read_bins(reader *r, const char *value, size_t n)
{
    r->f->grouping = is_word(value, n, "stored") ? GX_FACET_STORED : GX_FACET_BINS;
    if (r->f->grouping == GX_FACET_BINS && !read_count(value, n, GX_MAX_BINS, &r->f->bins))
        return gx_fail(r->err, GX_EUSAGE, "facet: bins=%.*s is neither a number from 1 to %u nor 'stored'", (int)n,
                       value, GX_MAX_BINS);
    return GX_OK;
}

static gx_status read_period(reader *r, const char *value, size_t n)
{
    static const char *const periods[] = {"year", "month", "day"};
    for (int i = 0; i < 3; ++i)
        if (is_word(value, n, periods[i])) {
            r->f->grouping = (gx_facet_grouping)(GX_FACET_YEARS + i);
            return GX_OK;
        }
    return gx_fail(r->err, GX_EUSAGE, "facet: by=%.*s is none of year, month, day", (int)n, value);
}

/* A whole number that no double is, and so no width of ints either. */
static bool is_rounded(const char *text, size_t len)
{
    int64_t n;
    double x;
    return !gx_parse_int(text, len, &n) && !gx_parse_float(text, len, &x) && (x >= 0x1p63 || (int64_t)x != n);
}

static gx_status read_width(reader *r, const char *value, size_t n)
{
    const int shown = (int)(n < 60 ? n : 60);
    r->f->grouping = GX_FACET_WIDTH;
    if (gx_parse_float(value, n, &r->f->width) || !(r->f->width > 0))
        return gx_fail(r->err, GX_EUSAGE, "facet: 'width=%.*s': the width is no number above 0", shown, value);
    if (is_rounded(value, n))
        return gx_fail(r->err, GX_EUSAGE, "facet: 'width=%.*s': the width is rounded to %.17g; write that", shown,
                       value, r->f->width);
    return GX_OK;
}

/* What stands between two colons. */
static gx_status read_option(reader *r, const char *text, size_t len)
{
    const char *value;
    size_t n;
    const int shown = (int)(len < 60 ? len : 60);
    const bool by = take_key(text, len, "by=", &value, &n), bins = !by && take_key(text, len, "bins=", &value, &n),
               width = !by && !bins && take_key(text, len, "width=", &value, &n);
    if ((by || bins || width) && r->grouping)
        return gx_fail(r->err, GX_EUSAGE, "facet: '%.*s': a facet has one of by=, bins= and width=, and once", shown,
                       text);
    r->grouping = r->grouping || by || bins || width;
    if (by || bins || width)
        return by     ? read_period(r, value, n < 60 ? n : 60)
               : bins ? read_bins(r, value, n < 60 ? n : 60)
                      : read_width(r, value, n);
    if (take_key(text, len, "order=", &value, &n)) {
        r->order = true;
        r->f->order = is_word(value, n, "value") ? GX_FACET_BY_VALUE : GX_FACET_BY_COUNT;
        if (is_word(value, n, "value") || is_word(value, n, "count"))
            return GX_OK;
        return gx_fail(r->err, GX_EUSAGE, "facet: '%.*s' is none of order=count, order=value", shown, text);
    }
    r->n = true;
    r->f->n = 0;
    if (is_word(text, len, "all") || read_count(text, len, UINT32_MAX, &r->f->n))
        return GX_OK;
    return gx_fail(r->err, GX_EUSAGE,
                   "facet: '%.*s' is neither a number of groups, of at least 1, nor one of all, by=, bins=, width=, "
                   "order=",
                   shown, text);
}

gx_status gx_facet_read(gx_facet *out, const char *text, gx_error *err)
{
    gx_facet f = GX_FACET;
    reader r = {.f = &f, .err = err};
    gx_clear_error(err);
    f.name = text;
    f.name_len = strcspn(text, ":");
    if (f.name_len == 0)
        return gx_fail(err, GX_EUSAGE, "facet: '%.60s' begins with no name of an attribute", text);
    for (const char *p = text + f.name_len; *p;) {
        const size_t n = strcspn(++p, ":");
        const gx_status st = read_option(&r, p, n);
        if (st != GX_OK)
            return st;
        p += n;
    }
    if (f.grouping >= GX_FACET_BINS) {
        f.order = r.order ? f.order : GX_FACET_BY_VALUE;
        f.n = r.n ? f.n : 0;
    }
    *out = f;
    return GX_OK;
}

/* What is wrong with a grouping of the column's values. NULL: nothing. */
static const char *fault_of(const gx_facet *f, const gx_index *ix, const gx_column *c)
{
    const bool date = c->type == GX_ATTRIBUTE_DATE, number = c->type <= GX_ATTRIBUTE_FLOAT;
    switch (f->grouping) {
    case GX_FACET_VALUES:
        return NULL;
    case GX_FACET_YEARS:
    case GX_FACET_MONTHS:
    case GX_FACET_DAYS:
        return date ? NULL : "has no years, months and days: by= is for a date";
    case GX_FACET_BINS:
        if (!number && !date)
            return "has no bins: they are for int, float and date";
        return f->bins >= 1 && f->bins <= GX_MAX_BINS ? NULL : "is asked for too many bins, or none";
    case GX_FACET_WIDTH:
        if (!number)
            return "has no ranges of a width: they are for int and float";
        if (!(f->width > 0) || !isfinite(f->width))
            return "is asked for ranges of a width that is not above 0";
        if (c->type == GX_ATTRIBUTE_INT && (f->width != floor(f->width) || f->width > MAX_WIDTH))
            return "has whole numbers, and the width is none, or too large";
        return NULL;
    case GX_FACET_STORED:
        if (!number && !date)
            return "has no bins: they are for int, float and date";
        if (ix->parts && ix->parts->n > 1)
            return "has bins of its own in each file of the collection; give their number, as in bins=10";
        if ((ix->parts ? ix->parts->parts[0].ix->columns[c - ix->columns].bitmaps : c->bitmaps).encoding ==
            GX_BITMAPS_NONE)
            return "has no bitmap columns, and so no stored bins; give their number, as in bins=10";
        return NULL;
    }
    return "is asked for a grouping that does not exist";
}

/* Read the caller's facet i, all of the size of the first, and find its column. */
static gx_status check_facet(gx_facet *out, uint32_t *column, const gx_index *ix, const gx_facet *facets, uint32_t i,
                             gx_error *err)
{
    char why[GX_NO_ATTRIBUTE_TEXT];
    gx_facet f = GX_FACET;
    gx_status st = gx_sized_check(facets->size, GX_SIZE_THROUGH(gx_facet, width), "gx_facet", err);
    if (st == GX_OK)
        st = gx_sized_read(&f, sizeof f, (const char *)facets + i * facets->size, GX_SIZE_THROUGH(gx_facet, width),
                           "gx_facet", err);
    if (st != GX_OK)
        return st;
    if (!f.name || (*column = gx_column_find(ix, f.name, f.name_len, why)) == UINT32_MAX)
        return gx_fail(err, GX_EUSAGE, "facet: %s", f.name ? why : "it has no name");
    const gx_column *c = &ix->columns[*column];
    const char *fault = fault_of(&f, ix, c);
    if (f.order != GX_FACET_BY_COUNT && f.order != GX_FACET_BY_VALUE)
        fault = "is asked for an order that does not exist";
    if (fault)
        return gx_fail(err, GX_EUSAGE, "facet: %.*s is of type %s and %s", (int)c->name_len, c->name,
                       gx_attribute_type_name(c->type), fault);
    if (f.grouping == GX_FACET_VALUES && c->type == GX_ATTRIBUTE_DATE)
        f.grouping = GX_FACET_YEARS;
    *out = f;
    return GX_OK;
}

gx_status gx_facets_check(const gx_index *ix, const gx_facet *facets, uint32_t n, gx_error *err)
{
    gx_status st = GX_OK;
    gx_clear_error(err);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        gx_facet f;
        uint32_t column;
        st = check_facet(&f, &column, ix, facets, i, err);
    }
    return st;
}

/* ---- the answer ---- */

typedef struct answer {
    gx_facet_answer shown;
    gx_facet_group *groups; /* [shown.n] */
    size_t *at;             /* [shown.n] where their texts begin */
    char *texts;            /* [n_texts] */
    size_t n_texts, max_texts;
} answer;

struct gx_facets {
    uint32_t n;
    uint64_t n_matches;
    answer *answers; /* [n] */
};

void gx_facets_close(gx_facets *f)
{
    for (uint32_t i = 0; f && i < f->n; ++i) {
        free(f->answers[i].groups);
        free(f->answers[i].at);
        free(f->answers[i].texts);
        free((char *)f->answers[i].shown.name);
    }
    if (f)
        free(f->answers);
    free(f);
}

uint64_t gx_facets_n_matches(const gx_facets *f)
{
    return f->n_matches;
}

const gx_facet_answer *gx_facets_get(const gx_facets *f, uint32_t i)
{
    return i < f->n ? &f->answers[i].shown : NULL;
}

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to count a facet");
}

static bool put_text(answer *a, uint32_t i, const char *p, size_t n)
{
    if (!gx_reserve(&a->texts, &a->max_texts, a->n_texts + n + 1, 1))
        return false;
    if (n)
        memcpy(a->texts + a->n_texts, p, n);
    a->texts[a->n_texts + n] = 0;
    a->at[i] = a->n_texts;
    a->n_texts += n + 1;
    a->groups[i].len = n;
    return true;
}

/* "2019", "2019-05", "2019-05-31": the year, month or day that begins with this second. */
static int print_period(char *text, size_t size, gx_facet_grouping by, int64_t first)
{
    const gx_day d = gx_day_of(first / 86400 - (first % 86400 < 0));
    int n = snprintf(text, size, "%04lld", (long long)d.year);
    if (by >= GX_FACET_MONTHS)
        n += snprintf(text + n, size - (size_t)n, "-%02d", d.month);
    if (by == GX_FACET_DAYS)
        n += snprintf(text + n, size - (size_t)n, "-%02d", d.day);
    return n;
}

static int print_range(char *text, size_t size, const char *low, const char *high, bool open)
{
    return strcmp(low, high) == 0 && !open ? snprintf(text, size, "%s", low)
                                           : snprintf(text, size, "[%s TO %s%c", low, high, open ? '}' : ']');
}

/* The text of a group of numbers. */
static int print_group(const gx_facet_count *c, const gx_group_range *r, char *text, size_t size)
{
    char low[GX_VALUE_TEXT], high[GX_VALUE_TEXT];
    const gx_facet_grouping by = c->facet.grouping;
    if (by >= GX_FACET_YEARS && by <= GX_FACET_DAYS)
        return print_period(text, size, by, r->first);
    if (c->type == GX_ATTRIBUTE_BOOL)
        return snprintf(text, size, "%s", r->first ? "true" : "false");
    if (c->type == GX_ATTRIBUTE_FLOAT) {
        gx_print_float(r->low, low);
        gx_print_float(r->high, high);
    } else if (c->type == GX_ATTRIBUTE_DATE) {
        gx_print_date(r->first, low);
        gx_print_date(r->last, high);
        if (!strchr(high, 'T')) /* the day would mean its last second */
            strcat(high, "T00:00:00Z");
    } else {
        snprintf(low, sizeof low, "%lld", (long long)r->first);
        snprintf(high, sizeof high, "%lld", (long long)r->last);
    }
    return print_range(text, size, low, high, r->open);
}

static bool put_group(answer *a, uint32_t i, const gx_facet_count *c, const gx_counted_group *g)
{
    char text[2 * GX_VALUE_TEXT + 16];
    a->groups[i].count = g->count;
    if (gx_is_keyword(c->type))
        return put_text(a, i, c->strings[g->key].p, c->strings[g->key].len);
    const gx_group_range r = gx_facet_group_of(c, g->key);
    a->groups[i].first = r.first;
    a->groups[i].last = r.last;
    a->groups[i].low = r.low;
    a->groups[i].high = r.high;
    return put_text(a, i, text, (size_t)print_group(c, &r, text, sizeof text));
}

/* Whether group a comes after b by count. Keys are in the order of values. */
static bool is_after(gx_counted_group a, gx_counted_group b)
{
    return a.count != b.count ? a.count < b.count : a.key > b.key;
}

static int by_count(const void *x, const void *y)
{
    const gx_counted_group a = *(const gx_counted_group *)x, b = *(const gx_counted_group *)y;
    return is_after(a, b) ? 1 : is_after(b, a) ? -1 : 0;
}

GX_DEFINE_SIFT_DOWN(sift_down, gx_counted_group, is_after)

/* The first n groups by count come first, in order. The heap's first is the last of them. */
static void select_groups(gx_counted_group *groups, size_t n_groups, size_t n)
{
    for (size_t i = n / 2; n < n_groups && i-- > 0;)
        sift_down(groups, n, i);
    for (size_t i = n; i < n_groups; ++i) {
        if (!is_after(groups[0], groups[i]))
            continue;
        groups[0] = groups[i];
        sift_down(groups, n, 0);
    }
    qsort(groups, n, sizeof *groups, by_count);
}

static gx_status make_answer(answer *a, gx_facet_count *c, const gx_column *column, uint64_t n_matches, gx_error *err)
{
    const size_t n = c->facet.n && c->facet.n < c->n_groups ? c->facet.n : c->n_groups;
    if (n > UINT32_MAX)
        return no_memory(err);
    if (c->facet.order == GX_FACET_BY_COUNT)
        select_groups(c->groups, c->n_groups, n);
    char *name = malloc(column->name_len + 1);
    a->groups = calloc(n + 1, sizeof *a->groups);
    a->at = malloc((n + 1) * sizeof *a->at);
    bool good = name && a->groups && a->at;
    for (uint32_t i = 0; i < n && good; ++i)
        good = put_group(a, i, c, &c->groups[i]);
    if (!good) {
        free(name);
        return no_memory(err);
    }
    for (size_t i = 0; i < n; ++i)
        a->groups[i].text = a->texts + a->at[i];
    memcpy(name, column->name, column->name_len);
    name[column->name_len] = 0;
    a->shown = (gx_facet_answer){name,        column->name_len, c->type,  c->n_present, n_matches - c->n_present,
                                 c->n_groups, (uint32_t)n,      a->groups};
    return GX_OK;
}

/* ---- counting ---- */

/* A set of documents, and the files that it is of. */
typedef struct set {
    const gx_index *ix;
    const uint64_t *words;
    uint64_t *local, *scratch; /* of the largest part; local is not used of one file */
} set;

static const gx_index *file_of(const gx_index *ix, uint32_t part)
{
    return ix->parts ? ix->parts->parts[part].ix : ix;
}

static uint32_t n_files(const gx_index *ix)
{
    return ix->parts ? ix->parts->n : 1;
}

/* The set in file `part`. */
static const uint64_t *words_of(const set *s, uint32_t part)
{
    if (!s->ix->parts)
        return s->words;
    gx_part_scatter(&s->ix->parts->parts[part], s->words, s->local);
    return s->local;
}

static gx_status count_facet(gx_facet_count *c, const set *s, uint32_t column, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t p = 0; p < n_files(s->ix) && c->facet.grouping == GX_FACET_BINS; ++p)
        gx_facet_count_look(c, file_of(s->ix, p), column, words_of(s, p));
    for (uint32_t p = 0; p < n_files(s->ix) && st == GX_OK; ++p)
        st = gx_facet_count_add(c, file_of(s->ix, p), column, words_of(s, p), s->scratch, err);
    return st == GX_OK ? gx_facet_count_end(c, err) : st;
}

static gx_status count_all(gx_facets *f, const set *s, const gx_facet *facets, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < f->n && st == GX_OK; ++i) {
        gx_facet_count c = {0};
        uint32_t column = 0;
        st = check_facet(&c.facet, &column, s->ix, facets, i, err);
        if (st != GX_OK)
            break;
        c.type = s->ix->columns[column].type;
        st = count_facet(&c, s, column, err);
        if (st == GX_OK)
            st = make_answer(&f->answers[i], &c, &s->ix->columns[column], f->n_matches, err);
        gx_facet_count_free(&c);
    }
    return st;
}

static uint64_t *alloc_words(uint64_t n_docs)
{
    return calloc(n_docs / 64 + 2, sizeof(uint64_t));
}

static gx_facets *new_facets(uint32_t n, uint64_t n_matches)
{
    gx_facets *f = calloc(1, sizeof *f);
    if (f && !(f->answers = calloc(n + 1ull, sizeof *f->answers))) {
        free(f);
        return NULL;
    }
    if (f) {
        f->n = n;
        f->n_matches = n_matches;
    }
    return f;
}

static gx_status open_facets(gx_facets **out, const gx_index *ix, const uint64_t *words, uint64_t n_matches,
                             const gx_facet *facets, uint32_t n, gx_error *err)
{
    uint32_t most = 0;
    for (uint32_t p = 0; p < n_files(ix); ++p)
        most = file_of(ix, p)->n_docs > most ? file_of(ix, p)->n_docs : most;
    const set s = {ix, words, ix->parts ? alloc_words(most) : NULL, alloc_words(most)};
    gx_facets *f = new_facets(n, n_matches);
    gx_status st = GX_OK;
    if (!f || !s.scratch || (ix->parts && !s.local)) {
        st = no_memory(err);
    } else {
        st = count_all(f, &s, facets, err);
    }
    free(s.local);
    free(s.scratch);
    if (st == GX_OK)
        *out = f;
    else
        gx_facets_close(f);
    return st;
}

gx_status gx_count_facets_of(gx_facets **out, const gx_index *ix, const uint64_t *words, const gx_facet *facets,
                             uint32_t n, gx_error *err)
{
    const uint64_t n_docs = gx_index_n_docs(ix);
    const size_t n_words = gx_index_n_words(ix);
    *out = NULL;
    gx_status st = gx_facets_check(ix, facets, n, err);
    uint64_t *own = st == GX_OK ? alloc_words(n_docs) : NULL, n_matches = 0;
    if (st != GX_OK || !own)
        return st != GX_OK ? st : no_memory(err);
    for (size_t w = 0; w < n_words; ++w) {
        own[w] = w == n_docs / 64 ? words[w] & ((UINT64_C(1) << n_docs % 64) - 1) : words[w];
        n_matches += (uint64_t)__builtin_popcountll(own[w]);
    }
    st = open_facets(out, ix, own, n_matches, facets, n, err);
    free(own);
    return st;
}

/* ---- queries ---- */

/* Queries whose matches are counted. */
typedef struct counted_batch {
    gx_session *s;
    const gx_index *ix;
    const gx_facet *asked; /* [n], the caller's */
    gx_facet *facets;      /* [n] the same, full-sized and checked */
    uint32_t *columns;     /* [n] */
    uint32_t n;
    const gx_facet_ordinals **ordinals; /* [n], those of the engine; NULL: it does not count */
    uint64_t n_counts;                  /* of a query, by the engine */
    uint64_t *words;                    /* NULL until a query is counted here */
    gx_facets **out;                    /* of all queries of the caller */
} counted_batch;

static void free_batch(counted_batch *b)
{
    free(b->facets);
    free(b->columns);
    free(b->ordinals);
    free(b->words);
}

static gx_status open_batch(counted_batch *b, gx_error *err)
{
    gx_status st = GX_OK;
    b->facets = calloc(b->n + 1ull, sizeof *b->facets);
    b->columns = calloc(b->n + 1ull, sizeof *b->columns);
    if (!b->facets || !b->columns)
        return no_memory(err);
    for (uint32_t i = 0; i < b->n && st == GX_OK; ++i)
        st = check_facet(&b->facets[i], &b->columns[i], b->ix, b->asked, i, err);
    return st;
}

/* Times in ns that decide who counts, of one core and of a GPU: of a posting, and of its document in a facet; of a
 * batch on the GPU, of a query of it, and of each count that comes back. Rounded from query/facet/MEASURED.md, "Facets
 * on a GPU" (bench_facets_gpu on an NVIDIA H100). */
#define CPU_POSTING_TIME 1.6
#define CPU_FACET_TIME 1.5
#define GPU_BATCH_TIME 35000.0
#define GPU_QUERY_TIME 300.0
#define GPU_POSTING_TIME 0.002
#define GPU_COUNT_TIME 1.0

static bool gpu_is_faster(const counted_batch *b, const gx_plan *plans, uint32_t n)
{
    double postings = 0;
    for (uint32_t i = 0; i < n; ++i) {
        postings += plans[i].fill ? (double)gx_index_n_docs(b->ix) : 0;
        for (uint32_t t = 0; t < plans[i].n_terms && !plans[i].fill; ++t)
            postings += plans[i].terms[t].df;
    }
    return postings * (CPU_POSTING_TIME + b->n * CPU_FACET_TIME) >
           GPU_BATCH_TIME + postings * (1 + b->n) * GPU_POSTING_TIME +
               n * (GPU_QUERY_TIME + (double)b->n_counts * GPU_COUNT_TIME);
}

/* Finds what the engine counts by. b->ordinals stays NULL where it cannot count all of the facets. */
static gx_status find_ordinals(counted_batch *b, gx_error *err)
{
    gx_status st = GX_OK;
    bool all = b->n > 0;
    b->n_counts = 0;
    if (!(b->ordinals = calloc(b->n + 1ull, sizeof *b->ordinals)))
        return no_memory(err);
    for (uint32_t i = 0; i < b->n && st == GX_OK && all; ++i) {
        st = gx_session_facet_ordinals(b->s, b->columns[i], &b->facets[i], &b->ordinals[i], err);
        all = st == GX_OK && b->ordinals[i];
        b->n_counts += all ? gx_n_counts(b->ordinals[i]) : 0;
    }
    if (!all) {
        free(b->ordinals);
        b->ordinals = NULL;
    }
    return st;
}

/* The answer of counts that the engine has made. */
static gx_status take_counts(gx_facets **out, const counted_batch *b, const gx_match_counts *counted, gx_error *err)
{
    gx_facets *f = new_facets(b->n, counted->n_matches);
    gx_status st = f ? GX_OK : no_memory(err);
    const uint32_t *counts = counted->counts;
    for (uint32_t i = 0; i < b->n && st == GX_OK; ++i) {
        const gx_column *column = &b->ix->columns[b->columns[i]];
        gx_facet_count c = {.facet = b->facets[i], .type = column->type};
        st = gx_facet_count_take(&c, b->ordinals[i], counts, f->n_matches, err);
        if (st == GX_OK)
            st = make_answer(&f->answers[i], &c, column, f->n_matches, err);
        gx_facet_count_free(&c);
        counts += gx_n_counts(b->ordinals[i]);
    }
    if (st == GX_OK)
        *out = f;
    else
        gx_facets_close(f);
    return st;
}

/* Whether the engine has counted; its answers are in out then. */
static gx_status count_on_engine(counted_batch *b, const gx_plan *plans, uint32_t first, uint32_t n, bool *counted,
                                 gx_error *err)
{
    gx_match_counts *of = calloc(n + 1ull, sizeof *of);
    uint32_t *counts = malloc((n * b->n_counts + 1) * sizeof *counts);
    gx_status st = of && counts ? GX_OK : no_memory(err);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        of[i].counts = counts + i * b->n_counts;
    if (st == GX_OK)
        st = gx_session_count_matches(b->s, plans, n, b->ordinals, b->n, of, counted, err);
    for (uint32_t i = 0; i < n && st == GX_OK && *counted; ++i)
        st = take_counts(&b->out[first + i], b, &of[i], err);
    free(of);
    free(counts);
    return st;
}

#define COUNTS_AT_ONCE (4u << 20) /* counts of the queries that the engine counts together, if they are several */

static gx_status count_plans(void *user, const gx_plan *plans, uint32_t first, uint32_t n, gx_error *err)
{
    counted_batch *b = user;
    const gx_facet_engine engine = gx_session_facet_engine(b->s);
    bool counted = false;
    gx_status st = GX_OK;
    if (b->ordinals && (engine == GX_FACETS_BY_GPU || (engine == GX_FACETS_AUTO && gpu_is_faster(b, plans, n)))) {
        const uint64_t room = COUNTS_AT_ONCE / b->n_counts;
        counted = true;
        for (uint32_t i = 0, m; i < n && st == GX_OK && counted; i += m) {
            m = room < 1 ? 1 : room < n - i ? (uint32_t)room : n - i;
            st = count_on_engine(b, plans + i, first + i, m, &counted, err);
        }
    }
    if (st == GX_OK && !counted && !b->words && !(b->words = alloc_words(gx_index_n_docs(b->ix))))
        return no_memory(err);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        uint64_t n_matches = 0;
        if (b->out[first + i])
            continue;
        st = gx_session_match(b->s, &plans[i], b->words, &n_matches, err);
        if (st == GX_OK)
            st = open_facets(&b->out[first + i], b->ix, b->words, n_matches, b->asked, b->n, err);
    }
    return st;
}

gx_status gx_count_facets_batch(gx_facets **out, gx_session *s, const gx_query *queries, uint32_t n,
                                const gx_query_options *options, const gx_facet *facets, uint32_t n_facets,
                                gx_error *err)
{
    const gx_engine *en = gx_session_engine(s);
    gx_query_options opt = GX_QUERY_OPTIONS;
    counted_batch b = {.s = s, .ix = gx_engine_index(en), .asked = facets, .n = n_facets, .out = out};
    for (uint32_t i = 0; i < n; ++i)
        out[i] = NULL;
    gx_clear_error(err);
    gx_status st =
        gx_sized_read(&opt, sizeof opt, options, GX_SIZE_THROUGH(gx_query_options, mask), "gx_query_options", err);
    if (st == GX_OK && (st = open_batch(&b, err)) == GX_OK && gx_engine_is_shard(en))
        st = gx_fail(err, GX_EUSAGE, "facet: an engine of a shard sees its own parts alone");
    if (st == GX_OK && n && gx_session_facet_engine(s) != GX_FACETS_BY_CPU)
        st = find_ordinals(&b, err);
    if (st == GX_OK && n)
        st = gx_session_plan(s, queries, n, &opt, count_plans, &b, err);
    for (uint32_t i = 0; i < n && st != GX_OK; ++i) {
        gx_facets_close(out[i]);
        out[i] = NULL;
    }
    free_batch(&b);
    return st;
}

gx_status gx_count_facets(gx_facets **out, gx_session *s, const gx_query *query, const gx_query_options *options,
                          const gx_facet *facets, uint32_t n, gx_error *err)
{
    return gx_count_facets_batch(out, s, query, 1, options, facets, n, err);
}
