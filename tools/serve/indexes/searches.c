/* searches.c: a request's searches are answered: in batches by the index's service, or, where matches are counted,
 * facets asked for or queries expanded, by a worker with a session.
 *
 *   searches_begin --> gx_service_submit --> searches_answered, by any thread --> searches_finish
 *              `-----> workers_add ------> searches_work ----------------------------^
 */
#include "tools/serve/searches.h"

#include <stdlib.h>
#include <string.h>

#include "tools/serve/http.h"
#include "tools/serve/metrics.h"

static uint64_t now_us(void)
{
    return (uint64_t)(1e6 * serve_clock());
}

gx_query searches_query(const search *s)
{
    gx_query q = {.size = sizeof q, .kind = s->plan->setup.kind, .text = s->text, .len = s->len};
    size_t blanks = 0;
    while (s->all && blanks < s->len && (unsigned char)s->text[blanks] <= ' ')
        ++blanks;
    if (s->all && blanks == s->len)
        q.kind = GX_QUERY_ALL;
    q.filter = s->plan->filter;
    if (s->terms) {
        q.kind = GX_QUERY_TERMS;
        q.terms = s->terms;
        q.n_terms = s->n_terms;
    }
    if (s->expanded) {
        q.kind = GX_QUERY_TERMS;
        q.terms = s->expanded;
        q.n_terms = s->n_expanded;
    }
    return q;
}

void search_free(search *s)
{
    free(s->docids);
    free(s->error);
    free(s->expanded);
    free(s->terms);
    free(s->cursor);
    gx_groups_free(s->groups);
    gx_facets_close(s->facets);
}

static void set_error(search *s, gx_status st, const char *text)
{
    s->status = st;
    free(s->error);
    s->error = strdup(text);
    s->n_hits = 0;
}

bool plan_is_paged(const plan *p)
{
    return p->sort_len || p->after_len || p->cursor || p->collapse_len;
}

/* Keep the hits behind the offset, which those of a page are already. */
static void keep_hits(search *s, uint32_t n, const uint32_t *docids, const uint64_t *docids64, const double *scores)
{
    const uint32_t offset = plan_is_paged(s->plan) ? 0 : s->plan->offset, from = offset < n ? offset : n;
    s->n_hits = n - from < s->plan->wanted ? n - from : s->plan->wanted;
    if (s->n_hits == 0)
        return;
    s->docids = malloc(s->n_hits * (sizeof *s->docids + sizeof *s->scores));
    if (!s->docids) {
        set_error(s, GX_ENOMEM, "no memory for the results");
        return;
    }
    s->scores = (double *)(s->docids + s->n_hits);
    for (uint32_t i = 0; i < s->n_hits; ++i)
        s->docids[i] = docids64 ? docids64[from + i] : docids[from + i];
    memcpy(s->scores, scores + from, s->n_hits * sizeof *scores);
}

/* ---- the end ---- */

int http_status(gx_status st)
{
    switch (st) {
    case GX_OK:
        return 200;
    case GX_EUSAGE:
    case GX_EINPUT:
        return 400;
    case GX_ENOTFOUND:
        return 404;
    case GX_EEXISTS:
        return 409;
    case GX_EBUSY:
        return 429;
    case GX_EDEADLINE:
        return 504;
    case GX_ENOMEM:
    case GX_ECANCELLED:
        return 503;
    default:
        return 500;
    }
}

void exchange_fail_search(exchange *x, size_t i)
{
    const search *s = &x->searches[i];
    reader r = {.fault = &x->fault, .body = x->body.bytes ? x->body.bytes : "", .len = x->body.len};
    const char *text = s->error ? s->error : gx_status_name(s->status);
    const json_t *root = x->json[0];
    const bool many = root && json_object_get(root, "queries");
    reader_enter(&r, many ? "queries" : "query", 0);
    if (many)
        reader_enter(&r, NULL, i);
    if (s->status != GX_EUSAGE || s->line || !json_is_object(root)) {
        fault_set(&x->fault, http_status(s->status), "%s", text);
        x->fault.line = s->line;
        snprintf(x->fault.member, sizeof x->fault.member, s->status == GX_EUSAGE ? "query" : "");
    } else {
        reader_fail(&r, "%s", text);
    }
}

/* The first search that failed is the fault of the request. */
static void find_fault(exchange *x)
{
    for (size_t i = 0; i < x->n_searches && !x->fault.status; ++i)
        if (x->searches[i].status != GX_OK)
            exchange_fail_search(x, i);
}

static void answer(exchange *x)
{
    if (!x->fault.status && serve_clock() - x->began > x->timeout)
        fault_set(&x->fault, 504, "the answer was not there within %g s", x->timeout);
    if (!x->route->item_by_item)
        find_fault(x);
    if (!x->fault.status)
        x->route->answer(x);
    exchange_complete(x);
}

