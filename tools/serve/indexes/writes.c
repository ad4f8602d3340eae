/* writes.c: the writers' threads. */
#include "tools/serve/writes.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/serve/catalog.h"

enum { MOST_OPS = 100000, KEEP_OPEN_MS = 500 };
static const double FIRST_PAUSE = 5; /* seconds without a merge after one that writes have cut off */

typedef struct writer {
    server *sv;
    const char *name, *path;
    double every; /* seconds that changes are gathered at most */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* of the queue */
    pthread_cond_t some;
    exchange *first, **last;
    bool closing;
    atomic_bool hurry; /* commit at once, and merge nothing */
    atomic_uint waiting;
    atomic_uint_fast64_t ops, failed, commits, merges;
    /* of its thread */
    gx_collection *c;
    exchange *group, **group_end; /* applied, and not committed yet */
    size_t n_group;
    double since; /* when the first of the group came */
    bool now;
    void *pending; /* the group's ops by id, of tsearch */
    double merge_from, pause;
} writer;

struct writers {
    char *names; /* of all, in one allocation */
    uint32_t n;
    writer all[];
};

static writing *writing_of(const exchange *x)
{
    return x->extra;
}

/* ---- what has changed since the last commit ---- */

static int compare_ids(const void *a, const void *b)
{
    const gx_document *x = &((const write_op *)a)->doc, *y = &((const write_op *)b)->doc;
    if (x->id_len != y->id_len)
        return x->id_len < y->id_len ? -1 : 1;
    return memcmp(x->id, y->id, x->id_len);
}

/* The last change of the document of this id in the group; NULL: none. */
static const write_op *find_pending(const writer *w, const write_op *op)
{
    void *const *found = tfind(op, &w->pending, compare_ids);
    return found ? *found : NULL;
}

static gx_status remember(writer *w, const write_op *op, gx_error *err)
{
    void **found = tsearch(op, &w->pending, compare_ids);
    if (!found) {
        *err = (gx_error){GX_ENOMEM, "no memory for the changes"};
        return GX_ENOMEM;
    }
    *found = (void *)op;
    return GX_OK;
}

static void keep_node(void *op)
{
    (void)op; /* it belongs to its request */
}

static void forget_pending(writer *w)
{
    tdestroy(w->pending, keep_node);
    w->pending = NULL;
}

/* Whether there is a document of the op's id. *pending: the change that made it; NULL: it is committed, as *docid. */
static bool find_document(const writer *w, const write_op *op, const write_op **pending, uint64_t *docid)
{
    *pending = find_pending(w, op);
    if (*pending)
        return (*pending)->kind != WRITE_DELETE;
    *docid = gx_index_find_doc64(gx_collection_index(w->c), op->doc.id, op->doc.id_len);
    return *docid != UINT64_MAX;
}

/* ---- parts that an update does not give ---- */

static bool own(write_op *op, void *memory)
{
    void **grown = realloc(op->owned, (op->n_owned + 1) * sizeof *grown);
    if (grown)
        op->owned = grown;
    if (!grown || !memory) {
        free(memory);
        return false;
    }
    op->owned[op->n_owned++] = memory;
    return true;
}

static bool add_value(write_op *op, uint32_t attribute, const char *text, size_t len)
{
    if (op->doc.n_values == op->max_values) {
        const uint32_t max = op->max_values ? 2 * op->max_values : 8;
        gx_attribute_value *grown = realloc(op->values, max * sizeof *grown);
        if (!grown)
            return false;
        op->values = grown;
        op->max_values = max;
    }
    op->values[op->doc.n_values++] = (gx_attribute_value){attribute, text, len};
    op->doc.values = op->values;
    return true;
}

