/* bench_positions: what it takes to decode the positions of an index on one core.
 *
 *   bench_positions INDEX
 *
 * Prints the bits of a position, with and without ends, and nanoseconds of processor time: a value, of whole blocks in
 * their order, as values and as sums; and a posting, of postings drawn at random, each from its block, whose tfs are
 * known. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/random.h"
#include "index/positions.h"
#include "tests/bench/timing.h"

enum { DRAWN = 1 << 20, ROUNDS = 5 };

typedef struct drawn_posting {
    uint64_t block;
    uint32_t all, first, n;
} drawn_posting;

static void die(const char *words)
{
    fprintf(stderr, "bench_positions: %s\n", words);
    exit(1);
}

/* How many positions each block has; the sum of all. */
static uint64_t count(const gx_index *ix, uint32_t *all)
{
    uint32_t tfs[GX_MAX_BLOCK];
    uint64_t sum = 0;
    for (uint32_t t = 0, block = 0; t < ix->n_terms; ++t) {
        const gx_list l = gx_index_list(ix, t);
        for (uint32_t j = 0; j < l.n_blocks; ++j, ++block) {
            const uint32_t n = gx_list_decode_tfs(&l, j, tfs);
            all[block] = 0;
            for (uint32_t i = 0; i < n; ++i)
                all[block] += tfs[i];
            sum += all[block];
        }
    }
    return sum;
}

static uint64_t decode_all(const gx_index *ix, const uint32_t *all, uint32_t *values)
{
    uint64_t check = 0;
    for (uint64_t b = 0; b < ix->n_blocks; ++b) {
        if (!gx_positions_decode(gx_index_block_positions(ix, b), all[b], 0, all[b], values))
            die("a block is damaged");
        check += values[all[b] - 1];
    }
    return check;
}

static uint64_t sum_all(const gx_index *ix, const uint32_t *all, uint32_t *sums)
{
    uint64_t check = 0;
    for (uint64_t b = 0; b < ix->n_blocks; ++b) {
        if (!gx_positions_sums(gx_index_block_positions(ix, b), all[b], sums))
            die("a block is damaged");
        check += sums[all[b] - 1];
    }
    return check;
}

/* Postings of lists of several blocks, of which words of queries mostly are. */
static void draw(const gx_index *ix, const uint32_t *all, drawn_posting *drawn)
{
    uint64_t seed = 38;
    uint32_t tfs[GX_MAX_BLOCK];
    for (uint32_t i = 0; i < DRAWN;) {
        const uint32_t t = (uint32_t)(gx_random_next(&seed) % ix->n_terms);
        const gx_list l = gx_index_list(ix, t);
        if (l.n_blocks < 8)
            continue;
        for (uint32_t k = 0; k < 64 && i < DRAWN; ++k, ++i) {
            const uint32_t j = (uint32_t)(gx_random_next(&seed) % l.n_blocks), n = gx_list_decode_tfs(&l, j, tfs),
                           which = (uint32_t)(gx_random_next(&seed) % n);
            drawn_posting *d = &drawn[i];
            *d = (drawn_posting){ix->lists[t].first_block + (uint64_t)j, 0, 0, tfs[which]};
            d->all = all[d->block];
            for (uint32_t p = 0; p < which; ++p)
                d->first += tfs[p];
        }
    }
}

int main(int argc, char **argv)
{
    gx_error err = {0};
    gx_index *ix;
    if (argc != 2)
        die("usage: bench_positions INDEX");
    if (gx_index_open(&ix, argv[1], NULL, &err))
        die(err.text);
    if (!ix->positions)
        die("the index has no positions");
    uint32_t *all = malloc(ix->n_blocks * sizeof *all), most = 0;
    drawn_posting *drawn = malloc(DRAWN * sizeof *drawn);
    if (!all || !drawn)
        die("no memory");
    const uint64_t n = count(ix, all);
    for (uint64_t b = 0; b < ix->n_blocks; ++b)
        most = all[b] > most ? all[b] : most;
    uint32_t *values = malloc((most + 1ull + GX_SUMS_ROOM) * sizeof *values);
    if (!values)
        die("no memory");
    printf("%llu positions, %.3f bits each, %.3f with ends\n", (unsigned long long)n,
           32. * (double)ix->position_words / (double)n, 32. * (double)(ix->position_words + ix->n_blocks) / (double)n);
    double best = 1e9, best_sums = 1e9, best_drawn = 1e9;
    uint64_t sum = decode_all(ix, all, values), n_drawn = 0;
    draw(ix, all, drawn);
    for (int round = 0; round < ROUNDS; ++round) {
        double began = own_time();
        sum += decode_all(ix, all, values);
        double took = own_time() - began;
        best = took < best ? took : best;
        began = own_time();
        sum += sum_all(ix, all, values);
        took = own_time() - began;
        best_sums = took < best_sums ? took : best_sums;
        began = own_time();
        n_drawn = 0;
        for (uint32_t i = 0; i < DRAWN; ++i) {
            const drawn_posting *d = &drawn[i];
            if (!gx_positions_decode(gx_index_block_positions(ix, d->block), d->all, d->first, d->n, values))
                die("a block is damaged");
            sum += values[0];
            n_drawn += d->n;
        }
        took = own_time() - began;
        best_drawn = took < best_drawn ? took : best_drawn;
    }
    printf("whole blocks: %.2f ns a value, %.2f a sum; ", 1e9 * best / (double)n, 1e9 * best_sums / (double)n);
    printf("postings at random: %.1f ns each, %.2f values a posting (%llx)\n", 1e9 * best_drawn / DRAWN,
           (double)n_drawn / DRAWN, (unsigned long long)sum);
    free(values);
    free(drawn);
    free(all);
    gx_index_close(ix);
    return 0;
}
