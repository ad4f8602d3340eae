/* A collection of files that really have 4,563,402,755 documents together: 17 links to a sparse file of 268 million,
 * and one of 20. Searched by the engines and by the program, and compared with the judge of support/wide_world.h.
 *
 *   GX_TEST_WIDE=FOLDER GPUIDX=build/tools/gpuidx build/tests/test_wide_files
 *
 * Skipped without GX_TEST_WIDE: it reads 36 GB of zeros whenever the collection is opened, which takes half a minute
 * and half a gigabyte of memory. FOLDER is on a file system with holes, and gets 2 GB that take no space.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/hash.h"
#include "index/write/writer.h"
#include "tests/support/wide_world.h"

/* Document 2^32 is one of the first of part 16, behind documents of it that are below. */
enum { N_COPIES = 17, BIG_DOCS = (1 << 28) - 1, SMALL_DOCS = 20 };

static world w; /* SMALL_DOCS of each part */
static char collection[200];

/* ---- files ---- */

static void path_of(char path[200], const char *name)
{
    snprintf(path, 200, "%s/%s", w.dir, name);
}

/* The documents docs[SMALL_DOCS] as an index file, with ids or without. */
static void write_small(const char *path, const world_doc *docs, bool ids)
{
    gx_writer *b;
    gx_error err = {0};
    gx_writer_options o = GX_WRITER_OPTIONS;
    o.docids = gx_codec_by_name("gpubp128");
    o.force = true;
    world_check(&w, gx_writer_open(&b, path, &o, &err), &err);
    for (uint32_t i = 0; i < SMALL_DOCS; ++i) {
        char id[16];
        const size_t len = (size_t)sprintf(id, "d%u", docs[i].number);
        const gx_document doc = {.size = sizeof doc, .id = ids ? id : NULL, .id_len = ids ? len : 0};
        world_check(&w, gx_writer_add_document(b, &doc, docs[i].length, &err), &err);
    }
    for (uint32_t t = 0; t < WORLD_WORDS; ++t) {
        char term[8];
        uint32_t docids[SMALL_DOCS], tfs[SMALL_DOCS], df = 0;
        for (uint32_t i = 0; i < SMALL_DOCS; ++i) {
            docids[df] = i;
            tfs[df] = docs[i].tfs[t];
            df += docs[i].tfs[t] != 0;
        }
        if (df)
            world_check(&w, gx_writer_add_list(b, term, (size_t)sprintf(term, "w%u", t), df, docids, tfs, &err), &err);
    }
    world_check(&w, gx_writer_finish_with(b, NULL, &err), &err);
    gx_writer_close(b);
}

/* Write an index of BIG_DOCS documents: those of a small one without ids, and behind them empty ones. Sections of
 * documents grow by zeros, which are holes. */
