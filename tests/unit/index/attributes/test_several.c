/* Several values a document of int, float, date and bool: what comes back of them, what one value a document
 * is stored as, the orders and filters by them against a look at each document, and hostile sections.
 * several.gx in tests/data is kept as test_index_golden.c keeps its files, and second_reader.py reads it.
 *
 * GX_TEST_SEED is the seed of all that is random, 31 without it. */
#include <inttypes.h>
#include <time.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/random.h"
#include "index/attributes/attribute_order.h"
#include "index/check/check.h"
#include "index/write/writer.h"
#include "query/filter/filter_collect.h"
#include "query/filter/mask.h"
#include "tests/support/attribute_index.h"
#include "tests/support/index_image.h"
#include "tests/support/scratch.h"

enum { YEARS, PRICES, WHENS, OPENS, BIGS, N_ATTRIBUTES };
static const gx_attribute attributes[N_ATTRIBUTES] = {{"year", GX_ATTRIBUTE_INT},
                                                      {"price", GX_ATTRIBUTE_FLOAT},
                                                      {"when", GX_ATTRIBUTE_DATE},
                                                      {"open", GX_ATTRIBUTE_BOOL},
                                                      {"big", GX_ATTRIBUTE_INT}};

/* A document's values: of prices eighths, of whens seconds. */
enum { MOST = 6 };
typedef struct doc {
    uint32_t n[N_ATTRIBUTES];
    int64_t v[N_ATTRIBUTES][MOST];
} doc;

static uint64_t seed = 31;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(gx_random_next(&seed) % n);
}

static void say_value(char text[40], uint32_t a, int64_t v)
{
    const time_t t = (time_t)v;
    struct tm tm;
    if (a == PRICES)
        snprintf(text, 40, "%.17g", (double)v / 8);
    else if (a == WHENS && gmtime_r(&t, &tm))
        strftime(text, 40, "%Y-%m-%dT%H:%M:%SZ", &tm);
    else
        snprintf(text, 40, "%" PRId64, v);
}

typedef struct row {
    gx_attribute_value values[N_ATTRIBUTES * MOST];
    char texts[N_ATTRIBUTES * MOST][40];
    uint32_t n;
} row;

static void make_row(row *r, const doc *x)
{
    r->n = 0;
    for (uint32_t i = 0; i < MOST; ++i) /* values of all attributes in turn: their order does not matter */
        for (uint32_t a = 0; a < N_ATTRIBUTES; ++a) {
            if (i >= x->n[a])
                continue;
            say_value(r->texts[r->n], a, x->v[a][i]);
            r->values[r->n] = (gx_attribute_value){a, r->texts[r->n], strlen(r->texts[r->n])};
            ++r->n;
        }
}

/* ---- the golden file ---- */

enum { GOLDEN_DOCS = 300 };

static void golden_document(doc *x, uint32_t d)
{
    *x = (doc){.n = {d % 4, d % 3, (d + 1) % 3, d % 5 == 0 ? 2 : 1, d % 7 == 0 ? 3 : 0}};
    for (uint32_t i = 0; i < MOST; ++i) {
        x->v[YEARS][i] = 1990 + (d * 7 + i * 11) % 31;
        x->v[PRICES][i] = (int64_t)((d * 37 + i * 53) % 101) - 35;
        x->v[WHENS][i] = 86400 * (int64_t)(10957 + (d + 9 * i) % 28);
        x->v[OPENS][i] = (d + i) % 2;
        x->v[BIGS][i] = (int64_t)d * 1000000007 * (i % 2 ? -1 : 1) + i;
    }
}

static const gx_bitmap_options golden_options[N_ATTRIBUTES] = {[YEARS] = {GX_BITMAPS_EQUALITY, GX_BINS_QUANTILES, 0},
                                                               [PRICES] = {GX_BITMAPS_RANGE, GX_BINS_LLOYD, 5},
                                                               [OPENS] = {GX_BITMAPS_EQUALITY, GX_BINS_WIDTH, 0}};

