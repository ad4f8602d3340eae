/* Filters as the CPU engine's kernels test them: searches of an index of 200,000 documents, each with a filter
 * of its own, by every instruction set, against exhaustive ones under a mask of the documents that a look at
 * each selects. The conditions are of every kind that has a way of its own: numbers of 8 bytes, doubles, values
 * that are missing, several values, common ones, ORs, NOTs, ids.
 *
 * GX_TEST_SEED is the seed of all that is random, 16 without it. GX_TEST_CASES=N makes N times as many cases
 * as the 400 without it. */
#include "engine/api/gpuidx_advanced.h"
#include "engine/random.h"
#include "query/cpu/search.h"
#include "query/engine/session.h"
#include "query/filter/filter_collect.h"
#include "query/filter/mask.h"
#include "tests/support/cpu_collection.h"
#include "tests/support/test.h"
#include "tests/support/vectors.h"

enum { N_DOCS = 200000, N_WORDS = (N_DOCS + 63) / 64, N_TERMS = 400, MOST_TAGS = 12, MOST_HITS = 40 };
enum { R, F, W, M, KIND, TAGS, TOPICS, DAY, GROUPS, N_ATTRIBUTES };
static const gx_attribute attributes[N_ATTRIBUTES] = {
    {"r", GX_ATTRIBUTE_INT},           {"f", GX_ATTRIBUTE_FLOAT},      {"w", GX_ATTRIBUTE_INT},
    {"m", GX_ATTRIBUTE_INT},           {"kind", GX_ATTRIBUTE_KEYWORD}, {"tags", GX_ATTRIBUTE_KEYWORDS},
    {"topics", GX_ATTRIBUTE_KEYWORDS}, {"day", GX_ATTRIBUTE_INT},      {"groups", GX_ATTRIBUTE_KEYWORDS}};
enum {
    MOST_R = 1000,
    MOST_M = 300,
    MOST_KIND = 40,
    MOST_TAG = 1000,
    MOST_TOPIC = 12,
    MOST_DAY = 90000,
    MOST_GROUP = 520
};

typedef struct doc {
    uint32_t r, m, kind, day, n_tags;
    uint16_t tags[MOST_TAGS];
    uint32_t topics;    /* bits */
    uint32_t groups[2]; /* of more sets than have numbers: a third of the documents have one each */
    bool has_m;
    int64_t w;
    double f;
} doc;

static doc *docs;
static gx_index *ix;
static gx_engine *en;
static uint64_t seed = 16;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(gx_random_next(&seed) % n);
}

static void draw_document(doc *x, uint32_t d)
{
    static const uint32_t n_tags[] = {0, 1, 1, 2, 2, 3, 4, MOST_TAGS};
    *x = (doc){.r = below(MOST_R),
               .m = below(MOST_M),
               .kind = below(1 + below(MOST_KIND)),
               .day = d * 4 / 10 + below(900),
               .n_tags = n_tags[below(8)],
               .has_m = below(10) != 0,
               .w = (int64_t)gx_random_next(&seed) / (below(2) ? 1 : 1 << 20),
               .f = below(4) ? (double)below(1u << 30) / (1u << 29) - 1 : 0.25,
               .groups = {d / 3 % (MOST_GROUP / 2), MOST_GROUP / 2 + d / 3 / (MOST_GROUP / 2)}};
    if (d % 3)
        x->groups[0] = x->groups[1] = below(12);
    for (uint32_t i = 0; i < x->n_tags; ++i)
        x->tags[i] = (uint16_t)below(MOST_TAG);
    for (uint32_t i = below(4); i; --i)
        x->topics |= 1u << below(1 + below(MOST_TOPIC));
}

static void add_document(gx_builder *b, uint32_t d)
{
    char texts[40][32], id[16], words[200] = "";
    gx_attribute_value values[40];
    uint32_t n = 0;
    const doc *x = &docs[d];
    gx_error err = {0};
#define PUT(attribute, ...)                                                                                            \
    values[n] = (gx_attribute_value){attribute, texts[n], (size_t)snprintf(texts[n], sizeof texts[n], __VA_ARGS__)}, ++n
    PUT(R, "%u", x->r);
    PUT(F, "%.17g", x->f);
    PUT(W, "%lld", (long long)x->w);
    if (x->has_m)
        PUT(M, "%u", x->m);
    PUT(KIND, "k%02u", x->kind);
    for (uint32_t i = 0; i < x->n_tags; ++i)
        PUT(TAGS, "t%03u", x->tags[i]);
    for (uint32_t i = 0; i < MOST_TOPIC; ++i)
        if (x->topics >> i & 1)
            PUT(TOPICS, "s%02u", i);
    PUT(DAY, "%u", x->day);
    PUT(GROUPS, "g%03u", x->groups[0]);
    if (x->groups[1] != x->groups[0])
        PUT(GROUPS, "g%03u", x->groups[1]);
    size_t len = 0;
    for (uint32_t left = 3 + below(8); left; --left)
        len += (size_t)sprintf(words + len, "w%u ", below(2) ? below(4) : below(1 + below(N_TERMS)));
    const gx_document document = {sizeof document, id, NULL, words, (size_t)sprintf(id, "doc%u", d), 0, len, values, n};
    if (gx_builder_add(b, &document, &err) != GX_OK)
        fail_msg("%s", err.text);
}

