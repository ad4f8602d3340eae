#include "query/gpu/positions.cuh"
#include "query/gpu/state.cuh"

extern "C" {
#include "index/positions.h"
}

namespace gx {

/* Takes memory of the budget. */
static gx_status take_part(gpu_prepared_index *s, uint64_t bytes, void **to, gx_error *err)
{
    device_positions *p = &s->positions;
    TRY_STATUS(budget_take(&s->budget, "the positions of words", bytes, err));
    const cudaError_t e = cudaMalloc(to, bytes ? bytes : 1);
    if (e != cudaSuccess) {
        budget_give(&s->budget, bytes);
        *to = NULL;
        return gx_cuda_status(e, "memory for positions", err);
    }
    p->parts[p->n_parts++] = {*to, bytes};
    return GX_OK;
}

/* Gives the parts from number `first` on back, but the last `kept` of them. */
static void drop_parts(gpu_prepared_index *s, uint32_t first, uint32_t kept)
{
    device_positions *p = &s->positions;
    const uint32_t end = p->n_parts - kept;
    for (uint32_t i = first; i < end; ++i) {
        (void)cudaFree(p->parts[i].at);
        budget_give(&s->budget, p->parts[i].bytes);
    }
    for (uint32_t i = 0; i < kept; ++i)
        p->parts[first + i] = p->parts[end + i];
    p->n_parts = first + kept;
    (void)cudaGetLastError();
}

/* Copies a part of the positions to new memory of the budget. A NULL `from` has no bytes. */
static gx_status copy_part(gpu_prepared_index *s, const void *from, uint64_t bytes, const void **to, gx_error *err)
{
    void *memory = NULL;
    *to = NULL;
    if (!from)
        return GX_OK;
    TRY_STATUS(take_part(s, bytes, &memory, err));
    *to = memory;
    return gx_device_upload(s->device, memory, from, bytes, err);
}

static gx_status copy_positions(gpu_prepared_index *s, gx_error *err)
{
    const gx_index *ix = s->ix;
    gpu_positions *p = &s->positions.of;
    const void *words, *ends, *titles;
    TRY_STATUS(copy_part(s, ix->title_positions, (uint64_t)ix->n_docs * ix->title_position_width, &titles, err));
    p->titles = (const uint8_t *)titles;
    p->title_width = ix->title_position_width;
    s->positions.n_lasting = s->positions.n_parts;
    TRY_STATUS(copy_part(s, ix->positions, ix->position_words * 4 + GX_READ_SLACK, &words, err));
    p->words = (const uint32_t *)words;
    TRY_STATUS(copy_part(s, ix->position_ends, (ix->n_blocks + ix->n_position_wraps) * 4, &ends, err));
    p->ends = (const uint32_t *)ends;
    p->wraps = p->ends + ix->n_blocks;
    p->n_words = ix->position_words;
    p->n_wraps = ix->n_position_wraps;
    return GX_OK;
}

/* ---- plain positions ---- */

/* From the numbers of positions of blocks: where each block begins. Returns false where a block has too many.
 * *n_postings, *n_values: in all. */
static bool find_starts(const gx_index *ix, const uint32_t *counts, block_start *starts, uint64_t *n_postings,
                        uint64_t *n_values)
{
    uint64_t postings = 0, values = 0;
    for (uint32_t list = 0; list < ix->n_terms; ++list) {
        const gx_list_entry *e = &ix->lists[list];
        const uint32_t n_blocks = count_blocks(ix, e->df);
        for (uint32_t j = 0; j < n_blocks; ++j) {
            const uint32_t n = j + 1 < n_blocks ? ix->block_len : e->df - j * ix->block_len;
            const uint64_t block = (uint64_t)e->first_block + j;
            if (block >= ix->n_blocks || counts[block] > MOST_PLAIN)
                return false;
            starts[block] = {postings, values};
            postings += n + 1;
            values += counts[block];
        }
    }
    *n_postings = postings;
    *n_values = values;
    return true;
}

/* Where the blocks' postings and positions go; *starts in device memory is filled. */
static bool lay_plain(gpu_prepared_index *s, uint32_t *d_counts, block_start *d_starts, uint64_t *n_postings,
                      uint64_t *n_values)
{
    const uint64_t n = s->ix->n_blocks;
    uint32_t *counts = (uint32_t *)malloc(n * sizeof *counts);
    block_start *starts = (block_start *)malloc(n * sizeof *starts);
    gx_error ignored;
    bool good = counts && starts;
    if (good) {
        count_positions(s->X, s->codings, d_counts, (uint32_t)n, s->stream);
        good =
            cudaGetLastError() == cudaSuccess &&
            cudaMemcpyAsync(counts, d_counts, n * sizeof *counts, cudaMemcpyDeviceToHost, s->stream) == cudaSuccess &&
            cudaStreamSynchronize(s->stream) == cudaSuccess && find_starts(s->ix, counts, starts, n_postings, n_values);
    }
    good = good && gx_device_upload(s->device, d_starts, starts, n * sizeof *starts, &ignored) == GX_OK;
    free(counts);
    free(starts);
    return good;
}

/* Make the positions plain, where they fit into memory and into 16 bits. Then they take the place of those of the
 * file. Otherwise these stay. */
static bool make_plain(gpu_prepared_index *s)
{
    gpu_positions p = s->positions.of;
    void *counts, *starts, *postings, *plain;
    uint64_t n_postings = 0, n_values = 0;
    uint32_t failed = 1;
    gx_error ignored;
    const uint64_t n = s->ix->n_blocks;
    if (n == 0 || n > UINT32_MAX / 2 || s->ix->block_len > MOST_PLAIN_BLOCK)
        return false;
    if (take_part(s, n * 4, &counts, &ignored) != GX_OK ||
        take_part(s, n * sizeof(block_start), &starts, &ignored) != GX_OK ||
        !lay_plain(s, (uint32_t *)counts, (block_start *)starts, &n_postings, &n_values) ||
        take_part(s, n_postings * 4, &postings, &ignored) != GX_OK ||
        take_part(s, n_values * 2, &plain, &ignored) != GX_OK)
        return false;
    p.starts = (const block_start *)starts;
    p.postings = (const uint32_t *)postings;
    p.plain = (const uint16_t *)plain;
    if (cudaMemsetAsync(counts, 0, 4, s->stream) != cudaSuccess)
        return false;
    write_plain_positions(s->X, s->codings, p, (uint32_t)n, (uint32_t *)counts, s->stream);
    if (cudaGetLastError() != cudaSuccess ||
        cudaMemcpyAsync(&failed, counts, 4, cudaMemcpyDeviceToHost, s->stream) != cudaSuccess ||
        cudaStreamSynchronize(s->stream) != cudaSuccess || failed)
        return false;
    p.words = p.ends = p.wraps = NULL;
    s->positions.of = p;
    return true;
}

static gx_status prepare_positions(gpu_prepared_index *s, gx_error *err)
{
    device_positions *p = &s->positions;
    void *device = NULL;
    TRY("choosing it", cudaSetDevice(s->device));
    stop_lingering(s);
    TRY_STATUS(copy_positions(s, err));
    const uint32_t n_coded = p->n_parts;
    if (make_plain(s))
        drop_parts(s, p->n_lasting, 3); /* all but starts, postings and plain positions */
    else
        drop_parts(s, n_coded, 0);
    TRY_STATUS(take_part(s, sizeof p->of, &device, err));
    p->device = (const gpu_positions *)device;
    return gx_device_upload(s->device, device, &p->of, sizeof p->of, err);
}

static void free_positions(gpu_prepared_index *s)
{
    drop_parts(s, 0, 0);
    s->positions.of = {};
    s->positions.device = NULL;
}

bool make_positions(gpu_prepared_index *s)
{
    device_positions *p = &s->positions;
    gx_error ignored;
    if (__atomic_load_n(&p->ready, __ATOMIC_ACQUIRE))
        return true;
    if (!s->ix->positions || __atomic_load_n(&p->failed, __ATOMIC_RELAXED))
        return false;
    pthread_mutex_lock(&s->lock);
    if (!p->ready && !p->failed) {
        const bool made = prepare_positions(s, &ignored) == GX_OK;
        if (!made)
            free_positions(s);
        __atomic_store_n(made ? &p->ready : &p->failed, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&s->lock);
    return p->ready;
}

void close_positions(gpu_prepared_index *s)
{
    free_positions(s);
}

} // namespace gx
