#include "index/inversion/postings_buffer_internal.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "tests/support/test.h"

/* A list as it came out, and the same worked out the plain way. */
typedef struct plain {
    uint32_t n_terms, n_docs;
    uint32_t *tf; /* [n_docs * n_terms] */
    char (*names)[24];
    uint8_t *name_lens;
    uint32_t *order; /* term numbers in byte order */
    uint32_t seen;
    char last[24];
    size_t last_len;
    uint64_t seed;
    uint32_t fail_at;
    bool details;      /* that of the k-th occurrence is detail_of() */
    uint32_t *counted; /* [n_terms] occurrences in the document that is being added */
} plain;

/* Near each other in most documents, and far in some. */
static uint32_t detail_of(uint32_t term, uint32_t doc, uint32_t k)
{
    return (doc * 7 + term * 13) % 300 + k * (1 + (doc + term) % 9 * ((doc + term) % 50 ? 1 : 9999));
}

static uint32_t random_below(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*seed >> 32) * n >> 32);
}

static uint32_t find_name(const plain *p, const char *term, size_t len)
{
    for (uint32_t t = 0; t < p->n_terms; ++t)
        if (p->name_lens[t] == len && memcmp(p->names[t], term, len) == 0)
            return t;
    fail_msg("seed %llu: an unknown term came out", (unsigned long long)p->seed);
    return 0;
}

static gx_status compare_list(void *user, const gx_term_postings *l, gx_error *err)
{
    (void)err;
    plain *p = user;
    const uint32_t t = find_name(p, l->term, l->len);
    if (p->seen++) {
        const int c = memcmp(p->last, l->term, p->last_len < l->len ? p->last_len : l->len);
        assert_true(c < 0 || (c == 0 && p->last_len < l->len));
    }
    memcpy(p->last, l->term, l->len);
    p->last_len = l->len;
    assert_null(l->positions);
    assert_true(p->details == (l->gaps != NULL));
    const uint32_t *gap = l->gaps;
    uint32_t n = 0;
    for (uint32_t d = 0; d < p->n_docs; ++d) {
        const uint32_t tf = p->tf[(size_t)d * p->n_terms + t];
        if (!tf)
            continue;
        for (uint32_t k = 0; k < tf && gap; ++k, ++gap)
            assert_int_equal(*gap, k ? detail_of(t, d, k) - detail_of(t, d, k - 1) - 1 : detail_of(t, d, 0));
        assert_true(n < l->df);
        if (l->docids[n] != d * 3 || l->tfs[n] != tf)
            fail_msg("seed %llu, term %u: posting %u is (%u, %u), not (%u, %u)", (unsigned long long)p->seed, t, n,
                     l->docids[n], l->tfs[n], d * 3, tf);
        ++n;
    }
    assert_int_equal(n, l->df);
    return p->fail_at && p->seen == p->fail_at ? GX_ECANCELLED : GX_OK;
}

static void make_plain(plain *p, uint64_t seed, uint32_t n_terms, uint32_t n_docs)
{
    *p = (plain){.n_terms = n_terms, .n_docs = n_docs, .seed = seed};
    p->tf = calloc((size_t)n_docs * n_terms, sizeof *p->tf);
    p->names = calloc(n_terms, sizeof *p->names);
    p->name_lens = calloc(n_terms, 1);
    for (uint32_t t = 0; t < n_terms; ++t) { /* common prefixes, zeros, and bytes above 127 */
        static const char first[] = {'a', 'a', 'b', 0, (char)0xC3};
        const uint32_t len = 3 + random_below(&seed, 18);
        memset(p->names[t], first[random_below(&seed, 5)], len);
        p->names[t][len - 3] = (char)t;
        p->names[t][len - 2] = (char)(t >> 8);
        p->names[t][len - 1] = (char)(t >> 16);
        p->name_lens[t] = (uint8_t)len;
    }
    for (uint32_t d = 0; d < n_docs; ++d) {
        const uint32_t n = random_below(&seed, 40);
        for (uint32_t i = 0; i < n; ++i) { /* some terms far more common than others */
            const uint32_t a = random_below(&seed, n_terms), b = random_below(&seed, a + 1);
            p->tf[(size_t)d * n_terms + random_below(&seed, b + 1)] +=
                1 + (random_below(&seed, 50) == 0) * random_below(&seed, 300);
        }
    }
}

static void free_plain(plain *p)
{
    free(p->tf);
    free(p->names);
    free(p->name_lens);
}

enum { MAX_BUFFERS = 7 };

