#include "tools/bench/codecs/codec_timing.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codecs/decode.h"
#include "codecs/words/pack.h"
#include "engine/status.h"
#include "tools/bench/data/synthetic_lists.h"
#include "tools/bench/kernels/gpu_list.h"

enum {
    MAX_PASSES = 7, /* a time is the median of MIN_PASSES to MAX_PASSES passes */
    MIN_PASSES = 3,
    MIN_PASS_INTEGERS = 1 << 20 /* of a pass, at least */
};

enum { LINE = 64 }; /* bytes of a cache line, and of the widest store */

static const double MIN_SECONDS = 0.5; /* seconds, after which MIN_PASSES passes do */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Integers a second of work(context), which passes over n integers. */
static double integers_per_second(void (*work)(void *), void *context, uint64_t n)
{
    double times[MAX_PASSES], sum = 0;
    const uint64_t passes = n < MIN_PASS_INTEGERS ? (MIN_PASS_INTEGERS + n - 1) / n : 1;
    int r = 0;
    work(context);
    for (; r < MAX_PASSES && (r < MIN_PASSES || sum < MIN_SECONDS); ++r) {
        const double begin = now();
        for (uint64_t i = 0; i < passes; ++i)
            work(context);
        sum += times[r] = now() - begin;
    }
    qsort(times, (size_t)r, sizeof *times, by_size);
    return (double)(n * passes) / times[r / 2];
}

static gx_status fail_mismatch(const char *title, const char *where, gx_error *err)
{
    return gx_fail(err, GX_EINTERNAL, "%s: what %s decodes is not what was encoded", title, where);
}

static uint64_t length(const gx_bench_lists *l, uint64_t i)
{
    return l->begins[i + 1] - l->begins[i];
}

static uint64_t longest(const gx_bench_lists *l)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < l->n_lists; ++i)
        n = length(l, i) > n ? length(l, i) : n;
    return n;
}

/* What INTEGERS decodes to: the values, or their d-gaps. */
static void to_integers(const gx_bench_lists *l, uint32_t *out)
{
    memcpy(out, l->values, l->begins[l->n_lists] * sizeof *out);
    for (uint32_t i = 0; l->docids && i < l->n_lists; ++i)
        gx_to_gaps(out + l->begins[i], length(l, i));
}

/* Memory that begins at a cache line: stores that cross lines take up to 1.7 times as long, and
 * where malloc puts an array is luck. NULL: none. For free(). */
static void *allocate(uint64_t bytes)
{
    return aligned_alloc(LINE, (bytes / LINE + 1) * LINE);
}

