/* The files of a list of paths, in order. */
#include "index/corpus/walk.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/random.h"
#include "tests/support/test.h"

static char root[] = "/tmp/gpuidx-test-walk-XXXXXX";

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) && chdir(root) == 0 ? 0 : -1; /* paths below are relative to it */
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return chdir("/") || nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < n; ++i)
        fputc('x', f);
    assert_int_equal(fclose(f), 0);
}

/* "path|name|input|in_directory" of every file, one a line. Lives until the next call. */
static const char *walk(const char *const *paths, size_t n)
{
    static char seen[1 << 16];
    gx_error err = {0};
    gx_walk *w;
    gx_walk_file f;
    size_t at = 0;
    seen[0] = 0;
    assert_int_equal(gx_walk_open(&w, paths, n, &err), GX_OK);
    for (;;) {
        if (gx_walk_next(w, &f, &err) != GX_OK)
            fail_msg("%s", err.text);
        if (!f.path)
            break;
        at += (size_t)snprintf(seen + at, sizeof seen - at, "%s|%s|%zu|%d\n", f.path, f.name, f.input, f.in_directory);
    }
    assert_int_equal(gx_walk_next(w, &f, &err), GX_OK); /* and stays at the end */
    assert_null(f.path);
    gx_walk_close(w);
    return seen;
}

#define WALK(...) walk((const char *const[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

static void paths_keep_their_order_and_names_are_in_byte_order(void **state)
{
    (void)state;
    assert_int_equal(mkdir("d", 0777) | mkdir("d/b", 0777) | mkdir("d/empty", 0777), 0);
    put("d/c", 1);
    put("d/b/z", 2);
    put("d/b/Z", 3);
    put("d/a.txt", 4);
    put("single", 5);
    assert_string_equal(WALK("single", "d", "single"), "single|single|0|0\n"
                                                       "d/a.txt|a.txt|1|1\nd/b/Z|b/Z|1|1\nd/b/z|b/z|1|1\nd/c|c|1|1\n"
                                                       "single|single|2|0\n");
    assert_string_equal(WALK("d//"), "d//a.txt|a.txt|0|1\nd//b/Z|b/Z|0|1\nd//b/z|b/z|0|1\nd//c|c|0|1\n");
    assert_string_equal(WALK("d/empty"), "");
    assert_string_equal(WALK("-", "d/b"), "-|-|0|0\nd/b/Z|Z|1|1\nd/b/z|z|1|1\n");
}

static void hidden_names_and_what_is_no_file_are_left_out(void **state)
{
    (void)state;
    assert_int_equal(mkdir("h", 0777) | mkdir("h/.git", 0777), 0);
    put("h/.hidden", 1);
    put("h/.git/config", 1);
    put("h/seen", 1);
    assert_int_equal(mkfifo("h/pipe", 0600), 0);
    assert_int_equal(symlink("nowhere", "h/dangling"), 0);
    assert_string_equal(WALK("h"), "h/seen|seen|0|1\n");
    assert_string_equal(WALK("h/.hidden"), "h/.hidden|h/.hidden|0|0\n"); /* given by name, it counts */
    assert_string_equal(WALK("h/.git"), "h/.git/config|config|0|1\n");
}

static void links_are_followed_but_never_in_a_circle(void **state)
{
    (void)state;
    assert_int_equal(mkdir("l", 0777) | mkdir("l/sub", 0777) | mkdir("other", 0777), 0);
    put("l/sub/f", 1);
    put("other/g", 1);
    assert_int_equal(symlink("..", "l/sub/up"), 0);
    assert_int_equal(symlink(".", "l/self"), 0);
    assert_int_equal(symlink("../other", "l/there"), 0);
    assert_int_equal(symlink("sub/f", "l/to_file"), 0);
    assert_string_equal(WALK("l"), "l/sub/f|sub/f|0|1\nl/there/g|there/g|0|1\nl/to_file|to_file|0|1\n");
}

static void a_path_that_is_not_there_is_named(void **state)
{
    (void)state;
    const char *const paths[] = {"single", "missing"};
    gx_error err = {0};
    gx_walk *w;
    assert_int_equal(gx_walk_open(&w, paths, 2, &err), GX_ENOTFOUND);
    assert_null(w);
    assert_non_null(strstr(err.text, "missing"));
    gx_walk_close(NULL);
}

