/* Every codec of the registry: what goes in comes out, blocks keep their bounds, bytes are what
 * they always were, and damaged blocks harm nobody. Arrays end where their malloc ends, so that the
 * sanitizers see one step too far. GX_TEST_SEED chooses other random numbers. */
#include "codecs/codec.h"
#include "codecs/words/bits.h"
#include "codecs/words/simd.h"
#include "engine/api/gpuidx_advanced.h"
#include "engine/hash.h"
#include "engine/random.h"
#include "tests/support/test.h"

static uint64_t seed = 20191103;

static uint64_t rnd(void)
{
    return gx_random_next(&seed);
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(rnd() % n);
}

static uint32_t of_width(uint32_t b)
{
    return (uint32_t)rnd() & gx_low_bits(b);
}

static void *allocate(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    assert_non_null(p);
    return p;
}

static uint32_t param_of(const gx_codec *c, const uint32_t *in, uint64_t n)
{
    return c->param ? c->param(in, n) : 0;
}

/* A block in memory of its own: the words and the slack that decoders may read, nothing more. */
typedef struct block {
    uint32_t *words, n_words, n;
    uint8_t param;
} block;

static block encode(const gx_codec *c, const uint32_t *in, uint32_t n, uint8_t param)
{
    const uint32_t max = c->max_words(n);
    uint32_t *const out = allocate(max * sizeof *out);
    block b = {.n_words = c->encode(in, n, param, out), .n = n, .param = param};
    assert_true(b.n_words <= max);
    b.words = allocate(b.n_words * sizeof *out + GX_READ_SLACK);
    memcpy(b.words, out, b.n_words * sizeof *out);
    memset(b.words + b.n_words, 0xa5, GX_READ_SLACK);
    free(out);
    return b;
}

static uint32_t *decode(const gx_codec *c, const block *b)
{
    uint32_t room = (b->n + 31) / 32 * 32;
    if (room > c->block_len)
        room = (c->block_len + 31u) / 32 * 32;
    uint32_t *const out = allocate(room * sizeof *out);
    c->decode(b->words, b->n_words, b->n, b->param, out);
    return out;
}

static void same(const gx_codec *c, const uint32_t *in, const uint32_t *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        if (in[i] != out[i])
            fail_msg("%s: integer %u of %u is %u and came back as %u", c->name, i, n, in[i], out[i]);
    }
}

static void goes_round(const gx_codec *c, const uint32_t *in, uint32_t n, uint8_t param)
{
    block b = encode(c, in, n, param);
    uint32_t *const out = decode(c, &b);
    same(c, in, out, n);
    if (!gx_codec_block_valid(c, b.words, b.n_words, n, param))
        fail_msg("%s: its own block of %u is not valid", c->name, n);
    free(out);
    free(b.words);
}

static void list_goes_round(const gx_codec *c, const uint32_t *in, uint32_t n)
{
    const uint8_t param = (uint8_t)param_of(c, in, n);
    for (uint32_t i = 0; i < n; i += c->block_len)
        goes_round(c, in + i, n - i < c->block_len ? n - i : c->block_len, param);
}

static void the_registry_finds_by_name_and_id(void **state)
{
    (void)state;
    uint32_t last = 0;
    for (const gx_codec *const *p = gx_codecs; *p; ++p) {
        const gx_codec *c = *p;
        assert_true(c->id > last);
        last = c->id;
        assert_in_range(c->block_len, 1, GX_MAX_BLOCK);
        for (uint32_t n = 1; n <= c->block_len; ++n)
            assert_in_range(c->max_words(n), 1, GX_MAX_WORDS);
        assert_ptr_equal(gx_codec_by_name(c->name), c);
        assert_ptr_equal(gx_codec_by_id(c->id), c);
        assert_string_equal(gx_codec_name((uint32_t)(p - gx_codecs)), c->name);
        assert_true(p[1] || !gx_codec_name((uint32_t)(p - gx_codecs) + 1));
    }
    assert_null(gx_codec_name(UINT32_MAX));
    assert_null(gx_codec_by_name("gpubp"));
    assert_null(gx_codec_by_id(0));
}

static void lists_of_every_length_go_round(void **state)
{
    (void)state;
    uint32_t *const in = allocate(4097 * sizeof *in);
    for (const gx_codec *const *c = gx_codecs; *c; ++c) {
        for (uint32_t n = 0; n <= 4097; ++n) {
            for (uint32_t i = 0; i < n; ++i)
                in[i] = of_width(below(33));
            list_goes_round(*c, in, n);
        }
        for (uint32_t i = 0; i < 4097; ++i)
            in[i] = of_width(7);
        for (uint32_t n = 0; n <= 4097; ++n)
            list_goes_round(*c, in, n);
    }
    free(in);
}