static gx_status set_golden(gx_columns *c, uint32_t d, gx_error *err)
{
    row r;
    doc x;
    golden_document(&x, d);
    make_row(&r, &x);
    return gx_columns_set(c, r.values, r.n, err);
}

static void write_golden(const char *path)
{
    write_attribute_index(path, &(attribute_index){attributes, golden_options, N_ATTRIBUTES, GOLDEN_DOCS, set_golden});
}

static void the_golden_file_stays(void **state)
{
    (void)state;
    check_golden_file(golden_file("several.gx"), write_golden);
}

/* ---- through a builder and back ---- */

/* near: values follow the documents' order. */
static void draw_document(doc *x, uint32_t d, uint32_t n_docs, bool near)
{
    const uint32_t place = near ? d * 50 / n_docs : 0;
    for (uint32_t a = 0; a < N_ATTRIBUTES; ++a) {
        x->n[a] = below(3) ? below(3) : below(MOST + 1);
        for (uint32_t i = 0; i < MOST; ++i)
            x->v[a][i] = a == YEARS    ? (int64_t)below(near ? 4 : 60) + place - 20
                         : a == PRICES ? (int64_t)below(400) + 300 * place - 150
                         : a == WHENS  ? (int64_t)below(near ? 4 : 400) * 86400 * 30 + 86400 * place
                         : a == OPENS  ? (int64_t)below(2)
                         : below(4)    ? (int64_t)gx_random_next(&seed)
                         : below(2)    ? INT64_MIN
                                       : INT64_MAX - (int64_t)below(3);
    }
}

static gx_builder *open_builder(const char *path, const gx_bitmap_options *bitmaps, gx_duplicates duplicates)
{
    gx_builder *b;
    gx_error err = {0};
    gx_builder_options o = GX_BUILDER_OPTIONS;
    o.path = path;
    o.force = true;
    o.duplicates = duplicates;
    o.attributes = attributes;
    o.n_attributes = N_ATTRIBUTES;
    o.bitmaps = bitmaps;
    if (gx_builder_open(&b, &o, &err) != GX_OK)
        fail_msg("%s", err.text);
    return b;
}

static void add(gx_builder *b, uint32_t id, const doc *x)
{
    static row r;
    char name[24];
    gx_error err = {0};
    make_row(&r, x);
    const size_t n = (size_t)snprintf(name, sizeof name, "doc%u", id);
    const gx_document document = {sizeof document, name, NULL, "word", n, 0, 4, r.values, r.n};
    if (gx_builder_add(b, &document, &err) != GX_OK)
        fail_msg("%s", err.text);
}

static gx_index *open_whole(const char *path)
{
    gx_error err = {0};
    gx_index *ix;
    gx_index_options full = GX_INDEX_OPTIONS;
    full.check = GX_CHECK_FULL;
    if (gx_index_open(&ix, path, &full, &err) != GX_OK)
        fail_msg("%s", err.text);
    return ix;
}

static gx_index *finish(gx_builder *b, const char *path)
{
    gx_error err = {0};
    if (gx_builder_finish(b, &err) != GX_OK)
        fail_msg("%s", err.text);
    gx_builder_abort(b);
    return open_whole(path);
}

/* A document's different values in order: at most 6 are sorted by swapping neighbours. */
static uint32_t sort_values(const doc *x, uint32_t a, int64_t out[MOST])
{
    uint32_t n = 0;
    memcpy(out, x->v[a], sizeof x->v[a]);
    for (uint32_t i = 0; i < x->n[a]; ++i)
        for (uint32_t j = 1; j < x->n[a]; ++j)
            if (out[j] < out[j - 1]) {
                const int64_t swap = out[j];
                out[j] = out[j - 1];
                out[j - 1] = swap;
            }
    for (uint32_t i = 0; i < x->n[a]; ++i)
        if (i == 0 || out[i] != out[i - 1])
            out[n++] = out[i];
    return n;
}

