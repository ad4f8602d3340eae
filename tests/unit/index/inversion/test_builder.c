#include "index/inversion/builder.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/hash.h"
#include "engine/random.h"
#include "index/analysis/analyzer.h"
#include "index/format.h"
#include "index/index.h"
#include "index/read/lexicon.h"
#include "tests/support/test.h"

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/gx-builder-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    return rmdir(dir); /* fails if a test left anything in it */
}

static const char *in_dir(const char *name)
{
    static char path[2][128];
    static int turn;
    turn ^= 1;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static gx_document document(const char *id, const char *title, const char *text)
{
    return (gx_document){sizeof(gx_document), id, title, text, strlen(id), title ? strlen(title) : 0, strlen(text)};
}

static gx_builder *open_builder(gx_builder_options opt)
{
    gx_builder *b;
    gx_error err = {0};
    if (gx_builder_open(&b, &opt, &err) != GX_OK)
        fail_msg("%s", err.text);
    return b;
}

/* With all other options as they are by default. */
static gx_builder *open_at(const char *path)
{
    gx_builder_options o = GX_BUILDER_OPTIONS;
    o.path = path;
    return open_builder(o);
}

static void add(gx_builder *b, const char *id, const char *title, const char *text)
{
    const gx_document d = document(id, title, text);
    gx_error err = {0};
    if (gx_builder_add(b, &d, &err) != GX_OK)
        fail_msg("%s", err.text);
}

static gx_builder_counts finish(gx_builder *b)
{
    gx_error err = {0};
    if (gx_builder_finish(b, &err) != GX_OK)
        fail_msg("%s", err.text);
    gx_builder_counts c = {.size = sizeof c};
    gx_builder_get_counts(b, &c);
    gx_builder_abort(b);
    return c;
}

static gx_index *open_index(const char *path)
{
    gx_index *ix;
    gx_error err = {0};
    gx_index_options o = GX_INDEX_OPTIONS;
    o.check = GX_CHECK_FULL;
    if (gx_index_open(&ix, path, &o, &err) != GX_OK)
        fail_msg("%s", err.text);
    return ix;
}

/* "docid:tf docid:tf" of a term; "-" if there is none. */
static const char *postings(const gx_index *ix, const char *term)
{
    static char out[256];
    const uint32_t t = gx_index_find_term(ix, term, strlen(term));
    if (t == UINT32_MAX)
        return "-";
    uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK];
    const gx_list l = gx_index_list(ix, t);
    const uint32_t n = gx_list_decode_docids(&l, 0, docids);
    gx_list_decode_tfs(&l, 0, tfs);
    size_t at = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < n; ++i)
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%u:%u", i ? " " : "", docids[i], tfs[i]);
    return out;
}

/* ---- terms whose hashes collide ---- */

#define TERM 8u /* seven letters and a space */

/* The k-th word of seven letters. */
static void spell(uint64_t k, char *word)
{
    for (uint32_t i = 0; i < TERM - 1; ++i, k /= 26)
        word[i] = (char)('a' + k % 26);
    word[TERM - 1] = ' ';
}

/* n words from the k-th on, of those whose hash has a one of few values in its low bits. */
static uint64_t spell_colliding(uint64_t k, uint32_t n, uint64_t mask, uint64_t few, char *text)
{
    for (uint32_t i = 0; i < n; ++k) {
        spell(k, text + (size_t)i * TERM);
        i += (gx_hash(text + (size_t)i * TERM, TERM - 1) & mask) < few;
    }
    text[(size_t)n * TERM] = 0;
    return k;
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* An index of one document; the seconds of processor time that it took. */
static double build_text(const char *path, const char *text)
{
    gx_builder_options o = GX_BUILDER_OPTIONS;
    o.path = path;
    o.force = true;
    o.analyzer = "whitespace";
    const double t = cpu_seconds();
    gx_builder *b = open_builder(o);
    add(b, "d", NULL, text);
    finish(b);
    return cpu_seconds() - t;
}

static uint32_t *naive_table(const gx_index *ix)
{
    const uint64_t mask = ((uint64_t)1 << ix->term_hash_bits) - 1;
    uint32_t *table = calloc(mask + 1, sizeof *table);
    assert_non_null(table);
    for (uint32_t t = 0; t < ix->n_terms; ++t) {
        size_t len;
        const char *term = gx_strings_get(&ix->terms, t, &len);
        uint64_t slot = gx_hash(term, len) & mask;
        while (table[slot])
            slot = (slot + 1) & mask;
        table[slot] = t + 1;
    }
    return table;
}

static void terms_that_collide_are_put_in_slots_one_behind_another(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 30, 85, 2000, 5000};
    const char *path = in_dir("collide.gx");
    for (uint32_t from_end = 0; from_end < 2; ++from_end) {
        for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
            const uint32_t n = sizes[i];
            char *text = malloc((size_t)n * TERM + 1);
            assert_non_null(text);
            /* of few values, or of all but many: rows that run over the end of the table, too */
            for (uint32_t k = 0, found = 0; found < n; ++k) {
                char *word = text + (size_t)found * TERM;
                spell(k, word);
                const uint64_t h = gx_hash(word, TERM - 1) & 8191;
                found += from_end ? h >= 8190 - 64 : h % 1024 < 16;
            }
            text[(size_t)n * TERM] = 0;
            build_text(path, text);
            gx_index *ix = open_index(path);
            assert_int_equal(ix->n_terms, n);
            uint32_t *table = naive_table(ix);
            assert_memory_equal(ix->term_hash, table, sizeof *table << ix->term_hash_bits);
            free(table);
            gx_index_close(ix);
            free(text);
        }
    }
    unlink(path);
}

