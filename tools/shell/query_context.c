#include "tools/shell/query_context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/progress.h"
#include "tools/shell/pager.h"

static int open_session(gx_engine **en, gx_session **session, const gx_index *ix, const gx_engine_options *options)
{
    gx_error err = {0};
    int code = cli_open_engine(en, ix, options);
    if (code == 0 && gx_session_open(session, *en, &err)) {
        code = cli_fail_error(&err);
        gx_engine_close(*en);
        *en = NULL;
    }
    return code;
}

static void close_service(ask *k)
{
    gx_service_close(k->service);
    hybrid_close(&k->both);
    k->service = NULL;
}

static int open_service(ask *k, const cli_args *a, const char *path)
{
    gx_error err = {0};
    if (gx_index_n_parts(k->ix)) /* each query would open its last commit on a GPU anew */
        return cli_fail(GX_EUSAGE,
                        "--engine=hybrid: %s is a collection; search it on one engine, or make it one index file by "
                        "`gpuidx recode`",
                        path);
    const int code = hybrid_open(&k->both, a, path, k->ix, k->en);
    if (code)
        return code;
    return gx_service_open(&k->service, &k->both.options, &err) ? cli_fail_error(&err) : 0;
}

/* Whether the format shows how many documents match. */
static bool has_counts(const ask *k)
{
    return k->format == OUT_HUMAN || k->format == OUT_JSONL;
}

static int set_page(ask *k, const cli_args *a)
{
    k->page.end.size = sizeof k->page.end;
    k->page.offset = cli_count(a, "offset");
    k->page.shown = cli_switch(a, "cursor") || cli_text(a, "after");
    if (cli_text(a, "after") && !(k->page.after = strdup(cli_text(a, "after"))))
        return cli_fail(GX_ENOMEM, "no memory for a cursor");
    if (k->page.after && !*k->page.after)
        return cli_usage(a, "--after: a cursor is expected, which --cursor prints");
    const int code = ask_set_sort(k, cli_text(a, "sort"));
    return code ? code : ask_set_collapse(k, cli_text(a, "collapse"));
}

/* What the format has no place for. */
static int check_format(const ask *k, const cli_args *a)
{
    const bool lines = k->format == OUT_TREC || k->format == OUT_TSV;
    if (k->explain && k->format != OUT_HUMAN && k->format != OUT_JSONL)
        return cli_usage(a, "--explain: the format %s has no place for it; human and jsonl do", cli_text(a, "format"));
    if (k->shown.n && lines)
        return cli_usage(a, "--show: the format %s has no place for values; human, jsonl and csv do",
                         cli_text(a, "format"));
    if (k->page.collapse && lines && strchr(k->page.collapse, ':'))
        return cli_usage(a,
                         "--collapse: the format %s has a place for one document of a group; leave out the number "
                         "of them, or take human, jsonl or csv",
                         cli_text(a, "format"));
    if (k->facets.n && !has_counts(k))
        return cli_usage(a, "--%s: the format %s has no place for counts; human and jsonl do",
                         k->facets.text ? "facet" : "sums", cli_text(a, "format"));
    return 0;
}

