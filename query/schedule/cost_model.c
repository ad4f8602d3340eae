#include "query/schedule/cost_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/prefetch.h"
#include "engine/status.h"
#include "query/engine/collection.h"

#define LARGE_K 50u         /* from this k on a leaf of its own */
#define MOST_TERMS 6u       /* queries of so many terms and more share a leaf */
#define LENGTH_CLASSES 8u   /* of a query's lengths */
#define LONG_QUERY 7u       /* queries of so many lists are searched by another kernel (query/gpu) */
#define SMALL_BATCH 4u      /* queries of a batch, up to which it is small, */
#define MEDIUM_BATCH 32u    /* or of medium size (query/gpu) */
#define QUERY_CLASSES 3u    /* of a batch's queries: of one list, of 2 to 6, of LONG_QUERY and more */
#define USUAL_BATCH 512u    /* what a query adds to a batch is that of batches of this size */
#define ROUNDS 16           /* of counting samples that are far off less */
#define SHORT_LIST 1000.0   /* postings up to which a list's length counts in full */
#define BLOCK 128.0         /* postings of a block, which one warp decodes */
#define LIKELY_SHARE 0.8    /* of a list's weight, that its best documents reach */
#define LEAST_RESIDUAL 0.02 /* relative errors below this count alike */
#define RIDGE 1e-4          /* keeps weights small that the samples hardly tell apart */
#define LEAST_COST 100.0    /* ns */

/* The functions of a query's basis, by number. */
enum {
    CONSTANT,
    SHORTEST,
    SHORTEST_ROOT,
    SHORTEST_CAPPED,
    SHORTEST_LOG,
    SECOND,
    SECOND_ROOT,
    SECOND_CAPPED,
    SECOND_LOG,
    SUM,
    SUM_ROOT,
    SUM_LOG,
    LONGEST_CAPPED,
    CAPPED,
    ESSENTIAL = CAPPED + GX_N_COST_CAPS,
    ESSENTIAL_ROOT,
    TERMS,
    LONG,
    RESULTS,
    RESULTS_ROOT,
    MISSING,
    N_BASIS
};

/* The functions of a batch's basis; the first three of each class of queries. */
enum {
    QUERIES = 0,
    ALONE,
    MOST_ALONE,
    MOST_OF_ALL = 3 * QUERY_CLASSES,
    NORM_OF_ALL,
    BATCH,
    BATCH_ROOT,
    BATCH_MISSING,
    N_BATCH_BASIS
};
static_assert(N_BASIS == GX_COST_TERMS && N_BATCH_BASIS <= GX_COST_TERMS, "as many weights as functions");
static_assert(3 * 2 * MOST_TERMS * LENGTH_CLASSES == GX_COST_LEAVES,
              "a leaf for each operator, kind of k, number of terms and class of lengths");

static const double caps[GX_N_COST_CAPS] = {BLOCK, 1000, 10000};

static const char *const query_names[N_BASIS] = {
    "constant",
    "shortest",
    "sqrt(shortest)",
    "min(shortest, 1000)",
    "log2(shortest)",
    "second",
    "sqrt(second)",
    "min(second, 1000)",
    "log2(second)",
    "sum",
    "sqrt(sum)",
    "log2(sum)",
    "min(longest, 128)",
    "sum of min(length, 128)",
    "sum of min(length, 1000)",
    "sum of min(length, 10000)",
    "essential",
    "sqrt(essential)",
    "terms",
    "1 of 7 lists and more",
    "min(k, sum)",
    "sqrt(min(k, sum))",
    "bytes not resident",
};

static const char *const batch_names[N_BATCH_BASIS] = {
    "queries of 1 list",     "alone of 1 list",
    "most alone of 1 list",  "queries of 2 to 6 lists",
    "alone of 2 to 6 lists", "most alone of 2 to 6 lists",
    "queries of 7 lists",    "alone of 7 lists",
    "most alone of 7 lists", "most alone",
    "norm of alone",         "batch",
    "sqrt(batch)",           "all bytes not resident",
};

const char *gx_cost_term_name(gx_cost_kind kind, uint32_t i)
{
    if (kind == GX_COST_GPU_BATCH)
        return i < N_BATCH_BASIS ? batch_names[i] : NULL;
    return i < N_BASIS ? query_names[i] : NULL;
}

static const char *const feature_names[GX_N_COST_FEATURES] = {
    "length of the shortest list",
    "length of the second shortest list",
    "length of the longest list",
    "sum of lengths",
    "sums of capped lengths",
    "postings of essential lists",
    "number of terms",
    "k",
    "operator",
    "bytes not resident",
    "batch size",
};