static bool take_pending(write_op *op, const write_op *old)
{
    const gx_document *d = &old->doc;
    if (!op->has_title) {
        op->doc.title = d->title;
        op->doc.title_len = d->title_len;
    }
    if (!op->has_text) {
        op->doc.text = d->text;
        op->doc.text_len = d->text_len;
    }
    for (uint32_t i = 0; i < d->n_values; ++i)
        if (!(op->has_values >> d->values[i].attribute & 1) &&
            !add_value(op, d->values[i].attribute, d->values[i].text, d->values[i].len))
            return false;
    return true;
}

static gx_status take_values(write_op *op, const gx_index *ix, uint64_t docid, uint32_t attribute, gx_values *values,
                             gx_error *err)
{
    gx_status st = gx_index_values(ix, attribute, &docid, 1, values, err);
    for (uint64_t i = 0; st == GX_OK && i < values->starts[1]; ++i) {
        gx_text t = {0};
        gx_text_add_value(&t, values->type, &values->values[i]);
        const size_t len = t.len;
        gx_text_add(&t, "", 1);
        if (!own(op, t.bytes) || t.failed || !add_value(op, attribute, t.bytes, len))
            st = GX_ENOMEM;
    }
    return st;
}

/* What the update does not give stays as it is. */
static gx_status take_committed(write_op *op, const gx_index *ix, uint64_t docid, gx_error *err)
{
    char *text = NULL;
    size_t len = 0, cap = 0;
    gx_status st = GX_OK;
    gx_values values = {0};
    if (!op->has_title) {
        const char *title = gx_index_doc_title(ix, docid, &len);
        char *copy = malloc(len + 1); /* the index of the collection is another one after the next commit */
        if (!own(op, copy))
            return GX_ENOMEM;
        memcpy(copy, title ? title : "", len);
        op->doc.title = copy;
        op->doc.title_len = len;
    }
    if (!op->has_text) {
        st = gx_index_doc_text(ix, docid, &text, &cap, &len, err);
        if (st == GX_ENOTFOUND && op->has_vector) /* the text is only stored */
            st = GX_OK;
        if (st == GX_ENOTFOUND) {
            *err = (gx_error){GX_EINPUT, "the collection stores no texts, so that an update has to give 'text'"};
            st = GX_EINPUT;
        }
        if (st == GX_OK && text && !own(op, text))
            st = GX_ENOMEM;
        op->doc.text = text ? text : "";
        op->doc.text_len = st == GX_OK && text ? len : 0;
    }
    for (uint32_t i = 0; st == GX_OK && i < gx_index_n_attributes(ix); ++i)
        if (!(op->has_values >> i & 1))
            st = take_values(op, ix, docid, i, &values, err);
    gx_values_free(&values);
    return st;
}

/* ---- applying ---- */

static void fail_op(write_op *op, int status, const char *text)
{
    op->result = WRITE_FAILED;
    fault_set(&op->fault, status, "%s", text);
    op->fault.line = op->fault.line ? op->fault.line : op->line;
}

static gx_status replace(writer *w, write_op *op, gx_error *err)
{
    bool replaced = false;
    gx_status st = gx_collection_update(w->c, &op->doc, &replaced, err);
    op->result = replaced ? WRITE_REPLACED : WRITE_CREATED;
    return st;
}

static gx_status update(writer *w, write_op *op, gx_error *err)
{
    const write_op *pending;
    uint64_t docid;
    gx_status st = GX_OK;
    if (!find_document(w, op, &pending, &docid)) {
        if (op->upsert)
            return replace(w, op, err);
        op->result = WRITE_ABSENT;
        return GX_OK;
    }
    if (!pending)
        st = take_committed(op, gx_collection_index(w->c), docid, err);
    else if (!take_pending(op, pending))
        st = GX_ENOMEM;
    return st == GX_OK ? replace(w, op, err) : st;
}

static gx_status create(writer *w, write_op *op, gx_error *err)
{
    const write_op *pending;
    uint64_t docid;
    char text[320];
    if (!find_document(w, op, &pending, &docid)) {
        op->result = WRITE_CREATED;
        return gx_collection_add(w->c, &op->doc, err);
    }
    snprintf(text, sizeof text, "there is a document of the id '%.*s' already",
             (int)(op->doc.id_len < 200 ? op->doc.id_len : 200), op->doc.id);
    fail_op(op, 409, text);
    return GX_OK;
}

