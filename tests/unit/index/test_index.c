/* The index file made by the writer and read back: every list, string and text is the one that was
 * put in. */
#include "index/index.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/files/spool.h"
#include "engine/files/temporary_file.h"
#include "index/check/check.h"
#include "tests/support/collection.h"

static char dir[] = "/tmp/gx-test-index-XXXXXX";

static const char *in_dir(const char *name)
{
    static char path[4][128];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static int files_in_dir(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.' || (e->d_name[1] && e->d_name[1] != '.');
    closedir(d);
    return n;
}

static gx_index *open_full(const char *path)
{
    gx_error err = {0};
    gx_index *ix;
    gx_index_options opt = GX_INDEX_OPTIONS;
    opt.check = GX_CHECK_FULL;
    if (gx_index_open(&ix, path, &opt, &err) != GX_OK)
        fail_msg("%s", err.text);
    return ix;
}

static void assert_bytes(const char *got, size_t got_len, const char *want, size_t want_len)
{
    assert_int_equal(got_len, want_len);
    assert_memory_equal(got, want, want_len);
}

static void assert_list(const gx_index *ix, uint32_t term, const posting_list *want)
{
    uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK], seen = 0;
    const gx_list l = gx_index_list(ix, term);
    assert_int_equal(l.df, want->df);
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = gx_list_decode_docids(&l, j, docids);
        assert_int_equal(gx_list_decode_tfs(&l, j, tfs), n);
        assert_memory_equal(docids, want->docids + seen, n * sizeof *docids);
        assert_memory_equal(tfs, want->tfs + seen, n * sizeof *tfs);
        assert_int_equal(l.heads[j], want->docids[seen]);
        seen += n;
    }
    assert_int_equal(seen, want->df);
}

/* The same list by the public interface. */
static void assert_walk(const gx_index *ix, uint32_t term, const posting_list *want)
{
    gx_error err = {0};
    gx_postings *p;
    const uint32_t *docids, *tfs = NULL;
    uint32_t n, seen = 0;
    uint64_t cf = 0;
    for (int with_tfs = 0; with_tfs < 2; ++with_tfs) {
        assert_int_equal(gx_postings_open(&p, ix, term, &err), GX_OK);
        for (seen = 0; gx_postings_next(p, &docids, with_tfs ? &tfs : NULL, &n, &err) == GX_OK && n; seen += n) {
            assert_true(n <= ix->block_len);
            assert_memory_equal(docids, want->docids + seen, n * sizeof *docids);
            if (with_tfs)
                assert_memory_equal(tfs, want->tfs + seen, n * sizeof *tfs);
            for (uint32_t i = 0; with_tfs && i < n; ++i)
                cf += tfs[i];
        }
        assert_int_equal(seen, want->df);
        assert_int_equal(gx_postings_next(p, &docids, NULL, &n, &err), GX_OK); /* stays at the end */
        assert_int_equal(n, 0);
        gx_postings_close(p);
    }
    assert_int_equal(gx_index_df(ix, term), want->df);
    assert_int_equal(gx_index_cf(ix, term), cf);
}

static void assert_same(const gx_index *ix, const collection *c)
{
    char *text = NULL;
    size_t cap = 0, len;
    gx_error err = {0};
    assert_int_equal(ix->n_docs, c->n_docs);
    assert_int_equal(ix->n_terms, c->n_terms);
    for (uint32_t t = 0; t < c->n_terms; ++t) {
        const posting_list *want = &c->lists[t];
        assert_int_equal(gx_index_find_term(ix, want->term, want->len), t);
        const char *term = gx_index_term(ix, t, &len);
        assert_bytes(term, len, want->term, want->len);
        assert_list(ix, t, want);
        assert_walk(ix, t, want);
    }
    for (uint32_t d = 0; d < c->n_docs; ++d) {
        assert_int_equal(gx_index_doc_len(ix, d), c->doc_lens[d]);
        const char *id = gx_index_doc_id(ix, d, &len);
        assert_bytes(id, len, c->ids[d], strlen(c->ids[d]));
        assert_int_equal(gx_index_find_doc(ix, c->ids[d], strlen(c->ids[d])), d);
        const char *title = gx_index_doc_title(ix, d, &len);
        assert_bytes(title ? title : "", len, c->titles[d], strlen(c->titles[d]));
        if (!c->with_texts) {
            assert_int_equal(gx_index_doc_text(ix, d, &text, &cap, &len, &err), GX_ENOTFOUND);
            continue;
        }
        assert_int_equal(gx_index_doc_text(ix, d, &text, &cap, &len, &err), GX_OK);
        assert_bytes(text, len, c->texts[d], strlen(c->texts[d]));
    }
    assert_int_equal(gx_index_find_term(ix, "no such term", 12), UINT32_MAX);
    assert_int_equal(gx_index_find_term(ix, "", 0), UINT32_MAX);
    assert_int_equal(gx_index_find_doc(ix, "no such id", 10), UINT32_MAX);
    free(text);
}