const char *gx_cost_feature_name(gx_cost_feature f)
{
    return (unsigned)f < GX_N_COST_FEATURES ? feature_names[f] : NULL;
}

static double greater(double a, double b)
{
    return a > b ? a : b;
}

/* What a collection's parts cost together. */
static gx_query_features features_of_parts(const gx_plan *plan)
{
    gx_query_features f = {.k = plan->k, .op = plan->op};
    for (uint32_t i = 0; i < plan->parts->n; ++i) {
        const gx_query_features part = gx_plan_features(&plan->parts->plans[i]);
        f.shortest += part.shortest;
        f.second += part.second;
        f.longest += part.longest;
        f.sum += part.sum;
        for (int c = 0; c < GX_N_COST_CAPS; ++c)
            f.capped[c] += part.capped[c];
        f.essential += part.essential;
        f.n_terms = part.n_terms > f.n_terms ? part.n_terms : f.n_terms;
    }
    return f;
}

/* Postings of the lists that are read before the weights that are left are below the threshold. */
static double essential_postings(const gx_plan *plan)
{
    double all = 0, threshold = 0, postings = 0;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        all += plan->terms[i].w;
        if (plan->terms[i].df >= plan->k)
            threshold = greater(threshold, LIKELY_SHARE * plan->terms[i].w);
    }
    if (!gx_scorer_is_linear(plan->norm))
        threshold = greater(threshold, plan->initial_threshold);
    for (uint32_t i = 0; i < plan->n_terms && (i == 0 || all >= threshold); ++i) {
        postings += plan->terms[i].df;
        all -= plan->terms[i].w;
    }
    return postings;
}

gx_query_features gx_plan_features(const gx_plan *plan)
{
    gx_query_features f = {.n_terms = plan->n_terms, .k = plan->k, .op = plan->op};
    if (plan->parts)
        return features_of_parts(plan);
    if (plan->n_terms) {
        f.shortest = plan->terms[0].df;
        f.longest = plan->terms[plan->n_terms - 1].df;
    }
    if (plan->n_terms > 1)
        f.second = plan->terms[1].df;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        const double n = plan->terms[i].df;
        f.sum += n;
        for (int c = 0; c < GX_N_COST_CAPS; ++c)
            f.capped[c] += n < caps[c] ? n : caps[c];
    }
    f.essential = essential_postings(plan);
    return f;
}

static bool lacks(uint32_t without, gx_cost_feature f)
{
    return (without >> f & 1) != 0;
}

/* ---- leaves ---- */

/* The place of a batch among MOST_TERMS, by the kernels that search it (query/gpu/small_batch.cuh): those of up to
 * SMALL_BATCH short queries, of up to MEDIUM_BATCH, of more, and those with a long query. */
static uint32_t batch_place(uint32_t n, bool any_long, uint32_t without)
{
    if (any_long)
        return 3;
    return lacks(without, GX_COST_FEATURE_BATCH) ? 0 : (n > SMALL_BATCH) + (n > MEDIUM_BATCH);
}

/* By lengths: of a small k by the decade of their sum; of a large one, which only long lists give a first
 * threshold, by the length of the longest and whether the shortest is at least half a block. */
static uint32_t length_class(const gx_query_features *f, bool large, uint32_t without)
{
    if (!large)
        return lacks(without, GX_COST_FEATURE_SUM) ? 0 : (f->sum >= 100) + (f->sum >= 1000) + (f->sum >= 10000);
    const bool is_long = !lacks(without, GX_COST_FEATURE_SHORTEST) && f->shortest >= BLOCK / 2;
    if (lacks(without, GX_COST_FEATURE_LONGEST))
        return is_long;
    return ((f->longest >= BLOCK) + (f->longest >= 1000) + (f->longest >= 4000)) * 2u + is_long;
}

static uint32_t leaf_of(const gx_query_features *f, bool large, uint32_t place, uint32_t class, uint32_t without)
{
    const uint32_t op = lacks(without, GX_COST_FEATURE_OPERATOR) ? 0 : (uint32_t)f->op;
    return ((op * 2 + large) * MOST_TERMS + place) * LENGTH_CLASSES + class;
}

static bool is_long_query(const gx_query_features *f, uint32_t without)
{
    return !lacks(without, GX_COST_FEATURE_TERMS) && f->n_terms >= LONG_QUERY;
}

