/* Compressed streams, against the compressors of zlib, bzip2, xz and zstd. */
#include "index/corpus/unpack.h"

#include "engine/random.h"
#include "tests/support/compressors.h"

enum { MOST = 1 << 18 };

/* A stream in memory that is fed in blocks of `each` bytes. */
typedef struct stream {
    char bytes[MOST];
    size_t n, at, each;
    gx_status ends_with; /* what the feed returns behind the last byte */
} stream;

static gx_status feed(void *user, const char **block, size_t *n, gx_error *err)
{
    stream *s = user;
    (void)err;
    *block = s->bytes + s->at;
    *n = s->n - s->at < s->each ? s->n - s->at : s->each;
    s->at += *n;
    return *n ? GX_OK : s->ends_with;
}

static uint32_t format; /* under test */

static void add_member(stream *s, const char *bytes, size_t n, uint32_t level)
{
    s->n += formats[format].compress(s->bytes + s->n, MOST - s->n, bytes, n, level);
}

/* Read the whole stream in pieces of `room` bytes. */
static gx_status read_all(stream *s, size_t each, size_t room, char *to, size_t *n, gx_error *err)
{
    gx_unpack *z = gx_unpack_open(formats[format].name, feed, s);
    assert_non_null(z);
    assert_string_equal(gx_unpack_name(z), formats[format].name);
    gx_status st;
    size_t more;
    s->at = 0;
    s->each = each;
    *n = 0;
    while ((st = gx_unpack_read(z, to + *n, room, &more, err)) == GX_OK && more) {
        assert_true(more <= room);
        *n += more;
    }
    if (st == GX_OK || st == GX_EINPUT) { /* the end stays the end, and a broken stream broken */
        assert_int_equal(gx_unpack_read(z, to + *n, room, &more, err), st);
        assert_true(st != GX_OK || more == 0);
    }
    gx_unpack_close(z);
    return st;
}

static stream s;
static char got[2 * MOST];

static void begin(const char *text)
{
    s.n = 0;
    s.ends_with = GX_OK;
    if (text)
        add_member(&s, text, strlen(text), 6);
}

static void expect(const char *text)
{
    gx_error err = {0};
    size_t n;
    for (size_t each = 1; each < 64; each = each * 3) {
        if (read_all(&s, each, 5, got, &n, &err) != GX_OK)
            fail_msg("%s", err.text);
        assert_int_equal(n, strlen(text));
        assert_memory_equal(got, text, n);
    }
}

static void expect_error(const char *reason)
{
    gx_error err = {0};
    size_t n;
    for (size_t each = 1; each < 64; each = each * 3) {
        assert_int_equal(read_all(&s, each, 7, got, &n, &err), GX_EINPUT);
        if (!strstr(err.text, reason))
            fail_msg("%s: '%s' instead of '%s'", formats[format].name, err.text, reason);
    }
}

static void members_end_to_end_are_one_text(void **state)
{
    (void)state;
    for (format = 0; format < N_FORMATS; ++format) {
        begin("one member");
        expect("one member");
        add_member(&s, "", 0, 9);
        add_member(&s, ", and another", 13, 0);
        expect("one member, and another");
        begin(NULL);
        expect(""); /* nothing at all */
        begin("");
        expect("");
    }
}

static void zeros_behind_the_last_member_are_padding(void **state)
{
    (void)state;
    for (format = 0; format < N_FORMATS; ++format) {
        begin("text");
        memset(s.bytes + s.n, 0, 512);
        s.n += 512;
        expect("text");
        if (strcmp(formats[format].name, "xz")) { /* whose own format knows padding between streams */
            const size_t n = s.n;
            add_member(&s, "more", 4, 1);
            expect_error("what follows the stream is no ");
            s.n = n;
        }
        s.bytes[s.n++] = 'x';
        expect_error(strcmp(formats[format].name, "xz") ? "what follows the stream is no " : "");
    }
}

static void what_is_no_member_is_refused(void **state)
{
    (void)state;
    for (format = 0; format < N_FORMATS; ++format) {
        begin("text");
        memcpy(s.bytes + s.n, "more", 4);
        s.n += 4;
        expect_error(strcmp(formats[format].name, "xz") ? "what follows the stream is no " : "");
        begin(NULL);
        memcpy(s.bytes, "plain text, uncompressed", s.n = 24);
        expect_error("");
        memset(s.bytes, 0, s.n = 24); /* padding of nothing */
        expect_error("");
    }
    assert_null(gx_unpack_open("lzw", feed, &s));
    gx_unpack_close(NULL);
}

