/* test_writers.c: what stands round a writer of a collection: its folder, its lock, files of others, damage, histories
 * that differ, and what a collection keeps of what it was built with. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/files/temporary_file.h"
#include "index/commit/files.h"
#include "index/read/collection.h"
#include "tests/support/scratch.h"

/* The path of a file in the folder of the tests, for as long as they run. */
static const char *at(const char *name)
{
    static char *paths[40];
    char *path;
    assert_true(asprintf(&path, "%s/%s", scratch_dir, name) > 0);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; ++i) {
        if (!paths[i])
            return paths[i] = path;
        if (strcmp(paths[i], path) == 0) {
            free(path);
            return paths[i];
        }
    }
    fail();
    return NULL;
}

static void must(gx_status st, const gx_error *err)
{
    if (st != GX_OK)
        fail_msg("%s", err->text);
}

/* ---- collections of documents "FIRST" ... , whose texts are "all WORD" ---- */

static void build_some(const char *path, const char *prefix, uint32_t n, bool titles, bool text)
{
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_builder *b;
    gx_error err = {0};
    o.path = path;
    o.force = true;
    o.store_titles = titles;
    o.store_text = text;
    must(gx_builder_open(&b, &o, &err), &err);
    for (uint32_t i = 0; i < n; ++i) {
        char id[32], words[64];
        snprintf(id, sizeof id, "%s%u", prefix, i);
        snprintf(words, sizeof words, "all %s %s", prefix, i % 2 ? "odd" : "even");
        const gx_document doc = {
            .size = sizeof doc, .id = id, .id_len = strlen(id), .text = words, .text_len = strlen(words)};
        must(gx_builder_add(b, &doc, &err), &err);
    }
    must(gx_builder_finish(b, &err), &err);
    gx_builder_abort(b);
}

/* A collection of one part. */
static void make_collection(const char *path, const char *prefix, uint32_t n)
{
    gx_error err = {0};
    const char *file = at("made.gx");
    build_some(file, prefix, n, true, false);
    must(gx_collect(path, &file, 1, &err), &err);
    unlink(file);
}

static gx_collection *open_writer(const char *path)
{
    gx_collection *c;
    gx_error err = {0};
    must(gx_collection_open(&c, path, NULL, &err), &err);
    return c;
}

static gx_status try_add(gx_collection *c, const char *id, const char *title, gx_error *err)
{
    const gx_document doc = {.size = sizeof doc,
                             .id = id,
                             .id_len = strlen(id),
                             .title = title,
                             .title_len = title ? strlen(title) : 0,
                             .text = "all new",
                             .text_len = 7};
    return gx_collection_add(c, &doc, err);
}

static void add(gx_collection *c, const char *id, const char *title)
{
    gx_error err = {0};
    must(try_add(c, id, title, &err), &err);
}

static void commit(gx_collection *c)
{
    gx_error err = {0};
    must(gx_collection_commit(c, &err), &err);
}

static void delete_one(gx_collection *c, const char *id)
{
    bool found;
    gx_error err = {0};
    must(gx_collection_delete(c, id, strlen(id), &found, &err), &err);
    assert_true(found);
}

static gx_index *open_index(const char *path)
{
    gx_index *ix;
    gx_error err = {0};
    must(gx_index_open(&ix, path, NULL, &err), &err);
    return ix;
}

static uint64_t count_documents(const char *path)
{
    gx_index *ix = open_index(path);
    const uint64_t n = gx_index_n_docs(ix);
    gx_index_close(ix);
    return n;
}

static void remove_tree(const char *path)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

/* What is in a folder: names, sizes, times, inodes. */
static uint64_t fingerprint(const char *path)
{
    char command[500];
    uint64_t sum = 5381;
    snprintf(command, sizeof command, "cd '%s' && stat -L -c '%%n %%s %%i %%Y %%a' . * | sort", path);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    for (int c; (c = fgetc(p)) != EOF;)
        sum = sum * 33 + (uint64_t)c;
    assert_int_equal(pclose(p), 0);
    return sum;
}

