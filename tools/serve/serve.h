/* serve.h: what the server's files share.
 *
 *   http/       connections, bodies, replies (libmicrohttpd)
 *      |  exchange: one request and its reply
 *   routes.c    the table of all routes: method, path, what reads a request, what writes its answer
 *      |
 *   protocols/  one protocol each: a body becomes searches, their answers become a body
 *      |
 *   indexes/    searches are answered by the index's service, or by a worker with a session of its own;
 *               the catalog has the indexes by name, each at one commit (snapshot) until a later one takes its place
 *
 * An exchange belongs to one thread at a time: to its connection's thread, then, where it has to wait, to whatever
 * answers its searches, and to the connection's thread again.
 */
#ifndef GX_SERVE_SERVE_H
#define GX_SERVE_SERVE_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/serve/json.h"

typedef struct server server;
typedef struct exchange exchange;

/* ---- limits and settings ---- */

typedef struct limits {
    uint64_t body;    /* bytes of a request's body */
    uint32_t depth;   /* of its JSON */
    uint32_t k;       /* offset and results of a query together */
    uint32_t queries; /* of a request */
    uint32_t ops;     /* documents written by a request */
    uint32_t chars;   /* of an answer to an agent */
    uint32_t window;  /* results kept for an agent's pages */
    uint32_t waiting; /* queries that wait for an answer, of an index */
    uint32_t jobs;    /* requests that wait for a worker */
    double max_wait;  /* seconds that a query is likely to wait; then it is refused */
    double timeout;   /* seconds from a request's arrival to its answer, unless the request asks for less */
    double idle;      /* seconds that a connection may be without a request */
    double slow;      /* seconds that a request may take to arrive, and its answer to be read */
    double drain;     /* seconds that requests under way have at the end */
    uint32_t connections;
} limits;

/* ---- indexes ---- */

typedef struct entry entry;

/* What is known of the queries under way at an index, over its commits. */
typedef struct load {
    atomic_uint under_way;
    atomic_uint_fast64_t last_us; /* when the last answer came, */
    atomic_uint last_wait_us;     /* and how long its query had waited */
    atomic_uint_fast64_t by[GX_N_PROCESSORS], fell_back;
} load;

/* An index at one commit, and what searches it. Shared; freed once nobody holds it. */
typedef struct snapshot {
    atomic_uint refs;
    entry *of;
    gx_index *ix;
    gx_engine *cpu, *gpu; /* gpu NULL: none */
    gx_service *service;
    double opened; /* on the clock of serve_clock */
    uint64_t n_docs;
    gx_index_stats stats; /* the quick ones */
    pthread_mutex_t lock; /* of what follows */
    gx_session *idle[64]; /* sessions that nobody uses, on the engine that answers */
    uint32_t n_idle;
    struct allowed *allowed; /* documents that tokens' filters select */
    struct view *views;      /* by fields, for requests that come again (views.c) */
    struct snapshot *next;   /* of those that wait to be freed */
} snapshot;

typedef struct catalog catalog;

/* The index of a name at its last commit; NULL: there is none. Give it back by snapshot_release. */
snapshot *catalog_get(catalog *c, const char *name);
load *snapshot_load(const snapshot *s);
snapshot *snapshot_hold(snapshot *s);
void snapshot_release(snapshot *s);
/* The i-th index in the order of the command line; NULL: there are fewer. */
const char *catalog_name(const catalog *c, uint32_t i);

/* Look for a later commit now, and wait until it is served. false: it cannot be, and the earlier one is served. */
bool catalog_refresh(catalog *c, const char *name);

/* A session for one thread until it is given back: on the GPU, where there is one. */
gx_status snapshot_session(snapshot *s, gx_session **out, gx_error *err);
void snapshot_give_back(snapshot *s, gx_session *session, bool healthy);
/* Whether a filter of a token (NULL: all documents) selects the document. */
gx_status snapshot_allows(snapshot *s, const char *filter, uint64_t docid, bool *out, gx_error *err);

/* The snapshot's index seen through its fields, and what searches it. Shared; gx_index_open_view has the statuses. */
typedef struct view view;
gx_status snapshot_view(snapshot *s, const gx_view_options *o, view **out, gx_error *err);
const gx_index *view_index(const view *v);
gx_status view_session(view *v, gx_session **out, gx_error *err);
void view_give_back(view *v, gx_session *session);
view *view_hold(view *v); /* accepts NULL, as view_release does */
void view_release(view *v);
void views_close(view *first); /* of a snapshot */

