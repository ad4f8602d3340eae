#include "tests/support/gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/random.h"
#include "index/analysis/analyzer.h"
#include "index/write/writer.h"

uint64_t gen_u64(gen_rng *r)
{
    return gx_random_next(&r->state);
}

uint32_t gen_below(gen_rng *r, uint32_t n)
{
    return (uint32_t)((gen_u64(r) >> 32) * n >> 32);
}

static void *must(void *p)
{
    if (!p)
        abort();
    return p;
}

/* Draw a term's number of documents: near a block's length, or any number up to all. */
static uint32_t pick_df(gen_rng *r, uint32_t t, uint32_t n_docs)
{
    static const uint32_t borders[] = {31, 32, 33, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 2047, 2049, 64, 65};
    uint32_t df;
    if (t == 0)
        return n_docs;
    if (t <= 2)
        return 1;
    if (t < 3 + sizeof borders / sizeof *borders)
        df = borders[t - 3];
    else if (gen_below(r, 3) == 0)
        df = 1 + gen_below(r, n_docs); /* dense */
    else
        df = 1 + gen_below(r, 1 + n_docs / (1 + gen_below(r, 200)));
    return df < n_docs ? df : n_docs;
}

static uint32_t pick_tf(gen_rng *r)
{
    uint32_t tf = 1;
    while (tf < 300 && gen_below(r, 3) == 0)
        ++tf;
    return gen_below(r, 500) ? tf : 1 + gen_below(r, 2000);
}

static uint32_t pick_tf_of(gen_rng *r, gen_shape shape, uint32_t docid)
{
    const uint32_t tf = pick_tf(r);
    if (shape == GEN_HUGE) {
        const uint32_t any = (uint32_t)gen_u64(r) >> gen_below(r, 32);
        return gen_below(r, 50) == 0 ? UINT32_MAX : any ? any : tf;
    }
    return tf * (shape == GEN_SKEWED && docid % 97 == 5 ? 1000 : 1);
}

/* Mark df different documents. */
static void mark_documents(gen_rng *r, gen_shape shape, uint32_t n_docs, uint32_t df, uint8_t *marks)
{
    memset(marks, 0, n_docs);
    if (2 * (uint64_t)df > n_docs) { /* leave out instead */
        memset(marks, 1, n_docs);
        for (uint32_t left = n_docs - df; left;) {
            const uint32_t d = gen_below(r, n_docs);
            left -= marks[d];
            marks[d] = 0;
        }
        return;
    }
    while (df) {
        uint32_t d = gen_below(r, n_docs), run = shape == GEN_CLUSTERED ? 1 + gen_below(r, 300) : 1;
        for (; run && df && d < n_docs; --run, d += 1 + (shape == GEN_CLUSTERED && gen_below(r, 4) == 0)) {
            df -= !marks[d];
            marks[d] = 1;
        }
    }
}

static void make_list(gen_list *l, gen_rng *r, const gen_collection *c, uint32_t t, uint8_t *marks)
{
    mark_documents(r, c->shape, c->n_docs, pick_df(r, t, c->n_docs), marks);
    l->docids = must(malloc(((size_t)c->n_docs + 1) * sizeof *l->docids));
    l->tfs = must(malloc(((size_t)c->n_docs + 1) * sizeof *l->tfs));
    l->df = 0;
    for (uint32_t d = 0; d < c->n_docs; ++d) {
        if (!marks[d])
            continue;
        l->docids[l->df] = d;
        l->tfs[l->df++] = pick_tf_of(r, c->shape, d);
    }
}

/* Make every list repeat with a short period, so that documents are copies of each other. */
static void repeat_documents(gen_collection *c, uint32_t period)
{
    for (uint32_t t = 0; t < c->n_terms; ++t) {
        gen_list *l = &c->lists[t];
        if (t == 1 || t == 2)
            continue;
        uint32_t n = 0, first = 0;
        while (first < l->df && l->docids[first] < period)
            ++first;
        uint32_t *tfs = must(malloc(((size_t)period + 1) * sizeof *tfs)),
                 *docids = must(malloc(((size_t)period + 1) * sizeof *docids));
        memcpy(docids, l->docids, first * sizeof *docids);
        memcpy(tfs, l->tfs, first * sizeof *tfs);
        if (!first) { /* none there: keep one posting */
            l->df = 1;
        } else {
            for (uint32_t base = 0; base < c->n_docs; base += period) {
                for (uint32_t i = 0; i < first && base + docids[i] < c->n_docs; ++i, ++n) {
                    l->docids[n] = base + docids[i];
                    l->tfs[n] = tfs[i];
                }
            }
            l->df = n;
        }
        free(tfs);
        free(docids);
    }
}