/* What the column has of a document, as say_value writes it. */
static uint32_t read_values(const gx_column *c, uint32_t d, int64_t out[MOST])
{
    uint32_t n = 0;
    const bool single = !c->starts && (!c->present || (c->present[d / 64] >> d % 64 & 1));
    const uint64_t begin = c->starts ? c->starts[d] : d, end = c->starts ? c->starts[d + 1] : d + single;
    for (uint64_t i = begin; i < end; ++i) {
        const char *at = (const char *)c->values + i * c->width;
        uint64_t raw = 0;
        double y;
        memcpy(&raw, at, c->width);
        memcpy(&y, at, c->width == 8 ? 8 : 0);
        assert_true(n < MOST);
        out[n++] = c->type == GX_ATTRIBUTE_FLOAT ? (int64_t)(y * 8) : (int64_t)((uint64_t)c->base + raw);
    }
    return n;
}

static void assert_document(const gx_index *ix, uint32_t d, const doc *x)
{
    for (uint32_t a = 0; a < N_ATTRIBUTES; ++a) {
        int64_t want[MOST], got[MOST];
        const uint32_t n = sort_values(x, a, want);
        if (read_values(&ix->columns[a], d, got) != n || memcmp(want, got, n * sizeof *want) != 0)
            fail_msg("document %u: %s", d, attributes[a].name);
    }
}

static void values_survive_duplicates_recoding_and_another_order(void **state)
{
    enum { N = 1200 };
    static doc given[2 * N];
    static uint32_t last_of[N], kept[N], new_docids[N];
    gx_error err = {0};
    gx_builder *b = open_builder(in_dir("a.gx"), NULL, GX_DUPLICATES_LAST);
    (void)state;
    for (uint32_t i = 0; i < 2 * N; ++i) {
        const uint32_t id = below(N);
        draw_document(&given[i], i, 2 * N, false);
        last_of[id] = i;
        add(b, id, &given[i]);
    }
    gx_index *ix = finish(b, in_dir("a.gx")), *again;
    for (uint32_t d = 0; d < ix->n_docs; ++d) {
        size_t len;
        kept[d] = last_of[strtoul(gx_index_doc_id(ix, d, &len) + 3, NULL, 10)];
        assert_document(ix, d, &given[kept[d]]);
        new_docids[d] = d;
    }
    for (uint32_t d = ix->n_docs - 1; d > 0; --d) {
        const uint32_t other = below(d + 1), swap = new_docids[d];
        new_docids[d] = new_docids[other];
        new_docids[other] = swap;
    }
    for (uint32_t round = 0; round < 2; ++round) {
        gx_rewrite_options o = GX_REWRITE_OPTIONS;
        o.docid_codec = "simple8b";
        o.force = true;
        o.new_docids = round ? new_docids : NULL;
        assert_int_equal(gx_index_rewrite(ix, in_dir("b.gx"), &o, &err), GX_OK);
        again = open_whole(in_dir("b.gx"));
        for (uint32_t d = 0; d < ix->n_docs; ++d)
            assert_document(again, round ? new_docids[d] : d, &given[kept[d]]);
        gx_index_close(again);
    }
    gx_index_close(ix);
}

static void assert_same_attributes(const char *a, const char *b)
{
    image x = load(a), y = load(b);
    for (const char *kind = "RVS"; *kind; ++kind) {
        const uint32_t k = GX_KIND('A', 'T', 'T', (uint32_t)*kind);
        const gx_section *s = section(&x, k), *t = section(&y, k);
        assert_int_equal(s->bytes, t->bytes);
        assert_memory_equal(x.bytes + s->offset, y.bytes + t->offset, s->bytes);
    }
    free(x.bytes);
    free(y.bytes);
}

