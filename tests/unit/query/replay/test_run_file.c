/* TREC runs: scores, lines, and the file that appears when it is whole. */
#include "query/replay/run_file.h"

#include <math.h>
#include <sys/stat.h>

#include "codecs/codec.h"
#include "engine/random.h"
#include "query/plan/plan.h"
#include "tests/support/gen.h"
#include "tests/support/scratch.h"

static const char *score_text(uint32_t sum, int exponent)
{
    static char text[32];
    memset(text, 'x', sizeof text);
    const size_t n = gx_run_score(text, sum, exponent);
    assert_in_range(n, 1, 24);
    text[n] = 0;
    return text;
}

static void a_score_is_written_short(void **state)
{
    (void)state;
    assert_string_equal(score_text(0, 0), "0");
    assert_string_equal(score_text(0, 30), "0");
    assert_string_equal(score_text(1, 0), "1.0");
    assert_string_equal(score_text(5, 1), "2.5");
    assert_string_equal(score_text(3, -2), "12.0");
    assert_string_equal(score_text(1, 100), "7.8886090522e-31");
}

/* Eleven digits part all sums of 31 bits. */
static void scores_that_differ_are_written_differently(void **state)
{
    (void)state;
    uint64_t seed = 754;
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t i = 0; i < 1000000; ++i) {
        const uint64_t r = gx_random_next(&seed);
        const uint32_t sum = (uint32_t)((r >> 33) >> (r & 31)) & ~1u; /* and the next one, below 2^31 */
        const int exponent = (int)(gx_random_next(&seed) % 180) - 60;
        const double exact = ldexp(sum, -exponent), back = strtod(score_text(sum, exponent), NULL);
        const double next = strtod(score_text(sum + 1, exponent), NULL);
        if (!(fabs(back - exact) <= 6e-10 * exact) || !(next > back))
            fail_msg("%u * 2^-%d is written as %s", sum, exponent, score_text(sum, exponent));
    }
}

static gx_index *open_index(void)
{
    gx_index *ix;
    gx_error err = {0};
    gen_collection *c = gen_open(3, GEN_UNIFORM, 50, 5);
    const gx_status st = gen_write(c, in_dir("x.gx"), gx_codecs[0], gx_codecs[0], &err);
    gen_close(c);
    if (st != GX_OK || gx_index_open(&ix, in_dir("x.gx"), NULL, &err) != GX_OK)
        fail_msg("%s", err.text);
    return ix;
}

static void append(gx_run_text *text, const gx_index *ix, const char *qid, const uint64_t *keys, uint32_t n,
                   int exponent, const char *tag)
{
    gx_error err = {0};
    assert_int_equal(gx_run_append(text, ix, &(gx_run_answer){qid, strlen(qid), keys, n, exponent}, tag, &err), GX_OK);
}

