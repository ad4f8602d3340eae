#include "query/log/query_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hash.h"
#include "engine/status.h"
#include "engine/text/ascii.h"
#include "query/log/log_reader.h"

static const char *const form_names[] = {"guess",  "efficiency", "million", "tsv",     "lines", "jsonl",
                                         "topics", "docs",       "smart",   "vectors", "csr",   "csv"};
static const char *const encoding_names[] = {"auto", "utf-8", "latin1"};

bool gx_log_form_find(const char *name, gx_log_form *out)
{
    for (unsigned i = 0; i < GX_LOG_N_FORMS; ++i)
        if (!strcmp(name, form_names[i])) {
            *out = (gx_log_form)i;
            return true;
        }
    return false;
}

const char *gx_log_form_name(gx_log_form form)
{
    return form_names[form];
}

bool gx_log_encoding_find(const char *name, gx_log_encoding *out)
{
    for (unsigned i = 0; i < 3; ++i)
        if (!strcmp(name, encoding_names[i])) {
            *out = (gx_log_encoding)i;
            return true;
        }
    return false;
}

gx_status gx_log_refuse(gx_log *log, uint64_t line, const char *why, gx_error *err)
{
    ++log->counts.bad;
    return gx_fail(err, GX_EINPUT, "%s:%" PRIu64 ": %s", log->path, line, why);
}

gx_status gx_log_read_line(gx_log *log, char **line, size_t *n, bool *found, gx_error *err)
{
    log->line = log->in.line;
    gx_status st = gx_input_line(&log->in, line, n, found, err);
    log->counts.nuls = log->in.nul_bytes;
    if (st != GX_OK) {
        log->counts.bad += st == GX_EINPUT;
        return st;
    }
    if (!*found)
        return GX_OK;
    st = gx_log_convert(&log->utf8, *line, *n, log->encoding, &log->counts, err);
    *line = log->utf8.p;
    *n = log->utf8.n;
    return st;
}

/* ---- ids that have been ---- */

/* Put the hash where it belongs; true: it was there. */
static bool insert_hash(uint64_t *ids, unsigned bits, uint64_t hash)
{
    const size_t mask = ((size_t)1 << bits) - 1;
    size_t i = hash & mask;
    while (ids[i] && ids[i] != hash)
        i = (i + 1) & mask;
    const bool was_there = ids[i] != 0;
    ids[i] = hash;
    return was_there;
}

/* Count the query in repeated_ids if one of the first GX_LOG_KEPT_IDS had its id. */
static gx_status count_repeated_id(gx_log *log, const char *id, size_t n, gx_error *err)
{
    const unsigned bits = 17; /* at most half of the places are taken */
    if (log->form == GX_LOG_LINES)
        return GX_OK;
    if (!log->ids && !(log->ids = calloc((size_t)1 << bits, sizeof *log->ids)))
        return gx_fail(err, GX_ENOMEM, "no memory for the ids of queries");
    const uint64_t hash = gx_hash(id, n), mask = ((uint64_t)1 << bits) - 1;
    size_t i = hash & mask;
    while (log->ids[i] && log->ids[i] != hash)
        i = (i + 1) & mask;
    log->counts.repeated_ids += log->ids[i] != 0;
    if (log->counts.queries < GX_LOG_KEPT_IDS)
        log->ids[i] = hash;
    return GX_OK;
}

static gx_status remember_id(gx_log *log, const char *id, size_t n, bool *seen, gx_error *err)
{
    const uint64_t hash = gx_hash(id, n);
    if (!log->ids || log->counts.queries >= (uint64_t)1 << (log->id_bits - 1)) {
        const unsigned bits = log->ids ? log->id_bits + 1 : 10;
        uint64_t *grown = calloc((size_t)1 << bits, sizeof *grown);
        if (!grown)
            return gx_fail(err, GX_ENOMEM, "no memory for the ids of %" PRIu64 " queries", log->counts.queries);
        for (size_t i = 0; log->ids && i < (size_t)1 << log->id_bits; ++i)
            if (log->ids[i])
                insert_hash(grown, bits, log->ids[i]);
        free(log->ids);
        log->ids = grown;
        log->id_bits = bits;
    }
    *seen = hash ? insert_hash(log->ids, log->id_bits, hash) : log->has_zero_id;
    log->has_zero_id |= hash == 0;
    return GX_OK;
}

/* ---- queries ---- */

/* Refuse an id that no run may hold. */
static gx_status check_id(gx_log *log, const char *id, size_t id_len, uint64_t line, gx_error *err)
{
    if (id_len == 0)
        return gx_log_refuse(log, line, "the query's id is empty", err);
    if (id_len > GX_LOG_MAX_ID)
        return gx_log_refuse(log, line, "the query's id has more than 255 bytes", err);
    for (size_t i = 0; i < id_len; ++i)
        if (gx_is_space(id[i]))
            return gx_log_refuse(log, line, "white space in the query's id", err);
    return GX_OK;
}