/* The lists of ranges that begin at some of the terms, and of those that the buffers would have,
 * are together all lists. */
static void merge_by_ranges(plain *p, gx_postings_buffer *const *buffers, uint32_t n, uint64_t *seed)
{
    const uint32_t all = p->seen;
    gx_error err = {0};
    gx_postings_merger *m;
    gx_term_range *ranges, range = {0, 0};
    uint32_t n_ranges;
    assert_int_equal(gx_postings_merger_open(&m, buffers, n, &err), GX_OK);
    p->seen = 0;
    for (uint32_t i = 0; i < 8; ++i, range.from = range.to) {
        const char *name = p->names[random_below(seed, p->n_terms)];
        uint64_t to = 0;
        for (int k = 0; k < 8; ++k) /* names are padded with zeros */
            to = to << 8 | (unsigned char)name[k];
        if (to <= range.from && i < 7)
            to = range.from + 1;
        range.to = i < 7 ? to : 0;
        assert_int_equal(gx_postings_merger_run(m, range, compare_list, p, &err), GX_OK);
    }
    assert_int_equal(p->seen, all);
    assert_int_equal(gx_postings_buffer_ranges(buffers, n, &ranges, &n_ranges, &err), GX_OK);
    p->seen = 0;
    for (uint32_t i = 0; i < n_ranges; ++i) {
        assert_true(ranges[i].from == (i ? ranges[i - 1].to : 0) && (ranges[i].to == 0) == (i + 1 == n_ranges));
        assert_int_equal(gx_postings_merger_run(m, ranges[i], compare_list, p, &err), GX_OK);
    }
    assert_int_equal(p->seen, all);
    free(ranges);
    gx_postings_merger_close(m);
}

/* A run is of one piece, and no more are left than n buffers' worth of memory has windows for. */
static void check_runs(const gx_postings_buffer *inv, uint64_t memory, uint32_t n)
{
    const uint64_t most = memory / n / 8192 ? memory / n / 8192 : 1;
    assert_in_range(inv->n_runs, 0, most);
    for (uint32_t r = 0; r < inv->n_runs; ++r)
        assert_true(inv->runs[r].begin <= inv->runs[r].end && inv->runs[r].end <= inv->file_bytes &&
                    (inv->runs[r].n_marks > 0) == (inv->runs[r].begin < inv->runs[r].end) &&
                    inv->runs[r].first_mark + inv->runs[r].n_marks <= inv->n_marks);
}

/* Add terms which[n] of a document, whose numbers are terms[n]. */
static void add_terms(plain *p, gx_postings_buffer *inv, uint32_t doc, const uint32_t *terms, const uint32_t *which,
                      uint32_t n)
{
    if (!p->details) {
        assert_int_equal(gx_postings_buffer_add(inv, doc * 3, terms, n), GX_OK);
        return;
    }
    uint32_t *const details = malloc((n + 1ull) * sizeof *details);
    for (uint32_t i = 0; i < n; ++i)
        details[i] = detail_of(which[i], doc, p->counted[which[i]]++);
    assert_int_equal(gx_postings_buffer_add_details(inv, doc * 3, terms, details, n), GX_OK);
    free(details);
}

/* Invert several documents by one of n_buffers and then by another, spill after every spill_every
 * documents (0: never), and compare. */
