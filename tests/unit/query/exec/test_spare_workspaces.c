/* Workspaces of sessions that follow a collection to a new commit: which are kept, which are taken, and that all are
 * closed in the end. */
#include "engine/random.h"
#include "engine/status.h"
#include "query/exec/spare_workspaces.h"
#include "tests/support/test.h"

enum { MOST = 64 };

/* A workspace is one of these; a state is the number of the commit. */
typedef struct workspace {
    bool open, attached;
    int state;
} workspace;

static workspace all[MOST];
static uint32_t n_opened, n_closed, n_attached;
static bool refuse_detach, refuse_attach;

static gx_status open_workspace(void **out, void *state, gx_error *err)
{
    (void)err;
    for (uint32_t i = 0; i < MOST; ++i) {
        if (all[i].open)
            continue;
        all[i] = (workspace){true, true, *(int *)state};
        ++n_opened;
        *out = &all[i];
        return GX_OK;
    }
    return GX_ENOMEM;
}

static void close_workspace(void *exec)
{
    workspace *w = exec;
    assert_true(w->open);
    w->open = false;
    ++n_closed;
}

static bool detach_workspace(void *exec)
{
    workspace *w = exec;
    assert_true(w->open && w->attached);
    w->attached = refuse_detach;
    return !refuse_detach;
}

static gx_status attach_workspace(void *exec, void *state, gx_error *err)
{
    workspace *w = exec;
    assert_true(w->open && !w->attached);
    if (refuse_attach)
        return gx_fail(err, GX_ENOTFOUND, "refused");
    *w = (workspace){true, true, *(int *)state};
    ++n_attached;
    return GX_OK;
}

static const gx_executor ops = {.name = "gpu",
                                .workspace_open = open_workspace,
                                .workspace_close = close_workspace,
                                .workspace_detach = detach_workspace,
                                .workspace_attach = attach_workspace};

static int begin(void **state)
{
    (void)state;
    memset(all, 0, sizeof all);
    n_opened = n_closed = n_attached = 0;
    refuse_detach = refuse_attach = false;
    return 0;
}

static workspace *take(gx_spare_workspaces *p, int device, int state)
{
    void *w = NULL;
    gx_error err;
    assert_int_equal(gx_spares_take(p, &ops, device, &state, &w, &err), GX_OK);
    assert_int_equal(((workspace *)w)->state, state);
    assert_true(((workspace *)w)->attached);
    return w;
}

static void sessions_take_what_those_before_had(void **state)
{
    (void)state;
    gx_spare_workspaces *p = gx_spares_open();
    workspace *a = take(p, 0, 1), *b = take(p, 1, 1);
    gx_spares_begin_commit(p);
    gx_spares_give(p, &ops, 0, a);
    gx_spares_give(p, &ops, 1, b);
    assert_int_equal(n_closed, 0);
    assert_ptr_equal(take(p, 1, 2), b); /* of the same GPU */
    assert_ptr_equal(take(p, 0, 2), a);
    assert_int_equal(n_opened, 2);
    gx_spares_give(p, &ops, 0, a);
    gx_spares_give(p, &ops, 1, b);
    assert_int_equal(n_closed, 2); /* no commit since: nobody will want them */
    gx_spares_close(p);
    assert_int_equal(n_closed, 2);
}

static void what_nobody_takes_is_closed_after_two_commits(void **state)
{
    (void)state;
    gx_spare_workspaces *p = gx_spares_open();
    workspace *a = take(p, 0, 1);
    gx_spares_begin_commit(p);
    gx_spares_give(p, &ops, 0, a);
    gx_spares_begin_commit(p);
    assert_int_equal(n_closed, 0);
    gx_spares_begin_commit(p);
    assert_int_equal(n_closed, 1);
    gx_spares_close(p);
    assert_int_equal(n_closed, 1);
}

static void the_last_holder_closes_them(void **state)
{
    (void)state;
    gx_spare_workspaces *p = gx_spares_open(), *other = gx_spares_share(p);
    workspace *a = take(p, 0, 1);
    gx_spares_begin_commit(p);
    gx_spares_give(p, &ops, 0, a);
    gx_spares_close(p);
    assert_int_equal(n_closed, 0);
    gx_spares_close(other);
    assert_int_equal(n_closed, 1);
}

static void refusals_cost_a_new_one(void **state)
{
    (void)state;
    gx_spare_workspaces *p = gx_spares_open();
    workspace *a = take(p, 0, 1), *b = take(p, 0, 1);
    gx_spares_begin_commit(p);
    refuse_detach = true;
    gx_spares_give(p, &ops, 0, a);
    assert_int_equal(n_closed, 1);
    refuse_detach = false;
    gx_spares_give(p, &ops, 0, b);
    assert_int_equal(n_closed, 1);
    refuse_attach = true;
    workspace *c = take(p, 0, 2);
    assert_int_equal(n_closed, 2);
    assert_int_equal(n_opened, 3);
    gx_spares_give(p, &ops, 0, c);
    gx_spares_close(p);
    assert_int_equal(n_closed, n_opened);
}

static void without_a_pool_they_are_opened_and_closed(void **state)
{
    (void)state;
    workspace *a = take(NULL, 0, 1);
    gx_spares_begin_commit(NULL);
    gx_spares_give(NULL, &ops, 0, a);
    gx_spares_close(NULL);
    assert_int_equal(n_opened, 1);
    assert_int_equal(n_closed, 1);
}

/* Random sessions and commits: there are never more spare ones than sessions were open when a commit began, and
 * none is lost. */
static void random_sequences_lose_none(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        uint64_t r = seed;
        workspace *open[MOST];
        uint32_t n = 0, most = 0;
        int commit = 1;
        begin(NULL);
        gx_spare_workspaces *p = gx_spares_open();
        for (uint32_t step = 0; step < 300; ++step) {
            const uint32_t what = (uint32_t)(gx_random_next(&r) >> 60);
            refuse_attach = gx_random_next(&r) >> 61 == 0;
            refuse_detach = gx_random_next(&r) >> 61 == 0;
            if (what < 7 && n < MOST / 4) {
                open[n++] = take(p, (int)(gx_random_next(&r) >> 63), commit);
            } else if (what < 14 && n) {
                const uint32_t i = (uint32_t)(gx_random_next(&r) >> 32) % n;
                gx_spares_give(p, &ops, (int)(gx_random_next(&r) >> 63), open[i]);
                open[i] = open[--n];
            } else {
                gx_spares_begin_commit(p);
                ++commit;
            }
            most = n > most ? n : most;
            if (n_opened - n_closed - n > 2 * most)
                fail_msg("seed %llu, step %u: %u spare ones, and at most %u sessions were open",
                         (unsigned long long)seed, step, n_opened - n_closed - n, most);
        }
        while (n)
            gx_spares_give(p, &ops, 0, open[--n]);
        gx_spares_close(p);
        assert_int_equal(n_opened, n_closed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(sessions_take_what_those_before_had, begin),
        cmocka_unit_test_setup(what_nobody_takes_is_closed_after_two_commits, begin),
        cmocka_unit_test_setup(the_last_holder_closes_them, begin),
        cmocka_unit_test_setup(refusals_cost_a_new_one, begin),
        cmocka_unit_test_setup(without_a_pool_they_are_opened_and_closed, begin),
        cmocka_unit_test_setup(random_sequences_lose_none, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