static uint32_t count_files(const char *path, const char *end)
{
    uint32_t n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += strlen(e->d_name) > strlen(end) && strcmp(e->d_name + strlen(e->d_name) - strlen(end), end) == 0;
    closedir(d);
    return n;
}

/* ---- the folder that was opened ---- */

typedef enum how {
    MOVED,        /* away, and nothing in its place */
    REPLACED,     /* another one in its place */
    RELINKED,     /* a symbolic link leads to another one */
    MANIFEST_NEW, /* another manifest in the same folder */
    MANIFEST_GONE,
    LOCK_GONE,
    LOCK_NEW,
    N_HOW
} how;

static void put_file(const char *from, const char *to)
{
    char command[2000];
    snprintf(command, sizeof command, "cp '%s' '%s.new' && mv '%s.new' '%s'", from, to, to, to);
    assert_int_equal(system(command), 0);
}

static void disturb(how h, const char *path, const char *real, const char *other)
{
    char a[400], b[400];
    snprintf(a, sizeof a, "%s/%s", path, h == LOCK_GONE || h == LOCK_NEW ? "LOCK" : "MANIFEST");
    snprintf(b, sizeof b, "%s/MANIFEST", other);
    if (h == MOVED || h == REPLACED)
        assert_int_equal(rename(real, at("old")), 0);
    if (h == REPLACED)
        assert_int_equal(rename(other, path), 0);
    if (h == RELINKED) {
        unlink(path);
        assert_int_equal(symlink(other, path), 0);
    }
    if (h == MANIFEST_NEW)
        put_file(b, a);
    if (h == MANIFEST_GONE || h == LOCK_GONE || h == LOCK_NEW)
        assert_int_equal(unlink(a), 0);
    if (h == LOCK_NEW)
        put_file(b, a);
}

typedef gx_status end_fn(gx_collection *c, gx_error *err);

static gx_status end_by_commit(gx_collection *c, gx_error *err)
{
    return gx_collection_commit(c, err);
}

static gx_status end_by_merge_of_tiers(gx_collection *c, gx_error *err)
{
    return gx_collection_merge(c, GX_MERGE_TIERS, err);
}

static gx_status end_by_merge_of_all(gx_collection *c, gx_error *err)
{
    return gx_collection_merge(c, GX_MERGE_ALL, err);
}

static void check_disturbed(how h, end_fn *end, bool pending)
{
    char path[300], real[300], other[300], now[300];
    gx_error err = {0};
    snprintf(real, sizeof real, "%s", at(h == RELINKED ? "real" : "c"));
    snprintf(path, sizeof path, "%s", at("c"));
    snprintf(other, sizeof other, "%s", at("other"));
    make_collection(real, "a", 40);
    if (h == RELINKED)
        assert_int_equal(symlink(real, path), 0);
    make_collection(other, "b", 70);
    gx_collection *c = open_writer(other); /* its numbers are greater, so that no name is taken */
    for (int i = 0; i < 3; ++i) {
        char id[8];
        snprintf(id, sizeof id, "x%d", i);
        add(c, id, NULL);
        commit(c);
    }
    gx_collection_close(c);
    c = open_writer(path);
    add(c, "first", NULL);
    commit(c);
    if (pending)
        add(c, "second", NULL);
    disturb(h, path, real, other);
    snprintf(now, sizeof now, "%s", h == REPLACED ? path : other);
    const uint64_t before = fingerprint(now);
    assert_int_equal(end(c, &err), GX_EIO);
    assert_non_null(strstr(err.text, "nothing is written"));
    assert_int_equal(try_add(c, "third", NULL, &err), GX_EUSAGE); /* it must be opened again */
    gx_collection_close(c);
    assert_true(fingerprint(now) == before);
    assert_int_equal(count_documents(now), 73);
    assert_int_equal(gx_index_verify(now, GX_CHECK_FULL, &err), GX_OK);
    if (h == MOVED || h == REPLACED || h == RELINKED) { /* the old folder has its last commit */
        const char *old = h == RELINKED ? real : at("old");
        assert_int_equal(count_documents(old), 41);
        c = open_writer(old);
        gx_collection_close(c);
        assert_int_equal(count_files(old, ".gx"), 2);
    }
    remove_tree(at("c"));
    remove_tree(at("old"));
    remove_tree(at("other"));
    remove_tree(at("real"));
}