/* Terms that are looked up together have the ids that each has alone: known[n] terms, and other ones that collide with
 * them. */
static void check_all_found(const gx_index *ix, const char *known, uint32_t n, const char *unknown, uint32_t n_unknown)
{
    enum { MOST = 33 };
    gx_term_key keys[MOST];
    uint32_t ids[MOST], n_found = 0;
    uint64_t seed = 7;
    for (uint32_t round = 0; round < 2000; ++round) {
        const uint32_t m = (uint32_t)(gx_random_next(&seed) % (MOST + 1));
        for (uint32_t i = 0; i < m; ++i) {
            const bool is_known = gx_random_next(&seed) % 3 != 0;
            const char *term = is_known ? known + gx_random_next(&seed) % n * TERM
                                        : unknown + gx_random_next(&seed) % n_unknown * TERM;
            keys[i] = (gx_term_key){term, TERM - 1, gx_hash(term, TERM - 1)};
            gx_index_expect_hashed(ix, keys[i].hash);
        }
        gx_index_find_all(ix, keys, m, ids);
        for (uint32_t i = 0; i < m; ++i) {
            assert_int_equal(ids[i], gx_index_find_term(ix, keys[i].bytes, keys[i].len));
            n_found += ids[i] != UINT32_MAX;
        }
    }
    assert_in_range(n_found, 15000, 30000); /* two thirds of 33,000 */
}

/* The seconds of processor time to look n terms up in ix, which has all of them if `has`. */
static double look_up(const gx_index *ix, const char *terms, uint32_t n, bool has)
{
    const double t = cpu_seconds();
    for (uint32_t i = 0; i < n; ++i) {
        const char *bytes = terms + (size_t)i * TERM;
        const uint32_t id = gx_index_find_term(ix, bytes, TERM - 1);
        assert_int_equal(id != UINT32_MAX, has);
        if (has) {
            size_t len;
            const char *term = gx_strings_get(&ix->terms, id, &len);
            assert_int_equal(len, TERM - 1);
            assert_memory_equal(term, bytes, len);
        }
    }
    return cpu_seconds() - t;
}

/* The time of a build, and of looking up terms that the index has and has not, does not grow with
 * the square of terms whose hashes begin at a few slots: it is some times that of other terms, where the square would
 * be a thousand times. In some turn no other work of the machine blurs that. */
static void terms_that_collide_take_no_longer(void **state)
{
    (void)state;
    enum { N = 60000, UNKNOWN = 10000, MOST_TURNS = 20 };
    const char *path = in_dir("collide.gx"), *plain = in_dir("plain.gx");
    char *text = malloc((size_t)N * TERM + 1), *unknown = malloc((size_t)UNKNOWN * TERM + 1);
    char *others = malloc((size_t)(N + UNKNOWN) * TERM + 1);
    assert_true(text && unknown && others);
    for (uint32_t i = 0; i < N + UNKNOWN; ++i)
        spell(i, others + (size_t)i * TERM);
    others[(size_t)N * TERM - 1] = 0; /* the build reads the first N */
    spell_colliding(spell_colliding(0, N, 131071, 64, text), UNKNOWN, 131071, 64, unknown);
    double build = INFINITY, find = INFINITY, miss = INFINITY; /* times the ordinary */
    gx_index *ix = NULL;
    for (int turn = 0; turn < MOST_TURNS && !(build < 20 && find < 100 && miss < 100); ++turn) {
        gx_index_close(ix);
        const double ordinary = build_text(plain, others);
        build = fmin(build, build_text(path, text) / ordinary);
        gx_index *usual = open_index(plain);
        ix = open_index(path);
        assert_int_equal(ix->n_terms, N);
        assert_int_equal(usual->n_terms, N);
        const double found = look_up(usual, others, N, true);
        const double missed = look_up(usual, others + (size_t)N * TERM, UNKNOWN, false);
        find = fmin(find, look_up(ix, text, N, true) / found);
        miss = fmin(miss, look_up(ix, unknown, UNKNOWN, false) / missed);
        gx_index_close(usual);
    }
    print_message("terms that collide take %.1f times as long to index, %.1f and %.1f to look up\n", build, find, miss);
    assert_true(build < 20 && find < 100 && miss < 100);
    check_all_found(ix, text, N, unknown, UNKNOWN);
    gx_index_close(ix);
    unlink(path);
    unlink(plain);
    free(text);
    free(unknown);
    free(others);
}

