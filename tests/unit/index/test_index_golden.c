/* Index files of format version 1, kept in tests/data: they must stay readable by every later
 * version, and, as long as version 1 is what the writer writes, be made again byte by byte.
 *
 *   example.gx   FORMAT.md's worked example
 *   blocks.gx    lists of several blocks, GPU-VByte128 docids, GPU-BP128 tfs
 *   impacts.gx   the lists of blocks.gx, whose tfs are impacts
 *   unit.gx      the same with a unit of 1/128
 *   units.gx     the same with a unit for each list
 *   positions.gx positions of words and titles
 *   text.gx      stored texts (whose bytes depend on the version of zstd, and are only read)
 *
 * GX_TEST_REWRITE=1 makes them anew, for a new version of the format. */
#include <sys/stat.h>
#include <unistd.h>

#include "index/check/check.h"
#include "index/index.h"
#include "index/positions.h"
#include "tests/support/collection.h"

static const char *data(const char *name)
{
    static char path[2][512];
    static int turn;
    turn ^= 1;
    snprintf(path[turn], sizeof path[turn], "%s/%s", getenv("GX_TEST_DATA"), name);
    return path[turn];
}

static collection *example(void)
{
    static const struct {
        const char *term;
        uint32_t df, docids[2], tfs[2];
    } lists[] = {
        {"be", 1, {0}, {2}}, {"do", 1, {1}, {1}}, {"not", 2, {0, 1}, {1, 1}}, {"or", 1, {0}, {1}}, {"to", 1, {0}, {2}}};
    collection *c = collection_make(0, 2, 5);
    c->with_titles = true;
    c->with_texts = false;
    memset(c->titles, 0, 2 * sizeof *c->titles);
    strcpy(c->titles[0], "Hamlet");
    strcpy(c->ids[0], "d0");
    strcpy(c->ids[1], "d1");
    c->doc_lens[0] = 6;
    c->doc_lens[1] = 2;
    for (uint32_t t = 0; t < 5; ++t) {
        posting_list *l = &c->lists[t];
        l->len = strlen(strcpy(l->term, lists[t].term));
        l->df = lists[t].df;
        memcpy(l->docids, lists[t].docids, l->df * sizeof *l->docids);
        memcpy(l->tfs, lists[t].tfs, l->df * sizeof *l->tfs);
    }
    return c;
}

/* Postings by rule, so that nothing but this function decides them. */
static collection *blocks(bool texts)
{
    collection *c = collection_make(0, 600, 4);
    c->with_titles = false;
    c->with_texts = texts;
    memset(c->titles, 0, c->n_docs * sizeof *c->titles);
    memset(c->doc_lens, 0, c->n_docs * sizeof *c->doc_lens);
    for (uint32_t t = 0; t < c->n_terms; ++t) {
        posting_list *l = &c->lists[t];
        l->len = (size_t)sprintf(l->term, "every-%u", t + 1);
        l->df = 0;
        for (uint32_t d = t; d < c->n_docs; d += t + 1 + (t && d % 7 == 0)) {
            l->docids[l->df] = d;
            l->tfs[l->df] = 1 + d % (t + 2) + (d == 300 ? 70000 : 0);
            c->doc_lens[d] += l->tfs[l->df++];
        }
    }
    for (uint32_t d = 0; d < c->n_docs; ++d) {
        free(c->texts[d]);
        c->texts[d] = malloc(100);
        snprintf(c->texts[d], 100, "%.*s%u", (int)(d % 50), "The text of a document, which may be empty, of number ",
                 d);
    }
    return c;
}

static void assert_holds(const char *path, const collection *c)
{
    gx_error err = {0};
    gx_index *ix;
    gx_index_options opt = GX_INDEX_OPTIONS;
    opt.check = GX_CHECK_FULL;
    if (gx_index_open(&ix, path, &opt, &err) != GX_OK)
        fail_msg("%s", err.text);
    assert_int_equal(ix->n_docs, c->n_docs);
    assert_int_equal(ix->n_terms, c->n_terms);
    assert_int_equal(ix->impacts, c->impacts);
    for (uint32_t t = 0; t < c->n_terms; ++t)
        assert_true(gx_index_unit(ix, t) == (c->list_units ? 0.5 + t : c->unit > 0 ? c->unit : 1));
    for (uint32_t t = 0; t < c->n_terms; ++t) {
        uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK], seen = 0;
        assert_int_equal(gx_index_find_term(ix, c->lists[t].term, c->lists[t].len), t);
        const gx_list l = gx_index_list(ix, t);
        assert_int_equal(l.df, c->lists[t].df);
        for (uint32_t j = 0; j < l.n_blocks; ++j) {
            const uint32_t n = gx_list_decode_docids(&l, j, docids);
            gx_list_decode_tfs(&l, j, tfs);
            assert_memory_equal(docids, c->lists[t].docids + seen, n * sizeof *docids);
            assert_memory_equal(tfs, c->lists[t].tfs + seen, n * sizeof *tfs);
            seen += n;
        }
    }
    char *text = NULL;
    size_t cap = 0, len;
    for (uint32_t d = 0; d < c->n_docs; ++d) {
        const char *id = gx_index_doc_id(ix, d, &len);
        assert_int_equal(len, strlen(c->ids[d]));
        assert_memory_equal(id, c->ids[d], len);
        assert_int_equal(ix->doc_lens[d], c->doc_lens[d]);
        if (c->with_texts) {
            assert_int_equal(gx_index_doc_text(ix, d, &text, &cap, &len, NULL), GX_OK);
            assert_int_equal(len, strlen(c->texts[d]));
            assert_memory_equal(text, c->texts[d], len);
        }
    }
    free(text);
    gx_index_close(ix);
}