static void round_trip(uint64_t seed, uint32_t n_docs, uint32_t n_terms, const gx_codec *docids, const gx_codec *tfs)
{
    gx_error err = {0};
    collection *c = collection_make(seed, n_docs, n_terms);
    if (collection_write(c, in_dir("round.gx"), docids, tfs, &err) != GX_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    gx_index *ix = open_full(in_dir("round.gx"));
    assert_same(ix, c);
    gx_index_close(ix);
    collection_free(c);
}

static void gives_back_what_was_put_in(void **state)
{
    (void)state;
    uint64_t seed = 20090420;
    print_message("seed %llu\n", (unsigned long long)seed);
    size_t n = 0;
    while (gx_codecs[n])
        ++n;
    for (size_t i = 0; i < n; ++i)
        for (size_t k = 0; k < 4; ++k) { /* itself, and three drawn */
            const gx_codec *const docids = gx_codecs[i], *const tfs =
                                                             gx_codecs[k ? (i + gx_random_next(&seed) % n) % n : i];
            if (docids->block_len == tfs->block_len)
                round_trip(gx_random_next(&seed), 1 + (uint32_t)(gx_random_next(&seed) % 3000),
                           (uint32_t)(gx_random_next(&seed) % 40), docids, tfs);
        }
}

static void holds_lists_around_the_block_length(void **state)
{
    (void)state;
    for (const gx_codec *const *codec = gx_codecs; *codec; ++codec) {
        const uint32_t n = (*codec)->block_len;
        const uint32_t lengths[] = {1, 2, n - 1, n, n + 1, 2 * n - 1, 2 * n, 2 * n + 1};
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i)
            round_trip(i, lengths[i], 3, *codec, NULL);
    }
}

static void holds_no_documents(void **state)
{
    (void)state;
    round_trip(1, 0, 0, gx_codec_by_name("gpubp128"), NULL);
    gx_index *ix = open_full(in_dir("round.gx"));
    gx_index_sizes sizes;
    gx_index_measure(ix, &sizes);
    assert_true(sizes.docid_bits == 0);
    assert_int_equal(ix->n_blocks, 0);
    assert_true(ix->avgdl == 1);
    gx_index_close(ix);
}

static void holds_documents_without_terms(void **state)
{
    (void)state;
    round_trip(2, 300, 0, gx_codec_by_name("gpubp128"), NULL);
}

static void holds_many_texts_in_many_frames(void **state)
{
    (void)state;
    gx_error err = {0};
    collection *c = collection_make(5, 2000, 2);
    c->with_texts = true;
    free(c->texts[77]);
    c->texts[77] = malloc(1 << 20); /* longer than a frame */
    memset(c->texts[77], 'x', (1 << 20) - 1);
    c->texts[77][(1 << 20) - 1] = 0;
    assert_int_equal(collection_write(c, in_dir("text.gx"), gx_codec_by_name("raw"), NULL, &err), GX_OK);
    gx_index *ix = open_full(in_dir("text.gx"));
    assert_true(ix->n_text_frames > 3);
    assert_same(ix, c);
    gx_index_close(ix);
    collection_free(c);
}

