#include "index/inversion/doc_indexer.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/analysis/tokenizer.h"
#include "index/inversion/term_cache.h"
#include "index/write/quantizer.h"

struct gx_doc_indexer {
    gx_analysis *analysis;
    gx_postings_buffer *postings;
    gx_term_cache *cache;
    uint32_t *vector_terms, *vector_tfs; /* [max_vector] */
    uint32_t max_vector;
    uint64_t memory;
    bool with_positions;
    uint32_t n_fields, field; /* 0: there are none; the one at hand */
    uint32_t *weights;        /* [n_fields] fixed; or NULL */
    uint32_t *details;        /* [max_details] */
    size_t max_details;
    uint32_t *field_positions; /* of all documents so far (gx_doc_indexer_field_positions) */
    size_t n_field_positions, max_field_positions;
    uint32_t shared; /* tokens of the field at hand that have the position of the one before */
    uint32_t position, title_positions; /* of the document at hand: the next one, and the title's */
    gx_indexer_counts counts;
    uint64_t untimed;         /* bytes of documents since one was timed */
    gx_indexer_timing timing; /* stamp: when the stage at hand began */
};

#define TIMED_BYTES (16u << 10) /* of which one document is timed */

/* A document of at most this many bytes, title and text, is analysed in one piece. */
#define SHORT_DOCUMENT (32u << 10)

static bool is_short(const gx_document *doc)
{
    return doc->title_len + doc->text_len < SHORT_DOCUMENT;
}

/* Decide whether the document is timed. */
static void begin_timing(gx_doc_indexer *v, const gx_document *doc)
{
    const uint64_t bytes = doc->title_len + doc->text_len + doc->n_vector * sizeof *doc->vector;
    v->untimed += bytes;
    v->timing.weight = 0;
    if (v->untimed < TIMED_BYTES)
        return;
    v->timing = (gx_indexer_timing){(double)v->untimed / (double)(bytes ? bytes : 1), gx_clock_seconds()};
    v->untimed = 0;
}

static void end_stage(gx_doc_indexer *v, enum gx_builder_stage stage)
{
    if (v->timing.weight == 0)
        return;
    const double t = gx_clock_seconds();
    v->counts.seconds[stage] += v->timing.weight * (t - v->timing.stamp);
    v->timing.stamp = t;
}

gx_status gx_doc_indexer_no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "out of memory while building");
}

gx_status gx_doc_indexer_open(gx_doc_indexer **out, const gx_analyzer *analyzer, const char *dir, uint64_t memory,
                              uint32_t n_together, gx_error *err)
{
    *out = NULL;
    gx_doc_indexer *v = calloc(1, sizeof *v);
    if (!v)
        return gx_doc_indexer_no_memory(err);
    v->memory = memory;
    gx_status st = gx_analysis_open(&v->analysis, analyzer, err);
    if (st == GX_OK)
        st = gx_postings_buffer_open(&v->postings, dir, memory, n_together, err);
    if (st == GX_OK)
        st = gx_term_cache_open(&v->cache, v->analysis, v->postings, err);
    if (st == GX_OK)
        *out = v;
    else
        gx_doc_indexer_close(v);
    return st;
}

void gx_doc_indexer_close(gx_doc_indexer *v)
{
    if (!v)
        return;
    gx_term_cache_close(v->cache);
    gx_postings_buffer_close(v->postings);
    gx_analysis_close(v->analysis);
    free(v->weights);
    free(v->details);
    free(v->field_positions);
    free(v->vector_terms);
    free(v->vector_tfs);
    free(v);
}

gx_postings_buffer *gx_doc_indexer_postings(gx_doc_indexer *v)
{
    return v->postings;
}

const gx_indexer_counts *gx_doc_indexer_get_counts(const gx_doc_indexer *v)
{
    return &v->counts;
}

gx_indexer_timing gx_doc_indexer_timing(const gx_doc_indexer *v)
{
    return v->timing;
}

void gx_doc_indexer_keep_positions(gx_doc_indexer *v)
{
    v->with_positions = true;
    gx_postings_buffer_keep_details(v->postings);
}