/* Equal values are one, and a document that goes takes its values with it: no column has starts then. */
static void one_value_a_document_is_stored_without_starts(void **state)
{
    enum { N = 200 };
    doc x, y;
    (void)state;
    gx_builder *plain = open_builder(in_dir("plain.gx"), NULL, GX_DUPLICATES_LAST),
               *given = open_builder(in_dir("given.gx"), NULL, GX_DUPLICATES_LAST);
    for (uint32_t d = 0; d < N; ++d) {
        draw_document(&y, d, N, false);
        if (d == 7) {
            memset(y.n, 0, sizeof y.n);
            y.n[YEARS] = y.n[BIGS] = MOST;
            add(given, d, &y); /* a later document of that id takes its place */
            continue;
        }
        x = y;
        for (uint32_t a = 0; a < N_ATTRIBUTES; ++a) {
            x.n[a] = y.n[a] != 0;
            for (uint32_t i = 1; i < MOST; ++i)
                y.v[a][i] = y.v[a][0];
        }
        add(plain, d, &x);
        add(given, d, &y);
    }
    add(plain, 7, &x);
    add(given, 7, &x);
    gx_index *a = finish(plain, in_dir("plain.gx")), *b = finish(given, in_dir("given.gx"));
    for (uint32_t i = 0; i < N_ATTRIBUTES; ++i)
        assert_null(b->columns[i].starts);
    assert_same_attributes(in_dir("plain.gx"), in_dir("given.gx"));
    gx_index_close(a);
    gx_index_close(b);
}

static void an_index_tells_of_several_values(void **state)
{
    doc x = {.n = {3, 2, 1, 2, 0}, .v = {{7, -5, 7}, {12, -4}, {86400}, {1, 0}}};
    (void)state;
    gx_builder *b = open_builder(in_dir("told.gx"), NULL, GX_DUPLICATES_FAIL);
    add(b, 0, &x);
    memset(x.n, 0, sizeof x.n);
    add(b, 1, &x);
    gx_index *ix = finish(b, in_dir("told.gx"));
    gx_attribute_info info[N_ATTRIBUTES];
    for (uint32_t i = 0; i < N_ATTRIBUTES; ++i) {
        info[i].size = sizeof info[i];
        assert_int_equal(gx_index_get_attribute(ix, i, &info[i]), GX_OK);
        assert_int_equal(info[i].n_present, i != BIGS);
    }
    assert_int_equal(info[YEARS].n_values, 2);
    assert_int_equal(info[YEARS].min_int, -5);
    assert_int_equal(info[YEARS].max_int, 7);
    assert_int_equal(info[YEARS].bytes, sizeof(gx_column_entry) + strlen("year") + 2 + 3 * 4);
    assert_true(info[PRICES].min_float == -0.5 && info[PRICES].max_float == 1.5);
    assert_int_equal(info[WHENS].n_values, 1);
    assert_int_equal(info[OPENS].n_values, 2);
    gx_index_close(ix);
}

static void a_document_can_have_very_many_values(void **state)
{
    enum { N = 100000 };
    static gx_attribute_value values[N];
    static char texts[N][24];
    gx_error err = {0};
    gx_builder *b = open_builder(in_dir("many.gx"), NULL, GX_DUPLICATES_FAIL);
    gx_filter *f;
    uint64_t words;
    uint32_t n;
    (void)state;
    for (uint32_t i = 0; i < N; ++i)
        values[i] = (gx_attribute_value){i % 2 ? BIGS : PRICES, texts[i],
                                         (size_t)snprintf(texts[i], sizeof texts[i], "%u", (N - i) * 40009u)};
    const gx_document document = {sizeof document, "a", NULL, "word", 1, 0, 4, values, N};
    assert_int_equal(gx_builder_add(b, &document, &err), GX_OK);
    add(b, 1, &(doc){.n = {1}});
    gx_index *ix = finish(b, in_dir("many.gx"));
    assert_int_equal(ix->columns[BIGS].n_values, N / 2);
    for (uint32_t i = 0; i < N; i += 997) {
        char text[60];
        const int len = snprintf(text, sizeof text, "%s:%s", attributes[values[i].attribute].name, texts[i]);
        assert_int_equal(gx_filter_open(&f, ix, text, (size_t)len, NULL, &err), GX_OK);
        assert_int_equal(gx_filter_evaluate(f, &words, &n, &err), GX_OK);
        assert_int_equal(words, 1);
        gx_filter_close(f);
    }
    gx_index_close(ix);
}