static uint32_t batch_leaf(const gx_query_features *f, uint32_t n, bool any_long, uint32_t without)
{
    const bool large = !lacks(without, GX_COST_FEATURE_K) && f->k >= LARGE_K;
    return leaf_of(f, large, batch_place(n, any_long, without), 0, without);
}

uint32_t gx_cost_leaf(const gx_query_features *f, uint32_t n, gx_cost_kind kind, uint32_t without)
{
    if (kind == GX_COST_GPU_BATCH) {
        bool any_long = false;
        for (uint32_t i = 0; i < n; ++i)
            any_long |= is_long_query(&f[i], without);
        return batch_leaf(f, n, any_long, without);
    }
    const bool large = !lacks(without, GX_COST_FEATURE_K) && f->k >= LARGE_K;
    const uint32_t terms = f->n_terms < 1 ? 1 : f->n_terms > MOST_TERMS ? MOST_TERMS : f->n_terms;
    return leaf_of(f, large, lacks(without, GX_COST_FEATURE_TERMS) ? 0 : terms - 1, length_class(f, large, without),
                   without);
}

/* ---- bases ---- */

static void set_length(double *basis, double n)
{
    basis[0] = n;
    basis[1] = sqrt(n);
    basis[2] = n < SHORT_LIST ? n : SHORT_LIST;
    basis[3] = log2(1 + n);
}

static void query_basis(const gx_query_features *f, uint32_t without, double basis[GX_COST_TERMS])
{
    const double results = f->k < f->sum ? f->k : f->sum;
    basis[CONSTANT] = 1;
    if (!lacks(without, GX_COST_FEATURE_SHORTEST))
        set_length(&basis[SHORTEST], f->shortest);
    if (!lacks(without, GX_COST_FEATURE_SECOND))
        set_length(&basis[SECOND], f->second);
    if (!lacks(without, GX_COST_FEATURE_SUM)) {
        basis[SUM] = f->sum;
        basis[SUM_ROOT] = sqrt(f->sum);
        basis[SUM_LOG] = log2(1 + f->sum);
    }
    if (!lacks(without, GX_COST_FEATURE_LONGEST))
        basis[LONGEST_CAPPED] = f->longest < BLOCK ? f->longest : BLOCK;
    for (int c = 0; c < GX_N_COST_CAPS && !lacks(without, GX_COST_FEATURE_CAPPED); ++c)
        basis[CAPPED + c] = f->capped[c];
    if (!lacks(without, GX_COST_FEATURE_ESSENTIAL)) {
        basis[ESSENTIAL] = f->essential;
        basis[ESSENTIAL_ROOT] = sqrt(f->essential);
    }
    if (!lacks(without, GX_COST_FEATURE_TERMS))
        basis[TERMS] = f->n_terms;
    basis[LONG] = is_long_query(f, without);
    if (!lacks(without, GX_COST_FEATURE_K)) {
        basis[RESULTS] = results;
        basis[RESULTS_ROOT] = sqrt(results);
    }
    if (!lacks(without, GX_COST_FEATURE_MISSING))
        basis[MISSING] = f->missing;
}

/* In four sums, which do not wait for each other. */
static double dot(const double *a, const double *b, uint32_t n)
{
    double sums[4] = {0};
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (uint32_t j = 0; j < 4; ++j)
            sums[j] += a[i + j] * b[i + j];
    }
    for (; i < n; ++i)
        sums[0] += a[i] * b[i];
    return sums[0] + sums[1] + (sums[2] + sums[3]);
}

/* Ask for the weights of a query's leaf. */
static void expect_weights(const gx_cost_profile *p, gx_cost_kind kind, uint32_t leaf)
{
    const char *w = (const char *)p->weights[kind][leaf];
    for (size_t at = 0; at < sizeof p->weights[kind][leaf]; at += 64)
        gx_prefetch(w + at);
}

/* The ns that a model's weights give a query or a batch. Weights of any sign, fitted to other queries, give a few long
 * queries less than nothing, and these would be taken for the cheapest of all. For them the CPU's time is guessed by
 * the library's own weights of an OR (profile.c). */
static double weigh(gx_cost_kind kind, const double *weights, const double *basis, uint32_t n)
{
    const double ns = dot(weights, basis, n);
    if (kind == GX_COST_CPU && ns < LEAST_COST)
        return LEAST_COST + 14.7 * basis[SHORTEST_ROOT] + 6.9 * basis[SUM_ROOT] + 517 * basis[TERMS];
    return greater(ns, LEAST_COST);
}