static void a_stream_cut_anywhere_is_an_error(void **state)
{
    (void)state;
    for (format = 0; format < N_FORMATS; ++format) {
        begin("a text that is long enough to be cut in many places");
        while (--s.n > 0)
            expect_error("it ends too early");
    }
}

/* A changed bit may be one on which no text depends, as the time in gzip's header. */
static void a_changed_bit_never_gives_another_text(void **state)
{
    (void)state;
    static const char text[] = "checksums find what was changed";
    for (format = 0; format < N_FORMATS; ++format) {
        uint32_t n_found = 0;
        begin(text);
        for (size_t i = 0; i < 8 * s.n; ++i) {
            gx_error err = {0};
            size_t n;
            s.bytes[i / 8] ^= (char)(1 << i % 8);
            const gx_status st = read_all(&s, 64, 64, got, &n, &err);
            if (st == GX_OK && (n != strlen(text) || memcmp(got, text, n) != 0))
                fail_msg("%s: bit %zu of %zu changed, and the text is another", formats[format].name, i, 8 * s.n);
            n_found += st == GX_EINPUT;
            s.bytes[i / 8] ^= (char)(1 << i % 8);
        }
        assert_true(n_found > 4 * s.n); /* most bits count */
        expect(text);
    }
}

static void the_feeds_failure_is_passed_on(void **state)
{
    (void)state;
    for (format = 0; format < N_FORMATS; ++format) {
        gx_error err = {0};
        size_t n;
        begin("text");
        s.n -= 3;
        s.ends_with = GX_EIO;
        assert_int_equal(read_all(&s, 4, 8, got, &n, &err), GX_EIO);
    }
}

static void a_stream_is_recognized_by_its_first_bytes(void **state)
{
    (void)state;
    for (format = 0; format < N_FORMATS; ++format) {
        begin("text");
        assert_string_equal(gx_unpack_recognize(s.bytes, s.n), formats[format].name);
        assert_string_equal(gx_unpack_recognize(s.bytes, GX_UNPACK_LOOK), formats[format].name);
        assert_null(gx_unpack_recognize(s.bytes, 2));
        begin("");
        assert_string_equal(gx_unpack_recognize(s.bytes, s.n), formats[format].name);
    }
    assert_null(gx_unpack_recognize("BZhang lives", 12));
    assert_null(gx_unpack_recognize("plain text", 10));
    assert_null(gx_unpack_recognize("", 0));
}

static void random_texts_come_back_whatever_the_blocks(void **state)
{
    (void)state;
    static char text[MOST / 2];
    uint64_t seed = 1952;
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t run = 0; run < 200; ++run) {
        size_t n = 0, end, n_got;
        gx_error err = {0};
        format = run % N_FORMATS;
        begin(NULL);
        for (uint64_t members = 1 + gx_random_next(&seed) % 4; members > 0; --members) {
            const size_t from = n;
            end = n + gx_random_next(&seed) % (run % 10 ? 300 : 20000);
            for (const uint32_t letters = 1 + gx_random_next(&seed) % 255; n < end; ++n)
                text[n] = (char)(gx_random_next(&seed) % letters);
            add_member(&s, text + from, n - from, (uint32_t)(gx_random_next(&seed) % 10));
        }
        const size_t each = 1 + gx_random_next(&seed) % 3000, room = 1 + gx_random_next(&seed) % 5000;
        if (read_all(&s, each, room, got, &n_got, &err) != GX_OK)
            fail_msg("run %u: %s", run, err.text);
        assert_int_equal(n_got, n);
        assert_memory_equal(got, text, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_end_to_end_are_one_text),
        cmocka_unit_test(zeros_behind_the_last_member_are_padding),
        cmocka_unit_test(what_is_no_member_is_refused),
        cmocka_unit_test(a_stream_cut_anywhere_is_an_error),
        cmocka_unit_test(a_changed_bit_never_gives_another_text),
        cmocka_unit_test(the_feeds_failure_is_passed_on),
        cmocka_unit_test(a_stream_is_recognized_by_its_first_bytes),
        cmocka_unit_test(random_texts_come_back_whatever_the_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