/* ---- orders and filters ---- */

enum { MOST_DOCS = 3000 };
static doc docs[MOST_DOCS];

static bool has_between(const doc *x, uint32_t a, int64_t low, int64_t high)
{
    bool any = false;
    for (uint32_t i = 0; i < x->n[a]; ++i)
        any |= x->v[a][i] >= low && x->v[a][i] <= high;
    return any;
}

/* Every document for each of its values, which rise, and their documents where values are equal. */
static void check_order(const gx_index *ix, uint32_t a)
{
    const gx_column_order *o = gx_column_get_order(ix, &ix->columns[a]);
    uint64_t n = 0;
    assert_non_null(o);
    for (uint32_t d = 0; d < ix->n_docs; ++d) {
        int64_t values[MOST];
        n += sort_values(&docs[d], a, values);
    }
    assert_int_equal(o->n, n);
    for (uint32_t round = 0; round < 200; ++round) {
        const doc *x = &docs[below(ix->n_docs)];
        if (!x->n[a])
            continue;
        const int64_t v = x->v[a][below(x->n[a])];
        const double y = (double)v / 8;
        uint64_t begin, end, raw;
        uint32_t at = 0;
        memcpy(&raw, &y, sizeof raw);
        raw = a == PRICES ? raw : (uint64_t)v - (uint64_t)ix->columns[a].base;
        gx_column_order_range(&ix->columns[a], o, raw, raw, &begin, &end);
        for (uint32_t d = 0; d < ix->n_docs; ++d)
            if (has_between(&docs[d], a, v, v)) {
                assert_true(begin + at < end);
                assert_int_equal(o->docids[begin + at++], d);
            }
        assert_int_equal(begin + at, end);
    }
}

/* A condition, and what it stands for. */
typedef struct condition {
    char text[160];
    uint32_t a;
    int64_t low, high;
    bool negated;
} condition;

static void draw_condition(condition *c, uint32_t n_docs)
{
    char low[40], high[40];
    const doc *x = &docs[below(n_docs)], *y = &docs[below(n_docs)];
    c->a = below(N_ATTRIBUTES);
    c->low = x->v[c->a][below(MOST)]; /* a value of a document, or one that it might have had */
    c->high = below(3) ? y->v[c->a][below(MOST)] : c->low + (c->low < INT64_MAX - 90 ? (int64_t)below(90) : 0);
    c->negated = below(4) == 0;
    if (c->a == OPENS || below(4) == 0)
        c->high = c->low;
    say_value(low, c->a, c->low);
    say_value(high, c->a, c->high);
    if (c->low == c->high)
        snprintf(c->text, sizeof c->text, "%s%s:\"%s\"", c->negated ? "NOT " : "", attributes[c->a].name, low);
    else
        snprintf(c->text, sizeof c->text, "%s%s:[\"%s\" TO \"%s\"]", c->negated ? "NOT " : "", attributes[c->a].name,
                 low, high);
}

/* The documents that are found by the order are those of the filter. */
static void check_found(const gx_filter *f, const bool *in, uint32_t n_docs, const char *text)
{
    static uint32_t words[MOST_DOCS / 32 + 2];
    static bool groups[MOST_DOCS / GX_MASK_GROUP + 1];
    const gx_filter_documents found = gx_filter_find(f, UINT64_MAX);
    uint32_t n = 0;
    if (found.n == UINT64_MAX)
        return;
    assert_true(found.exact);
    memset(words, 0, sizeof words);
    memset(groups, 0, sizeof groups);
    const uint32_t n_marked = gx_filter_mark(f, words, groups);
    for (uint32_t d = 0; d < n_docs; ++d) {
        n += in[d];
        if ((words[d / 32] >> d % 32 & 1) != in[d] || (in[d] && !groups[d / GX_MASK_GROUP]))
            fail_msg("%s: document %u is not as it is found", text, d);
    }
    assert_int_equal(n_marked, n);
    assert_true(found.n >= n);
}