/* The predicted ns of one query. */
static double query_cost(const gx_cost_profile *p, const gx_query_features *f, gx_cost_kind kind, uint32_t without,
                         const double basis[GX_COST_TERMS])
{
    return weigh(kind, p->weights[kind][gx_cost_leaf(f, 1, kind, without)], basis, N_BASIS);
}

static uint32_t query_class(const gx_query_features *f, uint32_t without)
{
    const bool known = !lacks(without, GX_COST_FEATURE_TERMS);
    return is_long_query(f, without) ? 2 : known && f->n_terms < 2 ? 0 : 1;
}

static void batch_basis(const gx_cost_profile *p, const gx_query_features *f, uint32_t n, uint32_t without,
                        double basis[GX_COST_TERMS])
{
    double squares = 0;
    for (uint32_t i = 0; i < n; ++i) {
        double one[GX_COST_TERMS] = {0};
        query_basis(&f[i], without, one);
        const double alone = query_cost(p, &f[i], GX_COST_GPU_ALONE, without, one);
        double *of = &basis[3 * query_class(&f[i], without)];
        of[QUERIES] += 1;
        of[ALONE] += alone;
        of[MOST_ALONE] = greater(of[MOST_ALONE], alone);
        basis[MOST_OF_ALL] = greater(basis[MOST_OF_ALL], alone);
        squares += alone * alone;
        basis[BATCH_MISSING] += one[MISSING];
    }
    basis[NORM_OF_ALL] = sqrt(squares);
    basis[BATCH] = 1;
    basis[BATCH_ROOT] = sqrt(n);
    if (lacks(without, GX_COST_FEATURE_BATCH)) { /* of a query of the batch, as if its size were not known */
        for (uint32_t c = 0; c < QUERY_CLASSES; ++c) {
            basis[3 * c + QUERIES] /= n;
            basis[3 * c + ALONE] /= n;
        }
        basis[NORM_OF_ALL] /= sqrt(n);
        basis[BATCH_MISSING] /= n;
        basis[BATCH_ROOT] = 0;
    }
}

void gx_cost_basis(const gx_cost_profile *p, const gx_query_features *f, uint32_t n, gx_cost_kind kind,
                   uint32_t without, double basis[GX_COST_TERMS])
{
    memset(basis, 0, GX_COST_TERMS * sizeof *basis);
    if (kind == GX_COST_GPU_BATCH)
        batch_basis(p, f, n, without, basis);
    else
        query_basis(f, without, basis);
}

double gx_cost_predict(const gx_cost_profile *p, gx_cost_kind kind, const gx_query_features *f, uint32_t n)
{
    double basis[GX_COST_TERMS];
    gx_cost_basis(p, f, n, kind, 0, basis);
    return weigh(kind, p->weights[kind][gx_cost_leaf(f, n, kind, 0)], basis, GX_COST_TERMS);
}

/* What a query adds to a batch of the model w. */
static double added(const double *w, const gx_query_features *f, double alone)
{
    const double *of = &w[3 * query_class(f, 0)];
    return of[QUERIES] + of[ALONE] * alone + w[BATCH_MISSING] * f->missing;
}

gx_query_costs gx_cost_of_query(const gx_cost_profile *p, const gx_query_features *f)
{
    double basis[GX_COST_TERMS] = {0};
    const uint32_t leaf = gx_cost_leaf(f, 1, GX_COST_CPU, 0); /* and that of GX_COST_GPU_ALONE */
    expect_weights(p, GX_COST_CPU, leaf);
    expect_weights(p, GX_COST_GPU_ALONE, leaf);
    query_basis(f, 0, basis);
    const double alone = query_cost(p, f, GX_COST_GPU_ALONE, 0, basis);
    const double *batch = p->weights[GX_COST_GPU_BATCH][batch_leaf(f, USUAL_BATCH, is_long_query(f, 0), 0)];
    return (gx_query_costs){
        .cpu = query_cost(p, f, GX_COST_CPU, 0, basis), .gpu_alone = alone, .gpu = greater(added(batch, f, alone), 1)};
}