int ask_open(ask *k, const cli_args *a, const char *path)
{
    int code;
    gx_error err = {0};
    *k = (ask){
        .engine = cli_engine_options(a),
        .options = cli_query_options(a),
        .kind = cli_query_kind(cli_choice(a, "syntax")),
        .ids = {sizeof(gx_filter_options), document_filter_read_ids, &k->ix},
        .id_files = cli_switch(a, "allow-id-files"),
        .format = (out_format)cli_choice(a, "format"),
        .explain = cli_switch(a, "explain"),
        .snippets = cli_choice(a, "snippets") == 0,
        .timing = true,
        .tag = cli_text(a, "run-tag"),
        .deadline = cli_given(a, "deadline") ? 1e-3 * cli_number(a, "deadline") : 0,
        .skip = cli_choice(a, "on-error") == 1,
    };
    if ((code = cli_add_approximate(&k->options, a)) || (code = cli_add_prior(&k->options, a)) ||
        (code = cli_add_sdm(&k->options, a)) || (code = cli_add_devices(&k->engine, a)) ||
        (code = cli_add_residency(&k->engine, a)) || (code = cli_open_index(&k->ix, a, path)) ||
        (code = open_session(&k->en, &k->session, k->ix, &k->engine)) || (code = cli_warm(k->en, a)) ||
        (code = ask_set_filter(k, cli_text(a, "only"), cli_text(a, "not"), cli_text(a, "filter"))) ||
        (code = ask_set_facets(k, cli_text(a, "facet"), cli_text(a, "sums"))) ||
        (code = ask_set_shown(k, cli_text(a, "show"))) || (code = set_page(k, a)))
        return code;
    if (hybrid_is_asked(a) && (code = open_service(k, a, path)))
        return code;
    cli_tell_ignored(a, k->both.gpu || gx_engine_get_kind(k->en) == GX_ENGINE_GPU);
    cli_settle_approximate(&k->options, k->en);
    cli_default_scorer(&k->options, a, k->ix);
    if ((code = cli_add_synonyms(&k->options, a, k->ix)) || (code = cli_rm3(&k->rm3, a, k->ix)))
        return code;
    if (k->options.prior.weight != 0 && gx_prior_check(&k->options.prior, k->ix, &err))
        return cli_fail_error(&err);
    if (k->options.prior.weight != 0 && k->both.gpu)
        return cli_usage(a, "--prior: a service of both engines has none; leave out --engine=hybrid");
    if (gx_sdm_check(&k->options, k->ix, &err))
        return cli_fail_error(&err);
    if ((code = check_format(k, a)))
        return code;
    ask_note_large_k(k);
    return 0;
}

void ask_note_large_k(const ask *k)
{
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_quick_stats(k->ix, &stats);
    if (k->options.k > stats.n_documents && k->options.k != ((gx_query_options)GX_QUERY_OPTIONS).k)
        cli_note("k is %u: the index holds %u document%s, so there are never more results than that", k->options.k,
                 stats.n_docs, plural(stats.n_docs));
}

static void forget_page_end(ask *k)
{
    free(k->page.end.next);
    gx_groups_free(k->page.end.groups);
    k->page.end = (gx_page_end){.size = sizeof k->page.end};
}

void ask_close(ask *k)
{
    close_service(k);
    gx_session_close(k->session);
    gx_mask_close(k->mask);
    gx_engine_close(k->en);
    gx_index_close(k->ix);
    document_filter_free(&k->filter);
    facet_list_free(&k->facets);
    shown_list_free(&k->shown);
    forget_page_end(k);
    free(k->page.sort);
    free(k->page.collapse);
    free(k->page.after);
    free(k->docids);
    free(k->scores);
    free(k->last);
    vector_query_free(&k->vector);
    free(k->expanded);
    *k = (ask){0};
}

int ask_set_engine(ask *k, gx_engine_kind kind)
{
    gx_engine_options options = k->engine;
    gx_engine *en = NULL;
    gx_session *session = NULL;
    gx_mask *mask = NULL;
    options.kind = kind;
    int code = open_session(&en, &session, k->ix, &options);
    if (code == 0 && (code = document_filter_open_mask(&mask, &k->filter, en))) {
        gx_session_close(session);
        gx_engine_close(en);
    }
    if (code)
        return code;
    close_service(k);
    gx_session_close(k->session);
    gx_mask_close(k->mask);
    gx_engine_close(k->en);
    k->session = session;
    k->en = en;
    k->options.mask = k->mask = mask;
    k->engine = options;
    cli_settle_approximate(&k->options, en);
    return 0;
}

int ask_set_filter(ask *k, const char *only, const char *except, const char *expression)
{
    document_filter filter;
    gx_mask *mask = NULL;
    int code = document_filter_read(&filter, k->ix, only, except, expression);
    if (code == 0)
        code = document_filter_open_mask(&mask, &filter, k->en);
    if (code) {
        document_filter_free(&filter);
        return code;
    }
    gx_mask_close(k->mask);
    document_filter_free(&k->filter);
    k->filter = filter;
    k->options.mask = k->mask = mask;
    return 0;
}

int ask_set_facets(ask *k, const char *text, const char *sums)
{
    gx_error err = {0};
    facet_list facets;
    if (facet_list_read(&facets, k->ix, text, sums, &err))
        return cli_fail_error(&err);
    facet_list_free(&k->facets);
    k->facets = facets;
    return 0;
}

int ask_set_shown(ask *k, const char *text)
{
    gx_error err = {0};
    shown_list shown;
    if (shown_list_read(&shown, k->ix, text, &err))
        return cli_fail(err.status, "--show: %s", err.text);
    shown_list_free(&k->shown);
    k->shown = shown;
    return 0;
}

