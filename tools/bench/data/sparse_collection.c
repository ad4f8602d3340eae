#include "tools/bench/data/sparse_collection.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/parallel.h"
#include "engine/status.h"

#define CHUNKS 256u /* of documents, each drawn by one thread */
#define LARGEST 3.2 /* no weight of a document is above */
#define LEVELS 255

/* A chunk's vectors, one after the other. */
typedef struct chunk {
    uint32_t begin, end; /* its documents */
    uint8_t *lengths;    /* [end - begin] */
    uint16_t *terms;
    uint8_t *impacts;
    uint32_t *counts; /* [terms] then where its postings of each list begin */
} chunk;

typedef struct maker {
    const gx_sparse_options *opt;
    uint64_t *order; /* [n_docs] place << 32 | number of the vector */
    chunk chunks[CHUNKS];
    uint32_t *dfs;
    uint32_t **docids;
    uint16_t **tfs;
    atomic_bool no_memory;
} maker;

_Static_assert(GX_SPARSE_N_TERMS <= UINT16_MAX && GX_SPARSE_MAX_VECTOR < 512, "terms and lengths fit");

static int by_place(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void find_places(void *arg, uint32_t i)
{
    maker *m = arg;
    gx_sparse_vectors *g = gx_sparse_vectors_open(m->opt->shape, m->opt->seed);
    if (!g)
        m->no_memory = true;
    for (uint32_t d = m->chunks[i].begin; g && d < m->chunks[i].end; ++d)
        m->order[d] = (m->opt->by_place ? (uint64_t)gx_sparse_place(g, d) << 32 : 0) | d;
    gx_sparse_vectors_close(g);
}

/* Draw a chunk's vectors and count the terms. */
static void draw_chunk(void *arg, uint32_t i)
{
    maker *m = arg;
    chunk *c = &m->chunks[i];
    const size_t n = c->end - c->begin;
    gx_sparse_vector v;
    gx_sparse_vectors *g = gx_sparse_vectors_open(m->opt->shape, m->opt->seed);
    size_t room = 0, at = 0;
    c->lengths = malloc(2 * n + 1);
    c->counts = calloc(GX_SPARSE_N_TERMS, sizeof *c->counts);
    bool ok = g && c->lengths && c->counts;
    for (size_t d = 0; d < n && ok; ++d) {
        gx_sparse_document(g, (uint32_t)m->order[c->begin + d], &v);
        if (at + v.n > room) {
            room = (room + GX_SPARSE_MAX_VECTOR) * 3 / 2;
            uint16_t *terms = realloc(c->terms, room * sizeof *terms);
            c->terms = terms ? terms : c->terms;
            uint8_t *impacts = realloc(c->impacts, room);
            c->impacts = impacts ? impacts : c->impacts;
            ok = terms && impacts;
        }
        c->lengths[2 * d] = (uint8_t)v.n;
        c->lengths[2 * d + 1] = (uint8_t)(v.n >> 8);
        for (uint32_t t = 0; t < v.n && ok; ++t, ++at) {
            const long impact = lrint(v.weights[t] / LARGEST * LEVELS);
            c->terms[at] = (uint16_t)v.terms[t];
            c->impacts[at] = (uint8_t)(impact < 1 ? 1 : impact > LEVELS ? LEVELS : impact);
            ++c->counts[v.terms[t]];
        }
    }
    if (!ok)
        m->no_memory = true;
    gx_sparse_vectors_close(g);
}

/* Memory for the lists; counts become where each chunk writes. */
static bool begin_lists(maker *m)
{
    m->dfs = calloc(GX_SPARSE_N_TERMS, sizeof *m->dfs);
    m->docids = calloc(GX_SPARSE_N_TERMS, sizeof *m->docids);
    m->tfs = calloc(GX_SPARSE_N_TERMS, sizeof *m->tfs);
    if (!m->dfs || !m->docids || !m->tfs)
        return false;
    for (uint32_t t = 0; t < GX_SPARSE_N_TERMS; ++t) {
        for (uint32_t i = 0; i < CHUNKS; ++i) {
            const uint32_t count = m->chunks[i].counts[t];
            m->chunks[i].counts[t] = m->dfs[t];
            m->dfs[t] += count;
        }
        const uint32_t room = m->dfs[t] ? m->dfs[t] : 1;
        m->docids[t] = calloc(room, sizeof **m->docids);
        m->tfs[t] = calloc(room, sizeof **m->tfs);
        if (!m->docids[t] || !m->tfs[t])
            return false;
        if (m->dfs[t] == 0) {
            m->dfs[t] = m->tfs[t][0] = 1;
            m->docids[t][0] = t % m->opt->n_docs;
        }
    }
    return true;
}

static void fill_lists(void *arg, uint32_t i)
{
    maker *m = arg;
    const chunk *c = &m->chunks[i];
    size_t at = 0;
    for (uint32_t d = c->begin; d < c->end; ++d) {
        const uint8_t *length = c->lengths + 2 * (size_t)(d - c->begin);
        for (uint32_t n = length[0] | (uint32_t)length[1] << 8; n--; ++at) {
            const uint32_t t = c->terms[at], place = c->counts[t]++;
            m->docids[t][place] = d;
            m->tfs[t][place] = c->impacts[at];
        }
    }
}

static void free_maker(maker *m)
{
    for (uint32_t i = 0; i < CHUNKS; ++i) {
        free(m->chunks[i].lengths);
        free(m->chunks[i].terms);
        free(m->chunks[i].impacts);
        free(m->chunks[i].counts);
    }
    for (uint32_t t = 0; t < GX_SPARSE_N_TERMS; ++t) {
        free(m->docids ? m->docids[t] : NULL);
        free(m->tfs ? m->tfs[t] : NULL);
    }
    free(m->order);
    free(m->dfs);
    free(m->docids);
    free(m->tfs);
    free(m);
}

static bool make_lists(maker *m, uint32_t threads)
{
    const uint32_t n = m->opt->n_docs;
    m->order = malloc(n * sizeof *m->order);
    if (!m->order)
        return false;
    for (uint32_t i = 0; i < CHUNKS; ++i) {
        m->chunks[i].begin = (uint32_t)((uint64_t)n * i / CHUNKS);
        m->chunks[i].end = (uint32_t)((uint64_t)n * (i + 1) / CHUNKS);
    }
    gx_parallel_for(threads, CHUNKS, find_places, m);
    if (m->opt->by_place)
        qsort(m->order, n, sizeof *m->order, by_place);
    gx_parallel_for(threads, CHUNKS, draw_chunk, m);
    if (m->no_memory || !begin_lists(m))
        return false;
    gx_parallel_for(threads, CHUNKS, fill_lists, m);
    return true;
}

gx_status gx_sparse_collection_open(gx_synth **out, const gx_sparse_options *opt, gx_error *err)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t threads = opt->threads ? opt->threads : cores > 0 ? (uint32_t)cores : 1;
    maker *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m)
        return gx_fail(err, GX_ENOMEM, "no memory for generated vectors");
    m->opt = opt;
    gx_status st = opt->n_docs ? GX_OK : gx_fail(err, GX_EUSAGE, "generated vectors need a document");
    if (st == GX_OK && !make_lists(m, threads))
        st = gx_fail(err, GX_ENOMEM, "no memory for the lists of %u vectors", opt->n_docs);
    if (st == GX_OK) {
        const gx_synth_options so = {.n_docs = opt->n_docs,
                                     .n_terms = GX_SPARSE_N_TERMS,
                                     .seed = opt->seed,
                                     .codec = opt->codec,
                                     .threads = threads};
        const gx_synth_lists lists = {(const uint32_t *const *)m->docids, m->dfs, (const uint16_t *const *)m->tfs,
                                      NULL};
        st = gx_synth_open_lists(out, &so, &lists, err);
    }
    if (st == GX_OK) {
        gx_index *ix = &(*out)->ix;
        ix->impacts = true;
        ix->impact_unit = LARGEST / LEVELS;
        if (!gx_max_tfs_open(&ix->max_tfs, ix->n_terms)) {
            gx_synth_close(*out);
            *out = NULL;
            st = gx_fail(err, GX_ENOMEM, "no memory for the greatest impacts of %u lists", GX_SPARSE_N_TERMS);
        }
    }
    free_maker(m);
    return st;
}

uint32_t gx_sparse_collection_query(gx_sparse_vectors *g, uint64_t number, uint32_t *terms, uint32_t *weights)
{
    gx_sparse_vector v;
    gx_sparse_query(g, number, &v);
    for (uint32_t i = 0; i < v.n; ++i) {
        const long weight = lrint(v.weights[i] * 100);
        terms[i] = v.terms[i];
        weights[i] = weight < 1 ? 1 : (uint32_t)weight;
    }
    return v.n;
}