static gx_status delete_one(writer *w, write_op *op, gx_error *err)
{
    bool found;
    const gx_status st = gx_collection_delete(w->c, op->doc.id, op->doc.id_len, &found, err);
    op->result = found ? WRITE_DELETED : WRITE_ABSENT;
    return st;
}

/* Apply a change; a status that is not GX_OK fails the whole group. */
static gx_status apply(writer *w, write_op *op, gx_error *err)
{
    typedef gx_status change(writer *, write_op *, gx_error *);
    static change *const changes[] = {replace, create, update, delete_one};
    *err = (gx_error){GX_ENOMEM, "no memory for the changes"};
    if (op->fault.status)
        return GX_OK;
    gx_status st = changes[op->kind](w, op, err);
    if (st == GX_EINPUT || st == GX_EUSAGE) {
        fail_op(op, 400, err->text);
        return GX_OK;
    }
    if (st == GX_OK && op->result != WRITE_ABSENT && op->result != WRITE_FAILED)
        st = remember(w, op, err);
    return st;
}

/* ---- the collection ---- */

static bool is_cancelled(void *user)
{
    return atomic_load(&((writer *)user)->hurry);
}

/* A merge is cut off where a change has waited for half of its time. */
static bool merge_is_cut_off(writer *w)
{
    bool cut = atomic_load(&w->hurry);
    pthread_mutex_lock(&w->lock);
    if (w->first && serve_clock() - w->first->began > w->first->timeout / 2)
        cut = true;
    pthread_mutex_unlock(&w->lock);
    return cut;
}

static bool cancel(void *user)
{
    writer *w = user;
    return w->c ? merge_is_cut_off(w) : is_cancelled(w);
}

static gx_status open_collection(writer *w, gx_error *err)
{
    gx_collection_options o = GX_COLLECTION_OPTIONS;
    if (w->c)
        return GX_OK;
    o.wait = w->sv->limits.timeout / 2;
    o.cancel = cancel;
    o.user = w;
    return gx_collection_open(&w->c, w->path, &o, err);
}

static void close_collection(writer *w)
{
    gx_collection_close(w->c);
    w->c = NULL;
}

static void merge(writer *w)
{
    gx_error err = {0};
    gx_collection_counts before = {.size = sizeof before}, after = before;
    if (!w->c || serve_clock() < w->merge_from || atomic_load(&w->hurry))
        return;
    gx_collection_get_counts(w->c, &before);
    const gx_status st = gx_collection_merge(w->c, GX_MERGE_TIERS, &err);
    gx_collection_get_counts(w->c, &after);
    atomic_fetch_add(&w->merges, after.merges - before.merges);
    w->pause = st == GX_OK ? FIRST_PAUSE : 2 * w->pause;
    if (st != GX_OK)
        w->merge_from = serve_clock() + w->pause;
    if (st != GX_OK && st != GX_ECANCELLED) {
        cli_warn("%s: its parts could not be merged: %s", w->name, err.text);
        close_collection(w);
    }
}

/* ---- the group ---- */

static void answer(writer *w, exchange *x)
{
    writing *of = writing_of(x);
    for (size_t i = 0; i < of->n; ++i)
        atomic_fetch_add(of->ops[i].result == WRITE_FAILED ? &w->failed : &w->ops, 1);
    if (!x->fault.status && of->single && of->n && of->ops[0].fault.status)
        x->fault = of->ops[0].fault;
    if (!x->fault.status)
        x->route->answer(x);
    atomic_fetch_sub(&w->waiting, 1);
    exchange_complete(x);
}

/* Answer the group's requests: those that want the commit to be visible, or the others. */
static void answer_group(writer *w, bool visible)
{
    exchange **link = &w->group;
    for (exchange *x; (x = *link);) {
        if (writing_of(x)->visible != visible && !x->fault.status) {
            link = &writing_of(x)->next;
            continue;
        }
        *link = writing_of(x)->next;
        answer(w, x);
    }
}

