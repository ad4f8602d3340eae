/* fuse.c: several runs as one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "query/measures/trec.h"

/* A document of a query of one run, with what it adds. */
typedef struct part {
    const char *docno;
    uint32_t run, line;
    double score; /* of the run; then what it adds */
} part;

typedef struct fusing {
    const gx_fusion_options *opt;
    part *parts;
    size_t n_parts, max_parts;
    size_t max_rows;
    gx_fused *out;
} fusing;

static int by_rank(const void *a, const void *b)
{
    const part *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->line > y->line) - (x->line < y->line);
}

static int by_document(const void *a, const void *b)
{
    const part *x = a, *y = b;
    const int order = strcmp(x->docno, y->docno);
    return order ? order : (x->run > y->run) - (x->run < y->run);
}

static int by_score(const void *a, const void *b)
{
    const gx_fused_row *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return strcmp(x->docno, y->docno);
}

/* ---- what the documents of one run add ---- */

static void add_reciprocal_ranks(part *p, size_t n, double k)
{
    qsort(p, n, sizeof *p, by_rank);
    for (size_t i = 0; i < n; ++i)
        p[i].score = 1 / (k + (double)(i + 1));
}

static void normalize(part *p, size_t n, gx_fusion_norm norm)
{
    double least = p[0].score, most = p[0].score, sum = 0, squares = 0;
    for (size_t i = 0; i < n; ++i) {
        least = fmin(least, p[i].score);
        most = fmax(most, p[i].score);
        sum += p[i].score;
    }
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; ++i)
        squares += (p[i].score - mean) * (p[i].score - mean);
    const double deviation = sqrt(squares / (double)n);
    for (size_t i = 0; i < n && norm != GX_FUSION_PLAIN; ++i) {
        if (least == most)
            p[i].score = 0;
        else
            p[i].score =
                norm == GX_FUSION_MIN_MAX ? (p[i].score - least) / (most - least) : (p[i].score - mean) / deviation;
    }
}

static gx_status add_run(fusing *f, const gx_trec_table *t, uint32_t run, const char *qid, gx_error *err)
{
    const gx_trec_topic *topic = gx_trec_find(t, qid);
    const gx_fusion_options *o = f->opt;
    if (!topic)
        return GX_OK;
    gx_status st = gx_grow(&f->parts, &f->max_parts, f->n_parts + topic->n, sizeof *f->parts, err);
    if (st != GX_OK)
        return st;
    part *p = f->parts + f->n_parts;
    for (size_t i = 0; i < topic->n; ++i) {
        const gx_trec_row *row = &t->rows[topic->first + i];
        if (o->method == GX_FUSION_SUM && !isfinite(row->number))
            return gx_fail(err, GX_EINPUT, "run %u, line %u: a finite score is expected", run + 1, row->line);
        p[i] = (part){row->docno, run, row->line, row->number};
    }
    if (o->method == GX_FUSION_RRF)
        add_reciprocal_ranks(p, topic->n, o->k);
    else
        normalize(p, topic->n, o->norm);
    for (size_t i = 0; i < topic->n && o->weights; ++i)
        p[i].score *= o->weights[run];
    f->n_parts += topic->n;
    return GX_OK;
}

/* ---- queries ---- */

/* The rows of one query: sums over the runs, in their order. */
static gx_status add_rows(fusing *f, const char *qid, gx_error *err)
{
    gx_fused *out = f->out;
    const size_t first = out->n_rows;
    gx_status st = gx_grow(&out->rows, &f->max_rows, first + f->n_parts, sizeof *out->rows, err);
    if (st != GX_OK)
        return st;
    qsort(f->parts, f->n_parts, sizeof *f->parts, by_document);
    for (size_t i = 0; i < f->n_parts; ++i) {
        const part *p = &f->parts[i];
        if (i && strcmp(p[-1].docno, p->docno) == 0)
            out->rows[out->n_rows - 1].score += p->score;
        else
            out->rows[out->n_rows++] = (gx_fused_row){qid, p->docno, p->score};
    }
    qsort(out->rows + first, out->n_rows - first, sizeof *out->rows, by_score);
    if (out->n_rows - first > f->opt->most)
        out->n_rows = first + f->opt->most;
    return GX_OK;
}

/* The next qid of any run, behind `last`; at[n] are places in the runs' topics. NULL: there is none. */
static const char *next_qid(const gx_trec_table *runs, size_t n, size_t *at)
{
    const char *least = NULL;
    for (size_t i = 0; i < n; ++i) {
        const char *qid = at[i] < runs[i].n_topics ? runs[i].topics[at[i]].qid : NULL;
        if (qid && (!least || strcmp(qid, least) < 0))
            least = qid;
    }
    for (size_t i = 0; least && i < n; ++i)
        at[i] += at[i] < runs[i].n_topics && strcmp(runs[i].topics[at[i]].qid, least) == 0;
    return least;
}

static gx_status check_options(const gx_fusion_options *o, size_t n, gx_error *err)
{
    if (n == 0 || n > GX_MAX_FUSED_RUNS)
        return gx_fail(err, GX_EUSAGE, "%zu runs are to be fused; from 1 to %u are possible", n, GX_MAX_FUSED_RUNS);
    if (o->method != GX_FUSION_RRF && o->method != GX_FUSION_SUM)
        return gx_fail(err, GX_EUSAGE, "there is no method %d of fusion", (int)o->method);
    if ((unsigned)o->norm > GX_FUSION_Z_SCORE)
        return gx_fail(err, GX_EUSAGE, "there is no normalisation %d", (int)o->norm);
    if (!(isfinite(o->k) && o->k >= 0))
        return gx_fail(err, GX_EUSAGE, "k of reciprocal ranks is %g; a finite number of at least 0 is expected", o->k);
    if (o->most == 0)
        return gx_fail(err, GX_EUSAGE, "no result is asked for; ask for one at least");
    for (size_t i = 0; i < n && o->weights; ++i) {
        if (!isfinite(o->weights[i]))
            return gx_fail(err, GX_EUSAGE, "the weight of run %zu is %g; a finite number is expected", i + 1,
                           o->weights[i]);
    }
    return GX_OK;
}

gx_status gx_fuse(gx_fused *out, const gx_trec_table *runs, size_t n, const gx_fusion_options *given, gx_error *err)
{
    gx_fusion_options opt = GX_FUSION_OPTIONS;
    fusing f = {.opt = &opt, .out = out};
    const char *qid;
    *out = (gx_fused){0};
    gx_clear_error(err);
    gx_status st =
        gx_sized_read(&opt, sizeof opt, given, GX_SIZE_THROUGH(gx_fusion_options, weights), "gx_fusion_options", err);
    if (st == GX_OK)
        st = check_options(&opt, n, err);
    if (st != GX_OK)
        return st;
    size_t *at = calloc(n, sizeof *at);
    if (!at)
        st = gx_fail(err, GX_ENOMEM, "no memory to fuse %zu runs", n);
    while (st == GX_OK && (qid = next_qid(runs, n, at))) {
        f.n_parts = 0;
        for (size_t i = 0; i < n && st == GX_OK; ++i)
            st = add_run(&f, &runs[i], (uint32_t)i, qid, err);
        if (st == GX_OK)
            st = add_rows(&f, qid, err);
    }
    free(at);
    free(f.parts);
    if (st != GX_OK)
        gx_fused_free(out);
    return st;
}

void gx_fused_free(gx_fused *f)
{
    free(f->rows);
    *f = (gx_fused){0};
}