static void documents_become_an_index(void **state)
{
    (void)state;
    const char *path = in_dir("a.gx");
    gx_builder_options o = GX_BUILDER_OPTIONS;
    o.path = path;
    o.source = "a test";
    gx_builder *b = open_builder(o);
    add(b, "d1", "The cats", "Cats and dogs; a dog's dog.");
    add(b, "d2", NULL, "");
    add(b, "d3", "of the", "and");
    add(b, "d4", "Nations", "running dogs");
    gx_builder_counts c = finish(b);
    assert_int_equal(c.documents, 4);
    assert_int_equal(c.empty, 2);
    assert_int_equal(c.tokens, 8);
    assert_int_equal(c.postings, 5);
    assert_int_equal(c.terms, 4);
    assert_int_equal(c.text_bytes, 8 + 27 + 0 + 6 + 3 + 7 + 12);
    gx_index *ix = open_index(path);
    assert_int_equal(ix->n_docs, 4);
    assert_int_equal(ix->n_terms, 4);
    assert_int_equal(ix->doc_lens[0], 5);
    assert_int_equal(ix->doc_lens[1], 0);
    assert_int_equal(ix->doc_lens[2], 0);
    assert_int_equal(ix->doc_lens[3], 3);
    assert_string_equal(postings(ix, "cat"), "0:2");
    assert_string_equal(postings(ix, "dog"), "0:3 3:1");
    assert_string_equal(postings(ix, "nation"), "3:1");
    assert_string_equal(postings(ix, "run"), "3:1");
    assert_string_equal(postings(ix, "the"), "-");
    size_t len;
    const char *s = gx_index_doc_title(ix, 3, &len);
    assert_int_equal(len, 7);
    assert_memory_equal(s, "Nations", 7);
    s = gx_index_doc_id(ix, 1, &len);
    assert_int_equal(len, 2);
    assert_memory_equal(s, "d2", 2);
    assert_int_equal(gx_index_find_doc(ix, "d4", 2), 3);
    gx_index_close(ix);
    unlink(path);
}

static void title_and_text_do_not_run_together(void **state)
{
    (void)state;
    const char *path = in_dir("a.gx");
    gx_builder_options o = GX_BUILDER_OPTIONS;
    o.path = path;
    o.analyzer = "simple";
    gx_builder *b = open_builder(o);
    char *text = malloc(100001);
    memset(text, 'x', 100000);
    for (int i = 4; i < 100000; i += 5)
        text[i] = ' ';
    text[100000] = 0;
    add(b, "d1", "ab", "cd");
    add(b, "d2", "ab", text); /* long documents go another way */
    free(text);
    finish(b);
    gx_index *ix = open_index(path);
    assert_string_equal(postings(ix, "ab"), "0:1 1:1");
    assert_string_equal(postings(ix, "cd"), "0:1");
    assert_string_equal(postings(ix, "xxxx"), "1:20000");
    assert_int_equal(ix->doc_lens[1], 20001);
    gx_index_close(ix);
    unlink(path);
}

static void bad_ids_are_refused_and_the_builder_goes_on(void **state)
{
    (void)state;
    const char *path = in_dir("a.gx");
    gx_builder *b = open_at(path);
    static const char *const bad[] = {"", "a b", "a\tb", "a\n", "\x7F"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        const gx_document d = document(bad[i], NULL, "text");
        gx_error err = {0};
        assert_int_equal(gx_builder_add(b, &d, &err), GX_EINPUT);
        assert_true(err.text[0]);
    }
    add(b, "\xC3\xA9", NULL, "text");
    gx_builder_counts c = finish(b);
    assert_int_equal(c.documents, 1);
    assert_int_equal(c.tokens, 1);
    unlink(path);
}

static void duplicates_fail_by_default(void **state)
{
    (void)state;
    const char *path = in_dir("a.gx");
    gx_builder *b = open_at(path);
    add(b, "d1", NULL, "one");
    add(b, "d2", NULL, "two");
    const gx_document d = document("d2", NULL, "three");
    gx_error err = {0};
    assert_int_equal(gx_builder_add(b, &d, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, "\"d2\""));
    assert_non_null(strstr(err.text, "document 2"));
    add(b, "d3", NULL, "four");
    finish(b);
    gx_index *ix = open_index(path);
    assert_int_equal(ix->n_docs, 3);
    assert_string_equal(postings(ix, "three"), "-");
    assert_string_equal(postings(ix, "four"), "2:1");
    gx_index_close(ix);
    unlink(path);
}