uint32_t gx_doc_indexer_title_positions(const gx_doc_indexer *v)
{
    return v->title_positions;
}

const uint32_t *gx_doc_indexer_field_positions(const gx_doc_indexer *v, size_t *n)
{
    *n = v->n_fields > 1 ? v->n_field_positions / v->n_fields : 0;
    return v->field_positions;
}

/* add_tokens with positions. */
static gx_status add_positions(gx_doc_indexer *v, uint32_t docid, const gx_tokens *tokens, uint64_t *n_tokens)
{
    const uint32_t *terms;
    uint32_t *positions, n;
    gx_status st = gx_term_cache_positions(v->cache, tokens, &terms, &positions, &n, &v->counts.dropped_tokens);
    if (st != GX_OK)
        return st;
    for (uint32_t i = 0; tokens->positions && i < n; ++i)
        positions[i] = tokens->positions[positions[i]];
    for (uint32_t i = 1; v->n_fields && i < n; ++i)
        v->shared += positions[i] == positions[i - 1];
    for (uint32_t i = 0; v->position && i < n; ++i)
        positions[i] += v->position;
    v->position += tokens->n_positions;
    end_stage(v, GX_STAGE_ANALYSE);
    v->counts.replaced_bytes += tokens->replaced;
    *n_tokens += n;
    st = gx_postings_buffer_add_details(v->postings, docid, terms, positions, n);
    end_stage(v, GX_STAGE_INVERT);
    return st;
}

gx_status gx_doc_indexer_set_fields(gx_doc_indexer *v, uint32_t n, const uint32_t *weights, gx_error *err)
{
    v->n_fields = n;
    if (!weights) {
        if (n > 1 && !v->with_positions)
            gx_postings_buffer_keep_details(v->postings);
        return GX_OK;
    }
    if (!(v->weights = malloc(n * sizeof *weights)))
        return gx_doc_indexer_no_memory(err);
    memcpy(v->weights, weights, n * sizeof *weights);
    return GX_OK;
}

/* Invert the terms of a field. */
static gx_status add_field_terms(gx_doc_indexer *v, uint32_t docid, const uint32_t *terms, uint32_t n,
                                 uint64_t *n_tokens)
{
    const uint32_t times = v->weights ? v->weights[v->field] : 1, code = v->field + 1 < v->n_fields ? v->field + 1 : 0;
    gx_status st = GX_OK;
    *n_tokens += (uint64_t)n * times;
    if (v->weights || v->n_fields == 1) {
        for (uint32_t i = 0; i < times && st == GX_OK; ++i)
            st = gx_postings_buffer_add(v->postings, docid, terms, n);
        return st;
    }
    if (!gx_reserve(&v->details, &v->max_details, n, sizeof *v->details))
        return GX_ENOMEM;
    for (uint32_t i = 0; i < n; ++i) /* they rise of themselves */
        v->details[i] = code << GX_FIELD_DETAIL_SHIFT;
    return gx_postings_buffer_add_details(v->postings, docid, terms, v->details, n);
}

/* Look up the tokens' terms and invert them. */
static gx_status add_tokens(gx_doc_indexer *v, uint32_t docid, const gx_tokens *tokens, uint64_t *n_tokens)
{
    if (v->with_positions)
        return add_positions(v, docid, tokens, n_tokens);
    const uint32_t *terms;
    uint32_t n;
    gx_status st = gx_term_cache_document(v->cache, tokens, &terms, &n, &v->counts.dropped_tokens);
    if (st != GX_OK)
        return st;
    end_stage(v, GX_STAGE_ANALYSE);
    v->counts.replaced_bytes += tokens->replaced;
    if (v->n_fields) {
        st = add_field_terms(v, docid, terms, n, n_tokens);
        end_stage(v, GX_STAGE_INVERT);
        return st;
    }
    *n_tokens += n;
    st = gx_postings_buffer_add(v->postings, docid, terms, n);
    end_stage(v, GX_STAGE_INVERT);
    return st;
}

