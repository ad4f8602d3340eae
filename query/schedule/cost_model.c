#include "query/schedule/cost_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "query/collection.h"

#define LARGE_K 50u         /* from this k on a leaf of its own */
#define MOST_TERMS 6u       /* queries of so many terms and more share a leaf */
#define SUM_CLASSES 4u      /* of the sum of lengths, by powers of 10 from 100 on */
#define USUAL_BATCH 512u    /* what a query adds to a batch is that of batches of this size */
#define ROUNDS 16           /* of counting samples that are far off less */
#define SHORT_LIST 1000.0   /* postings up to which a list's length counts in full */
#define LEAST_RESIDUAL 0.02 /* relative errors below this count alike */
#define RIDGE 1e-4          /* keeps weights small that the samples hardly tell apart */
#define LEAST_COST 100.0    /* ns */

/* The functions of the basis, by number. */
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
    TERMS,
    RESULTS,
    RESULTS_ROOT,
    BATCH,
    BATCH_ROOT,
    N_BASIS
};
static_assert(N_BASIS == GX_COST_TERMS, "as many weights as functions");
static_assert(3 * 2 * MOST_TERMS * SUM_CLASSES == GX_COST_LEAVES,
              "a leaf for each operator, kind of k, number of terms and class of sums");

static const char *const term_names[GX_COST_TERMS] = {
    "constant",       "shortest",    "sqrt(shortest)",    "min(shortest, 1000)",
    "log2(shortest)", "second",      "sqrt(second)",      "min(second, 1000)",
    "log2(second)",   "sum",         "sqrt(sum)",         "log2(sum)",
    "terms",          "min(k, sum)", "sqrt(min(k, sum))", "batch",
    "sqrt(batch)",
};

const char *gx_cost_term_name(uint32_t i)
{
    return i < GX_COST_TERMS ? term_names[i] : NULL;
}

static const char *const feature_names[GX_N_COST_FEATURES] = {
    "length of the shortest list",
    "length of the second shortest list",
    "sum of lengths",
    "number of terms",
    "k",
    "operator",
    "batch size",
};

const char *gx_cost_feature_name(gx_cost_feature f)
{
    return (unsigned)f < GX_N_COST_FEATURES ? feature_names[f] : NULL;
}

/* What a collection's parts cost together. */
static gx_query_features features_of_parts(const gx_plan *plan)
{
    gx_query_features f = {.k = plan->k, .op = plan->op};
    for (uint32_t i = 0; i < plan->parts->n; ++i) {
        const gx_query_features part = gx_plan_features(&plan->parts->plans[i]);
        f.shortest += part.shortest;
        f.second += part.second;
        f.sum += part.sum;
        f.n_terms = part.n_terms > f.n_terms ? part.n_terms : f.n_terms;
    }
    return f;
}

gx_query_features gx_plan_features(const gx_plan *plan)
{
    gx_query_features f = {.n_terms = plan->n_terms, .k = plan->k, .op = plan->op};
    if (plan->parts)
        return features_of_parts(plan);
    if (plan->n_terms)
        f.shortest = plan->terms[0].df;
    if (plan->n_terms > 1)
        f.second = plan->terms[1].df;
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        f.sum += plan->terms[i].df;
    return f;
}

static bool lacks(uint32_t without, gx_cost_feature f)
{
    return (without >> f & 1) != 0;
}

/* The place of a batch's size among MOST_TERMS: by factors of 4. */
static uint32_t size_class(uint32_t n)
{
    uint32_t c = 0;
    for (; n >= 4 && c + 1 < MOST_TERMS; n /= 4)
        ++c;
    return c;
}

static uint32_t sum_class(double sum)
{
    return (sum >= 100) + (sum >= 1000) + (sum >= 10000);
}

uint32_t gx_cost_leaf(const gx_query_features *f, uint32_t n, gx_cost_kind kind, uint32_t without)
{
    const uint32_t op = lacks(without, GX_COST_FEATURE_OPERATOR) ? 0 : (uint32_t)f->op;
    const uint32_t large = !lacks(without, GX_COST_FEATURE_K) && f->k >= LARGE_K;
    uint32_t terms = f->n_terms < 1 ? 1 : f->n_terms > MOST_TERMS ? MOST_TERMS : f->n_terms;
    const bool summed = kind != GX_COST_GPU_BATCH && !lacks(without, GX_COST_FEATURE_SUM);
    if (kind == GX_COST_GPU_BATCH)
        terms = lacks(without, GX_COST_FEATURE_BATCH) ? 1 : 1 + size_class(n);
    else if (lacks(without, GX_COST_FEATURE_TERMS))
        terms = 1;
    return ((op * 2 + large) * MOST_TERMS + terms - 1) * SUM_CLASSES + (summed ? sum_class(f->sum) : 0);
}

static void add_length(double *basis, double n)
{
    basis[0] += n;
    basis[1] += sqrt(n);
    basis[2] += n < SHORT_LIST ? n : SHORT_LIST;
    basis[3] += log2(1 + n);
}

