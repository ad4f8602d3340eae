#include "query/measures/measures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "engine/text/ascii.h"
#include "engine/text/c_locale.h"

#define LEAST_GEOMETRIC 0.00001 /* trec_eval's MIN_GEO_MEAN: an average precision below it counts as it in gm_map */
#define LEAST_MAX_GRADE 4       /* gdeval.pl's highest grade */

/* ---- one query ---- */

typedef struct answer {
    const gx_trec_row *row;
    int32_t rel;
} answer;

static int by_score_then_docno_falling(const void *pa, const void *pb)
{
    const gx_trec_row *a = ((const answer *)pa)->row, *b = ((const answer *)pb)->row;
    return a->value != b->value ? (a->value < b->value) - (a->value > b->value) : strcmp(b->docno, a->docno);
}

static int by_gain_descending(const void *pa, const void *pb)
{
    const int32_t a = *(const int32_t *)pa, b = *(const int32_t *)pb;
    return (a < b) - (a > b);
}

static int32_t relevance(const gx_trec_row *row)
{
    return row->value > 0 ? (int32_t)row->value : 0;
}

static bool is_judgement(const gx_trec_row *row)
{
    return row->value >= 0;
}

gx_status gx_ranking_make(gx_ranking *out, const gx_trec_table *qrels, const gx_trec_topic *judged,
                          const gx_trec_table *run, const gx_trec_topic *answers, int32_t level, gx_error *err)
{
    gx_ranking r = {
        .n_ret = answers ? answers->n : 0, .n_judged = judged->n, .level = level, .max_grade = LEAST_MAX_GRADE};
    answer *list = malloc((r.n_ret + 1) * sizeof *list);
    r.rels = malloc((r.n_ret + 1) * sizeof *r.rels);
    r.ideal = malloc(r.n_judged * sizeof *r.ideal);
    if (!list || !r.rels || !r.ideal) {
        free(list);
        gx_ranking_free(&r);
        return gx_fail(err, GX_ENOMEM, "no memory to rank the %zu answers to query %s", r.n_ret, judged->qid);
    }
    const gx_trec_row *judgement = qrels->rows + judged->first, *const end = judgement + judged->n;
    for (size_t i = 0; i < judged->n; ++i) {
        r.ideal[i] = relevance(&judgement[i]);
        r.n_rel += is_judgement(&judgement[i]) && r.ideal[i] >= level;
        r.n_nonrel += is_judgement(&judgement[i]) && r.ideal[i] < level;
    }
    qsort(r.ideal, r.n_judged, sizeof *r.ideal, by_gain_descending);
    for (size_t i = 0; i < r.n_ret; ++i) { /* the rows of both topics rise by docno */
        const gx_trec_row *row = &run->rows[answers->first + i];
        while (judgement < end && strcmp(judgement->docno, row->docno) < 0)
            ++judgement;
        const bool found = judgement < end && !strcmp(judgement->docno, row->docno);
        list[i] = (answer){row, found && is_judgement(judgement) ? relevance(judgement) : GX_NOT_JUDGED};
    }
    qsort(list, r.n_ret, sizeof *list, by_score_then_docno_falling);
    for (size_t i = 0; i < r.n_ret; ++i)
        r.rels[i] = list[i].rel;
    free(list);
    *out = r;
    return GX_OK;
}

void gx_ranking_free(gx_ranking *r)
{
    free(r->rels);
    free(r->ideal);
    *r = (gx_ranking){0};
}

/* ---- the measures; k is the cutoff ---- */

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static double n_relevant(const gx_ranking *r, size_t k)
{
    size_t n = 0;
    for (size_t i = 0; i < min_size(k, r->n_ret); ++i)
        n += r->rels[i] >= r->level;
    return (double)n;
}

static double num_ret(const gx_ranking *r, size_t k)
{
    return (double)min_size(r->n_ret, k);
}

static double num_rel(const gx_ranking *r, size_t k)
{
    (void)k;
    return (double)r->n_rel;
}

static double num_q(const gx_ranking *r, size_t k)
{
    (void)r, (void)k;
    return 1;
}

