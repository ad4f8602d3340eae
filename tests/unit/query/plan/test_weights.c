/* Vectors with weights, from gx_builder_add to gx_search, against a judge of its own: it keeps each
 * weight in a table, makes impacts and fixed-point scores of them by the words of index/FORMAT.md
 * and query/plan/plan.h, adds whole numbers and sorts. Every engine of this build, algorithm and way of
 * asking must give its documents and its scores to the bit. GX_TEST_SEED chooses other cases,
 * GX_TEST_CASES their number for each engine. */
#include <math.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/random.h"
#include "tests/support/scratch.h"
#include "tests/support/vectors.h"

#define MAX_DOCS 1500u
#define MANY_DOCS 70000u /* of a few collections, which then have few terms: several tiles of a GPU */
#define FEW_TERMS 24u
#define MAX_TERMS 90u
#define MAX_QUERY 70u
#define CASES_OF_A_COLLECTION 60u
#define BATCH 512u
#define DRAWN_OF_A_BATCH 24u /* different queries, of which it is made */
#define MAX_K_OF_A_BATCH 40u

typedef struct judge {
    uint32_t n_docs, n_terms, bits;
    bool list_units;
    float *weights;    /* [n_docs][n_terms]; 0: the document lacks the term */
    uint32_t *impacts; /* [n_docs][n_terms] */
    double units[MAX_TERMS];
    uint32_t dfs[MAX_TERMS], most[MAX_TERMS];
    uint64_t seed;
} judge;

static uint64_t rng;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(gx_random_next(&rng) % n);
}