static void many_documents_are_added_up_to_the_first_that_fails(void **state)
{
    (void)state;
    const char *path = in_dir("a.gx");
    gx_builder *b = open_at(path);
    gx_document docs[] = {document("d1", "one", "two"), document("d2", NULL, "two"), document("d1", NULL, "three"),
                          document("d4", NULL, "four")};
    gx_error err = {0};
    size_t n_added = 9;
    assert_int_equal(gx_builder_add_many(b, docs, 0, &n_added, &err), GX_OK);
    assert_int_equal(n_added, 0);
    docs[1].size += 8;
    assert_int_equal(gx_builder_add_many(b, docs, 4, &n_added, &err), GX_EUSAGE);
    assert_int_equal(n_added, 0);
    assert_non_null(strstr(err.text, "document 1"));
    docs[1].size -= 8;
    assert_int_equal(gx_builder_add_many(b, docs, 4, &n_added, &err), GX_EINPUT);
    assert_int_equal(n_added, 2);
    assert_non_null(strstr(err.text, "\"d1\""));
    assert_int_equal(gx_builder_add_many(b, docs + 3, 1, &n_added, &err), GX_OK);
    assert_int_equal(n_added, 1);
    finish(b);
    gx_index *ix = open_index(path);
    assert_int_equal(ix->n_docs, 3);
    assert_string_equal(postings(ix, "two"), "0:1 1:1");
    assert_string_equal(postings(ix, "three"), "-");
    assert_string_equal(postings(ix, "four"), "2:1");
    gx_index_close(ix);
    unlink(path);
}

static void the_first_or_the_last_of_duplicates_is_kept(void **state)
{
    (void)state;
    for (int last = 0; last < 2; ++last) {
        const char *path = in_dir("a.gx");
        gx_builder_options o = GX_BUILDER_OPTIONS;
        o.path = path;
        o.store_text = true;
        o.duplicates = last ? GX_DUPLICATES_LAST : GX_DUPLICATES_FIRST;
        gx_builder *b = open_builder(o);
        add(b, "d1", "T1", "apple pear");
        add(b, "d2", "T2", "apple only1");
        add(b, "d1", "T3", "");
        add(b, "d3", "T4", "apple");
        add(b, "d1", "T5", "apple apple plum");
        gx_builder_counts c = finish(b);
        assert_int_equal(c.documents, 3);
        assert_int_equal(c.duplicates, 2);
        gx_index *ix = open_index(path);
        assert_int_equal(ix->n_docs, 3);
        assert_int_equal(c.tokens, ix->n_tokens);
        assert_int_equal(c.postings, ix->n_postings);
        assert_int_equal(c.empty, 0);
        assert_int_equal(gx_index_find_doc(ix, "d1", 2), last ? 2 : 0);
        assert_string_equal(postings(ix, "appl"), last ? "0:1 1:1 2:2" : "0:1 1:1 2:1");
        assert_string_equal(postings(ix, "pear"), last ? "-" : "0:1");
        assert_string_equal(postings(ix, "plum"), last ? "2:1" : "-");
        size_t len;
        const char *title = gx_index_doc_title(ix, gx_index_find_doc(ix, "d1", 2), &len);
        assert_int_equal(len, 2);
        assert_memory_equal(title, last ? "T5" : "T1", 2);
        char *text = NULL;
        size_t cap = 0;
        assert_int_equal(gx_index_doc_text(ix, gx_index_find_doc(ix, "d1", 2), &text, &cap, &len, NULL), GX_OK);
        assert_int_equal(len, last ? 16 : 10);
        assert_memory_equal(text, last ? "apple apple plum" : "apple pear", len);
        free(text);
        gx_index_close(ix);
        unlink(path);
    }
}

static void many_documents(gx_builder *b, uint32_t n)
{
    uint64_t seed = 31;
    for (uint32_t d = 0; d < n; ++d) {
        char id[16], text[4096] = "";
        size_t at = 0;
        snprintf(id, sizeof id, "doc%u", d);
        for (uint32_t i = 0; i < 60; ++i) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const uint32_t a = (uint32_t)(seed >> 40) % 20000, t = (uint32_t)((uint64_t)a * a / 20000);
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%u ", t % 5 ? "w" : "averyverylongprefix", t);
        }
        add(b, id, NULL, text);
    }
}