static void check_filter(const gx_index *ix, const condition *c, const char *what)
{
    static uint64_t words[MOST_DOCS / 64 + 1];
    static bool in[MOST_DOCS];
    static uint32_t docids[MOST_DOCS];
    static uint8_t keep[MOST_DOCS];
    gx_filter *f;
    gx_error err = {0};
    uint32_t n, n_want = 0;
    if (gx_filter_open(&f, ix, c->text, strlen(c->text), NULL, &err) || gx_filter_evaluate(f, words, &n, &err))
        fail_msg("%s: %s", c->text, err.text);
    for (uint32_t d = 0; d < ix->n_docs; ++d) {
        in[d] = has_between(&docs[d], c->a, c->low, c->high) != c->negated;
        n_want += in[d];
        docids[d] = d;
    }
    gx_filter_test(f, docids, ix->n_docs, keep);
    for (uint32_t d = 0; d < ix->n_docs; ++d)
        if ((words[d / 64] >> d % 64 & 1) != in[d] || keep[d] != in[d])
            fail_msg("%s, %s: document %u is %s, evaluated %u, tested %u", what, c->text, d, in[d] ? "in" : "out",
                     (unsigned)(words[d / 64] >> d % 64 & 1), keep[d]);
    assert_int_equal(n, n_want);
    check_found(f, in, ix->n_docs, c->text);
    gx_filter_close(f);
}

static void filters_select_what_a_look_at_each_document_does(void **state)
{
    static const uint32_t sizes[] = {1, 64, 65, 700, MOST_DOCS};
    gx_bitmap_options none[N_ATTRIBUTES] = {{0}};
    (void)state;
    for (uint32_t a = 0; a < N_ATTRIBUTES; ++a)
        none[a].encoding = GX_BITMAPS_NONE;
    for (uint32_t round = 0; round < 20; ++round) {
        const uint32_t n_docs = sizes[round % 5];
        gx_bitmap_options o[N_ATTRIBUTES] = {{0}};
        for (uint32_t a = 0; a < N_ATTRIBUTES; ++a)
            o[a] = (gx_bitmap_options){below(2) ? GX_BITMAPS_EQUALITY : GX_BITMAPS_RANGE, (gx_binning)below(3),
                                       below(4) * (1 + below(30))};
        gx_builder *with = open_builder(in_dir("with.gx"), o, GX_DUPLICATES_FAIL),
                   *without = open_builder(in_dir("without.gx"), none, GX_DUPLICATES_FAIL);
        for (uint32_t d = 0; d < n_docs; ++d) {
            draw_document(&docs[d], d, n_docs, round % 2);
            add(with, d, &docs[d]);
            add(without, d, &docs[d]);
        }
        gx_index *a = finish(with, in_dir("with.gx")), *b = finish(without, in_dir("without.gx"));
        for (uint32_t i = 0; i < N_ATTRIBUTES; ++i) {
            assert_true(!a->columns[i].starts || a->columns[i].bitmaps.encoding == GX_BITMAPS_EQUALITY);
            assert_int_equal(a->columns[i].bitmaps.asked.encoding, o[i].encoding);
            assert_int_equal(b->columns[i].bitmaps.encoding, GX_BITMAPS_NONE);
        }
        for (uint32_t q = 0; q < 200; ++q) {
            condition c;
            draw_condition(&c, n_docs);
            check_filter(a, &c, "with columns");
            check_filter(b, &c, "without columns");
        }
        for (uint32_t i = 0; i < N_ATTRIBUTES; ++i)
            check_order(a, i);
        gx_index_close(a);
        gx_index_close(b);
    }
}

/* ---- hostile sections ---- */

static gx_column_entry *entry(const image *im, uint32_t i)
{
    return (gx_column_entry *)(void *)(im->bytes + section(im, GX_SEC_ATTRIBUTES)->offset) + i;
}

static uint8_t *column(const image *im, uint32_t i)
{
    return im->bytes + section(im, GX_SEC_ATTRIBUTE_VALUES)->offset + entry(im, i)->values;
}

