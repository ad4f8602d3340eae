#include "codecs/bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codecs/decode.h"
#include "codecs/gpu_list.h"
#include "codecs/pack.h"
#include "codecs/synthetic.h"
#include "engine/status.h"

enum { REPEATS = 7, PASS = 1 << 20 }; /* medians of so many passes, over so many integers at least */

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
static double speed_of(void (*work)(void *), void *context, uint64_t n)
{
    double times[REPEATS];
    const uint64_t passes = n < PASS ? (PASS + n - 1) / n : 1;
    work(context);
    for (int r = 0; r < REPEATS; ++r) {
        const double begin = now();
        for (uint64_t i = 0; i < passes; ++i)
            work(context);
        times[r] = now() - begin;
    }
    qsort(times, REPEATS, sizeof *times, by_size);
    return (double)(n * passes) / times[REPEATS / 2];
}

typedef struct work {
    const gx_codec *codec;
    const gx_baseline *baseline;
    gx_packed packed;
    const uint32_t *in;
    uint32_t *words, *ends;
    uint8_t *bytes;
    bool docids;
    uint32_t buffer[GX_STEP];
} work;

static void encode(void *context)
{
    work *const w = context;
    if (w->codec)
        gx_pack_list(w->codec, w->packed.param, w->in, w->packed.n, w->words, w->ends);
    else
        w->baseline->encode(w->in, w->packed.n, w->bytes);
}

static void decode_blocks(void *context)
{
    work *const w = context;
    const gx_packed *const p = &w->packed;
    const gx_codec *const c = p->codec;
    uint32_t begin = 0;
    for (uint64_t i = 0, k = 0; i < p->n; i += c->block_len, ++k) {
        const uint32_t n = p->n - i < c->block_len ? (uint32_t)(p->n - i) : c->block_len;
        if (w->docids)
            gx_decode_docids(c, p->words + begin, p->ends[k] - begin, n, p->param, p->heads[k], w->buffer);
        else
            c->decode(p->words + begin, p->ends[k] - begin, n, p->param, w->buffer);
        begin = p->ends[k];
    }
}

static void decode_steps(void *context)
{
    work *const w = context;
    gx_cursor cursor = w->baseline->open(w->bytes, w->packed.n);
    for (uint64_t i = 0; i < w->packed.n; i += GX_STEP)
        w->baseline->step(&cursor, w->buffer, w->docids);
}

static gx_status wrong(const char *title, const char *where, gx_error *err)
{
    return gx_fail(err, GX_EINTERNAL, "%s: what %s decodes is not what was encoded", title, where);
}

#ifdef GX_CUDA
/* One form on the GPU: compared, then timed. */
static gx_status on_gpu(const gx_packed *p, gx_form form, const uint32_t *want, uint32_t *buffer, double seconds[3], gx_error *err)
{
    gx_gpu_list *l = NULL;
    uint32_t sum = 0;
    gx_status st = gx_gpu_list_open(&l, p, err);
    if (st == GX_OK)
        st = gx_gpu_list_decode(l, form, buffer, err);
    if (st == GX_OK)
        st = gx_gpu_list_sum(l, form, &sum, err);
    if (st == GX_OK) {
        for (uint64_t i = 0; i < p->n; ++i)
            sum -= want[i];
        if (sum != 0 || memcmp(buffer, want, p->n * sizeof *want) != 0)
            st = wrong(p->codec->title, "the GPU", err);
    }
    if (st == GX_OK)
        st = gx_gpu_list_time(l, form, false, true, 15, &seconds[0], err);
    if (st == GX_OK)
        st = gx_gpu_list_time(l, form, true, true, 15, &seconds[1], err);
    if (st == GX_OK)
        st = gx_gpu_list_time(l, form, false, false, 15, &seconds[2], err);
    gx_gpu_list_close(l);
    return st;
}
#endif

/* The words of GPU-VByte's last block when it is bit-packed behind its width, as the paper's encoder does. */
static uint64_t paper_last_block(const uint32_t *in, uint32_t n) { return 1 + gx_div_up(n * gx_max_width(in, n), 32); }