static void add_query(double *basis, const gx_query_features *f, uint32_t without)
{
    const double results = f->k < f->sum ? f->k : f->sum;
    basis[CONSTANT] += 1;
    if (!lacks(without, GX_COST_FEATURE_SHORTEST))
        add_length(&basis[SHORTEST], f->shortest);
    if (!lacks(without, GX_COST_FEATURE_SECOND))
        add_length(&basis[SECOND], f->second);
    if (!lacks(without, GX_COST_FEATURE_SUM)) {
        basis[SUM] += f->sum;
        basis[SUM_ROOT] += sqrt(f->sum);
        basis[SUM_LOG] += log2(1 + f->sum);
    }
    if (!lacks(without, GX_COST_FEATURE_TERMS))
        basis[TERMS] += f->n_terms;
    if (!lacks(without, GX_COST_FEATURE_K)) {
        basis[RESULTS] += results;
        basis[RESULTS_ROOT] += sqrt(results);
    }
}

void gx_cost_basis(const gx_query_features *f, uint32_t n, gx_cost_kind kind, uint32_t without,
                   double basis[GX_COST_TERMS])
{
    memset(basis, 0, GX_COST_TERMS * sizeof *basis);
    for (uint32_t i = 0; i < n; ++i)
        add_query(basis, &f[i], without);
    if (kind == GX_COST_GPU_BATCH && lacks(without, GX_COST_FEATURE_BATCH)) {
        for (int i = 0; i < BATCH; ++i)
            basis[i] /= n; /* of a query of the batch, as if its size were not known */
    } else if (kind == GX_COST_GPU_BATCH) {
        basis[BATCH] = 1;
        basis[BATCH_ROOT] = sqrt(n);
    }
}

static double dot(const double *a, const double *b, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; ++i)
        sum += a[i] * b[i];
    return sum;
}

double gx_cost_predict(const gx_cost_profile *p, gx_cost_kind kind, const gx_query_features *f, uint32_t n)
{
    double basis[GX_COST_TERMS];
    gx_cost_basis(f, n, kind, 0, basis);
    const double ns = dot(p->weights[kind][gx_cost_leaf(f, n, kind, 0)], basis, GX_COST_TERMS);
    return ns > LEAST_COST ? ns : LEAST_COST;
}

static double at_least(double ns, double least)
{
    return ns > least ? ns : least;
}

gx_query_costs gx_cost_of_query(const gx_cost_profile *p, const gx_query_features *f)
{
    double basis[GX_COST_TERMS] = {0};
    add_query(basis, f, 0);
    const double *cpu = p->weights[GX_COST_CPU][gx_cost_leaf(f, 1, GX_COST_CPU, 0)];
    const double *alone = p->weights[GX_COST_GPU_ALONE][gx_cost_leaf(f, 1, GX_COST_GPU_ALONE, 0)];
    const double *batch = p->weights[GX_COST_GPU_BATCH][gx_cost_leaf(f, USUAL_BATCH, GX_COST_GPU_BATCH, 0)];
    return (gx_query_costs){.cpu = at_least(dot(cpu, basis, BATCH), LEAST_COST),
                            .gpu_alone = at_least(dot(alone, basis, BATCH), LEAST_COST),
                            .gpu = at_least(dot(batch, basis, BATCH), 1)};
}

double gx_cost_fixed(const gx_cost_profile *p, const gx_query_features *f, uint32_t n)
{
    const double *w = p->weights[GX_COST_GPU_BATCH][gx_cost_leaf(f, n, GX_COST_GPU_BATCH, 0)];
    return w[BATCH] + w[BATCH_ROOT] * sqrt(n);
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

/* Whether two leaves are of one class: 0: the same leaf; 1: of other sums of lengths; 2: and numbers of
 * terms; 3: any leaf. */
static bool are_alike(uint32_t a, uint32_t b, int wider)
{
    const uint32_t by[] = {1, SUM_CLASSES, SUM_CLASSES * MOST_TERMS, GX_COST_LEAVES};
    return a / by[wider] == b / by[wider];
}

gx_status gx_cost_fit(double weights[GX_COST_LEAVES][GX_COST_TERMS], const gx_cost_sample *samples, size_t n,
                      bool any_sign, gx_error *err)
{
    const gx_cost_sample **at = malloc((n + 1) * sizeof *at);
    if (!at)
        return gx_fail(err, GX_ENOMEM, "no memory for %zu measured costs", n);
    for (uint32_t leaf = 0; leaf < GX_COST_LEAVES; ++leaf) {
        size_t m = 0;
        for (int wider = 0; wider < 4 && m < GX_COST_LEAST_SAMPLES; ++wider) {
            m = 0;
            for (size_t s = 0; s < n; ++s) {
                if (are_alike(samples[s].leaf, leaf, wider))
                    at[m++] = &samples[s];
            }
        }
        memset(weights[leaf], 0, sizeof weights[leaf]);
        if (m)
            fit_leaf(weights[leaf], at, m, any_sign);
    }
    free(at);
    return GX_OK;
}
