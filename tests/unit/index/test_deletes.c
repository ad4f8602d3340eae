/* Which documents of a part are live, and how docids of parts and of collections go over into each
 * other, against bytes that say the same. */
#include "index/read/collection.h"
#include "tests/support/collection.h"
#include "tests/support/indexes.h"

static void open_part(gx_part *p, collection **c, uint64_t seed, uint32_t n_docs, const uint64_t *gone,
                      const gx_deletes *old)
{
    gx_error err = {0};
    *c = collection_make(seed, n_docs, 20);
    assert_int_equal(collection_write(*c, in_dir("a.gx"), gx_codec_by_name("gpubp128"), NULL, &err), GX_OK);
    *p = (gx_part){.ix = open_index("a.gx"), .base = (uint32_t)(seed % 131)};
    assert_int_equal(gx_deletes_make(&p->deletes, p->ix, old, gone, &err), GX_OK);
}

static void close_part(gx_part *p, collection *c)
{
    gx_deletes_close(p->deletes);
    gx_index_close(p->ix);
    collection_free(c);
}

/* Bits of [n_docs] documents, of which about a share of 1 / 2^rarity is set. */
static void random_bits(uint64_t *seed, uint32_t n_docs, uint32_t rarity, uint64_t *words)
{
    for (uint32_t w = 0; w <= n_docs / 64; ++w) {
        words[w] = gx_random_next(seed);
        for (uint32_t i = 1; i < rarity; ++i)
            words[w] &= gx_random_next(seed);
        if (rarity == 0)
            words[w] = 0;
    }
    words[n_docs / 64] &= (UINT64_C(1) << n_docs % 64) - 1;
}

static bool has(const uint64_t *words, uint64_t at)
{
    return words[at / 64] >> at % 64 & 1;
}

enum { MOST = 1200 };
static const uint32_t sizes[] = {1, 2, 63, 64, 65, 127, 128, 129, 640, 1000, MOST};

static void each_part(void (*run)(const gx_part *p, const collection *c, const uint64_t *gone, uint64_t *seed))
{
    uint64_t seed = 20261127;
    printf("seed %llu\n", (unsigned long long)seed);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s)
        for (uint32_t rarity = 0; rarity < 6; ++rarity) {
            uint64_t gone[MOST / 64 + 1];
            collection *c;
            gx_part p;
            random_bits(&seed, sizes[s], rarity, gone);
            open_part(&p, &c, seed, sizes[s], gone, NULL);
            run(&p, c, gone, &seed);
            close_part(&p, c);
        }
}

static void check_ranks(const gx_part *p, const collection *c, const uint64_t *gone, uint64_t *seed)
{
    uint32_t rank = 0;
    (void)seed;
    for (uint32_t d = 0; d < c->n_docs; ++d) {
        assert_int_equal(gx_deletes_is_live(p->deletes, d), !has(gone, d));
        assert_int_equal(gx_deletes_rank(p->deletes, d), rank);
        if (!has(gone, d))
            assert_int_equal(gx_deletes_select(p->deletes, rank++), d);
    }
    assert_int_equal(gx_deletes_rank(p->deletes, c->n_docs), rank);
    assert_int_equal(p->deletes->n_deleted, c->n_docs - rank);
}

static void ranks_number_the_live_documents(void **state)
{
    (void)state;
    each_part(check_ranks);
    assert_int_equal(gx_deletes_rank(NULL, 17), 17); /* nothing is deleted */
    assert_int_equal(gx_deletes_select(NULL, 17), 17);
    assert_true(gx_deletes_is_live(NULL, 17));
}

static void check_statistics(const gx_part *p, const collection *c, const uint64_t *gone, uint64_t *seed)
{
    uint64_t tokens = 0, postings = 0;
    uint32_t least = UINT32_MAX, greatest = 0;
    (void)seed;
    for (uint32_t d = 0; d < c->n_docs; ++d) {
        const uint32_t len = c->doc_lens[d];
        tokens += has(gone, d) ? len : 0;
        least = !has(gone, d) && len < least ? len : least;
        greatest = !has(gone, d) && len > greatest ? len : greatest;
    }
    for (uint32_t t = 0; t < c->n_terms; ++t) {
        uint32_t df = 0;
        for (uint32_t i = 0; i < c->lists[t].df; ++i)
            df += has(gone, c->lists[t].docids[i]);
        assert_int_equal(p->deletes->dfs[t], df);
        postings += df;
    }
    assert_int_equal(p->deletes->n_tokens, tokens);
    assert_int_equal(p->deletes->n_postings, postings);
    assert_int_equal(p->deletes->min_doc_len, least == UINT32_MAX ? 0 : least);
    assert_int_equal(p->deletes->max_doc_len, greatest);
}