static void little_memory_gives_the_same_index(void **state)
{
    (void)state;
    gx_builder_counts c[2];
    gx_index *ix[2];
    char paths[2][128];
    for (int i = 0; i < 2; ++i) {
        strcpy(paths[i], in_dir(i ? "tight.gx" : "roomy.gx"));
        gx_builder_options o = GX_BUILDER_OPTIONS;
        o.path = paths[i];
        o.memory = i ? 1u << 20 : 0;
        gx_builder *b = open_builder(o);
        many_documents(b, 6000);
        c[i] = finish(b);
        ix[i] = open_index(paths[i]);
    }
    assert_int_equal(c[0].spills, 0);
    assert_true(c[1].spills > 2);
    assert_int_equal(c[0].postings, c[1].postings);
    assert_int_equal(ix[0]->n_terms, ix[1]->n_terms);
    assert_int_equal(ix[0]->payload_words, ix[1]->payload_words);
    assert_memory_equal(ix[0]->payload, ix[1]->payload, ix[0]->payload_words * 4);
    assert_memory_equal(ix[0]->lists, ix[1]->lists, ix[0]->n_terms * sizeof *ix[0]->lists);
    assert_memory_equal(ix[0]->heads, ix[1]->heads, ix[0]->n_blocks * 4);
    assert_memory_equal(ix[0]->doc_lens, ix[1]->doc_lens, ix[0]->n_docs * 4);
    for (int i = 0; i < 2; ++i) {
        gx_index_close(ix[i]);
        unlink(paths[i]);
    }
}

/* Kilobytes that a process of its own takes at most, which indexes n_docs documents of a thousand
 * random words with little memory. The exit status tells whether it spilled as often as that. */
static long kilobytes_to_build(uint32_t n_docs, uint32_t min_spills)
{
    const char *path = in_dir("runs.gx");
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        gx_builder_options o = GX_BUILDER_OPTIONS;
        o.path = path;
        o.memory = 1u << 20;
        o.analyzer = "whitespace";
        gx_builder *b = open_builder(o);
        char id[16], text[1000 * TERM + 1];
        uint64_t seed = 7;
        for (uint32_t d = 0; d < n_docs; ++d) {
            for (uint32_t i = 0; i < 1000; ++i)
                spell(gx_random_next(&seed) % 40000, text + i * TERM);
            text[1000 * TERM] = 0;
            snprintf(id, sizeof id, "%u", d);
            add(b, id, NULL, text);
        }
        _exit(finish(b).spills < min_spills);
    }
    int status;
    struct rusage usage;
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    assert_int_equal(status, 0);
    unlink(path);
    return usage.ru_maxrss;
}

static void many_runs_take_no_more_memory_than_few(void **state)
{
    (void)state;
    const long few = kilobytes_to_build(300, 10), many = kilobytes_to_build(6000, 500);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which have memory of their own */
    if (many > few + 4096)
        fail_msg("a build of many runs takes %ld KiB, one of few %ld", many, few);
#endif
}

/* ---- threads ---- */

typedef struct corpus {
    uint64_t seed;
    uint32_t n_docs;
    char *text; /* of the document at hand */
} corpus;

enum { LONGEST = 400000 };

static uint32_t draw(corpus *c, uint32_t n)
{
    c->seed = c->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((c->seed >> 32) * n >> 32);
}

/* A random document: an empty one, a short one, one beyond 32 KB, or one beyond what a batch of
 * little memory holds. One in twenty has the id of an earlier one, and a few an id that no index
 * takes. */
static gx_document random_document(corpus *c, uint32_t number, char id[32], char title[64])
{
    const uint32_t kind = draw(c, 400), n = kind < 20    ? 0
                                            : kind < 390 ? draw(c, 600)
                                            : kind < 397 ? 33000 + draw(c, 40000)
                                                         : draw(c, LONGEST - 64);
    size_t at = 0;
    while (at < n) {
        const uint32_t a = draw(c, 60000), t = (uint32_t)((uint64_t)a * a / 60000);
        static const char *const forms[] = {"w%u ", "averyverylongprefix%u ", "W%u\xFF, ", "\xC3\xA9t\xC3\xA9%u. ",
                                            "the %u "};
        at += (size_t)snprintf(c->text + at, 64, forms[t % 5], t);
    }
    snprintf(id, 32, draw(c, 100) == 0 ? "bad id %u" : "doc%u", draw(c, 20) == 0 ? draw(c, number + 1) : number);
    snprintf(title, 64, "Title%u of w%u", number, draw(c, 100));
    const bool titled = draw(c, 3);
    return (gx_document){sizeof(gx_document),        id, titled ? title : NULL, c->text, strlen(id),
                         titled ? strlen(title) : 0, at};
}

/* What a build leaves: the file, without what differs from build to build, and what gx_builder_add
 * said. */
typedef struct built {
    uint8_t *file;
    size_t n;
    char *said;
    gx_builder_counts counts;
} built;

static void read_built(built *out, const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    out->n = (size_t)ftell(f);
    rewind(f);
    out->file = malloc(out->n);
    assert_int_equal(fread(out->file, 1, out->n, f), out->n);
    fclose(f);
    gx_header *h = (gx_header *)out->file;
    gx_section *s = (gx_section *)(out->file + sizeof *h);
    memset(h->uuid, 0, sizeof h->uuid);
    h->checksum = 0;
    for (uint32_t i = 0; i < h->n_sections; ++i) {
        if (s[i].kind != GX_SEC_META)
            continue;
        char *created = memmem(out->file + s[i].offset, s[i].bytes, "\"created\":\"", 11);
        assert_non_null(created);
        memset(created + 11, '-', 20);
        s[i].checksum = 0;
    }
}