double gx_cost_fixed(const gx_cost_profile *p, const gx_query_features *f, uint32_t n)
{
    const double *w = p->weights[GX_COST_GPU_BATCH][gx_cost_leaf(f, n, GX_COST_GPU_BATCH, 0)];
    double basis[GX_COST_TERMS];
    gx_cost_basis(p, f, n, GX_COST_GPU_BATCH, 0, basis);
    double fixed = dot(&w[MOST_OF_ALL], &basis[MOST_OF_ALL], BATCH_MISSING - MOST_OF_ALL);
    for (uint32_t c = 0; c < QUERY_CLASSES; ++c)
        fixed += w[3 * c + MOST_ALONE] * basis[3 * c + MOST_ALONE];
    return fixed;
}

/* ---- fitting ---- */

/* Solve the rows and columns of `in` of ata z = atb by elimination with pivots; z is 0 elsewhere.
 * false: they are singular. */
static bool solve(const double *ata, const double *atb, uint32_t n, const bool *in, double *z)
{
    double a[GX_COST_TERMS][GX_COST_TERMS + 1];
    uint32_t at[GX_COST_TERMS], m = 0;
    for (uint32_t i = 0; i < n; ++i) {
        z[i] = 0;
        if (in[i])
            at[m++] = i;
    }
    for (uint32_t i = 0; i < m; ++i) {
        for (uint32_t j = 0; j < m; ++j)
            a[i][j] = ata[at[i] * n + at[j]];
        a[i][m] = atb[at[i]];
    }
    for (uint32_t c = 0; c < m; ++c) {
        uint32_t best = c;
        for (uint32_t r = c + 1; r < m; ++r)
            best = fabs(a[r][c]) > fabs(a[best][c]) ? r : best;
        if (fabs(a[best][c]) < 1e-10)
            return false;
        for (uint32_t j = 0; j <= m; ++j) {
            const double t = a[c][j];
            a[c][j] = a[best][j];
            a[best][j] = t;
        }
        for (uint32_t r = c + 1; r < m; ++r) {
            const double f = a[r][c] / a[c][c];
            for (uint32_t j = c; j <= m; ++j)
                a[r][j] -= f * a[c][j];
        }
    }
    for (uint32_t c = m; c-- > 0;) {
        double sum = a[c][m];
        for (uint32_t j = c + 1; j < m; ++j)
            sum -= a[c][j] * z[at[j]];
        z[at[c]] = sum / a[c][c];
    }
    return true;
}

/* The greatest step from w towards z at which no weight is below 0; those that become 0 leave
 * `in`. */
static void step_towards(double *w, const double *z, uint32_t n, bool *in)
{
    double step = 1;
    for (uint32_t i = 0; i < n; ++i) {
        if (in[i] && z[i] <= 0 && w[i] / (w[i] - z[i]) < step)
            step = w[i] / (w[i] - z[i]);
    }
    for (uint32_t i = 0; i < n; ++i) {
        w[i] += step * (z[i] - w[i]);
        if (in[i] && w[i] <= 1e-14) {
            w[i] = 0;
            in[i] = false;
        }
    }
}

static bool is_positive(const double *z, uint32_t n, const bool *in)
{
    for (uint32_t i = 0; i < n; ++i) {
        if (in[i] && z[i] <= 0)
            return false;
    }
    return true;
}

void gx_least_squares(const double *ata, const double *atb, uint32_t n, double *w)
{
    bool in[GX_COST_TERMS] = {false}, tried[GX_COST_TERMS] = {false};
    double z[GX_COST_TERMS];
    for (uint32_t i = 0; i < n; ++i)
        w[i] = 0;
    for (uint32_t round = 0; round < 10 * n; ++round) {
        uint32_t best = n;
        double most = 1e-9;
        for (uint32_t i = 0; i < n; ++i) {
            const double gradient = atb[i] - dot(&ata[i * n], w, n);
            if (!in[i] && !tried[i] && gradient > most) {
                most = gradient;
                best = i;
            }
        }
        if (best == n)
            return;
        in[best] = true;
        if (!solve(ata, atb, n, in, z) || z[best] <= 0) {
            in[best] = false;
            tried[best] = true;
            continue;
        }
        memset(tried, 0, sizeof tried);
        for (uint32_t inner = 0; inner < n && !is_positive(z, n, in); ++inner) {
            step_towards(w, z, n, in);
            if (!solve(ata, atb, n, in, z))
                return;
        }
        memcpy(w, z, n * sizeof *w);
    }
}

/* The w that minimises |A w - b|^2 and RIDGE times the sum of the samples' importance times |w|^2. */
static void ridge_regression(double *ata, const double *atb, uint32_t n, double importance, double *w)
{
    bool in[GX_COST_TERMS];
    for (uint32_t i = 0; i < n; ++i) {
        in[i] = ata[i * n + i] > 0;
        ata[i * n + i] += RIDGE * importance;
    }
    if (!solve(ata, atb, n, in, w))
        memset(w, 0, n * sizeof *w);
}

