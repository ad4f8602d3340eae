#include "index/convert/ciff.h"
#include "tests/support/exchange.h"

#include <unistd.h>

/* ---- messages by hand ---- */

typedef struct message {
    unsigned char bytes[4096];
    size_t n;
} message;

static void put_varint(message *m, uint64_t v)
{
    for (; v >= 128; v >>= 7)
        m->bytes[m->n++] = (unsigned char)(v | 128);
    m->bytes[m->n++] = (unsigned char)v;
}

static void put_number(message *m, unsigned tag, uint64_t v)
{
    put_varint(m, tag << 3);
    put_varint(m, v);
}

static void put_bytes(message *m, unsigned tag, const void *bytes, size_t n)
{
    if (tag)
        put_varint(m, tag << 3 | 2);
    put_varint(m, n);
    memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

static void put_posting(message *m, uint64_t gap, uint64_t tf)
{
    message p = {.n = 0};
    put_number(&p, 1, gap);
    put_number(&p, 2, tf);
    put_bytes(m, 4, p.bytes, p.n);
}

/* Messages, delimited, one after another. */
static void put_message(message *file, const message *m)
{
    put_bytes(file, 0, m->bytes, m->n);
}

static message header(uint64_t version, uint64_t n_lists, uint64_t n_docs)
{
    message h = {.n = 0}, file = {.n = 0};
    put_number(&h, 1, version);
    put_number(&h, 2, n_lists);
    put_number(&h, 3, n_docs);
    put_message(&file, &h);
    return file;
}

static void put_document(message *file, uint64_t docid, const char *name, uint64_t length)
{
    message d = {.n = 0};
    put_number(&d, 1, docid);
    put_bytes(&d, 2, name, strlen(name));
    put_number(&d, 3, length);
    put_message(file, &d);
}

static void put_documents(message *file)
{
    put_document(file, 0, "a", 3);
    put_document(file, 1, "b", 0);
    put_document(file, 2, "c", 9);
}

/* A list of the term with df, and postings {gap, tf} up to one of tf UINT64_MAX. */
static void put_list(message *file, const char *term, uint64_t df, const uint64_t (*postings)[2])
{
    message l = {.n = 0};
    put_bytes(&l, 1, term, strlen(term));
    put_number(&l, 2, df);
    for (; (*postings)[1] != UINT64_MAX; ++postings)
        put_posting(&l, (*postings)[0], (*postings)[1]);
    put_message(file, &l);
}
#define LIST(file, term, df, ...)                                                                                      \
    put_list(file, term, df, (const uint64_t[][2]){__VA_ARGS__ __VA_OPT__(, ){0, UINT64_MAX}})

static void write_file(const message *m)
{
    FILE *f = fopen(in_dir("x.ciff"), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(m->bytes, 1, m->n, f), m->n);
    fclose(f);
}

/* ---- the tests ---- */

static void what_is_exported_comes_back(void **state)
{
    (void)state;
    assert_comes_back(gx_ciff_export, gx_ciff_import);
}

static void the_analyzer_goes_along_unless_another_is_named(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_import_options opt = with_codec();
    const gx_export_options to = replacing();
    collection *c = collection_make(3, 100, 10);
    gx_analyzer *simple;
    assert_int_equal(collection_write(c, in_dir("a.gx"), gx_codec_by_name("gpubp128"), NULL, &err), GX_OK);
    assert_int_equal(gx_analyzer_open(&simple, &(gx_analyzer_options){.name = "simple"}, &err), GX_OK);
    char *json = gx_analyzer_json(simple);
    gx_index *a = open_index("a.gx");
    assert_int_equal(gx_ciff_export(a, in_dir("x.ciff"), &to, &err), GX_OK);
    opt.analyzer = "simple";
    assert_int_equal(gx_ciff_import(in_dir("x.ciff"), in_dir("b.gx"), &opt, &err), GX_OK);
    gx_index *b = open_index("b.gx");
    assert_int_equal(gx_ciff_export(b, in_dir("x.ciff"), &to, &err), GX_OK);
    opt.analyzer = NULL;
    assert_int_equal(gx_ciff_import(in_dir("x.ciff"), in_dir("b.gx"), &opt, &err), GX_OK);
    gx_index_close(b);
    b = open_index("b.gx");
    char *there = gx_analyzer_json(b->analyzer), *before = gx_analyzer_json(a->analyzer);
    assert_string_equal(there, json);
    assert_string_not_equal(there, before);
    free(there);
    free(before);
    free(json);
    gx_analyzer_close(simple);
    gx_index_close(a);
    gx_index_close(b);
    collection_free(c);
}

/* Import x.ciff into b.gx, and say whether that holds impacts. */
static bool imports_impacts(const gx_import_options *opt, const gx_index *same)
{
    gx_error err = {0};
    if (gx_ciff_import(in_dir("x.ciff"), in_dir("b.gx"), opt, &err))
        fail_msg("%s", err.text);
    gx_index *b = open_index("b.gx");
    gx_index_stats stats = {.size = sizeof stats};
    assert_int_equal(gx_index_get_stats(b, &stats), GX_OK);
    assert_same_postings(b, same);
    gx_index_close(b);
    return stats.impacts;
}

static void impacts_go_along_and_are_named_for_other_files(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_import_options opt = with_codec(), named = with_codec();
    const gx_export_options to = replacing();
    named.impacts = true;
    collection *c = collection_make(5, 100, 10);
    for (int impacts = 0; impacts < 2; ++impacts) {
        c->impacts = impacts;
        assert_int_equal(collection_write(c, in_dir("a.gx"), gx_codec_by_name("gpubp128"), NULL, &err), GX_OK);
        gx_index *a = open_index("a.gx");
        assert_int_equal(gx_ciff_export(a, in_dir("x.ciff"), &to, &err), GX_OK);
        assert_int_equal(imports_impacts(&opt, a), impacts);
        assert_true(imports_impacts(&named, a));
        gx_index_close(a);
    }
    collection_free(c);
}

static gx_status import_message(const message *m, gx_error *err)
{
    const gx_import_options opt = with_codec();
    write_file(m);
    unlink(in_dir("b.gx"));
    return gx_ciff_import(in_dir("x.ciff"), in_dir("b.gx"), &opt, err);
}

static void lists_are_read_as_they_are_and_empty_ones_left_out(void **state)
{
    (void)state;
    gx_error err = {0};
    message m = header(1, 3, 3);
    LIST(&m, "none", 0);
    LIST(&m, "one", 1, {2, 7});
    LIST(&m, "two", 2, {0, 5}, {2, 1});
    put_documents(&m);
    if (import_message(&m, &err))
        fail_msg("%s", err.text);
    gx_index *ix = open_index("b.gx");
    uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK];
    assert_int_equal(ix->n_terms, 2);
    const gx_list l = gx_index_list(ix, gx_index_find_term(ix, "two", 3));
    assert_int_equal(gx_list_decode_docids(&l, 0, docids), 2);
    gx_list_decode_tfs(&l, 0, tfs);
    assert_int_equal(docids[0], 0);
    assert_int_equal(docids[1], 2);
    assert_int_equal(tfs[0], 5);
    assert_int_equal(tfs[1], 1);
    assert_int_equal(ix->doc_lens[2], 9);
    assert_int_equal(ix->doc_lens[1], 0);
    gx_index_close(ix);
}