static void invert_together(plain *p, uint32_t n_buffers, uint32_t spill_every, gx_status want)
{
    gx_postings_buffer *buffers[MAX_BUFFERS], *inv = NULL;
    gx_error err = {0};
    /* with little memory, few runs can be read at once: 2 to 128 */
    const uint64_t memory = spill_every ? 16384u << p->seed % 7 : 64u << 20;
    for (uint32_t i = 0; i < n_buffers; ++i) {
        assert_int_equal(gx_postings_buffer_open(&buffers[i], "/tmp", memory, n_buffers, &err), GX_OK);
        if (p->details)
            gx_postings_buffer_keep_details(buffers[i]);
    }
    uint32_t *terms = malloc(1u << 20), *which = malloc(1u << 20), spills = 0, counted = 0;
    p->counted = malloc(p->n_terms * sizeof *p->counted);
    uint64_t shuffle = p->seed ^ 99;
    for (uint32_t d = 0; d < p->n_docs; ++d) {
        uint32_t n = 0;
        if (!inv || random_below(&shuffle, 5) == 0)
            inv = buffers[random_below(&shuffle, n_buffers)];
        for (uint32_t t = 0; t < p->n_terms; ++t)
            for (uint32_t i = 0; i < p->tf[(size_t)d * p->n_terms + t]; ++i) {
                which[n] = t;
                terms[n++] = gx_postings_buffer_term(inv, p->names[t], p->name_lens[t]);
            }
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t j = random_below(&shuffle, n), swap = terms[i], other = which[i];
            terms[i] = terms[j];
            terms[j] = swap;
            which[i] = which[j];
            which[j] = other;
        }
        const uint32_t half = n / 2; /* a document may come in pieces */
        memset(p->counted, 0, p->n_terms * sizeof *p->counted);
        add_terms(p, inv, d, terms, which, half);
        add_terms(p, inv, d, terms + half, which + half, n - half);
        if (spill_every && (d + 1) % spill_every == 0) {
            assert_int_equal(gx_postings_buffer_spill(inv, &err), GX_OK);
            ++spills;
        }
    }
    for (uint32_t i = 0; i < n_buffers; ++i)
        counted += gx_postings_buffer_spills(buffers[i]);
    assert_int_equal(counted, spills);
    if (p->seed % 2) /* of the even ones the merge does it */
        assert_int_equal(gx_postings_buffer_finish(buffers[0], &err), GX_OK);
    p->seen = 0;
    assert_int_equal(gx_postings_buffer_merge(buffers, n_buffers, compare_list, p, &err), want);
    if (want == GX_OK) {
        uint32_t expected = 0;
        for (uint32_t t = 0; t < p->n_terms; ++t) {
            bool any = false;
            for (uint32_t d = 0; d < p->n_docs && !any; ++d)
                any = p->tf[(size_t)d * p->n_terms + t];
            expected += any;
        }
        assert_int_equal(p->seen, expected);
    }
    for (uint32_t i = 0; i < n_buffers; ++i)
        check_runs(buffers[i], memory, n_buffers);
    if (want == GX_OK)
        merge_by_ranges(p, buffers, n_buffers, &shuffle);
    free(terms);
    free(which);
    free(p->counted);
    for (uint32_t i = 0; i < n_buffers; ++i)
        gx_postings_buffer_close(buffers[i]);
}

static void invert(plain *p, uint32_t spill_every, gx_status want)
{
    invert_together(p, 1, spill_every, want);
}

static void gives_back_what_came_in(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        plain p;
        make_plain(&p, seed, 1 + (uint32_t)seed * 23, (uint32_t)seed * 40);
        invert(&p, 0, GX_OK);
        free_plain(&p);
    }
}

static void spilling_changes_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
        plain p;
        make_plain(&p, seed, 1 + (uint32_t)seed * 41, (uint32_t)seed * 60);
        invert(&p, 1, GX_OK);
        invert(&p, 7, GX_OK);
        invert(&p, 200, GX_OK);
        invert(&p, (uint32_t)seed * 60, GX_OK); /* nothing is left for the end */
        free_plain(&p);
    }
    for (uint64_t seed = 1; seed <= 4; ++seed) { /* long lists: a run has them in pieces */
        plain p;
        make_plain(&p, seed, 3, 4000);
        invert(&p, 13, GX_OK);
        invert(&p, 1500, GX_OK);
        free_plain(&p);
    }
}

static void several_inverters_together_give_what_one_gives(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
        plain p;
        make_plain(&p, seed, 1 + (uint32_t)seed * 31, (uint32_t)seed * 50);
        for (uint32_t n = 2; n <= MAX_BUFFERS; ++n) {
            invert_together(&p, n, 0, GX_OK);
            invert_together(&p, n, 3 + (uint32_t)seed * 5, GX_OK);
            invert_together(&p, n, (uint32_t)seed * 35, GX_OK); /* one has a run, the others none */
        }
        free_plain(&p);
    }
}

static void details_come_with_their_occurrences(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; ++seed) {
        plain p;
        make_plain(&p, seed, 1 + (uint32_t)seed * 37, (uint32_t)seed * 60);
        p.details = true;
        invert(&p, 0, GX_OK);
        invert(&p, 1 + (uint32_t)seed * 3, GX_OK);
        invert(&p, (uint32_t)seed * 60, GX_OK);
        for (uint32_t n = 2; n <= MAX_BUFFERS; n += 2) {
            invert_together(&p, n, 0, GX_OK);
            invert_together(&p, n, 3 + (uint32_t)seed * 5, GX_OK);
        }
        free_plain(&p);
    }
    plain p;
    make_plain(&p, 3, 3, 4000); /* long lists */
    p.details = true;
    invert(&p, 13, GX_OK);
    invert(&p, 0, GX_OK);
    p.tf[3] = 250000; /* no run's buffer has room for the posting */
    invert(&p, 1500, GX_OK);
    free_plain(&p);
}