int ask_set_sort(ask *k, const char *text)
{
    gx_error err = {0};
    gx_page page;
    gx_page_init(&page, sizeof page);
    page.sort = text;
    page.sort_len = text ? strlen(text) : 0;
    if (text && !*text)
        return cli_fail(GX_EUSAGE, "--sort: the name of an attribute is expected");
    if (gx_page_check(k->ix, &page, &err))
        return cli_fail(err.status, "--%s", err.text);
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        return cli_fail(GX_ENOMEM, "no memory for an order");
    free(k->page.sort);
    k->page.sort = copy;
    return 0;
}

int ask_set_collapse(ask *k, const char *text)
{
    gx_error err = {0};
    gx_page page;
    gx_page_init(&page, sizeof page);
    page.collapse = text;
    page.collapse_len = text ? strlen(text) : 0;
    if (text && !*text)
        return cli_fail(GX_EUSAGE, "--collapse: the name of an attribute is expected");
    if (gx_page_check(k->ix, &page, &err))
        return cli_fail(err.status, "--%s", err.text);
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        return cli_fail(GX_ENOMEM, "no memory for groups");
    free(k->page.collapse);
    k->page.collapse = copy;
    return 0;
}

int ask_next(ask *k)
{
    char *after = k->page.end.next, *const before = k->page.after, *last = k->last ? strdup(k->last) : NULL;
    const uint64_t offset = k->page.offset;
    const size_t len = k->last_len;
    uint32_t n_hits = 0;
    if (!after || !last) {
        free(last);
        cli_note("there is no page before this one: ask a query first");
        return 0;
    }
    k->page.end.next = NULL;
    k->page.after = after;
    k->page.offset = 0;
    const int code = ask_query(k, "1", 1, last, len, &n_hits);
    k->page.after = before;
    k->page.offset = offset;
    if (code == 0 && n_hits == 0)
        cli_note("there are no more results");
    free(after);
    free(last);
    return code;
}

const char *ask_engine_name(const ask *k)
{
    const bool gpu = k->service ? k->by == GX_PROCESSOR_GPU : gx_engine_get_kind(k->en) == GX_ENGINE_GPU;
    return gpu ? "gpu" : "cpu";
}

/* Make room for the results of one query, and for at least one. A query has no more results than
 * the index has documents. */
static int reserve(ask *k, uint32_t n)
{
    n = n ? n : 1;
    if (n <= k->max_k)
        return 0;
    uint64_t *docids = realloc(k->docids, n * sizeof *docids);
    if (docids)
        k->docids = docids;
    double *scores = realloc(k->scores, n * sizeof *scores);
    if (scores)
        k->scores = scores;
    if (!docids || !scores)
        return cli_fail(GX_ENOMEM, "no memory for %u results; ask for fewer with -k", n);
    k->max_k = n;
    return 0;
}

static bool is_blank(const char *text, size_t len)
{
    for (size_t i = 0; i < len; ++i)
        if ((unsigned char)text[i] > ' ')
            return false;
    return true;
}

/* A query without words is one of all documents; but an empty line of standard input finds nothing. */
static gx_query_kind kind_of(const ask *k, const char *text, size_t len)
{
    return !k->line && is_blank(text, len) ? GX_QUERY_ALL : k->kind;
}

static int keep_last(ask *k, const char *text, size_t len)
{
    char *last = malloc(len + 1);
    if (!last)
        return cli_fail(GX_ENOMEM, "no memory for a query of %zu bytes", len);
    memcpy(last, text, len);
    last[len] = 0;
    free(k->expanded);
    k->expanded = NULL;
    free(k->last);
    k->last = last;
    k->last_len = len;
    k->last_kind = k->vector.terms ? GX_QUERY_TERMS : kind_of(k, text, len);
    return 0;
}

/* Tell of a word that stands for several if it does so for none, or for more than are searched. */
static void say_what_matches(const gx_highlighter *h, uint32_t i)
{
    gx_text pattern = {0};
    const gx_expansion *e = gx_highlighter_pattern(h, i, &pattern);
    const int len = pattern.len < 80 ? (int)pattern.len : 80;
    if (e->n_matched == 0)
        cli_note("%.*s stands for no word of the index", len, pattern.len ? pattern.bytes : "");
    else if (e->n_matched > e->n)
        cli_note("%.*s stands for %s words, of which %s in most documents %s searched for; see --max-expansions", len,
                 pattern.len ? pattern.bytes : "", show_count(e->n_matched), e->n == 1 ? "the one" : show_count(e->n),
                 e->n == 1 ? "is" : "are");
    free(pattern.bytes);
}