void searches_finish(exchange *x)
{
    if (x->fault.status || x->in_worker || !x->route->slow || x->quick) {
        answer(x);
    } else if (!workers_add(x->sv->workers, x)) {
        fault_set(&x->fault, 429, "as many requests wait as may; try again later");
        answer(x);
    }
}

static bool is_last(exchange *x)
{
    return atomic_fetch_sub(&x->pending, 1) == 1;
}

/* ---- by the service ---- */

void searches_answered(void *user, const gx_service_answer *a)
{
    search *s = a->user;
    exchange *x = s->of;
    load *l = snapshot_load(x->at);
    (void)user;
    s->status = a->status;
    s->by = a->by;
    s->seconds = a->seconds;
    s->first = s->plan->offset;
    if (a->status)
        set_error(s, a->status, a->error);
    else
        keep_hits(s, a->n_hits, a->docids, a->docids64, a->scores);
    atomic_fetch_sub_explicit(&l->under_way, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->by[a->by], 1, memory_order_relaxed);
    if (a->fell_back)
        atomic_fetch_add_explicit(&l->fell_back, 1, memory_order_relaxed);
    atomic_store_explicit(&l->last_us, now_us(), memory_order_relaxed);
    atomic_store_explicit(&l->last_wait_us, (unsigned)(1e6 * a->seconds), memory_order_relaxed);
    if (!is_last(x))
        return;
    if (x->connection && (x->quick || !x->route->slow))
        http_answered(x); /* this thread has better things to do */
    else
        searches_finish(x);
}

/* Whether a query that comes now is likely to wait longer than it may: the last answer had. */
static bool is_overloaded(const exchange *x)
{
    load *l = snapshot_load(x->at);
    const double max_wait = x->sv->limits.max_wait;
    if (atomic_load_explicit(&l->under_way, memory_order_relaxed) == 0)
        return false;
    return atomic_load_explicit(&l->last_wait_us, memory_order_relaxed) > 1e6 * max_wait &&
           now_us() - atomic_load_explicit(&l->last_us, memory_order_relaxed) < 1e6 * max_wait;
}

/* Submit searches [first, first + n), which have one plan. */
static gx_status submit(exchange *x, size_t first, size_t n, gx_error *err)
{
    enum { FEW = 64 };
    gx_query few[FEW], *queries = n <= FEW ? few : malloc(n * sizeof *queries);
    void *few_users[FEW], **users = n <= FEW ? few_users : malloc(n * sizeof *users);
    gx_status st = GX_ENOMEM;
    load *l = snapshot_load(x->at);
    *err = (gx_error){GX_ENOMEM, "no memory for the queries"};
    if (queries && users) {
        for (size_t i = 0; i < n; ++i) {
            queries[i] = searches_query(&x->searches[first + i]);
            users[i] = &x->searches[first + i];
        }
        gx_submission sub = GX_SUBMISSION(queries, (uint32_t)n, &x->searches[first].plan->setup.options);
        sub.users = users;
        sub.deadline = x->timeout - (serve_clock() - x->began);
        sub.deadline = sub.deadline > 1e-3 ? sub.deadline : 1e-3;
        atomic_fetch_add_explicit(&l->under_way, (unsigned)n, memory_order_relaxed);
        atomic_fetch_add(&x->pending, (unsigned)n);
        st = gx_service_submit(x->at->service, &sub, NULL, err);
        if (st != GX_OK) {
            atomic_fetch_sub(&x->pending, (unsigned)n);
            atomic_fetch_sub_explicit(&l->under_way, (unsigned)n, memory_order_relaxed);
        }
    }
    if (queries != few)
        free(queries);
    if (users != few_users)
        free(users);
    return st;
}

/* Submit them one by one, so that only those that are malformed fail. */
static void submit_singly(exchange *x, size_t first, size_t n)
{
    for (size_t i = first; i < first + n; ++i) {
        gx_error err = {0};
        const gx_status st = submit(x, i, 1, &err);
        if (st != GX_OK)
            set_error(&x->searches[i], st, err.text);
    }
}

static void submit_all(exchange *x)
{
    for (size_t i = 0, n; i < x->n_searches; i += n) {
        gx_error err = {0};
        for (n = 1; i + n < x->n_searches && x->searches[i + n].plan == x->searches[i].plan;)
            ++n;
        const gx_status st = submit(x, i, n, &err);
        if (st == GX_EUSAGE && n > 1)
            submit_singly(x, i, n);
        else if (st != GX_OK)
            for (size_t j = i; j < i + n; ++j)
                set_error(&x->searches[j], st, err.text);
    }
}