static uint32_t *starts(const image *im, uint32_t i)
{
    return (uint32_t *)(void *)(column(im, i) + gx_column_padded(entry(im, i)->n_values * entry(im, i)->width));
}

static gx_bitmaps_entry *bitmaps(const image *im, uint32_t i)
{
    return (gx_bitmaps_entry *)(void *)(im->bytes + section(im, GX_SEC_ATTRIBUTE_BITMAPS)->offset) + i;
}

enum { OF_HEADER = 9, OF_STRUCTURE = 12, N_DAMAGES = 19 };

static void damage(const image *im, int which)
{
    gx_column_entry *const years = entry(im, YEARS);
    double x = 0;
    uint64_t two[2];
    switch (which) {
    case 0:
        years->several = 2;
        break;
    case 1:
        years->several = 0; /* then it has a value a document */
        break;
    case 2:
        years->reserved0 = 1;
        break;
    case 3: /* of keywords it is 0 */
        years->type = GX_ATTRIBUTE_KEYWORDS;
        years->base = 0;
        break;
    case 4:
        years->n_values = years->n_present; /* then no document has several */
        break;
    case 5:
        years->n_values = UINT64_C(1) << 32;
        break;
    case 6:
        years->n_values += 100000;
        break;
    case 7:
        bitmaps(im, YEARS)->encoding = GX_BITMAPS_RANGE;
        break;
    case 8:
        years->n_present = GOLDEN_DOCS + 1;
        break;
    case 9: /* the structure, from here on */
        starts(im, BIGS)[1] = UINT32_MAX;
        break;
    case 10:
        starts(im, BIGS)[0] = 1;
        break;
    case 11:
        starts(im, YEARS)[GOLDEN_DOCS] -= 1;
        break;
    case 12: /* the contents: two values of document 2 */
        column(im, YEARS)[starts(im, YEARS)[2]] = column(im, YEARS)[starts(im, YEARS)[2] + 1];
        break;
    case 13:
        memcpy(two, column(im, PRICES) + 8 * starts(im, PRICES)[2], sizeof two);
        memcpy(column(im, PRICES) + 8 * starts(im, PRICES)[2], two + 1, sizeof *two);
        memcpy(column(im, PRICES) + 8 * starts(im, PRICES)[2] + 8, two, sizeof *two);
        break;
    case 14:
        x = x / x;
        memcpy(column(im, PRICES), &x, sizeof x);
        break;
    case 15:
        column(im, OPENS)[3] = 2;
        break;
    case 16: /* a document more has no value */
        starts(im, WHENS)[1] = 0;
        break;
    case 17: /* a value that another document has goes on to the next */
        starts(im, YEARS)[6] += 1;
        break;
    default: /* a document fewer in a bin's column */
        --((gx_bitmap_entry *)(void *)(im->bytes + section(im, GX_SEC_ATTRIBUTE_BITMAPS)->offset +
                                       bitmaps(im, YEARS)->begin +
                                       gx_column_padded(2ull * bitmaps(im, YEARS)->n_bins)))[0]
              .n;
    }
}

static void hostile_sections_are_refused(void **state)
{
    (void)state;
    check_damages(golden_file("several.gx"), damage, &(damages){OF_HEADER, OF_STRUCTURE, N_DAMAGES, "section ATT"});
}

int main(void)
{
    if (getenv("GX_TEST_SEED"))
        seed = strtoull(getenv("GX_TEST_SEED"), NULL, 0);
    print_message("seed %" PRIu64 "\n", seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_file_stays),
        cmocka_unit_test(values_survive_duplicates_recoding_and_another_order),
        cmocka_unit_test(one_value_a_document_is_stored_without_starts),
        cmocka_unit_test(an_index_tells_of_several_values),
        cmocka_unit_test(a_document_can_have_very_many_values),
        cmocka_unit_test(filters_select_what_a_look_at_each_document_does),
        cmocka_unit_test(hostile_sections_are_refused),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