static gx_status add_text(gx_doc_indexer *v, uint32_t docid, const char *text, size_t len, uint64_t *n_tokens)
{
    gx_status st = GX_OK;
    for (size_t at = 0, piece; at < len && st == GX_OK; at += piece) {
        piece = gx_safe_split(text + at, len - at);
        char *p = gx_analysis_buffer(v->analysis, piece);
        if (!p)
            return GX_ENOMEM;
        memcpy(p, text + at, piece);
        gx_tokens tokens;
        st = gx_analysis_tokenize(v->analysis, piece, &tokens);
        if (st == GX_OK)
            st = add_tokens(v, docid, &tokens, n_tokens);
    }
    return st;
}

/* The field's text in the document's, *len bytes; NULL: it has none. */
static const char *find_field(const gx_document *doc, uint32_t field, size_t *len)
{
    const char *p = doc->text, *const end = p + doc->text_len;
    for (uint32_t f = 0; p && f < field; ++f) {
        p = memchr(p, GX_FIELD_SEPARATOR, (size_t)(end - p));
        p = p ? p + 1 : NULL;
    }
    const char *const stop = p ? memchr(p, GX_FIELD_SEPARATOR, (size_t)(end - p)) : NULL;
    *len = p ? (size_t)((stop ? stop : end) - p) : 0;
    return p;
}

/* Index the fields with positions, which go on from field to field: those of a field leave room for terms that take the
 * next position because the analysis gives them twice at one. */
static gx_status add_placed_fields(gx_doc_indexer *v, uint32_t docid, const gx_document *doc, uint64_t *n_tokens)
{
    gx_status st = GX_OK;
    uint32_t *row = NULL;
    if (v->n_fields > 1) {
        if (!gx_reserve(&v->field_positions, &v->max_field_positions, v->n_field_positions + v->n_fields, sizeof *row))
            return GX_ENOMEM;
        row = v->field_positions + v->n_field_positions;
        v->n_field_positions += v->n_fields;
        *row = docid;
    }
    for (uint32_t f = 0; f < v->n_fields && st == GX_OK; ++f) {
        size_t len;
        const uint32_t begin = v->position;
        const char *text = doc->text_len ? find_field(doc, f, &len) : NULL;
        v->shared = 0;
        if (text)
            st = add_text(v, docid, text, len, n_tokens);
        v->position += v->shared;
        if (f + 1 < v->n_fields)
            row[1 + f] = v->position - begin;
    }
    return st;
}

/* Index the fields, the last one first, so that details rise. */
static gx_status add_fields(gx_doc_indexer *v, uint32_t docid, const gx_document *doc, uint64_t *n_tokens)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < v->n_fields && st == GX_OK; ++i) {
        size_t len;
        v->field = i ? i - 1 : v->n_fields - 1;
        const char *text = doc->text_len ? find_field(doc, v->field, &len) : NULL;
        if (text)
            st = add_text(v, docid, text, len, n_tokens);
    }
    return st;
}

/* Positions of the tokens that begin among the first `len` bytes of the text. */
static uint32_t count_title_positions(const gx_doc_indexer *v, const gx_tokens *tokens, size_t len)
{
    uint32_t low = 0, high = len ? tokens->n : 0;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        size_t begin = tokens->ranges[middle].begin, end = tokens->ranges[middle].end;
        gx_analysis_range(v->analysis, &begin, &end);
        if (begin < len)
            low = middle + 1;
        else
            high = middle;
    }
    return !tokens->positions ? low : low < tokens->n ? tokens->positions[low] : tokens->n_positions;
}

/* Analyse title and text of a short document in one piece. */
static gx_status add_short(gx_doc_indexer *v, uint32_t docid, const gx_document *doc, uint64_t *n_tokens)
{
    const size_t len = doc->title_len + 1 + doc->text_len;
    char *p = gx_analysis_buffer(v->analysis, len);
    if (!p)
        return GX_ENOMEM;
    if (doc->title_len)
        memcpy(p, doc->title, doc->title_len);
    p[doc->title_len] = ' ';
    if (doc->text_len)
        memcpy(p + doc->title_len + 1, doc->text, doc->text_len);
    gx_tokens tokens;
    const gx_status st = gx_analysis_tokenize(v->analysis, len, &tokens);
    if (st == GX_OK && v->with_positions)
        v->title_positions = count_title_positions(v, &tokens, doc->title_len);
    return st == GX_OK ? add_tokens(v, docid, &tokens, n_tokens) : st;
}