static built build_random(uint64_t seed, uint32_t n_docs, gx_builder_options o)
{
    built out = {.said = calloc(n_docs, 256)};
    corpus c = {seed, n_docs, malloc(LONGEST)};
    o.path = in_dir("threads.gx");
    gx_builder *b = open_builder(o);
    for (uint32_t d = 0; d < n_docs; ++d) {
        char id[32], title[64];
        gx_error err = {0};
        const gx_document doc = random_document(&c, d, id, title);
        const gx_status st = gx_builder_add(b, &doc, &err);
        assert_true(st == GX_OK || st == GX_EINPUT);
        snprintf(out.said + (size_t)d * 256, 256, "%d %.240s", st, err.text);
        memset(c.text, 'x', doc.text_len); /* the caller may use its memory again */
        if (d % 100 == 0) {
            gx_builder_counts now = {.size = sizeof now};
            gx_builder_get_counts(b, &now);
            assert_true(now.documents <= d + 1);
        }
    }
    out.counts = finish(b);
    gx_index_close(open_index(o.path));
    read_built(&out, o.path);
    unlink(o.path);
    free(c.text);
    return out;
}

static void free_built(built *b)
{
    free(b->file);
    free(b->said);
}

static void assert_same(const built *a, const built *b, uint32_t n_docs)
{
    for (uint32_t d = 0; d < n_docs; ++d)
        assert_string_equal(a->said + (size_t)d * 256, b->said + (size_t)d * 256);
    assert_int_equal(a->counts.documents, b->counts.documents);
    assert_int_equal(a->counts.empty, b->counts.empty);
    assert_int_equal(a->counts.duplicates, b->counts.duplicates);
    assert_int_equal(a->counts.text_bytes, b->counts.text_bytes);
    assert_int_equal(a->counts.tokens, b->counts.tokens);
    assert_int_equal(a->counts.postings, b->counts.postings);
    assert_int_equal(a->counts.terms, b->counts.terms);
    assert_int_equal(a->counts.dropped_tokens, b->counts.dropped_tokens);
    assert_int_equal(a->counts.replaced_bytes, b->counts.replaced_bytes);
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->file, b->file, a->n);
}

static void any_number_of_threads_writes_the_same_file(void **state)
{
    (void)state;
    static const uint32_t threads[] = {2, 3, 5, 8};
    for (uint64_t seed = 1; seed <= 3; ++seed) {
        const uint32_t n_docs = 2500;
        gx_builder_options o = GX_BUILDER_OPTIONS;
        o.duplicates = seed == 1 ? GX_DUPLICATES_FAIL : seed == 2 ? GX_DUPLICATES_FIRST : GX_DUPLICATES_LAST;
        o.store_text = seed != 2;
        o.store_titles = seed != 1;
        built one = build_random(seed, n_docs, o);
        for (uint32_t i = 0; i < sizeof threads / sizeof *threads; ++i)
            for (int tight = 0; tight < 2; ++tight) {
                o.threads = threads[i];
                o.memory = tight ? (uint64_t)o.threads << 20 : 0;
                built several = build_random(seed, n_docs, o);
                assert_true(!several.counts.spills == !tight);
                assert_same(&one, &several, n_docs);
                free_built(&several);
            }
        free_built(&one);
    }
}

/* Titles of 24 MB: several threads write the section. */
static void a_large_section_is_the_same_by_any_number_of_threads(void **state)
{
    (void)state;
    enum { N = 400, LENGTH = 60000 };
    static char title[LENGTH];
    built of[2];
    gx_builder_options o = GX_BUILDER_OPTIONS;
    o.path = in_dir("large.gx");
    for (uint32_t i = 0; i < 2; ++i) {
        o.threads = i ? 5 : 1;
        gx_builder *b = open_builder(o);
        for (uint32_t d = 0; d < N; ++d) {
            char id[16];
            gx_error err = {0};
            for (uint32_t k = 0; k < LENGTH; ++k)
                title[k] = k % 50 ? (char)('a' + (d + k / 50) % 26) : ' ';
            const gx_document doc = {sizeof doc, id, title, "text", (size_t)snprintf(id, sizeof id, "d%u", d),
                                     LENGTH,     4};
            assert_int_equal(gx_builder_add(b, &doc, &err), GX_OK);
        }
        finish(b);
        gx_index_close(open_index(o.path));
        read_built(&of[i], o.path);
        unlink(o.path);
    }
    assert_int_equal(of[0].n, of[1].n);
    assert_true(of[0].n > (size_t)N * LENGTH);
    assert_memory_equal(of[0].file, of[1].file, of[0].n);
    free(of[0].file);
    free(of[1].file);
}