static void fail_group(writer *w, const gx_error *err, const char *what)
{
    for (exchange *x = w->group; x; x = writing_of(x)->next)
        fault_set(&x->fault, 503, "%s, and nothing of the request is kept: %s", what, err->text);
    close_collection(w);
}

static bool wants_visible(const writer *w)
{
    for (const exchange *x = w->group; x; x = writing_of(x)->next)
        if (writing_of(x)->visible && !x->fault.status)
            return true;
    return false;
}

static void commit(writer *w)
{
    gx_error err = {0};
    const uint64_t before = w->c ? gx_index_commit(gx_collection_index(w->c)) : 0;
    if (w->c && gx_collection_commit(w->c, &err))
        fail_group(w, &err, "the changes could not be committed");
    forget_pending(w);
    const uint64_t now = w->c ? gx_index_commit(gx_collection_index(w->c)) : 0;
    atomic_fetch_add(&w->commits, now != before);
    for (exchange *x = w->group; x; x = writing_of(x)->next)
        writing_of(x)->commit = now;
    answer_group(w, false);
    if (wants_visible(w) && !catalog_refresh(w->sv->catalog, w->name)) {
        for (exchange *x = w->group; x; x = writing_of(x)->next)
            fault_set(&x->fault, 503, "the changes are kept, and searches do not see them yet: see the server's log");
    }
    answer_group(w, true);
    w->group_end = &w->group;
    w->n_group = 0;
    w->now = false;
}

static void add_to_group(writer *w, exchange *x)
{
    writing *of = writing_of(x);
    of->next = NULL;
    if (!w->group)
        w->since = serve_clock();
    *w->group_end = x;
    w->group_end = &of->next;
    w->n_group += of->n;
    w->now = w->now || of->now;
}

static void apply_request(writer *w, exchange *x)
{
    writing *of = writing_of(x);
    gx_error err = {0};
    add_to_group(w, x);
    if (serve_clock() - x->began > x->timeout) {
        fault_set(&x->fault, 504, "the request has waited longer than %g s, and nothing of it is kept", x->timeout);
        return;
    }
    if (of->n && open_collection(w, &err)) {
        fault_set(&x->fault, 503, "the collection cannot be changed now: %s", err.text);
        return;
    }
    for (size_t i = 0; i < of->n; ++i)
        if (apply(w, &of->ops[i], &err)) {
            fail_group(w, &err, "a change failed");
            forget_pending(w);
            return;
        }
}

/* ---- the thread ---- */

static void wait_for(writer *w, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    seconds = seconds > 0 ? seconds : 0;
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)(1e9 * (seconds - (double)(time_t)seconds));
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&w->some, &w->lock, &until);
}

/* Whether the group has to be committed now. */
static bool is_due(writer *w)
{
    return w->group && (w->now || w->n_group >= MOST_OPS || atomic_load(&w->hurry) ||
                        serve_clock() - w->since >= w->every || w->group->fault.status);
}

/* The next request, or NULL, where the group is due or a while has gone. */
static exchange *next_request(writer *w)
{
    pthread_mutex_lock(&w->lock);
    if (!w->first && !w->closing && !is_due(w)) {
        if (w->group)
            wait_for(w, w->since + w->every - serve_clock());
        else if (w->c)
            wait_for(w, 1e-3 * KEEP_OPEN_MS);
        else
            pthread_cond_wait(&w->some, &w->lock);
    }
    exchange *x = is_due(w) ? NULL : w->first;
    if (x) {
        w->first = writing_of(x)->next;
        if (!w->first)
            w->last = &w->first;
    }
    pthread_mutex_unlock(&w->lock);
    return x;
}