static void joins_the_ids_of_many_documents(void **state)
{
    (void)state;
    round_trip(4, 300, 5, gx_codec_by_name("gpubp128"), NULL);
    gx_index *ix = open_full(in_dir("round.gx"));
    const uint32_t docids[] = {299, 0, 300, 7};
    char want[256] = "", got[256];
    for (uint32_t i = 0; i < 4; ++i) {
        size_t len;
        const char *id = gx_index_doc_id(ix, docids[i], &len);
        sprintf(want + strlen(want), "%.*s\n", (int)len, id ? id : "");
    }
    const size_t n = strlen(want);
    assert_int_equal(gx_index_join_doc_ids(ix, docids, 4, NULL, 0), n);
    for (size_t size = 0; size <= n + 2; ++size) { /* a buffer too small is filled to its end and not beyond */
        memset(got, '#', sizeof got);
        assert_int_equal(gx_index_join_doc_ids(ix, docids, 4, got, size), n);
        assert_memory_equal(got, want, size < n ? size : n);
        assert_int_equal(got[size < n ? size : n], '#');
    }
    assert_int_equal(gx_index_join_doc_ids(ix, docids, 0, got, sizeof got), 0);
    gx_index_close(ix);
}

static void says_what_there_is_behind_the_last_term_and_document(void **state)
{
    (void)state;
    round_trip(4, 300, 5, gx_codec_by_name("gpubp128"), NULL);
    gx_index *ix = open_full(in_dir("round.gx"));
    gx_error err = {0};
    gx_postings *p = (gx_postings *)ix;
    size_t len = 1;
    assert_null(gx_index_term(ix, 5, &len));
    assert_int_equal(len, 0);
    assert_int_equal(gx_index_df(ix, 5), 0);
    assert_int_equal(gx_index_cf(ix, UINT32_MAX), 0);
    assert_int_equal(gx_index_doc_len(ix, 300), 0);
    assert_null(gx_index_doc_id(ix, 300, &len));
    assert_int_equal(gx_postings_open(&p, ix, 5, &err), GX_EUSAGE);
    assert_null(p);
    assert_non_null(strstr(err.text, "no term 5"));
    gx_index_close(ix);
}

static void statistics_say_what_is_stored(void **state)
{
    (void)state;
    gx_error err = {0};
    collection *c = collection_make(6, 40, 3);
    for (int with_texts = 0; with_texts < 2; ++with_texts) {
        uint64_t tokens = 0;
        uint32_t least = UINT32_MAX, most = 0;
        gx_index_stats st = {.size = sizeof st};
        c->with_texts = with_texts;
        for (uint32_t d = 0; d < c->n_docs; ++d)
            snprintf(c->titles[d], sizeof c->titles[d], with_texts ? "" : "Title %u", d);
        assert_int_equal(collection_write(c, in_dir("stats.gx"), gx_codec_by_name("raw"), NULL, &err), GX_OK);
        gx_index *ix = open_full(in_dir("stats.gx"));
        assert_int_equal(gx_index_get_stats(ix, &st), GX_OK);
        for (uint32_t d = 0; d < c->n_docs; ++d) {
            tokens += c->doc_lens[d];
            least = c->doc_lens[d] < least ? c->doc_lens[d] : least;
            most = c->doc_lens[d] > most ? c->doc_lens[d] : most;
        }
        assert_int_equal(st.titles, !with_texts);
        assert_int_equal(st.texts, with_texts);
        assert_true(st.avgdl == (double)tokens / c->n_docs);
        assert_int_equal(st.min_doc_len, least);
        assert_int_equal(st.max_doc_len, most);
        assert_int_equal(st.version, ix->header->version);
        assert_memory_equal(st.uuid, collection_uuid, 16);
        size_t len;
        const char *meta = gx_index_meta(ix, &len);
        assert_int_equal(len, strlen(META));
        assert_memory_equal(meta, META, len);
        gx_index_close(ix);
    }
    collection_free(c);
}

static void makes_terms_of_a_text(void **state)
{
    (void)state;
    static const char text[] = "The Owls' cap";
    gx_error err = {0};
    gx_text_term *terms;
    size_t n;
    round_trip(7, 3, 1, gx_codec_by_name("raw"), NULL);
    gx_index *ix = open_full(in_dir("round.gx"));
    assert_int_equal(gx_index_analyze(ix, text, sizeof text - 1, &terms, &n, &err), GX_OK);
    for (size_t i = 0; i < n; ++i) {
        assert_int_equal(strlen(terms[i].term), terms[i].len);
        assert_true(terms[i].begin < terms[i].end && terms[i].end <= sizeof text - 1);
    }
    assert_int_equal(n, 3);
    assert_string_equal(terms[1].term, "Owls'");
    assert_string_equal(terms[2].term, "cap");
    assert_int_equal(terms[2].begin, 10);
    free(terms);
    assert_int_equal(gx_index_analyze(ix, "", 0, &terms, &n, &err), GX_OK);
    assert_int_equal(n, 0);
    free(terms);
    gx_index_close(ix);
}