static void a_few_documents_are_fine_for_many_threads(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 4; ++n) {
        gx_builder_options o = GX_BUILDER_OPTIONS;
        built one = build_random(9, n, o);
        o.threads = UINT32_MAX;
        o.memory = 16u << 20;
        built several = build_random(9, n, o);
        assert_same(&one, &several, n);
        free_built(&one);
        free_built(&several);
    }
}

static void a_build_by_threads_can_be_given_up_at_any_time(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 3000; n = n * 2 + 1) {
        gx_builder_options o = GX_BUILDER_OPTIONS;
        o.path = in_dir("a.gx");
        o.threads = 4;
        o.memory = n % 4 == 3 ? 4u << 20 : 0;
        gx_builder *b = open_builder(o);
        many_documents(b, n);
        gx_builder_abort(b);
        assert_int_equal(access(o.path, F_OK), -1);
    }
}

static bool count_term(void *user, const gx_found_term *found)
{
    uint32_t *tf = user;
    uint32_t h = 0;
    for (size_t i = 0; i < found->len; ++i)
        h = h * 31 + (unsigned char)found->term[i];
    ++tf[h % 4096];
    return true;
}

/* The builder's short way (a cache of raw tokens) finds what gx_analyze finds. */
static void the_index_holds_what_the_analyzer_says(void **state)
{
    (void)state;
    static const char *const words[] = {"The",
                                        "running",
                                        "RUNNING",
                                        "Cat's",
                                        "caf\xC3\xA9",
                                        "na\xC3\xAFve\xE2\x80\x99s",
                                        "3.14",
                                        "e.g.",
                                        "U.S.A.",
                                        "\xE6\xBC\xA2\xE5\xAD\x97",
                                        "elevenchars",
                                        "twelve_chars",
                                        "internationalization",
                                        "internationalizations",
                                        "eightchr",
                                        "sevench",
                                        "a",
                                        "_",
                                        "x\xFFy",
                                        "ninechars",
                                        "tenchars10",
                                        "thirteen_char"};
    const char *path = in_dir("a.gx");
    gx_builder *b = open_at(path);
    uint64_t seed = 77;
    static char text[300][1024];
    for (int d = 0; d < 300; ++d) {
        char id[16];
        text[d][0] = 0;
        for (int i = 0; i < 40; ++i) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            strcat(text[d], words[(seed >> 33) % (sizeof words / sizeof *words)]);
            strcat(text[d], seed >> 63 ? " " : ", ");
        }
        snprintf(id, sizeof id, "%d", d);
        add(b, id, NULL, text[d]);
    }
    finish(b);
    gx_index *ix = open_index(path);
    static uint32_t want[300][4096], got[300][4096];
    for (int d = 0; d < 300; ++d)
        assert_int_equal(gx_analyze(ix->analyzer, text[d], strlen(text[d]), count_term, want[d]), GX_OK);
    for (uint32_t t = 0; t < ix->n_terms; ++t) {
        size_t len;
        const char *term = gx_strings_get(&ix->terms, t, &len);
        const gx_list l = gx_index_list(ix, t);
        uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK];
        for (uint32_t j = 0; j < l.n_blocks; ++j) {
            const uint32_t n = gx_list_decode_docids(&l, j, docids);
            gx_list_decode_tfs(&l, j, tfs);
            for (uint32_t i = 0; i < n; ++i)
                for (uint32_t k = 0; k < tfs[i]; ++k)
                    count_term(got[docids[i]], &(gx_found_term){.term = term, .len = len});
        }
    }
    assert_memory_equal(want, got, sizeof want);
    gx_index_close(ix);
    unlink(path);
}

static void what_is_dropped_and_replaced_is_counted(void **state)
{
    (void)state;
    const char *path = in_dir("a.gx");
    gx_builder *b = open_at(path);
    char *giant = malloc((10u << 20) + 1);
    memset(giant, 'g', 10u << 20);
    giant[10u << 20] = 0;
    add(b, "d1", NULL, giant);
    giant[256] = 0;
    add(b, "d2", giant, "\xFF\xFE ok \xC3");
    giant[255] = 0;
    add(b, "d3", giant, "");
    const gx_document nul = {sizeof nul, "d4", NULL, "a1\0b1", 2, 0, 5};
    assert_int_equal(gx_builder_add(b, &nul, NULL), GX_OK);
    gx_builder_counts c = finish(b);
    assert_int_equal(c.dropped_tokens, 2);
    assert_int_equal(c.replaced_bytes, 3);
    assert_int_equal(c.tokens, 1 + 1 + 2);
    assert_int_equal(c.empty, 1);
    gx_index *ix = open_index(path);
    assert_string_equal(postings(ix, giant), "2:1");
    assert_string_equal(postings(ix, "b1"), "3:1");
    gx_index_close(ix);
    free(giant);
    unlink(path);
}

