#include "tests/support/wide_world.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "engine/random.h"

uint32_t world_below(world *w, uint32_t n)
{
    return (uint32_t)((gx_random_next(&w->random) >> 32) * n >> 32);
}

uint64_t world_number(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

void world_check(const world *w, gx_status st, const gx_error *err)
{
    if (st != GX_OK)
        fail_msg("seed %" PRIu64 ": %s", w->seed, err->text);
}

/* ---- making it ---- */

/* Few different documents, so that many have equal scores. */
static void draw_docs(world *w)
{
    w->n_parts = 2 + world_below(w, WORLD_PARTS - 1);
    w->n = w->n_parts * 20 + world_below(w, WORLD_DOCS - WORLD_PARTS * 20);
    for (uint32_t i = 0; i < w->n; ++i) {
        world_doc *d = &w->docs[i];
        *d = (world_doc){.number = i, .live = true, .year = world_below(w, 4) ? 1990 + world_below(w, 20) : 0};
        for (uint32_t t = 0; t < WORLD_WORDS; ++t) {
            d->tfs[t] = world_below(w, 2 + t * t) == 0 ? (uint8_t)(1 + world_below(w, 2)) : 0;
            d->length += d->tfs[t];
        }
    }
    for (uint32_t p = 0; p <= w->n_parts; ++p)
        w->first[p] = (uint32_t)((uint64_t)w->n * p / w->n_parts);
}

static void add_doc(const world *w, gx_builder *b, const world_doc *d)
{
    char id[16], text[WORLD_WORDS * 2 * 4 + 1], year[16], *p = text;
    gx_error err = {0};
    for (uint32_t t = 0; t < WORLD_WORDS; ++t)
        for (uint32_t i = 0; i < d->tfs[t]; ++i)
            p += sprintf(p, "w%u ", t);
    *p = 0;
    const gx_attribute_value value = {0, year, (size_t)sprintf(year, "%u", d->year)};
    const gx_document doc = {.size = sizeof doc,
                             .id = id,
                             .id_len = (size_t)sprintf(id, "d%u", d->number),
                             .text = text,
                             .text_len = strlen(text),
                             .values = &value,
                             .n_values = d->year != 0};
    world_check(w, gx_builder_add(b, &doc, &err), &err);
}

static void make_part(const world *w, const char *path, uint32_t part)
{
    static const gx_attribute year = {"year", GX_ATTRIBUTE_INT};
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_builder *b;
    gx_error err = {0};
    o.path = path;
    o.analyzer = "whitespace";
    o.store_text = true;
    o.attributes = &year;
    o.n_attributes = 1;
    world_check(w, gx_builder_open(&b, &o, &err), &err);
    for (uint32_t i = w->first[part]; i < w->first[part + 1]; ++i)
        add_doc(w, b, &w->docs[i]);
    world_check(w, gx_builder_finish(b, &err), &err);
    gx_builder_abort(b);
}

static void delete_some(world *w, const char *collection)
{
    gx_collection *c;
    gx_error err = {0};
    bool found;
    world_check(w, gx_collection_open(&c, collection, NULL, &err), &err);
    for (uint32_t i = 0; i < w->n; ++i) {
        char id[16];
        if (world_below(w, 6))
            continue;
        world_check(w, gx_collection_delete(c, id, (size_t)sprintf(id, "d%u", i), &found, &err), &err);
        assert_true(found);
        w->docs[i].live = false;
    }
    world_check(w, gx_collection_commit(c, &err), &err);
    gx_collection_close(c);
}

/* NULL: none. */
static void put_gaps(world *w, const uint64_t *gaps)
{
    gx_parts *parts = w->ix->parts;
    assert_int_equal(parts->n, w->n_parts);
    w->n_docs = w->n_tokens = 0;
    for (uint32_t p = 0; p < w->n_parts; ++p) {
        w->gaps[p] = gaps ? gaps[p] : 0;
        w->n_docs += w->gaps[p];
        w->n_tokens += w->gaps[p] * WORLD_GAP_LENGTH;
        parts->parts[p].base = w->n_docs;
        for (uint32_t i = w->first[p]; i < w->first[p + 1]; ++i) {
            world_doc *d = &w->docs[i];
            d->docid = w->n_docs;
            w->n_docs += d->live;
            w->n_tokens += d->live ? d->length : 0;
        }
    }
    w->ix->n_docs = w->n_docs < UINT32_MAX ? (uint32_t)w->n_docs : UINT32_MAX;
    w->ix->n_docs_beyond = w->n_docs - w->ix->n_docs;
    w->ix->n_tokens = w->n_tokens;
    w->ix->avgdl = (double)w->n_tokens / (double)w->n_docs;
}

void world_open(world *w, const char *dir, uint64_t seed)
{
    char paths[WORLD_PARTS][80], collection[80];
    const char *names[WORLD_PARTS];
    gx_error err = {0};
    *w = (world){.seed = seed, .random = seed};
    snprintf(w->dir, sizeof w->dir, "%s", dir);
    snprintf(collection, sizeof collection, "%s/wide", dir);
    draw_docs(w);
    for (uint32_t p = 0; p < w->n_parts; ++p) {
        snprintf(paths[p], sizeof paths[p], "%s/%u.gx", dir, p);
        make_part(w, names[p] = paths[p], p);
    }
    world_check(w, gx_collect(collection, names, w->n_parts, &err), &err);
    for (uint32_t p = 0; p < w->n_parts; ++p)
        unlink(paths[p]);
    if (world_below(w, 3))
        delete_some(w, collection);
    world_check(w, gx_index_open(&w->ix, collection, NULL, &err), &err);
    put_gaps(w, NULL);
}

void world_place_at(world *w, int where)
{
    const uint64_t border = UINT64_C(1) << 32;
    const gx_part *parts = w->ix->parts->parts;
    uint64_t gaps[WORLD_PARTS] = {0};
    put_gaps(w, NULL);
    const uint64_t n_live = w->n_docs, last = parts[w->n_parts - 1].base;
    switch (where) {
    case WORLD_BORDER_IN_A_PART:
        gaps[1] = border - parts[1].base - parts[1].n_live / 2;
        break;
    case WORLD_BORDER_BETWEEN_PARTS:
        gaps[w->n_parts - 1] = border - last;
        break;
    case WORLD_FAR:
        gaps[1] = 5 * border + 77;
        gaps[w->n_parts - 1] += border << 8;
        break;
    case WORLD_JUST_WIDE:
        gaps[1] = UINT32_MAX - n_live;
        break;
    case WORLD_JUST_NARROW:
        gaps[1] = UINT32_MAX - 1 - n_live;
        break;
    default:
        gaps[0] = 2 * border - n_live / 2;
    }
    put_gaps(w, gaps);
    assert_true(gx_index_is_wide(w->ix) == (where != WORLD_JUST_NARROW));
}

void world_close(world *w)
{
    char command[128];
    gx_index_close(w->ix);
    snprintf(command, sizeof command, "rm -r '%s/wide'", w->dir);
    assert_int_equal(system(command), 0);
}

/* ---- queries ---- */

void world_draw_query(world *w, world_query *q)
{
    static const uint32_t ks[] = {1, 2, 5, 10, 40, 1000};
    *q = (world_query){.n = 1 + world_below(w, 4), .op = (gx_op)world_below(w, 3), .k = ks[world_below(w, 6)]};
    q->preset = world_below(w, 3) ? GX_BM25 : GX_BM25_ATIRE;
    for (uint32_t i = 0; i < q->n; ++i) { /* words that differ; the last one is not in the collection */
        bool again = true;
        while (again) {
            q->words[i] = world_below(w, 12) ? world_below(w, WORLD_WORDS) : WORLD_WORDS;
            again = false;
            for (uint32_t j = 0; j < i; ++j)
                again = again || q->words[j] == q->words[i];
        }
    }
}

gx_query_options world_options(const world_query *q)
{
    gx_query_options o = GX_QUERY_OPTIONS;
    o.op = q->op;
    o.k = q->k;
    o.preset = q->preset;
    return o;
}

/* ---- the judge ---- */

static double weight_of(const world *w, gx_preset preset, uint64_t df)
{
    const double n = (double)w->n_docs, d = (double)df;
    return preset == GX_BM25_ATIRE ? log(n / d) * (.9f + 1.) : log(1 + (n - d + .5) / (d + .5));
}

static uint64_t df_of(const world *w, uint32_t word)
{
    uint64_t df = 0;
    for (uint32_t i = 0; word < WORLD_WORDS && i < w->n; ++i)
        df += w->docs[i].live && w->docs[i].tfs[word];
    return df;
}

static uint32_t score_of(const world *w, const world_query *q, const float *scaled, const world_doc *d, uint32_t *held)
{
    const double k1 = .9f, b = .4f, avgdl = (double)w->n_tokens / (double)w->n_docs;
    const float c0 = (float)(k1 * (1 - b)), c1 = (float)(k1 * b / avgdl);
    uint32_t sum = 0;
    *held = 0;
    for (uint32_t i = 0; i < q->n; ++i) {
        const float tf = q->words[i] < WORLD_WORDS ? d->tfs[q->words[i]] : 0;
        const float part = c1 * (float)d->length, K = c0 + part, up = scaled[i] * tf, down = tf + K;
        const double rounded = nearbyint(up / down);
        if (tf > 0) {
            sum += rounded < 1 ? 1 : (uint32_t)rounded;
            ++*held;
        }
    }
    return sum;
}

static int by_rank(const void *a, const void *b)
{
    const world_hit *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->docid < y->docid ? -1 : x->docid > y->docid;
}

static void collect(const world *w, const world_query *q, const float *scaled, uint32_t least, world_answer *out)
{
    out->n_matches = 0;
    for (uint32_t i = 0; i < w->n; ++i) {
        const world_doc *d = &w->docs[i];
        uint32_t held;
        const uint32_t score = score_of(w, q, scaled, d, &held);
        if (d->live && held >= least && (!q->most_year || (d->year >= q->least_year && d->year <= q->most_year)))
            out->hits[out->n_matches++] = (world_hit){d->docid, score, d};
    }
    qsort(out->hits, out->n_matches, sizeof *out->hits, by_rank);
    out->n = out->n_matches < q->k ? (uint32_t)out->n_matches : q->k;
}

void world_judge(const world *w, const world_query *q, world_answer *out)
{
    double weights[WORLD_WORDS], total = 0;
    float scaled[WORLD_WORDS];
    for (uint32_t i = 0; i < q->n; ++i) {
        const uint64_t df = df_of(w, q->words[i]);
        weights[i] = df ? weight_of(w, q->preset, df) : 0;
        total += weights[i];
    }
    out->exponent = 30;
    if (total > 0) {
        while (ldexp(total, out->exponent) > 0x1p30)
            --out->exponent;
        while (ldexp(total, out->exponent + 1) <= 0x1p30)
            ++out->exponent;
    }
    for (uint32_t i = 0; i < q->n; ++i)
        scaled[i] = (float)ldexp(weights[i], out->exponent);
    collect(w, q, scaled, q->op == GX_OP_OR ? 1 : q->n, out);
    if (q->op == GX_OP_AND_OR && out->n_matches < q->k)
        collect(w, q, scaled, 1, out);
}

const char *world_text(const world_query *q, char text[64])
{
    char *p = text;
    *p = 0;
    for (uint32_t i = 0; i < q->n; ++i)
        p += sprintf(p, "w%u ", q->words[i]);
    return text;
}

void world_compare(const world *w, const world_query *q, const char *how, const world_answer *want, uint32_t n,
                   const uint64_t *docids, const double *scores)
{
    char text[64];
    if (n != want->n)
        fail_msg("seed %" PRIu64 ", %s, '%s', op %d, k %u: %u results, not %u", w->seed, how, world_text(q, text),
                 (int)q->op, q->k, n, want->n);
    for (uint32_t i = 0; i < n; ++i) {
        const world_hit *h = &want->hits[i];
        if (docids[i] != h->docid || scores[i] != ldexp(h->score, -want->exponent))
            fail_msg("seed %" PRIu64 ", %s, '%s', op %d, k %u: rank %u is %" PRIu64 " with %.17g, not %" PRIu64
                     " with %.17g",
                     w->seed, how, world_text(q, text), (int)q->op, q->k, i + 1, docids[i], scores[i], h->docid,
                     ldexp(h->score, -want->exponent));
    }
}

/* ---- engines ---- */

void world_open_engines(world_engines *e, const world *w)
{
    static const char *const names[WORLD_ENGINES] = {"CPU", "CPU with a cache", "GPU", "two GPUs"};
    gx_error err = {0};
    e->n = 0;
    for (uint32_t i = 0; i < WORLD_ENGINES; ++i) {
        gx_engine_options o = GX_ENGINE_OPTIONS;
        gx_session *first;
        o.kind = i < 2 ? GX_ENGINE_CPU : GX_ENGINE_GPU;
        o.result_cache = i == 1 ? 1 << 20 : 0;
        o.join = GX_JOIN_NEVER; /* what joins parts reads their files, in which there are no gaps */
        if (i == 3) {
            o.n_devices = 2;
            o.devices[1] = 1;
            o.spread = GX_SPREAD_PARTS;
        }
        const gx_status st = gx_engine_open(&e->engines[e->n], w->ix, &o, &err);
        if (i >= 2 && st == GX_ENOGPU)
            continue;
        world_check(w, st, &err);
        world_check(w, gx_session_open(&first, e->engines[e->n], &err), &err);
        world_check(w, gx_session_open(&e->sessions[e->n], e->engines[e->n], &err), &err);
        gx_session_close(first);
        e->names[e->n++] = names[i];
    }
}

void world_close_engines(world_engines *e)
{
    for (uint32_t i = 0; i < e->n; ++i) {
        gx_session_close(e->sessions[i]);
        gx_engine_close(e->engines[i]);
    }
}