static void blocks_of_every_width_go_round(void **state)
{
    (void)state;
    uint32_t in[GX_MAX_BLOCK];
    for (const gx_codec *const *p = gx_codecs; *p; ++p) {
        const gx_codec *c = *p;
        const uint32_t lengths[] = {1, 2, 3, 15, 16, 17, 31, 32, 33, c->block_len - 1u, c->block_len};
        for (uint32_t b = 0; b <= 32; ++b) {
            for (uint32_t l = 0; l < sizeof lengths / sizeof *lengths; ++l) {
                const uint32_t n = lengths[l] < c->block_len ? lengths[l] : c->block_len;
                for (int pattern = 0; pattern < 5; ++pattern) {
                    for (uint32_t i = 0; i < n; ++i) {
                        in[i] = pattern == 0   ? gx_low_bits(b) /* all the greatest */
                                : pattern == 1 ? of_width(b)    /* any */
                                : pattern == 2 ? (i == n / 2 ? gx_low_bits(b) : 0)
                                : pattern == 3 ? (i % 2 ? gx_low_bits(b) : 1)
                                               : (below(10) ? of_width(b / 2) : of_width(b)); /* exceptions */
                    }
                    goes_round(c, in, n, (uint8_t)param_of(c, in, n));
                    /* a parameter chosen for other values of the list */
                    const uint32_t other[2] = {of_width(below(33)), of_width(below(33))};
                    goes_round(c, in, n, (uint8_t)param_of(c, other, 2));
                }
            }
        }
    }
}

static void a_long_list_goes_round(void **state)
{
    (void)state;
    const uint32_t n = 1000000;
    uint32_t *const in = allocate(n * sizeof *in);
    for (uint32_t i = 0; i < n; ++i)
        in[i] = of_width(below(4) ? 5 : below(20));
    for (const gx_codec *const *c = gx_codecs; *c; ++c)
        list_goes_round(*c, in, n);
    free(in);
}

static void one_integer_is_what_decoding_all_gives(void **state)
{
    (void)state;
    uint32_t in[GX_MAX_BLOCK];
    for (const gx_codec *const *p = gx_codecs; *p; ++p) {
        const gx_codec *c = *p;
        assert_true(!c->random_access || c->at);
        for (int round = 0; c->at && round < 200; ++round) {
            const uint32_t n = round < 20 ? c->block_len : 1 + below(c->block_len), b = below(33);
            for (uint32_t i = 0; i < n; ++i)
                in[i] = of_width(below(b + 1));
            block k = encode(c, in, n, (uint8_t)param_of(c, in, n));
            for (uint32_t i = 0; i < n; ++i)
                assert_int_equal(c->at(k.words, k.n_words, n, k.param, i), in[i]);
            free(k.words);
        }
    }
}

/* Change a block somehow: bits, whole words, its length, its parameter. */
static void damage(block *b)
{
    const uint32_t kind = below(8);
    if (kind == 0 || (b->n_words == 0 && kind < 7)) { /* another length; what lies there is noise */
        const uint32_t n_words = below(2 * b->n_words + 20);
        uint32_t *const words = allocate(n_words * sizeof *words + GX_READ_SLACK);
        for (uint32_t i = 0; i < n_words + GX_READ_SLACK / 4; ++i)
            words[i] = i < b->n_words ? b->words[i] : (uint32_t)rnd();
        free(b->words);
        b->words = words;
        b->n_words = n_words;
    } else if (kind < 4) {
        for (uint32_t i = 1 + below(4); i > 0; --i)
            b->words[below(b->n_words)] ^= 1u << below(32);
    } else if (kind < 6) {
        b->words[below(b->n_words)] = below(2) ? 0xffffffffu : (uint32_t)rnd();
    } else if (kind == 6) {
        for (uint32_t i = 0; i < b->n_words; ++i)
            b->words[i] = below(4) ? (uint32_t)rnd() : 0xffffffffu;
    } else {
        b->param = (uint8_t)rnd();
    }
}