static void nothing_appears_before_the_end_and_nothing_is_overwritten(void **state)
{
    (void)state;
    const char *path = in_dir("a.gx");
    gx_builder_options o = GX_BUILDER_OPTIONS;
    o.path = path;
    gx_builder *b = open_builder(o);
    add(b, "d1", NULL, "one");
    assert_int_equal(access(path, F_OK), -1);
    gx_builder_abort(b);
    assert_int_equal(access(path, F_OK), -1);
    finish(open_builder(o)); /* no documents are fine */
    gx_index *ix = open_index(path);
    assert_int_equal(ix->n_docs, 0);
    gx_index_close(ix);
    gx_error err = {0};
    assert_int_equal(gx_builder_open(&b, &o, &err), GX_EEXISTS);
    assert_null(b);
    o.force = true;
    b = open_builder(o);
    add(b, "d1", NULL, "one");
    finish(b);
    unlink(path);
}

static void a_full_disk_is_reported_and_leaves_nothing(void **state)
{
    (void)state;
    struct rlimit old, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    tight = old;
    uint32_t threads = 1;
    for (rlim_t most = 1000; most < 1u << 20; most = threads == 1 ? most * 3 + 7777 : most) {
        const char *path = in_dir("a.gx");
        gx_builder_options o = GX_BUILDER_OPTIONS;
        o.path = path;
        o.threads = threads ^= 2; /* 3, then 1 */
        o.memory = (uint64_t)threads << 20;
        o.duplicates = most % 2 ? GX_DUPLICATES_LAST : GX_DUPLICATES_FAIL;
        tight.rlim_cur = most;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
        gx_builder *b = NULL;
        gx_error err = {0};
        gx_status st = gx_builder_open(&b, &o, &err);
        uint64_t seed = most;
        for (uint32_t d = 0; d < 20000 && st == GX_OK; ++d) {
            char id[16], text[128];
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            snprintf(id, sizeof id, "%u", d);
            snprintf(text, sizeof text, "w%u x%u y%u", (unsigned)(seed >> 44), (unsigned)(seed >> 50),
                     (unsigned)(seed >> 56));
            const gx_document doc = document(id, "a title", text);
            st = gx_builder_add(b, &doc, &err);
        }
        if (st == GX_OK)
            st = gx_builder_finish(b, &err);
        setrlimit(RLIMIT_FSIZE, &old);
        assert_int_equal(st, GX_EIO);
        assert_true(err.text[0]);
        gx_builder_abort(b);
        assert_int_equal(access(path, F_OK), -1);
    }
    signal(SIGXFSZ, handler);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    gx_builder *b;
    gx_error err = {0};
    gx_builder_options o = GX_BUILDER_OPTIONS;
    assert_int_equal(gx_builder_open(&b, &o, &err), GX_EUSAGE);
    o.path = in_dir("a.gx");
    o.memory = 1000;
    assert_int_equal(gx_builder_open(&b, &o, &err), GX_EUSAGE);
    o.memory = 0;
    o.docid_codec = "zip";
    assert_int_equal(gx_builder_open(&b, &o, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "gpubp128"));
    o.docid_codec = NULL;
    o.analyzer = "latin";
    assert_int_equal(gx_builder_open(&b, &o, &err), GX_EUSAGE);
    o.analyzer = NULL;
    o.path = "/nonexistent/dir/a.gx";
    assert_int_equal(gx_builder_open(&b, &o, &err), GX_ENOTFOUND);
    assert_null(b);
    assert_true(err.text[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_become_an_index),
        cmocka_unit_test(title_and_text_do_not_run_together),
        cmocka_unit_test(bad_ids_are_refused_and_the_builder_goes_on),
        cmocka_unit_test(duplicates_fail_by_default),
        cmocka_unit_test(many_documents_are_added_up_to_the_first_that_fails),
        cmocka_unit_test(the_first_or_the_last_of_duplicates_is_kept),
        cmocka_unit_test(little_memory_gives_the_same_index),
        cmocka_unit_test(many_runs_take_no_more_memory_than_few),
        cmocka_unit_test(any_number_of_threads_writes_the_same_file),
        cmocka_unit_test(a_large_section_is_the_same_by_any_number_of_threads),
        cmocka_unit_test(a_few_documents_are_fine_for_many_threads),
        cmocka_unit_test(a_build_by_threads_can_be_given_up_at_any_time),
        cmocka_unit_test(the_index_holds_what_the_analyzer_says),
        cmocka_unit_test(what_is_dropped_and_replaced_is_counted),
        cmocka_unit_test(nothing_appears_before_the_end_and_nothing_is_overwritten),
        cmocka_unit_test(terms_that_collide_are_put_in_slots_one_behind_another),
        cmocka_unit_test(terms_that_collide_take_no_longer),
        cmocka_unit_test(a_full_disk_is_reported_and_leaves_nothing),
        cmocka_unit_test(bad_options_are_refused),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