/* Fit the m samples at `at`; the functions are scaled so that their sums of squares are 1. */
static void fit_leaf(double *w, const gx_cost_sample *const *at, size_t m, bool any_sign)
{
    double scale[GX_COST_TERMS] = {0}, scaled[GX_COST_TERMS];
    for (size_t s = 0; s < m; ++s) {
        for (uint32_t i = 0; i < GX_COST_TERMS; ++i)
            scale[i] += at[s]->basis[i] * at[s]->basis[i] / (at[s]->ns * at[s]->ns);
    }
    for (uint32_t i = 0; i < GX_COST_TERMS; ++i)
        scale[i] = scale[i] > 0 ? 1 / sqrt(scale[i] / (double)m) : 0;
    for (int round = 0; round < ROUNDS; ++round) {
        double ata[GX_COST_TERMS * GX_COST_TERMS] = {0}, atb[GX_COST_TERMS] = {0}, all = 0;
        for (size_t s = 0; s < m; ++s) {
            double row[GX_COST_TERMS], importance = 1;
            for (uint32_t i = 0; i < GX_COST_TERMS; ++i)
                row[i] = at[s]->basis[i] * scale[i] / at[s]->ns;
            if (round) { /* towards least absolute errors */
                const double off = fabs(dot(row, scaled, GX_COST_TERMS) - 1);
                importance = 1 / (off > LEAST_RESIDUAL ? off : LEAST_RESIDUAL);
            }
            all += importance / (double)m;
            for (uint32_t i = 0; i < GX_COST_TERMS; ++i) {
                atb[i] += importance * row[i] / (double)m;
                for (uint32_t j = 0; j < GX_COST_TERMS; ++j)
                    ata[i * GX_COST_TERMS + j] += importance * row[i] * row[j] / (double)m;
            }
        }
        if (any_sign)
            ridge_regression(ata, atb, GX_COST_TERMS, all, scaled);
        else
            gx_least_squares(ata, atb, GX_COST_TERMS, scaled);
    }
    for (uint32_t i = 0; i < GX_COST_TERMS; ++i)
        w[i] = scaled[i] * scale[i];
}

/* Whether two leaves are of one class: 0: the same leaf; 1: of other lengths; 2: and numbers of terms; 3: any
 * leaf. */
static bool are_alike(uint32_t a, uint32_t b, int wider)
{
    const uint32_t by[] = {1, LENGTH_CLASSES, LENGTH_CLASSES * MOST_TERMS, GX_COST_LEAVES};
    return a / by[wider] == b / by[wider];
}

/* The samples that a leaf's weights are fitted to go to at[], and how much wider than the leaf their class is
 * to *wider. */
static size_t choose_samples(const gx_cost_sample *samples, size_t n, uint32_t leaf, const gx_cost_sample **at,
                             int *wider)
{
    size_t m = 0;
    for (*wider = 0;; ++*wider) {
        m = 0;
        for (size_t s = 0; s < n; ++s) {
            if (are_alike(samples[s].leaf, leaf, *wider))
                at[m++] = &samples[s];
        }
        if (m >= GX_COST_LEAST_SAMPLES || *wider == 3)
            return m;
    }
}

gx_status gx_cost_fit(double weights[GX_COST_LEAVES][GX_COST_TERMS], const gx_cost_sample *samples, size_t n,
                      bool any_sign, gx_error *err)
{
    const gx_cost_sample **at = malloc((n + 1) * sizeof *at);
    int wider[GX_COST_LEAVES];
    if (!at)
        return gx_fail(err, GX_ENOMEM, "no memory for %zu measured costs", n);
    for (uint32_t leaf = 0; leaf < GX_COST_LEAVES; ++leaf) {
        const size_t m = choose_samples(samples, n, leaf, at, &wider[leaf]);
        uint32_t same = 0; /* a leaf before with the same samples */
        while (same < leaf && (wider[same] != wider[leaf] || !are_alike(same, leaf, wider[leaf])))
            ++same;
        memset(weights[leaf], 0, sizeof weights[leaf]);
        if (same < leaf)
            memcpy(weights[leaf], weights[same], sizeof weights[leaf]);
        else if (m)
            fit_leaf(weights[leaf], at, m, any_sign);
    }
    free(at);
    return GX_OK;
}