static void lines_have_six_fields(void **state)
{
    (void)state;
    gx_index *ix = open_index();
    gx_run_text text = {0};
    const uint64_t keys[] = {gx_key(20, 7), gx_key(8, 0), gx_key(1, 49)};
    append(&text, ix, "q1", keys, 3, 2, "bm25");
    append(&text, ix, "empty", NULL, 0, 2, "bm25");
    append(&text, ix, "a b\t", keys, 1, 0, "my tag"); /* no field may hold a blank */
    static const char want[] = "q1 Q0 d7 1 5.0 bm25\nq1 Q0 d0 2 2.0 bm25\nq1 Q0 d49 3 0.25 bm25\n"
                               "a_b_ Q0 d7 1 20.0 my_tag\n";
    assert_int_equal(text.n, strlen(want));
    assert_memory_equal(text.bytes, want, text.n);
    free(text.bytes);
    gx_index_close(ix);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static uint32_t count_files(void)
{
    uint32_t n = 0;
    DIR *d = opendir(scratch_dir);
    for (const struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static void the_file_appears_when_it_is_committed(void **state)
{
    (void)state;
    gx_run *run;
    gx_error err = {0};
    char bytes[] = "a line\n";
    const gx_run_text text = {bytes, strlen(bytes), 0};
    const uint32_t before = count_files();
    assert_int_equal(gx_run_open(&run, in_dir("a.run"), true, &err), GX_OK);
    assert_int_equal(gx_run_write(run, &text, &err), GX_OK);
    assert_false(exists(in_dir("a.run")));
    gx_run_close(run); /* not committed: nothing stays */
    assert_int_equal(count_files(), before);

    assert_int_equal(gx_run_open(&run, in_dir("a.run"), true, &err), GX_OK);
    assert_int_equal(gx_run_write(run, &text, &err), GX_OK);
    assert_int_equal(gx_run_commit(run, &err), GX_OK);
    gx_run_close(run);
    assert_true(exists(in_dir("a.run")));
    assert_int_equal(count_files(), before + 1);

    assert_int_equal(gx_run_open(&run, in_dir("a.run"), true, &err), GX_OK); /* a failed second run keeps the first */
    gx_run_close(run);
    struct stat st;
    assert_int_equal(stat(in_dir("a.run"), &st), 0);
    assert_int_equal(st.st_size, strlen(bytes));
    gx_run_close(NULL);
}

static void texts_of_any_size_are_written_in_order(void **state)
{
    (void)state;
    enum { MOST = 600000 };
    static char bytes[MOST], want[8 * MOST], got[8 * MOST + 1];
    static const size_t sizes[] = {0, 1, 200000, 70000, 262144, 262145, MOST, 5, 0, 262144, 1};
    gx_run *run;
    gx_error err = {0};
    size_t n = 0;
    uint64_t seed = 12;
    assert_int_equal(gx_run_open(&run, in_dir("b.run"), true, &err), GX_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        for (size_t j = 0; j < sizes[i]; ++j)
            bytes[j] = (char)(gx_random_next(&seed) >> 40);
        const gx_run_text text = {bytes, sizes[i], MOST};
        assert_int_equal(gx_run_write(run, &text, &err), GX_OK);
        memcpy(want + n, bytes, sizes[i]);
        n += sizes[i];
    }
    assert_int_equal(gx_run_commit(run, &err), GX_OK);
    gx_run_close(run);
    FILE *f = fopen(in_dir("b.run"), "r");
    assert_non_null(f);
    assert_int_equal(fread(got, 1, sizeof got, f), n);
    fclose(f);
    assert_memory_equal(got, want, n);
}

static void what_is_no_regular_file_is_written_directly(void **state)
{
    (void)state;
    gx_run *run;
    gx_error err = {0};
    char bytes[] = "line\n";
    const gx_run_text text = {bytes, 5, 0};
    const uint32_t before = count_files();
    assert_int_equal(gx_run_open(&run, "/dev/null", true, &err), GX_OK);
    assert_int_equal(gx_run_write(run, &text, &err), GX_OK);
    assert_int_equal(gx_run_commit(run, &err), GX_OK);
    gx_run_close(run);
    assert_int_equal(count_files(), before);
}

static void a_failure_names_the_file(void **state)
{
    (void)state;
    gx_run *run;
    gx_error err = {0};
    assert_int_equal(gx_run_open(&run, in_dir("no/such/dir.run"), true, &err), GX_ENOTFOUND);
    assert_null(run);
    assert_non_null(strstr(err.text, "no/such/dir.run"));
    if (!exists("/dev/full"))
        return;
    char bytes[] = "line\n";
    const gx_run_text text = {bytes, 5, 0};
    assert_int_equal(gx_run_open(&run, "/dev/full", true, &err), GX_OK);
    assert_int_equal(gx_run_write(run, &text, &err), GX_OK); /* still in the buffer */
    assert_int_equal(gx_run_commit(run, &err), GX_EIO);
    assert_string_equal(err.text, "cannot write /dev/full: No space left on device");
    gx_run_close(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_score_is_written_short),
        cmocka_unit_test(scores_that_differ_are_written_differently),
        cmocka_unit_test(lines_have_six_fields),
        cmocka_unit_test(the_file_appears_when_it_is_committed),
        cmocka_unit_test(texts_of_any_size_are_written_in_order),
        cmocka_unit_test(what_is_no_regular_file_is_written_directly),
        cmocka_unit_test(a_failure_names_the_file),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