static double precision(const gx_ranking *r, size_t k)
{
    return n_relevant(r, k) / (double)k;
}

static double recall(const gx_ranking *r, size_t k)
{
    return r->n_rel ? n_relevant(r, k) / (double)r->n_rel : 0;
}

static double success(const gx_ranking *r, size_t k)
{
    return n_relevant(r, k) > 0;
}

static double r_precision(const gx_ranking *r, size_t k)
{
    (void)k;
    return r->n_rel ? precision(r, r->n_rel) : 0;
}

static double average_precision(const gx_ranking *r, size_t k)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < min_size(k, r->n_ret); ++i)
        if (r->rels[i] >= r->level)
            sum += (double)++n / (double)(i + 1);
    return r->n_rel ? sum / (double)r->n_rel : 0;
}

static double reciprocal_rank(const gx_ranking *r, size_t k)
{
    for (size_t i = 0; i < min_size(k, r->n_ret); ++i)
        if (r->rels[i] >= r->level)
            return 1 / (double)(i + 1);
    return 0;
}

static double discounted_gain(const int32_t *gains, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; ++i)
        if (gains[i] > 0)
            sum += gains[i] / log2((double)(i + 2));
    return sum;
}

static double ndcg(const gx_ranking *r, size_t k)
{
    const double ideal = discounted_gain(r->ideal, min_size(k, r->n_judged));
    return ideal > 0 ? discounted_gain(r->rels, min_size(k, r->n_ret)) / ideal : 0;
}

static double log_average_precision(const gx_ranking *r, size_t k)
{
    return log(fmax(average_precision(r, k), LEAST_GEOMETRIC));
}

static double bpref(const gx_ranking *r, size_t k)
{
    double sum = 0;
    size_t nonrel = 0;
    (void)k;
    for (size_t i = 0; i < r->n_ret; ++i) {
        if (r->rels[i] >= r->level)
            sum += nonrel ? 1 - (double)min_size(nonrel, r->n_rel) / (double)min_size(r->n_nonrel, r->n_rel) : 1;
        else
            nonrel += r->rels[i] != GX_NOT_JUDGED;
    }
    return r->n_rel ? sum / (double)r->n_rel : 0;
}

static double interpolated_precision(const gx_ranking *r, size_t percent)
{
    const size_t wanted = (size_t)((double)percent / 100 * (double)r->n_rel + 0.9);
    double best = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->n_ret; ++i) { /* the relevant answers: between them the precision only falls */
        if (r->rels[i] < r->level)
            continue;
        ++n;
        if (n >= wanted)
            best = fmax(best, (double)n / (double)(i + 1));
    }
    return best;
}

static double expected_reciprocal_rank(const gx_ranking *r, size_t k)
{
    double sum = 0, goes_on = 1;
    for (size_t i = 0; i < min_size(k, r->n_ret); ++i) {
        const double stops = r->rels[i] > 0 ? exp2(r->rels[i] - r->max_grade) - exp2(-r->max_grade) : 0;
        sum += goes_on * stops / (double)(i + 1);
        goes_on *= 1 - stops;
    }
    return sum;
}

static double judged(const gx_ranking *r, size_t k)
{
    const size_t n = min_size(k, r->n_ret);
    size_t found = 0;
    for (size_t i = 0; i < n; ++i)
        found += r->rels[i] != GX_NOT_JUDGED;
    return n ? (double)found / (double)n : 0;
}

/* How the values of queries become one. */
typedef enum total_kind { AVERAGED, SUMMED, GEOMETRIC } total_kind;

typedef struct gx_measure_kind {
    const char *name; /* trec_eval's name without a cutoff */
    const char *cut;  /* the name before a cutoff; NULL: the measure takes no cutoff */
    bool needs_cutoff;
    total_kind total;
    double (*value)(const gx_ranking *r, size_t k);
    const char *also[2]; /* names that other programs use */
    bool at_recall;      /* the cutoff is a recall, in hundredths */
} gx_measure_kind;