static void fields_may_come_in_any_order_and_unknown_ones_are_passed_over(void **state)
{
    (void)state;
    gx_error err = {0};
    message m = header(1, 1, 3), l = {.n = 0};
    put_posting(&l, 1, 4);
    put_number(&l, 9, 1);
    put_bytes(&l, 10, "what is this", 12);
    put_number(&l, 2, 1);
    put_bytes(&l, 1, "term", 4);
    put_message(&m, &l);
    put_documents(&m);
    if (import_message(&m, &err))
        fail_msg("%s", err.text);
    gx_index *ix = open_index("b.gx");
    assert_int_equal(gx_index_find_term(ix, "term", 4), 0);
    gx_index_close(ix);
}

static void refused(const message *m, const char *reason)
{
    gx_error err = {0};
    const gx_status st = import_message(m, &err);
    if (st != GX_EINPUT || !strstr(err.text, reason) || !strstr(err.text, "x.ciff: byte "))
        fail_msg("status %d: \"%s\" does not say \"%s\"", st, err.text, reason);
    assert_int_equal(access(in_dir("b.gx"), F_OK), -1);
}

static void bad_lists_are_refused_with_their_place(void **state)
{
    (void)state;
    message m;
#define REFUSED(reason, ...)                                                                                           \
    do {                                                                                                               \
        m = header(1, 1, 3);                                                                                           \
        LIST(&m, __VA_ARGS__);                                                                                         \
        put_documents(&m);                                                                                             \
        refused(&m, reason);                                                                                           \
    } while (0)
    REFUSED("byte 15: list 0 of 1 ('one'): docid 3 (difference 3) where one in [0, 3) must stand", "one", 1, {3, 1});
    REFUSED("docid 1 (difference 0) where one in [2, 3) must stand", "one", 2, {1, 1}, {0, 1});
    REFUSED("a docid is -1, where", "one", 2, {1, 1}, {(uint64_t)-1, 1});
    REFUSED("byte 8: list 0 of 1 ('one'): df is 3, but there are 2 postings", "one", 3, {0, 1}, {1, 1});
    REFUSED("byte 15: list 0 of 1 ('one'): a tf of 0", "one", 1, {0, 0});
    REFUSED("a tf is -5, where", "one", 1, {0, (uint64_t)-5});
    REFUSED("a term is not UTF-8", "on\xe9", 1, {0, 1});
    REFUSED("a list without a term", "", 1, {0, 1});
    m = header(1, 2, 3);
    LIST(&m, "two", 1, {0, 1});
    LIST(&m, "one", 1, {0, 1});
    put_documents(&m);
    refused(&m, "byte 22: list 1 of 2 ('one'): it must come behind the list before, 'two'");
    m = header(1, 2, 3);
    LIST(&m, "one", 1, {0, 1});
    LIST(&m, "one", 1, {0, 1});
    put_documents(&m);
    refused(&m, "list 1 of 2 ('one'): it must come behind the list before, 'one'");
}