static void stretch(const char *from, const char *to)
{
    static uint8_t file[1 << 20];
    gx_header *h = (gx_header *)(void *)file;
    gx_section *s = (gx_section *)(void *)(h + 1);
    uint64_t at = 0, device_end = 0;
    const int in = open(from, O_RDONLY), out = open(to, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(in >= 0 && out >= 0 && read(in, file, sizeof file) == (ssize_t)h->file_bytes);
    h->n_docs = BIG_DOCS;
    at = sizeof *h + h->n_sections * sizeof *s;
    for (uint32_t i = 0; i < h->n_sections; ++i) {
        const gx_section was = s[i];
        s[i].offset = at + -at % GX_ALIGN;
        s[i].bytes = was.kind == GX_SEC_DOC_LENS  ? 4ull * BIG_DOCS
                     : was.kind == GX_SEC_DOC_IDS ? s[i].param * (BIG_DOCS + 1ull)
                                                  : was.bytes;
        at = s[i].offset + s[i].bytes;
        device_end = was.flags & GX_SECTION_DEVICE ? at : device_end;
        assert_int_equal(pwrite(out, file + was.offset, was.bytes, (off_t)s[i].offset), (ssize_t)was.bytes);
    }
    h->file_bytes = at;
    h->device_offset = s[0].offset; /* the device sections come first */
    h->device_bytes = device_end - s[0].offset;
    assert_int_equal(ftruncate(out, (off_t)at), 0);
    uint8_t *map = mmap(NULL, at, PROT_READ, MAP_SHARED, out, 0);
    assert_true(map != MAP_FAILED);
    for (uint32_t i = 0; i < h->n_sections; ++i)
        s[i].checksum = gx_hash(map + s[i].offset, s[i].bytes);
    munmap(map, at);
    h->checksum = 0;
    h->checksum = gx_hash(file, sizeof *h + h->n_sections * sizeof *s);
    assert_int_equal(pwrite(out, file, sizeof *h + h->n_sections * sizeof *s, 0),
                     (ssize_t)(sizeof *h + h->n_sections * sizeof *s));
    close(in);
    close(out);
}

/* What the judge knows: the same documents in each copy, and others in the last file. */
static void draw_documents(void)
{
    w.n = (N_COPIES + 1) * SMALL_DOCS;
    for (uint32_t i = 0; i < w.n; ++i) {
        world_doc *d = &w.docs[i];
        const uint32_t part = i / SMALL_DOCS, local = i % SMALL_DOCS;
        const bool copied = part > 0 && part < N_COPIES;
        *d = copied ? w.docs[local] : (world_doc){.live = true};
        d->number = i;
        d->docid = (uint64_t)part * BIG_DOCS + local;
        for (uint32_t t = 0; !copied && t < WORLD_WORDS; ++t) {
            d->tfs[t] = world_below(&w, 2 + t) == 0 ? (uint8_t)(1 + world_below(&w, 2)) : 0;
            d->length += d->tfs[t];
        }
        w.n_tokens += d->length;
    }
    w.n_docs = (uint64_t)N_COPIES * BIG_DOCS + SMALL_DOCS;
}

static int make_files(void **state)
{
    (void)state;
    char small[200], big[200], last[200];
    const char *names[N_COPIES + 1];
    gx_error err = {0};
    if (!getenv("GX_TEST_WIDE"))
        return 0;
    w.seed = w.random = world_number("GX_TEST_SEED", 1);
    snprintf(w.dir, sizeof w.dir, "%s", getenv("GX_TEST_WIDE"));
    draw_documents();
    path_of(small, "small.gx");
    path_of(big, "big.gx");
    path_of(last, "last.gx");
    path_of(collection, "wide");
    write_small(small, w.docs, false);
    stretch(small, big);
    write_small(last, w.docs + N_COPIES * SMALL_DOCS, true);
    for (uint32_t i = 0; i < N_COPIES; ++i)
        names[i] = big;
    names[N_COPIES] = last;
    world_check(&w, gx_collect(collection, names, N_COPIES + 1, &err), &err);
    unlink(small);
    unlink(big);
    unlink(last);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    char command[240];
    snprintf(command, sizeof command, "rm -r '%s'", collection);
    return collection[0] ? system(command) : 0;
}

static void need_files(void)
{
    if (collection[0])
        return;
    print_message("GX_TEST_WIDE=FOLDER asks for this test, which takes minutes\n");
    skip();
}

/* ---- answers ---- */

/* 300 random queries; of some the matches are counted, too, which takes bits of all documents. */
static void check_answers(gx_session *s)
{
    static world_answer want;
    gx_error err = {0};
    uint32_t n_ties = 0;
    for (uint32_t i = 0; i < 300; ++i) {
        char text[64];
        uint64_t docids[1000], n_matches = 0;
        double scores[1000];
        uint32_t n;
        world_query q;
        world_draw_query(&w, &q);
        gx_query_options o = world_options(&q);
        o.count = i % 100 == 0;
        const gx_query query = {.size = sizeof query, .text = world_text(&q, text), .len = strlen(text)};
        const gx_results out = {
            .size = sizeof out, .docids64 = docids, .n_hits = &n, .n_matches = &n_matches, .exact_scores = scores};
        world_judge(&w, &q, &want);
        world_check(&w, gx_search(s, &query, 1, &o, &out, &err), &err);
        world_compare(&w, &q, "files", &want, n, docids, scores);
        assert_true(!o.count || n_matches == want.n_matches);
        for (uint32_t j = 1; j < n; ++j)
            n_ties += scores[j] == scores[j - 1] && docids[j] >> 32 != docids[j - 1] >> 32;
    }
    assert_true(n_ties > 0);
}

static void the_engines_answer(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_index_options light = GX_INDEX_OPTIONS;
    need_files();
    light.check = GX_CHECK_STRUCTURE;
    world_check(&w, gx_index_open(&w.ix, collection, &light, &err), &err);
    assert_true(gx_index_n_docs(w.ix) == w.n_docs && w.n_docs > UINT64_C(1) << 32);
    for (gx_engine_kind kind = GX_ENGINE_CPU; kind <= GX_ENGINE_GPU; ++kind) {
        gx_engine_options o = GX_ENGINE_OPTIONS;
        gx_engine *en;
        gx_session *s;
        o.kind = kind;
        const gx_status st = gx_engine_open(&en, w.ix, &o, &err);
        if (kind == GX_ENGINE_GPU && st == GX_ENOGPU) {
            print_message("no GPU: %s\n", err.text);
            continue;
        }
        world_check(&w, st, &err);
        world_check(&w, gx_session_open(&s, en, &err), &err);
        print_message("%s\n", gx_engine_describe(en));
        check_answers(s);
        gx_session_close(s);
        gx_engine_close(en);
    }
    gx_index_close(w.ix);
}

static void the_last_document_is_found(void **state)
{
    (void)state;
    const world_doc *last = &w.docs[w.n - 1];
    gx_error err = {0};
    gx_index_options light = GX_INDEX_OPTIONS;
    char id[16];
    size_t len;
    need_files();
    light.check = GX_CHECK_STRUCTURE;
    world_check(&w, gx_index_open(&w.ix, collection, &light, &err), &err);
    const size_t id_len = (size_t)sprintf(id, "d%u", last->number);
    assert_true(gx_index_find_doc64(w.ix, id, id_len) == last->docid);
    assert_true(gx_index_doc_id(w.ix, last->docid, &len) && len == id_len);
    gx_index_close(w.ix);
}

/* Docids as `gpuidx query` prints them. */
static void the_program_prints_docids(void **state)
{
    (void)state;
    static world_answer want;
    static char line[1 << 16];
    char command[600];
    const world_query q = {.n = 2, .words = {1, 3}, .op = GX_OP_AND_OR, .k = 400};
    need_files();
    if (!getenv("GPUIDX")) {
        print_message("GPUIDX names no program\n");
        skip();
    }
    world_judge(&w, &q, &want);
    snprintf(command, sizeof command, "'%s' query --engine=cpu --op=and-or -k 400 --format=jsonl '%s' 'w1 w3'",
             getenv("GPUIDX"), collection);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_int_equal(pclose(f), 0);
    const char *at = line;
    for (uint32_t i = 0; i < want.n; ++i) {
        uint64_t docid;
        assert_non_null(at = strstr(at, "\"docid\":"));
        assert_int_equal(sscanf(at, "\"docid\":%" SCNu64, &docid), 1);
        assert_true(docid == want.hits[i].docid);
        ++at;
    }
    assert_null(strstr(at, "\"docid\":"));
    assert_true(want.n > 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_engines_answer),
        cmocka_unit_test(the_last_document_is_found),
        cmocka_unit_test(the_program_prints_docids),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