static void a_writer_whose_folder_is_another_one_writes_nothing(void **state)
{
    (void)state;
    for (how h = MOVED; h < N_HOW; ++h) {
        check_disturbed(h, end_by_commit, true);
        check_disturbed(h, end_by_merge_of_tiers, true);
        check_disturbed(h, end_by_merge_of_all, true);
        check_disturbed(h, end_by_merge_of_all, false);
    }
}

static void a_writer_goes_on_where_a_parent_was_moved_or_the_process_changed_its_folder(void **state)
{
    (void)state;
    char cwd[300];
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(mkdir(at("parent"), 0777), 0);
    make_collection(at("parent/c"), "a", 5);
    assert_int_equal(chdir(at("parent")), 0);
    gx_collection *c = open_writer("c");
    assert_int_equal(rename(at("parent"), at("moved")), 0);
    add(c, "one", NULL);
    commit(c);
    gx_collection_close(c);
    assert_int_equal(count_documents(at("moved/c")), 6);
    assert_int_equal(chdir(cwd), 0);
    remove_tree(at("moved"));
}

/* ---- the lock ---- */

static void a_forked_child_does_not_keep_the_lock(void **state)
{
    (void)state;
    int hold[2];
    gx_error err = {0};
    make_collection(at("c"), "a", 5);
    gx_collection *c = open_writer(at("c")), *again;
    assert_int_equal(pipe(hold), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        close(hold[1]);
        gx_collection_close(c); /* it is the parent's: its lock and its files stay */
        (void)!read(hold[0], &byte, 1);
        _exit(0);
    }
    close(hold[0]);
    usleep(50000);
    assert_int_equal(gx_collection_open(&again, at("c"), NULL, &err), GX_EIO);
    add(c, "one", NULL);
    commit(c);
    gx_collection_close(c);
    c = open_writer(at("c")); /* though the child lives */
    gx_collection_close(c);
    close(hold[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    remove_tree(at("c"));
}

static bool cancel_second(void *user)
{
    return ++*(int *)user > 2;
}

static void a_writer_waits_for_the_lock(void **state)
{
    (void)state;
    gx_error err = {0};
    int asked = 0;
    gx_collection_options o = GX_COLLECTION_OPTIONS;
    make_collection(at("c"), "a", 5);
    gx_collection *c = open_writer(at("c")), *other;
    o.wait = 0.01;
    assert_int_equal(gx_collection_open(&other, at("c"), &o, &err), GX_EIO);
    o.wait = -1;
    assert_int_equal(gx_collection_open(&other, at("c"), &o, &err), GX_EUSAGE);
    o.wait = 1e9;
    o.cancel = cancel_second;
    o.user = &asked;
    assert_int_equal(gx_collection_open(&other, at("c"), &o, &err), GX_ECANCELLED);
    gx_collection_close(c);
    o.cancel = NULL;
    int locked[2];
    char byte = 0;
    assert_int_equal(pipe(locked), 0);
    const pid_t child = fork();
    if (child == 0) { /* has it for a while */
        c = open_writer(at("c"));
        (void)!write(locked[1], &byte, 1);
        add(c, "childs", NULL);
        usleep(200000);
        commit(c);
        gx_collection_close(c);
        _exit(0);
    }
    assert_int_equal(read(locked[0], &byte, 1), 1);
    close(locked[0]);
    close(locked[1]);
    must(gx_collection_open(&c, at("c"), &o, &err), &err);
    assert_int_equal(waitpid(child, NULL, 0), child);
    gx_collection_close(c);
    assert_int_equal(count_documents(at("c")), 6);
    remove_tree(at("c"));
}

/* ---- titles ---- */

static void expect_title(const char *path, const char *id, const char *title)
{
    gx_index *ix = open_index(path);
    size_t len = 0;
    const uint64_t docid = gx_index_find_doc(ix, id, strlen(id));
    const char *got = gx_index_doc_title(ix, docid, &len);
    assert_int_equal(len, strlen(title));
    if (len)
        assert_memory_equal(got, title, len);
    gx_index_close(ix);
}

static void delete_all(gx_collection *c)
{
    const gx_index *ix = gx_collection_index(c);
    bool found;
    gx_error err = {0};
    for (uint64_t d = 0; d < gx_index_n_docs(ix); ++d) {
        size_t len;
        const char *id = gx_index_doc_id(ix, d, &len);
        must(gx_collection_delete(c, id, len, &found, &err), &err);
    }
    commit(c);
}

static void titles_are_kept_as_the_collection_was_built(void **state)
{
    (void)state;
    gx_error err = {0};
    for (int i = 0; i < 32; ++i) {
        const bool titles = i & 1, text = i & 2, emptied = i & 4, merged = i & 8, untitled_first = i & 16;
        const char *file = at("a.gx"), *want = titles ? "A Title" : "";
        build_some(file, "a", 3, titles, text);
        must(gx_collect(at("c"), &file, 1, &err), &err);
        gx_collection *c = open_writer(at("c"));
        if (emptied)
            delete_all(c);
        if (untitled_first) {
            add(c, "u", NULL);
            commit(c);
        }
        if (merged)
            must(gx_collection_merge(c, GX_MERGE_ALL, &err), &err);
        add(c, "t", "A Title");
        commit(c);
        expect_title(at("c"), "t", want);
        delete_all(c); /* and begin again */
        add(c, "again", "A Title");
        must(gx_collection_merge(c, GX_MERGE_ALL, &err), &err);
        expect_title(at("c"), "again", want);
        gx_collection_close(c);
        remove_tree(at("c"));
        unlink(file);
    }
}

static void a_collection_of_files_with_and_without_titles_keeps_them(void **state)
{
    (void)state;
    gx_error err = {0};
    for (int order = 0; order < 2; ++order) {
        build_some(at("a.gx"), "a", 3, order == 0, false);
        build_some(at("b.gx"), "b", 3, order == 1, false);
        const char *files[] = {at("a.gx"), at("b.gx")};
        must(gx_collect(at("c"), files, 2, &err), &err);
        gx_collection *c = open_writer(at("c"));
        must(gx_collection_merge(c, GX_MERGE_ALL, &err), &err);
        delete_all(c);
        add(c, "t", "A Title");
        commit(c);
        gx_collection_close(c);
        expect_title(at("c"), "t", "A Title");
        remove_tree(at("c"));
        unlink(files[0]);
        unlink(files[1]);
    }
}

/* ---- merges that fail ---- */

static void a_merge_that_fails_leaves_the_commit_and_the_writer(void **state)
{
    (void)state;
    struct rlimit old, low;
    gx_error err = {0};
    gx_collection_counts counts = {.size = sizeof counts};
    make_collection(at("c"), "a", 3000);
    gx_collection *c = open_writer(at("c"));
    for (int part = 0; part < 2; ++part) {
        for (int i = 0; i < 3000; ++i) {
            char id[32];
            snprintf(id, sizeof id, "p%d-%d", part, i);
            add(c, id, "a title that takes some room");
        }
        commit(c);
    }
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    low = old;
    low.rlim_cur = 100000; /* for one document and a manifest, but not for all of them */
    add(c, "one", NULL);
    setrlimit(RLIMIT_FSIZE, &low);
    const gx_status st = gx_collection_merge(c, GX_MERGE_TIERS, &err), all = gx_collection_merge(c, GX_MERGE_ALL, &err);
    add(c, "two", NULL);
    commit(c);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_true(st == GX_OK || st == GX_EIO);
    assert_int_equal(all, GX_EIO);
    assert_int_equal(count_documents(at("c")), 9002);
    must(gx_collection_merge(c, GX_MERGE_ALL, &err), &err);
    must(gx_collection_get_counts(c, &counts), &err);
    assert_int_equal(counts.commits, 4);
    gx_collection_close(c);
    assert_int_equal(count_documents(at("c")), 9002);
    assert_int_equal(count_files(at("c"), ".gx"), 1);
    must(gx_index_verify(at("c"), GX_CHECK_FULL, &err), &err);
    remove_tree(at("c"));
}

/* ---- histories ---- */

static void expect_document(const gx_index *ix, const char *id, bool there)
{
    assert_int_equal(gx_index_find_doc(ix, id, strlen(id)) != UINT32_MAX, there);
}

static void a_reader_sees_that_a_backup_was_put_back_and_changed(void **state)
{
    (void)state;
    gx_error err = {0};
    const char *c_path = at("c");
    for (int what = 0; what < 4; ++what) {
        make_collection(at("c"), "a", 5);
        must(gx_collect(at("backup"), &c_path, 1, &err), &err);
        gx_collection *c = open_writer(at("c"));
        if (what < 2)
            add(c, "lost", NULL);
        else
            delete_one(c, "a1");
        commit(c);
        gx_collection_close(c);
        gx_index *reader = open_index(at("c")), *now;
        remove_tree(at("c"));
        assert_int_equal(rename(at("backup"), at("c")), 0);
        c = open_writer(at("c"));
        if (what % 2)
            add(c, "kept", NULL);
        else
            delete_one(c, "a2");
        commit(c);
        gx_collection_close(c);
        assert_int_equal(gx_index_commit(reader), 2);
        must(gx_index_reopen(&now, reader, NULL, &err), &err);
        assert_non_null(now);
        assert_int_equal(gx_index_commit(now), 2);
        expect_document(now, "lost", false);
        expect_document(now, "a1", true);
        expect_document(now, "kept", what % 2);
        expect_document(now, "a2", what % 2);
        gx_index_close(reader);
        gx_index_close(now);
        remove_tree(at("c"));
    }
}

static void the_last_commit_stays_open_where_the_folder_is_away(void **state)
{
    (void)state;
    gx_error err = {0};
    make_collection(at("c"), "a", 5);
    gx_index *ix = open_index(at("c")), *now;
    assert_int_equal(rename(at("c"), at("away")), 0);
    assert_int_equal(gx_index_reopen(&now, ix, NULL, &err), GX_ENOTFOUND);
    assert_null(strstr(err.text, "is a folder"));
    assert_null(now);
    assert_int_equal(rename(at("away"), at("c")), 0);
    must(gx_index_reopen(&now, ix, NULL, &err), &err);
    assert_null(now);
    gx_index_close(ix);
    remove_tree(at("c"));
}

/* ---- damage ---- */

static void write_manifest(const char *path, gx_manifest *m)
{
    gx_error err = {0};
    bool placed;
    gx_place place = {open(path, O_RDONLY | O_DIRECTORY), NULL, NULL};
    must(gx_manifest_write(m, &place, path, true, &placed, &err), &err);
    close(place.dir_fd);
}

static void expect_damage(const char *path, const char *words)
{
    gx_error err = {0};
    assert_int_equal(gx_index_verify(path, GX_CHECK_FULL, &err), GX_ECORRUPT);
    if (!strstr(err.text, words))
        fail_msg("%s is told, without %s", err.text, words);
}

static void check_finds_parts_that_are_named_twice_or_share_ids(void **state)
{
    (void)state;
    gx_error err = {0};
    char a[300], b[300];
    make_collection(at("c"), "a", 5);
    gx_manifest m;
    must(gx_manifest_read(&m, AT_FDCWD, at("c"), &err), &err);
    gx_manifest_part parts[2] = {m.parts[0], m.parts[0]};
    gx_manifest twice = m;
    twice.parts = parts;
    twice.n_parts = 2;
    write_manifest(at("c"), &twice);
    expect_damage(at("c"), "twice");
    snprintf(a, sizeof a, "%s/part-000001.gx", at("c"));
    snprintf(b, sizeof b, "%s/part-000002.gx", at("c"));
    put_file(a, b);
    strcpy(parts[1].file, "part-000002.gx");
    write_manifest(at("c"), &twice);
    expect_damage(at("c"), "both have a document");
    build_some(b, "a", 5, false, false); /* another file with the same ids */
    gx_index *ix = open_index(b);
    memcpy(parts[1].uuid, ix->header->uuid, sizeof parts[1].uuid);
    parts[1].bytes = ix->file_bytes;
    gx_index_close(ix);
    write_manifest(at("c"), &twice);
    expect_damage(at("c"), "both have a document");
    write_manifest(at("c"), &m);
    must(gx_index_verify(at("c"), GX_CHECK_FULL, &err), &err);
    gx_manifest_free(&m);
    remove_tree(at("c"));
}

/* Change deletes in one way of several, such that their file is whole by itself. False: there is no such way. */
static bool change_deletes(gx_deletes *d, const gx_index *ix, int way)
{
    size_t len;
    switch (way) {
    case 0: /* another document */
        assert_true(gx_deletes_is_live(d, 0) && !gx_deletes_is_live(d, 1));
        d->live[0] ^= 3;
        return true;
    case 1:
        ++d->n_postings;
        return true;
    case 2:
        ++d->min_doc_len;
        return true;
    case 3:
        ++d->max_doc_len;
        return true;
    case 4:
    case 5:
        for (uint32_t t = 0; t < ix->n_terms; ++t) {
            (void)gx_strings_get(&ix->terms, t, &len);
            if (way == 4 ? d->dfs[t] > 0 : d->dfs[t] == 0) {
                d->dfs[t] = way == 4 ? 0 : 1;
                return true;
            }
        }
        fail();
        return true;
    default:
        return false;
    }
}

static void check_finds_deletes_that_disagree_with_their_file(void **state)
{
    (void)state;
    for (int way = 0;; ++way) {
        gx_error err = {0};
        gx_manifest m;
        gx_deletes *d;
        make_collection(at("c"), "a", 5);
        gx_collection *c = open_writer(at("c"));
        delete_one(c, "a1");
        commit(c);
        gx_collection_close(c);
        must(gx_index_verify(at("c"), GX_CHECK_FULL, &err), &err);
        must(gx_manifest_read(&m, AT_FDCWD, at("c"), &err), &err);
        gx_index *ix = open_index(at("c"));
        const gx_index *part = ix->parts->parts[0].ix;
        must(gx_deletes_open(&d, AT_FDCWD, at("c"), &m.parts[0].deletes, part, &err), &err);
        const bool any = change_deletes(d, part, way);
        if (any) {
            gx_place place = {open(at("c"), O_RDONLY | O_DIRECTORY), NULL, NULL};
            strcpy(m.parts[0].deletes.file, "part-000001.000009.del");
            must(gx_deletes_write(d, &place, at("c"), part, &m.parts[0].deletes, &err), &err);
            close(place.dir_fd);
            write_manifest(at("c"), &m);
            expect_damage(at("c"), "part-000001.000009.del");
        }
        gx_deletes_close(d);
        gx_index_close(ix);
        gx_manifest_free(&m);
        remove_tree(at("c"));
        if (!any)
            break;
    }
}

/* ---- files of others, and for others ---- */

static void files_that_no_writer_made_stay(void **state)
{
    (void)state;
    static const char *const kept[] = {
        "part-abc.gx",        "part-1.gx",           "part-00001.gx",  "part-000001.gx.bak",
        "part-000001x.gx",    "part-000001.del",     "part-.gx",       "part-000001.1.del",
        "part-000009.gx.old", "part-000009.abc.del", "xpart-000009.gx"};
    static const char *const removed[] = {"part-000009.gx", "part-1000000.gx", "part-000001.000007.del"};
    char path[300];
    make_collection(at("c"), "a", 5);
    for (size_t i = 0; i < sizeof kept / sizeof *kept + sizeof removed / sizeof *removed; ++i) {
        const size_t n = sizeof kept / sizeof *kept;
        snprintf(path, sizeof path, "%s/%s", at("c"), i < n ? kept[i] : removed[i - n]);
        close(open(path, O_CREAT | O_WRONLY, 0666));
    }
    gx_collection *c = open_writer(at("c"));
    add(c, "one", NULL);
    commit(c);
    gx_collection_close(c);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; ++i) {
        snprintf(path, sizeof path, "%s/%s", at("c"), kept[i]);
        assert_int_equal(access(path, F_OK), 0);
    }
    for (size_t i = 0; i < sizeof removed / sizeof *removed; ++i) {
        snprintf(path, sizeof path, "%s/%s", at("c"), removed[i]);
        assert_int_equal(access(path, F_OK), -1);
    }
    assert_int_equal(count_documents(at("c")), 6);
    remove_tree(at("c"));
}

static mode_t mode_of(const char *name)
{
    char path[300];
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", at("c"), name);
    assert_int_equal(stat(path, &s), 0);
    return s.st_mode & 0777;
}

static void new_files_have_the_modes_of_those_beside_them(void **state)
{
    (void)state;
    static const mode_t modes[] = {0644, 0664, 0600, 0640};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i) {
        char manifest[300];
        gx_error err = {0};
        make_collection(at("c"), "a", 5);
        snprintf(manifest, sizeof manifest, "%s/MANIFEST", at("c"));
        assert_int_equal(chmod(manifest, modes[i]), 0);
        const mode_t mask = umask(0077);
        gx_collection *c = open_writer(at("c"));
        delete_one(c, "a1");
        add(c, "one", NULL);
        commit(c);
        assert_int_equal(mode_of("part-000001.000002.del"), modes[i]);
        assert_int_equal(mode_of("part-000002.gx"), modes[i]);
        assert_int_equal(mode_of("MANIFEST"), modes[i]);
        assert_int_equal(mode_of("LOCK"), modes[i]);
        must(gx_collection_merge(c, GX_MERGE_ALL, &err), &err);
        assert_int_equal(mode_of("part-000003.gx"), modes[i]);
        gx_collection_close(c);
        umask(mask);
        remove_tree(at("c"));
    }
}