static void bad_documents_and_ends_are_refused_with_their_place(void **state)
{
    (void)state;
    message good = header(1, 0, 3), m = good;
    put_document(&m, 0, "a", 3);
    put_document(&m, 0, "b", 3);
    refused(&m, "byte 16: document 1 of 3: docid 0 where 1 must stand");
    m = good;
    put_document(&m, 0, "a", (uint64_t)-2);
    refused(&m, "document 0 of 3: doclength is -2");
    m = good;
    put_document(&m, 0, "", 1);
    refused(&m, "a document without a collection_docid");
    m = good;
    put_document(&m, 0, "a", 3);
    refused(&m, "byte 15: document 1 of 3: the file ends here");
    m = good;
    put_documents(&m);
    m.bytes[m.n++] = 0;
    refused(&m, "byte 31: bytes follow the last of 3 documents");
    m = good;
    put_varint(&m, (uint64_t)1 << 40);
    refused(&m, "byte 7: document 0 of 3: a message of 1099511627776 bytes does not fit: 0 are left");
    m = good;
    m.n = 4;
    refused(&m, "byte 0: the header: a message of 6 bytes does not fit: 3 are left");
    m = good;
    m.n = 0;
    refused(&m, "byte 0: the header: the file ends here");
    m = header(2, 0, 3);
    refused(&m, "version 2; only 1 is known");
    m = good;
    memset(m.bytes + m.n, 0xff, 12);
    m.n += 12;
    refused(&m, "not protobuf");
}

