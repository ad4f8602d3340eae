/* suggest.c: "suggest" of _search: words that may be meant by those that no document has. The kinds are term, with the
 * words of the text one by one, and phrase, with the text corrected.
 *
 * A score is 1 - distance / characters of the longer word, as that of Elasticsearch's default distance; of a phrase the
 * product of its words'. Terms are those of the index's analysis, stems where it has them. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/protocols/elastic/elastic.h"

/* What is asked under one name. */
typedef struct asked {
    bool phrase, by_frequency;
    const char *text;
    uint64_t size, most, prefix; /* suggestions; typing errors; characters without one */
    bool has_kind;
} asked;

/* ---- reading ---- */

static bool read_text(reader *r, const json_t *value, void *to)
{
    size_t len;
    return reader_string(r, value, &((asked *)to)->text, &len);
}

static bool read_field(reader *r, const json_t *value, void *to)
{
    const char *name;
    size_t len;
    (void)to;
    return reader_string(r, value, &name, &len) &&
           (elastic_is_text(name) || reader_fail(r, "there is no field of text '%.80s'; there is 'text'", name));
}

static bool read_size(reader *r, const json_t *value, void *to)
{
    return reader_count(r, value, 1, 100, &((asked *)to)->size);
}

static bool read_edits(reader *r, const json_t *value, void *to)
{
    return reader_count(r, value, 1, GX_MAX_DISTANCE, &((asked *)to)->most);
}

static bool read_prefix(reader *r, const json_t *value, void *to)
{
    return reader_count(r, value, 0, GX_MAX_FUZZY_CHARACTERS, &((asked *)to)->prefix);
}

static bool read_mode(reader *r, const json_t *value, void *to)
{
    const char *mode;
    size_t len;
    (void)to;
    return reader_string(r, value, &mode, &len) &&
           (strcmp(mode, "missing") == 0 ||
            reader_fail(r, "'%.40s' is not available in this version of gpuidx; 'missing' is", mode));
}

static bool read_order(reader *r, const json_t *value, void *to)
{
    asked *a = to;
    const char *order;
    size_t len;
    if (!reader_string(r, value, &order, &len))
        return false;
    a->by_frequency = strcmp(order, "frequency") == 0;
    return a->by_frequency || strcmp(order, "score") == 0 || reader_fail(r, "the order is score or frequency");
}

static bool read_term(reader *r, const json_t *value, void *to)
{
    static const member members[] = {
        {"field", read_field},       {"size", read_size},     {"max_edits", read_edits}, {"prefix_length", read_prefix},
        {"suggest_mode", read_mode}, {"sort", read_order},    {"text", read_text},       {"min_word_length", NULL},
        {"string_distance", NULL},   {"max_term_freq", NULL}, {"min_doc_freq", NULL},    {"shard_size", NULL}};
    ((asked *)to)->has_kind = true;
    return reader_object(r, value, members, sizeof members / sizeof *members, to);
}

static bool read_phrase(reader *r, const json_t *value, void *to)
{
    static const member members[] = {{"field", read_field}, {"size", read_size},  {"text", read_text},
                                     {"max_errors", NULL},  {"confidence", NULL}, {"direct_generator", NULL},
                                     {"highlight", NULL},   {"collate", NULL},    {"smoothing", NULL},
                                     {"gram_size", NULL},   {"analyzer", NULL},   {"separator", NULL}};
    ((asked *)to)->has_kind = ((asked *)to)->phrase = true;
    return reader_object(r, value, members, sizeof members / sizeof *members, to);
}

static bool read_one(reader *r, const json_t *value, asked *a, const char *text)
{
    static const member members[] = {{"text", read_text}, {"term", read_term},  {"phrase", read_phrase},
                                     {"prefix", NULL},    {"completion", NULL}, {"regex", NULL}};
    *a = (asked){.text = text, .size = 5, .most = GX_DISTANCE_AUTO};
    if (!reader_object(r, value, members, sizeof members / sizeof *members, a))
        return false;
    if (!a->has_kind)
        return reader_fail(r, "'term' or 'phrase' is missing");
    return a->text || reader_fail(r, "'text' is missing");
}

static const char *text_of_all(const json_t *suggest)
{
    return json_string_value(json_object_get(suggest, "text"));
}

bool suggest_check(reader *r, exchange *x, const json_t *suggest)
{
    const char *name;
    json_t *value;
    if (!json_is_object(suggest))
        return reader_fail(r, "an object of suggestions is expected");
    json_object_foreach((json_t *)suggest, name, value)
    {
        asked a;
        reader_enter(r, name, 0);
        if (strcmp(name, "text") == 0 ? !json_is_string(value) && !reader_fail(r, "a text is expected")
                                      : !read_one(r, value, &a, text_of_all(suggest)))
            return false;
        reader_leave(r);
    }
    return suggest_is_allowed(x);
}

/* ---- answering ---- */

/* Characters of p[n], or up to `at` of them. */
static size_t characters(const char *p, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; ++i)
        count += ((unsigned char)p[i] & 0xc0) != 0x80;
    return count;
}

static double score_of(const gx_text_term *t, const gx_expanded_word *w)
{
    const size_t n = characters(t->term, t->len), m = characters(w->word, w->len), longer = n > m ? n : m;
    return longer ? 1 - (double)w->distance / (double)longer : 1;
}