static void *work(void *arg)
{
    writer *w = arg;
    for (bool closing = false; !closing;) {
        exchange *x = next_request(w);
        if (x) {
            apply_request(w, x);
            continue;
        }
        if (is_due(w)) {
            commit(w);
            merge(w);
        } else if (w->c && !w->group) {
            close_collection(w);
        }
        pthread_mutex_lock(&w->lock);
        closing = w->closing && !w->first && !w->group;
        pthread_mutex_unlock(&w->lock);
    }
    close_collection(w);
    return NULL;
}

/* ---- requests ---- */

static writer *find(writers *all, const char *name)
{
    for (uint32_t i = 0; all && i < all->n; ++i)
        if (strcmp(all->all[i].name, name) == 0)
            return &all->all[i];
    return NULL;
}

static void free_writing(void *extra)
{
    writing *w = extra;
    for (size_t i = 0; i < w->n; ++i) {
        write_op *op = &w->ops[i];
        for (size_t k = 0; k < op->n_owned; ++k)
            free(op->owned[k]);
        free(op->owned);
        free(op->values);
    }
    free(w->ops);
    free(w->of_protocol);
    free(w);
}

/* Hand the request to the writer. */
static void begin(exchange *x)
{
    writing *of = writing_of(x);
    writer *w = of->writer;
    pthread_mutex_lock(&w->lock);
    const bool room = !w->closing && atomic_load(&w->waiting) < w->sv->limits.jobs;
    if (room) {
        of->next = NULL;
        atomic_fetch_add(&w->waiting, 1);
        *w->last = x;
        w->last = &of->next;
        pthread_cond_signal(&w->some);
    }
    pthread_mutex_unlock(&w->lock);
    if (room)
        return;
    fault_set(&x->fault, 429, "as many requests wait as may; try again later");
    exchange_complete(x);
}

static bool read_refresh(exchange *x, writing *w)
{
    const char *text = exchange_argument(x, "refresh");
    const int i = text && *text ? gx_word_index("false|true|wait_for", text, strlen(text)) : text ? 1 : 0;
    w->now = i == 1;
    w->visible = i > 0;
    if (i >= 0)
        return true;
    fault_set(&x->fault, 400, "'%.40s' is none of true, false and wait_for", text);
    snprintf(x->fault.member, sizeof x->fault.member, "refresh");
    return false;
}

writing *writes_open(exchange *x, const char *index)
{
    if (!exchange_open_index(x, index))
        return NULL;
    writer *of = find(x->sv->writers, index);
    if (!of) {
        fault_set(&x->fault, 403, "the index '%.100s' is read only; a server with --writable=%.100s takes changes",
                  index, index);
        return NULL;
    }
    writing *w = calloc(1, sizeof *w);
    if (!w || !(x->json[1] = json_array())) {
        free(w);
        fault_set(&x->fault, 503, "no memory for the request");
        return NULL;
    }
    w->x = x;
    w->writer = of;
    x->extra = w;
    x->free_extra = free_writing;
    x->take = begin;
    return read_refresh(x, w) ? w : NULL;
}

write_op *writes_add(writing *w)
{
    if (w->n == w->max) {
        const size_t max = w->max ? 2 * w->max : 1;
        write_op *grown = realloc(w->ops, max * sizeof *grown);
        if (!grown) {
            fault_set(&w->x->fault, 503, "no memory for the request");
            return NULL;
        }
        w->ops = grown;
        w->max = max;
    }
    write_op *op = &w->ops[w->n++];
    *op = (write_op){.doc = {.size = sizeof op->doc, .text = ""}};
    return op;
}

/* ---- documents ---- */

static bool read_value(reader *r, const json_t *value, exchange *x, write_op *op, uint32_t attribute)
{
    char buf[64];
    size_t len;
    if (json_is_null(value))
        return true;
    const char *text = reader_scalar(r, value, buf, &len);
    if (!text)
        return false;
    if (text == buf) { /* jansson keeps the copy */
        json_t *copy = json_stringn(buf, len);
        text = copy ? json_string_value(copy) : NULL;
        if (json_array_append_new(x->json[1], copy))
            text = NULL;
    }
    return (text && add_value(op, attribute, text, len)) || reader_fail(r, "no memory");
}