static uint32_t env_uint(const char *name, uint32_t otherwise)
{
    const char *text = getenv(name);
    return text ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

/* ---- a collection ---- */

static float draw_weight(uint32_t kind)
{
    switch (kind) {
    case 0: /* as of a learned model */
        return (float)(-log(1 - (double)(gx_random_next(&rng) >> 12) * 0x1p-52) * .45) + .01f;
    case 1:
        return (float)(1 + below(255));
    case 2: /* many ties */
        return .5f * (float)(1 + below(4));
    case 3: /* of all sizes */
        return ldexpf(1 + (float)below(1000) / 1000, (int)below(40) - 20);
    default:
        return ldexpf(1, (int)below(180) - 85);
    }
}

/* The greatest weight by 2^bits - 1, up to a number of 11 significant bits. */
static double unit_of(const judge *j, uint32_t first, uint32_t last)
{
    const double levels = exp2(j->bits) - 1;
    double most = 0;
    bool whole = true;
    for (uint32_t d = 0; d < j->n_docs; ++d)
        for (uint32_t t = first; t < last; ++t) {
            const double w = j->weights[d * j->n_terms + t];
            most = fmax(most, w);
            whole = whole && w == trunc(w);
        }
    if (most <= levels && whole)
        return 1;
    double step = 1;
    while (most / levels / step >= 2048)
        step *= 2;
    while (most / levels / step < 1024)
        step /= 2;
    return fmax(step * ceil(most / levels / step), 0x1p-126);
}

static void quantize(judge *j)
{
    for (uint32_t t = 0; t < j->n_terms; ++t)
        j->units[t] = j->list_units ? unit_of(j, t, t + 1) : t ? j->units[0] : unit_of(j, 0, j->n_terms);
    for (uint32_t d = 0; d < j->n_docs; ++d)
        for (uint32_t t = 0; t < j->n_terms; ++t) {
            const double w = j->weights[d * j->n_terms + t];
            uint32_t *const impact = &j->impacts[d * j->n_terms + t];
            *impact = w > 0 ? (uint32_t)fmax(1, rint(w / j->units[t])) : 0;
            j->dfs[t] += w > 0;
            j->most[t] = *impact > j->most[t] ? *impact : j->most[t];
        }
}

static judge *draw_collection(uint32_t max_docs)
{
    judge *j = calloc(1, sizeof *j);
    assert_non_null(j);
    j->seed = rng;
    const uint32_t kind = below(5), density = 1 + below(100);
    const bool many = max_docs > MAX_DOCS && below(50) == 0;
    j->n_docs = 1 + below(many ? max_docs : below(2) ? 300 : max_docs < MAX_DOCS ? max_docs : MAX_DOCS);
    j->n_terms = 1 + below(many ? FEW_TERMS : MAX_TERMS);
    j->bits = 4 + below(13);
    j->list_units = below(3) == 0;
    j->weights = calloc((size_t)j->n_docs * j->n_terms, sizeof *j->weights);
    j->impacts = calloc((size_t)j->n_docs * j->n_terms, sizeof *j->impacts);
    assert_true(j->weights && j->impacts);
    for (uint32_t d = 0; d < j->n_docs; ++d)
        for (uint32_t t = 0; t < j->n_terms; ++t)
            if (below(100 + 4 * t) < density) /* the first terms are in more documents */
                j->weights[d * j->n_terms + t] = draw_weight(kind);
    quantize(j);
    return j;
}

static void free_judge(judge *j)
{
    free(j->weights);
    free(j->impacts);
    free(j);
}

static char names[MAX_TERMS + 2][8]; /* of terms; the last two are in no document */

static gx_index *index_of(const judge *j)
{
    gx_error err = {0};
    gx_index *ix = NULL;
    gx_builder *b = NULL;
    gx_builder_options opt = GX_BUILDER_OPTIONS;
    const char *codecs[] = {NULL, "gpubp128", "gpuvbyte128", "gpupfd128", "lane1024", "auto"};
    char path[300], id[16];
    snprintf(path, sizeof path, "%s", in_dir("x.gx"));
    opt.path = path;
    opt.force = true;
    opt.vector_bits = j->bits;
    opt.list_units = j->list_units;
    opt.docid_codec = codecs[below(6)];
    opt.threads = 1 + below(3);
    opt.memory = 8u << 20;
    if (gx_builder_open(&b, &opt, &err) != GX_OK)
        fail_msg("%s", err.text);
    for (uint32_t d = 0; d < j->n_docs; ++d) {
        gx_weighted_term vector[MAX_TERMS];
        gx_document doc = {.size = sizeof doc, .id = id, .vector = vector};
        doc.id_len = (size_t)snprintf(id, sizeof id, "d%u", d);
        for (uint32_t i = 0; i < j->n_terms; ++i) {
            const uint32_t t = (i + d) % j->n_terms; /* in any order */
            if (j->weights[d * j->n_terms + t] > 0)
                vector[doc.n_vector++] = (gx_weighted_term){names[t], strlen(names[t]), j->weights[d * j->n_terms + t]};
        }
        if (gx_builder_add(b, &doc, &err) != GX_OK)
            fail_msg("seed %llu: %s", (unsigned long long)j->seed, err.text);
    }
    if (gx_builder_finish(b, &err) != GX_OK || gx_index_open(&ix, path, NULL, &err) != GX_OK)
        fail_msg("seed %llu: %s", (unsigned long long)j->seed, err.text);
    gx_builder_abort(b);
    return ix;
}

/* ---- a query ---- */

typedef struct weighted_query {
    uint32_t n, terms[MAX_QUERY]; /* different; those of n_terms and above are unknown */
    float weights[MAX_QUERY];
    gx_op op;
    uint32_t k;
} weighted_query;

static void draw_query(const judge *j, weighted_query *q)
{
    static const uint32_t ks[] = {1, 3, 10, 10, 100, 1000, 10000};
    const uint32_t kind = below(5), room = j->n_terms + 2;
    uint32_t order[MAX_TERMS + 2];
    for (uint32_t t = 0; t < room; ++t)
        order[t] = t;
    for (uint32_t t = room; t-- > 1;) {
        const uint32_t other = below(t + 1), swap = order[t];
        order[t] = order[other];
        order[other] = swap;
    }
    q->n = 1 + below(below(2) ? 4 : MAX_QUERY);
    q->n = q->n < room ? q->n : room;
    for (uint32_t i = 0; i < q->n; ++i) {
        q->terms[i] = order[i];
        q->weights[i] = kind == 4 ? 1 : draw_weight(kind);
    }
    q->op = (gx_op)below(3);
    q->k = ks[below(sizeof ks / sizeof *ks)];
}

typedef struct hit {
    uint32_t docid, score;
} hit;

static int by_rank(const void *a, const void *b)
{
    const hit *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->docid < y->docid ? -1 : 1;
}

/* The documents with at least `least` of the query's terms, in order. */
static uint32_t collect(const judge *j, const weighted_query *q, const float *scaled, uint32_t least, hit *hits)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < j->n_docs; ++d) {
        uint32_t sum = 0, has = 0;
        for (uint32_t i = 0; i < q->n; ++i) {
            const uint32_t impact = q->terms[i] < j->n_terms ? j->impacts[d * j->n_terms + q->terms[i]] : 0;
            const float part = scaled[i] * (float)impact; /* rounded to single precision */
            sum += impact ? (part < 1 ? 1 : (uint32_t)nearbyint(part)) : 0;
            has += impact > 0;
        }
        if (has >= least && has)
            hits[n++] = (hit){d, sum};
    }
    qsort(hits, n, sizeof *hits, by_rank);
    return n;
}