static const gx_measure_kind kinds[] = {
    {"num_q", NULL, false, SUMMED, num_q, {NULL}},
    {"num_ret", NULL, false, SUMMED, num_ret, {NULL}},
    {"num_rel", NULL, false, SUMMED, num_rel, {NULL}},
    {"num_rel_ret", NULL, false, SUMMED, n_relevant, {NULL}},
    {"map", "map_cut", false, AVERAGED, average_precision, {"ap"}},
    {"map_cut", "map_cut", true, AVERAGED, average_precision, {NULL}},
    {"P", "P", true, AVERAGED, precision, {"precision", "prec"}},
    {"recall", "recall", true, AVERAGED, recall, {"r"}},
    {"success", "success", true, AVERAGED, success, {NULL}},
    {"ndcg", "ndcg_cut", false, AVERAGED, ndcg, {NULL}},
    {"ndcg_cut", "ndcg_cut", true, AVERAGED, ndcg, {NULL}},
    {"Rprec", NULL, false, AVERAGED, r_precision, {NULL}},
    {"recip_rank", "recip_rank", false, AVERAGED, reciprocal_rank, {"rr", "mrr"}},
    {"bpref", NULL, false, AVERAGED, bpref, {NULL}},
    {"gm_map", NULL, false, GEOMETRIC, log_average_precision, {NULL}},
    {"iprec_at_recall", "iprec_at_recall", true, AVERAGED, interpolated_precision, {"iprec"}, .at_recall = true},
    {"err", "err", true, AVERAGED, expected_reciprocal_rank, {NULL}},
    {"judged", "judged", true, AVERAGED, judged, {NULL}},
};

double gx_measure_value(const gx_measure *m, const gx_ranking *r)
{
    return m->kind->value(r, m->cutoff == UINT32_MAX ? SIZE_MAX : m->cutoff);
}

bool gx_measure_is_count(const gx_measure *m)
{
    return m->kind->total == SUMMED;
}

bool gx_measure_is_of_one_query(const gx_measure *m)
{
    return m->kind->total != GEOMETRIC && m->kind->value != num_q;
}

/* ---- their names ---- */

static const uint32_t usual_cutoffs[] = {5, 10, 15, 20, 30, 100, 200, 500, 1000};
static const uint32_t usual_recalls[] = {0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}; /* hundredths */
static const char official[] = "num_q,num_ret,num_rel,num_rel_ret,map,Rprec,recip_rank,P@5,P@10,P@30,recall@100,"
                               "recall@1000,ndcg@10";

typedef struct measure_list {
    gx_measure *items;
    size_t n, cap;
} measure_list;

static gx_status append(measure_list *l, const gx_measure_kind *kind, uint32_t cutoff, gx_error *err)
{
    if (!gx_reserve(&l->items, &l->cap, l->n + 1, sizeof *l->items))
        return gx_fail(err, GX_ENOMEM, "no memory for %zu measures", l->n + 1);
    gx_measure m = {kind, cutoff, ""};
    if (cutoff == UINT32_MAX)
        snprintf(m.name, sizeof m.name, "%s", kind->name);
    else if (kind->at_recall)
        gx_print(m.name, sizeof m.name, "%s_%.2f", kind->cut, cutoff / 100.0);
    else
        snprintf(m.name, sizeof m.name, "%s_%u", kind->cut, cutoff);
    for (size_t i = 0; i < l->n; ++i)
        if (!strcmp(l->items[i].name, m.name))
            return GX_OK;
    l->items[l->n++] = m;
    return GX_OK;
}

static const gx_measure_kind *find_kind(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        const char *const names[] = {kinds[i].name, kinds[i].also[0], kinds[i].also[1]};
        for (size_t j = 0; j < 3 && names[j]; ++j)
            if (strlen(names[j]) == len && gx_same_start(names[j], name, len))
                return &kinds[i];
    }
    return NULL;
}