static bool read_values(reader *r, const json_t *value, exchange *x, write_op *op, uint32_t attribute)
{
    op->has_values |= UINT64_C(1) << attribute;
    if (!json_is_array(value))
        return read_value(r, value, x, op, attribute);
    for (size_t i = 0; i < json_array_size(value); ++i) {
        reader_enter(r, NULL, i);
        if (!read_value(r, json_array_get(value, i), x, op, attribute))
            return false;
        reader_leave(r);
    }
    return true;
}

static bool read_string(reader *r, const json_t *value, const char **text, size_t *len, bool *has)
{
    if (*has)
        return reader_fail(r, "it is there twice, under another name");
    *has = true;
    *text = "";
    *len = 0;
    return json_is_null(value) || reader_string(r, value, text, len);
}

static bool read_id(reader *r, const json_t *value, write_op *op)
{
    const char *id;
    size_t len;
    if (!reader_string(r, value, &id, &len))
        return false;
    if (!op->doc.id) {
        op->doc.id = id;
        op->doc.id_len = len;
    }
    return (len == op->doc.id_len && memcmp(id, op->doc.id, len) == 0) ||
           reader_fail(r, "it is not the id that the request gives, '%.*s'",
                       (int)(op->doc.id_len < 200 ? op->doc.id_len : 200), op->doc.id);
}

/* An object of terms and their weights. */
static bool read_vector(reader *r, const json_t *value, write_op *op)
{
    const size_t n = json_object_size(value);
    if (!json_is_object(value))
        return reader_fail(r, "this is no object of terms and weights");
    gx_weighted_term *terms = malloc((n + 1) * sizeof *terms);
    if (!own(op, terms))
        return reader_fail(r, "no memory");
    op->has_vector = true;
    op->doc.vector = terms;
    for (void *i = json_object_iter((json_t *)value); i; i = json_object_iter_next((json_t *)value, i)) {
        const char *term = json_object_iter_key(i);
        double weight;
        reader_enter(r, term, 0);
        if (!reader_number(r, json_object_iter_value(i), &weight))
            return false;
        if (!(weight > 0 && weight <= (double)GX_MAX_WEIGHT))
            return reader_fail(r, "a weight is above 0 and at most %g", (double)GX_MAX_WEIGHT);
        terms[op->doc.n_vector++] = (gx_weighted_term){term, strlen(term), (float)weight};
        reader_leave(r);
    }
    return true;
}

static bool read_member(reader *r, const char *name, const json_t *value, exchange *x, write_op *op)
{
    const gx_index *ix = x->at->ix;
    const int i = gx_word_index("id|title|text|contents", name, strlen(name));
    uint32_t attribute;
    gx_error err = {0};
    if (i == 0)
        return read_id(r, value, op);
    if (i == 1)
        return read_string(r, value, &op->doc.title, &op->doc.title_len, &op->has_title);
    if (i > 1)
        return read_string(r, value, &op->doc.text, &op->doc.text_len, &op->has_text);
    if (x->at->stats.impacts && strcmp(name, "vector") == 0)
        return read_vector(r, value, op);
    if (gx_index_find_attribute(ix, name, strlen(name), &attribute, &err))
        return reader_fail(r, "the collection has no field '%.80s'; it has title, text%s and its attributes", name,
                           x->at->stats.impacts ? ", vector" : "");
    return read_values(r, value, x, op, attribute);
}

bool writes_read_document(reader *r, const json_t *value, exchange *x, write_op *op)
{
    if (!json_is_object(value))
        return reader_fail(r, "this is no object");
    for (void *i = json_object_iter((json_t *)value); i; i = json_object_iter_next((json_t *)value, i)) {
        reader_enter(r, json_object_iter_key(i), 0);
        if (!read_member(r, json_object_iter_key(i), json_object_iter_value(i), x, op))
            return false;
        reader_leave(r);
    }
    return !x->at->stats.impacts || op->has_vector ||
           reader_fail(r, "the collection holds vectors, and the document has no 'vector': an object of terms and "
                          "weights, which an update gives, too");
}