static bool reserve_vector(gx_doc_indexer *v, uint32_t n)
{
    if (n <= v->max_vector)
        return true;
    const uint64_t max = n + (uint64_t)n / 2;
    uint32_t *terms = realloc(v->vector_terms, max * sizeof *terms);
    if (terms)
        v->vector_terms = terms;
    uint32_t *tfs = realloc(v->vector_tfs, max * sizeof *tfs);
    if (tfs)
        v->vector_tfs = tfs;
    v->max_vector = terms && tfs ? (uint32_t)(max < UINT32_MAX ? max : UINT32_MAX) : v->max_vector;
    return terms && tfs;
}

static gx_status add_vector(gx_doc_indexer *v, uint32_t docid, const gx_weighted_term *vector, uint32_t n)
{
    if (!reserve_vector(v, n))
        return GX_ENOMEM;
    for (uint32_t i = 0; i < n; ++i) {
        v->vector_terms[i] = gx_postings_buffer_term(v->postings, vector[i].term, vector[i].len);
        v->vector_tfs[i] = gx_weight_bits(vector[i].weight);
        if (v->vector_terms[i] == GX_NO_TERM)
            return GX_ENOMEM;
    }
    const gx_status st = gx_postings_buffer_add_tfs(v->postings, docid, v->vector_terms, v->vector_tfs, n);
    end_stage(v, GX_STAGE_INVERT);
    return st;
}

static gx_status spill_if_full(gx_doc_indexer *v, gx_error *err)
{
    /* the cache makes room for what a spill sorts */
    const uint64_t cache = gx_term_cache_bytes(v->cache), sorting = gx_postings_buffer_sorting(v->postings);
    v->counts.memory_bytes = gx_postings_buffer_bytes(v->postings) + (cache > sorting ? cache : sorting);
    if (v->counts.memory_bytes <= v->memory)
        return GX_OK;
    const double t = gx_clock_seconds();
    if (!gx_term_cache_clear(v->cache))
        return gx_doc_indexer_no_memory(err);
    const gx_status st = gx_postings_buffer_spill(v->postings, err);
    v->counts.spills = gx_postings_buffer_spills(v->postings);
    v->timing.stamp = gx_stage_lap(v->counts.seconds, GX_STAGE_MERGE, t);
    v->counts.spilling += v->timing.stamp - t;
    return st;
}

gx_status gx_doc_indexer_add(gx_doc_indexer *v, uint32_t docid, const gx_document *doc, uint32_t *n_tokens,
                             gx_error *err)
{
    gx_status st;
    uint64_t n = 0;
    begin_timing(v, doc);
    v->position = v->title_positions = 0;
    if (doc->vector) {
        n = doc->n_vector;
        st = add_vector(v, docid, doc->vector, doc->n_vector);
    } else if (v->n_fields) {
        st = (v->with_positions ? add_placed_fields : add_fields)(v, docid, doc, &n);
    } else if (is_short(doc)) {
        st = add_short(v, docid, doc, &n);
    } else if ((st = add_text(v, docid, doc->title, doc->title_len, &n)) == GX_OK) { /* their ends separate them, too */
        v->title_positions = v->position;
        st = add_text(v, docid, doc->text, doc->text_len, &n);
    }
    if (st != GX_OK)
        return gx_doc_indexer_no_memory(err);
    *n_tokens = (uint32_t)n;
    v->counts.tokens += n;
    v->counts.empty += n == 0;
    return spill_if_full(v, err);
}

gx_status gx_doc_indexer_finish(gx_doc_indexer *v, gx_error *err)
{
    const double t = gx_clock_seconds();
    gx_term_cache_close(v->cache);
    v->cache = NULL;
    const gx_status st = gx_postings_buffer_finish(v->postings, err);
    v->counts.spills = gx_postings_buffer_spills(v->postings);
    gx_stage_lap(v->counts.seconds, GX_STAGE_MERGE, t);
    return st;
}
