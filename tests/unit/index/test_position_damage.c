/* Index files with positions that are damaged: each rule of FORMAT.md is checked, at the level where it is said, and
 * what only a full check finds is refused where the block is read, by words that name it. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/hash.h"
#include "engine/random.h"
#include "index/check/check.h"
#include "index/positions.h"
#include "tests/support/collection.h"

static char path[] = "/tmp/gx-test-positions-XXXXXX";
static uint8_t *whole, *image; /* [n] the file, and a copy to be damaged */
static size_t n_bytes;

static gx_header *header(void)
{
    return (gx_header *)(void *)image;
}

static gx_section *entry(uint32_t kind)
{
    gx_section *s = (gx_section *)(void *)(image + sizeof(gx_header));
    while (s->kind != kind)
        ++s;
    return s;
}

static uint32_t *words(uint32_t kind)
{
    return (uint32_t *)(void *)(image + entry(kind)->offset);
}

/* Write the copy, its checksums made right, for gx_index_verify. */
static void store(void)
{
    gx_header *h = header();
    gx_section *s = (gx_section *)(void *)(h + 1);
    for (uint32_t i = 0; i < h->n_sections; ++i)
        if (s[i].offset <= n_bytes && s[i].bytes <= n_bytes - s[i].offset)
            s[i].checksum = gx_hash(image + s[i].offset, s[i].bytes);
    h->checksum = 0;
    h->checksum = gx_hash(image, sizeof *h + h->n_sections * sizeof *s);
    const int fd = open(path, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, image, n_bytes), n_bytes);
    close(fd);
}

static void no_flag(void)
{
    header()->flags = 0;
}
static void with_impacts(void)
{
    header()->flags = GX_HEADER_POSITIONS | GX_HEADER_IMPACTS;
}
static void no_words(void)
{
    entry(GX_SEC_POSITIONS)->kind = GX_KIND('X', 'O', 'S', 'N');
}
static void no_ends(void)
{
    entry(GX_SEC_POSITION_ENDS)->kind = GX_KIND('X', 'E', 'N', 'D');
}
static void required(void)
{
    entry(GX_SEC_POSITIONS)->flags = GX_SECTION_REQUIRED;
}
static void word_parameter(void)
{
    entry(GX_SEC_POSITIONS)->param = 1;
}
static void many_wraps(void)
{
    entry(GX_SEC_POSITION_ENDS)->param = 1;
}
static void too_many_wraps(void)
{
    entry(GX_SEC_POSITION_ENDS)->param = UINT64_MAX - 2;
}
static void title_width(void)
{
    entry(GX_SEC_TITLE_LENS)->param = 3;
}
static void title_bytes(void)
{
    entry(GX_SEC_TITLE_LENS)->param = 1;
}
static void end_falls(void)
{
    words(GX_SEC_POSITION_ENDS)[2] = words(GX_SEC_POSITION_ENDS)[1] - 1;
}
static void last_end(void)
{
    words(GX_SEC_POSITION_ENDS)[header()->n_blocks - 1] += 1;
}
static void slack(void)
{
    words(GX_SEC_POSITIONS)[entry(GX_SEC_POSITIONS)->bytes / 4 - 1] = 1;
}
static void other_b(void)
{
    words(GX_SEC_POSITIONS)[0] ^= 1;
}
static void end_moved(void)
{
    words(GX_SEC_POSITION_ENDS)[0] -= 1;
}
static void bits_behind(void)
{
    words(GX_SEC_POSITIONS)[words(GX_SEC_POSITION_ENDS)[0] - 1] |= 1u << 31;
}
static void a_one_more(void)
{
    words(GX_SEC_POSITIONS)[words(GX_SEC_POSITION_ENDS)[1] - 2] |= 0x88888888;
}
static void nothing_there(void)
{
    const uint32_t *ends = words(GX_SEC_POSITION_ENDS);
    memset(words(GX_SEC_POSITIONS) + ends[0], 0, 4ull * (ends[1] - ends[0]));
}
static void all_ones(void)
{
    const uint32_t *ends = words(GX_SEC_POSITION_ENDS);
    memset(words(GX_SEC_POSITIONS) + ends[0], 255, 4ull * (ends[1] - ends[0]));
}