/* ---- copies ---- */

static void a_copy_is_one_commit_and_a_collection_of_its_own(void **state)
{
    (void)state;
    gx_error err = {0};
    const char *from = at("c");
    make_collection(at("c"), "a", 50);
    gx_collection *c = open_writer(at("c"));
    delete_one(c, "a1");
    add(c, "one", NULL);
    commit(c);
    add(c, "pending", NULL);
    must(gx_collect(at("copy"), &from, 1, &err), &err); /* while it is open */
    assert_int_equal(gx_collect(at("copy"), &from, 1, &err), GX_EEXISTS);
    must(gx_index_verify(at("copy"), GX_CHECK_FULL, &err), &err);
    assert_int_equal(count_documents(at("copy")), 50);
    must(gx_collection_merge(c, GX_MERGE_ALL, &err), &err);
    gx_collection_close(c);
    assert_int_equal(count_documents(at("copy")), 50);
    c = open_writer(at("copy"));
    delete_one(c, "a2");
    commit(c);
    gx_collection_close(c);
    assert_int_equal(count_documents(at("copy")), 49);
    assert_int_equal(count_documents(at("c")), 51);
    assert_int_equal(count_files(at("copy"), "LOCK"), 0); /* "LOCK" itself is no longer than that */
    remove_tree(at("copy"));
    from = at("nosuch");
    assert_int_not_equal(gx_collect(at("copy"), &from, 1, &err), GX_OK);
    assert_int_equal(access(at("copy"), F_OK), -1);
    remove_tree(at("c"));
}

