/* facets.h: what tests of facets share: indexes of documents that have attributes and words, and a search that is
 * cancelled. */
#ifndef GX_TESTS_SUPPORT_FACETS_H
#define GX_TESTS_SUPPORT_FACETS_H

#include <time.h>

#include "engine/api/gpuidx_advanced.h"
#include "tests/support/test.h"

enum { VALUE_BYTES = 40 };

/* The values of a document, while it is made. */
typedef struct doc_values {
    uint32_t n;
    gx_attribute_value values[40];
    char texts[40][VALUE_BYTES];
} doc_values;

/* Where the text of the next value is written, before add_value. */
static inline char *next_text(doc_values *v)
{
    return v->texts[v->n];
}

static inline void add_value(doc_values *v, uint32_t attribute)
{
    v->values[v->n] = (gx_attribute_value){attribute, v->texts[v->n], strlen(v->texts[v->n])};
    ++v->n;
}

static inline void print_date(char text[VALUE_BYTES], int64_t second)
{
    struct tm tm;
    const time_t t = (time_t)second;
    gmtime_r(&t, &tm);
    strftime(text, VALUE_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* Add a document whose text has the word "wN" for each bit N that is set in words. */
static inline void add_of_words(gx_builder *b, const char *id, uint32_t words, const doc_values *v)
{
    char text[200] = "";
    gx_error err = {0};
    for (uint32_t w = 0; w < 32; ++w)
        if (words >> w & 1)
            sprintf(text + strlen(text), "w%u ", w);
    const gx_document document = {sizeof document, id, NULL, text, strlen(id), 0, strlen(text), v->values, v->n};
    if (gx_builder_add(b, &document, &err) != GX_OK)
        fail_msg("%s", err.text);
}

typedef struct attributes_of {
    const gx_attribute *attributes;   /* [n] */
    const gx_bitmap_options *bitmaps; /* [n] or NULL */
    uint32_t n;
} attributes_of;

/* Make an index of documents [begin, end), which `add` adds. */
static inline void build(const char *path, attributes_of of, void (*add)(gx_builder *b, uint32_t d), uint32_t begin,
                         uint32_t end)
{
    gx_builder *b;
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_error err = {0};
    o.path = path;
    o.analyzer = "whitespace";
    o.attributes = of.attributes;
    o.n_attributes = of.n;
    o.bitmaps = of.bitmaps;
    if (gx_builder_open(&b, &o, &err))
        fail_msg("%s", err.text);
    for (uint32_t d = begin; d < end; ++d)
        add(b, d);
    assert_int_equal(gx_builder_finish(b, NULL), GX_OK);
    gx_builder_abort(b);
}

static inline bool cancel_at_once(void *user)
{
    (void)user;
    return true;
}

/* The session stops counting the attribute cat when it is asked to. */
static inline void assert_counting_is_cancelled(gx_session *s)
{
    gx_facet facet;
    gx_query query = GX_TEXT_QUERY("w1 w2", 5);
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_facets *got = (gx_facets *)1;
    assert_int_equal(gx_facet_read(&facet, "cat", NULL), GX_OK);
    opt.cancel = cancel_at_once;
    assert_int_equal(gx_count_facets(&got, s, &query, &opt, &facet, 1, NULL), GX_ECANCELLED);
    assert_null(got);
}

#endif
