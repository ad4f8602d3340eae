#include "tools/serve/protocols/windows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct windows {
    pthread_mutex_t lock;
    window *first; /* the last used one */
    uint32_t n, max;
    double seconds; /* that an unused one is kept */
};

windows *windows_open(uint32_t max, double seconds)
{
    windows *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    w->max = max;
    w->seconds = seconds;
    return w;
}

void window_release(window *w)
{
    if (!w || atomic_fetch_sub(&w->refs, 1) != 1)
        return;
    free(w->who);
    free(w->index);
    free(w->query);
    free(w->filter);
    free(w->ids.bytes);
    free(w->begins);
    free(w);
}

void windows_close(windows *w)
{
    if (!w)
        return;
    for (window *one = w->first, *next; one; one = next) {
        next = one->next;
        window_release(one);
    }
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* Drop those behind the max-th, and those that nobody has used for a while. */
static void drop_old(windows *w)
{
    const double now = serve_clock();
    uint32_t n = 0;
    window **link = &w->first;
    for (window *one; (one = *link);) {
        if (++n <= w->max && now - one->used < w->seconds) {
            link = &one->next;
            continue;
        }
        *link = one->next; /* all behind it were used before it */
        --n;
        --w->n;
        window_release(one);
    }
}

/* A name that nobody guesses. */
static bool make_id(char id[24])
{
    unsigned char random[11];
    FILE *f = fopen("/dev/urandom", "rb");
    const bool good = f && fread(random, 1, sizeof random, f) == sizeof random;
    if (f)
        fclose(f);
    for (size_t i = 0; i < sizeof random; ++i)
        snprintf(id + 2 * i, 3, "%02x", random[i]);
    return good;
}

static bool add_ids(window *one, const exchange *x, const search *s)
{
    one->scores = (double *)(one->begins + s->n_hits);
    for (uint32_t i = 0; i < s->n_hits; ++i) {
        size_t len;
        const char *id = gx_index_doc_id(x->at->ix, s->docids[i], &len);
        one->begins[i] = one->ids.len;
        one->scores[i] = s->scores[i];
        gx_text_add(&one->ids, id, len);
        gx_text_add(&one->ids, "", 1);
    }
    return !one->ids.failed;
}

window *windows_keep(windows *w, exchange *x, const search *s, const char *filter)
{
    window *one = calloc(1, sizeof *one);
    if (!one)
        return NULL;
    atomic_init(&one->refs, 2); /* the list's, and the caller's */
    one->who = strdup(x->who->name);
    one->index = strdup(x->index);
    one->query = strndup(s->text, s->len);
    one->filter = strdup(filter ? filter : "");
    one->opened = x->at->opened;
    one->begins = malloc((s->n_hits + 1) * (sizeof *one->begins + sizeof *one->scores));
    if (!one->who || !one->index || !one->query || !one->filter || !one->begins || !add_ids(one, x, s) ||
        !make_id(one->id)) {
        atomic_store(&one->refs, 1);
        window_release(one);
        return NULL;
    }
    one->n = s->n_hits;
    one->depth = s->plan->wanted;
    one->used = serve_clock();
    pthread_mutex_lock(&w->lock);
    one->next = w->first;
    w->first = one;
    ++w->n;
    drop_old(w);
    pthread_mutex_unlock(&w->lock);
    return one;
}

typedef bool match_fn(const window *w, const exchange *x, const char *a, const char *b);

static window *find(windows *w, match_fn *matches, const exchange *x, const char *a, const char *b)
{
    window *found = NULL;
    pthread_mutex_lock(&w->lock);
    drop_old(w);
    for (window **link = &w->first; *link && !found; link = &(*link)->next)
        if (matches(*link, x, a, b)) {
            found = *link;
            *link = found->next;
            found->next = w->first;
            w->first = found;
            found->used = serve_clock();
            atomic_fetch_add(&found->refs, 1);
            break;
        }
    pthread_mutex_unlock(&w->lock);
    return found;
}

static bool has_id(const window *w, const exchange *x, const char *id, const char *unused)
{
    (void)unused;
    return strcmp(w->id, id) == 0 && strcmp(w->who, x->who->name) == 0 && strcmp(w->index, x->index) == 0;
}

window *windows_find(windows *w, const exchange *x, const char *id)
{
    return find(w, has_id, x, id, NULL);
}

static bool has_query(const window *w, const exchange *x, const char *query, const char *filter)
{
    return w->opened == x->at->opened && strcmp(w->query, query) == 0 && strcmp(w->filter, filter ? filter : "") == 0 &&
           strcmp(w->who, x->who->name) == 0 && strcmp(w->index, x->index) == 0;
}

window *windows_find_query(windows *w, const exchange *x, const char *query, const char *filter)
{
    return find(w, has_query, x, query, filter);
}