static void draw_and_add(gx_builder *b, uint32_t d)
{
    draw_document(&docs[d], d);
    add_document(b, d);
}

static cpu_collection made = {
    .attributes = attributes, .n_attributes = N_ATTRIBUTES, .n_docs = N_DOCS, .add = draw_and_add};

static int open_all(void **state)
{
    docs = malloc(N_DOCS * sizeof *docs);
    if (!docs || open_cpu_collection(state, &made) != 0)
        return -1;
    ix = made.ix;
    en = made.en;
    return 0;
}

static int close_all(void **state)
{
    free(docs);
    return close_cpu_collection(state, &made);
}

/* ---- random filters ---- */

typedef struct condition {
    uint32_t attribute, low, high;
    int64_t w_low, w_high;
    double f_low, f_high;
    bool has, id;
} condition;

static bool meets(const doc *x, const condition *c)
{
    const uint32_t d = (uint32_t)(x - docs), numbers[] = {x->r, 0, 0, x->m, x->kind, 0, 0, x->day, 0};
    bool any = false;
    if (c->id)
        return d == c->low;
    if (c->has && c->attribute != M && c->attribute != TAGS)
        return true;
    switch (c->attribute) {
    case F:
        return x->f >= c->f_low && x->f <= c->f_high;
    case W:
        return x->w >= c->w_low && x->w <= c->w_high;
    case TAGS:
        for (uint32_t i = 0; i < x->n_tags; ++i)
            any = any || c->has || (x->tags[i] >= c->low && x->tags[i] <= c->high);
        return any;
    case TOPICS:
        for (uint32_t i = 0; i < MOST_TOPIC; ++i)
            any = any || ((x->topics >> i & 1) && i >= c->low && i <= c->high);
        return any;
    case GROUPS:
        return (x->groups[0] >= c->low && x->groups[0] <= c->high) ||
               (x->groups[1] >= c->low && x->groups[1] <= c->high);
    case M:
        return x->has_m && (c->has || (x->m >= c->low && x->m <= c->high));
    default:
        return numbers[c->attribute] >= c->low && numbers[c->attribute] <= c->high;
    }
}

/* A condition of one attribute, appended to text. */
static condition draw_condition(uint32_t attribute, char *text)
{
    static const uint32_t most[] = {MOST_R, 0, 0, MOST_M, MOST_KIND, MOST_TAG, MOST_TOPIC, MOST_DAY, MOST_GROUP};
    static const double shares[] = {0.5, 0.3, 0.1, 0.03, 0.01, 0.001};
    static const char *const prefixes[] = {"", "", "", "", "k", "t", "s", "", "g"};
    static const int digits[] = {1, 1, 1, 1, 2, 3, 2, 1, 3};
    const double share = shares[below(6)], from = (double)below(1u << 30) / (1u << 30) * (1 - share);
    condition c = {.attribute = attribute};
    char *const to = text + strlen(text);
    if (below(16) == 0) {
        c.id = true;
        c.low = below(N_DOCS);
        sprintf(to, "id:doc%u", c.low);
    } else if (below(16) == 0 && (attribute == M || attribute == TAGS || attribute == R)) {
        c.has = true;
        sprintf(to, "has:%s", attributes[attribute].name);
    } else if (prefixes[attribute][0] && below(7) == 0) { /* a value that no document has */
        c.low = 1;
        sprintf(to, "%s:none", attributes[attribute].name);
    } else if (attribute == F) {
        c.f_low = below(6) ? 2 * from - 1 : 0.25;
        c.f_high = below(6) ? c.f_low + 2 * share : c.f_low;
        sprintf(to, "f:[%.17g TO %.17g]", c.f_low, c.f_high);
    } else if (attribute == W) {
        const int64_t around = docs[below(N_DOCS)].w / 2;
        c.w_low = around - (int64_t)(share * 4e18);
        c.w_high = around + (int64_t)(share * 4e18);
        sprintf(to, "w:[\"%lld\" TO \"%lld\"]", (long long)c.w_low, (long long)c.w_high);
    } else {
        c.low = (uint32_t)(from * most[attribute]);
        c.high = below(3) ? c.low + (uint32_t)(share * most[attribute]) : c.low;
        sprintf(to, "%s:[%s%0*u TO %s%0*u]", attributes[attribute].name, prefixes[attribute], digits[attribute], c.low,
                prefixes[attribute], digits[attribute], c.high);
    }
    return c;
}