/* A copy to tmpfs, or from it, is made of copies, where links cannot be made. */
static void a_copy_can_lie_on_another_file_system(void **state)
{
    (void)state;
    gx_error err = {0};
    char to[100];
    struct stat here, there;
    const char *from = at("c");
    if (stat("/dev/shm", &there) != 0 || stat(scratch_dir, &here) != 0 || here.st_dev == there.st_dev ||
        access("/dev/shm", W_OK) != 0)
        skip();
    snprintf(to, sizeof to, "/dev/shm/gpuidx-writers-%d", getpid());
    make_collection(at("c"), "a", 50);
    gx_collection *c = open_writer(at("c"));
    delete_one(c, "a1");
    commit(c);
    gx_collection_close(c);
    must(gx_collect(to, &from, 1, &err), &err);
    must(gx_index_verify(to, GX_CHECK_FULL, &err), &err);
    assert_int_equal(count_documents(to), 49);
    remove_tree(to);
    remove_tree(at("c"));
}

static void copies_under_a_writer_are_whole(void **state)
{
    (void)state;
    gx_error err = {0};
    char from[300];
    const char *source = from;
    snprintf(from, sizeof from, "%s", at("c"));
    make_collection(from, "a", 20);
    const pid_t writer = fork();
    if (writer == 0) {
        gx_collection *c = open_writer(from);
        for (uint32_t i = 0;; ++i) { /* each commit: a document more, one less, and merges now and then */
            char id[32];
            snprintf(id, sizeof id, "w%u", i);
            add(c, id, NULL);
            snprintf(id, sizeof id, i < 20 ? "a%u" : "w%u", i < 20 ? i : i - 20);
            delete_one(c, id);
            if (gx_collection_merge(c, GX_MERGE_TIERS, &err) != GX_OK)
                _exit(1);
        }
    }
    for (int i = 0; i < 100; ++i) {
        must(gx_collect(at("copy"), &source, 1, &err), &err);
        must(gx_index_verify(at("copy"), GX_CHECK_FULL, &err), &err);
        assert_int_equal(count_documents(at("copy")), 20);
        remove_tree(at("copy"));
    }
    assert_int_equal(waitpid(writer, NULL, WNOHANG), 0);
    kill(writer, SIGKILL);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    remove_tree(from);
}