/* Tell of a word that no document has, and which ones may be meant. */
static void say_what_is_unknown(const gx_highlighter *h, uint32_t i)
{
    gx_expansion *e = NULL;
    char words[200] = "";
    size_t n = 0;
    if (gx_highlighter_suggest(&e, h, i, 3, NULL) == GX_OK) {
        for (uint32_t j = 0; j < e->n && n + e->words[j].len + 20 < sizeof words; ++j)
            n +=
                (size_t)snprintf(words + n, sizeof words - n, "%s'%s'", j ? ", " : "; did you mean ", e->words[j].word);
    }
    gx_expansion_free(e);
    cli_note("'%s' occurs in no document%s%s", gx_highlighter_unknown(h, i), words, n ? "?" : "");
}

/* Tell the parts of the query that could not be searched for, which a person may not notice. */
static void say_what_is_lost(const ask *k, const gx_highlighter *h, const char *text, size_t len, uint32_t n_hits)
{
    if (k->format != OUT_HUMAN)
        return;
    if (gx_highlighter_n_terms(h) == 0 && n_hits == 0 && kind_of(k, text, len) != GX_QUERY_ALL) {
        cli_note(is_blank(text, len)
                     ? "the query is empty: there is nothing to search for"
                     : "nothing is left of the query after analysis (stop words and punctuation do not count)");
        return; /* a query of conditions has matches without terms */
    }
    for (uint32_t i = 0; i < gx_highlighter_n_patterns(h) && i < 8; ++i)
        say_what_matches(h, i);
    for (uint32_t i = 0; i < gx_highlighter_n_unknown(h) && i < 8; ++i)
        say_what_is_unknown(h, i);
    if (gx_highlighter_n_unknown(h) > 8)
        cli_note("nor do %u other words", gx_highlighter_n_unknown(h) - 8);
}

/* The last query as it is searched: with its terms added where RM3 expands it. */
static gx_query last_query(const ask *k)
{
    gx_query q = {
        .size = sizeof q, .kind = k->last_kind, .text = k->last, .len = k->last_len, .filter_options = &k->ids};
    if (k->vector.terms) {
        q.terms = k->vector.terms;
        q.n_terms = k->vector.n;
    }
    if (k->expanded) {
        q.kind = GX_QUERY_TERMS;
        q.terms = k->expanded;
        q.n_terms = k->n_expanded;
    }
    return q;
}

static int explain_hits(const ask *k, uint32_t n, gx_explanation **out)
{
    gx_error err = {0};
    const gx_query query = last_query(k);
    gx_explanation *e = calloc(n + 1, sizeof *e);
    if (!e)
        return cli_fail(GX_ENOMEM, "no memory to explain %u results", n);
    *out = e;
    for (uint32_t i = 0; i < n; ++i)
        if (gx_explain(&e[i], k->ix, &query, &k->options, k->docids[i], &err))
            return cli_fail_error(&err);
    return 0;
}

static bool has_snippets(const ask *k)
{
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_quick_stats(k->ix, &stats);
    return k->snippets && stats.texts;
}

static int print(ask *k, out_answer *answer)
{
    gx_error err = {0};
    gx_explanation *explanations = NULL;
    int code = 0;
    if (k->explain && (code = explain_hits(k, answer->found.n_hits, &explanations)) == 0)
        answer->found.explanations = explanations;
    if (code == 0 && k->format == OUT_HUMAN && k->name_queries) {
        fprintf(stdout, "%s%s", k->n_asked > 1 ? "\n" : "", cli_paint(stdout, CLI_UNDERLINE));
        out_put_clean(stdout, answer->found.query, answer->found.query_len);
        fprintf(stdout, "%s\n", cli_paint(stdout, CLI_PLAIN));
    }
    /* a result takes a line, four with its snippet, an explanation five: about */
    pager p = code == 0 && k->format == OUT_HUMAN
                  ? pager_begin((uint64_t)answer->found.n_hits * (k->explain        ? 5
                                                                  : has_snippets(k) ? 4
                                                                                    : 1) +
                                2)
                  : (pager){0};
    if (code == 0 && out_put_answer(stdout, k->format, answer, &err))
        code = cli_fail_error(&err);
    pager_end(&p);
    cli_flush(); /* whoever asks through a pipe may wait for it */
    for (uint32_t i = 0; explanations && i < answer->found.n_hits; ++i)
        gx_explanation_free(&explanations[i]);
    free(explanations);
    return code;
}