static int by_df(const void *a, const void *b)
{
    const gx_expanded_word *x = a, *y = b;
    return x->df != y->df ? (x->df < y->df ? 1 : -1) : 0;
}

/* What may be meant by a term that no document has. NULL with GX_OK: some document has it. */
static gx_status find(gx_expansion **out, const gx_index *ix, const gx_text_term *t, const asked *a, gx_error *err)
{
    gx_expand_options opt = GX_EXPAND_OPTIONS;
    const uint32_t known = gx_index_find_term(ix, t->term, t->len);
    *out = NULL;
    if (known != UINT32_MAX && gx_index_df(ix, known))
        return GX_OK;
    opt.max_words = (uint32_t)a->size;
    opt.distance = (uint32_t)a->most;
    opt.fixed_prefix = (uint32_t)a->prefix;
    opt.as_is = opt.nearest = true;
    const gx_status st = gx_index_expand(out, ix, GX_PATTERN_FUZZY, t->term, t->len, &opt, err);
    if (st == GX_OK && a->by_frequency)
        qsort((*out)->words, (*out)->n, sizeof *(*out)->words, by_df);
    return st;
}

static void put_entry(gx_text *t, const char *text, size_t begin, size_t end)
{
    gx_text_add_string(t, "{\"text\":");
    gx_text_add_json(t, text + begin, end - begin);
    gx_text_add_format(t, ",\"offset\":%zu,\"length\":%zu,\"options\":[", characters(text, begin),
                       characters(text + begin, end - begin));
}

static gx_status put_terms(gx_text *t, const gx_index *ix, const asked *a, const gx_text_term *terms, size_t n,
                           gx_error *err)
{
    gx_status st = GX_OK;
    for (size_t i = 0; i < n && st == GX_OK; ++i) {
        gx_expansion *e;
        if ((st = find(&e, ix, &terms[i], a, err)) != GX_OK)
            break;
        gx_text_add_string(t, i ? "," : "");
        put_entry(t, a->text, terms[i].begin, terms[i].end);
        for (uint32_t k = 0; e && k < e->n; ++k) {
            gx_text_add_string(t, k ? ",{\"text\":" : "{\"text\":");
            gx_text_add_json(t, e->words[k].word, e->words[k].len);
            gx_text_add_string(t, ",\"score\":");
            gx_text_add_score(t, score_of(&terms[i], &e->words[k]));
            gx_text_add_format(t, ",\"freq\":%llu}", (unsigned long long)e->words[k].df);
        }
        gx_text_add_string(t, "]}");
        gx_expansion_free(e);
    }
    return st;
}

/* The text with the nearest word in the place of each that no document has; nothing where each is in one. */
static gx_status put_corrected(gx_text *t, const gx_index *ix, const asked *a, const gx_text_term *terms, size_t n,
                               gx_error *err)
{
    gx_text fixed = {0};
    gx_status st = GX_OK;
    double score = 1;
    size_t at = 0;
    bool changed = false;
    for (size_t i = 0; i < n && st == GX_OK; ++i) {
        gx_expansion *e;
        if ((st = find(&e, ix, &terms[i], a, err)) != GX_OK)
            break;
        if (e && e->n && terms[i].begin >= at) {
            gx_text_add(&fixed, a->text + at, terms[i].begin - at);
            gx_text_add(&fixed, e->words[0].word, e->words[0].len);
            at = terms[i].end;
            score *= score_of(&terms[i], &e->words[0]);
            changed = true;
        }
        gx_expansion_free(e);
    }
    gx_text_add_string(&fixed, a->text + at);
    put_entry(t, a->text, 0, strlen(a->text));
    if (changed && !fixed.failed) {
        gx_text_add_string(t, "{\"text\":");
        gx_text_add_json(t, fixed.bytes, fixed.len);
        gx_text_add_string(t, ",\"score\":");
        gx_text_add_score(t, score);
        gx_text_add_string(t, "}");
    }
    gx_text_add_string(t, "]}");
    free(fixed.bytes);
    return st;
}

void suggest_put(gx_text *t, exchange *x, const json_t *suggest, fault *f)
{
    const char *name;
    json_t *value;
    bool first = true;
    gx_error err = {0};
    gx_status st = GX_OK;
    if (!suggest)
        return;
    gx_text_add_string(t, ",\"suggest\":{");
    json_object_foreach((json_t *)suggest, name, value)
    {
        reader unused = {.fault = &(fault){0}};
        asked a;
        gx_text_term *terms = NULL;
        size_t n = 0;
        if (strcmp(name, "text") == 0 || !read_one(&unused, value, &a, text_of_all(suggest)))
            continue;
        if (st == GX_OK)
            st = gx_index_analyze_query(x->at->ix, a.text, strlen(a.text), &terms, &n, &err);
        gx_text_add_string(t, first ? "" : ",");
        gx_text_add_json(t, name, strlen(name));
        gx_text_add_string(t, ":[");
        if (st == GX_OK)
            st = a.phrase ? put_corrected(t, x->at->ix, &a, terms, n, &err)
                          : put_terms(t, x->at->ix, &a, terms, n, &err);
        gx_text_add_string(t, "]");
        free(terms);
        first = false;
    }
    gx_text_add_string(t, "}");
    if (st != GX_OK)
        fault_set(f, http_status(st), "%s", err.text);
}
