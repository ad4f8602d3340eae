/* Attributes of documents: from texts to values, from a builder into a file and back, and hostile
 * sections. attributes.gx in tests/data is kept as test_index_golden.c keeps its files. */
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <sys/stat.h>

#include "engine/random.h"
#include "index/attributes/types.h"
#include "index/check/check.h"
#include "index/write/writer.h"
#include "tests/support/attribute_index.h"
#include "tests/support/index_image.h"
#include "tests/support/scratch.h"

/* ---- texts to values ---- */

static void whole_numbers_are_read_up_to_the_ends_of_64_bits(void **state)
{
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } rows[] = {{"0", true, 0},
                {"-0", true, 0},
                {"+7", true, 7},
                {"2019", true, 2019},
                {"9223372036854775807", true, INT64_MAX},
                {"-9223372036854775808", true, INT64_MIN},
                {"9223372036854775808", false, 0},
                {"-9223372036854775809", false, 0},
                {"99999999999999999999999", false, 0},
                {"", false, 0},
                {"-", false, 0},
                {"1.0", false, 0},
                {"1e3", false, 0},
                {" 1", false, 0},
                {"0x10", false, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        int64_t x = 1;
        const char *why = gx_parse_int(rows[i].text, strlen(rows[i].text), &x);
        if (!why != rows[i].good || (!why && x != rows[i].value))
            fail_msg("'%s': %s, %lld", rows[i].text, why ? why : "good", (long long)x);
    }
}

static void numbers_are_finite(void **state)
{
    static const struct {
        const char *text;
        double value; /* NaN: refused */
    } rows[] = {{"1.5", 1.5}, {"-2", -2},    {".5", .5},   {"5.", 5},     {"1e3", 1000},  {"-1E-2", -.01},
                {"-0", 0},    {"nan", NAN},  {"inf", NAN}, {"-inf", NAN}, {"1e400", NAN}, {"0x1p3", NAN},
                {"1,5", NAN}, {"", NAN},     {".", NAN},   {"e5", NAN},   {"1e", NAN},    {"1e+", NAN},
                {"1 ", NAN},  {"1e-999", 0}, {"--1", NAN}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        double x = 99;
        const char *why = gx_parse_float(rows[i].text, strlen(rows[i].text), &x);
        if (!why == isnan(rows[i].value) || (!why && (x != rows[i].value || signbit(x) != signbit(rows[i].value))))
            fail_msg("'%s': %s, %g", rows[i].text, why ? why : "good", x);
    }
}