/* The answer; *exponent: of the scores. */
static uint32_t judge_query(const judge *j, const weighted_query *q, hit *hits, int *exponent)
{
    double total = 0;
    float scaled[MAX_QUERY];
    bool taken[MAX_QUERY] = {false};
    for (uint32_t n = 0; n < q->n; ++n) { /* by rising df, then by name */
        uint32_t next = q->n;
        for (uint32_t i = 0; i < q->n; ++i) {
            if (taken[i] || q->terms[i] >= j->n_terms || !j->dfs[q->terms[i]])
                continue;
            if (next == q->n || j->dfs[q->terms[i]] < j->dfs[q->terms[next]] ||
                (j->dfs[q->terms[i]] == j->dfs[q->terms[next]] && q->terms[i] < q->terms[next]))
                next = i;
        }
        if (next == q->n)
            break;
        taken[next] = true;
        total += q->weights[next] * j->units[q->terms[next]] * j->most[q->terms[next]];
    }
    int e = 30;
    while (total > 0 && total * exp2(e) > 0x1p30)
        --e;
    while (total > 0 && total * exp2(e + 1) <= 0x1p30)
        ++e;
    for (uint32_t i = 0; i < q->n; ++i)
        scaled[i] = q->terms[i] < j->n_terms ? (float)(q->weights[i] * j->units[q->terms[i]] * exp2(e)) : 0;
    *exponent = e;
    uint32_t n = collect(j, q, scaled, q->op == GX_OP_OR ? 1 : q->n, hits);
    if (q->op == GX_OP_AND_OR && n < q->k)
        n = collect(j, q, scaled, 1, hits);
    return n;
}

/* ---- engines ---- */

static uint64_t n_compared;

static void check_query(const judge *j, gx_session *s, const weighted_query *q, const char *engine)
{
    static const struct {
        bool prune;
        gx_algorithm algorithm;
    } ways[] = {{true, GX_ALGORITHM_AUTO},
                {false, GX_ALGORITHM_AUTO},
                {true, GX_ALGORITHM_PMF},
                {true, GX_ALGORITHM_TAAT},
                {true, GX_ALGORITHM_BLOCK_MAX}};
    static hit want[MANY_DOCS];
    static uint32_t docids[10000];
    static double scores[10000];
    gx_weighted_term terms[MAX_QUERY];
    uint32_t n_hits;
    uint64_t n_matches;
    int e;
    const uint32_t n = judge_query(j, q, want, &e);
    for (uint32_t i = 0; i < q->n; ++i)
        terms[i] = (gx_weighted_term){names[q->terms[i]], strlen(names[q->terms[i]]), q->weights[i]};
    const gx_query query = {.size = sizeof query, .kind = GX_QUERY_TERMS, .terms = terms, .n_terms = q->n};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; ++w) {
        gx_error err = {0};
        gx_query_options opt = GX_QUERY_OPTIONS;
        const gx_results out = {sizeof out, docids, NULL, &n_hits, &n_matches, scores};
        opt.preset = GX_IMPACT;
        opt.op = q->op;
        opt.k = q->k;
        opt.prune = ways[w].prune;
        opt.algorithm = ways[w].algorithm;
        opt.count = w == 0;
        if (gx_search(s, &query, 1, &opt, &out, &err) != GX_OK)
            fail_msg("%s: seed %llu: %s", engine, (unsigned long long)j->seed, err.text);
        const uint32_t expected = n < q->k ? n : q->k;
        bool good = n_hits == expected && (w || n_matches == n);
        for (uint32_t i = 0; good && i < expected; ++i)
            good = docids[i] == want[i].docid && scores[i] == ldexp(want[i].score, -e);
        if (!good)
            fail_msg("%s: seed %llu, way %zu: %u documents, %u terms, %u bits, query of %u terms, op %d, k %u", engine,
                     (unsigned long long)j->seed, w, j->n_docs, j->n_terms, j->bits, q->n, (int)q->op, q->k);
    }
    ++n_compared;
}