/* The documents that the condition selects: combined with those of before by `both` (AND) or else OR. */
static void combine(bool *in, const condition *c, bool negated, bool first, bool both)
{
    for (uint32_t d = 0; d < N_DOCS; ++d) {
        const bool now = meets(&docs[d], c) != negated;
        in[d] = first ? now : both ? in[d] && now : in[d] || now;
    }
}

/* A clause: conditions with OR or AND between, perhaps all of one attribute. */
static void draw_clause(char *text, bool *in)
{
    const bool both = below(4) == 0, same = below(3) == 0;
    const uint32_t n = below(2) ? 1 : 1 + below(below(6) ? 5 : 20), of = below(N_ATTRIBUTES);
    for (uint32_t i = 0; i < n; ++i) {
        const bool negated = below(8) == 0;
        strcat(text, i == 0 ? "" : both ? " AND " : " OR ");
        strcat(text, negated ? "NOT " : "");
        const condition c = draw_condition(same ? of : below(N_ATTRIBUTES), text);
        combine(in, &c, negated, i == 0, both);
    }
}

static void draw_filter(char *text, bool *in)
{
    static bool other[N_DOCS];
    const bool both = below(4) != 0;
    text[0] = 0;
    for (uint32_t n = below(2) ? 1 : 1 + below(3), i = 0; i < n; ++i) {
        const bool negated = below(8) == 0;
        strcat(text, i == 0 ? "" : both ? " AND " : " OR ");
        strcat(text, negated ? "NOT (" : "(");
        draw_clause(text, i ? other : in);
        strcat(text, ")");
        for (uint32_t d = 0; d < N_DOCS; ++d) {
            if (i == 0)
                in[d] = in[d] != negated;
            else
                in[d] = both ? in[d] && other[d] != negated : in[d] || other[d] != negated;
        }
    }
}

/* ---- which ways searches take ---- */

typedef struct ways {
    uint32_t values, codes, docids, bits, tables, inexact, jumps, several_clauses, others;
    uint32_t sets, other_sets, unions; /* of several values, and ORs of them */
    uint32_t driven, spans, repeated, marked, late, sieved, cut, inverted, joined, rows, sure;
} ways;

static void count_ways(ways *w, const gx_cpu_searcher *s, bool driven)
{
    const gx_cpu_selection *selection = &s->selection;
    const gx_cpu_program *p = &selection->program;
    for (uint32_t i = 0; i < p->n_clauses; ++i) {
        w->sure += p->clauses[i].sure_end > 0;
        w->jumps += p->clauses[i].end > p->clauses[i].first + 1;
        for (uint32_t t = p->clauses[i].first; t < p->clauses[i].end; ++t) {
            w->values += p->tests[t].form == GX_CPU_TEST_VALUE;
            w->codes += p->tests[t].form == GX_CPU_TEST_CODES;
            w->docids += p->tests[t].form == GX_CPU_TEST_DOCID && !p->tests[t].table;
            w->bits += p->tests[t].form == GX_CPU_TEST_DOCID && p->tests[t].table;
            w->tables += p->tests[t].form == GX_CPU_TEST_VALUE && p->tests[t].table;
            w->inexact += p->tests[t].inexact;
            w->rows += p->tests[t].in_row;
            const bool of_set = p->tests[t].table && p->tests[t].column && p->tests[t].column->starts;
            w->sets += of_set;
            w->other_sets += of_set && p->tests[t].inexact;
            w->unions += of_set && p->tests[t].table == p->tables[0];
        }
    }
    w->several_clauses += p->n_clauses > 1;
    w->others += selection->more;
    w->driven += driven;
    w->spans += driven && selection->n_spans > 1;
    w->repeated += driven && selection->n_spans && selection->repeated;
    w->marked += selection->n_masked > 0;
    w->sieved += selection->sieve.n_made > 0;
    for (uint32_t i = 0; selection->sieve.n_made && i < selection->sieve.n_steps; ++i) {
        w->cut += selection->sieve.steps[i].in && selection->sieve.steps[i].out;
        w->inverted += selection->sieve.steps[i].inverted;
        w->joined += selection->sieve.steps[i].pops;
    }
    w->late += s->n_early < p->n_clauses;
}