static void printed_values_are_read_as_the_same(void **state)
{
    static const double extremes[] = {0, 0.1, 5e-324, DBL_MIN, -DBL_MAX, 1e22, 1e23, 123456789012345680.0};
    uint64_t seed = 23;
    char text[GX_VALUE_TEXT];
    (void)state;
    for (uint32_t i = 0; i < 20000; ++i) {
        uint64_t bits = gx_random_next(&seed);
        int64_t first, last;
        double x, y;
        memcpy(&x, &bits, sizeof x);
        x = i < sizeof extremes / sizeof *extremes ? extremes[i] : i % 3 ? x : (double)(bits % 100000) / 100;
        if (!isfinite(x))
            continue;
        gx_print_float(x, text);
        if (gx_parse_float(text, strlen(text), &y) || memcmp(&x, &y, sizeof x) != 0)
            fail_msg("%a is printed as %s", x, text);
        int64_t second = (int64_t)(bits % 315569520000) - 62167219200;
        second = i == 0 ? -62167219200 : i == 1 ? 253402300799 : i % 4 ? second : second - second % 86400;
        gx_print_date(second, text);
        if (gx_parse_date(text, strlen(text), &first, &last) || first != second)
            fail_msg("second %lld is printed as %s", (long long)second, text);
    }
    gx_print_float(0.1, text);
    assert_string_equal(text, "0.1");
    gx_print_date(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59Z");
    gx_print_date(-86400, text);
    assert_string_equal(text, "1969-12-31");
}

static void dates_are_seconds_and_spans(void **state)
{
    static const struct {
        const char *text;
        int64_t first, last; /* first > last: refused */
    } rows[] = {{"1970-01-01", 0, 86399},
                {"1970", 0, 31535999},
                {"1970-02", 2678400, 5097599},
                {"2000-02-29", 951782400, 951868799},
                {"2019-05-31T12:30:00Z", 1559305800, 1559305800},
                {"2019-05-31T12:30Z", 1559305800, 1559305859},
                {"2019-05-31 12:30:00", 1559305800, 1559305800},
                {"2019-05-31T12:30:00.999+02:00", 1559298600, 1559298600},
                {"2019-05-31T12:30:00-0130", 1559311200, 1559311200},
                {"1969-12-31T23:59:59Z", -1, -1},
                {"0000-01-01", -62167219200, -62167132801},
                {"9999-12-31T23:59:59Z", 253402300799, 253402300799},
                {"1900-02-29", 1, 0},
                {"2019-02-29", 1, 0},
                {"2019-13-01", 1, 0},
                {"2019-00-01", 1, 0},
                {"2019-04-31", 1, 0},
                {"2019-04-30T24:00:00Z", 1, 0},
                {"2019-04-30T12:60:00Z", 1, 0},
                {"2019-04-30T12:00:60Z", 1, 0},
                {"2019-04-30T12:00:00+24:00", 1, 0},
                {"2019-04-30T12", 1, 0},
                {"2019-04-30T12:00:00.", 1, 0},
                {"2019-04-30Z", 1, 0},
                {"19-04-30", 1, 0},
                {"10000-01-01", 1, 0},
                {"-001-01-01", 1, 0},
                {"2019-4-30", 1, 0},
                {"2019-", 1, 0},
                {"2019/04/30", 1, 0},
                {"0000-01-01T01:00:00+01:00", -62167219200, -62167219200},
                {"0000-01-01T00:59:59+01:00", 1, 0},
                {"9999-12-31T22:59:59-01:00", 253402300799, 253402300799},
                {"9999-12-31T23:00:00-01:00", 1, 0},
                {"", 1, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        int64_t first = 7, last = 7;
        const char *why = gx_parse_date(rows[i].text, strlen(rows[i].text), &first, &last);
        if (!why != (rows[i].first <= rows[i].last) || (!why && (first != rows[i].first || last != rows[i].last)))
            fail_msg("'%s': %s, %lld to %lld", rows[i].text, why ? why : "good", (long long)first, (long long)last);
    }
    int64_t before = INT64_MIN; /* a day after the other, over 900 years */
    for (int y = 1600; y < 2500; ++y)
        for (int m = 1; m <= 12; ++m)
            for (int d = 1; d <= 31; ++d) {
                char text[40];
                int64_t first, last;
                snprintf(text, sizeof text, "%04d-%02d-%02d", y, m, d);
                if (gx_parse_date(text, 10, &first, &last))
                    assert_true(d > 28);
                else {
                    assert_true(before == INT64_MIN || first == before + 86400);
                    before = first;
                }
            }
}

/* ---- a collection with attributes ---- */

enum { YEAR, PRICE, WHEN, CAT, TAGS, OPEN, N_ATTRIBUTES };
static const gx_attribute attributes[N_ATTRIBUTES] = {{"year", GX_ATTRIBUTE_INT},      {"price", GX_ATTRIBUTE_FLOAT},
                                                      {"when", GX_ATTRIBUTE_DATE},     {"cat", GX_ATTRIBUTE_KEYWORD},
                                                      {"tags", GX_ATTRIBUTE_KEYWORDS}, {"open", GX_ATTRIBUTE_BOOL}};

typedef struct row {
    gx_attribute_value values[16];
    char texts[16][40];
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

static void golden_row(row *r, uint32_t d)
{
    r->n = 0;
    if (d % 10 != 9)
        put(r, YEAR, "%u", 1990 + d * 7 % 31);
    if (d % 7 != 3)
        put(r, PRICE, "%g", ((double)d - 35) / 4);
    put(r, WHEN, "2000-01-%02u", 1 + d % 28);
    if (d % 5 != 4)
        put(r, CAT, "c%u", d * 3 % 11);
    for (uint32_t i = 0; i < d % 4; ++i)
        put(r, TAGS, "t%u", (d + i) % 6);
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
    write_attribute_index(path, &(attribute_index){attributes, NULL, N_ATTRIBUTES, 70, set_golden});
}

static void the_golden_file_stays(void **state)
{
    (void)state;
    check_golden_file(golden_file("attributes.gx"), write_golden);
}

/* ---- through a builder and back ---- */

/* A document's value as text, in a form that depends on the value alone; "" where it has none. */
static void value_text(const gx_index *ix, uint32_t i, uint32_t d, char text[400])
{
    const gx_column *c = &ix->columns[i];
    const uint64_t raw = c->starts ? 0 : gx_column_raw(c, d);
    size_t n = 0, len;
    double x;
    text[0] = 0;
    if (!gx_column_has(c, d))
        return;
    if (c->type == GX_ATTRIBUTE_FLOAT) {
        memcpy(&x, &raw, sizeof x);
        snprintf(text, 400, "%.17g", x);
    } else if (!gx_is_keyword(c->type)) {
        snprintf(text, 400, "%lld", (long long)((uint64_t)c->base + raw));
    } else {
        const uint64_t begin = c->starts ? c->starts[d] : d, end = c->starts ? c->starts[d + 1] : begin + 1;
        for (uint64_t v = begin; v < end; ++v) {
            const char *p = gx_column_string(ix, c, (uint32_t)gx_column_raw(c, v), &len);
            n += (size_t)snprintf(text + n, 400 - n, "%.*s,", (int)len, p);
        }
    }
}

static gx_builder *open_builder(const char *path, const gx_attribute *a, uint32_t n, gx_duplicates duplicates)
{
    gx_builder *b;
    gx_error err = {0};
    gx_builder_options o = GX_BUILDER_OPTIONS;
    o.path = path;
    o.force = true;
    o.duplicates = duplicates;
    o.threads = 2;
    o.attributes = a;
    o.n_attributes = n;
    o.store_text = true; /* with titles that makes every section there is */
    if (gx_builder_open(&b, &o, &err) != GX_OK)
        fail_msg("%s", err.text);
    return b;
}

static gx_status add(gx_builder *b, uint32_t id, const row *r, gx_error *err)
{
    char name[24];
    const size_t n = (size_t)snprintf(name, sizeof name, "doc%u", id);
    const gx_document doc = {sizeof doc, name, "A title", "some words", n, id % 2 ? 7 : 0, 10, r->values, r->n};
    return gx_builder_add(b, &doc, err);
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

static void values_come_back_whatever_their_range(void **state)
{
    static const char *const ranges[][2] = {{"0", "0"},
                                            {"-9223372036854775808", "9223372036854775807"},
                                            {"9223372036854775807", "9223372036854775807"},
                                            {"100", "355"},
                                            {"100", "356"},
                                            {"-5", "65530"},
                                            {"-5", "65531"},
                                            {"0", "4294967295"},
                                            {"0", "4294967296"}};
    static const uint8_t widths[] = {1, 8, 1, 1, 2, 2, 4, 4, 8};
    static const gx_attribute one = {"n", GX_ATTRIBUTE_INT};
    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; ++i) {
        gx_error err = {0};
        gx_builder *b = open_builder(in_dir("range.gx"), &one, 1, GX_DUPLICATES_FAIL);
        for (uint32_t d = 0; d < 3; ++d) {
            row r = {.n = 0};
            if (d < 2)
                put(&r, 0, "%s", ranges[i][d]);
            else
                put(&r, 0, "%s", ""); /* missing */
            assert_int_equal(add(b, d, &r, &err), GX_OK);
        }
        gx_index *ix = finish(b, in_dir("range.gx"));
        char text[400];
        for (uint32_t d = 0; d < 3; ++d) {
            value_text(ix, 0, d, text);
            assert_string_equal(text, d < 2 ? ranges[i][d] : "");
        }
        assert_int_equal(ix->columns[0].width, widths[i]);
        gx_attribute_info info = {.size = sizeof info};
        assert_int_equal(gx_index_get_attribute(ix, 0, &info), GX_OK);
        assert_int_equal(info.n_present, 2);
        assert_int_equal(info.min_int, strtoll(ranges[i][0], NULL, 10));
        assert_int_equal(info.max_int, strtoll(ranges[i][1], NULL, 10));
        gx_index_close(ix);
    }
}

static void a_bad_value_is_refused_and_leaves_no_trace(void **state)
{
    static const struct {
        uint32_t attribute;
        const char *text, *says;
    } bad[] = {{YEAR, "12x", "the attribute year: '12x' is no whole number"},
               {PRICE, "nan", "the attribute price: 'nan' is no number"},
               {PRICE, "1e999", "is outside the range of a double"},
               {WHEN, "2019-02-30", "the attribute when: '2019-02-30' is no date: there is no such day"},
               {OPEN, "maybe", "the attribute open: 'maybe' is neither true nor false"}};
    gx_error err = {0};
    gx_builder *b = open_builder(in_dir("bad.gx"), attributes, N_ATTRIBUTES, GX_DUPLICATES_FAIL);
    row r = {.n = 0};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        r.n = 0;
        put(&r, CAT, "%s", "unused"); /* a string that no document of the index has */
        put(&r, bad[i].attribute, "%s", bad[i].text);
        assert_int_equal(add(b, 1, &r, &err), GX_EINPUT);
        assert_non_null(strstr(err.text, bad[i].says));
    }
    r.n = 0;
    put(&r, CAT, "a");
    put(&r, CAT, "b");
    assert_int_equal(add(b, 1, &r, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, "the attribute cat has several values"));
    r.n = 0;
    put(&r, N_ATTRIBUTES, "1");
    assert_int_equal(add(b, 1, &r, &err), GX_EUSAGE);
    r.n = 0;
    put(&r, TAGS, "b");
    put(&r, TAGS, "a");
    put(&r, TAGS, "b");
    assert_int_equal(add(b, 1, &r, &err), GX_OK);
    gx_index *ix = finish(b, in_dir("bad.gx"));
    char text[400];
    value_text(ix, TAGS, 0, text);
    assert_string_equal(text, "a,b,");
    assert_int_equal(ix->columns[CAT].n_strings, 0);
    for (uint32_t i = 0; i < N_ATTRIBUTES; ++i)
        assert_int_equal(gx_column_has(&ix->columns[i], 0), i == TAGS);
    gx_index_close(ix);
}

static void bad_declarations_are_refused(void **state)
{
    static const gx_attribute bad[][2] = {
        {{"id", GX_ATTRIBUTE_INT}, {"b", GX_ATTRIBUTE_INT}},   {{"AND", GX_ATTRIBUTE_INT}, {"b", GX_ATTRIBUTE_INT}},
        {{"", GX_ATTRIBUTE_INT}, {"b", GX_ATTRIBUTE_INT}},     {{NULL, GX_ATTRIBUTE_INT}, {"b", GX_ATTRIBUTE_INT}},
        {{"1a", GX_ATTRIBUTE_INT}, {"b", GX_ATTRIBUTE_INT}},   {{"a b", GX_ATTRIBUTE_INT}, {"b", GX_ATTRIBUTE_INT}},
        {{"b", GX_ATTRIBUTE_INT}, {"b", GX_ATTRIBUTE_FLOAT}},  {{"a", (gx_attribute_type)0}, {"b", GX_ATTRIBUTE_INT}},
        {{"a", (gx_attribute_type)7}, {"b", GX_ATTRIBUTE_INT}}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        gx_builder *b;
        gx_error err = {0};
        gx_builder_options o = GX_BUILDER_OPTIONS;
        o.path = in_dir("no.gx");
        o.attributes = bad[i];
        o.n_attributes = 2;
        assert_int_equal(gx_builder_open(&b, &o, &err), GX_EUSAGE);
        assert_non_null(strstr(err.text, "attribute"));
    }
}

static void random_row(row *r, uint64_t *seed)
{
    r->n = 0;
    if (gx_random_next(seed) % 4)
        put(r, YEAR, "%d", (int)(gx_random_next(seed) % 300) - 100);
    if (gx_random_next(seed) % 4)
        put(r, PRICE, "%g", (double)(gx_random_next(seed) % 1000) / 8);
    if (gx_random_next(seed) % 4)
        put(r, WHEN, "%04u-%02u", (unsigned)(gx_random_next(seed) % 10000), 1 + (unsigned)(gx_random_next(seed) % 12));
    if (gx_random_next(seed) % 4)
        put(r, CAT, "cat%u", (unsigned)(gx_random_next(seed) % 400));
    for (uint64_t n = gx_random_next(seed) % 6; n; --n)
        put(r, TAGS, "tag%u", (unsigned)(gx_random_next(seed) % 40));
    if (gx_random_next(seed) % 4)
        put(r, OPEN, "%u", (unsigned)(gx_random_next(seed) % 2));
}

/* By another way: columns of one document each. */
static void assert_row(const gx_index *ix, uint32_t d, const row *r)
{
    char text[400], want[400];
    for (uint32_t i = 0; i < N_ATTRIBUTES; ++i) {
        bool tags[64] = {false};
        size_t n = 0;
        want[0] = 0;
        for (uint32_t v = 0; v < r->n; ++v) {
            if (r->values[v].attribute != i)
                continue;
            int64_t first, last;
            if (i == TAGS)
                tags[atoi(r->texts[v] + 3)] = true;
            else if (i == WHEN && !gx_parse_date(r->texts[v], r->values[v].len, &first, &last))
                snprintf(want, sizeof want, "%lld", (long long)first);
            else if (i == CAT)
                snprintf(want, sizeof want, "%s,", r->texts[v]);
            else if (i == PRICE)
                snprintf(want, sizeof want, "%.17g", atof(r->texts[v]));
            else
                snprintf(want, sizeof want, "%d", atoi(r->texts[v]));
        }
        for (const char *order = "0123456789"; i == TAGS && *order; ++order) { /* byte order: 1, 10, 11, .., 2 */
            if (tags[*order - '0'])
                n += (size_t)snprintf(want + n, sizeof want - n, "tag%c,", *order);
            for (int low = 0; *order != '0' && low < 10; ++low)
                if (10 * (*order - '0') + low < 64 && tags[10 * (*order - '0') + low])
                    n += (size_t)snprintf(want + n, sizeof want - n, "tag%c%d,", *order, low);
        }
        value_text(ix, i, d, text);
        if (strcmp(text, want) != 0)
            fail_msg("document %u, %s: '%s', not '%s'", d, attributes[i].name, text, want);
    }
}

static void random_values_survive_duplicates_recoding_and_another_order(void **state)
{
    enum { N = 1500 };
    static row rows[2 * N];
    uint64_t seed = 20;
    uint32_t last_of[N], n_kept = 0, kept[N], new_docids[N];
    gx_error err = {0};
    gx_builder *b = open_builder(in_dir("a.gx"), attributes, N_ATTRIBUTES, GX_DUPLICATES_LAST);
    (void)state;
    memset(last_of, 0xff, sizeof last_of);
    for (uint32_t i = 0; i < 2 * N; ++i) {
        const uint32_t id = (uint32_t)(gx_random_next(&seed) % N);
        random_row(&rows[i], &seed);
        last_of[id] = i;
        assert_int_equal(add(b, id, &rows[i], &err), GX_OK);
    }
    gx_index *ix = finish(b, in_dir("a.gx"));
    for (uint32_t d = 0; d < ix->n_docs; ++d) {
        size_t len;
        const char *id = gx_index_doc_id(ix, d, &len);
        kept[d] = last_of[strtoul(id + 3, NULL, 10)];
        assert_row(ix, d, &rows[kept[d]]);
    }
    n_kept = ix->n_docs;
    assert_true(n_kept > N / 2 && n_kept < N);

    gx_rewrite_options o = GX_REWRITE_OPTIONS;
    o.docid_codec = "simple8b";
    o.force = true;
    assert_int_equal(gx_index_rewrite(ix, in_dir("b.gx"), &o, &err), GX_OK);
    gx_index *recoded;
    assert_int_equal(gx_index_open(&recoded, in_dir("b.gx"), NULL, &err), GX_OK);
    for (uint32_t i = 0; i < ix->header->n_sections; ++i) /* the sections of attributes are the same bytes */
        for (uint32_t j = 0; j < recoded->header->n_sections; ++j) {
            const gx_section *s = &ix->sections[i], *t = &recoded->sections[j];
            if (s->kind == t->kind && (s->kind & 0xffffff) == (GX_SEC_ATTRIBUTES & 0xffffff)) {
                assert_int_equal(s->bytes, t->bytes);
                assert_memory_equal(ix->file + s->offset, recoded->file + t->offset, s->bytes);
            }
        }
    assert_int_equal(recoded->n_columns, N_ATTRIBUTES);
    gx_index_close(recoded);

    for (uint32_t d = 0; d < n_kept; ++d)
        new_docids[d] = d;
    for (uint32_t d = n_kept - 1; d > 0; --d) {
        const uint32_t other = (uint32_t)(gx_random_next(&seed) % (d + 1)), swap = new_docids[d];
        new_docids[d] = new_docids[other];
        new_docids[other] = swap;
    }
    o.new_docids = new_docids;
    assert_int_equal(gx_index_rewrite(ix, in_dir("b.gx"), &o, &err), GX_OK);
    gx_index_options full = GX_INDEX_OPTIONS;
    full.check = GX_CHECK_FULL;
    assert_int_equal(gx_index_open(&recoded, in_dir("b.gx"), &full, &err), GX_OK);
    for (uint32_t d = 0; d < n_kept; ++d)
        assert_row(recoded, new_docids[d], &rows[kept[d]]);
    gx_index_close(recoded);
    gx_index_close(ix);
}

static void no_documents_and_no_values_are_fine(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 66; n += 65) {
        gx_error err = {0};
        gx_builder *b = open_builder(in_dir("empty.gx"), attributes, N_ATTRIBUTES, GX_DUPLICATES_FAIL);
        for (uint32_t d = 0; d < n; ++d)
            assert_int_equal(add(b, d, &(row){.n = 0}, &err), GX_OK);
        gx_index *ix = finish(b, in_dir("empty.gx"));
        assert_int_equal(gx_index_n_attributes(ix), N_ATTRIBUTES);
        gx_attribute_info info = {.size = sizeof info};
        for (uint32_t i = 0; i < N_ATTRIBUTES; ++i) {
            assert_int_equal(gx_index_get_attribute(ix, i, &info), GX_OK);
            assert_int_equal(info.n_present, 0);
            assert_int_equal(info.type, attributes[i].type);
        }
        assert_int_equal(gx_index_get_attribute(ix, N_ATTRIBUTES, &info), GX_ENOTFOUND);
        info.size = 8;
        assert_int_equal(gx_index_get_attribute(ix, 0, &info), GX_EUSAGE);
        gx_index_close(ix);
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

static char *strings(const image *im) /* the bytes of the first: the names, and then c0, c1, c10, c2, .. */
{
    const uint32_t n = N_ATTRIBUTES + entry(im, CAT)->n_strings + entry(im, TAGS)->n_strings;
    return (char *)im->bytes + section(im, GX_SEC_ATTRIBUTE_STRINGS)->offset + (n + 1) * 4;
}

static void damage(const image *im, int which)
{
    gx_column_entry *const year = entry(im, YEAR), *const cat = entry(im, CAT), *const tags = entry(im, TAGS);
    double nan = NAN;
    switch (which) {
    case 0:
        year->type = 0;
        break;
    case 1:
        year->type = 7;
        break;
    case 2:
        year->width = 3;
        break;
    case 3:
        year->width = 8; /* past its place */
        break;
    case 4:
        year->n_values = UINT64_MAX;
        break;
    case 5:
        year->n_present = 71;
        break;
    case 6:
        year->n_present = 70; /* no bitmap then */
        break;
    case 7:
        year->values = 8;
        break;
    case 8:
        year->reserved[23] = 1;
        break;
    case 9:
        year->n_strings = 1;
        break;
    case 10:
        cat->base = 1;
        break;
    case 11:
        cat->first_string = 0;
        break;
    case 12:
        cat->n_strings = UINT32_MAX;
        break;
    case 13:
        section(im, GX_SEC_ATTRIBUTES)->param = 5;
        break;
    case 14:
        section(im, GX_SEC_ATTRIBUTES)->param = 0;
        break;
    case 15:
        section(im, GX_SEC_ATTRIBUTE_STRINGS)->param = 2;
        break;
    case 16:
        tags->n_values -= 8;
        break;
    case 17:
        tags->width = 8;
        break;
    case 18:
        section(im, GX_SEC_ATTRIBUTE_VALUES)->kind = GX_KIND('N', 'O', 'N', 'E');
        break;
    case 19: /* the structure, from here on */
        memcpy(strings(im), "pric", 4);
        memcpy(strings(im) + 4, "price", 5);
        strings(im)[0] = '1';
        break;
    case 20: /* a document of tags ends before it begins */
        ((uint32_t *)(void *)(column(im, TAGS) + gx_column_padded(tags->n_values)))[2] = 9999;
        break;
    case 21:
        ((uint32_t *)(void *)(column(im, TAGS) + gx_column_padded(tags->n_values)))[0] = 1;
        break;
    case 22: /* the contents */
        column(im, CAT)[0] = (uint8_t)cat->n_strings;
        break;
    case 23:
        column(im, TAGS)[0] = (uint8_t)tags->n_strings;
        break;
    case 24:
        memcpy(column(im, PRICE), &nan, sizeof nan);
        break;
    case 25:
        column(im, OPEN)[1] = 2;
        break;
    case 26:
        column(im, OPEN)[0] = 1; /* document 0 has no value */
        break;
    case 27:
        year->base = INT64_MAX;
        break;
    case 28: /* one document more has a value of the year */
        column(im, YEAR)[72 + 1] ^= 2;
        break;
    case 29:
        column(im, YEAR)[72 + 8 + 7] = 1;
        break;
    case 30: /* strings that do not rise */
        memcpy(strings(im) + strlen("yearpricewhencattagsopen"), "c9", 2);
        break;
    case 31:
        column(im, YEAR)[70] = 1; /* the padding */
        break;
    default: /* two values of a document that do not rise: those of document 2, t2 and t3 */
        column(im, TAGS)[1] = column(im, TAGS)[2];
    }
}

static void hostile_sections_are_refused(void **state)
{
    (void)state;
    check_damages(golden_file("attributes.gx"), damage, &(damages){19, 22, 33, "section ATT"});
}

static void every_type_reads_what_it_prints(void **state)
{
    (void)state;
    static const char *const texts[] = {"-12",        "9223372036854775807",  "3.5",  "-1e+300", "2019",
                                        "2019-02-28", "1999-12-31T23:59:59Z", "true", "false"};
    gx_attribute_type found;
    uint32_t n_types = 0, n_read = 0;
    assert_null(gx_type_of(0));
    for (unsigned t = 1; gx_type_of(t); ++t, ++n_types) {
        const gx_type *type = gx_type_of(t);
        assert_true(gx_attribute_type_find(type->name, &found) && found == t);
        assert_string_equal(gx_attribute_type_name((gx_attribute_type)t), type->name);
        assert_true(type->is_string == gx_is_keyword((gx_attribute_type)t) && type->is_string != (type->parse != NULL));
        for (size_t i = 0; type->parse && i < sizeof texts / sizeof *texts; ++i) {
            int64_t first, last, again, end;
            char text[GX_VALUE_TEXT];
            if (type->parse(texts[i], strlen(texts[i]), false, &first, &last))
                continue;
            const gx_value value = gx_value_of_bits((gx_attribute_type)t, first);
            assert_true(gx_value_bits((gx_attribute_type)t, &value) == first);
            assert_true(!type->fault || !type->fault(first));
            type->print(first, text);
            assert_null(type->parse(text, strlen(text), true, &again, &end));
            assert_true(again == first);
            ++n_read;
        }
    }
    assert_int_equal(n_types, 6);
    assert_in_range(n_read, 13, 36);
    assert_non_null(gx_type_of(GX_ATTRIBUTE_DATE)->fault(INT64_MAX));
    assert_non_null(gx_type_of(GX_ATTRIBUTE_BOOL)->fault(2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_are_read_up_to_the_ends_of_64_bits),
        cmocka_unit_test(numbers_are_finite),
        cmocka_unit_test(dates_are_seconds_and_spans),
        cmocka_unit_test(printed_values_are_read_as_the_same),
        cmocka_unit_test(every_type_reads_what_it_prints),
        cmocka_unit_test(the_golden_file_stays),
        cmocka_unit_test(values_come_back_whatever_their_range),
        cmocka_unit_test(a_bad_value_is_refused_and_leaves_no_trace),
        cmocka_unit_test(bad_declarations_are_refused),
        cmocka_unit_test(random_values_survive_duplicates_recoding_and_another_order),
        cmocka_unit_test(no_documents_and_no_values_are_fine),
        cmocka_unit_test(hostile_sections_are_refused),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
