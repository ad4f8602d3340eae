/* Bitmap columns of attributes: what filters find by them and without them, what a rewritten index
 * keeps, what the automatic choice does, and hostile sections. bitmaps.gx in tests/data is kept as
 * test_index_golden.c keeps its files, and second_reader.py reads it. */
#include "engine/api/gpuidx_advanced.h"
#include "engine/random.h"
#include "index/attributes/attributes.h"
#include "index/check/check.h"
#include "index/write/writer.h"
#include "query/filter/filter.h"
#include "tests/support/attribute_index.h"
#include "tests/support/index_image.h"
#include "tests/support/scratch.h"

enum { YEAR, PRICE, WHEN, CAT, TAGS, OPEN, N_ATTRIBUTES };
static const gx_attribute attributes[N_ATTRIBUTES] = {{"year", GX_ATTRIBUTE_INT},      {"price", GX_ATTRIBUTE_FLOAT},
                                                      {"when", GX_ATTRIBUTE_DATE},     {"cat", GX_ATTRIBUTE_KEYWORD},
                                                      {"tags", GX_ATTRIBUTE_KEYWORDS}, {"open", GX_ATTRIBUTE_BOOL}};

typedef struct row {
    gx_attribute_value values[16];
    char texts[16][24];
    uint32_t n;
} row;

__attribute__((format(printf, 3, 4))) static void put(row *r, uint32_t attribute, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const int n = vsnprintf(r->texts[r->n], sizeof r->texts[0], format, ap);
    va_end(ap);
    r->values[r->n] = (gx_attribute_value){attribute, r->texts[r->n], (size_t)n};
    ++r->n;
}

/* ---- the golden file ---- */

enum { GOLDEN_DOCS = 2500 };
static const gx_bitmap_options golden_options[N_ATTRIBUTES] = {
    [YEAR] = {GX_BITMAPS_RANGE, GX_BINS_QUANTILES, 0},    [PRICE] = {GX_BITMAPS_RANGE, GX_BINS_LLOYD, 5},
    [WHEN] = {GX_BITMAPS_EQUALITY, GX_BINS_WIDTH, 4},     [CAT] = {GX_BITMAPS_EQUALITY, GX_BINS_QUANTILES, 0},
    [TAGS] = {GX_BITMAPS_EQUALITY, GX_BINS_QUANTILES, 0}, [OPEN] = {GX_BITMAPS_AUTO, GX_BINS_QUANTILES, 0}};

static void golden_row(row *r, uint32_t d)
{
    r->n = 0;
    if (d % 400 != 9)
        put(r, YEAR, "%u", 1990 + d / 150);
    if (d % 7 != 3)
        put(r, PRICE, "%g", ((double)(d * 37 % 101) - 35) / 4);
    put(r, WHEN, "2000-01-%02u", 1 + d * 5 % 28);
    if (d % 5 != 4)
        put(r, CAT, "c%u", d < 500 ? d / 100 : d * 7 % 12);
    for (uint32_t i = 0; i < d % 4; ++i)
        put(r, TAGS, "t%u", (d + 3 * i) % (d % 2 ? 6 : 40));
    if (d % 3 != 0)
        put(r, OPEN, d % 2 ? "true" : "0");
}

static gx_status set_golden(gx_columns *c, uint32_t d, gx_error *err)
{
    row r;
    golden_row(&r, d);
    return gx_columns_set(c, r.values, r.n, err);
}

static void write_golden(const char *path)
{
    write_attribute_index(path, &(attribute_index){attributes, golden_options, N_ATTRIBUTES, GOLDEN_DOCS, set_golden});
}

static void the_golden_file_stays(void **state)
{
    (void)state;
    check_golden_file(golden_file("bitmaps.gx"), write_golden);
}