static const struct rule {
    void (*damage)(void);
    const char *place, *reason;
    gx_check level;
} rules[] = {
    {no_flag, "section POSN", "the header says that there are no positions", GX_CHECK_HEADER},
    {with_impacts, "header", "impacts have no positions", GX_CHECK_HEADER},
    {no_words, "section POSN", "it is missing", GX_CHECK_HEADER},
    {no_ends, "section PEND", "it is missing", GX_CHECK_HEADER},
    {required, "section POSN", "its flags are 1", GX_CHECK_HEADER},
    {word_parameter, "section POSN", "its parameter is 1, not 0", GX_CHECK_HEADER},
    {many_wraps, "section PEND", "items of 4", GX_CHECK_HEADER},
    {too_many_wraps, "section PEND", "its parameter is", GX_CHECK_HEADER},
    {title_width, "section PLEN", "numbers of 3 bytes", GX_CHECK_HEADER},
    {title_bytes, "section PLEN", "items of 1", GX_CHECK_HEADER},
    {end_falls, "section PEND", "block 2 ends at word", GX_CHECK_STRUCTURE},
    {last_end, "section POSN", "blocks take", GX_CHECK_STRUCTURE},
    {slack, "section POSN", "behind its last word are not zero", GX_CHECK_STRUCTURE},
    {other_b, "section POSN", "block 0 of list 0 is no block of", GX_CHECK_FULL},
    {end_moved, "section POSN", "block 0 of list 0 is no block of", GX_CHECK_FULL},
    {bits_behind, "section POSN", "block 0 of list 0 is no block of", GX_CHECK_FULL},
    {a_one_more, "section POSN", "block 1 of list 0", GX_CHECK_FULL},
    {nothing_there, "section POSN", "block 1 of list 0 is no block of", GX_CHECK_FULL},
    {all_ones, "section POSN", "block 1 of list 0", GX_CHECK_FULL},
};

static bool refused(gx_check level, const struct rule *r)
{
    gx_error err = {0};
    const gx_status st = gx_index_verify(path, level, &err);
    if (st == GX_ECORRUPT && strstr(err.text, r->place) && strstr(err.text, r->reason))
        return true;
    print_error("level %d: %s '%s' does not say '%s' and '%s'\n", level, gx_status_name(st), err.text, r->place,
                r->reason);
    return false;
}

static void each_rule_is_checked(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i) {
        memcpy(image, whole, n_bytes);
        rules[i].damage();
        store();
        wrong += !refused(rules[i].level, &rules[i]) || !refused(GX_CHECK_FULL, &rules[i]);
        const gx_check before = rules[i].level == GX_CHECK_FULL ? GX_CHECK_CHECKSUM : GX_CHECK_HEADER;
        gx_error err = {0};
        if (rules[i].level != GX_CHECK_HEADER && gx_index_verify(path, before, &err) != GX_OK) {
            print_error("%s: already %s\n", rules[i].reason, err.text);
            ++wrong;
        }
    }
    assert_int_equal(wrong, 0);
}

/* Walk along all lists. Returns the first failure. */
static gx_status walk(const gx_index *ix, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t t = 0; t < ix->n_terms && st == GX_OK; ++t) {
        const uint32_t *docids, *positions;
        uint32_t n = 1;
        size_t n_positions;
        gx_postings *p;
        assert_int_equal(gx_postings_open(&p, ix, t, err), GX_OK);
        while (st == GX_OK && n)
            if ((st = gx_postings_next(p, &docids, NULL, &n, err)) == GX_OK && n)
                st = gx_postings_positions(p, &positions, &n_positions, err);
        gx_postings_close(p);
    }
    return st;
}

/* Random damage of words, ends and titles: a file that is opened is walked along and written anew, and no byte outside
 * is read. */