static gx_status append_usual(measure_list *l, const gx_measure_kind *kind, gx_error *err)
{
    const uint32_t *cutoffs = kind->at_recall ? usual_recalls : usual_cutoffs;
    const size_t n =
        kind->at_recall ? sizeof usual_recalls / sizeof *usual_recalls : sizeof usual_cutoffs / sizeof *usual_cutoffs;
    gx_status st = GX_OK;
    for (size_t i = 0; i < n && st == GX_OK; ++i)
        st = append(l, kind, cutoffs[i], err);
    return st;
}

/* Read a recall such as "0.1", ".25" or "1.00", in whole hundredths, into *percent. */
static bool read_recall(const char *text, size_t len, uint32_t *percent)
{
    char copy[16], *end;
    if (len == 0 || len >= sizeof copy || memchr("0123456789.", text[0], 11) == NULL)
        return false;
    memcpy(copy, text, len);
    copy[len] = 0;
    const double x = gx_strtod(copy, &end) * 100;
    if (*end || !(x >= 0 && x <= 100) || fabs(x - round(x)) > 1e-9)
        return false;
    *percent = (uint32_t)lround(x);
    return true;
}

/* Split a name of interpolated precision, such as "iprec@0.1", "iprec_at_recall.0.10" or, after
 * one, ".20". */
static bool split_recall(const char *item, size_t len, const gx_measure_kind **kind, uint32_t *percent)
{
    const size_t name = strcspn(item, "@.0123456789");
    if (name >= len)
        return false;
    if (name == 0)
        return *kind && (*kind)->at_recall && read_recall(item, len, percent);
    const gx_measure_kind *found = find_kind(item, name - (item[name - 1] == '_'));
    if (!found || !found->at_recall)
        return false;
    *kind = found;
    const bool parted = item[name] == '@' || (item[name] == '.' && memchr(item + name + 1, '.', len - name - 1));
    return read_recall(item + name + parted, len - name - parted, percent);
}

/* Split a name such as "ndcg@10", "P.5", "ndcg_cut_10" or "map" into kind and cutoff (0: the name
 * has no cutoff). A cutoff alone belongs to the kind before it. */
static bool split_name(const char *item, size_t len, const gx_measure_kind **kind, uint32_t *cutoff)
{
    size_t digits = len;
    while (digits > 0 && gx_is_digit(item[digits - 1]))
        --digits;
    uint64_t k = 0;
    for (size_t i = digits; i < len && k <= UINT32_MAX; ++i)
        k = k * 10 + (uint64_t)(item[i] - '0');
    *cutoff = 0;
    if (digits < len) {
        if (k == 0 || k >= UINT32_MAX)
            return false;
        *cutoff = (uint32_t)k;
        if (digits == 0)
            return *kind && (*kind)->cut && !(*kind)->at_recall;
        len = digits - (memchr("@._", item[digits - 1], 3) != NULL);
    }
    *kind = find_kind(item, len);
    return *kind && (!*cutoff || ((*kind)->cut && !(*kind)->at_recall));
}

static gx_status parse_list(measure_list *l, const char *list, gx_error *err)
{
    const gx_measure_kind *kind = NULL;
    for (const char *p = list; *p;) {
        const size_t len = strcspn(p, ", \t");
        gx_status st = GX_OK;
        uint32_t cutoff;
        if (len && split_recall(p, len, &kind, &cutoff)) {
            if ((st = append(l, kind, cutoff, err)) != GX_OK)
                return st;
            p += len;
            p += *p != 0;
            continue;
        }
        if (len == strlen("official") && !strncmp(p, "official", len))
            st = parse_list(l, official, err);
        else if (len && !split_name(p, len, &kind, &cutoff))
            st = gx_fail(err, GX_EUSAGE,
                         "no measure \"%.*s\": there are num_q, num_ret, num_rel, num_rel_ret, map, "
                         "map@k, P@k, recall@k, success@k, ndcg, ndcg@k, Rprec, recip_rank, recip_rank@k, bpref, "
                         "gm_map, iprec@r (r a recall from 0 to 1 in hundredths), ERR@k and judged@k",
                         (int)(len < 100 ? len : 100), p);
        else if (len && (cutoff || !kind->needs_cutoff))
            st = append(l, kind, cutoff ? cutoff : UINT32_MAX, err);
        else if (len)
            st = append_usual(l, kind, err);
        if (st != GX_OK)
            return st;
        p += len;
        p += *p != 0;
    }
    return GX_OK;
}