/* The golden file has every form and encoding. A change that leaves one out fails here. */
static void the_golden_file_has_every_form(void **state)
{
    gx_index *ix;
    gx_error err = {0};
    uint32_t forms[3] = {0}, long_columns = 0;
    (void)state;
    assert_int_equal(gx_index_open(&ix, golden_file("bitmaps.gx"), NULL, &err), GX_OK);
    for (uint32_t i = 0; i < ix->n_columns; ++i)
        for (uint32_t c = 0; c < ix->columns[i].bitmaps.n_columns; ++c) {
            const gx_bitmap_entry e = ix->columns[i].bitmaps.directory[c];
            ++forms[gx_bitmap_form_of(e)];
            long_columns += gx_bitmap_form_of(e) != GX_BITMAP_WORDS && gx_bitmap_n(e) > 128;
        }
    assert_true(forms[GX_BITMAP_LIST] && forms[GX_BITMAP_RUNS] && forms[GX_BITMAP_WORDS] && long_columns);
    assert_int_equal(ix->columns[YEAR].bitmaps.encoding, GX_BITMAPS_RANGE);
    assert_int_equal(ix->columns[OPEN].bitmaps.encoding, GX_BITMAPS_NONE); /* automatic, of few documents */
    assert_int_equal(ix->columns[PRICE].bitmaps.n_bins, 5);
    gx_attribute_info info = {.size = sizeof info};
    assert_int_equal(gx_index_get_attribute(ix, WHEN, &info), GX_OK);
    assert_int_equal(info.encoding, GX_BITMAPS_EQUALITY);
    assert_int_equal(info.n_bins, 4);
    assert_int_equal(info.bitmap_bytes, ix->columns[WHEN].bitmaps.bytes + sizeof(gx_bitmaps_entry));
    gx_index_close(ix);
}

/* ---- filters by columns and by values ---- */

/* mode: whether values follow the documents' order, closely or not, or are drawn. */
static void random_row(row *r, uint32_t d, uint32_t n_docs, uint32_t mode, uint64_t *seed)
{
    const uint32_t place = mode == 0 ? 0 : d * 60 / n_docs, noise = mode == 2 ? 1 : 8;
    r->n = 0;
    if (gx_random_next(seed) % 20)
        put(r, YEAR, "%d", (int)(gx_random_next(seed) % (mode == 1 ? 80 : mode ? 1 : 300) + place) - 100);
    if (gx_random_next(seed) % 20)
        put(r, PRICE, "%g", ((double)(gx_random_next(seed) % 1000) + 500 * place) / 8 - 90);
    put(r, WHEN, "%04u-%02u", 1000 + 100 * place + (unsigned)(gx_random_next(seed) % (mode ? noise : 6000)),
        1 + (unsigned)(gx_random_next(seed) % 12));
    if (gx_random_next(seed) % 20)
        put(r, CAT, "cat%u", place + (unsigned)(gx_random_next(seed) % (mode ? noise : 40)));
    for (uint64_t n = gx_random_next(seed) % 6; n; --n)
        put(r, TAGS, "tag%u", (unsigned)(gx_random_next(seed) % 40 * (gx_random_next(seed) % 2)));
    if (gx_random_next(seed) % 20)
        put(r, OPEN, "%u", mode ? d > n_docs / 2 : (unsigned)(gx_random_next(seed) % 2));
}

static gx_builder *open_builder(const char *path, const gx_bitmap_options *bitmaps)
{
    gx_builder *b;
    gx_error err = {0};
    gx_builder_options o = GX_BUILDER_OPTIONS;
    o.path = path;
    o.force = true;
    o.attributes = attributes;
    o.n_attributes = N_ATTRIBUTES;
    o.bitmaps = bitmaps;
    if (gx_builder_open(&b, &o, &err) != GX_OK)
        fail_msg("%s", err.text);
    return b;
}

static gx_index *finish(gx_builder *b, const char *path)
{
    gx_error err = {0};
    gx_index *ix;
    gx_index_options full = GX_INDEX_OPTIONS;
    full.check = GX_CHECK_FULL;
    if (gx_builder_finish(b, &err) != GX_OK || gx_index_open(&ix, path, &full, &err) != GX_OK)
        fail_msg("%s", err.text);
    gx_builder_abort(b);
    return ix;
}