static void *allocate_zeros(uint64_t bytes)
{
    void *const p = allocate(bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

/* ---- a codec: every list packed alone, then those of `order` one behind another ---- */

/* Lists as one, whose blocks are all whole. */
typedef struct row {
    uint32_t *words, *ends, *heads;
    uint8_t *params; /* of blocks */
    uint64_t n_words, n_blocks;
} row;

typedef struct work {
    const gx_codec *codec;
    const gx_bench_lists *lists;
    gx_form form;
    uint64_t n;      /* integers of `order` */
    uint32_t *coded; /* what is encoded, list after list as in lists->values */
    uint8_t *params; /* [n_lists] */
    /* every list with whole blocks alone, one behind another; words NULL: sizes alone */
    uint32_t *words, *ends, *heads;
    uint64_t *word_begins, *block_begins; /* [n_lists + 1] where each begins */
    uint32_t *scratch, *scratch_ends;     /* for the longest list */
    uint32_t *out;                        /* for the longest list, and for the row */
    row row;
    uint32_t *buffer; /* [GX_MAX_BLOCK] one block, decoded */
} work;

static uint64_t count_blocks(const gx_codec *c, uint64_t n)
{
    return (n + c->block_len - 1) / c->block_len;
}

/* Into w->coded and w->heads. */
static void fill_coded(work *w)
{
    const gx_bench_lists *const l = w->lists;
    if (w->form == GX_FORM_INTEGERS)
        to_integers(l, w->coded);
    for (uint32_t i = 0; w->form == GX_FORM_DOCIDS && i < l->n_lists; ++i)
        gx_docids_to_gaps(l->values + l->begins[i], length(l, i), w->codec->block_len, w->coded + l->begins[i],
                          w->heads + w->block_begins[i]);
}

static void encode(void *context)
{
    work *const w = context;
    for (uint32_t i = 0; i < w->lists->n_lists; ++i)
        gx_pack_list(w->codec, w->params[i], w->coded + w->lists->begins[i], length(w->lists, i), w->scratch,
                     w->scratch_ends);
}

static void decode_blocks(void *context)
{
    work *const w = context;
    const gx_codec *const c = w->codec;
    const row *const r = &w->row;
    uint32_t begin = 0;
    for (uint64_t k = 0; k < r->n_blocks; ++k) {
        if (w->form == GX_FORM_DOCIDS)
            gx_decode_docids(c, r->words + begin, r->ends[k] - begin, c->block_len, r->params[k], r->heads[k],
                             w->buffer);
        else
            c->decode(r->words + begin, r->ends[k] - begin, c->block_len, r->params[k], w->buffer);
        begin = r->ends[k];
    }
}

/* The words of GPU-VByte's last block when it is bit-packed behind its width, as the paper's
 * encoder does. */
static uint64_t paper_last_block(const uint32_t *in, uint32_t n)
{
    return 1 + gx_div_up(n * gx_max_bit_width(in, n), 32);
}

/* List i: packed into scratch, compared, and added to the words; its last block filled up with
 * zeros. */
static gx_status pack_and_check(work *w, uint32_t i, uint64_t *words, uint64_t *paper_words, gx_error *err)
{
    const gx_codec *const c = w->codec;
    const gx_bench_lists *const l = w->lists;
    const uint64_t n = length(l, i), n_blocks = count_blocks(c, n), before = (n_blocks - 1) * c->block_len;
    const uint32_t *const in = w->coded + l->begins[i], rest = (uint32_t)(n - before);
    const uint64_t used = gx_pack_list(c, w->params[i], in, n, w->scratch, w->scratch_ends);
    memset(w->scratch + used, 0, GX_READ_SLACK);
    const gx_packed p = {c,          w->params[i],    NULL,
                         w->scratch, w->scratch_ends, w->form == GX_FORM_DOCIDS ? w->heads + w->block_begins[i] : NULL,
                         n};
    gx_decode_list_cpu(&p, w->form, w->out);
    if (memcmp(w->out, w->form == GX_FORM_DOCIDS ? l->values + l->begins[i] : in, n * sizeof *in) != 0)
        return fail_mismatch(c->title, "the CPU", err);

    const uint64_t whole = n_blocks > 1 ? w->scratch_ends[n_blocks - 2] : 0;
    *words += used;
    *paper_words += strncmp(c->name, "gpuvbyte", 8) == 0 ? whole + paper_last_block(in + before, rest) : used;
    if (!w->words)
        return GX_OK;
    memcpy(w->buffer, in + before, rest * sizeof *in);
    memset(w->buffer + rest, 0, (c->block_len - rest) * sizeof *in);
    const uint64_t all = whole + c->encode(w->buffer, c->block_len, w->params[i], w->scratch + whole);
    w->scratch_ends[n_blocks - 1] = (uint32_t)all;
    memcpy(w->words + w->word_begins[i], w->scratch, all * sizeof *in);
    memcpy(w->ends + w->block_begins[i], w->scratch_ends, n_blocks * sizeof *in);
    w->word_begins[i + 1] = w->word_begins[i] + all;
    return GX_OK;
}

/* Behind the row's words and blocks, if they are there. */
static void append_list(work *w, uint32_t list)
{
    row *const r = &w->row;
    const uint64_t from = w->word_begins[list], n_words = w->word_begins[list + 1] - from;
    const uint64_t block = w->block_begins[list], n_blocks = w->block_begins[list + 1] - block;
    if (r->words) {
        memcpy(r->words + r->n_words, w->words + from, n_words * 4);
        memcpy(r->heads + r->n_blocks, w->heads + block, n_blocks * 4);
        memset(r->params + r->n_blocks, w->params[list], n_blocks);
        for (uint64_t k = 0; k < n_blocks; ++k)
            r->ends[r->n_blocks + k] = (uint32_t)(r->n_words + w->ends[block + k]);
    }
    r->n_words += n_words;
    r->n_blocks += n_blocks;
}

static void free_row(work *w)
{
    free(w->row.words);
    free(w->row.ends);
    free(w->row.heads);
    free(w->row.params);
    w->row = (row){0};
}

static gx_status make_row(work *w, gx_error *err)
{
    const gx_bench_lists *const l = w->lists;
    free_row(w);
    for (uint64_t i = 0; i < l->n_order; ++i)
        append_list(w, l->order[i]);
    const uint64_t n_words = w->row.n_words, n_blocks = w->row.n_blocks;
    if (n_words > UINT32_MAX)
        return gx_fail(err, GX_EUSAGE, "%s: the lists take more than 2^32 words; measure fewer", w->codec->title);
    const uint64_t n = n_blocks * w->codec->block_len;
    free(w->out);
    w->out = allocate(((n > longest(l) ? n : longest(l)) + GX_MAX_BLOCK) * 4);
    w->row = (row){.words = allocate_zeros(n_words * 4 + GX_READ_SLACK),
                   .ends = allocate(n_blocks * 4),
                   .heads = allocate(n_blocks * 4),
                   .params = allocate(n_blocks)};
    if (!w->out || !w->row.words || !w->row.ends || !w->row.heads || !w->row.params)
        return GX_ENOMEM;
    for (uint64_t i = 0; i < l->n_order; ++i)
        append_list(w, l->order[i]);
    return GX_OK;
}

#ifdef GX_CUDA
/* Is w->out the lists of the row? */
static bool row_matches(const work *w)
{
    const uint32_t *const want = w->form == GX_FORM_DOCIDS ? w->lists->values : w->coded;
    uint64_t at = 0;
    for (uint64_t k = 0; k < w->lists->n_order; ++k) {
        const uint32_t i = w->lists->order[k];
        if (memcmp(w->out + at, want + w->lists->begins[i], length(w->lists, i) * 4) != 0)
            return false;
        at += count_blocks(w->codec, length(w->lists, i)) * w->codec->block_len;
    }
    return true;
}

static gx_status check_on_gpu(work *w, gx_gpu_list *list, uint64_t n, gx_error *err)
{
    uint32_t sum = 0;
    gx_status st = gx_gpu_list_decode(list, w->form, w->out, err);
    if (st == GX_OK)
        st = gx_gpu_list_sum(list, w->form, &sum, err);
    if (st != GX_OK)
        return st;
    for (uint64_t i = 0; i < n; ++i)
        sum -= w->out[i];
    return sum == 0 && row_matches(w) ? GX_OK : fail_mismatch(w->codec->title, "the GPU", err);
}

/* The row: compared, then timed. */
static gx_status time_on_gpu(work *w, bool paper, gx_gpu_speed *out, gx_error *err)
{
    const row *const r = &w->row;
    const bool docids = w->form == GX_FORM_DOCIDS;
    const gx_packed p = {w->codec,
                         0,
                         w->codec->param ? r->params : NULL,
                         r->words,
                         r->ends,
                         docids ? r->heads : NULL,
                         r->n_blocks * w->codec->block_len};
    gx_gpu_list *list;
    gx_status st = gx_gpu_list_open(&list, &p, err);
    if (st == GX_OK && paper)
        gx_gpu_list_use_cikm2019(list);
    if (st == GX_OK)
        st = check_on_gpu(w, list, p.n, err);
    double *const speeds[] = {&out->memory, &out->kept, &out->memory_l2, &out->kept_l2}, seconds = 0;
    for (int i = 0; i < 4 && st == GX_OK; i += 1 + paper) { /* the paper's kernels write to memory */
        if ((st = gx_gpu_list_time(list, w->form, i % 2 == 1, i < 2, 15, &seconds, err)) == GX_OK)
            *speeds[i] = (double)w->n / seconds;
    }
    const uint64_t moved = 4 * (w->n + r->n_words + (docids ? 2 : 1) * r->n_blocks);
    out->bytes = out->memory * (double)moved / (double)w->n;
    gx_gpu_list_close(list);
    return st;
}
#endif

/* One form: packed, compared, timed. */
static gx_status bench_form(work *w, gx_form form, bool speed, gx_bench_gpu gpu, gx_codec_speed *s, gx_error *err)
{
    const gx_codec *const c = w->codec;
    const gx_bench_lists *const l = w->lists;
    const double all = (double)l->begins[l->n_lists];
    const uint64_t n_blocks = w->block_begins[l->n_lists];
    uint64_t words = 0, paper_words = 0;
    gx_status st = GX_OK;
    w->form = form;
    fill_coded(w);
    for (uint32_t i = 0; i < l->n_lists && st == GX_OK; ++i) {
        w->params[i] = c->param ? c->param(w->coded + l->begins[i], length(l, i)) : 0;
        st = pack_and_check(w, i, &words, &paper_words, err);
    }
    if (st != GX_OK)
        return st;
    if (form == GX_FORM_INTEGERS) {
        s->bits = 32.0 * (double)(words + n_blocks + l->n_lists) / all;
        s->paper_bits = 32.0 * (double)(paper_words + n_blocks + l->n_lists) / all;
    } else {
        s->docid_bits = 32.0 * (double)(words + 2 * n_blocks) / all;
    }
    if (!speed)
        return GX_OK;
    if ((st = make_row(w, err)) != GX_OK)
        return st;
    if (gpu != GX_BENCH_GPU_PAPER)
        *(form == GX_FORM_DOCIDS ? &s->docids : &s->integers) = integers_per_second(decode_blocks, w, w->n);
    if (gpu != GX_BENCH_GPU_PAPER && form == GX_FORM_INTEGERS)
        s->encode = integers_per_second(encode, w, l->begins[l->n_lists]);
#ifdef GX_CUDA
    if (gpu != GX_BENCH_CPU && gx_codec_on_gpu(c))
        st = time_on_gpu(w, gpu == GX_BENCH_GPU_PAPER, form == GX_FORM_DOCIDS ? &s->gpu_docids : &s->gpu_integers, err);
#else
    (void)gpu;
#endif
    return st;
}

static bool work_open(work *w, const gx_codec *codec, const gx_bench_lists *l, bool speed)
{
    const uint64_t n = l->begins[l->n_lists], most = longest(l) + codec->block_len;
    uint64_t n_words = 0;
    w->codec = codec;
    w->lists = l;
    w->block_begins = malloc((l->n_lists + 1ull) * sizeof *w->block_begins);
    w->word_begins = calloc(l->n_lists + 1ull, sizeof *w->word_begins);
    if (!w->block_begins || !w->word_begins)
        return false;
    w->block_begins[0] = 0;
    for (uint32_t i = 0; i < l->n_lists; ++i) {
        const uint64_t n_blocks = count_blocks(codec, length(l, i));
        w->block_begins[i + 1] = w->block_begins[i] + n_blocks;
        n_words += gx_pack_list_words(codec, n_blocks * codec->block_len);
    }
    for (uint64_t i = 0; i < l->n_order; ++i)
        w->n += length(l, l->order[i]);
    w->coded = allocate(n * 4);
    w->params = allocate(l->n_lists);
    w->words = speed ? allocate(n_words * 4) : NULL;
    w->ends = allocate(w->block_begins[l->n_lists] * 4);
    w->heads = allocate(w->block_begins[l->n_lists] * 4);
    w->scratch = allocate(gx_pack_list_words(codec, count_blocks(codec, most) * codec->block_len) * 4 + GX_READ_SLACK);
    w->scratch_ends = allocate(count_blocks(codec, most) * 4);
    w->out = allocate((most + GX_MAX_BLOCK) * 4);
    w->buffer = allocate(GX_MAX_BLOCK * 4);
    return w->coded && w->params && (w->words || !speed) && w->ends && w->heads && w->scratch && w->scratch_ends &&
           w->out && w->buffer;
}

static void work_close(work *w)
{
    if (!w)
        return;
    free_row(w);
    free(w->coded);
    free(w->params);
    free(w->words);
    free(w->ends);
    free(w->heads);
    free(w->word_begins);
    free(w->block_begins);
    free(w->scratch);
    free(w->scratch_ends);
    free(w->out);
    free(w->buffer);
    free(w);
}

gx_status gx_bench_codec(const gx_codec *codec, const gx_bench_lists *lists, bool speed, gx_bench_gpu gpu,
                         gx_codec_speed *out, gx_error *err)
{
    work *const w = calloc(1, sizeof *w);
    gx_status st = GX_ENOMEM;
    memset(out, 0, sizeof *out);
    if (w && work_open(w, codec, lists, speed)) {
        out->n = w->n;
        st = bench_form(w, GX_FORM_INTEGERS, speed, gpu, out, err);
        if (st == GX_OK && lists->docids)
            st = bench_form(w, GX_FORM_DOCIDS, speed, gpu, out, err);
    }
    work_close(w);
    if (st == GX_ENOMEM)
        gx_fail(err, st, "no memory to measure %s on %llu integers", codec->title,
                (unsigned long long)lists->begins[lists->n_lists]);
    return st;
}

/* ---- a baseline: the lists as one ---- */

enum { STEP_BYTES = GX_STEP * 4 };

typedef struct whole {
    const gx_baseline *baseline;
    uint32_t *integers; /* filled up with zeros to a multiple of GX_STEP */
    uint64_t n;         /* that multiple */
    uint8_t *bytes;
    bool docids;
    uint32_t *buffer; /* [GX_STEP] */
} whole;

static void encode_whole(void *context)
{
    whole *const w = context;
    w->baseline->encode(w->integers, w->n, w->bytes);
}

static void decode_steps(void *context)
{
    whole *const w = context;
    gx_cursor cursor = w->baseline->open(w->bytes, w->n);
    for (uint64_t i = 0; i < w->n; i += GX_STEP)
        w->baseline->step(&cursor, w->buffer, w->docids);
}

static bool baseline_matches(whole *w)
{
    gx_cursor a = w->baseline->open(w->bytes, w->n), b = a;
    uint32_t sum = 0;
    for (uint64_t i = 0; i < w->n; i += GX_STEP) {
        w->baseline->step(&a, w->buffer, false);
        if (memcmp(w->buffer, w->integers + i, STEP_BYTES) != 0)
            return false;
        w->baseline->step(&b, w->buffer, true);
        for (uint32_t k = 0; k < GX_STEP; ++k) {
            if (w->buffer[k] != (sum += w->integers[i + k]))
                return false;
        }
    }
    return true;
}

/* The lists of order[n_order] one behind another; NULL: all, each once. n: their integers. */
static bool whole_open(whole *w, const gx_bench_lists *l, const uint32_t *values, const uint32_t *order,
                       uint64_t n_order, uint64_t n)
{
    w->n = (n + GX_STEP - 1) / GX_STEP * GX_STEP;
    w->integers = allocate_zeros(w->n * 4);
    w->bytes = allocate(8 * w->n + 64);
    w->buffer = allocate(STEP_BYTES);
    if (!w->integers || !w->bytes || !w->buffer)
        return false;
    for (uint64_t k = 0, at = 0; k < n_order; ++k) {
        const uint64_t i = order ? order[k] : k;
        memcpy(w->integers + at, values + l->begins[i], length(l, i) * 4);
        at += length(l, i);
    }
    return true;
}

static gx_status bench_whole(whole *w, uint64_t n, bool docids, bool speed, gx_codec_speed *out, gx_error *err)
{
    const uint64_t bytes = w->baseline->encode(w->integers, w->n, w->bytes);
    memset(w->bytes + bytes, 0, 16);
    if (!baseline_matches(w))
        return fail_mismatch(w->baseline->title, "the CPU", err);
    if (!speed) {
        out->bits = out->paper_bits = 8.0 * (double)bytes / (double)n;
        return GX_OK;
    }
    out->integers = integers_per_second(decode_steps, w, n);
    w->docids = true;
    out->docids = docids ? integers_per_second(decode_steps, w, n) : 0;
    w->docids = false;
    out->encode = integers_per_second(encode_whole, w, n);
    return GX_OK;
}

gx_status gx_bench_baseline(const gx_baseline *baseline, const gx_bench_lists *lists, bool speed, gx_codec_speed *out,
                            gx_error *err)
{
    const uint64_t all = lists->begins[lists->n_lists];
    uint32_t *const integers = malloc(all * 4);
    whole *w = calloc(1, sizeof *w);
    gx_status st = GX_ENOMEM;
    memset(out, 0, sizeof *out);
    for (uint64_t i = 0; i < lists->n_order; ++i)
        out->n += length(lists, lists->order[i]);
    if (integers && w) {
        to_integers(lists, integers);
        /* sizes are of each list once, speeds of the lists in their order */
        for (int timed = 0; timed <= speed; ++timed) {
            w->baseline = baseline;
            st = GX_ENOMEM;
            if (timed ? whole_open(w, lists, integers, lists->order, lists->n_order, out->n)
                      : whole_open(w, lists, integers, NULL, lists->n_lists, all))
                st = bench_whole(w, timed ? out->n : all, lists->docids, timed, out, err);
            free(w->integers);
            free(w->bytes);
            free(w->buffer);
            memset(w, 0, sizeof *w);
            if (st != GX_OK)
                break;
        }
    }
    if (st == GX_ENOMEM)
        gx_fail(err, st, "no memory to measure %s on %llu integers", baseline->title, (unsigned long long)out->n);
    free(w);
    free(integers);
    return st;
}