static void damaged_blocks_harm_nobody(void **state)
{
    (void)state;
    uint32_t in[GX_MAX_BLOCK];
    for (const gx_codec *const *p = gx_codecs; *p; ++p) {
        const gx_codec *c = *p;
        for (int round = 0; round < 6000; ++round) {
            const uint32_t n = below(2) ? c->block_len : 1 + below(c->block_len), b = below(33);
            for (uint32_t i = 0; i < n; ++i)
                in[i] = of_width(below(b + 1));
            block k = encode(c, in, n, (uint8_t)param_of(c, in, n));
            damage(&k);
            uint32_t *const out = decode(c, &k);
            if (c->valid(k.words, k.n_words, n, k.param) && c->at) {
                for (uint32_t i = 0; i < n; ++i)
                    assert_int_equal(c->at(k.words, k.n_words, n, k.param, i), out[i]);
            } else if (c->at) {
                for (uint32_t i = 0; i < 10; ++i)
                    c->at(k.words, k.n_words, n, k.param, below(n));
            }
            free(out);
            free(k.words);
        }
    }
}

static void a_block_of_another_length_is_not_valid(void **state)
{
    (void)state;
    uint32_t in[GX_MAX_BLOCK];
    for (const gx_codec *const *p = gx_codecs; *p; ++p) {
        const gx_codec *c = *p;
        for (uint32_t i = 0; i < c->block_len; ++i)
            in[i] = 1u << 12 | of_width(12);
        block k = encode(c, in, c->block_len, (uint8_t)param_of(c, in, c->block_len));
        assert_false(gx_codec_block_valid(c, k.words, k.n_words + 1, k.n, k.param));
        assert_false(gx_codec_block_valid(c, k.words, k.n_words - 1, k.n, k.param));
        free(k.words);
    }
}

/* 1..12, laid out as the codec lays out greater integers: blocks in good order, but no encoder's.
 * */
static void a_block_with_more_words_than_it_needs_is_not_valid(void **state)
{
    (void)state;
    static const struct {
        const char *codec;
        /* words: before, if not 0; i + each and, if not 0, behind, for each i of 1..12 */
        uint32_t before, each, behind;
        bool closed; /* and a 0 */
    } rows[] = {
        {"gpubp128", 0, 0, 0, false},           {"gpubp256", 0, 0, 0, false},
        {"gpuvbyte128", 0xffffff, 0, 0, true},  {"gpuvbyte1024", 0xffffff, 0, 0, true},
        {"lane1024", 0, 0, 0, false},           {"gpupfd128", 0, 0, 0, false},
        {"simple9", 0, 0x80000000u, 0, false},  {"simple16", 0, 0xf0000000u, 0, false},
        {"simple8b", 0, 0, 0xf0000000u, false}, {"rice", 0, 0, 0, false},
        {"pfordelta", 0, 0, 0, false},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r) {
        const gx_codec *const c = gx_codec_by_name(rows[r].codec);
        uint32_t twelve[12], words[40] = {0}, n_words = 0;
        if (rows[r].before)
            words[n_words++] = rows[r].before;
        for (uint32_t i = 0; i < 12; ++i) {
            twelve[i] = i + 1;
            words[n_words++] = twelve[i] + rows[r].each;
            if (rows[r].behind)
                words[n_words++] = rows[r].behind;
        }
        block b = {words, n_words + rows[r].closed, 12, (uint8_t)param_of(c, twelve, 12)};
        uint32_t *const out = decode(c, &b);
        same(c, twelve, out, 12);
        free(out);
        assert_true(c->valid(b.words, b.n_words, b.n, b.param));
        if (gx_codec_block_valid(c, b.words, b.n_words, b.n, b.param))
            fail_msg("%s: a block that no encoder wrote is valid", c->name);
    }
}

/* What encoders write of fixed integers, which never changes, as an index's blocks must be their
 * encoders' (FORMAT.md): the words of 0, 1, 2, 3, 100, 255, 256, 65536, 5, 2^32 - 1 (ten), and of
 * 1..12 (twelve); and of two full blocks, block_len integers (mixed), how many words they have and
 * these words' XXH3. In the first nearly all are below 16, one in eleven below 2^12, so that codecs
 * with exceptions have some; in the second one is 2^32 - 1 besides. */
typedef struct sum {
    uint32_t n_words;
    uint64_t hash;
} sum;

static const struct golden {
    const char *codec, *ten, *twelve;
    sum mixed, with_greatest;
} golden[] = {
#include "tests/support/golden_codecs.h"
};

static char *hex(const block *b)
{
    char *s = allocate(b->n_words * 9 + 1), *p = s;
    *p = 0;
    for (uint32_t i = 0; i < b->n_words; ++i)
        p += sprintf(p, i ? " %x" : "%x", b->words[i]);
    return s;
}

/* Integers of the kinds that the comment above tells, the same in every run and whatever the seed.
 * */