static void measures_where_the_bytes_go(void **state)
{
    (void)state;
    round_trip(3, 1000, 10, gx_codec_by_name("gpuvbyte128"), gx_codec_by_name("gpubp128"));
    gx_index *ix = open_full(in_dir("round.gx"));
    gx_index_sizes s;
    gx_index_measure(ix, &s);
    uint64_t sum = s.header_bytes + s.padding_bytes;
    for (uint32_t i = 0; i < s.n_sections; ++i)
        sum += s.sections[i].bytes;
    assert_int_equal(sum, ix->file_bytes);
    assert_int_equal(s.n_codings, 1);
    assert_int_equal(s.codings[0].docid_bytes + s.codings[0].tf_bytes, ix->payload_words * 4);
    assert_int_equal(s.codings[0].n_postings, ix->n_postings);
    assert_string_equal(s.codings[0].docid_codec, "gpuvbyte128");
    assert_string_equal(s.codings[0].tf_codec, "gpubp128");
    assert_true(s.docid_bits * (double)ix->n_postings / 8 - (double)s.codings[0].docid_bytes < 1);
    assert_true(s.head_bits > 0 && s.end_bits == 2 * s.head_bits);
    gx_index_close(ix);
}

static void the_same_input_makes_the_same_bytes(void **state)
{
    (void)state;
    gx_error err = {0};
    collection *c = collection_make(9, 700, 12);
    char a[200], b[200], command[500];
    snprintf(a, sizeof a, "%s", in_dir("a.gx"));
    snprintf(b, sizeof b, "%s", in_dir("b.gx"));
    assert_int_equal(collection_write(c, a, gx_codec_by_name("gpubp128"), NULL, &err), GX_OK);
    assert_int_equal(collection_write(c, b, gx_codec_by_name("gpubp128"), NULL, &err), GX_OK);
    snprintf(command, sizeof command, "cmp %s %s", a, b);
    assert_int_equal(system(command), 0);
    collection_free(c);
}

/* ---- refusals of the writer ---- */

static gx_writer_options some_codec(void)
{
    gx_writer_options opt = GX_WRITER_OPTIONS;
    opt.docids = gx_codec_by_name("gpubp128");
    return opt;
}

static void refuses_codecs_of_unequal_blocks_and_names_one_that_fits(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_writer *w;
    gx_writer_options opt = some_codec();
    opt.tfs = gx_codec_by_name("gpuvbyte1024");
    assert_int_equal(gx_writer_open(&w, in_dir("x.gx"), &opt, &err), GX_EUSAGE);
    assert_null(w);
    assert_non_null(strstr(err.text, "gpuvbyte128"));
}

static void refuses_an_existing_file_and_leaves_it(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_writer *w;
    const gx_writer_options opt = some_codec();
    FILE *f = fopen(in_dir("old.gx"), "w");
    fputs("old", f);
    fclose(f);
    assert_int_equal(gx_writer_open(&w, in_dir("old.gx"), &opt, &err), GX_EEXISTS);
    assert_non_null(strstr(err.text, "old.gx")); /* the program, not the library, speaks of flags */
    assert_null(strstr(err.text, "--"));
    char text[8] = "";
    f = fopen(in_dir("old.gx"), "r");
    assert_int_equal(fread(text, 1, sizeof text, f), 3);
    fclose(f);
    assert_string_equal(text, "old");
}

static void refuses_a_file_that_came_into_being_meanwhile(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_writer *w;
    const gx_writer_options opt = some_codec();
    const int before = files_in_dir() + 1;
    assert_int_equal(gx_writer_open(&w, in_dir("race.gx"), &opt, &err), GX_OK);
    fclose(fopen(in_dir("race.gx"), "w"));
    assert_int_equal(gx_writer_finish(w, META, &err), GX_EEXISTS);
    gx_writer_close(w);
    assert_int_equal(files_in_dir(), before);
}

static void refuses_a_missing_directory_at_once(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_writer *w;
    const gx_writer_options opt = some_codec();
    assert_int_equal(gx_writer_open(&w, in_dir("none/x.gx"), &opt, &err), GX_ENOTFOUND);
    assert_non_null(strstr(err.text, "none"));
    assert_int_equal(gx_writer_open(&w, dir, &opt, &err), GX_EEXISTS);
}

