#include "tools/bench/data/sparse_vectors.h"

#include <stdlib.h>
#include <string.h>

#include "engine/lower_bound.h"
#include "engine/random.h"

/* These give the shares that the header promises. */
#define TOPICS 64u
#define DIMENSIONS 3u
#define RANK_OFFSET 40.0
#define POWER 4 /* of the square of a point's length along a topic's direction */
#define QUERY_SPREAD 0.1

/* A value at each of nine shares of all values; linear between them. */
typedef struct quantiles {
    float at[9];
} quantiles;
static const float shares[9] = {0, .1f, .25f, .5f, .75f, .9f, .99f, .999f, 1};
static const quantiles document_weights = {{.002f, .044f, .111f, .278f, .629f, 1.08f, 2.00f, 2.6f, 3.2f}};
static const quantiles query_weights = {{.002f, .046f, .119f, .293f, .661f, 1.62f, 2.46f, 2.9f, 3.3f}};

static const struct shape {
    uint32_t document_mean, document_least, document_most, query_mean, query_least, query_most;
} shapes[GX_N_SPARSE_SHAPES] = {
    [GX_SPARSE_SPLADE] = {120, 102, 215, 44, 12, 107},
    [GX_SPARSE_UNICOIL] = {68, 50, 130, 6, 2, 24},
    [GX_SPARSE_INFERENCE_FREE] = {180, 150, 315, 7, 2, 28},
};

struct gx_sparse_vectors {
    struct shape shape;
    uint64_t seed;
    uint16_t topic[GX_SPARSE_N_TERMS];
    double directions[TOPICS][DIMENSIONS]; /* of length 1 */
    uint32_t first[TOPICS + 1];            /* a topic's terms in by_topic */
    uint32_t by_topic[GX_SPARSE_N_TERMS];
    double sums[GX_SPARSE_N_TERMS]; /* of the frequencies of the topic's terms so far */
    uint32_t seen[GX_SPARSE_N_TERMS], turn;
    uint64_t state; /* of the vector at hand */
};

static double uniform(gx_sparse_vectors *g)
{
    return (double)(gx_random_next(&g->state) >> 11) * 0x1p-53;
}

/* Nearly normal: the sum of twelve, by arithmetic that is the same everywhere. */
static double normal(gx_sparse_vectors *g)
{
    double sum = -6;
    for (int i = 0; i < 12; ++i)
        sum += uniform(g);
    return sum;
}

static void unit_length(double *v)
{
    double sum = 0, root = 1;
    for (uint32_t i = 0; i < DIMENSIONS; ++i)
        sum += v[i] * v[i];
    for (int i = 0; i < 60; ++i) /* Newton's, which needs no libm */
        root = (root + sum / root) / 2;
    for (uint32_t i = 0; i < DIMENSIONS; ++i)
        v[i] /= root;
}

gx_sparse_vectors *gx_sparse_vectors_open(gx_sparse_shape shape, uint64_t seed)
{
    gx_sparse_vectors *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->shape = shapes[shape];
    g->seed = seed;
    g->state = seed * 0x9e3779b97f4a7c15u + 1;
    for (uint32_t t = 0; t < TOPICS; ++t) {
        for (uint32_t i = 0; i < DIMENSIONS; ++i)
            g->directions[t][i] = normal(g);
        unit_length(g->directions[t]);
    }
    for (uint32_t t = 0; t < GX_SPARSE_N_TERMS; ++t)
        ++g->first[1 + (g->topic[t] = (uint16_t)(uniform(g) * TOPICS))];
    for (uint32_t t = 0; t < TOPICS; ++t)
        g->first[t + 1] += g->first[t];
    uint32_t at[TOPICS];
    memcpy(at, g->first, sizeof at);
    for (uint32_t t = 0; t < GX_SPARSE_N_TERMS; ++t) {
        const uint32_t topic = g->topic[t], place = at[topic]++;
        g->by_topic[place] = t;
        g->sums[place] = (place > g->first[topic] ? g->sums[place - 1] : 0) + 1 / (t + RANK_OFFSET);
    }
    return g;
}

void gx_sparse_vectors_close(gx_sparse_vectors *g)
{
    free(g);
}

static double value_at(const quantiles *q, double share)
{
    int i = 0;
    while (i < 7 && share > shares[i + 1])
        ++i;
    return q->at[i] + (q->at[i + 1] - q->at[i]) * (share - shares[i]) / (shares[i + 1] - shares[i]);
}

/* A number of terms: `least` and two geometric numbers, which together have the mean that is asked. */
static uint32_t draw_length(gx_sparse_vectors *g, uint32_t mean, uint32_t least, uint32_t most)
{
    uint32_t n = least;
    const double stop = 1 / (1 + (mean - least) / 2.0);
    for (int i = 0; i < 2; ++i)
        while (n < most && uniform(g) > stop)
            ++n;
    return n;
}