/* Two indexes of the same documents, of which the second has no bitmap columns. */
static void build_both(gx_index *out[2], const gx_bitmap_options *bitmaps, uint32_t n_docs, uint32_t mode,
                       uint64_t seed)
{
    static const gx_bitmap_options none[N_ATTRIBUTES] = {{GX_BITMAPS_NONE, 0, 0}, {GX_BITMAPS_NONE, 0, 0},
                                                         {GX_BITMAPS_NONE, 0, 0}, {GX_BITMAPS_NONE, 0, 0},
                                                         {GX_BITMAPS_NONE, 0, 0}, {GX_BITMAPS_NONE, 0, 0}};
    gx_builder *b[2] = {open_builder(in_dir("with.gx"), bitmaps), open_builder(in_dir("without.gx"), none)};
    for (uint32_t d = 0; d < n_docs; ++d) {
        row r;
        char id[24];
        gx_error err = {0};
        random_row(&r, d, n_docs, mode, &seed);
        const size_t n = (size_t)snprintf(id, sizeof id, "doc%u", d);
        const gx_document doc = {sizeof doc, id, "", "word", n, 0, 4, r.values, r.n};
        assert_int_equal(gx_builder_add(b[0], &doc, &err), GX_OK);
        assert_int_equal(gx_builder_add(b[1], &doc, &err), GX_OK);
    }
    out[0] = finish(b[0], in_dir("with.gx"));
    out[1] = finish(b[1], in_dir("without.gx"));
}

/* A condition whose bounds are values of documents, or near them. */
static void draw_condition(const gx_index *ix, char text[160], uint64_t *seed)
{
    const uint32_t i = (uint32_t)(gx_random_next(seed) % N_ATTRIBUTES);
    char bounds[2][40];
    const char *s = gx_random_next(seed) % 2 ? "[" : "{", *e = gx_random_next(seed) % 2 ? "]" : "}";
    for (int side = 0; side < 2; ++side) {
        const uint32_t shift = (uint32_t)(gx_random_next(seed) % 3);
        if (i == YEAR)
            snprintf(bounds[side], 40, "%d", (int)(gx_random_next(seed) % 310) - 105);
        else if (i == PRICE)
            snprintf(bounds[side], 40, "%g", (double)(gx_random_next(seed) % 40000) / 8 - 100 + shift * .06);
        else if (i == WHEN)
            snprintf(bounds[side], 40, "%04u-%02u", 900 + (unsigned)(gx_random_next(seed) % 7000), 1 + shift);
        else if (i == OPEN)
            snprintf(bounds[side], 40, "%u", (unsigned)(gx_random_next(seed) % 2));
        else
            snprintf(bounds[side], 40, "%s%u", i == CAT ? "cat" : "tag", (unsigned)(gx_random_next(seed) % 70));
        if (gx_random_next(seed) % 8 == 0)
            snprintf(bounds[side], 40, "*");
    }
    if (gx_random_next(seed) % 4 == 0 && bounds[0][0] != '*')
        snprintf(text, 160, "%s:%s", attributes[i].name, bounds[0]);
    else if (i == OPEN)
        snprintf(text, 160, "NOT open:%s", bounds[0][0] == '*' ? "1" : bounds[0]);
    else
        snprintf(text, 160, "%s:%s%s TO %s%s", attributes[i].name, s, bounds[0], bounds[1], e);
    (void)ix;
}

static void assert_equal_answers(gx_index *const both[2], const char *text)
{
    const uint32_t n_docs = both[0]->n_docs;
    const size_t n_words = ((size_t)n_docs + 63) / 64;
    uint64_t *words[2] = {calloc(n_words + 1, 8), calloc(n_words + 1, 8)};
    uint32_t n[2], n_kept = 0;
    for (int i = 0; i < 2; ++i) {
        gx_filter *f;
        gx_error err = {0};
        if (gx_filter_open(&f, both[i], text, strlen(text), NULL, &err) != GX_OK ||
            gx_filter_evaluate(f, words[i], &n[i], &err) != GX_OK)
            fail_msg("%s: %s", text, err.text);
        for (uint32_t d = 0; d < n_docs; ++d) { /* by the values, one document at a time */
            uint8_t keep;
            gx_filter_test(f, &d, 1, &keep);
            n_kept += keep;
            if (keep != (words[i][d / 64] >> d % 64 & 1))
                fail_msg("%s: document %u of %u, %s columns", text, d, n_docs, i ? "without" : "with");
        }
        gx_filter_close(f);
    }
    assert_int_equal(n[0], n[1]);
    assert_int_equal(n_kept, 2 * n[0]);
    assert_memory_equal(words[0], words[1], n_words * 8);
    free(words[0]);
    free(words[1]);
}

