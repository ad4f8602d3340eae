/* exchange.c: a request's way: route, who asks, parse, searches, reply. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/serve/access.h"
#include "tools/serve/http.h"
#include "tools/serve/protocols.h"
#include "tools/serve/searches.h"

/* ---- the reply ---- */

void exchange_reply(exchange *x, unsigned status)
{
    x->status = status;
    if (!x->type)
        x->type = "application/json";
}

void exchange_add_header(exchange *x, const char *name, const char *format, ...)
{
    va_list args;
    if (x->n_headers == MAX_HEADERS)
        return;
    x->headers[x->n_headers].name = name;
    va_start(args, format);
    vsnprintf(x->headers[x->n_headers].value, sizeof x->headers->value, format, args);
    va_end(args);
    for (char *p = x->headers[x->n_headers].value; *p; ++p)
        if ((unsigned char)*p < ' ')
            *p = ' ';
    ++x->n_headers;
}

/* What is wrong becomes the reply. */
static void reply_fault(exchange *x)
{
    const int status = x->fault.status;
    x->reply.len = 0;
    x->type = "application/json";
    x->status = 0;
    const bool is_elastic = !x->route && x->path && strstr(x->path, "/_");
    (x->route ? x->route->write_fault : is_elastic ? elastic_fault : native_fault)(x);
    if (x->status == 0)
        exchange_reply(x, (unsigned)status);
    if (status == 429 || status == 503)
        exchange_add_header(x, "Retry-After", "1");
    if (status == 401)
        exchange_add_header(x, "WWW-Authenticate", "Bearer");
}

void exchange_complete(exchange *x)
{
    if (x->fault.status)
        reply_fault(x);
    if (x->reply.failed || x->status == 0) {
        static const char text[] = "{\"error\":{\"status\":500,\"message\":\"no memory for the answer\"}}";
        free(x->reply.bytes);
        x->reply = (gx_text){0};
        gx_text_add(&x->reply, text, sizeof text - 1);
        exchange_reply(x, 500);
    }
    if (x->connection)
        http_complete(x);
    else
        x->done(x);
}

static void close_plan(plan *p)
{
    gx_filter_close(p->filter);
    gx_filter_close(p->faceted);
    view_release(p->view);
    free((void *)p->facets);
    for (uint32_t k = 0; k < p->n_lists; ++k)
        gx_facet_list_close(p->lists[k]);
    free(p->lists);
    free(p->shown);
    gx_synonyms_close(p->synonyms);
}

void exchange_free(exchange *x)
{
    for (size_t i = 0; i < x->n_searches; ++i)
        search_free(&x->searches[i]);
    for (size_t i = 0; i < x->n_plans; ++i)
        close_plan(&x->plans[i]);
    if (x->free_extra)
        x->free_extra(x->extra);
    free(x->searches);
    free(x->plans);
    json_decref(x->json[0]);
    json_decref(x->json[1]);
    snapshot_release(x->at);
    free(x->path);
    free(x->method);
    free(x->body.bytes);
    free(x->reply.bytes);
}

/* ---- the request ---- */

static void route_request(exchange *x)
{
    char allowed[64];
    x->route = routes_find(x, allowed);
    if (x->route)
        return;
    if (allowed[0]) {
        exchange_add_header(x, "Allow", "%s", allowed);
        fault_set(&x->fault, 405, "%s is not a method of this path; it takes %s", x->method, allowed);
    } else {
        fault_set(&x->fault, 404, "there is nothing at %.200s; /openapi.json lists what there is", x->path);
    }
}

void exchange_begin(exchange *x, const char *path)
{
    x->path = strdup(path);
    x->index = x->id = "";
    x->timeout = x->sv->limits.timeout;
    if (!x->path) {
        fault_set(&x->fault, 503, "no memory for the request");
    } else {
        route_request(x);
        if (!x->fault.status)
            access_check(x);
    }
    if (!x->fault.status)
        x->route->parse(x);
    if (x->fault.status || (x->status && !x->n_searches && !x->job && !x->take))
        exchange_complete(x);
    else if (x->take)
        x->take(x);
    else
        searches_begin(x);
}

bool exchange_open_index(exchange *x, const char *name)
{
    if (!access_to(x->who, name))
        return fault_set(&x->fault, 403, "the token gives no access to the index '%.100s'", name);
    x->at = catalog_get(x->sv->catalog, name);
    if (!x->at)
        return fault_set(&x->fault, 404, "there is no index '%.100s'", name);
    return true;
}