static void directories_of_any_depth_end_in_an_error_not_a_crash(void **state)
{
    (void)state;
    char path[1024] = "deep";
    for (uint32_t i = 0; i < 140; ++i) {
        assert_int_equal(mkdir(path, 0777), 0);
        strcat(path, "/d");
    }
    const char *const paths[] = {"deep"};
    gx_error err = {0};
    gx_walk *w;
    gx_walk_file f;
    assert_int_equal(gx_walk_open(&w, paths, 1, &err), GX_OK);
    assert_int_equal(gx_walk_next(w, &f, &err), GX_EIO);
    assert_non_null(strstr(err.text, "more than 128 directories deep"));
    gx_walk_close(w); /* in the middle of a walk */
}

static void the_total_is_the_sum_of_all_files(void **state)
{
    (void)state;
    uint64_t bytes = 1;
    gx_error err = {0};
    assert_int_equal(mkdir("t", 0777) | mkdir("t/u", 0777), 0);
    put("t/a", 1000);
    put("t/u/b", 234);
    put("t/.hidden", 77);
    assert_int_equal(gx_walk_total((const char *const[]){"t", "t/a"}, 2, &bytes, &err), GX_OK);
    assert_int_equal(bytes, 2234);
    assert_int_equal(gx_walk_total((const char *const[]){"t", "-"}, 2, &bytes, &err), GX_OK);
    assert_int_equal(bytes, 0); /* a pipe's size is not known */
    assert_int_equal(gx_walk_total((const char *const[]){"t", "gone"}, 2, &bytes, &err), GX_ENOTFOUND);
}

/* ---- against an oracle ---- */

static int by_components(const void *a, const void *b)
{
    /* "a/x" comes before "a.b": a directory's name is compared by itself,
     * so '/' is below all bytes */
    const unsigned char *x = *(const unsigned char *const *)a, *y = *(const unsigned char *const *)b;
    for (;; ++x, ++y) {
        const int c = *x == '/' ? 1 : *x ? *x + 1 : 0, d = *y == '/' ? 1 : *y ? *y + 1 : 0;
        if (c != d || c == 0)
            return c - d;
    }
}

static void random_trees_are_listed_whole_and_in_order(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "B", "a.b", "a-", "\xc3\xa9", "0", "zz"};
    enum { N_NAMES = sizeof names / sizeof *names };
    uint64_t seed = 77;
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t run = 0; run < 30; ++run) {
        char top[16], files[64][64], *sorted[64], want[1 << 14] = "";
        uint32_t n = 0;
        snprintf(top, sizeof top, "r%u", run);
        assert_int_equal(mkdir(top, 0777), 0);
        for (uint32_t i = 0; i < 40; ++i) {
            char path[64];
            snprintf(path, sizeof path, "%s", top);
            for (uint64_t depth = gx_random_next(&seed) % 3; depth > 0; --depth) {
                strcat(strcat(path, "/"), names[gx_random_next(&seed) % N_NAMES]);
                strcat(path, "D"); /* a directory's name is never a file's */
                mkdir(path, 0777);
            }
            strcat(strcat(path, "/"), names[gx_random_next(&seed) % N_NAMES]);
            if (access(path, F_OK) == 0)
                continue;
            put(path, 0);
            strcpy(files[n], path);
            sorted[n] = files[n];
            ++n;
        }
        qsort(sorted, n, sizeof *sorted, by_components);
        for (uint32_t i = 0; i < n; ++i)
            sprintf(want + strlen(want), "%s|%s|0|1\n", sorted[i], sorted[i] + strlen(top) + 1);
        assert_string_equal(WALK(top), want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_keep_their_order_and_names_are_in_byte_order),
        cmocka_unit_test(hidden_names_and_what_is_no_file_are_left_out),
        cmocka_unit_test(links_are_followed_but_never_in_a_circle),
        cmocka_unit_test(a_path_that_is_not_there_is_named),
        cmocka_unit_test(directories_of_any_depth_end_in_an_error_not_a_crash),
        cmocka_unit_test(the_total_is_the_sum_of_all_files),
        cmocka_unit_test(random_trees_are_listed_whole_and_in_order),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
