/* Lists decoded on the GPU are what the CPU decodes, for every codec that has a GPU decoder;
 * damaged lists harm nobody (gpu.sh runs that under compute-sanitizer). Skipped where there is no
 * GPU. GX_TEST_FILTER: the tests whose names match; GX_TEST_CASES: the number of damaged lists
 * for each codec. */
#include "codecs/words/bits.h"
#include "engine/random.h"
#include "tests/support/test.h"
#include "tools/bench/kernels/gpu_list.h"

static uint64_t seed = 20191103;

static uint64_t rnd(void)
{
    return gx_random_next(&seed);
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(rnd() % n);
}

static void *allocate(uint64_t n)
{
    uint32_t *p = malloc((n + GX_MAX_BLOCK + GX_READ_SLACK) * sizeof *p);
    assert_non_null(p);
    return p;
}

/* Widths as they come: one for all, any, mostly small with exceptions, blockwise. */
static void fill(uint32_t *in, uint64_t n, uint32_t pattern, uint32_t width)
{
    uint32_t b = width;
    for (uint64_t i = 0; i < n; ++i) {
        if (pattern == 1 && i % 100 == 0)
            b = below(width + 1);
        if (pattern == 2)
            b = below(12) ? width / 3 : width;
        in[i] = pattern == 3 ? gx_low_bits(width) : (uint32_t)rnd() & gx_low_bits(b);
    }
}

static gx_gpu_list *packed_list(gx_packed *p, const gx_codec *c, const uint32_t *in, uint64_t n, const uint32_t *heads)
{
    uint32_t *const words = allocate(gx_pack_list_words(c, n)), *const ends = allocate(n);
    const uint8_t param = c->param ? c->param(in, n) : 0;
    const uint64_t used = gx_pack_list(c, param, in, n, words, ends);
    memset(words + used, 0xa5, GX_READ_SLACK);
    *p = (gx_packed){c, param, NULL, words, ends, heads, n};
    gx_gpu_list *l;
    gx_error err;
    if (gx_gpu_list_open(&l, p, &err) != GX_OK)
        fail_msg("%s", err.text);
    return l;
}

static void release(gx_packed *p, gx_gpu_list *l)
{
    gx_gpu_list_close(l);
    free((void *)p->words);
    free((void *)p->ends);
}

static void same(const gx_codec *c, const char *how, const uint32_t *want, const uint32_t *got, uint64_t n)
{
    for (uint64_t i = 0; i < n; ++i) {
        if (want[i] != got[i])
            fail_msg("%s, %s: integer %llu of %llu is %u on the CPU and %u on the GPU", c->name, how,
                     (unsigned long long)i, (unsigned long long)n, want[i], got[i]);
    }
}

static void forms_agree(const gx_packed *p, gx_gpu_list *l, gx_form form, const char *how)
{
    uint32_t *const want = allocate(p->n), *const got = allocate(p->n);
    gx_error err = {0};
    gx_decode_list_cpu(p, form, want);
    if (gx_gpu_list_decode(l, form, got, &err) != GX_OK)
        fail_msg("%s", err.text);
    same(p->codec, how, want, got, p->n);
    uint32_t sum, want_sum = 0;
    for (uint64_t i = 0; i < p->n; ++i)
        want_sum += want[i];
    if (gx_gpu_list_sum(l, form, &sum, &err) != GX_OK)
        fail_msg("%s", err.text);
    if (sum != want_sum)
        fail_msg("%s, %s, n = %llu: the sum is %u on the CPU and %u on the GPU", p->codec->name, how,
                 (unsigned long long)p->n, want_sum, sum);
    free(want);
    free(got);
}

/* The kernels of GPU-BP's and GPU-VByte's paper decode the same. */
static void paper_agrees(const gx_packed *p, gx_gpu_list *l, gx_form form)
{
    const uint8_t id = p->codec->id;
    if (id != GX_CODEC_GPUBP128 && id != GX_CODEC_GPUBP256 && id != GX_CODEC_GPUVBYTE128 && id != GX_CODEC_GPUVBYTE1024)
        return;
    uint32_t *const want = allocate(p->n), *const got = allocate(p->n);
    gx_error err = {0};
    gx_decode_list_cpu(p, form, want);
    gx_gpu_list_use_cikm2019(l);
    if (gx_gpu_list_decode(l, form, got, &err) != GX_OK)
        fail_msg("%s", err.text);
    same(p->codec, "by the paper's kernel", want, got, p->n);
    free(want);
    free(got);
}

