/* Files without names: they take none in their folder, get one when they are complete, and what a
 * dead process left behind is removed. The oracle is the folder's listing. */
#include "engine/files/temporary_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"

static char folder[] = "/tmp/gx-temporary-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static uint32_t count_names(void)
{
    DIR *d = opendir(folder);
    uint32_t n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static char *in_folder(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void a_file_without_a_name_holds_what_is_written(void **state)
{
    (void)state;
    static uint8_t data[100000], back[sizeof data];
    const int fd = gx_temporary_file_open(folder);
    assert_true(fd >= 0);
    assert_int_equal(count_names(), 0);
    for (size_t i = 0; i < sizeof data; ++i)
        data[i] = (uint8_t)(i * i >> 3);
    assert_int_equal(gx_write_all(fd, data, sizeof data), 0);
    assert_int_equal(gx_pread_all(fd, back, sizeof back - 7, 7), 0);
    assert_memory_equal(back, data + 7, sizeof data - 7);
    assert_int_not_equal(gx_pread_all(fd, back, 8, sizeof data - 7), 0); /* past the end */
    assert_int_equal(gx_fsync(fd), 0);
    close(fd);
    assert_int_equal(gx_temporary_file_open(in_folder("none")), -1);
    assert_int_equal(errno, ENOENT);
}

static void a_complete_file_gets_its_name_but_never_another_files(void **state)
{
    (void)state;
    struct stat st;
    char *name = NULL;
    const int fd = gx_temporary_file_open_nameable(AT_FDCWD, folder, &name);
    assert_true(fd >= 0);
    assert_int_equal(gx_write_all(fd, "abc", 3), 0);
    if (name) { /* this file system has no files without a name */
        assert_int_equal(count_names(), 1);
    } else {
        assert_int_equal(count_names(), 0);
        assert_int_equal(gx_temporary_file_link_as(fd, AT_FDCWD, in_folder("x")), 0);
        assert_int_equal(stat(in_folder("x"), &st), 0);
        assert_int_equal(st.st_size, 3);
        assert_int_equal(gx_temporary_file_link_as(fd, AT_FDCWD, in_folder("x")), EEXIST);
        assert_int_equal(gx_temporary_file_link(fd, AT_FDCWD, folder, &name), 0);
        assert_int_equal(count_names(), 2);
        unlink(in_folder("x"));
    }
    gx_temporary_name_drop(AT_FDCWD, name);
    assert_int_equal(count_names(), 0);
    gx_temporary_name_drop(AT_FDCWD, NULL);
    close(fd);
}

static void touch(const char *name)
{
    const int fd = open(in_folder(name), O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void a_sweep_removes_what_no_process_holds_and_nothing_else(void **state)
{
    (void)state;
    static const char *const kept[] = {"index.gx", ".gpuidx-0123456789abcdef", "gpuidx-0123456789abcdef.tmp"};
    touch(".gpuidx-0123456789abcdef.tmp");
    touch(".gpuidx-fedcba9876543210.tmp");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; ++i)
        touch(kept[i]);
    const int held = open(in_folder(".gpuidx-fedcba9876543210.tmp"), O_RDWR);
    assert_int_equal(flock(held, LOCK_EX | LOCK_NB), 0);
    gx_temporary_files_sweep(AT_FDCWD, folder);
    assert_int_equal(access(in_folder(".gpuidx-0123456789abcdef.tmp"), F_OK), -1);
    assert_int_equal(access(in_folder(".gpuidx-fedcba9876543210.tmp"), F_OK), 0); /* its owner lives */
    close(held);
    gx_temporary_files_sweep(AT_FDCWD, folder);
    assert_int_equal(count_names(), sizeof kept / sizeof *kept);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; ++i)
        assert_int_equal(unlink(in_folder(kept[i])), 0);
}

static void finds_the_directory_of_a_path(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"x", "."}, {"a/x", "a"}, {"/x", "/"}, {"/a/b/x", "/a/b"}, {"./x", "."}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char *dir = gx_directory_of(cases[i][0]);
        assert_string_equal(dir, cases[i][1]);
        free(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_without_a_name_holds_what_is_written),
        cmocka_unit_test(a_complete_file_gets_its_name_but_never_another_files),
        cmocka_unit_test(a_sweep_removes_what_no_process_holds_and_nothing_else),
        cmocka_unit_test(finds_the_directory_of_a_path),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