/* ---- who asks ---- */

typedef enum access { ACCESS_NONE, ACCESS_READ, ACCESS_WRITE } access_level;

/* A token's owner. Without a file of tokens all may read, and what the command line says is writable is. */
typedef struct identity {
    const char *name;
    const char *filter; /* expression that the server adds everywhere; NULL: none */
    access_level level;
    const char *const *indexes; /* [n_indexes]; 0: all */
    uint32_t n_indexes;
} identity;

/* ---- searches ---- */

/* What a request asks of each of its queries. */
typedef struct plan {
    gx_search_setup setup; /* options.k is offset + wanted, and at least 1 */
    uint32_t offset, wanted;
    const char *sort; /* [sort_len] the order by attributes, of gx_page; sort_len 0: by score */
    size_t sort_len;
    const char *after; /* [after_len] the cursor that results come behind, of gx_page; after_len 0: none */
    size_t after_len;
    bool cursor;          /* the cursor of the next page is wanted */
    const char *collapse; /* [collapse_len] one result a value of an attribute, of gx_page; collapse_len 0: none */
    size_t collapse_len;
    bool count, snippets, marked, texts, explain;
    uint32_t *shown; /* [n_shown] numbers of the attributes that hits show; freed with the plan */
    uint32_t n_shown;
    const gx_facet *facets; /* [n_facets] */
    uint32_t n_facets;
    gx_facet_list **lists; /* [n_lists] which the facets belong to; closed with the plan */
    uint32_t n_lists;
    gx_filter *filter; /* of the request, with that of the token; NULL: none */
    view *view;        /* the fields by which it searches; NULL: the index as it is */
    bool faceted_apart; /* facets count what this filter leaves, in place of: */
    gx_filter *faceted; /* NULL: all; freed with the plan */
    gx_synonyms *synonyms; /* those of setup.options, or NULL; closed with the plan */
} plan;

/* A query, and its answer. */
typedef struct search {
    const plan *plan;       /* set when the searches begin, from: */
    size_t plan_number;     /* in the exchange's plans */
    const char *text, *qid; /* [len], [qid_len]: they live as long as the exchange */
    size_t len, qid_len;
    unsigned line;           /* of a body of lines; 0: it is no such body */
    bool all;                /* a query without words finds all documents that the filter leaves */
    gx_weighted_term *terms; /* [n_terms] in place of a text, or NULL; freed with the search */
    uint32_t n_terms;
    struct exchange *of;
    /* the answer */
    gx_status status;
    char *error;      /* NULL for GX_OK */
    uint32_t n_hits;  /* after the offset */
    uint64_t first;   /* results before the first one */
    char *cursor;     /* [cursor_len] of the next page, or NULL */
    size_t cursor_len;
    bool moved;        /* the cursor that was given is of an older commit */
    gx_groups *groups; /* of collapse, or NULL */
    uint64_t *docids; /* [n_hits], in one allocation with: */
    double *scores;   /* [n_hits] */
    uint64_t n_matches;
    gx_facets *facets;
    gx_weighted_term *expanded;
    uint32_t n_expanded;
    gx_processor by;
    double seconds;
} search;

/* ---- requests ---- */

typedef struct route route;

/* How a protocol writes errors: the body of a reply for x->fault. */
typedef void fault_writer(exchange *x);

struct route {
    const char *method; /* a GET answers HEAD too */
    const char *path;   /* "/v1/{index}/doc/{id}": {id} at the end takes the rest of the path */
    access_level level;
    fault_writer *write_fault;
    /* Read the request: set the fault, or reply, or add searches. */
    void (*parse)(exchange *x);
    /* Reply from the answers of the searches. NULL: parse replies, or sets x->job. */
    void (*answer)(exchange *x);
    bool slow;           /* answer reads texts: a worker calls it, unless the exchange is quick */
    bool item_by_item;   /* answer tells of searches that failed; else the first such one makes the fault */
    const char *accept;  /* a media type that the client's Accept must name, else another route serves it; or NULL */
    const char *summary; /* for /openapi.json */
    const char *body;    /* a JSON schema's properties of the body, or NULL */
};

enum { MAX_HEADERS = 6, MAX_PATH_PARTS = 4 };