static void whatever_is_damaged_no_byte_outside_is_read(void **state)
{
    (void)state;
    static const uint32_t kinds[] = {GX_SEC_POSITIONS, GX_SEC_POSITION_ENDS, GX_SEC_TITLE_LENS};
    uint64_t seed = 38;
    uint32_t refusals = 0, failures = 0;
    char to[80];
    snprintf(to, sizeof to, "%s.new", path);
    for (int round = 0; round < 600; ++round) {
        memcpy(image, whole, n_bytes);
        for (int k = 0; k <= round % 3; ++k) {
            const gx_section *s = entry(kinds[gx_random_next(&seed) % (round % 4 ? 1 : 3)]);
            image[s->offset + gx_random_next(&seed) % s->bytes] ^= (uint8_t)(1 << gx_random_next(&seed) % 8);
        }
        store();
        gx_index *ix;
        gx_error err = {0};
        if (gx_index_open(&ix, path, NULL, &err) != GX_OK) {
            ++refusals;
            continue;
        }
        const gx_status st = walk(ix, &err);
        if (st != GX_OK)
            assert_true(st == GX_ECORRUPT && strstr(err.text, "section POSN"));
        failures += st != GX_OK;
        gx_rewrite_options opt = GX_REWRITE_OPTIONS;
        opt.force = true;
        const gx_status written = round % 8 ? GX_OK : gx_index_rewrite(ix, to, &opt, &err);
        assert_true(written == GX_OK || written == GX_ECORRUPT);
        gx_index_close(ix);
    }
    unlink(to);
    assert_true(refusals > 20 && failures > 20);
}

/* A file of more than 2^32 words of positions cannot be made here: its ends, and where its blocks lie, are tried by
 * themselves. */
static void blocks_beyond_2_to_the_32_words_are_found(void **state)
{
    (void)state;
    static const uint32_t ends[] = {5, 10, 4294967290u, 7, 7, 3, 9}, wraps[] = {3, 5};
    const uint64_t expected[] = {5, 10, 4294967290u, 4294967303u, 4294967303u, 8589934595u, 8589934601u};
    static const uint32_t base[1];
    gx_index ix = {
        .positions = base, .position_ends = ends, .position_wraps = wraps, .n_position_wraps = 2, .n_blocks = 7};
    for (uint64_t j = 0; j < 7; ++j) {
        const gx_block_positions b = gx_index_block_positions(&ix, j);
        const uint64_t begin = j ? expected[j - 1] : 0;
        assert_int_equal((uint64_t)((uintptr_t)b.words - (uintptr_t)base) / 4, begin);
        assert_int_equal(b.n_words, expected[j] - begin);
    }
}

static int set_up(void **state)
{
    (void)state;
    gx_error err = {0};
    struct stat s;
    uint64_t seed = 1;
    collection *c = collection_make(seed, 700, 30);
    c->with_positions = true;
    c->with_texts = false;
    for (uint32_t t = 0; t < c->n_terms; ++t)
        for (uint32_t i = 0; i < c->lists[t].df; ++i)
            if (c->lists[t].tfs[i] > 300) {
                c->doc_lens[c->lists[t].docids[i]] -= c->lists[t].tfs[i] - 300;
                c->lists[t].tfs[i] = 300;
            }
    const int fd = mkstemp(path);
    if (collection_write(c, path, gx_codec_by_name("gpubp128"), NULL, &err) != GX_OK)
        fail_msg("%s", err.text);
    collection_free(c);
    close(fd);
    const int made = open(path, O_RDONLY);
    assert_true(made >= 0 && fstat(made, &s) == 0);
    n_bytes = (size_t)s.st_size;
    whole = malloc(n_bytes);
    image = malloc(n_bytes);
    assert_int_equal(read(made, whole, n_bytes), n_bytes);
    close(made);
    if (gx_index_verify(path, GX_CHECK_FULL, &err) != GX_OK)
        fail_msg("%s", err.text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    free(whole);
    free(image);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_is_checked),
        cmocka_unit_test(whatever_is_damaged_no_byte_outside_is_read),
        cmocka_unit_test(blocks_beyond_2_to_the_32_words_are_found),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