static void statistics_lose_what_the_deleted_documents_had(void **state)
{
    (void)state;
    each_part(check_statistics);
}

static void check_masks(const gx_part *p, const collection *c, const uint64_t *gone, uint64_t *seed)
{
    enum { MOST_BITS = MOST + 131 + 64 };
    uint64_t whole[MOST_BITS / 64 + 2], local[MOST / 64 + 1], back[MOST_BITS / 64 + 2] = {0};
    const uint32_t n_live = c->n_docs - p->deletes->n_deleted, n_whole = p->base + n_live + 7;
    random_bits(seed, n_whole, 1, whole);
    gx_part_scatter(p, whole, local);
    for (uint32_t d = 0; d < c->n_docs; ++d)
        assert_int_equal(has(local, d), !has(gone, d) && has(whole, p->base + gx_deletes_rank(p->deletes, d)));
    for (uint32_t w = 0; w < (c->n_docs + 63) / 64; ++w) /* gather leaves deleted documents out itself */
        local[w] |= gone[w];
    back[0] = 1; /* and keeps bits of other parts */
    gx_part_gather(p, local, back);
    for (uint32_t at = 0; at < n_whole; ++at) {
        const bool mine = at >= p->base && at < p->base + n_live;
        assert_int_equal(has(back, at), (mine && has(whole, at)) || at == 0);
    }
}

static void masks_go_over_to_parts_and_back(void **state)
{
    (void)state;
    each_part(check_masks);
}

/* Parts of any number of live documents, also of none. */
static void a_docid_is_found_in_its_part(void **state)
{
    (void)state;
    uint64_t seed = 20261129;
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t i = 0; i < 200; ++i) {
        gx_part parts[20] = {0};
        uint32_t n_docs = 0;
        const gx_parts all = {.n = 1 + (uint32_t)(gx_random_next(&seed) % 20), .parts = parts};
        for (uint32_t p = 0; p < all.n; ++p) {
            parts[p].base = n_docs;
            parts[p].n_live = gx_random_next(&seed) % 3 ? (uint32_t)(gx_random_next(&seed) % 50) : 0;
            n_docs += parts[p].n_live;
        }
        for (uint32_t p = 0, d = 0; p < all.n; ++p) {
            for (uint32_t j = 0; j < parts[p].n_live; ++j, ++d) {
                uint32_t local;
                assert_ptr_equal(gx_parts_find(&all, d, &local), &parts[p]);
                assert_int_equal(local, j);
            }
        }
    }
}

static void deletes_add_up(void **state)
{
    (void)state;
    const uint64_t first[] = {0xf0, 1}, second[] = {0xff, 0};
    gx_error err = {0};
    collection *c;
    gx_part p;
    gx_deletes *both;
    open_part(&p, &c, 5, 100, first, NULL);
    assert_int_equal(p.deletes->n_deleted, 5);
    assert_int_equal(gx_deletes_make(&both, p.ix, p.deletes, second, &err), GX_OK);
    assert_int_equal(both->n_deleted, 9);
    for (uint32_t d = 0; d < 100; ++d)
        assert_int_equal(gx_deletes_is_live(both, d), d >= 8 && d != 64);
    gx_deletes_close(both);
    close_part(&p, c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_number_the_live_documents),
        cmocka_unit_test(statistics_lose_what_the_deleted_documents_had),
        cmocka_unit_test(masks_go_over_to_parts_and_back),
        cmocka_unit_test(a_docid_is_found_in_its_part),
        cmocka_unit_test(deletes_add_up),
    };
    return cmocka_run_group_tests_name("deletes", tests, make_dir, remove_dir);
}