/* One form: packed, compared, timed. */
static gx_status bench_form(work *w, gx_form form, const uint32_t *want, uint32_t *out, bool speed, bool gpu, gx_codec_speed *s, gx_error *err)
{
    const gx_codec *const c = w->codec;
    const uint64_t n = w->packed.n, n_blocks = gx_packed_blocks(&w->packed);
    w->docids = form == GX_FORM_DOCIDS;
    w->packed.param = c->param ? c->param(w->in, n) : 0;
    const uint64_t used = gx_pack_list(c, w->packed.param, w->in, n, w->words, w->ends);
    memset(w->words + used, 0, GX_READ_SLACK);
    if (!w->docids) {
        s->paper_bits = s->bits = 32.0 * (double)(used + n_blocks + 1) / (double)n;
        if (strncmp(c->name, "gpuvbyte", 8) == 0) {
            const uint64_t before = n_blocks > 1 ? w->ends[n_blocks - 2] : 0;
            const uint64_t last = paper_last_block(w->in + (n_blocks - 1) * c->block_len, (uint32_t)(n - (n_blocks - 1) * c->block_len));
            s->paper_bits = 32.0 * (double)(before + last + n_blocks + 1) / (double)n;
        }
    }
    gx_decode_list_cpu(&w->packed, form, out);
    if (memcmp(out, want, n * sizeof *want) != 0)
        return wrong(c->title, "the CPU", err);
    if (speed) {
        *(w->docids ? &s->docids : &s->integers) = speed_of(decode_blocks, w, n);
        if (!w->docids)
            s->encode = speed_of(encode, w, n);
    }
#ifdef GX_CUDA
    if (gpu && gx_codec_on_gpu(c)) {
        double seconds[3];
        const gx_status st = on_gpu(&w->packed, form, want, out, seconds, err);
        if (st != GX_OK)
            return st;
        *(w->docids ? &s->gpu_docids : &s->gpu_integers) = (double)n / seconds[0];
        *(w->docids ? &s->gpu_docids_kept : &s->gpu_integers_kept) = (double)n / seconds[1];
        if (w->docids) {
            s->gpu_docids_l2 = (double)n / seconds[2];
            s->gpu_gbs = 4.0 * (double)(used + 2 * n_blocks + n) / seconds[0] / 1e9;
        }
    }
#else
    (void)gpu;
#endif
    return GX_OK;
}

gx_status gx_bench_codec(const gx_codec *codec, const uint32_t *docids, uint64_t n, bool speed, bool gpu, gx_codec_speed *out, gx_error *err)
{
    work *const w = calloc(1, sizeof *w);
    const uint64_t room = n + GX_MAX_BLOCK;
    uint32_t *const in = malloc(room * 4), *const decoded = malloc(room * 4), *const heads = malloc(room / codec->block_len * 4 + 4);
    gx_status st = GX_ENOMEM;
    memset(out, 0, sizeof *out);
    if (w && in && decoded && heads) {
        w->words = malloc(gx_pack_list_words(codec, n) * 4 + GX_READ_SLACK);
        w->ends = malloc(room / codec->block_len * 4 + 4);
    }
    if (!w || !w->words || !w->ends) {
        gx_fail(err, GX_ENOMEM, "no memory to measure %s on %llu integers", codec->title, (unsigned long long)n);
    } else {
        w->codec = codec;
        w->in = in;
        w->packed = (gx_packed){codec, 0, w->words, w->ends, NULL, n};
        memcpy(in, docids, n * 4);
        gx_to_gaps(in, n);
        st = bench_form(w, GX_FORM_INTEGERS, in, decoded, speed, gpu, out, err);
        if (st == GX_OK) {
            gx_docids_to_coded(docids, n, codec->block_len, in, heads);
            w->packed.heads = heads;
            st = bench_form(w, GX_FORM_DOCIDS, docids, decoded, speed, gpu, out, err);
        }
    }
    if (w) {
        free(w->words);
        free(w->ends);
    }
    free(w);
    free(in);
    free(decoded);
    free(heads);
    return st;
}

static bool baseline_right(work *w, const uint32_t *gaps, const uint32_t *docids)
{
    gx_cursor a = w->baseline->open(w->bytes, w->packed.n), b = a;
    for (uint64_t i = 0; i < w->packed.n; i += GX_STEP) {
        w->baseline->step(&a, w->buffer, false);
        if (memcmp(w->buffer, gaps + i, sizeof w->buffer) != 0)
            return false;
        w->baseline->step(&b, w->buffer, true);
        if (memcmp(w->buffer, docids + i, sizeof w->buffer) != 0)
            return false;
    }
    return true;
}

gx_status gx_bench_baseline(const gx_baseline *baseline, const uint32_t *docids, uint64_t n, bool speed, gx_codec_speed *out, gx_error *err)
{
    work *const w = calloc(1, sizeof *w);
    uint32_t *const gaps = malloc(n * 4 + 4);
    gx_status st = GX_OK;
    memset(out, 0, sizeof *out);
    if (w)
        w->bytes = malloc(8 * n + 64);
    if (!w || !gaps || !w->bytes) {
        st = gx_fail(err, GX_ENOMEM, "no memory to measure %s on %llu integers", baseline->title, (unsigned long long)n);
    } else {
        w->baseline = baseline;
        w->in = gaps;
        w->packed.n = n;
        memcpy(gaps, docids, n * 4);
        gx_to_gaps(gaps, n);
        out->bits = out->paper_bits = 8.0 * (double)baseline->encode(gaps, n, w->bytes) / (double)n;
        if (!baseline_right(w, gaps, docids)) {
            st = wrong(baseline->title, "the CPU", err);
        } else if (speed) {
            out->integers = speed_of(decode_steps, w, n);
            w->docids = true;
            out->docids = speed_of(decode_steps, w, n);
            out->encode = speed_of(encode, w, n);
        }
    }
    if (w)
        free(w->bytes);
    free(w);
    free(gaps);
    return st;
}