/* ---- files that are written ---- */

static void joined_parts_need_no_name(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_engine *en;
    build_some(at("a.gx"), "a", 5, true, false);
    build_some(at("b.gx"), "b", 5, true, false);
    const char *files[] = {at("a.gx"), at("b.gx")};
    must(gx_collect(at("c"), files, 2, &err), &err);
    gx_index *ix = open_index(at("c"));
    assert_int_equal(mkdir(at("tmp"), 0777), 0);
    setenv("TMPDIR", at("tmp"), 1);
    for (int what = 0; what < 4; ++what) { /* at the names that once were looked at */
        char name[300], other[300];
        for (int which = 0; which < 2; ++which) {
            snprintf(name, sizeof name, "%s/%s", at("tmp"), which ? "joined parts" : ".gpuidx-join.gx");
            snprintf(other, sizeof other, "%s/other", at("tmp"));
            if (what == 0)
                mkdir(name, 0777);
            else if (what == 1)
                mkfifo(name, 0666);
            else
                assert_int_equal(symlink(what == 2 ? "/nowhere/at/all" : other, name), 0);
        }
        close(open(other, O_CREAT | O_WRONLY, 0604));
        o.kind = GX_ENGINE_CPU;
        o.join = GX_JOIN_ALWAYS;
        must(gx_engine_open(&en, ix, &o, &err), &err);
        gx_engine_close(en);
        remove_tree(at("tmp"));
        assert_int_equal(mkdir(at("tmp"), 0777), 0);
    }
    unsetenv("TMPDIR");
    gx_index_close(ix);
    for (int i = 0; i < 2; ++i)
        unlink(files[i]);
    remove_tree(at("tmp"));
    remove_tree(at("c"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_writer_whose_folder_is_another_one_writes_nothing),
        cmocka_unit_test(a_writer_goes_on_where_a_parent_was_moved_or_the_process_changed_its_folder),
        cmocka_unit_test(a_forked_child_does_not_keep_the_lock),
        cmocka_unit_test(a_writer_waits_for_the_lock),
        cmocka_unit_test(titles_are_kept_as_the_collection_was_built),
        cmocka_unit_test(a_collection_of_files_with_and_without_titles_keeps_them),
        cmocka_unit_test(a_merge_that_fails_leaves_the_commit_and_the_writer),
        cmocka_unit_test(a_reader_sees_that_a_backup_was_put_back_and_changed),
        cmocka_unit_test(the_last_commit_stays_open_where_the_folder_is_away),
        cmocka_unit_test(check_finds_parts_that_are_named_twice_or_share_ids),
        cmocka_unit_test(check_finds_deletes_that_disagree_with_their_file),
        cmocka_unit_test(files_that_no_writer_made_stay),
        cmocka_unit_test(new_files_have_the_modes_of_those_beside_them),
        cmocka_unit_test(a_copy_is_one_commit_and_a_collection_of_its_own),
        cmocka_unit_test(a_copy_can_lie_on_another_file_system),
        cmocka_unit_test(copies_under_a_writer_are_whole),
        cmocka_unit_test(joined_parts_need_no_name),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