bool writes_make_id(write_op *op)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    enum { LEN = 20 };
    unsigned char random[LEN];
    char *id = malloc(LEN + 1);
    FILE *f = fopen("/dev/urandom", "rb");
    const bool good = f && fread(random, 1, LEN, f) == LEN;
    if (f)
        fclose(f);
    if (!own(op, id) || !good)
        return false;
    for (int i = 0; i < LEN; ++i)
        id[i] = digits[random[i] % 64];
    id[LEN] = 0;
    op->doc.id = id;
    op->doc.id_len = LEN;
    return true;
}

/* ---- opening and closing ---- */

static int open_writer(writer *w, server *sv, const cli_args *a, const char *name)
{
    snapshot *s = catalog_get(sv->catalog, name);
    if (!s)
        return cli_usage(a, "--writable=%s: no index of the command line has this name", name);
    const bool many = gx_index_commit(s->ix) > 0;
    w->sv = sv;
    w->name = name;
    w->path = entry_path(s->of);
    w->every = 1e-3 * cli_number(a, "commit-every");
    w->last = &w->first;
    w->group_end = &w->group;
    w->pause = FIRST_PAUSE;
    snapshot_release(s);
    if (!many)
        return cli_usage(a,
                         "--writable=%s: %s is an index file, which never changes; `gpuidx collect COLLECTION %s` "
                         "makes a collection of it",
                         name, w->path, w->path);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->some, NULL);
    w->started = pthread_create(&w->thread, NULL, work, w) == 0;
    return w->started ? 0 : cli_fail(GX_ENOMEM, "cannot start a thread");
}

int writers_open(writers **out, server *sv, const cli_args *a)
{
    const char *text = cli_text(a, "writable");
    uint32_t n = 1;
    if (!text)
        return 0;
    for (const char *p = text; *p; ++p)
        n += *p == ',';
    writers *w = calloc(1, sizeof *w + n * sizeof *w->all);
    char *copy = strdup(text);
    *out = w;
    if (w)
        w->names = copy;
    if (!w || !copy) {
        free(w ? NULL : copy);
        return cli_fail(GX_ENOMEM, "no memory for writers");
    }
    int code = 0;
    for (char *rest = copy, *name; code == 0 && (name = strsep(&rest, ","));) {
        if (find(w, name))
            code = cli_usage(a, "--writable=%s: it is there twice", name);
        else if ((code = open_writer(&w->all[w->n], sv, a, name)) == 0)
            ++w->n;
    }
    return code;
}

void writers_drain(writers *w)
{
    for (uint32_t i = 0; w && i < w->n; ++i) {
        pthread_mutex_lock(&w->all[i].lock);
        atomic_store(&w->all[i].hurry, true);
        pthread_cond_broadcast(&w->all[i].some);
        pthread_mutex_unlock(&w->all[i].lock);
    }
}

void writers_close(writers *w)
{
    for (uint32_t i = 0; w && i < w->n; ++i) {
        writer *one = &w->all[i];
        pthread_mutex_lock(&one->lock);
        one->closing = true;
        atomic_store(&one->hurry, true);
        pthread_cond_broadcast(&one->some);
        pthread_mutex_unlock(&one->lock);
        pthread_join(one->thread, NULL);
        pthread_mutex_destroy(&one->lock);
        pthread_cond_destroy(&one->some);
    }
    free(w ? w->names : NULL);
    free(w);
}

bool writers_count(writers *w, const char *index, write_counts *out)
{
    writer *one = find(w, index);
    if (!one)
        return false;
    *out = (write_counts){atomic_load(&one->ops), atomic_load(&one->failed), atomic_load(&one->commits),
                          atomic_load(&one->merges), atomic_load(&one->waiting)};
    return true;
}