gx_status gx_log_emit(gx_log *log, gx_log_query *q, const gx_log_query *parsed, gx_error *err)
{
    char position[24];
    const bool counted = log->number || !parsed->id;
    const char *const id = counted ? position : parsed->id;
    const uint64_t line = parsed->line, before = log->counts.queries + log->counts.bad;
    const size_t id_len =
        counted ? (size_t)snprintf(position, sizeof position, "%" PRIu64, before + 1) : parsed->id_len;
    bool seen = false;
    gx_status st = counted ? GX_OK : check_id(log, id, id_len, line, err);
    if (st != GX_OK)
        return st;
    st = id == log->id.p ? GX_OK : gx_log_assign(&log->id, id, id_len, err);
    if (st == GX_OK && !counted)
        st = log->unique ? remember_id(log, id, id_len, &seen, err) : count_repeated_id(log, id, id_len, err);
    if (st != GX_OK)
        return st;
    if (seen)
        return gx_log_refuse(log, line, "an earlier query has the same id", err);
    ++log->counts.queries;
    if (!parsed->terms) {
        size_t begin, end;
        log->counts.operators += gx_plain_operator(parsed->text, parsed->len, &begin, &end);
    }
    log->counts.empty += parsed->terms ? parsed->n_terms == 0 : strspn(parsed->text, " \t\r\n\f\v") == parsed->len;
    *q = *parsed;
    q->id = log->id.p;
    q->id_len = id_len;
    if (log->filter.n && strspn(log->filter.p, " \t\r\n\f\v") < log->filter.n) {
        q->filter = log->filter.p;
        q->filter_len = log->filter.n;
        ++log->counts.filtered;
    }
    return GX_OK;
}

gx_status gx_log_emit_numbered(gx_log *log, gx_log_query *q, const char *text, size_t len, gx_error *err)
{
    char id[24];
    const int n = snprintf(id, sizeof id, "%" PRIu64, log->line);
    return gx_log_emit(log, q, &(gx_log_query){id, text, (size_t)n, len, log->line}, err);
}

/* ---- docs, smart, vectors and csr: the corpora's readers ---- */

static gx_status open_documents(gx_log *log, gx_error *err)
{
    const gx_source_options opt = {.size = sizeof opt,
                                   .format = log->form == GX_LOG_DOCS      ? GX_SOURCE_TRECTEXT
                                             : log->form == GX_LOG_SMART   ? GX_SOURCE_SMART
                                             : log->form == GX_LOG_VECTORS ? GX_SOURCE_VECTORS
                                                                           : GX_SOURCE_CSR,
                                   .else_latin1 = log->encoding != GX_LOG_UTF8,
                                   .members = log->form == GX_LOG_VECTORS ? log->json_members : NULL};
    const char *const *paths = (const char *const *)&log->path; /* the source keeps the array */
    return log->form == GX_LOG_CSR ? gx_source_open(&log->source, paths, 1, &opt, err)
                                   : gx_source_open_input(&log->source, &log->in, &opt, err);
}

/* A document's vector as a query. */
static gx_status emit_vector(gx_log *log, gx_log_query *q, const gx_source_document *d, gx_error *err)
{
    static const gx_weighted_term none;
    const gx_log_query parsed = {.id = d->doc.id,
                                 .text = "",
                                 .id_len = d->doc.id_len,
                                 .line = d->line,
                                 .terms = d->doc.vector ? d->doc.vector : &none,
                                 .n_terms = d->doc.n_vector};
    return gx_log_emit(log, q, &parsed, err);
}

static gx_status next_document(gx_log *log, gx_log_query *q, bool *more, gx_error *err)
{
    const gx_source_document *d;
    gx_status st = gx_source_next(log->source, &d, err);
    const gx_source_counts in = gx_source_get_counts(log->source);
    log->counts.latin1 = in.latin1;
    log->counts.invalid = in.replaced;
    log->counts.nuls = in.nul_bytes;
    log->counts.bad += st == GX_EINPUT;
    *more = st != GX_OK || d;
    if (st != GX_OK || !d)
        return st;
    if (log->form == GX_LOG_VECTORS || log->form == GX_LOG_CSR)
        return emit_vector(log, q, d, err);
    st = gx_log_assign(&log->title, d->doc.title, d->doc.title_len, err);
    if (st == GX_OK && log->title.n)
        st = gx_log_append(&log->title, " ", 1, err);
    if (st == GX_OK)
        st = gx_log_append(&log->title, d->doc.text, d->doc.text_len, err);
    char *p = log->title.p;
    for (size_t i = 0; st == GX_OK && i < log->title.n; ++i)
        if (p[i] == '\n' || p[i] == '\r' || p[i] == '\t')
            p[i] = ' ';
    return st ? st : gx_log_emit(log, q, &(gx_log_query){d->doc.id, p, d->doc.id_len, log->title.n, d->line}, err);
}

/* ---- the log ---- */