static void columns_change_no_answer(void **state)
{
    uint64_t seed = getenv("GX_TEST_SEED") ? strtoull(getenv("GX_TEST_SEED"), NULL, 0) : 11;
    (void)state;
    for (uint32_t round = 0; round < 18; ++round) {
        static const uint32_t sizes[] = {1, 63, 64, 65, 700, 3000};
        gx_bitmap_options o[N_ATTRIBUTES] = {0};
        gx_index *both[2];
        for (uint32_t i = 0; i < N_ATTRIBUTES; ++i) {
            const bool keyword = i == CAT || i == TAGS;
            o[i].encoding = keyword || gx_random_next(&seed) % 3 == 0 ? GX_BITMAPS_EQUALITY : GX_BITMAPS_RANGE;
            o[i].binning = keyword ? GX_BINS_QUANTILES : (gx_binning)(gx_random_next(&seed) % 3);
            o[i].bins = keyword ? 0 : (uint32_t)(gx_random_next(&seed) % 4 * (1 + gx_random_next(&seed) % 30));
        }
        build_both(both, o, sizes[round % 6], round % 3, gx_random_next(&seed));
        for (uint32_t i = 0; i < N_ATTRIBUTES; ++i) {
            assert_int_equal(both[1]->columns[i].bitmaps.encoding, GX_BITMAPS_NONE);
            assert_memory_equal(&both[0]->columns[i].bitmaps.asked, &o[i], sizeof *o);
            if (o[i].bins)
                assert_true(both[0]->columns[i].bitmaps.n_bins <= o[i].bins);
        }
        for (uint32_t q = 0; q < 150; ++q) {
            char text[400], one[160], two[160];
            draw_condition(both[0], one, &seed);
            draw_condition(both[0], two, &seed);
            snprintf(text, sizeof text, q % 3 == 0 ? "%s" : q % 3 == 1 ? "%s AND NOT %s" : "%s OR %s", one, two);
            assert_equal_answers(both, text);
        }
        gx_index_close(both[0]);
        gx_index_close(both[1]);
    }
}

/* ---- written again ---- */

static void a_rewritten_index_keeps_what_was_asked(void **state)
{
    enum { N = 2000 };
    static uint32_t new_docids[N];
    gx_index *both[2], *again;
    gx_error err = {0};
    uint64_t seed = 5;
    (void)state;
    build_both(both, golden_options, N, 1, 77);
    for (uint32_t round = 0; round < 2; ++round) { /* as it is, and in another order */
        gx_rewrite_options o = GX_REWRITE_OPTIONS;
        gx_index_options full = GX_INDEX_OPTIONS;
        full.check = GX_CHECK_FULL;
        o.docid_codec = "simple8b";
        o.force = true;
        for (uint32_t d = 0; d < N; ++d)
            new_docids[d] = d;
        for (uint32_t d = N - 1; round && d > 0; --d) {
            const uint32_t other = (uint32_t)(gx_random_next(&seed) % (d + 1)), swap = new_docids[d];
            new_docids[d] = new_docids[other];
            new_docids[other] = swap;
        }
        o.new_docids = round ? new_docids : NULL;
        for (int i = 0; i < 2; ++i) {
            assert_int_equal(gx_index_rewrite(both[i], in_dir("again.gx"), &o, &err), GX_OK);
            if (gx_index_open(&again, in_dir("again.gx"), &full, &err) != GX_OK)
                fail_msg("%s", err.text);
            for (uint32_t c = 0; c < N_ATTRIBUTES; ++c) {
                const gx_bitmaps *x = &both[i]->columns[c].bitmaps, *y = &again->columns[c].bitmaps;
                assert_memory_equal(&x->asked, &y->asked, sizeof x->asked);
                assert_int_equal(x->encoding, y->encoding);
                assert_true(round || x->bytes == y->bytes);
            }
            gx_index_close(again);
        }
    }
    gx_index_close(both[0]);
    gx_index_close(both[1]);
}