static bool needs_session(const exchange *x)
{
    for (size_t i = 0; i < x->n_plans; ++i)
        if (x->plans[i].count || x->plans[i].n_facets || x->plans[i].setup.rm3.fb_docs ||
            x->plans[i].setup.options.prior.weight != 0 || plan_is_paged(&x->plans[i]) ||
            x->plans[i].view)
            return true;
    return x->job != NULL;
}

void searches_begin(exchange *x)
{
    for (size_t i = 0; i < x->n_searches; ++i)
        x->searches[i].plan = &x->plans[x->searches[i].plan_number];
    if (x->at && is_overloaded(x))
        fault_set(&x->fault, 429, "queries wait longer than %g s; try again later", x->sv->limits.max_wait);
    if (x->fault.status) {
        exchange_complete(x);
    } else if (needs_session(x)) {
        if (workers_add(x->sv->workers, x))
            return;
        fault_set(&x->fault, 429, "as many requests wait as may; try again later");
        exchange_complete(x);
    } else {
        atomic_store(&x->pending, 1);
        submit_all(x);
        if (is_last(x))
            searches_finish(x);
    }
}

/* ---- by a worker ---- */

/* What a batch of searches of one plan is run with. */
typedef struct batch {
    exchange *x;
    search *searches; /* [n] */
    uint32_t n, k;
    gx_query *queries;
    gx_query_options options;
    uint64_t *docids; /* [n * k] */
    double *scores;
    uint32_t *n_hits;
    uint64_t *n_matches;
    gx_facets **facets;
    gx_page_end *ends; /* [n] of a plan with pages */
} batch;

static void free_end(gx_page_end *end)
{
    free(end->next);
    gx_groups_free(end->groups);
    *end = (gx_page_end){.size = sizeof *end};
}

static void close_batch(batch *b)
{
    free(b->queries);
    free(b->docids);
    free(b->scores);
    free(b->n_hits);
    free(b->n_matches);
    free(b->facets);
    for (uint32_t i = 0; b->ends && i < b->n; ++i)
        free_end(&b->ends[i]);
    free(b->ends);
}

/* Facets count the matches, too, unless a filter leaves other documents to them. */
static bool facets_count(const plan *p)
{
    return p->n_facets && !p->faceted_apart;
}

static bool open_batch(batch *b, exchange *x, search *first, uint32_t n)
{
    const uint64_t n_docs = x->at->n_docs ? x->at->n_docs : 1;
    *b = (batch){.x = x, .searches = first, .n = n, .options = first->plan->setup.options};
    if (plan_is_paged(first->plan))
        b->options.k = first->plan->wanted ? first->plan->wanted : 1;
    b->k = b->options.k < n_docs ? b->options.k : (uint32_t)n_docs;
    b->options.k = b->k;
    b->options.count = first->plan->count && !facets_count(first->plan);
    b->options.seconds = x->timeout - (serve_clock() - x->began);
    b->options.seconds = b->options.seconds > 1e-3 ? b->options.seconds : 1e-3;
    b->queries = malloc(n * sizeof *b->queries);
    b->docids = malloc((size_t)n * b->k * sizeof *b->docids);
    b->scores = malloc((size_t)n * b->k * sizeof *b->scores);
    b->n_hits = calloc(n, sizeof *b->n_hits);
    b->n_matches = calloc(n, sizeof *b->n_matches);
    b->facets = calloc(n, sizeof(gx_facets *));
    b->ends = calloc(n, sizeof *b->ends);
    for (uint32_t i = 0; b->ends && i < n; ++i)
        b->ends[i].size = sizeof *b->ends;
    return b->queries && b->docids && b->scores && b->n_hits && b->n_matches && b->facets && b->ends;
}

static gx_status expand(batch *b, gx_session *session, gx_error *err)
{
    const plan *p = b->searches->plan;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < b->n && st == GX_OK && p->setup.rm3.fb_docs; ++i) {
        search *s = &b->searches[i];
        const gx_query query = searches_query(s);
        if (!s->expanded && query.kind != GX_QUERY_ALL)
            st = gx_rm3_expand(&s->expanded, &s->n_expanded, session, b->x->at->ix, &query, &p->setup.options,
                               &p->setup.rm3, err);
        b->options.op = GX_OP_OR;
    }
    return st;
}

static bool wants_ends(const plan *p)
{
    return p->cursor || p->after_len || p->collapse_len;
}

static gx_status run_page(batch *b, gx_session *session, const gx_results *results, gx_error *err)
{
    const plan *p = b->searches->plan;
    gx_page page;
    for (uint32_t i = 0; i < b->n; ++i)
        free_end(&b->ends[i]); /* of a GPU that failed */
    gx_page_init(&page, sizeof page);
    page.sort = p->sort;
    page.sort_len = p->sort_len;
    page.offset = p->offset;
    page.after = p->after;
    page.after_len = p->after_len;
    page.collapse = p->collapse;
    page.collapse_len = p->collapse_len;
    return gx_search_page(session, b->queries, b->n, &b->options, &page, results, wants_ends(p) ? b->ends : NULL, err);
}