/* The answer of a query that has none, for a program that waits for one. */
static void put_refused(const char *qid, size_t qid_len, const char *text, size_t len, const char *why)
{
    fputs("{\"schema\":1,\"qid\":", stdout);
    out_put_json(stdout, qid, qid_len);
    fputs(",\"query\":", stdout);
    out_put_json(stdout, text, len);
    fputs(",\"error\":", stdout);
    out_put_json(stdout, why, strlen(why));
    puts("}");
    cli_flush();
}

int ask_refuse_line(const ask *k, const gx_query *asked, const char *qid, size_t qid_len, const gx_error *err)
{
    const unsigned long long line = k->line;
    const gx_status st = err->status == GX_EUSAGE ? GX_EINPUT : err->status; /* which it is in a line of input */
    if (!k->skip || (st != GX_EINPUT && st != GX_EDEADLINE))
        return cli_fail(st, "standard input:%llu: %s%s", line, err->text, cli_advice(err));
    cli_warn("standard input:%llu: %s%s; skipped", line, err->text, cli_advice(err));
    if (k->format == OUT_JSONL)
        put_refused(qid, qid_len, asked->text, asked->len, err->text);
    return 0;
}

/* Tell that a query cannot be answered. */
static int refuse(const ask *k, const gx_query *asked, const char *qid, size_t qid_len, gx_error *err)
{
    if (err->status == GX_EDEADLINE)
        snprintf(err->text, sizeof err->text, "the query took longer than the %g ms of --deadline", 1e3 * k->deadline);
    return k->line ? ask_refuse_line(k, asked, qid, qid_len, err) : cli_fail_error(err);
}

/* Expand the last query, where that is asked for. */
static gx_status expand(ask *k, const gx_query_options *options, gx_error *err)
{
    if (!k->rm3.fb_docs || k->last_kind == GX_QUERY_ALL)
        return GX_OK;
    const gx_query query = last_query(k);
    return gx_rm3_expand(&k->expanded, &k->n_expanded, k->session, k->ix, &query, options, &k->rm3, err);
}

/* The last commit cannot be opened: the old one stays in use. The reason is told once. */
static void keep_old(ask *k, const char *why)
{
    if (!k->keeps_old)
        cli_warn("%s. The commit that is open, %llu, stays in use", why, (unsigned long long)gx_index_commit(k->ix));
    k->keeps_old = true;
}

/* Switch to the last commit of a collection that others change. Where there is none for a moment, or it
 * cannot be opened, the old commit stays in use. */
static int reload(ask *k)
{
    gx_error err = {0};
    gx_index *ix = NULL;
    gx_engine *en = NULL;
    gx_session *session = NULL;
    gx_mask *mask = NULL;
    document_filter filter = {0};
    const gx_index_options light = {.size = sizeof light, .check = GX_CHECK_STRUCTURE};
    if (gx_index_n_parts(k->ix) == 0)
        return 0;
    if (gx_index_reopen(&ix, k->ix, &light, &err))
        keep_old(k, err.text);
    else
        k->keeps_old = false;
    if (!ix)
        return 0;
    int code = 0;
    if (gx_engine_reopen(&en, k->en, ix, &err) || gx_session_open(&session, en, &err)) {
        keep_old(k, err.text);
        gx_session_close(session);
        gx_engine_close(en);
        gx_index_close(ix);
        return 0;
    }
    if (code == 0)
        code = document_filter_read(&filter, ix, k->filter.only, k->filter.except, k->filter.expression);
    if (code == 0)
        code = document_filter_open_mask(&mask, &filter, en);
    ask old = *k;
    if (code == 0) {
        k->ix = ix;
        k->en = en;
        k->session = session;
        k->filter = filter;
        k->options.mask = k->mask = mask;
    } else {
        old = (ask){.ix = ix, .en = en, .session = session, .filter = filter, .mask = mask};
    }
    gx_session_close(old.session);
    gx_mask_close(old.mask);
    gx_engine_close(old.en);
    gx_index_close(old.ix);
    document_filter_free(&old.filter);
    return code;
}