static const gx_cpu_kernels *kernels_named(const char *name)
{
    setenv("GX_CPU", name, 1);
    const gx_cpu_kernels *k = gx_cpu_choose();
    unsetenv("GX_CPU");
    return k;
}

enum { N_SETS = 3 };
typedef struct searchers {
    gx_cpu_lists *lists[N_SETS];
    gx_cpu_searcher *s[N_SETS]; /* NULL: not on this processor */
} searchers;

static void open_searchers(searchers *all)
{
    static const char *const names[N_SETS] = {"portable", VECTORS, "avx512"};
    gx_error err = {0};
    for (int i = 0; i < N_SETS; ++i) {
        const gx_cpu_kernels *k = kernels_named(names[i]);
        all->lists[i] = NULL;
        all->s[i] = NULL;
        if (k && (gx_cpu_lists_open(&all->lists[i], ix, k, UINT64_MAX, &err) != GX_OK ||
                  gx_cpu_searcher_open(&all->s[i], ix, k, all->lists[i], &err) != GX_OK))
            fail_msg("%s", err.text);
    }
}

static void close_searchers(searchers *all)
{
    for (int i = 0; i < N_SETS; ++i) {
        gx_cpu_searcher_close(all->s[i]);
        gx_cpu_lists_close(all->lists[i]);
    }
}

/* The best k of the plan, under a filter or a mask, whichever it has. */
static gx_hits search(gx_cpu_searcher *s, const gx_plan *plan, bool exhaust, uint64_t *keys)
{
    gx_error err = {0};
    gx_hits hits = {keys, 0};
    const gx_status st =
        exhaust ? gx_cpu_exhaust(s, plan, plan->op, &hits, &err) : gx_cpu_search(s, plan, plan->op, &hits, &err);
    if (st != GX_OK)
        fail_msg("%s", err.text);
    return hits;
}

static void compare(searchers *all, const gx_plan *given, const gx_filter *f, const gx_mask *mask, ways *w,
                    const char *what)
{
    uint64_t want[MOST_HITS], got[MOST_HITS];
    gx_plan plan = *given;
    plan.mask = mask;
    const gx_hits expected = search(all->s[0], &plan, true, want);
    plan.mask = NULL;
    plan.filter = f;
    for (int i = 0; i < N_SETS; ++i) {
        if (!all->s[i])
            continue;
        const uint64_t driven = all->s[i]->work.driven;
        const gx_hits hits = search(all->s[i], &plan, false, got);
        if (hits.n != expected.n || memcmp(got, want, hits.n * sizeof *got) != 0)
            fail_msg("%s: %s: %u results, not %u", all->s[i]->kernels->name, what, hits.n, expected.n);
        count_ways(w, all->s[i], all->s[i]->work.driven > driven);
    }
}

/* More ORs on one column each than there are tables, the last of them with more conditions than a clause has tests:
 * `(r:0 OR r:1 OR ..) AND NOT (kind:.. OR ..) AND ..`. */
static void draw_sets(char *text, bool *in)
{
    static bool other[N_DOCS];
    text[0] = 0;
    for (uint32_t n = 3 + below(4), i = 0; i < n; ++i) {
        const uint32_t of = below(3) ? below(2) ? R : KIND : TOPICS, m = 3 + below(i + 1 < n ? 3 : 20);
        const bool negated = below(2);
        strcat(text, i == 0 ? "" : " AND ");
        strcat(text, negated ? "NOT (" : "(");
        for (uint32_t j = 0; j < m; ++j) {
            strcat(text, j ? " OR " : "");
            const condition c = draw_condition(of, text);
            combine(other, &c, false, j == 0, false);
        }
        strcat(text, ")");
        for (uint32_t d = 0; d < N_DOCS; ++d)
            in[d] = (i == 0 || in[d]) && other[d] != negated;
    }
}