/* All that is done before the first query is read. */
static gx_status begin_log(gx_log *log, const gx_log_options *opt, gx_error *err)
{
    gx_status st = gx_log_parse_columns(log, opt->columns, err);
    if (st == GX_OK)
        st = gx_log_parse_topic_fields(log, opt->topic_fields, err);
    if (st == GX_OK && opt->members && !(log->json_members = strdup(opt->members)))
        st = gx_fail(err, GX_ENOMEM, "no memory to read %s", log->path);
    if (log->form == GX_LOG_GUESS && strcmp(log->path, "-") != 0 && gx_csr_is_matrix(log->path))
        log->form = GX_LOG_CSR;
    if (log->form == GX_LOG_GUESS && opt->members)
        log->form = GX_LOG_VECTORS;
    if (log->form == GX_LOG_GUESS && gx_log_is_csv_name(log->path))
        log->form = GX_LOG_CSV;
    if (st == GX_OK && log->form == GX_LOG_CSR && !opt->columns) /* it is binary, and not read by lines */
        return open_documents(log, err);
    if (st == GX_OK)
        st = gx_input_open(&log->in, log->path, err);
    if (st == GX_OK && log->form == GX_LOG_GUESS)
        st = gx_log_guess_form(log, err);
    if (st == GX_OK && opt->columns && log->form != GX_LOG_TSV && log->form != GX_LOG_CSV)
        st = gx_fail(err, GX_EUSAGE, "%s: columns mean nothing to a log of the form %s; tsv and csv have them",
                     log->path, gx_log_form_name(log->form));
    if (st == GX_OK)
        st = gx_log_refuse_binary(log, err);
    if (st == GX_OK && (log->form == GX_LOG_DOCS || log->form == GX_LOG_SMART || log->form == GX_LOG_VECTORS))
        st = open_documents(log, err);
    return st;
}

gx_status gx_log_open(gx_log **out, const char *path, const gx_log_options *opt, gx_error *err)
{
    const gx_log_options usual = {0};
    *out = NULL;
    gx_log *log = calloc(1, sizeof *log);
    if (!log || !(log->path = strdup(path))) {
        free(log);
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", path);
    }
    opt = opt ? opt : &usual;
    log->in = GX_INPUT_INIT;
    log->in.max_record = GX_LOG_MAX_LINE;
    log->form = opt->form;
    log->encoding = opt->encoding;
    log->unique = opt->unique;
    log->number = opt->number;
    const gx_status st = begin_log(log, opt, err);
    if (st != GX_OK) {
        gx_log_close(log);
        return st;
    }
    *out = log;
    return GX_OK;
}

void gx_log_close(gx_log *log)
{
    if (!log)
        return;
    gx_source_close(log->source);
    gx_input_free(&log->in);
    for (unsigned f = 0; f < GX_LOG_N_FIELDS; ++f)
        free(log->fields[f].p);
    free(log->ids);
    free(log->utf8.p);
    free(log->id.p);
    free(log->title.p);
    free(log->filter.p);
    json_decref(log->vector);
    free(log->terms);
    free(log->json_members);
    free(log->path);
    free(log);
}

gx_status gx_log_next(gx_log *log, gx_log_query *q, bool *more, gx_error *err)
{
    char *line;
    size_t n;
    bool half = false;
    *more = true;
    if (log->source)
        return next_document(log, q, more, err);
    if (log->form == GX_LOG_TOPICS)
        return gx_log_next_topic(log, q, more, err);
    if (log->form == GX_LOG_CSV)
        return gx_log_next_record(log, q, more, err);
    for (;;) {
        const gx_status st = gx_log_read_line(log, &line, &n, more, err);
        if (st != GX_OK || !*more)
            return st;
        if (log->form == GX_LOG_TSV)
            gx_log_split_tabs(log, line, n);
        if (!*gx_log_skip_blanks(line)) {
            ++log->counts.blank;
        } else if (log->form == GX_LOG_TSV && !log->began && gx_log_read_header(log, &half)) {
            log->began = true;
            log->counts.header = 1;
        } else if (half && !log->n_columns) {
            return gx_log_refuse_half(log, err);
        } else if (gx_log_is_comment(log->form, line)) {
            ++log->counts.comments;
        } else {
            break;
        }
    }
    log->began = true;
    switch (log->form) {
    case GX_LOG_EFFICIENCY:
        return gx_log_parse_keyed(log, q, line, n, err);
    case GX_LOG_MILLION:
        return gx_log_parse_prioritized(log, q, line, n, err);
    case GX_LOG_TSV:
        return gx_log_parse_tabbed(log, q, err);
    case GX_LOG_JSONL:
        return gx_log_parse_object(log, q, line, n, err);
    default:
        return gx_log_emit_numbered(log, q, line, n, err);
    }
}

gx_log_form gx_log_get_form(const gx_log *log)
{
    return log->form;
}

gx_log_counts gx_log_get_counts(const gx_log *log)
{
    return log->counts;
}