/* Answer by the service; what it does not count is counted by the session. */
static gx_status search_by_service(ask *k, const gx_query *query, const gx_query_options *options,
                                   const gx_results *results, gx_error *err)
{
    gx_ticket *ticket;
    gx_service_answer answer;
    gx_submission sub = GX_SUBMISSION(query, 1, options);
    sub.tickets = &ticket;
    gx_status st = options->count ? gx_search(k->session, query, 1, options, results, err) : GX_OK;
    if (st == GX_OK)
        st = gx_service_submit(k->service, &sub, NULL, err);
    if (st != GX_OK)
        return st;
    if (gx_ticket_wait(ticket, options->seconds > 0 ? options->seconds : -1, &answer)) {
        gx_ticket_close(ticket);
        return err->status = GX_EDEADLINE; /* the caller has the words */
    }
    k->by = answer.by;
    if ((st = answer.status) != GX_OK) {
        err->status = st;
        snprintf(err->text, sizeof err->text, "%s", answer.error);
    } else {
        *results->n_hits = answer.n_hits;
        for (uint32_t i = 0; i < answer.n_hits; ++i)
            results->docids64[i] = answer.docids64 ? answer.docids64[i] : answer.docids[i];
        memcpy(results->exact_scores, answer.scores, answer.n_hits * sizeof *results->exact_scores);
    }
    gx_ticket_close(ticket);
    return st;
}

/* Whether more is asked than the best results. */
static bool is_paged(const ask *k)
{
    return k->page.sort || k->page.collapse || k->page.offset || k->page.after || k->page.shown ||
           k->page.kept;
}

static gx_status search_page(ask *k, const gx_query *query, const gx_query_options *options, const gx_results *results,
                             gx_error *err)
{
    const char *const filters[3] = {k->filter.only, k->filter.except, k->filter.expression};
    gx_page page;
    gx_text scope = {0}; /* the filters are a mask, which a cursor does not know */
    for (int i = 0; i < 3; ++i)
        gx_text_add(&scope, filters[i] ? filters[i] : "", filters[i] ? strlen(filters[i]) + 1 : 0);
    gx_page_init(&page, sizeof page);
    page.sort = k->page.sort;
    page.sort_len = k->page.sort ? strlen(k->page.sort) : 0;
    page.collapse = k->page.collapse;
    page.collapse_len = k->page.collapse ? strlen(k->page.collapse) : 0;
    page.offset = k->page.offset;
    page.after = k->page.after;
    page.after_len = k->page.after ? strlen(k->page.after) : 0;
    page.scope = scope.bytes;
    page.scope_len = scope.len;
    forget_page_end(k);
    k->by = GX_PROCESSOR_CPU;
    const gx_status st = gx_search_page(k->session, query, 1, options, &page, results, &k->page.end, err);
    free(scope.bytes);
    if (st == GX_OK && k->page.end.moved)
        cli_note("the collection has changed since the cursor was made: the page is one of its last commit");
    return st;
}

/* Give a call of the library what is left of the time for the query; with none left, next to nothing. */
static void limit(gx_query_options *options, double end)
{
    const double left = end - progress_clock();
    if (end > 0)
        options->seconds = left > 1e-9 ? left : 1e-9;
}

/* What a search has found beside its hits. */
typedef struct findings {
    bool rich, faceted; /* matches are counted, words marked; facets are counted */
    gx_highlighter *marks;
    gx_facets *facets;
    uint64_t n_matches;
    double seconds;
} findings;

/* Search for a query, which may first be expanded, and count. The hits are k's. */
static gx_status search(ask *k, findings *f, uint32_t *n_hits, gx_error *err)
{
    gx_query_options options = k->options;
    options.count = f->rich && !f->faceted; /* facets count the matches too */
    const gx_results results = {.size = sizeof results,
                                .docids64 = k->docids,
                                .n_hits = n_hits,
                                .n_matches = f->rich ? &f->n_matches : NULL,
                                .exact_scores = k->scores};
    const double begin = progress_clock(), end = k->deadline > 0 ? begin + k->deadline : 0;
    limit(&options, end);
    gx_status st = expand(k, &options, err);
    const gx_query query = last_query(k); /* as asked, or expanded */
    if (k->expanded)
        options.op = GX_OP_OR;
    limit(&options, end);
    forget_page_end(k);
    if (st == GX_OK)
        st = is_paged(k)  ? search_page(k, &query, &options, &results, err)
             : k->service ? search_by_service(k, &query, &options, &results, err)
                          : gx_search(k->session, &query, 1, &options, &results, err);
    limit(&options, end);
    if (st == GX_OK && f->faceted)
        st = facet_list_count(&f->facets, &k->facets, k->session, k->en, k->ix, &query, &options, &k->filter, err);
    f->seconds = progress_clock() - begin;
    if (st == GX_OK && k->deadline > 0 && f->seconds > k->deadline) /* not every step looks at the clock */
        st = err->status = GX_EDEADLINE;
    ++k->n_asked;
    k->seconds += f->seconds;
    return st;
}