/* ORs in one call, in which a GPU may search some by tiles and others by lists, mostly short ones. */
static void check_batch(const judge *j, gx_session *s, const char *engine)
{
    static hit want[DRAWN_OF_A_BATCH][MANY_DOCS];
    static gx_weighted_term terms[DRAWN_OF_A_BATCH][MAX_QUERY];
    static uint32_t docids[BATCH * MAX_K_OF_A_BATCH], n_hits[BATCH];
    static double scores[BATCH * MAX_K_OF_A_BATCH];
    gx_query queries[BATCH];
    weighted_query q[DRAWN_OF_A_BATCH];
    uint32_t n[DRAWN_OF_A_BATCH];
    int e[DRAWN_OF_A_BATCH];
    gx_error err = {0};
    gx_query_options opt = GX_QUERY_OPTIONS;
    const gx_results out = {sizeof out, docids, NULL, n_hits, NULL, scores};
    opt.preset = GX_IMPACT;
    opt.k = 1 + below(MAX_K_OF_A_BATCH);
    for (uint32_t i = 0; i < DRAWN_OF_A_BATCH; ++i) {
        draw_query(j, &q[i]);
        q[i].n = i % 4 && q[i].n > 6 ? 2 + below(5) : q[i].n;
        q[i].op = GX_OP_OR;
        q[i].k = opt.k;
        n[i] = judge_query(j, &q[i], want[i], &e[i]);
        for (uint32_t t = 0; t < q[i].n; ++t)
            terms[i][t] = (gx_weighted_term){names[q[i].terms[t]], strlen(names[q[i].terms[t]]), q[i].weights[t]};
    }
    for (uint32_t b = 0; b < BATCH; ++b)
        queries[b] = (gx_query){.size = sizeof *queries,
                                .kind = GX_QUERY_TERMS,
                                .terms = terms[b % DRAWN_OF_A_BATCH],
                                .n_terms = q[b % DRAWN_OF_A_BATCH].n};
    if (gx_search(s, queries, BATCH, &opt, &out, &err) != GX_OK)
        fail_msg("%s: seed %llu: %s", engine, (unsigned long long)j->seed, err.text);
    for (uint32_t b = 0; b < BATCH; ++b) {
        const uint32_t i = b % DRAWN_OF_A_BATCH, expected = n[i] < opt.k ? n[i] : opt.k;
        bool good = n_hits[b] == expected;
        for (uint32_t h = 0; good && h < expected; ++h)
            good = docids[b * opt.k + h] == want[i][h].docid && scores[b * opt.k + h] == ldexp(want[i][h].score, -e[i]);
        if (!good)
            fail_msg("%s: seed %llu: %u documents, query %u of a batch, of %u terms, k %u", engine,
                     (unsigned long long)j->seed, j->n_docs, b, q[i].n, opt.k);
    }
}

static void check_engine(gx_engine_kind kind, const char *cpu, const char *name, uint32_t cases, uint32_t max_docs)
{
    gx_error err = {0};
    n_compared = 0;
    rng = env_uint("GX_TEST_SEED", 1);
    while (n_compared < cases) {
        judge *j = draw_collection(max_docs);
        gx_index *ix = index_of(j);
        gx_engine *en;
        gx_session *s;
        gx_engine_options opt = GX_ENGINE_OPTIONS;
        opt.kind = kind;
        opt.map_memory = below(3) ? UINT64_MAX : 0;
        if (cpu)
            setenv("GX_CPU", cpu, 1);
        const gx_status st = gx_engine_open(&en, ix, &opt, &err);
        unsetenv("GX_CPU");
        if (st == GX_ENOGPU || (cpu && st == GX_EUSAGE)) {
            gx_index_close(ix);
            free_judge(j);
            skip();
        }
        if (st != GX_OK || gx_session_open(&s, en, &err) != GX_OK)
            fail_msg("%s: %s", name, err.text);
        for (uint32_t i = 0; i < CASES_OF_A_COLLECTION && n_compared < cases; ++i) {
            weighted_query q;
            draw_query(j, &q);
            check_query(j, s, &q, name);
        }
        if (below(4) == 0)
            check_batch(j, s, name);
        gx_session_close(s);
        gx_engine_close(en);
        gx_index_close(ix);
        free_judge(j);
    }
    print_message("%s: %llu cases\n", name, (unsigned long long)n_compared);
}

static void answers_equal_the_judges_with_avx512(void **state)
{
    (void)state;
    check_engine(GX_ENGINE_CPU, "avx512", "CPU (AVX-512)", env_uint("GX_TEST_CASES", 10000), MAX_DOCS);
}

static void answers_equal_the_judges_with_vectors(void **state)
{
    (void)state;
    check_engine(GX_ENGINE_CPU, VECTORS, "CPU (" VECTORS_TITLE ")", env_uint("GX_TEST_CASES", 10000), MAX_DOCS);
}

static void answers_equal_the_judges_without_vectors_of_the_processor(void **state)
{
    (void)state;
    check_engine(GX_ENGINE_CPU, "portable", "CPU (portable)", env_uint("GX_TEST_CASES", 10000) / 4, MAX_DOCS);
}

static void answers_equal_the_judges_on_a_gpu(void **state)
{
    (void)state;
    check_engine(GX_ENGINE_GPU, NULL, "GPU", env_uint("GX_TEST_CASES", 10000), env_uint("GX_TEST_DOCS", MANY_DOCS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_equal_the_judges_with_avx512),
        cmocka_unit_test(answers_equal_the_judges_with_vectors),
        cmocka_unit_test(answers_equal_the_judges_without_vectors_of_the_processor),
        cmocka_unit_test(answers_equal_the_judges_on_a_gpu),
    };
    for (uint32_t t = 0; t < MAX_TERMS + 2; ++t)
        snprintf(names[t], sizeof names[t], t < MAX_TERMS ? "t%03u" : "u%03u", t);
    if (getenv("GX_TEST_FILTER"))
        cmocka_set_test_filter(getenv("GX_TEST_FILTER"));
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