/* ---- the automatic choice ---- */

static void columns_are_made_where_they_are_small(void **state)
{
    enum { N = 20000 };
    gx_index *both[2];
    (void)state;
    for (uint32_t mode = 0; mode < 3; ++mode) {
        build_both(both, NULL, N, mode, 31 + mode);
        const gx_column *c = both[0]->columns;
        assert_int_equal(c[CAT].bitmaps.encoding, GX_BITMAPS_EQUALITY);
        assert_int_equal(c[TAGS].bitmaps.encoding, GX_BITMAPS_EQUALITY);
        assert_int_equal(c[OPEN].bitmaps.encoding, GX_BITMAPS_RANGE); /* one bit a document instead of eight */
        assert_int_equal(c[PRICE].bitmaps.encoding, GX_BITMAPS_NONE);
        assert_int_equal(c[YEAR].bitmaps.encoding, mode == 2 ? GX_BITMAPS_RANGE : GX_BITMAPS_NONE);
        for (uint32_t q = 0; q < 4; ++q)
            assert_equal_answers(both, q == 0   ? "year:[-90 TO -70]"
                                       : q == 1 ? "open:0 AND cat:cat7"
                                       : q == 2 ? "tags:[tag1 TO tag3]"
                                                : "NOT cat:[cat3 TO cat5] OR year:>-60");
        gx_index_close(both[0]);
        gx_index_close(both[1]);
    }
}

/* Its section table is one group longer than others, and must be so whatever the attributes are. */
static void an_index_with_every_section_is_whole(void **state)
{
    static const gx_weighted_term vector[] = {{"a", 1, 1.5}, {"b", 1, 0.25}};
    (void)state;
    for (uint32_t round = 0; round < 4; ++round) { /* with titles or without, with columns or without */
        const gx_bitmap_options equality = {GX_BITMAPS_EQUALITY, 0, 0};
        gx_builder_options o = GX_BUILDER_OPTIONS;
        gx_builder *b;
        gx_error err = {0};
        row r = {.n = 0};
        o.path = in_dir("every.gx");
        o.force = o.store_text = o.list_units = true;
        o.vector_bits = 8;
        o.attributes = attributes;
        o.n_attributes = 1;
        o.bitmaps = round / 2 ? &equality : NULL;
        assert_int_equal(gx_builder_open(&b, &o, &err), GX_OK);
        put(&r, YEAR, "2001");
        const gx_document doc = {.size = sizeof doc,
                                 .id = "d",
                                 .title = "T",
                                 .text = "x",
                                 .id_len = 1,
                                 .title_len = round % 2,
                                 .text_len = 1,
                                 .values = r.values,
                                 .n_values = 1,
                                 .vector = vector,
                                 .n_vector = 2};
        assert_int_equal(gx_builder_add(b, &doc, &err), GX_OK);
        gx_index *ix = finish(b, in_dir("every.gx"));
        assert_int_equal(ix->header->n_sections, 17);
        assert_int_equal(ix->columns[0].bitmaps.encoding, round / 2 ? GX_BITMAPS_EQUALITY : GX_BITMAPS_NONE);
        gx_index_close(ix);
    }
}