/* Of details that do not rise, each is at least the last one and 1. */
static gx_status check_raised(void *user, const gx_term_postings *l, gx_error *err)
{
    (void)user, (void)err;
    const uint32_t gaps[] = {7, 0, 0, 1, 5};
    assert_int_equal(l->df, 2);
    assert_int_equal(l->tfs[0], 4);
    assert_memory_equal(l->gaps, gaps, sizeof gaps);
    return GX_OK;
}

static void details_that_do_not_rise_are_raised(void **state)
{
    (void)state;
    gx_postings_buffer *inv;
    assert_int_equal(gx_postings_buffer_open(&inv, "/tmp", 1u << 20, 1, NULL), GX_OK);
    gx_postings_buffer_keep_details(inv);
    const uint32_t term = gx_postings_buffer_term(inv, "twice", 5), terms[] = {term, term, term, term};
    const uint32_t details[] = {7, 7, 8, 11}, other[] = {5};
    assert_int_equal(gx_postings_buffer_add_details(inv, 0, terms, details, 4), GX_OK);
    assert_int_equal(gx_postings_buffer_add_details(inv, 9, terms, other, 1), GX_OK);
    assert_int_equal(gx_postings_buffer_merge(&inv, 1, check_raised, NULL, NULL), GX_OK);
    gx_postings_buffer_close(inv);
}

static void spilling_gives_memory_back(void **state)
{
    (void)state;
    gx_postings_buffer *inv;
    assert_int_equal(gx_postings_buffer_open(&inv, "/tmp", 1u << 20, 1, NULL), GX_OK);
    const uint32_t common = gx_postings_buffer_term(inv, "common", 6), rare = gx_postings_buffer_term(inv, "rare", 4);
    assert_int_equal(gx_postings_buffer_term(inv, "common", 6), common);
    const uint32_t docs[] = {0, UINT32_MAX - 2, UINT32_MAX - 1};
    for (uint32_t i = 0; i < 100000; ++i)
        assert_int_equal(gx_postings_buffer_add(inv, i, &common, 1), GX_OK);
    for (unsigned i = 0; i < 3; ++i)
        assert_int_equal(gx_postings_buffer_add(inv, docs[i], &rare, 1), GX_OK);
    uint32_t *many = malloc(100000 * sizeof *many);
    for (uint32_t i = 0; i < 100000; ++i)
        many[i] = rare;
    assert_int_equal(gx_postings_buffer_add(inv, docs[2], many, 100000), GX_OK);
    free(many);
    const uint64_t bytes = gx_postings_buffer_bytes(inv);
    assert_int_equal(gx_postings_buffer_spill(inv, NULL), GX_OK);
    assert_true(gx_postings_buffer_bytes(inv) < bytes);
    gx_postings_buffer_close(inv);
}

static gx_status ignore_list(void *user, const gx_term_postings *l, gx_error *err)
{
    (void)user, (void)l, (void)err;
    return GX_OK;
}

static void merged_runs_give_their_space_back(void **state)
{
    (void)state;
    enum { RUNS = 40, DOCS = 100000 };
    gx_postings_buffer *inv;
    assert_int_equal(gx_postings_buffer_open(&inv, "/tmp", 16384, 1, NULL), GX_OK);
    uint64_t spilled = 0;
    for (uint32_t r = 0; r < RUNS; ++r) {
        const uint32_t term = gx_postings_buffer_term(inv, "common", 6);
        for (uint32_t i = 0; i < DOCS; ++i)
            assert_int_equal(gx_postings_buffer_add(inv, r * DOCS + i, &term, 1), GX_OK);
        assert_int_equal(gx_postings_buffer_spill(inv, NULL), GX_OK);
    }
    spilled = inv->file_bytes;
    const bool can = fallocate(inv->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)spilled, 4096) == 0;
    assert_int_equal(gx_postings_buffer_merge(&inv, 1, ignore_list, NULL, NULL), GX_OK);
    assert_int_equal(inv->n_runs, 2);
    assert_int_equal(gx_postings_buffer_spills(inv), RUNS);
    assert_true(inv->file_bytes > 2 * spilled);
    struct stat s;
    assert_int_equal(fstat(inv->fd, &s), 0);
    if (can) /* this file system frees what is punched out */
        assert_true((uint64_t)s.st_blocks * 512 < spilled + spilled / 2);
    gx_postings_buffer_close(inv);
}