static void every_way_finds_what_a_look_at_each_document_does(void **state)
{
    static bool in[N_DOCS];
    static uint64_t words[N_WORDS];
    static char filter[20000], what[21000];
    const char *given = getenv("GX_TEST_CASES");
    searchers all;
    ways w = {0};
    uint64_t n_selected = 0;
    (void)state;
    open_searchers(&all);
    for (uint32_t n = 400 * (given ? (uint32_t)strtoul(given, NULL, 10) : 1), i = 0; i < n; ++i) {
        gx_query_options opt = GX_QUERY_OPTIONS;
        gx_filter *f;
        gx_mask *mask;
        gx_plan plan;
        gx_error err = {0};
        char query[100];
        if (i % 8)
            draw_filter(filter, in);
        else
            draw_sets(filter, in);
        memset(words, 0, sizeof words);
        for (uint32_t d = 0; d < N_DOCS; ++d) {
            words[d / 64] |= (uint64_t)in[d] << d % 64;
            n_selected += in[d];
        }
        if (gx_filter_open(&f, ix, filter, strlen(filter), NULL, &err) != GX_OK)
            fail_msg("'%s': %s", filter, err.text);
        assert_int_equal(gx_mask_open(&mask, en, words, NULL), GX_OK);
        for (int q = 0; q < 4; ++q) {
            opt.k = 1 + below(below(2) ? 10 : MOST_HITS);
            opt.op = below(4) ? GX_OP_OR : GX_OP_AND;
            sprintf(query, "w%u w%u w%u w%u", below(4), below(N_TERMS), below(40), below(N_TERMS));
            assert_int_equal(gx_plan_make(&plan, ix, query, strlen(query), &opt, NULL), GX_OK);
            snprintf(what, sizeof what, "case %u, '%s' under '%s'", i, query, filter);
            compare(&all, &plan, f, mask, &w, what);
            gx_plan_free(&plan);
        }
        gx_filter_close(f);
        gx_mask_close(mask);
    }
    close_searchers(&all);
    print_message(
        "values %u codes %u docids %u bits %u tables %u inexact %u jumps %u clauses %u others %u; "
        "driven %u spans %u repeated %u marked %u late %u "
        "sieved %u cut %u inverted %u joined %u rows %u sure %u; sets %u others %u unions %u; selected %.3f\n",
        w.values, w.codes, w.docids, w.bits, w.tables, w.inexact, w.jumps, w.several_clauses, w.others, w.driven,
        w.spans, w.repeated, w.marked, w.late, w.sieved, w.cut, w.inverted, w.joined, w.rows, w.sure, w.sets,
        w.other_sets, w.unions, (double)n_selected / N_DOCS / 400);
    assert_true(w.values && w.codes && w.docids && w.bits && w.tables && w.inexact && w.jumps && w.several_clauses);
    assert_true(w.others && w.driven && w.spans && w.repeated && w.marked && w.late);
    assert_true(w.sieved && w.cut && w.inverted && w.joined && w.rows && w.sure);
    assert_true(w.sets && w.other_sets && w.unions);
}

/* The documents that drive a search: those of ranges, of their NOTs, and of ORs of both. */
static void the_documents_of_rare_filters_are_found(void **state)
{
    static bool in[N_DOCS], found_in[N_DOCS];
    (void)state;
    for (uint32_t i = 0; i < 300; ++i) {
        char filter[2000] = "";
        gx_filter *f;
        uint64_t n = 0;
        const bool nots = i % 3 == 0;
        for (uint32_t c = 0, more = 1 + below(4); c < more; ++c) {
            const bool negated = nots && below(2);
            strcat(filter, c ? negated ? " OR NOT " : " OR " : negated ? "NOT " : "");
            const condition drawn = draw_condition(negated ? below(2) ? R : W : below(N_ATTRIBUTES), filter);
            if (drawn.id || drawn.has) { /* a mask has these */
                filter[0] = 0;
                break;
            }
            combine(in, &drawn, negated, c == 0, false);
        }
        if (!filter[0])
            continue;
        assert_int_equal(gx_filter_open(&f, ix, filter, strlen(filter), NULL, NULL), GX_OK);
        const gx_filter_documents found = gx_filter_find(f, UINT64_MAX);
        memset(found_in, 0, sizeof found_in);
        for (uint32_t s = 0; s < found.n_spans; ++s) {
            for (uint32_t d = 0; d < found.spans[s].n; ++d, ++n) {
                assert_true(d == 0 || !found.rising || found.spans[s].docids[d] > found.spans[s].docids[d - 1]);
                assert_true(found.repeated || !found_in[found.spans[s].docids[d]]);
                found_in[found.spans[s].docids[d]] = true;
            }
        }
        assert_true(found.exact && found.n == n && (found.n_spans || n == 0));
        if (memcmp(in, found_in, sizeof in) != 0)
            fail_msg("case %u: '%s'", i, filter);
        gx_filter_close(f);
    }
}

int main(void)
{
    if (getenv("GX_TEST_SEED"))
        seed = strtoull(getenv("GX_TEST_SEED"), NULL, 0);
    print_message("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documents_of_rare_filters_are_found),
        cmocka_unit_test(every_way_finds_what_a_look_at_each_document_does),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