static int print_findings(ask *k, const findings *f, const gx_query *asked, const char *qid, size_t qid_len,
                          uint32_t n_hits)
{
    gx_error err = {0};
    out_answer answer = {
        .found =
            {
                .ix = k->ix,
                .qid = qid,
                .qid_len = qid_len,
                .query = asked->text,
                .query_len = asked->len,
                .n_hits = n_hits,
                .docids = k->docids,
                .scores = k->scores,
                .counted = f->rich,
                .n_matches = f->facets ? gx_facets_n_matches(f->facets) : f->n_matches,
                .facets = f->facets,
                .n_facets = f->faceted ? k->facets.n : 0,
                .seconds = f->seconds,
                .engine = ask_engine_name(k),
                .marks = f->marks,
                .snippets = k->snippets,
                .n_suggested = 3,
                .shown = k->shown.numbers,
                .n_shown = k->shown.n,
                .expanded = k->expanded,
                .n_expanded = k->n_expanded,
                .first = is_paged(k) ? k->page.end.first : 0,
                .cursor = k->page.shown ? k->page.end.next : NULL,
                .cursor_len = k->page.end.next_len,
                .moved = k->page.end.moved,
                .groups = k->page.end.groups,
            },
        .timing = k->timing,
        .tag = k->tag,
        .stop = k->stop,
    };
    if (!k->told_fallback && cli_gpu_failed(k->en, &err)) {
        cli_warn("%s", err.text);
        k->told_fallback = true;
    }
    const int code = print(k, &answer);
    if (k->page.shown && k->page.end.next && k->format != OUT_JSONL)
        cli_note("the next page: --after=%s", k->page.end.next);
    if (f->marks)
        say_what_is_lost(k, f->marks, asked->text, asked->len, n_hits);
    return code;
}

int ask_query(ask *k, const char *qid, size_t qid_len, const char *text, size_t len, uint32_t *n_hits)
{
    gx_error err = {0};
    gx_index_stats stats = {.size = sizeof stats};
    findings f = {.rich = has_counts(k), .faceted = has_counts(k) && k->facets.n};
    int code;

    *n_hits = 0;
    if ((code = reload(k)))
        return code;
    gx_index_get_quick_stats(k->ix, &stats);
    if (stats.impacts && vector_query_read(&k->vector, text, len, &err)) {
        const gx_query refused = {.size = sizeof refused, .text = text, .len = len};
        return refuse(k, &refused, qid, qid_len, &err);
    }
    if ((code = reserve(k, stats.n_docs < k->options.k ? stats.n_docs : k->options.k)) ||
        (code = keep_last(k, text, len)))
        return code;
    if (k->last_kind == GX_QUERY_TEXT)
        cli_note_operators(text, len, k->ix, &k->options);
    const gx_query asked = last_query(k);
    if (f.rich && gx_highlighter_open_options(&f.marks, k->ix, &asked, &k->options, &err))
        return refuse(k, &asked, qid, qid_len, &err);

    const gx_status st = search(k, &f, n_hits, &err);
    if (st == GX_ECANCELLED)
        cli_note("cancelled after %.1f s", f.seconds);
    else
        code = st ? refuse(k, &asked, qid, qid_len, &err) : print_findings(k, &f, &asked, qid, qid_len, *n_hits);
    gx_highlighter_close(f.marks);
    gx_facets_close(f.facets);
    return code;
}

int ask_explain(ask *k, uint64_t docid)
{
    gx_error err = {0};
    gx_explanation e = {0};
    const gx_query query = last_query(k);
    if (gx_explain(&e, k->ix, &query, &k->options, docid, &err))
        return cli_fail_error(&err);
    out_put_explanation(stdout, &e, "");
    gx_explanation_free(&e);
    return 0;
}