bool exchange_read_json(exchange *x, reader *r)
{
    if (!reader_open(r, &x->fault, x->body.bytes ? x->body.bytes : "", x->body.len, x->sv->limits.depth))
        return false;
    x->json[0] = json_incref(r->root);
    return true;
}

static bool grow(void **array, size_t *max, size_t n, size_t size)
{
    if (n < *max)
        return true;
    const size_t more = *max ? 2 * *max : 4;
    void *grown = realloc(*array, more * size);
    if (grown) {
        *array = grown;
        *max = more;
    }
    return grown != NULL;
}

plan *exchange_add_plan(exchange *x)
{
    void *plans = x->plans;
    const bool grown = grow(&plans, &x->max_plans, x->n_plans, sizeof *x->plans);
    x->plans = plans;
    if (!grown) {
        fault_set(&x->fault, 503, "no memory for the request");
        return NULL;
    }
    plan *p = &x->plans[x->n_plans++];
    memset(p, 0, sizeof *p); /* are_equal compares all bytes */
    p->setup = x->sv->defaults;
    return p;
}

static bool same_filters(const gx_filter *a, const gx_filter *b)
{
    size_t na, nb;
    if (!a || !b)
        return a == b;
    const char *text = gx_filter_text(a, &na), *other = gx_filter_text(b, &nb);
    return na == nb && memcmp(text, other, na) == 0;
}

/* Whether two plans ask for the same. Whatever else a plan owns lies at an address of its own, so that plans with
 * facets or shown attributes are never equal. Padding may differ between equal plans: they stay apart, which is right,
 * too. */
static bool are_equal(const plan *a, const plan *b)
{
    plan like = *b;
    if (!same_filters(a->filter, b->filter))
        return false;
    like.filter = a->filter;
    return memcmp(a, &like, sizeof like) == 0;
}

void exchange_share_plan(exchange *x)
{
    const size_t last = x->n_plans - 1;
    if (x->n_plans < 2 || !are_equal(&x->plans[last - 1], &x->plans[last]))
        return;
    for (size_t i = x->n_searches; i > 0 && x->searches[i - 1].plan_number == last; --i)
        x->searches[i - 1].plan_number = last - 1;
    close_plan(&x->plans[last]);
    --x->n_plans;
}

search *exchange_add_search(exchange *x, size_t plan_number)
{
    void *searches = x->searches;
    if (x->n_searches >= x->sv->limits.queries) {
        fault_set(&x->fault, 413, "a request has at most %u queries", x->sv->limits.queries);
        return NULL;
    }
    const bool grown = grow(&searches, &x->max_searches, x->n_searches, sizeof *x->searches);
    x->searches = searches;
    if (!grown) {
        fault_set(&x->fault, 503, "no memory for the request");
        return NULL;
    }
    search *s = &x->searches[x->n_searches++];
    *s = (search){.plan_number = plan_number, .of = x};
    return s;
}

bool exchange_is_quick(const exchange *x)
{
    enum { FEW = 1000 };
    uint64_t results = 0;
    for (size_t i = 0; i < x->n_plans; ++i)
        if (x->plans[i].snippets || x->plans[i].texts || x->plans[i].explain)
            return false;
    for (size_t i = 0; i < x->n_searches; ++i)
        results += x->plans[x->searches[i].plan_number].wanted;
    return results <= FEW;
}

bool exchange_check_arguments(exchange *x, const char *const *names)
{
    const char *other = x->connection ? http_other_argument(x, names) : NULL;
    if (!other)
        return true;
    fault_set(&x->fault, 400, "there is no parameter '%.80s' here", other);
    snprintf(x->fault.member, sizeof x->fault.member, "%.80s", other);
    return false;
}

bool exchange_count_argument(exchange *x, const char *name, uint64_t min, uint64_t max, uint64_t *out)
{
    const char *text = exchange_argument(x, name);
    char *end;
    if (!text)
        return true;
    errno = 0;
    const uint64_t n = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == 0 && errno == 0 && n >= min && n <= max) {
        *out = n;
        return true;
    }
    fault_set(&x->fault, 400, "'%.80s' is not a whole number from %llu to %llu", text, (unsigned long long)min,
              (unsigned long long)max);
    snprintf(x->fault.member, sizeof x->fault.member, "%s", name);
    return false;
}