/* A term of a topic that is drawn with a share of `chances` for each. */
static uint32_t draw_term(gx_sparse_vectors *g, const double *chances)
{
    const double x = uniform(g) * chances[TOPICS - 1];
    GX_FIRST(uint32_t, topic, 0, TOPICS - 1, chances[topic] > x);
    const uint32_t last = g->first[topic + 1] - 1;
    const double y = uniform(g) * g->sums[last];
    GX_FIRST(uint32_t, i, g->first[topic], last, g->sums[i] > y);
    return g->by_topic[i];
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

typedef struct keyed {
    float key;
    uint32_t i;
} keyed;

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Different terms by the point's nearness to topics, and weights whose order is nearly that of it. */
static void draw_vector(gx_sparse_vectors *g, const double *point, uint32_t n, const quantiles *weights,
                        gx_sparse_vector *out)
{
    double chances[TOPICS], near[TOPICS], sum = 0;
    for (uint32_t t = 0; t < TOPICS; ++t) {
        double along = 0;
        for (uint32_t i = 0; i < DIMENSIONS; ++i)
            along += g->directions[t][i] * point[i];
        near[t] = 1;
        for (int i = 0; i < POWER; ++i)
            near[t] *= along * along;
        if (g->first[t + 1] > g->first[t])
            sum += near[t] * g->sums[g->first[t + 1] - 1];
        chances[t] = sum;
    }
    ++g->turn;
    out->n = 0;
    for (uint32_t tries = 0; out->n < n && tries < 100 * n; ++tries) {
        const uint32_t term = draw_term(g, chances);
        if (g->seen[term] != g->turn) {
            g->seen[term] = g->turn;
            out->terms[out->n++] = term;
        }
    }
    n = out->n;
    qsort(out->terms, n, sizeof *out->terms, by_number);
    float drawn[GX_SPARSE_MAX_VECTOR];
    keyed keys[GX_SPARSE_MAX_VECTOR];
    for (uint32_t i = 0; i < n; ++i) {
        drawn[i] = (float)value_at(weights, uniform(g));
        keys[i] = (keyed){(float)(near[g->topic[out->terms[i]]] * uniform(g)), i};
    }
    qsort(drawn, n, sizeof *drawn, by_value);
    qsort(keys, n, sizeof *keys, by_value); /* by their first member */
    for (uint32_t i = 0; i < n; ++i)
        out->weights[keys[i].i] = drawn[i];
}

static void begin_vector(gx_sparse_vectors *g, uint64_t number)
{
    g->state = (g->seed + 1) * 0xd1342543de82ef95u ^ number * 0x9e3779b97f4a7c15u;
    gx_random_next(&g->state);
}

void gx_sparse_document(gx_sparse_vectors *g, uint64_t number, gx_sparse_vector *out)
{
    double point[DIMENSIONS];
    begin_vector(g, 2 * number);
    for (uint32_t i = 0; i < DIMENSIONS; ++i)
        point[i] = normal(g);
    const uint32_t n = draw_length(g, g->shape.document_mean, g->shape.document_least, g->shape.document_most);
    draw_vector(g, point, n, &document_weights, out);
}

/* Ten bits, two zeros between each and the next. */
static uint32_t spread_bits(uint32_t x)
{
    x = (x | x << 16) & 0x30000ff;
    x = (x | x << 8) & 0x300f00f;
    x = (x | x << 4) & 0x30c30c3;
    return (x | x << 2) & 0x9249249;
}

/* The direction's place on a curve through all directions (Morton's). Opposite directions are one:
 * nearness to a topic has no sign. */
uint32_t gx_sparse_place(gx_sparse_vectors *g, uint64_t number)
{
    double point[DIMENSIONS];
    uint32_t place = 0;
    begin_vector(g, 2 * number);
    for (uint32_t i = 0; i < DIMENSIONS; ++i)
        point[i] = normal(g);
    unit_length(point);
    const double sign = point[DIMENSIONS - 1] < 0 ? -1 : 1;
    for (uint32_t i = 0; i < DIMENSIONS; ++i)
        place |= spread_bits((uint32_t)((sign * point[i] + 1) * 511.9)) << i;
    return place;
}

void gx_sparse_query(gx_sparse_vectors *g, uint64_t number, gx_sparse_vector *out)
{
    double point[DIMENSIONS];
    begin_vector(g, 2 * number + 1);
    const uint32_t topic = (uint32_t)(uniform(g) * TOPICS);
    for (uint32_t i = 0; i < DIMENSIONS; ++i)
        point[i] = g->directions[topic][i] + QUERY_SPREAD * normal(g);
    const uint32_t n = draw_length(g, g->shape.query_mean, g->shape.query_least, g->shape.query_most);
    draw_vector(g, point, n, &query_weights, out);
}