static void bad_options_are_refused(void **state)
{
    static const struct {
        uint32_t attribute;
        gx_bitmap_options o;
        const char *says;
    } bad[] = {{YEAR, {(gx_bitmap_encoding)4, 0, 0}, "year has an encoding"},
               {YEAR, {GX_BITMAPS_RANGE, (gx_binning)3, 0}, "year has an encoding"},
               {PRICE, {GX_BITMAPS_RANGE, 0, GX_MAX_BINS + 1}, "price has more than 4096 bins"},
               {CAT, {GX_BITMAPS_RANGE, 0, 0}, "cat has keywords"},
               {TAGS, {GX_BITMAPS_EQUALITY, 0, 9}, "tags has keywords"},
               {WHEN, {GX_BITMAPS_NONE, 0, 9}, "when has bins and no bitmap columns"}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        gx_bitmap_options o[N_ATTRIBUTES] = {0};
        gx_builder_options options = GX_BUILDER_OPTIONS;
        gx_builder *b;
        gx_error err = {0};
        o[bad[i].attribute] = bad[i].o;
        options.path = in_dir("no.gx");
        options.attributes = attributes;
        options.n_attributes = N_ATTRIBUTES;
        options.bitmaps = o;
        assert_int_equal(gx_builder_open(&b, &options, &err), GX_EUSAGE);
        if (!strstr(err.text, bad[i].says))
            fail_msg("%s", err.text);
    }
}