struct exchange {
    server *sv;
    void *connection; /* of libmicrohttpd; NULL: there is none, as for MCP on standard input */
    const route *route;
    char *method, *path; /* path is decoded, and divided at its slashes */
    const char *index;   /* {index}; "" */
    const char *id;      /* {id}; "" */
    gx_text body;
    json_t *json[2]; /* what strings of searches lie in */
    fault fault;
    const identity *who;
    snapshot *at;
    bool quick; /* parse has found that the answer reads no texts, and is short: no worker is needed */
    plan *plans; /* [n_plans], of max_plans */
    size_t n_plans, max_plans;
    search *searches;
    size_t n_searches, max_searches;
    void (*job)(exchange *x);  /* called by a worker in place of searches; NULL: none */
    void (*take)(exchange *x); /* takes the exchange in place of searches, and completes it; NULL: none */
    void *extra;               /* of the protocol; freed by free_extra */
    void (*free_extra)(void *extra);
    /* the reply */
    unsigned status;  /* of HTTP; 0: there is none yet */
    const char *type; /* its media type */
    gx_text reply;
    struct {
        const char *name;
        char value[160];
    } headers[MAX_HEADERS];
    uint32_t n_headers;
    /* the way */
    atomic_int state;          /* see http.c */
    atomic_uint pending;       /* answers that are not there yet, and the thread that submits */
    double began;              /* on serve_clock */
    double timeout;            /* seconds */
    bool in_worker, working;   /* a worker has it; http.c counts it */
    void (*done)(exchange *x); /* where there is no connection: called when the reply is there */
    exchange *next;            /* of those that wait for a worker */
};

double serve_clock(void); /* seconds, which never go back */

/* Routes: find the route, check who asks, parse. Then exchange_complete is called, now or later, by any thread. */
void exchange_begin(exchange *x, const char *path);
void exchange_complete(exchange *x);
void exchange_free(exchange *x); /* what it points to, not itself */

/* What HTTP brought beside the body; NULL: it is not there. */
const char *exchange_header(exchange *x, const char *name);
const char *exchange_argument(exchange *x, const char *name);
/* Set the fault if an argument of the URL is none of those names, which end with NULL. */
bool exchange_check_arguments(exchange *x, const char *const *names);
/* An argument as a number from min to max; `out` is unchanged where it is not given. */
bool exchange_count_argument(exchange *x, const char *name, uint64_t min, uint64_t max, uint64_t *out);

/* The reply: its text is x->reply. */
void exchange_reply(exchange *x, unsigned status);
void exchange_add_header(exchange *x, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The index of the path, or of a name, for who asks; false: the fault is set. */
bool exchange_open_index(exchange *x, const char *name);

/* Whether the plan's results come in an order of their own or behind a cursor, so that gx_search_page finds them. */
bool plan_is_paged(const plan *p);

/* The plans and searches of an exchange. NULL: there may be no more, and the fault is set. What is returned stays
 * where it is until the next one is added. */
plan *exchange_add_plan(exchange *x);
search *exchange_add_search(exchange *x, size_t plan_number);

/* Give the searches of the last plan that before it, where both ask for the same: searches that stand together and have
 * one plan go to the engines together. */
void exchange_share_plan(exchange *x);

/* Whether its plans show neither texts nor explanations, and few results. */
bool exchange_is_quick(const exchange *x);

/* Parse the body; false: the fault is set. */
bool exchange_read_json(exchange *x, reader *r);
/* The status of HTTP for one of the library. */
int http_status(gx_status st);
/* The fault of search number i, which has failed, with its place. */
void exchange_fail_search(exchange *x, size_t i);

/* ---- the server ---- */

typedef struct metrics metrics;

struct server {
    limits limits;
    catalog *catalog;
    struct tokens *tokens;
    struct workers *workers;
    struct http *http;
    struct windows *windows; /* results kept for paging */
    struct writers *writers;
    metrics *metrics;
    struct access_log *log;
    gx_search_setup defaults; /* of searches: the flags */
    identity anybody;         /* who asks, where there are no tokens */
    const char *const *hosts; /* [n_hosts] names by which the server may be called; 0: any */
    uint32_t n_hosts;
    const char *const *origins;
    uint32_t n_origins;
    bool loopback; /* it listens on loopback or a socket file alone */
    atomic_bool draining;
    double started;
};

/* Answer the exchange's searches; exchange_complete follows. */
void searches_begin(exchange *x);
/* How a worker goes on with an exchange. */
void searches_work(exchange *x);

/* Threads that do what takes long. */
typedef struct workers workers;
gx_status workers_open(workers **out, uint32_t n, uint32_t max_waiting, gx_error *err);
void workers_close(workers *w);
bool workers_add(workers *w, exchange *x); /* false: as many wait as may */
uint32_t workers_waiting(workers *w);

#endif