static gx_status run_batch(batch *b, gx_session *session, gx_error *err)
{
    const plan *p = b->searches->plan;
    const gx_results results = {.size = sizeof results,
                                .docids64 = b->docids,
                                .n_hits = b->n_hits,
                                .n_matches = b->n_matches,
                                .exact_scores = b->scores};
    gx_status st = expand(b, session, err);
    for (uint32_t i = 0; i < b->n; ++i)
        b->queries[i] = searches_query(&b->searches[i]);
    if (st == GX_OK)
        st = plan_is_paged(p) ? run_page(b, session, &results, err)
                              : gx_search(session, b->queries, b->n, &b->options, &results, err);
    for (uint32_t i = 0; i < b->n && p->faceted_apart; ++i)
        b->queries[i].filter = p->faceted;
    if (st == GX_OK && p->n_facets)
        st = gx_count_facets_batch(b->facets, session, b->queries, b->n, &b->options, p->facets, p->n_facets, err);
    return st;
}

static void keep_batch(batch *b, double seconds)
{
    for (uint32_t i = 0; i < b->n; ++i) {
        search *s = &b->searches[i];
        const size_t at = (size_t)i * b->k;
        s->facets = b->facets[i];
        s->n_matches = facets_count(s->plan) ? gx_facets_n_matches(s->facets) : b->n_matches[i];
        s->seconds = seconds;
        s->by = b->x->at->gpu && !s->plan->view ? GX_PROCESSOR_GPU : GX_PROCESSOR_CPU;
        s->first = s->plan->offset;
        if (wants_ends(s->plan)) {
            s->first = b->ends[i].first;
            s->moved = b->ends[i].moved;
        }
        s->groups = b->ends[i].groups;
        b->ends[i].groups = NULL;
        if ((s->plan->cursor || s->plan->after_len) && s->plan->wanted) {
            s->cursor = b->ends[i].next;
            s->cursor_len = b->ends[i].next_len;
            b->ends[i].next = NULL;
        }
        keep_hits(s, b->n_hits[i], NULL, b->docids + at, b->scores + at);
    }
}

static bool is_gpu_failure(gx_status st)
{
    return st == GX_ECUDA || st == GX_ENOGPU;
}

/* Run a batch in a session: one that fails on the GPU goes to the CPU. */
static gx_status run_in_session(batch *b, gx_error *err)
{
    snapshot *at = b->x->at;
    gx_session *session = NULL;
    view *v = b->searches->plan->view;
    gx_status st = v ? view_session(v, &session, err) : snapshot_session(at, &session, err);
    if (v) {
        st = st == GX_OK ? run_batch(b, session, err) : st;
        if (session)
            view_give_back(v, session);
        return st;
    }
    if (st == GX_OK)
        st = run_batch(b, session, err);
    if (session)
        snapshot_give_back(at, session, !is_gpu_failure(st));
    if (!is_gpu_failure(st))
        return st;
    atomic_fetch_add(&snapshot_load(at)->fell_back, b->n);
    if ((st = gx_session_open(&session, at->cpu, err)) == GX_OK)
        st = run_batch(b, session, err);
    gx_session_close(session);
    return st;
}

static void run_searches(exchange *x, search *first, uint32_t n)
{
    batch b;
    gx_error err = {GX_ENOMEM, "no memory for the results"};
    const double begin = serve_clock();
    gx_status st = open_batch(&b, x, first, n) ? run_in_session(&b, &err) : GX_ENOMEM;
    if (st == GX_OK)
        keep_batch(&b, serve_clock() - begin);
    close_batch(&b);
    if (st == GX_EUSAGE && n > 1) { /* only those that are malformed fail */
        for (uint32_t i = 0; i < n; ++i)
            run_searches(x, first + i, 1);
    } else if (st != GX_OK) {
        for (uint32_t i = 0; i < n; ++i)
            set_error(&first[i], st, err.text);
    }
}

void searches_work(exchange *x)
{
    const bool answered = !needs_session(x); /* by the service: only the reply is left to be written */
    if (x->job) {
        x->job(x);
        exchange_complete(x);
        return;
    }
    for (size_t i = 0, n; i < x->n_searches && !answered; i += n) {
        for (n = 1; i + n < x->n_searches && x->searches[i + n].plan == x->searches[i].plan;)
            ++n;
        run_searches(x, &x->searches[i], (uint32_t)n);
    }
    searches_finish(x);
}