static void assert_same_bytes(const char *a, const char *b)
{
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    assert_true(f && g);
    long at = 0;
    for (int x, y; (x = fgetc(f)) == (y = fgetc(g)); ++at)
        if (x == EOF) {
            fclose(f);
            fclose(g);
            return;
        }
    fail_msg("%s and %s differ at byte %ld", a, b, at);
}

static void check_golden(const char *name, collection *c, const char *docids, const char *tfs)
{
    gx_error err = {0};
    char made[] = "/tmp/gx-test-golden-XXXXXX";
    const bool rewrite = getenv("GX_TEST_REWRITE") != NULL;
    assert_true(mkstemp(made) >= 0);
    if (collection_write(c, rewrite ? data(name) : made, gx_codec_by_name(docids), gx_codec_by_name(tfs), &err) !=
        GX_OK)
        fail_msg("%s", err.text);
    assert_holds(data(name), c);
    if (!rewrite && !c->with_texts)
        assert_same_bytes(data(name), made);
    unlink(made);
    collection_free(c);
}

static void the_example_of_the_format_page_stays(void **state)
{
    (void)state;
    check_golden("example.gx", example(), "gpubp128", "gpubp128");
}

static void lists_of_several_blocks_stay(void **state)
{
    (void)state;
    check_golden("blocks.gx", blocks(false), "gpuvbyte128", "gpubp128");
}

/* Their sum is that of the lengths, but a document's are not its length. */
static void impacts_stay(void **state)
{
    (void)state;
    collection *c = blocks(false);
    c->impacts = true;
    c->doc_lens[10] += c->doc_lens[20] - 1;
    c->doc_lens[20] = 1;
    check_golden("impacts.gx", c, "gpuvbyte128", "gpubp128");
}

static void units_stay(void **state)
{
    (void)state;
    collection *c = blocks(false);
    c->impacts = true;
    c->unit = 1 / 128.;
    check_golden("unit.gx", c, "gpuvbyte128", "gpubp128");
    c = blocks(false);
    c->impacts = c->list_units = true;
    check_golden("units.gx", c, "gpuvbyte128", "gpubp128");
}

/* The file holds what collection_positions gives, one list after another. */
static void assert_positions(const char *path, const collection *c)
{
    gx_error err = {0};
    gx_index *ix;
    assert_int_equal(gx_index_open(&ix, path, NULL, &err), GX_OK);
    assert_true(gx_index_has_positions(ix));
    for (uint32_t d = 0; d < c->n_docs; ++d)
        assert_int_equal(gx_index_title_positions(ix, d), collection_title(d));
    for (uint32_t t = 0; t < c->n_terms; ++t) {
        uint32_t *const expected = collection_positions(c, t), n = 1;
        const uint32_t *docids, *positions;
        size_t seen = 0, n_positions;
        gx_postings *p;
        assert_int_equal(gx_postings_open(&p, ix, t, &err), GX_OK);
        while (n) {
            assert_int_equal(gx_postings_next(p, &docids, NULL, &n, &err), GX_OK);
            if (n == 0)
                break;
            assert_int_equal(gx_postings_positions(p, &positions, &n_positions, &err), GX_OK);
            assert_memory_equal(positions, expected + seen, n_positions * sizeof *positions);
            seen += n_positions;
        }
        for (uint32_t i = 0; i < c->lists[t].df; ++i)
            seen -= c->lists[t].tfs[i];
        assert_int_equal(seen, 0);
        gx_postings_close(p);
        free(expected);
    }
    gx_index_close(ix);
}

static void positions_stay(void **state)
{
    (void)state;
    collection *c = blocks(false);
    c->with_positions = true;
    for (uint32_t t = 0; t < c->n_terms; ++t)
        for (uint32_t i = 0; i < c->lists[t].df; ++i)
            if (c->lists[t].tfs[i] > 70000) { /* so that the file is small */
                c->lists[t].tfs[i] -= 69300;
                c->doc_lens[300] -= 69300;
            }
    if (!getenv("GX_TEST_REWRITE"))
        assert_positions(data("positions.gx"), c);
    check_golden("positions.gx", c, "gpuvbyte128", "gpubp128");
}

static void stored_texts_stay(void **state)
{
    (void)state;
    check_golden("text.gx", blocks(true), "gpubp128", "gpubp128");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_format_page_stays),
        cmocka_unit_test(lists_of_several_blocks_stay),
        cmocka_unit_test(impacts_stay),
        cmocka_unit_test(units_stay),
        cmocka_unit_test(positions_stay),
        cmocka_unit_test(stored_texts_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