gx_status gx_measures_parse(gx_measure **out, size_t *n, const char *list, gx_error *err)
{
    measure_list l = {0};
    *out = NULL;
    gx_status st = parse_list(&l, list, err);
    if (st == GX_OK && l.n == 0)
        st = gx_fail(err, GX_EUSAGE, "no measure is named");
    if (st != GX_OK) {
        free(l.items);
        return st;
    }
    *out = l.items;
    *n = l.n;
    return GX_OK;
}

/* ---- all queries ---- */

gx_status gx_evaluate_topic(double *values, const gx_evaluation_setup *setup, const gx_trec_topic *judged,
                            const gx_trec_table *run, const gx_trec_topic *answers, gx_error *err)
{
    gx_ranking r;
    const gx_status st = gx_ranking_make(&r, setup->qrels, judged, run, answers, setup->level, err);
    if (st != GX_OK)
        return st;
    r.max_grade = setup->max_grade;
    for (size_t m = 0; m < setup->n_measures; ++m)
        values[m] = gx_measure_value(&setup->measures[m], &r);
    gx_ranking_free(&r);
    return GX_OK;
}

void gx_measures_total(double *totals, const gx_measure *measures, size_t n_measures, const double *values,
                       size_t n_queries)
{
    for (size_t m = 0; m < n_measures; ++m) {
        const total_kind total = measures[m].kind->total;
        double sum = 0;
        for (size_t q = 0; q < n_queries; ++q)
            sum += values[q * n_measures + m];
        if (n_queries && total != SUMMED)
            sum /= (double)n_queries;
        totals[m] = n_queries && total == GEOMETRIC ? exp(sum) : sum;
    }
}

int32_t gx_greatest_grade(const gx_trec_table *qrels)
{
    int32_t max = LEAST_MAX_GRADE;
    for (size_t i = 0; i < qrels->n_rows; ++i)
        max = relevance(&qrels->rows[i]) > max ? relevance(&qrels->rows[i]) : max;
    return max;
}

gx_status gx_evaluate(gx_evaluation *out, const gx_trec_table *qrels, const gx_trec_table *run,
                      const gx_measure *measures, size_t n_measures, int32_t level, bool complete, gx_error *err)
{
    gx_status st = GX_OK;
    gx_evaluation ev = {.n_measures = n_measures};
    const gx_evaluation_setup setup = {qrels, measures, n_measures, level, gx_greatest_grade(qrels)};
    ev.qids = malloc((qrels->n_topics + 1) * sizeof *ev.qids);
    ev.values = malloc((qrels->n_topics + 1) * n_measures * sizeof *ev.values);
    ev.all = malloc((n_measures + 1) * sizeof *ev.all);
    if (!ev.qids || !ev.values || !ev.all)
        st = gx_fail(err, GX_ENOMEM, "no memory for %zu measures of %zu queries", n_measures, qrels->n_topics);
    for (size_t t = 0; t < qrels->n_topics && st == GX_OK; ++t) {
        const gx_trec_topic *judged = &qrels->topics[t], *answers = gx_trec_find(run, judged->qid);
        ev.n_missing += !answers;
        if (!answers && !complete)
            continue;
        st = gx_evaluate_topic(ev.values + ev.n_queries * n_measures, &setup, judged, run, answers, err);
        ev.qids[ev.n_queries++] = judged->qid;
    }
    if (st != GX_OK) {
        gx_evaluation_free(&ev);
        return st;
    }
    gx_measures_total(ev.all, measures, n_measures, ev.values, ev.n_queries);
    ev.n_unjudged = run->n_topics - (qrels->n_topics - ev.n_missing);
    *out = ev;
    return GX_OK;
}

void gx_evaluation_free(gx_evaluation *ev)
{
    free(ev->qids);
    free(ev->values);
    free(ev->all);
    *ev = (gx_evaluation){0};
}
