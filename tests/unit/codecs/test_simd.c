/* Every version of the decoders' inner loops that this CPU can run does what the portable one does.
 * */
#include "codecs/codec.h"
#include "codecs/words/pack.h"
#include "codecs/words/simd.h"
#include "engine/random.h"
#include "tests/support/test.h"

static uint64_t seed = 20191103;

static uint64_t rnd(void)
{
    return gx_random_next(&seed);
}

enum { MAX = 1024 };

static void each_n_and_width(const gx_simd *s, uint32_t n, uint32_t b)
{
    const uint32_t room = (n + 31) / 32 * 32, n_words = gx_div_up(n * b, 32), head = (uint32_t)rnd();
    uint32_t in[MAX], want[MAX];
    uint32_t *const out = malloc(room * sizeof *out), *const words = malloc(n_words * sizeof *words + GX_READ_SLACK);
    assert_true(out && words);
    for (uint32_t i = 0; i < n; ++i)
        in[i] = (uint32_t)rnd() & gx_low_bits(b);
    memset(words + n_words, 0xa5, GX_READ_SLACK);
    gx_pack(in, n, b, words);
    s->unpack(words, n, b, out);
    assert_memory_equal(out, in, n * sizeof *out);
    uint32_t last = head - 1;
    for (uint32_t i = 0; i < n; ++i)
        want[i] = last += in[i] + 1;
    s->unpack_docids(words, n, b, head, out);
    assert_memory_equal(out, want, n * sizeof *out);
    memcpy(out, in, n * sizeof *out);
    s->prefix_sum(out, n, head);
    assert_memory_equal(out, want, n * sizeof *out);
    free(words);

    /* the same integers as bytes */
    uint32_t selectors[MAX / 16], want_selectors[MAX / 16];
    uint8_t want_data[4 * MAX];
    uint8_t *data = malloc(4 * n);
    assert_non_null(data);
    const size_t bytes = (size_t)(s->put_bytes(in, n, selectors, data) - data);
    assert_int_equal(bytes, gx_simds[0]->put_bytes(in, n, want_selectors, want_data) - want_data);
    assert_memory_equal(data, want_data, bytes);
    assert_memory_equal(selectors, want_selectors, gx_div_up(n, 16) * sizeof *selectors);
    data = realloc(data, bytes + GX_READ_SLACK);
    memset(data + bytes, 0xa5, GX_READ_SLACK);
    assert_true(s->bytes(selectors, data, data + bytes, n, out));
    assert_memory_equal(out, in, n * sizeof *out);
    assert_true(s->bytes_docids(selectors, data, data + bytes, n, head, out));
    assert_memory_equal(out, want, n * sizeof *out);
    if (bytes > 200) /* an end that comes too soon */
        assert_false(s->bytes(selectors, data, data + bytes - 100, n, out));
    free(data);
    free(out);
}

/* The same integers as varint-SU, varint-GB and groups of varint-GU. */
static void each_n_and_width_in_bytes(const gx_simd *s, uint32_t n, uint32_t b)
{
    static const char *const names[] = {"varint-su", "varint-gb", "varint-g8iu", "varint-g8cu"};
    uint32_t in[MAX], *const out = malloc((n + 31) / 32 * 32 * sizeof *out);
    assert_non_null(out);
    for (uint32_t i = 0; i < n; ++i)
        in[i] = (uint32_t)rnd() & gx_low_bits(1 + (uint32_t)rnd() % b);
    in[n / 2] = gx_low_bits(b);
    for (int k = 0; k < 4; ++k) {
        const gx_codec *const c = gx_codec_by_name(names[k]);
        uint32_t *words = malloc(c->max_words(n) * sizeof *words);
        assert_non_null(words);
        const uint32_t n_words = c->encode(in, n, 0, words);
        words = realloc(words, n_words * sizeof *words + GX_READ_SLACK);
        memset(words + n_words, 0xa5, GX_READ_SLACK);
        const uint8_t *const data = (const uint8_t *)words;
        assert_true(k == 0   ? s->su(data, data + 4 * n_words, n, out)
                    : k == 1 ? s->gb(data, data + 4 * n_words, n, out)
                             : s->gu(data, 4 * n_words / 9, k == 3, n, out));
        assert_memory_equal(out, in, n * sizeof *out);
        free(words);
    }
    free(out);
}

/* High bits as an encoder writes them, and any. */
static void each_n_of_high_bits(const gx_simd *s, uint32_t n)
{
    const uint32_t b = (uint32_t)rnd() % 32, n_words = 1 + (uint32_t)rnd() % 14, first = (uint32_t)rnd(),
                   step = rnd() & 1;
    uint32_t *const words = malloc(n_words * sizeof *words + GX_READ_SLACK),
                    want[128], *const out = malloc(n * sizeof *out);
    assert_true(words && out);
    memset(words + n_words, 0xa5, GX_READ_SLACK);
    for (uint32_t i = 0; i < n_words; ++i)
        words[i] = (uint32_t)(n % 3 ? rnd() & rnd() : rnd());
    for (uint32_t i = 0; i < n; ++i)
        out[i] = want[i] = (uint32_t)rnd();
    gx_simds[0]->add_high_parts(words, n_words, n, b, first, step, want);
    s->add_high_parts(words, n_words, n, b, first, step, out);
    assert_memory_equal(out, want, n * sizeof *out);
    free(words);
    free(out);
}

static void every_version_decodes_alike(void **state)
{
    (void)state;
    for (const gx_simd *const *s = gx_simds; *s; ++s) {
        if (!(*s)->usable()) {
            print_message("%s: not on this CPU\n", (*s)->name);
            continue;
        }
        for (uint32_t b = 0; b <= 32; ++b) {
            for (uint32_t n = 1; n <= 300; ++n)
                each_n_and_width(*s, n, b);
            each_n_and_width(*s, 1024, b);
            for (uint32_t n = 1; n <= 128 && b > 0; ++n) {
                each_n_and_width_in_bytes(*s, n, b);
                each_n_of_high_bits(*s, n);
            }
        }
    }
}

static void the_best_is_usable(void **state)
{
    (void)state;
    assert_true(gx_simd_best()->usable());
    print_message("%s\n", gx_simd_best()->title);
}

static void the_environment_names_one(void **state)
{
    (void)state;
    const char *const asked = getenv("GX_CPU");
    char *const before = asked ? strdup(asked) : NULL;
    assert_true(!gx_simd_choose() || gx_simd_choose() == gx_simd_best());
    for (const gx_simd *const *s = gx_simds; *s; ++s) {
        setenv("GX_CPU", (*s)->name, 1);
        assert_ptr_equal(gx_simd_choose(), (*s)->usable() ? *s : NULL);
    }
    setenv("GX_CPU", "sse", 1);
    assert_null(gx_simd_choose());
    setenv("GX_CPU", "", 1);
    assert_non_null(gx_simd_choose());
    unsetenv("GX_CPU");
    assert_non_null(gx_simd_choose());
    if (before)
        setenv("GX_CPU", before, 1);
    free(before);
}

int main(void)
{
    if (getenv("GX_TEST_SEED"))
        seed = strtoull(getenv("GX_TEST_SEED"), NULL, 0);
    print_message("GX_TEST_SEED=%llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_decodes_alike),
        cmocka_unit_test(the_best_is_usable),
        cmocka_unit_test(the_environment_names_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
