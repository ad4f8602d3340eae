/* Files that get their name when they are whole, and temporary files. */
#include "engine/files/atomic_file.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/files/temporary_file.h"
#include "tests/support/test.h"

static char dir[] = "/tmp/gpuidx-atomic-XXXXXX";
static char path[64];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir + sizeof dir - 7, "XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/file", dir);
    return 0;
}

/* Fails when the test has left a file other than path. */
static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static uint32_t count_files(void)
{
    uint32_t n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.' || (e->d_name[1] && e->d_name[1] != '.');
    closedir(d);
    return n;
}

static void put(const char *text, bool force, gx_status want)
{
    gx_error err;
    gx_atomic_file f;
    gx_status st = gx_atomic_file_open(&f, path, force ? GX_ATOMIC_FILE_FORCE : 0, &err);
    assert_int_equal(st, want);
    if (st == GX_OK) {
        assert_int_equal(gx_atomic_file_stream(&f, &err), GX_OK);
        assert_true(fputs(text, f.file) >= 0);
        assert_int_equal(gx_atomic_file_sync(&f, &err), GX_OK);
        assert_int_equal(gx_atomic_file_commit(&f, &err), GX_OK);
    }
    gx_atomic_file_close(&f);
}

static void expect(const char *text)
{
    char got[64] = "";
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(got, sizeof got, f));
    fclose(f);
    assert_string_equal(got, text);
}

static void a_file_has_its_name_once_it_is_whole(void **state)
{
    (void)state;
    gx_error err;
    gx_atomic_file f;
    assert_int_equal(gx_atomic_file_open(&f, path, 0, &err), GX_OK);
    assert_int_equal(gx_atomic_file_stream(&f, &err), GX_OK);
    assert_true(fputs("whole", f.file) >= 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(gx_atomic_file_sync(&f, &err), GX_OK);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(gx_atomic_file_commit(&f, &err), GX_OK);
    expect("whole");
    gx_atomic_file_close(&f);
    expect("whole");
    assert_int_equal(count_files(), 1);
}

static void what_is_given_up_leaves_nothing(void **state)
{
    (void)state;
    gx_error err;
    gx_atomic_file f, none = GX_ATOMIC_FILE_INIT;
    assert_int_equal(gx_atomic_file_open(&f, path, 0, &err), GX_OK);
    assert_int_equal(gx_atomic_file_stream(&f, &err), GX_OK);
    assert_true(fputs("half", f.file) >= 0);
    gx_atomic_file_close(&f);
    gx_atomic_file_close(&none);
    assert_int_equal(count_files(), 0);
}

static void an_old_file_is_replaced_by_force_alone(void **state)
{
    (void)state;
    put("old", false, GX_OK);
    put("new", false, GX_EEXISTS);
    expect("old");
    put("new", true, GX_OK);
    expect("new");
}

static void a_directory_that_is_missing_is_not_found(void **state)
{
    (void)state;
    gx_error err;
    gx_atomic_file f;
    char missing[80];
    snprintf(missing, sizeof missing, "%s/missing/file", dir);
    assert_int_equal(gx_atomic_file_open(&f, missing, 0, &err), GX_ENOTFOUND);
    assert_non_null(strstr(err.text, missing));
    gx_atomic_file_close(&f);
}

static void temporary_files_are_read_back_and_leave_nothing(void **state)
{
    (void)state;
    char got[6] = "";
    const int fd = gx_temporary_file_open(dir);
    assert_true(fd >= 0);
    assert_int_equal(count_files(), 0);
    assert_int_equal(gx_write_all(fd, "0123456789", 10), 0);
    assert_int_equal(gx_pread_all(fd, got, 5, 5), 0);
    assert_string_equal(got, "56789");
    assert_int_not_equal(gx_pread_all(fd, got, 5, 6), 0); /* it ends before that */
    close(fd);
    assert_int_equal(gx_temporary_file_open("/nonexistent"), -1);
}

static void directories_are_those_that_paths_lie_in(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"file", "."}, {"/file", "/"}, {"a/file", "a"}, {"/a/b/file", "/a/b"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char *got = gx_directory_of(cases[i][0]);
        assert_non_null(got);
        assert_string_equal(got, cases[i][1]);
        free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_has_its_name_once_it_is_whole, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(what_is_given_up_leaves_nothing, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(an_old_file_is_replaced_by_force_alone, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_directory_that_is_missing_is_not_found, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(temporary_files_are_read_back_and_leave_nothing, make_dir, remove_dir),
        cmocka_unit_test(directories_are_those_that_paths_lie_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