static void every_cut_of_a_good_file_is_refused(void **state)
{
    (void)state;
    message m = header(1, 2, 3);
    LIST(&m, "one", 1, {2, 7});
    LIST(&m, "two", 2, {0, 5}, {2, 1});
    put_documents(&m);
    for (size_t n = m.n; n-- > 0;) {
        message cut = m;
        cut.n = n;
        refused(&cut, "");
    }
}

static void an_export_does_not_replace_unasked(void **state)
{
    (void)state;
    gx_error err = {0};
    message m = header(1, 0, 3);
    put_documents(&m);
    assert_int_equal(import_message(&m, &err), GX_OK);
    gx_index *ix = open_index("b.gx");
    assert_int_equal(gx_ciff_export(ix, in_dir("x.ciff"), NULL, &err), GX_EEXISTS);
    assert_int_equal(gx_ciff_export(ix, in_dir("none/x.ciff"), NULL, &err), GX_ENOTFOUND);
    gx_index_close(ix);
}

static void what_ciff_cannot_hold_is_not_exported(void **state)
{
    (void)state;
    gx_error err = {0};
    collection *c = collection_make(1, 10, 2);
    strcpy(c->ids[4], "caf\xe9");
    assert_int_equal(collection_write(c, in_dir("a.gx"), gx_codec_by_name("gpubp128"), NULL, &err), GX_OK);
    gx_index *ix = open_index("a.gx");
    unlink(in_dir("y.ciff"));
    assert_int_equal(gx_ciff_export(ix, in_dir("y.ciff"), NULL, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, "a.gx: the name of document 4 is not UTF-8"));
    assert_int_equal(access(in_dir("y.ciff"), F_OK), -1);
    gx_index_close(ix);
    collection_free(c);
}

static void a_writer_gets_as_many_documents_as_it_was_told(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 3; ++n) {
        gx_error err = {0};
        gx_writer *w;
        gx_writer_options opt = GX_WRITER_OPTIONS;
        opt.force = true;
        opt.docids = gx_codec_by_name("gpubp128");
        opt.n_docs = 2;
        assert_int_equal(gx_writer_open(&w, in_dir("b.gx"), &opt, &err), GX_OK);
        assert_int_equal(gx_writer_add_list(w, "t", 1, 1, (uint32_t[]){1}, (uint32_t[]){1}, &err), GX_OK);
        gx_status st = GX_OK;
        for (uint32_t d = 0; d < n && st == GX_OK; ++d)
            st = gx_writer_add_document(w, &(gx_document){.id = "d", .id_len = 1}, 1, &err);
        if (st == GX_OK)
            st = gx_writer_finish(w, META, &err);
        assert_int_equal(st, n == 2 ? GX_OK : GX_EUSAGE);
        gx_writer_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_exported_comes_back),
        cmocka_unit_test(the_analyzer_goes_along_unless_another_is_named),
        cmocka_unit_test(impacts_go_along_and_are_named_for_other_files),
        cmocka_unit_test(lists_are_read_as_they_are_and_empty_ones_left_out),
        cmocka_unit_test(fields_may_come_in_any_order_and_unknown_ones_are_passed_over),
        cmocka_unit_test(bad_lists_are_refused_with_their_place),
        cmocka_unit_test(bad_documents_and_ends_are_refused_with_their_place),
        cmocka_unit_test(every_cut_of_a_good_file_is_refused),
        cmocka_unit_test(an_export_does_not_replace_unasked),
        cmocka_unit_test(what_ciff_cannot_hold_is_not_exported),
        cmocka_unit_test(a_writer_gets_as_many_documents_as_it_was_told),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