gen_collection *gen_open(uint64_t seed, gen_shape shape, uint32_t n_docs, uint32_t n_terms)
{
    gen_rng r = {seed};
    gen_collection *c = must(calloc(1, sizeof *c));
    uint8_t *marks = must(malloc(n_docs));
    *c = (gen_collection){.seed = seed, .shape = shape, .n_docs = n_docs, .n_terms = n_terms};
    c->lists = must(calloc(n_terms, sizeof *c->lists));
    c->doc_lens = must(calloc(n_docs, sizeof *c->doc_lens));
    for (uint32_t t = 0; t < n_terms; ++t)
        make_list(&c->lists[t], &r, c, t, marks);
    if (shape == GEN_TIES)
        repeat_documents(c, 1 + gen_below(&r, n_docs < 60 ? n_docs : 60));
    for (uint32_t t = 0; t < n_terms; ++t) {
        for (uint32_t i = 0; i < c->lists[t].df; ++i) {
            uint32_t *len = &c->doc_lens[c->lists[t].docids[i]];
            const uint32_t tf = c->lists[t].tfs[i];
            *len = tf < UINT32_MAX - *len ? *len + tf : UINT32_MAX;
        }
    }
    for (uint32_t d = 0; d < n_docs; ++d)
        c->n_tokens += c->doc_lens[d];
    free(marks);
    return c;
}

void gen_close(gen_collection *c)
{
    if (!c)
        return;
    for (uint32_t t = 0; t < c->n_terms; ++t) {
        free(c->lists[t].docids);
        free(c->lists[t].tfs);
    }
    free(c->lists);
    free(c->doc_lens);
    free(c);
}

void gen_term_name(uint32_t t, char *name)
{
    snprintf(name, 16, "t%07u", t);
}

static char *make_meta(gx_error *err)
{
    gx_analyzer *an;
    gx_analyzer_options opt = {.name = "whitespace"};
    char *meta = NULL;
    if (gx_analyzer_open(&an, &opt, err) != GX_OK)
        return NULL;
    char *json = gx_analyzer_json(an);
    if (json && asprintf(&meta, "{\"analyzer\": %s}", json) < 0)
        meta = NULL;
    free(json);
    gx_analyzer_close(an);
    return meta;
}

gx_status gen_write(const gen_collection *c, const char *path, const gx_codec *docids, const gx_codec *tfs,
                    gx_error *err)
{
    gx_writer *w = NULL;
    gx_writer_options opt = GX_WRITER_OPTIONS;
    char name[16], *meta = make_meta(err);
    gx_status st = meta ? GX_OK : GX_ENOMEM;
    opt.force = true;
    opt.docids = docids;
    opt.tfs = tfs;
    if (st == GX_OK)
        st = gx_writer_open(&w, path, &opt, err);
    for (uint32_t d = 0; d < c->n_docs && st == GX_OK; ++d) {
        const int len = snprintf(name, sizeof name, "d%u", d);
        st = gx_writer_add_document(w, &(gx_document){.id = name, .id_len = (size_t)len}, c->doc_lens[d], err);
    }
    for (uint32_t t = 0; t < c->n_terms && st == GX_OK; ++t) {
        const gen_list *l = &c->lists[t];
        if (l->df == 0)
            continue;
        gen_term_name(t, name);
        st = gx_writer_add_list(w, name, strlen(name), l->df, l->docids, l->tfs, err);
    }
    if (st == GX_OK)
        st = gx_writer_finish(w, meta, err);
    gx_writer_close(w);
    free(meta);
    return st;
}
