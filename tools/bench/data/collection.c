#include "tools/bench/data/collection.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codecs/decode.h"
#include "engine/parallel.h"
#include "engine/random.h"
#include "engine/status.h"

#define TOPICS 16
#define DOC_CHUNK (1u << 18)

/* ---- randomness ---- */

typedef struct rng {
    uint64_t state;
} rng;

static rng rng_from(uint64_t x)
{
    return (rng){x * 0x9e3779b97f4a7c15u + 0x1234567};
}

static double uniform(rng *r)
{
    return ((double)(gx_random_next(&r->state) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(rng *r)
{
    const double radius = sqrt(-2 * log(uniform(r)));
    return radius * cos(6.283185307179586 * uniform(r));
}

/* ---- the collection as it is made ---- */

typedef struct term {
    uint32_t df, topic;
    uint32_t *words; /* payload: docid blocks, then tf blocks */
    uint32_t *heads, *docid_ends, *tf_ends;
    uint32_t n_blocks, n_words;
    uint8_t docid_param, tf_param;
} term;

typedef struct generator {
    gx_synth_options opt;
    uint32_t *doc_lens;
    uint64_t *chunk_tokens;
    uint32_t n_sites;
    uint32_t *sites;      /* [n_sites + 1] first documents */
    uint8_t *site_topics; /* [n_sites] */
    term *terms;
    atomic_bool no_memory;
    gx_synth *s;
} generator;

static void make_lengths(void *arg, uint32_t chunk)
{
    generator *m = arg;
    rng r = rng_from(m->opt.seed * 1000003 + chunk);
    uint64_t sum = 0;
    const uint32_t begin = chunk * DOC_CHUNK;
    const uint32_t end = m->opt.n_docs - begin < DOC_CHUNK ? m->opt.n_docs : begin + DOC_CHUNK;
    for (uint32_t d = begin; d < end; ++d) {
        const double x = exp(6.43 + 0.88 * normal(&r));
        m->doc_lens[d] = (uint32_t)fmin(30000, fmax(50, x));
        sum += m->doc_lens[d];
    }
    m->chunk_tokens[chunk] = sum;
}

/* Sites, their topics, and the terms' lengths and topics; the rest of r makes the queries. */
static bool make_sites(generator *m, rng *r)
{
    uint32_t capacity = 0;
    for (uint32_t d = 0; d < m->opt.n_docs; d += 20 + (uint32_t)(-600 * log(uniform(r)))) {
        if (m->n_sites + 1 >= capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            uint32_t *sites = realloc(m->sites, (capacity + 1ull) * sizeof *sites);
            if (sites)
                m->sites = sites;
            uint8_t *topics = realloc(m->site_topics, capacity);
            if (topics)
                m->site_topics = topics;
            if (!sites || !topics)
                return false;
        }
        m->sites[m->n_sites] = d;
        const double u = uniform(r);
        m->site_topics[m->n_sites++] = (uint8_t)(u * uniform(r) * TOPICS);
    }
    m->sites[m->n_sites] = m->opt.n_docs;
    for (uint32_t i = 0; i < m->opt.n_terms; ++i) {
        const double u = (i + uniform(r)) / m->opt.n_terms;
        const double df = 2000 * pow(4000.0, pow(u, 0.73)) * m->opt.density * m->opt.n_docs / 25205179;
        m->terms[i].df = df < 1 ? 1 : df < m->opt.n_docs ? (uint32_t)df : m->opt.n_docs;
        const double v = uniform(r);
        m->terms[i].topic = (uint32_t)(v * uniform(r) * TOPICS);
    }
    return true;
}

/* A term's postings: docids and tfs, as many as came of it. */
typedef struct postings {
    uint32_t n, capacity;
    uint32_t *docids, *tfs;
} postings;

static bool add_posting(postings *p, uint32_t docid, uint32_t tf)
{
    if (p->n == p->capacity) {
        p->capacity += p->capacity / 4 + 64;
        uint32_t *docids = realloc(p->docids, p->capacity * sizeof *docids);
        if (docids)
            p->docids = docids;
        uint32_t *tfs = realloc(p->tfs, p->capacity * sizeof *tfs);
        if (tfs)
            p->tfs = tfs;
        if (!docids || !tfs)
            return false;
    }
    p->docids[p->n] = docid;
    p->tfs[p->n++] = tf;
    return true;
}

static uint32_t random_tf(uint64_t x)
{
    uint32_t tf = 1 + (uint32_t)__builtin_ctz((uint32_t)x | 0x10000);
    if ((x >> 32 & 7) == 0)
        tf += (uint32_t)(-8.0 * log(((double)(x >> 35) + 1) / 536870913.0));
    return tf < 255 ? tf : 255;
}

/* Postings by exponential steps of hazard, a site having one density. */
static bool make_postings(const generator *m, const term *t, uint64_t seed, postings *p)
{
    rng r = rng_from(seed), z = rng_from(seed ^ 0x777);
    float factors[256], *density = malloc((m->n_sites + 1ull) * sizeof *density);
    double sum = 0;
    if (!density)
        return false;
    for (int i = 0; i < 256; ++i)
        factors[i] = (float)exp(0.8 * normal(&z));
    for (uint32_t s = 0; s < m->n_sites; ++s) {
        density[s] = factors[gx_random_next(&r.state) >> 56] * (m->site_topics[s] == t->topic ? 4.0f : 1.0f);
        sum += (double)density[s] * (m->sites[s + 1] - m->sites[s]);
    }
    const double norm = t->df / sum;
    double left = -log(uniform(&r));
    bool ok = true;
    for (uint32_t s = 0; s < m->n_sites && ok; ++s) {
        const double hazard = -log(1 - fmin(0.9, density[s] * norm)), inverse = 1 / hazard;
        uint32_t d = m->sites[s];
        const uint32_t end = m->sites[s + 1];
        while (d < end && ok) {
            const double step = left * inverse;
            if (step >= (double)(end - d)) {
                left -= (end - d) * hazard;
                break;
            }
            d += (uint32_t)step;
            ok = add_posting(p, d, random_tf(gx_random_next(&r.state)));
            left = -log(uniform(&r));
            ++d;
        }
    }
    free(density);
    return ok;
}

/* Encode coded[n] in blocks behind the term's words; ends[n_blocks]. Returns the list's parameter. */
static uint8_t encode_blocks(const gx_codec *c, term *t, const uint32_t *coded, uint32_t n, uint32_t *ends)
{
    const uint8_t param = c->param ? c->param(coded, n) : 0;
    for (uint32_t j = 0; j < t->n_blocks; ++j) {
        const uint32_t first = j * c->block_len;
        t->n_words +=
            c->encode(coded + first, n - first < c->block_len ? n - first : c->block_len, param, t->words + t->n_words);
        ends[j] = t->n_words;
    }
    return param;
}

static bool encode(const generator *m, term *t, const postings *p)
{
    const gx_codec *c = m->opt.codec;
    const uint32_t len = c->block_len;
    t->df = p->n;
    t->n_blocks = (p->n + len - 1) / len;
    const size_t capacity = 2 * (size_t)t->n_blocks * c->max_words(len);
    uint32_t *coded = malloc(p->n * sizeof *coded);
    t->words = malloc(capacity * sizeof *t->words);
    t->heads = malloc(3 * (size_t)t->n_blocks * sizeof *t->heads);
    if (!coded || !t->words || !t->heads) {
        free(coded);
        return false;
    }
    t->docid_ends = t->heads + t->n_blocks;
    t->tf_ends = t->docid_ends + t->n_blocks;
    gx_docids_to_gaps(p->docids, p->n, len, coded, t->heads);
    t->docid_param = encode_blocks(c, t, coded, p->n, t->docid_ends);
    for (uint32_t i = 0; i < p->n; ++i)
        coded[i] = p->tfs[i] - 1;
    t->tf_param = encode_blocks(c, t, coded, p->n, t->tf_ends);
    free(coded);
    uint32_t *fit = realloc(t->words, (t->n_words + 1ull) * sizeof *fit);
    t->words = fit ? fit : t->words;
    return true;
}

static void make_term(void *arg, uint32_t i)
{
    generator *m = arg;
    const uint32_t number = m->opt.n_terms - 1 - i; /* the longest first */
    term *t = &m->terms[number];
    postings p = {0};
    bool ok = !m->no_memory && make_postings(m, t, m->opt.seed * 7919 + number, &p);
    if (ok && p.n == 0)
        ok = add_posting(&p, number % m->opt.n_docs, 1);
    if (!ok || !encode(m, t, &p))
        m->no_memory = true;
    free(p.docids);
    free(p.tfs);
}

/* ---- queries ---- */

static bool make_queries(generator *m, rng *r, gx_synth *s)
{
    uint32_t *by_topic = malloc((size_t)TOPICS * m->opt.n_terms * sizeof *by_topic), counts[TOPICS] = {0};
    s->queries = calloc(m->opt.n_queries + 1ull, sizeof *s->queries);
    if (!by_topic || !s->queries) {
        free(by_topic);
        return false;
    }
    for (uint32_t i = 0; i < m->opt.n_terms; ++i) {
        const uint32_t z = m->terms[i].topic;
        by_topic[(size_t)z * m->opt.n_terms + counts[z]++] = i;
    }
    for (uint32_t q = 0; q < m->opt.n_queries; ++q) {
        gx_synth_query *Q = &s->queries[q];
        const double u = uniform(r);
        const uint32_t n = u < .35 ? 2 : u < .60 ? 3 : u < .82 ? 4 : 5;
        bool same = uniform(r) < 0.5;
        const double v = uniform(r);
        const uint32_t z = (uint32_t)(v * uniform(r) * TOPICS);
        same = same && counts[z] >= 12;
        for (Q->n = 0; Q->n < n;) {
            const uint32_t t = same ? by_topic[(size_t)z * m->opt.n_terms + (uint32_t)(uniform(r) * counts[z])]
                                    : (uint32_t)(uniform(r) * m->opt.n_terms);
            uint32_t i = 0;
            while (i < Q->n && Q->terms[i] != t)
                ++i;
            if (i == Q->n)
                Q->terms[Q->n++] = t;
        }
        for (uint32_t i = 1; i < n; ++i) { /* by rising df */
            const uint32_t t = Q->terms[i];
            uint32_t j = i;
            for (; j && m->terms[Q->terms[j - 1]].df > m->terms[t].df; --j)
                Q->terms[j] = Q->terms[j - 1];
            Q->terms[j] = t;
        }
    }
    s->n_queries = m->opt.n_queries;
    free(by_topic);
    return true;
}

/* ---- all of it in one piece of memory, as in a file ---- */

static uint64_t aligned(uint64_t x)
{
    return (x + GX_ALIGN - 1) & ~(uint64_t)(GX_ALIGN - 1);
}

static void copy_term(void *arg, uint32_t i)
{
    generator *m = arg;
    gx_index *ix = &m->s->ix;
    const term *t = &m->terms[i];
    const gx_list_entry *e = &ix->lists[i];
    const size_t at = e->first_block, bytes = t->n_blocks * sizeof(uint32_t);
    memcpy((uint32_t *)ix->heads + at, t->heads, bytes);
    memcpy((uint32_t *)ix->docid_ends + at, t->docid_ends, bytes);
    memcpy((uint32_t *)ix->tf_ends + at, t->tf_ends, bytes);
    memcpy((uint32_t *)ix->payload + ((uint64_t)e->payload_hi << 32 | e->payload_lo), t->words,
           t->n_words * sizeof(uint32_t));
}

static bool assemble_index(generator *m, uint32_t threads)
{
    gx_synth *s = m->s;
    gx_index *ix = &s->ix;
    const uint32_t n_docs = m->opt.n_docs, n_terms = m->opt.n_terms;
    uint64_t words = 0;
    for (uint32_t i = 0; i < n_terms; ++i) {
        ix->n_blocks += m->terms[i].n_blocks;
        ix->n_postings += m->terms[i].df;
        words += m->terms[i].n_words;
    }
    uint64_t at[8], n = 0;
    const uint64_t bytes[] = {sizeof(gx_header), n_terms * sizeof(gx_list_entry), ix->n_blocks * 4, ix->n_blocks * 4,
                              ix->n_blocks * 4,  words * 4 + GX_READ_SLACK,       n_docs * 4ull};
    for (int i = 0; i < 7; ++i) {
        at[i] = n;
        n = aligned(n + bytes[i]);
    }
    uint8_t *memory = aligned_alloc(4096, (n + 4095) & ~(uint64_t)4095);
    if (!memory)
        return false;
    s->memory = memory;
    memset(memory, 0, at[1]);
    gx_header *h = (gx_header *)memory;
    h->block_len = ix->block_len = m->opt.codec->block_len;
    h->n_docs = ix->n_docs = n_docs;
    h->n_terms = ix->n_terms = n_terms;
    h->n_postings = ix->n_postings;
    h->n_blocks = ix->n_blocks;
    h->device_offset = at[1];
    h->device_bytes = n - at[1];
    h->file_bytes = ix->file_bytes = n;
    h->codings[0] = (gx_coding){m->opt.codec->id, m->opt.codec->id};
    ix->file = memory;
    ix->header = h;
    ix->lists = (const gx_list_entry *)(memory + at[1]);
    ix->heads = (const uint32_t *)(memory + at[2]);
    ix->docid_ends = (const uint32_t *)(memory + at[3]);
    ix->tf_ends = (const uint32_t *)(memory + at[4]);
    ix->payload = (const uint32_t *)(memory + at[5]);
    ix->payload_words = words;
    ix->doc_lens = (const uint32_t *)(memory + at[6]);
    memcpy(memory + at[6], m->doc_lens, bytes[6]);
    memset(memory + at[5] + words * 4, 0, GX_READ_SLACK);
    uint64_t block = 0, word = 0;
    for (uint32_t i = 0; i < n_terms; ++i) {
        ((gx_list_entry *)(memory + at[1]))[i] =
            (gx_list_entry){m->terms[i].df,          (uint32_t)block,     (uint32_t)word, (uint8_t)(word >> 32), 0,
                            m->terms[i].docid_param, m->terms[i].tf_param};
        block += m->terms[i].n_blocks;
        word += m->terms[i].n_words;
    }
    gx_parallel_for(threads, n_terms, copy_term, m);
    ix->min_doc_len = UINT32_MAX;
    for (uint32_t d = 0; d < n_docs; ++d) {
        ix->min_doc_len = m->doc_lens[d] < ix->min_doc_len ? m->doc_lens[d] : ix->min_doc_len;
        ix->max_doc_len = m->doc_lens[d] > ix->max_doc_len ? m->doc_lens[d] : ix->max_doc_len;
    }
    h->n_tokens = ix->n_tokens;
    ix->avgdl = (double)ix->n_tokens / n_docs;
    ix->impact_unit = 1;
    return true;
}

/* The lengths of all documents. */
static bool make_doc_lens(generator *m, uint32_t threads)
{
    const uint32_t n_chunks = (m->opt.n_docs - 1) / DOC_CHUNK + 1;
    m->doc_lens = malloc(m->opt.n_docs * sizeof *m->doc_lens);
    m->chunk_tokens = calloc(n_chunks, sizeof *m->chunk_tokens);
    m->terms = calloc(m->opt.n_terms, sizeof *m->terms);
    if (!m->s || !m->doc_lens || !m->chunk_tokens || !m->terms)
        return false;
    gx_parallel_for(threads, n_chunks, make_lengths, m);
    for (uint32_t i = 0; i < n_chunks; ++i)
        m->s->ix.n_tokens += m->chunk_tokens[i];
    return true;
}

/* Free what the generator took, and give what was made if all went well. */
static gx_status finish_collection(generator *m, bool ok, gx_synth **out, gx_error *err)
{
    for (uint32_t i = 0; m->terms && i < m->opt.n_terms; ++i) {
        free(m->terms[i].words);
        free(m->terms[i].heads);
    }
    free(m->terms);
    free(m->doc_lens);
    free(m->chunk_tokens);
    free(m->sites);
    free(m->site_topics);
    if (!ok) {
        gx_synth_close(m->s);
        return gx_fail(err, GX_ENOMEM, "no memory for a collection of %u documents and %u terms", m->opt.n_docs,
                       m->opt.n_terms);
    }
    *out = m->s;
    return GX_OK;
}

static uint32_t thread_count(const gx_synth_options *opt)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return opt->threads ? opt->threads : cores > 0 ? (uint32_t)cores : 1;
}

gx_status gx_synth_open(gx_synth **out, const gx_synth_options *opt, gx_error *err)
{
    *out = NULL;
    if (opt->n_docs < 1000 || opt->n_terms < 64 || !(opt->density > 0) || !opt->codec)
        return gx_fail(err, GX_EUSAGE,
                       "a generated collection needs at least 1,000 documents, 64 terms, a density above 0 and a "
                       "codec");
    const uint32_t threads = thread_count(opt);
    generator m = {.opt = *opt, .s = calloc(1, sizeof *m.s)};
    rng r = rng_from(opt->seed + 99);
    const bool ok = make_doc_lens(&m, threads) && make_sites(&m, &r);
    if (ok)
        gx_parallel_for(threads, opt->n_terms, make_term, &m);
    return finish_collection(&m, ok && !m.no_memory && make_queries(&m, &r, m.s) && assemble_index(&m, threads), out,
                             err);
}

/* What the threads that encode given lists share. */
typedef struct given_lists {
    generator *m;
    const gx_synth_lists *lists;
} given_lists;

static void encode_given(void *arg, uint32_t i)
{
    const given_lists *g = arg;
    const uint32_t n = g->lists->dfs[i];
    postings p = {.n = n, .docids = malloc(n * sizeof *p.docids), .tfs = malloc(n * sizeof *p.tfs)};
    bool ok = p.docids && p.tfs;
    for (uint32_t j = 0; j < n && ok; ++j) {
        p.docids[j] = g->lists->docids[i][j];
        p.tfs[j] = g->lists->tfs ? g->lists->tfs[i][j] : 1;
    }
    if (!ok || !encode(g->m, &g->m->terms[i], &p))
        g->m->no_memory = true;
    free(p.docids);
    free(p.tfs);
}

/* The given lengths of documents in the place of those that were drawn. */
static void take_doc_lens(generator *m, const uint32_t *doc_lens)
{
    gx_index *ix = &m->s->ix;
    ix->n_tokens = 0;
    for (uint32_t d = 0; d < m->opt.n_docs; ++d)
        ix->n_tokens += m->doc_lens[d] = doc_lens[d];
}

gx_status gx_synth_open_lists(gx_synth **out, const gx_synth_options *opt, const gx_synth_lists *lists, gx_error *err)
{
    *out = NULL;
    if (opt->n_docs == 0 || opt->n_terms == 0 || !opt->codec)
        return gx_fail(err, GX_EUSAGE, "an index of given lists needs documents, lists and a codec");
    const uint32_t threads = thread_count(opt);
    generator m = {.opt = *opt, .s = calloc(1, sizeof *m.s)};
    given_lists g = {&m, lists};
    const bool ok = make_doc_lens(&m, threads);
    if (ok && lists->doc_lens)
        take_doc_lens(&m, lists->doc_lens);
    if (ok)
        gx_parallel_for(threads, opt->n_terms, encode_given, &g);
    return finish_collection(&m, ok && !m.no_memory && assemble_index(&m, threads), out, err);
}

void gx_synth_close(gx_synth *s)
{
    if (!s)
        return;
    gx_max_tfs_close(s->ix.max_tfs);
    free(s->queries);
    free(s->memory);
    free(s);
}
