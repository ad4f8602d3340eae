#include "query/exec/spare_workspaces.h"

#include <pthread.h>
#include <stdlib.h>

/* Commits after which a workspace that nobody has taken is closed. */
#define MOST_AGE 2u

typedef struct spare {
    struct spare *next;
    const gx_executor *ops;
    int device;
    void *workspace;
    uint64_t commit; /* in which it became one */
} spare;

struct gx_spare_workspaces {
    pthread_mutex_t lock; /* of all below */
    uint32_t n_holders;
    uint64_t commit;     /* counted from 0 */
    uint64_t n_open;     /* workspaces that sessions have */
    uint64_t n_expected; /* of those that were open when the commit began, how many may yet be kept */
    spare *spares;
};

gx_spare_workspaces *gx_spares_open(void)
{
    gx_spare_workspaces *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    p->n_holders = 1;
    return p;
}

gx_spare_workspaces *gx_spares_share(gx_spare_workspaces *p)
{
    if (!p)
        return NULL;
    pthread_mutex_lock(&p->lock);
    ++p->n_holders;
    pthread_mutex_unlock(&p->lock);
    return p;
}

static void close_all(spare *s)
{
    for (spare *next; s; s = next) {
        next = s->next;
        s->ops->workspace_close(s->workspace);
        free(s);
    }
}

void gx_spares_close(gx_spare_workspaces *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    const bool last = --p->n_holders == 0;
    pthread_mutex_unlock(&p->lock);
    if (!last)
        return;
    close_all(p->spares);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void gx_spares_begin_commit(gx_spare_workspaces *p)
{
    spare *old = NULL;
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    ++p->commit;
    p->n_expected = p->n_open;
    for (spare **at = &p->spares; *at;) {
        spare *s = *at;
        if (s->commit + MOST_AGE > p->commit) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        s->next = old;
        old = s;
    }
    pthread_mutex_unlock(&p->lock);
    close_all(old);
}

static spare *find_spare(gx_spare_workspaces *p, const gx_executor *ops, int device)
{
    spare *found = NULL;
    pthread_mutex_lock(&p->lock);
    for (spare **at = &p->spares; *at && !found; at = &(*at)->next) {
        if ((*at)->ops != ops || (*at)->device != device)
            continue;
        found = *at;
        *at = found->next;
        break;
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}

static void count_open(gx_spare_workspaces *p)
{
    pthread_mutex_lock(&p->lock);
    ++p->n_open;
    pthread_mutex_unlock(&p->lock);
}

gx_status gx_spares_take(gx_spare_workspaces *p, const gx_executor *ops, int device, void *state, void **workspace,
                         gx_error *err)
{
    gx_status st = GX_ENOTFOUND;
    for (spare *s; p && st != GX_OK && (s = find_spare(p, ops, device)) != NULL; free(s)) {
        *workspace = s->workspace;
        st = ops->workspace_attach(s->workspace, state, err);
        if (st != GX_OK)
            ops->workspace_close(s->workspace);
    }
    if (st != GX_OK)
        st = ops->workspace_open(workspace, state, err);
    if (st == GX_OK && p)
        count_open(p);
    return st;
}

void gx_spares_give(gx_spare_workspaces *p, const gx_executor *ops, int device, void *workspace)
{
    spare *s = NULL;
    if (p) {
        pthread_mutex_lock(&p->lock);
        --p->n_open;
        if (p->n_expected && ops->workspace_detach && (s = calloc(1, sizeof *s)) != NULL)
            --p->n_expected;
        pthread_mutex_unlock(&p->lock);
    }
    if (!s || !ops->workspace_detach(workspace)) {
        ops->workspace_close(workspace);
        free(s);
        return;
    }
    s->ops = ops;
    s->device = device;
    s->workspace = workspace;
    pthread_mutex_lock(&p->lock);
    s->commit = p->commit;
    s->next = p->spares;
    p->spares = s;
    pthread_mutex_unlock(&p->lock);
}
