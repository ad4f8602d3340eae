#include "index/build/doc_indexer.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/analysis/tokenizer.h"
#include "index/build/term_cache.h"

struct gx_inversion {
    gx_analysis *analysis;
    gx_inverter *inverter;
    gx_memo *memo;
    uint64_t memory;
    gx_tokens tokens; /* of a short document that was split */
    gx_tally tally;
    double stamp; /* when the stage at hand began */
};

/* A document of so many bytes, title and text, goes through the analysis at once. */
#define SHORT_DOCUMENT (32u << 10)

static bool is_short(const gx_document *doc)
{
    return doc->title_len + doc->text_len < SHORT_DOCUMENT;
}

static void lap(gx_inversion *v, enum gx_builder_stage stage)
{
    v->stamp = gx_stage_lap(v->tally.seconds, stage, v->stamp);
}

gx_status gx_inversion_no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "out of memory while building; --memory sets how much the inversion holds");
}

gx_status gx_inversion_open(gx_inversion **out, const gx_analyzer *analyzer, const char *dir, uint64_t memory,
                            gx_error *err)
{
    *out = NULL;
    gx_inversion *v = calloc(1, sizeof *v);
    if (!v)
        return gx_inversion_no_memory(err);
    v->memory = memory;
    gx_status st = gx_analysis_open(&v->analysis, analyzer, err);
    if (st == GX_OK)
        st = gx_inverter_open(&v->inverter, dir, memory, err);
    if (st == GX_OK)
        st = gx_memo_open(&v->memo, v->analysis, v->inverter, err);
    if (st == GX_OK)
        *out = v;
    else
        gx_inversion_close(v);
    return st;
}

void gx_inversion_close(gx_inversion *v)
{
    if (!v)
        return;
    gx_memo_close(v->memo);
    gx_inverter_close(v->inverter);
    gx_analysis_close(v->analysis);
    free(v);
}

gx_inverter *gx_inversion_inverter(gx_inversion *v)
{
    return v->inverter;
}

const gx_tally *gx_inversion_tally(const gx_inversion *v)
{
    return &v->tally;
}

double gx_inversion_stamp(const gx_inversion *v)
{
    return v->stamp;
}

/* Look up the tokens' terms and invert them. */
static gx_status take_tokens(gx_inversion *v, uint32_t docid, const gx_tokens *tokens, uint64_t *n_tokens)
{
    const uint32_t *terms;
    uint32_t n;
    gx_status st = gx_memo_terms(v->memo, tokens, &terms, &n, &v->tally.dropped_tokens);
    if (st != GX_OK)
        return st;
    lap(v, GX_STAGE_ANALYSE);
    v->tally.replaced_bytes += tokens->replaced;
    *n_tokens += n;
    st = gx_inverter_add(v->inverter, docid, terms, n);
    lap(v, GX_STAGE_INVERT);
    return st;
}

static gx_status take_text(gx_inversion *v, uint32_t docid, const char *text, size_t len, uint64_t *n_tokens)
{
    gx_status st = GX_OK;
    for (size_t at = 0, piece; at < len && st == GX_OK; at += piece) {
        piece = gx_segment_piece(text + at, len - at);
        char *p = gx_analysis_buffer(v->analysis, piece);
        if (!p)
            return GX_ENOMEM;
        memcpy(p, text + at, piece);
        gx_tokens tokens;
        st = gx_analysis_split(v->analysis, piece, &tokens);
        if (st == GX_OK)
            st = take_tokens(v, docid, &tokens, n_tokens);
    }
    return st;
}

gx_status gx_inversion_split(gx_inversion *v, const gx_document *doc, gx_error *err)
{
    v->stamp = gx_clock_seconds();
    if (!is_short(doc))
        return GX_OK;
    const size_t len = doc->title_len + 1 + doc->text_len;
    char *p = gx_analysis_buffer(v->analysis, len);
    if (!p)
        return gx_inversion_no_memory(err);
    if (doc->title_len)
        memcpy(p, doc->title, doc->title_len);
    p[doc->title_len] = ' ';
    if (doc->text_len)
        memcpy(p + doc->title_len + 1, doc->text, doc->text_len);
    return gx_analysis_split(v->analysis, len, &v->tokens) == GX_OK ? GX_OK : gx_inversion_no_memory(err);
}

static gx_status spill_if_full(gx_inversion *v, gx_error *err)
{
    v->tally.memory_bytes = gx_inverter_bytes(v->inverter) + gx_memo_bytes(v->memo);
    if (v->tally.memory_bytes <= v->memory)
        return GX_OK;
    const gx_status st = gx_inverter_spill(v->inverter, err);
    if (st == GX_OK && !gx_memo_clear(v->memo))
        return gx_inversion_no_memory(err);
    v->tally.spills = gx_inverter_spills(v->inverter);
    lap(v, GX_STAGE_MERGE);
    return st;
}

gx_status gx_inversion_add(gx_inversion *v, uint32_t docid, const gx_document *doc, uint32_t *n_tokens, gx_error *err)
{
    gx_status st;
    uint64_t n = 0;
    if (is_short(doc)) {
        st = take_tokens(v, docid, &v->tokens, &n);
    } else if ((st = take_text(v, docid, doc->title, doc->title_len, &n)) ==
               GX_OK) { /* their ends separate them, too */
        st = take_text(v, docid, doc->text, doc->text_len, &n);
    }
    if (st != GX_OK)
        return gx_inversion_no_memory(err);
    *n_tokens = (uint32_t)n;
    v->tally.tokens += n;
    v->tally.empty += n == 0;
    return spill_if_full(v, err);
}

gx_status gx_inversion_seal(gx_inversion *v, gx_error *err)
{
    v->stamp = gx_clock_seconds();
    gx_memo_close(v->memo);
    v->memo = NULL;
    const gx_status st = gx_inverter_seal(v->inverter, err);
    v->tally.spills = gx_inverter_spills(v->inverter);
    lap(v, GX_STAGE_MERGE);
    return st;
}