static void mixed(uint32_t *out, uint32_t n, bool greatest)
{
    uint32_t x = 20191103;
    for (uint32_t i = 0; i < n; ++i) {
        x = x * 1664525u + 1013904223u;
        out[i] = i % 11 == 7 ? x >> 20 : x >> 28;
    }
    if (greatest)
        out[n / 2] = UINT32_MAX;
}

static sum sum_of_mixed(const gx_codec *c, bool greatest)
{
    uint32_t in[GX_MAX_BLOCK];
    mixed(in, c->block_len, greatest);
    block b = encode(c, in, c->block_len, (uint8_t)param_of(c, in, c->block_len));
    const sum s = {b.n_words, gx_hash(b.words, b.n_words * sizeof *b.words)};
    free(b.words);
    return s;
}

static void is(const gx_codec *c, sum want, sum got)
{
    if (want.n_words != got.n_words || want.hash != got.hash)
        fail_msg("%s: a full block has %u words, of sum %016llx, not %u, of %016llx", c->name, got.n_words,
                 (unsigned long long)got.hash, want.n_words, (unsigned long long)want.hash);
}

static void encoded_words_are_what_they_always_were(void **state)
{
    (void)state;
    const uint32_t ten[] = {0, 1, 2, 3, 100, 255, 256, 65536, 5, 0xffffffffu};
    uint32_t twelve[12];
    for (uint32_t i = 0; i < 12; ++i)
        twelve[i] = i + 1;
    for (const gx_codec *const *p = gx_codecs; *p; ++p) {
        block a = encode(*p, ten, 10, (uint8_t)param_of(*p, ten, 10));
        block b = encode(*p, twelve, 12, (uint8_t)param_of(*p, twelve, 12));
        char *const a_hex = hex(&a), *const b_hex = hex(&b);
        const sum m = sum_of_mixed(*p, false), g = sum_of_mixed(*p, true);
        bool known = false;
        for (size_t i = 0; i < sizeof golden / sizeof *golden; ++i) {
            if (strcmp(golden[i].codec, (*p)->name) != 0)
                continue;
            known = true;
            assert_string_equal(a_hex, golden[i].ten);
            assert_string_equal(b_hex, golden[i].twelve);
            is(*p, golden[i].mixed, m);
            is(*p, golden[i].with_greatest, g);
        }
        if (!known)
            fail_msg("no golden words yet: {\"%s\", \"%s\", \"%s\", {%u, 0x%016llx}, {%u, 0x%016llx}},", (*p)->name,
                     a_hex, b_hex, m.n_words, (unsigned long long)m.hash, g.n_words, (unsigned long long)g.hash);
        free(a_hex);
        free(b_hex);
        free(a.words);
        free(b.words);
    }
}

/* What a walk over the docids finds. */
static void finds(const gx_codec *c, const block *b, uint32_t head, const uint32_t *docids, uint32_t docid)
{
    uint32_t want = 0, found = 0;
    while (want < b->n && docids[want] < docid)
        ++want;
    const uint32_t at = c->next_geq(b->words, b->n_words, b->n, b->param, head, docid, &found);
    if (at != want || (want < b->n && found != docids[want]))
        fail_msg("%s: %u is at %u, but %u (%u) was found", c->name, docid, want, at, found);
}

static void a_docid_is_found_in_its_block(void **state)
{
    (void)state;
    uint32_t in[GX_MAX_BLOCK], docids[GX_MAX_BLOCK];
    for (const gx_codec *const *p = gx_codecs; *p; ++p) {
        const gx_codec *c = *p;
        for (int round = 0; c->next_geq && round < 3000; ++round) {
            const uint32_t n = round % 3 ? c->block_len : 1 + below(c->block_len), width = below(25),
                           head = of_width(below(30));
            in[0] = 0;
            docids[0] = head;
            for (uint32_t i = 1; i < n; ++i) {
                in[i] = of_width(round % 2 ? below(width + 1) : width);
                docids[i] = docids[i - 1] + in[i] + 1;
            }
            block b = encode(c, in, n, (uint8_t)param_of(c, in, n));
            finds(c, &b, head, docids, 0);
            finds(c, &b, head, docids, UINT32_MAX);
            for (uint32_t i = 0; i < n; i += round < 300 ? 1 : 1 + below(n)) {
                finds(c, &b, head, docids, docids[i]);
                finds(c, &b, head, docids, docids[i] + 1);
                finds(c, &b, head, docids, docids[i] - in[i] / 2);
            }
            for (int k = 0; k < 20; ++k) { /* and in a damaged block, something in it or nothing */
                damage(&b);
                uint32_t found;
                assert_in_range(c->next_geq(b.words, b.n_words, n, b.param, head, (uint32_t)rnd(), &found), 0, n);
            }
            free(b.words);
        }
    }
}