/* A writer with 10 documents, and what it says to one list. */
static gx_status say(const char *term, uint32_t df, const uint32_t *docids, const uint32_t *tfs, gx_error *err)
{
    gx_writer *w;
    const gx_writer_options opt = some_codec();
    static const uint32_t zero = 0, one = 1;
    assert_int_equal(gx_writer_open(&w, in_dir("say.gx"), &opt, err), GX_OK);
    for (int d = 0; d < 10; ++d)
        assert_int_equal(gx_writer_add_document(w, &(gx_document){.id = "id", .id_len = 2}, 1, err), GX_OK);
    assert_int_equal(gx_writer_add_list(w, "m", 1, 1, &zero, &one, err), GX_OK);
    const gx_status st = gx_writer_add_list(w, term, strlen(term), df, docids, tfs, err);
    if (st != GX_OK) {
        assert_int_equal(gx_writer_add_list(w, "z", 1, 1, &zero, &one, NULL), st); /* it stays failed */
        assert_int_equal(gx_writer_finish(w, META, NULL), st);
    }
    gx_writer_close(w);
    assert_int_equal(access(in_dir("say.gx"), F_OK), -1);
    return st;
}

static void refuses_lists_that_are_none(void **state)
{
    (void)state;
    gx_error err = {0};
    static const uint32_t rising[] = {0, 4, 9}, falling[] = {0, 5, 4}, twice[] = {0, 4, 4}, beyond[] = {0, 4, 10};
    static const uint32_t ones[] = {1, 1, 1}, zero[] = {1, 0, 1};
    assert_int_equal(say("n", 3, rising, ones, &err), GX_OK);
    assert_int_equal(say("m", 3, rising, ones, &err), GX_EUSAGE);
    assert_int_equal(say("lm", 3, rising, ones, &err), GX_EUSAGE);
    assert_int_equal(say("", 3, rising, ones, &err), GX_EUSAGE);
    assert_int_equal(say("n", 0, rising, ones, &err), GX_EUSAGE);
    assert_int_equal(say("n", 11, rising, ones, &err), GX_EUSAGE);
    assert_int_equal(say("n", 3, falling, ones, &err), GX_EUSAGE);
    assert_int_equal(say("n", 3, twice, ones, &err), GX_EUSAGE);
    assert_int_equal(say("n", 3, beyond, ones, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "docid 10, of 10"));
    assert_int_equal(say("n", 3, rising, zero, &err), GX_EUSAGE);
}

static void refuses_a_description_without_an_analyzer(void **state)
{
    (void)state;
    gx_error err = {0};
    static const char *const bad[] = {"", "[]", "{", "{\"analyzer\":1}", "{\"source\":{}}"};
    const gx_writer_options opt = some_codec();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        gx_writer *w;
        assert_int_equal(gx_writer_open(&w, in_dir("meta.gx"), &opt, &err), GX_OK);
        assert_int_equal(gx_writer_finish(w, bad[i], &err), GX_EUSAGE);
        gx_writer_close(w);
        assert_int_equal(access(in_dir("meta.gx"), F_OK), -1);
    }
}

/* ---- failures of the system ---- */

static void put_old_file(const char *name)
{
    FILE *f = fopen(in_dir(name), "w");
    fputs("old", f);
    fclose(f);
}

static bool is_old_file(const char *name)
{
    char text[8] = "";
    FILE *f = fopen(in_dir(name), "r");
    const size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    return n == 3 && strcmp(text, "old") == 0;
}

/* Large enough that the writer spools to files. */
static collection *many_documents(void)
{
    collection *c = collection_make(3, 40000, 5);
    c->with_titles = c->with_texts = true;
    for (uint32_t d = 0; d < c->n_docs; ++d)
        snprintf(c->titles[d], sizeof c->titles[d], "On the matter of document %u", d);
    return c;
}