static void options_are_read(void **state)
{
    static const struct {
        const char *text;
        gx_bitmap_options o;
        const char *says; /* NULL: good */
    } rows[] = {{"", {GX_BITMAPS_AUTO, GX_BINS_QUANTILES, 0}, NULL},
                {"bitmaps=auto", {GX_BITMAPS_AUTO, GX_BINS_QUANTILES, 0}, NULL},
                {"bins=25", {GX_BITMAPS_RANGE, GX_BINS_QUANTILES, 25}, NULL},
                {"by=lloyd:bins=4096", {GX_BITMAPS_RANGE, GX_BINS_LLOYD, 4096}, NULL},
                {"bins=3:bitmaps=equality:by=width", {GX_BITMAPS_EQUALITY, GX_BINS_WIDTH, 3}, NULL},
                {"bitmaps=none", {GX_BITMAPS_NONE, GX_BINS_QUANTILES, 0}, NULL},
                {"bins=0", {0}, "bins=0 is no number from 1 to 4096"},
                {"bins=", {0}, "bins= is no number"},
                {"bins=4097", {0}, "bins=4097 is no number"},
                {"bins=99999999999999999999", {0}, "is no number"},
                {"bins=-1", {0}, "bins=-1 is no number"},
                {"bins=2x", {0}, "bins=2x is no number"},
                {"bitmaps=all", {0}, "bitmaps=all is none of auto, none, equality, range"},
                {"by=", {0}, "by= is none of quantiles, width, lloyd"},
                {"by=lloyds", {0}, "by=lloyds is none"},
                {"bin=4", {0}, "'bin=4' is none of bitmaps=, bins=, by="},
                {"bins=4::by=width", {0}, "'' is none"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        gx_bitmap_options o;
        gx_error err = {0};
        const gx_status st = gx_bitmap_options_read(&o, rows[i].text, &err);
        if (st != (rows[i].says ? GX_EUSAGE : GX_OK) || (rows[i].says && !strstr(err.text, rows[i].says)))
            fail_msg("'%s': '%s'", rows[i].text, err.text);
        if (!rows[i].says)
            assert_memory_equal(&o, &rows[i].o, sizeof o);
    }
}

/* ---- hostile sections ---- */

static gx_bitmaps_entry *entry(const image *im, uint32_t i)
{
    return (gx_bitmaps_entry *)(void *)(im->bytes + section(im, GX_SEC_ATTRIBUTE_BITMAPS)->offset) + i;
}

static uint8_t *part(const image *im, uint32_t i)
{
    return im->bytes + section(im, GX_SEC_ATTRIBUTE_BITMAPS)->offset + entry(im, i)->begin;
}

/* Of year, whose bounds are 17 values of a byte, twice. */
static gx_bitmap_entry *directory(const image *im)
{
    return (gx_bitmap_entry *)(void *)(part(im, YEAR) + gx_column_padded(2ull * entry(im, YEAR)->n_bins));
}

static gx_bitmap_entry *directory_of(const image *im, uint32_t keyword)
{
    return (gx_bitmap_entry *)(void *)part(im, keyword);
}

enum { OF_HEADER = 12, OF_STRUCTURE = 18, OF_CONTENTS = 26 };

static void damage(const image *im, int which)
{
    gx_bitmaps_entry *const year = entry(im, YEAR);
    gx_bitmap_entry *const first = directory(im);
    uint32_t *const words = (uint32_t *)(void *)(first + year->n_bins - 1);
    gx_section *const s = section(im, GX_SEC_ATTRIBUTE_BITMAPS);
    switch (which) {
    case 0:
        year->encoding = 4;
        break;
    case 1:
        year->encoding = GX_BITMAPS_AUTO;
        break;
    case 2:
        year->asked_binning = 3;
        break;
    case 3:
        year->asked_bins = GX_MAX_BINS + 1;
        break;
    case 4:
        year->reserved1 = 1;
        break;
    case 5:
        year->begin += 8;
        break;
    case 6:
        year->bytes += 8;
        break;
    case 7:
        year->n_bins = GX_MAX_BINS;
        break;
    case 8:
        entry(im, CAT)->n_bins = 3;
        break;
    case 9:
        entry(im, CAT)->encoding = GX_BITMAPS_RANGE;
        break;
    case 10:
        s->param = 5;
        break;
    case 11:
        im->bytes[s->offset + s->bytes - 1] = 1;
        break;
    case 12: /* the structure, from here on */
        first[1].end = 0;
        break;
    case 13:
        first[1].end = UINT32_MAX;
        break;
    case 14:
        first[1].n = 1000u | (uint32_t)GX_BITMAP_RUNS << 30;
        break;
    case 15:
        first[1].n |= 1;
        break;
    case 16:
        first[1].n = 3u << 30;
        break;
    case 17:
        part(im, YEAR)[1] = 0; /* the least year of bin 1 is that of bin 0 */
        break;
    case 18: /* the contents */
        words[0] += 1;
        break;
    case 19: /* the year of bin 16, the last, is 1 more than any document's */
        ++part(im, YEAR)[year->n_bins - 1];
        ++part(im, YEAR)[2 * year->n_bins - 1];
        break;
    case 20:
        first[2].n += 2; /* a run more */
        break;
    case 21: {
        /* another string's column */
        gx_bitmap_entry *const cat = directory_of(im, CAT);
        uint32_t *const of_cat = (uint32_t *)(void *)(cat + entry(im, CAT)->n_bins);
        of_cat[0] += 1;
        break;
    }
    case 22: { /* bits of a bitmap: those of PRICE, whose columns are bitmaps */
        gx_bitmap_entry *const price = (gx_bitmap_entry *)(void *)(part(im, PRICE) + 2 * 8 * entry(im, PRICE)->n_bins);
        ((uint8_t *)(price + 4))[7] ^= 4;
        break;
    }
    case 23: {
        gx_bitmap_entry *const price = (gx_bitmap_entry *)(void *)(part(im, PRICE) + 2 * 8 * entry(im, PRICE)->n_bins);
        ((uint8_t *)(price + 4))[4 * 79 - 1] |= 0x80; /* document 2527 */
        break;
    }
    case 24: {
        gx_bitmap_entry *const price = (gx_bitmap_entry *)(void *)(part(im, PRICE) + 2 * 8 * entry(im, PRICE)->n_bins);
        ++price[0].n;
        break;
    }
    default: { /* a greatest price that no document has */
        double x;
        uint8_t *const at = part(im, PRICE) + 8 * entry(im, PRICE)->n_bins;
        memcpy(&x, at, sizeof x);
        x += .1;
        memcpy(at, &x, sizeof x);
    }
    }
}

static void hostile_sections_are_refused(void **state)
{
    (void)state;
    check_damages(golden_file("bitmaps.gx"), damage, &(damages){OF_HEADER, OF_STRUCTURE, OF_CONTENTS, "section ATTB"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_file_stays),
        cmocka_unit_test(the_golden_file_has_every_form),
        cmocka_unit_test(columns_change_no_answer),
        cmocka_unit_test(a_rewritten_index_keeps_what_was_asked),
        cmocka_unit_test(columns_are_made_where_they_are_small),
        cmocka_unit_test(an_index_with_every_section_is_whole),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(hostile_sections_are_refused),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