/* Integers of more than 28 bits: the upper 20 in a word before. 2^28 - 2^20 is the first that
 * Simple-16 escapes. */
static void simple_words_escape_what_does_not_fit(void **state)
{
    (void)state;
    const uint32_t in[] = {0xfffffffu, 0x10000000u, 0x10000001u, 7, 0xff00000u, 0xfefffffu, 0x80000fffu};
    block a = encode(gx_codec_by_name("simple9"), in, 7, 0), b = encode(gx_codec_by_name("simple16"), in, 7, 0);
    char *const nine = hex(&a), *const sixteen = hex(&b);
    assert_string_equal(nine, "8fffffff 90010000 80000000 90010000 7001c001 8ff00000 8fefffff 90080000 70000fff");
    assert_string_equal(sixteen, "fff0ffff f0000fff fff10000 f0000000 fff10000 e001c001 fff0ff00 f0000000 ffefffff "
                                 "fff80000 e0000fff");
    assert_false(gx_codec_block_valid(gx_codec_by_name("simple9"), a.words, 2, 1, 0));
    free(nine);
    free(sixteen);
    free(a.words);
    free(b.words);
}

/* GPU-PFD128's exceptions: 0, 1, 2, 3, 0, .. with 1000, 70000 and 4 at 5, 77 and 127. */
/* The map of 5 / 16, 77 / 16 + 1 and 127 / 16 + 2 is 221, in 10 bits; then 5 and 249, 13 and 17499,
 * 15 and 0 in 4 and 15 bits. */
static void exceptions_lie_behind_the_row(void **state)
{
    (void)state;
    uint32_t in[128];
    for (uint32_t i = 0; i < 128; ++i)
        in[i] = i % 4;
    in[5] = 1000, in[77] = 70000, in[127] = 4;
    block b = encode(gx_codec_by_name("gpupfd128"), in, 128, 0);
    char *const text = hex(&b);
    assert_string_equal(text, "e4e4e0e4 e4e4e4e4 e4e4e4e4 e4e4e4e4 e0e4e4e4 e4e4e4e4 e4e4e4e4 24e4e4e4 a03e5621 "
                              "f88b7 1bc40000");
    free(text);
    free(b.words);
}

static void becomes(const char *name, const uint32_t *in, uint32_t n, const char *words)
{
    block b = encode(gx_codec_by_name(name), in, n, 0);
    char *const text = hex(&b);
    assert_string_equal(text, words);
    free(text);
    free(b.words);
}

/* The example of Stepanov et al. (CIKM 2011); and integers that the first bytes of varint-PB just
 * hold, or not. */
static void groups_are_filled_or_left_incomplete(void **state)
{
    (void)state;
    const uint32_t four[] = {0xaaaa, 0xbbbbbb, 0xcc, 0xdddddddd}, wide[] = {0, 63, 64, 0x3fffffff},
                   wider[] = {1, 0x40000000};
    becomes("varint-g8iu", four, 4, "bbaaaacd ccbbbb ddddf700 dddd 0");
    becomes("varint-g8cu", four, 4, "bbaaaacd ddccbbbb ddddfddd 0 0");
    becomes("varint-pb", wide, 4, "101fc00 ffffffff");
    becomes("varint-pb", wider, 2, "1 40000000 0");
}

int main(void)
{
    if (getenv("GX_TEST_SEED"))
        seed = strtoull(getenv("GX_TEST_SEED"), NULL, 0);
    print_message("GX_TEST_SEED=%llu, %s\n", (unsigned long long)seed, gx_simd_best()->title);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_registry_finds_by_name_and_id),
        cmocka_unit_test(lists_of_every_length_go_round),
        cmocka_unit_test(blocks_of_every_width_go_round),
        cmocka_unit_test(a_long_list_goes_round),
        cmocka_unit_test(one_integer_is_what_decoding_all_gives),
        cmocka_unit_test(damaged_blocks_harm_nobody),
        cmocka_unit_test(a_block_of_another_length_is_not_valid),
        cmocka_unit_test(a_block_with_more_words_than_it_needs_is_not_valid),
        cmocka_unit_test(encoded_words_are_what_they_always_were),
        cmocka_unit_test(a_docid_is_found_in_its_block),
        cmocka_unit_test(simple_words_escape_what_does_not_fit),
        cmocka_unit_test(exceptions_lie_behind_the_row),
        cmocka_unit_test(groups_are_filled_or_left_incomplete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