static gx_status check_wide(void *user, const gx_term_postings *l, gx_error *err)
{
    (void)err;
    ++*(int *)user;
    if (l->len == 4) {
        assert_memory_equal(l->term, "rare", 4);
        assert_int_equal(l->df, 3);
        assert_int_equal(l->docids[0], 0);
        assert_int_equal(l->docids[1], UINT32_MAX - 2);
        assert_int_equal(l->docids[2], UINT32_MAX - 1);
        assert_int_equal(l->tfs[0], 1);
        assert_int_equal(l->tfs[2], 100001);
        return GX_OK;
    }
    assert_int_equal(l->df, 100000);
    for (uint32_t i = 0; i < l->df; ++i) {
        assert_int_equal(l->docids[i], i);
        assert_int_equal(l->tfs[i], 1);
    }
    return GX_OK;
}

static void extreme_docids_and_tfs_come_back(void **state)
{
    (void)state;
    for (int spill = 0; spill < 2; ++spill) {
        gx_postings_buffer *inv;
        assert_int_equal(gx_postings_buffer_open(&inv, "/tmp", 1u << 20, 1, NULL), GX_OK);
        uint32_t common = gx_postings_buffer_term(inv, "common", 6), rare = gx_postings_buffer_term(inv, "rare", 4);
        for (uint32_t i = 0; i < 100000; ++i) {
            if (spill && i == 50000) {
                assert_int_equal(gx_postings_buffer_spill(inv, NULL), GX_OK);
                common = gx_postings_buffer_term(inv, "common", 6);
            }
            assert_int_equal(gx_postings_buffer_add(inv, i, &common, 1), GX_OK);
            if (i == 0)
                assert_int_equal(gx_postings_buffer_add(inv, i, &rare, 1), GX_OK);
        }
        rare = gx_postings_buffer_term(inv, "rare", 4);
        assert_int_equal(gx_postings_buffer_add(inv, UINT32_MAX - 2, &rare, 1), GX_OK);
        for (uint32_t i = 0; i < 100001; ++i)
            assert_int_equal(gx_postings_buffer_add(inv, UINT32_MAX - 1, &rare, 1), GX_OK);
        int n = 0;
        assert_int_equal(gx_postings_buffer_merge(&inv, 1, check_wide, &n, NULL), GX_OK);
        assert_int_equal(n, 2);
        gx_postings_buffer_close(inv);
    }
}

static void the_receiver_can_stop_it(void **state)
{
    (void)state;
    plain p;
    make_plain(&p, 5, 50, 100);
    p.fail_at = 3;
    invert(&p, 0, GX_ECANCELLED);
    assert_int_equal(p.seen, 3);
    invert(&p, 10, GX_ECANCELLED);
    assert_int_equal(p.seen, 3);
    free_plain(&p);
}

static void nothing_in_is_nothing_out(void **state)
{
    (void)state;
    plain p;
    make_plain(&p, 5, 1, 0);
    invert(&p, 0, GX_OK);
    assert_int_equal(p.seen, 0);
    free_plain(&p);
}

static void a_bad_directory_is_reported_when_it_is_needed(void **state)
{
    (void)state;
    gx_postings_buffer *inv;
    gx_error err = {0};
    assert_int_equal(gx_postings_buffer_open(&inv, "/nonexistent/dir", 1u << 20, 1, NULL), GX_OK);
    const uint32_t t = gx_postings_buffer_term(inv, "x", 1);
    assert_int_equal(gx_postings_buffer_add(inv, 0, &t, 1), GX_OK);
    assert_int_equal(gx_postings_buffer_spill(inv, &err), GX_EIO);
    assert_non_null(strstr(err.text, "/nonexistent/dir"));
    gx_postings_buffer_close(inv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_back_what_came_in),
        cmocka_unit_test(spilling_changes_nothing),
        cmocka_unit_test(details_come_with_their_occurrences),
        cmocka_unit_test(details_that_do_not_rise_are_raised),
        cmocka_unit_test(several_inverters_together_give_what_one_gives),
        cmocka_unit_test(spilling_gives_memory_back),
        cmocka_unit_test(merged_runs_give_their_space_back),
        cmocka_unit_test(extreme_docids_and_tfs_come_back),
        cmocka_unit_test(the_receiver_can_stop_it),
        cmocka_unit_test(nothing_in_is_nothing_out),
        cmocka_unit_test(a_bad_directory_is_reported_when_it_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