static void check(const gx_codec *c, uint32_t *in, uint64_t n)
{
    const uint64_t n_blocks = (n + c->block_len - 1) / c->block_len;
    uint32_t *const heads = allocate(n_blocks);
    for (uint64_t i = 0; i < n_blocks; ++i)
        heads[i] = (uint32_t)rnd();
    gx_packed p;
    gx_gpu_list *l = packed_list(&p, c, in, n, heads);
    forms_agree(&p, l, GX_FORM_INTEGERS, "integers");
    uint32_t *const got = allocate(n);
    gx_error err = {0};
    if (gx_gpu_list_at(l, got, &err) != GX_OK)
        fail_msg("%s", err.text);
    same(c, "alone", in, got, n);
    free(got);
    paper_agrees(&p, l, GX_FORM_INTEGERS);
    release(&p, l);
    for (uint64_t i = 0; i < n; i += c->block_len) /* docids' blocks begin with 0 */
        in[i] = 0;
    l = packed_list(&p, c, in, n, heads);
    forms_agree(&p, l, GX_FORM_DOCIDS, "docids");
    paper_agrees(&p, l, GX_FORM_DOCIDS);
    release(&p, l);
    free(heads);
}

static void every_length_decodes_alike(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {0,    1,    2,    31,   32,   33,   127,  128,  129,  255,  256,  257,   1000,
                                       1023, 1024, 1025, 1151, 1152, 1153, 2048, 4095, 4096, 4097, 8192, 100013};
    uint32_t *const in = allocate(100013);
    for (const gx_codec *const *c = gx_codecs; *c; ++c) {
        if (!gx_codec_on_gpu(*c))
            continue;
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
            fill(in, lengths[i], 2, 1 + below(32));
            check(*c, in, lengths[i]);
        }
    }
    free(in);
}

static void every_width_decodes_alike(void **state)
{
    (void)state;
    uint32_t *const in = allocate(9000);
    for (const gx_codec *const *c = gx_codecs; *c; ++c) {
        for (uint32_t b = 0; b <= 32 && gx_codec_on_gpu(*c); ++b) {
            for (uint32_t pattern = 0; pattern < 4; ++pattern) {
                const uint32_t n = pattern == 3 ? 8192 : 8192 + below(800);
                fill(in, n, pattern, b);
                check(*c, in, n);
            }
        }
    }
    free(in);
}

static void a_long_list_decodes_alike(void **state)
{
    (void)state;
    const uint32_t n = 3000001;
    uint32_t *const in = allocate(n);
    for (const gx_codec *const *c = gx_codecs; *c; ++c) {
        if (!gx_codec_on_gpu(*c))
            continue;
        fill(in, n, 1, 14);
        check(*c, in, n);
    }
    free(in);
}

/* Lists of whole blocks one behind another, each packed with its own parameter. */
static void lists_with_parameters_of_their_own_decode_as_one(void **state)
{
    (void)state;
    enum { LISTS = 60, BLOCKS = 25, N = LISTS * BLOCKS * 128 };
    uint32_t *const in = allocate(N), *const words = allocate(2 * N), *const ends = allocate(LISTS * BLOCKS),
                    *const heads = allocate(LISTS * BLOCKS);
    uint32_t *const got = allocate(N);
    uint8_t params[LISTS * BLOCKS];
    for (const gx_codec *const *c = gx_codecs; *c; ++c) {
        if (!(*c)->param || !gx_codec_on_gpu(*c))
            continue;
        uint64_t used = 0;
        for (uint32_t k = 0; k < LISTS; ++k) {
            uint32_t *const list = in + k * BLOCKS * 128, *const list_ends = ends + k * BLOCKS;
            fill(list, BLOCKS * 128, 2, 1 + k % 30);
            for (uint32_t i = 0; i < BLOCKS; ++i) {
                list[i * 128] = 0;
                heads[k * BLOCKS + i] = (uint32_t)rnd();
            }
            const uint8_t param = (*c)->param(list, BLOCKS * 128);
            const uint64_t more = gx_pack_list(*c, param, list, BLOCKS * 128, words + used, list_ends);
            for (uint32_t i = 0; i < BLOCKS; ++i)
                list_ends[i] += (uint32_t)used;
            memset(params + k * BLOCKS, param, BLOCKS);
            used += more;
        }
        memset(words + used, 0xa5, GX_READ_SLACK);
        const gx_packed p = {*c, 0, params, words, ends, heads, N};
        gx_gpu_list *l;
        gx_error err = {0};
        if (gx_gpu_list_open(&l, &p, &err) != GX_OK)
            fail_msg("%s", err.text);
        gx_decode_list_cpu(&p, GX_FORM_INTEGERS, got);
        same(*c, "on the CPU", in, got, N);
        forms_agree(&p, l, GX_FORM_INTEGERS, "integers");
        forms_agree(&p, l, GX_FORM_DOCIDS, "docids");
        if (gx_gpu_list_at(l, got, &err) != GX_OK)
            fail_msg("%s", err.text);
        same(*c, "alone", in, got, N);
        gx_gpu_list_close(l);
    }
    free(in);
    free(words);
    free(ends);
    free(heads);
    free(got);
}

