#include "query/measures/trec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "engine/text/c_locale.h"
#include "index/corpus/input.h"

#define MAX_FIELDS 6

/* Read the whole file, decompressed, into the buffer of `in`, with a NUL behind it. `in` stays
 * open, because it owns the buffer. */
static gx_status slurp(gx_input *in, const char *path, gx_error *err)
{
    gx_status st = gx_input_open(in, path, err);
    while (st == GX_OK && !in->eof)
        st = gx_input_fill(in, err);
    if (st == GX_OK && in->nul_bytes)
        st = gx_fail(err, GX_EINPUT, "%s: it holds NUL bytes: not a text file?", path);
    return st;
}

/* Cut the line into fields in place. Return their number, at most MAX_FIELDS + 1. */
static unsigned split_fields(char *line, char *fields[MAX_FIELDS + 1])
{
    unsigned n = 0;
    for (char *p = line;;) {
        p += strspn(p, " \t\r\f\v");
        if (!*p || n > MAX_FIELDS)
            return n;
        fields[n++] = p;
        p += strcspn(p, " \t\r\f\v");
        if (*p)
            *p++ = 0;
    }
}

/* Parse a relevance or a score. false: the field is no such number, and *why says so. Scores are
 * floats, because trec_eval holds them as floats, and this decides which answers have equal
 * scores. */
static bool parse_value(float *out, double *number, const char *field, gx_trec_kind kind, const char **why)
{
    char *end;
    if (kind == GX_TREC_QRELS) {
        const long rel = strtol(field, &end, 10);
        *why = "is not an integer relevance";
        if (end == field || *end)
            return false;
        *why = "is out of range for a relevance";
        *out = (float)rel;
        *number = (double)rel;
        return rel >= -(1L << 24) && rel <= 1L << 24;
    }
    const double score = gx_strtod(field, &end);
    *why = "is not a score";
    *out = (float)score;
    *number = score;
    return end != field && !*end && !isnan(score);
}

static gx_status parse_line(gx_trec_row *row, char *line, uint32_t number, const char *path, gx_trec_kind kind,
                            bool beir, gx_error *err)
{
    char *fields[MAX_FIELDS + 1];
    const bool qrels = kind == GX_TREC_QRELS;
    const unsigned want = beir ? 3 : qrels ? 4 : 6, n = split_fields(line, fields);
    if (n != want)
        return gx_fail(err, GX_EINPUT, "%s:%u: %s%u field%s where a line of %s has %u: %s", path, number,
                       n > MAX_FIELDS ? "more than " : "", n > MAX_FIELDS ? MAX_FIELDS : n, n == 1 ? "" : "s",
                       qrels ? "qrels" : "a run", want,
                       beir    ? "query-id corpus-id score"
                       : qrels ? "qid iteration docno relevance"
                               : "qid Q0 docno rank score tag");
    const char *why, *value = fields[want == 6 ? 4 : want - 1];
    *row = (gx_trec_row){.qid = fields[0], .docno = fields[beir ? 1 : 2], .line = number};
    if (!parse_value(&row->value, &row->number, value, kind, &why))
        return gx_fail(err, GX_EINPUT, "%s:%u: \"%.40s\" %s", path, number, value, why);
    return GX_OK;
}

/* Does BEIR's head line stand at p? */
static bool is_beir_head(const char *p)
{
    static const char *const names[] = {"query-id", "corpus-id", "score"};
    for (unsigned i = 0; i < 3; ++i) {
        const size_t n = strlen(names[i]);
        if (strncmp(p, names[i], n) || (p[n] && !strchr(" \t\r", p[n])))
            return false;
        p += n;
        p += strspn(p, " \t\r");
    }
    return !*p;
}

static gx_status parse_rows(gx_trec_table *t, char *p, char *end, const char *path, gx_trec_kind kind, gx_error *err)
{
    size_t cap = 0;
    uint32_t number = 0;
    bool beir = false;
    while (p < end) {
        char *eol = memchr(p, '\n', (size_t)(end - p)), *next = eol ? eol + 1 : end;
        ++number;
        if (eol)
            *eol = 0;
        if (kind == GX_TREC_QRELS && !beir && !t->n_rows && is_beir_head(p)) {
            beir = true;
        } else if (p[strspn(p, " \t\r\f\v")]) {
            if (!gx_reserve(&t->rows, &cap, t->n_rows + 1, sizeof *t->rows))
                return gx_fail(err, GX_ENOMEM, "no memory for %zu lines of %s", t->n_rows + 1, path);
            const gx_status st = parse_line(&t->rows[t->n_rows], p, number, path, kind, beir, err);
            if (st != GX_OK)
                return st;
            ++t->n_rows;
        }
        p = next;
    }
    return GX_OK;
}

static int by_qid_then_docno(const void *pa, const void *pb)
{
    const gx_trec_row *a = pa, *b = pb;
    int c = strcmp(a->qid, b->qid);
    if (!c)
        c = strcmp(a->docno, b->docno);
    return c ? c : (a->line > b->line) - (a->line < b->line);
}

static gx_status group_topics(gx_trec_table *t, const char *path, gx_error *err)
{
    if (t->n_rows)
        qsort(t->rows, t->n_rows, sizeof *t->rows, by_qid_then_docno);
    for (size_t i = 0; i < t->n_rows; ++i) {
        const gx_trec_row *row = &t->rows[i], *before = row - 1;
        const bool new_topic = i == 0 || strcmp(before->qid, row->qid);
        if (!new_topic && !strcmp(before->docno, row->docno))
            return gx_fail(err, GX_EINPUT, "%s:%u: document %s is there twice for query %s (first in line %u)", path,
                           row->line, row->docno, row->qid, before->line);
        t->n_topics += new_topic;
    }
    t->topics = calloc(t->n_topics + 1, sizeof *t->topics);
    if (!t->topics)
        return gx_fail(err, GX_ENOMEM, "no memory for the %zu queries of %s", t->n_topics, path);
    gx_trec_topic *topic = t->topics - 1;
    for (size_t i = 0; i < t->n_rows; ++i) {
        if (i == 0 || strcmp(topic->qid, t->rows[i].qid))
            *++topic = (gx_trec_topic){t->rows[i].qid, i, 0};
        ++topic->n;
    }
    return GX_OK;
}

gx_status gx_trec_read(gx_trec_table *out, const char *path, gx_trec_kind kind, gx_error *err)
{
    gx_trec_table t = {0};
    gx_input in = GX_INPUT_INIT;
    gx_status st = slurp(&in, path, err);
    if (st == GX_OK)
        st = parse_rows(&t, in.buf + in.begin, in.buf + in.end, path, kind, err);
    t.text = in.buf; /* the rows point into it */
    in.buf = NULL;
    gx_input_free(&in);
    if (st == GX_OK)
        st = group_topics(&t, path, err);
    if (st != GX_OK) {
        gx_trec_free(&t);
        return st;
    }
    *out = t;
    return GX_OK;
}

void gx_trec_free(gx_trec_table *t)
{
    free(t->rows);
    free(t->topics);
    free(t->text);
    *t = (gx_trec_table){0};
}

static int topic_of_qid(const void *key, const void *topic)
{
    return strcmp(key, ((const gx_trec_topic *)topic)->qid);
}

const gx_trec_topic *gx_trec_find(const gx_trec_table *t, const char *qid)
{
    return t->n_topics ? bsearch(qid, t->topics, t->n_topics, sizeof *t->topics, topic_of_qid) : NULL;
}
