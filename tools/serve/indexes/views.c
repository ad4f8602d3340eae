/* views.c: the fields by which requests search: views of a snapshot's index, each with an engine, kept for the requests
 * that come after. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/serve.h"

enum { MOST_VIEWS = 8, MOST_IDLE = 16 };

struct view {
    atomic_uint refs;
    char *key;
    gx_index *ix;
    gx_engine *en;
    pthread_mutex_t lock; /* of what follows */
    gx_session *idle[MOST_IDLE];
    uint32_t n_idle;
    struct view *next; /* of the snapshot, the last used first */
};

const gx_index *view_index(const view *v)
{
    return v->ix;
}

view *view_hold(view *v)
{
    if (v)
        atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    return v;
}

void view_release(view *v)
{
    if (!v || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < v->n_idle; ++i)
        gx_session_close(v->idle[i]);
    gx_engine_close(v->en);
    gx_index_close(v->ix);
    pthread_mutex_destroy(&v->lock);
    free(v->key);
    free(v);
}

void views_close(view *first)
{
    for (view *v = first, *next; v; v = next) {
        next = v->next;
        view_release(v);
    }
}

gx_status view_session(view *v, gx_session **out, gx_error *err)
{
    *out = NULL;
    pthread_mutex_lock(&v->lock);
    if (v->n_idle)
        *out = v->idle[--v->n_idle];
    pthread_mutex_unlock(&v->lock);
    return *out ? GX_OK : gx_session_open(out, v->en, err);
}

void view_give_back(view *v, gx_session *session)
{
    pthread_mutex_lock(&v->lock);
    if (v->n_idle < MOST_IDLE) {
        v->idle[v->n_idle++] = session;
        session = NULL;
    }
    pthread_mutex_unlock(&v->lock);
    gx_session_close(session);
}

/* The view of that key, which becomes the first; NULL: there is none. The snapshot's lock is held. */
static view *find(snapshot *s, const char *key)
{
    for (view **at = &s->views; *at; at = &(*at)->next)
        if (!gx_view_is_worn((*at)->ix) && strcmp((*at)->key, key) == 0) { /* a worn one will be the last */
            view *v = *at;
            *at = v->next;
            v->next = s->views;
            s->views = v;
            atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
            return v;
        }
    return NULL;
}

/* Keep a view; those that were not used for longest go. The snapshot's lock is held. Returns what is to be released. */
static view *keep(snapshot *s, view *v)
{
    view **at = &s->views;
    atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    v->next = s->views;
    s->views = v;
    for (uint32_t i = 0; *at && i < MOST_VIEWS; ++i)
        at = &(*at)->next;
    view *old = *at;
    *at = NULL;
    return old;
}

static gx_status open_view(view **out, snapshot *s, const gx_view_options *o, gx_error *err)
{
    gx_engine_options engine = GX_ENGINE_OPTIONS;
    view *v = calloc(1, sizeof *v);
    if (!v) {
        *err = (gx_error){GX_ENOMEM, "no memory for a view of fields"};
        return GX_ENOMEM;
    }
    atomic_init(&v->refs, 1);
    pthread_mutex_init(&v->lock, NULL);
    engine.kind = GX_ENGINE_CPU;
    gx_status st = gx_index_open_view(&v->ix, s->ix, o, err);
    if (st == GX_OK)
        st = gx_engine_open(&v->en, v->ix, &engine, err);
    if (st != GX_OK)
        view_release(v);
    else
        *out = v;
    return st;
}

gx_status snapshot_view(snapshot *s, const gx_view_options *o, view **out, gx_error *err)
{
    gx_text key = {0};
    gx_text_add_format(&key, "%d %d %.9g %.9g ", (int)o->scoring, (int)o->preset, o->k1, o->b);
    gx_text_add(&key, o->fields ? o->fields : "", o->fields ? strlen(o->fields) + 1 : 1);
    *out = NULL;
    if (key.failed) {
        free(key.bytes);
        *err = (gx_error){GX_ENOMEM, "no memory for a view of fields"};
        return GX_ENOMEM;
    }
    pthread_mutex_lock(&s->lock);
    *out = find(s, key.bytes);
    pthread_mutex_unlock(&s->lock);
    gx_status st = GX_OK;
    if (!*out && (st = open_view(out, s, o, err)) == GX_OK) {
        view *mine = *out, *old = NULL;
        mine->key = key.bytes;
        key.bytes = NULL;
        pthread_mutex_lock(&s->lock);
        if ((*out = find(s, mine->key))) /* another request was faster */
            old = mine;
        else
            old = keep(s, *out = mine);
        pthread_mutex_unlock(&s->lock);
        views_close(old);
    }
    free(key.bytes);
    return st;
}