static void a_full_disk_is_told_and_leaves_the_old_file(void **state)
{
    (void)state;
    collection *c = many_documents();
    gx_error err = {0};
    struct stat s;
    int told = 0;
    assert_int_equal(collection_write(c, in_dir("full.gx"), gx_codec_by_name("gpubp128"), NULL, &err), GX_OK);
    assert_int_equal(stat(in_dir("full.gx"), &s), 0);
    put_old_file("full.gx");
    const int before = files_in_dir();
    for (int i = 0; i <= 12; ++i) { /* no file may grow above i / 12 of the index */
        const rlim_t most = (rlim_t)s.st_size * (rlim_t)i / 12 - (i == 12);
        const pid_t pid = fork();
        if (pid == 0) {
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){most, most});
            const gx_status st = collection_write(c, in_dir("full.gx"), gx_codec_by_name("gpubp128"), NULL, &err);
            _exit(st == GX_EIO && strstr(err.text, dir) && strstr(err.text, strerror(EFBIG)) ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_true(is_old_file("full.gx"));
        assert_int_equal(files_in_dir(), before);
        ++told;
    }
    assert_int_equal(told, 13);
    unlink(in_dir("full.gx"));
    collection_free(c);
}

/* Write, and die after `steps` documents and lists. */
static void write_and_die(const collection *c, uint32_t steps)
{
    gx_writer_options opt = some_codec();
    gx_writer *w;
    opt.force = opt.store_text = true;
    if (gx_writer_open(&w, in_dir("kill.gx"), &opt, NULL) != GX_OK)
        _exit(1);
    for (uint32_t d = 0; d < c->n_docs; ++d) {
        if (d == steps)
            raise(SIGKILL);
        gx_writer_add_document(w,
                               &(gx_document){.id = c->ids[d],
                                              .id_len = strlen(c->ids[d]),
                                              .title = c->titles[d],
                                              .title_len = strlen(c->titles[d]),
                                              .text = c->texts[d],
                                              .text_len = strlen(c->texts[d])},
                               c->doc_lens[d], NULL);
    }
    for (uint32_t t = 0; t < c->n_terms; ++t) {
        if (c->n_docs + t == steps)
            raise(SIGKILL);
        gx_writer_add_list(w, c->lists[t].term, c->lists[t].len, c->lists[t].df, c->lists[t].docids, c->lists[t].tfs,
                           NULL);
    }
    raise(SIGKILL);
}

static void a_killed_writer_leaves_the_old_file_and_nothing_else(void **state)
{
    (void)state;
    char *name;
    close(gx_temporary_file_open_nameable(AT_FDCWD, dir, &name));
    if (name) { /* the one thing that a kill leaves there: .gpuidx-*.tmp */
        unlink(name);
        free(name);
        skip();
    }
    collection *c = many_documents();
    put_old_file("kill.gx");
    const int before = files_in_dir();
    const uint32_t steps[] = {0, 1, c->n_docs / 2, c->n_docs, c->n_docs + 3, UINT32_MAX};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; ++i) {
        const pid_t pid = fork();
        if (pid == 0)
            write_and_die(c, steps[i]);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_true(is_old_file("kill.gx"));
        assert_int_equal(files_in_dir(), before);
    }
    unlink(in_dir("kill.gx"));
    collection_free(c);
}

static void a_writer_killed_anywhere_leaves_the_old_file_or_the_new_one(void **state)
{
    (void)state;
    collection *c = many_documents();
    gx_error err = {0};
    uint64_t seed = 77;
    int olds = 0;
    for (int i = 0; i < 12; ++i) {
        put_old_file("any.gx");
        const pid_t pid = fork();
        if (pid == 0)
            _exit(collection_write(c, in_dir("any.gx"), gx_codec_by_name("gpubp128"), NULL, &err) != GX_OK);
        usleep((useconds_t)(gx_random_next(&seed) % 120000));
        kill(pid, SIGKILL);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (is_old_file("any.gx"))
            ++olds;
        else if (gx_index_verify(in_dir("any.gx"), GX_CHECK_FULL, &err) != GX_OK)
            fail_msg("%s", err.text);
    }
    print_message("the old file %d times, the new one %d times\n", olds, 12 - olds);
    collection_free(c);
}

static int make_dir(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    return mkdtemp(dir) ? 0 : -1;
}

/* All ids, the last of which is the first's too, looked up by one of several threads. */
static void *find_ids(void *p)
{
    const gx_index *ix = p;
    uintptr_t wrong = 0;
    for (uint32_t d = 0; d < ix->n_docs; ++d) {
        size_t len;
        const char *id = gx_index_doc_id(ix, d, &len);
        wrong += gx_index_find_doc(ix, id, len) != (d + 1 < ix->n_docs ? d : 0) ||
                 gx_index_find_doc(ix, id, len - 1) != UINT32_MAX;
    }
    return (void *)wrong;
}