static void damaged_lists_harm_nobody(void **state)
{
    (void)state;
    uint32_t *const in = allocate(6000), *const out = allocate(6000), *const heads = allocate(6000);
    const int rounds = getenv("GX_TEST_CASES") ? atoi(getenv("GX_TEST_CASES")) : 30;
    memset(heads, 0, 6000 * sizeof *heads);
    for (const gx_codec *const *c = gx_codecs; *c; ++c) {
        for (int round = 0; round < rounds && gx_codec_on_gpu(*c); ++round) {
            const uint32_t n = 5000 + below(1000), n_blocks = (n + (*c)->block_len - 1) / (*c)->block_len;
            fill(in, n, below(3), below(33));
            gx_packed p;
            gx_gpu_list_close(packed_list(&p, *c, in, n, heads));
            uint32_t *const words = (uint32_t *)p.words, *const ends = (uint32_t *)p.ends;
            const uint32_t used = ends[n_blocks - 1];
            for (uint32_t i = 0; i < used; ++i) {
                if (below(1 + round * 2) == 0)
                    words[i] = below(2) ? 0xffffffffu : (uint32_t)rnd();
            }
            /* ends rise and stay within; no more is sure */
            for (uint32_t i = 0; i + 1 < n_blocks && round % 3 == 2; ++i) {
                const uint32_t before = i ? ends[i - 1] : 0;
                ends[i] = before + below(below(8) ? (ends[i] > before ? ends[i] - before : 0) + 1 : used - before + 1);
            }
            if (round % 5 == 4)
                p.param = (uint8_t)rnd();
            gx_gpu_list *l;
            gx_error err = {0};
            uint32_t sum;
            assert_int_equal(gx_gpu_list_open(&l, &p, &err), GX_OK);
            if (gx_gpu_list_decode(l, GX_FORM_INTEGERS, out, &err) != GX_OK ||
                gx_gpu_list_decode(l, GX_FORM_DOCIDS, out, &err) != GX_OK ||
                gx_gpu_list_sum(l, GX_FORM_DOCIDS, &sum, &err) != GX_OK || gx_gpu_list_at(l, out, &err) != GX_OK)
                fail_msg("%s: %s", (*c)->name, err.text);
            release(&p, l);
        }
    }
    free(in);
    free(out);
    free(heads);
}

int main(void)
{
    char name[256];
    gx_error err = {0};
    if (gx_gpu_name(name, sizeof name, &err) != GX_OK) {
        print_message("skipped: %s\n", err.text);
        return 77;
    }
    if (getenv("GX_TEST_SEED"))
        seed = strtoull(getenv("GX_TEST_SEED"), NULL, 0);
    print_message("%s, GX_TEST_SEED=%llu\n", name, (unsigned long long)seed);
    if (getenv("GX_TEST_FILTER"))
        cmocka_set_test_filter(getenv("GX_TEST_FILTER"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_decodes_alike),
        cmocka_unit_test(every_width_decodes_alike),
        cmocka_unit_test(a_long_list_decodes_alike),
        cmocka_unit_test(lists_with_parameters_of_their_own_decode_as_one),
        cmocka_unit_test(damaged_lists_harm_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