static void threads_find_the_first_of_equal_ids(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    gx_error err = {0};
    collection *c = collection_make(7, 900, 3);
    for (uint32_t d = 0; d < c->n_docs; ++d)
        snprintf(c->ids[d], sizeof c->ids[d], "id-%03u", d % (c->n_docs - 1));
    assert_int_equal(
        collection_write(c, in_dir("ids.gx"), gx_codec_by_name("gpubp128"), gx_codec_by_name("gpubp128"), &err), GX_OK);
    gx_index *ix = open_full(in_dir("ids.gx"));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, find_ids, ix), 0);
    for (int i = 0; i < THREADS; ++i) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    gx_index_close(ix);
    collection_free(c);
}

/* Its file overwritten and then truncated,
 * an index that was read whole is still the one that was put in. */
static void an_index_that_was_read_does_not_need_its_file(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_index_options opt = GX_INDEX_OPTIONS;
    gx_index *ix, *none = (gx_index *)&err;
    collection *c = collection_make(6, 3000, 40);
    c->with_texts = true;
    assert_int_equal(collection_write(c, in_dir("read.gx"), gx_codec_by_name("gpubp128"), NULL, &err), GX_OK);
    opt.load = GX_LOAD_READ;
    for (int level = GX_CHECK_HEADER; level <= GX_CHECK_FULL; ++level) {
        opt.check = (gx_check)level;
        assert_int_equal(gx_index_open(&ix, in_dir("read.gx"), &opt, &err), GX_OK);
        assert_same(ix, c);
        gx_index_close(ix);
    }
    assert_int_equal(gx_index_open(&ix, in_dir("read.gx"), &opt, &err), GX_OK);
    FILE *f = fopen(in_dir("read.gx"), "r+b");
    for (uint64_t i = 0; i < ix->file_bytes; ++i)
        putc(0x5a, f);
    assert_int_equal(fflush(f), 0);
    assert_same(ix, c);
    assert_int_equal(ftruncate(fileno(f), 0), 0);
    fclose(f);
    assert_same(ix, c);
    gx_index_close(ix);
    assert_int_equal(gx_index_open(&none, in_dir("read.gx"), &opt, &err), GX_ECORRUPT);
    assert_null(none);
    opt.load = (gx_load)7;
    assert_int_equal(gx_index_open(&none, in_dir("read.gx"), &opt, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "gx_index_options.load"));
    collection_free(c);
}

static int remove_dir(void **state)
{
    (void)state;
    char command[200];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_back_what_was_put_in),
        cmocka_unit_test(holds_lists_around_the_block_length),
        cmocka_unit_test(joins_the_ids_of_many_documents),
        cmocka_unit_test(holds_no_documents),
        cmocka_unit_test(holds_documents_without_terms),
        cmocka_unit_test(holds_many_texts_in_many_frames),
        cmocka_unit_test(an_index_that_was_read_does_not_need_its_file),
        cmocka_unit_test(measures_where_the_bytes_go),
        cmocka_unit_test(says_what_there_is_behind_the_last_term_and_document),
        cmocka_unit_test(statistics_say_what_is_stored),
        cmocka_unit_test(makes_terms_of_a_text),
        cmocka_unit_test(threads_find_the_first_of_equal_ids),
        cmocka_unit_test(the_same_input_makes_the_same_bytes),
        cmocka_unit_test(refuses_codecs_of_unequal_blocks_and_names_one_that_fits),
        cmocka_unit_test(refuses_an_existing_file_and_leaves_it),
        cmocka_unit_test(refuses_a_file_that_came_into_being_meanwhile),
        cmocka_unit_test(refuses_a_missing_directory_at_once),
        cmocka_unit_test(refuses_lists_that_are_none),
        cmocka_unit_test(refuses_a_description_without_an_analyzer),
        cmocka_unit_test(a_full_disk_is_told_and_leaves_the_old_file),
        cmocka_unit_test(a_killed_writer_leaves_the_old_file_and_nothing_else),
        cmocka_unit_test(a_writer_killed_anywhere_leaves_the_old_file_or_the_new_one),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
