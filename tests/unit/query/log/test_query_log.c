#include <inttypes.h>
#include <unistd.h>

#include "engine/random.h"
#include "query/log/query_log.h"
#include "tests/support/test.h"

static const char *log_path(void)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/gpuidx-test-log-%d", (int)getpid());
    return path;
}

static gx_log *open_bytes(const char *bytes, size_t len, gx_log_form form, gx_log_encoding encoding)
{
    FILE *f = fopen(log_path(), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
    gx_log *log;
    gx_error err = {0};
    if (gx_log_open(&log, log_path(), &(gx_log_options){.form = form, .encoding = encoding}, &err) != GX_OK)
        fail_msg("%s", err.text);
    return log;
}

static gx_log *open_text(const char *text)
{
    return open_bytes(text, strlen(text), GX_LOG_GUESS, GX_LOG_AUTO);
}

static void expect(gx_log *log, const char *id, const char *text)
{
    gx_log_query q;
    gx_error err = {0};
    bool more;
    if (gx_log_next(log, &q, &more, &err) != GX_OK)
        fail_msg("%s", err.text);
    assert_true(more);
    assert_string_equal(q.id, id);
    assert_string_equal(q.text, text);
    assert_int_equal(q.id_len, strlen(id));
    assert_int_equal(q.len, strlen(text));
}

static void expect_end(gx_log *log)
{
    gx_log_query q;
    gx_error err = {0};
    bool more;
    assert_int_equal(gx_log_next(log, &q, &more, &err), GX_OK);
    assert_false(more);
    gx_log_close(log);
}

static void expect_refusal(gx_log *log, const char *where, const char *why)
{
    gx_log_query q;
    gx_error err = {0};
    bool more;
    assert_int_equal(gx_log_next(log, &q, &more, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, log_path()));
    assert_non_null(strstr(err.text, where));
    assert_non_null(strstr(err.text, why));
}

static void numbered_queries_are_an_efficiency_log(void **state)
{
    (void)state;
    gx_log *log = open_text("1:pierson s twin lakes\n20:time 10:30 am\n3:\n");
    assert_int_equal(gx_log_get_form(log), GX_LOG_EFFICIENCY);
    expect(log, "1", "pierson s twin lakes");
    expect(log, "20", "time 10:30 am");
    expect(log, "3", "");
    assert_int_equal(gx_log_get_counts(log).empty, 1);
    expect_end(log);
}

static void plain_lines_are_queries_named_by_their_line_and_blank_ones_passed_over(void **state)
{
    (void)state;
    gx_log *log = open_text("land rover\n\n  \nhsn");
    assert_int_equal(gx_log_get_form(log), GX_LOG_LINES);
    expect(log, "1", "land rover");
    expect(log, "4", "hsn");
    assert_int_equal(gx_log_get_counts(log).queries, 2);
    assert_int_equal(gx_log_get_counts(log).empty, 0);
    assert_int_equal(gx_log_get_counts(log).blank, 2);
    expect_end(log);
}

static void one_line_without_a_number_makes_all_plain(void **state)
{
    (void)state;
    gx_log *log = open_text("1:30 pm\nhsn\n");
    assert_int_equal(gx_log_get_form(log), GX_LOG_LINES);
    expect(log, "1", "1:30 pm");
    gx_log_close(log);
}

static void expect_unsure(const char *text, const char *why)
{
    FILE *f = fopen(log_path(), "wb");
    gx_log *log;
    gx_error err = {0};
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(gx_log_open(&log, log_path(), NULL, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, why));
    assert_non_null(strstr(err.text, "cannot be told"));
    assert_null(strstr(err.text, "--"));
}

static void a_log_whose_lines_disagree_is_refused(void **state)
{
    (void)state;
    expect_unsure("1:a\n2:b\nc\n", ":3: this line has no number");
    expect_unsure("1\ta\n2\tb\n3 c\n", ":3: this line has no tab");
    expect_unsure("# topics\n<topics>\n", ":2: it begins with a tag");
    expect_unsure("[{\"id\":1}]\n", ":1: it begins with a bracket");
}

static void million_queries_have_a_priority(void **state)
{
    (void)state;
    gx_log *log = open_text("20001:1:obama family tree\n20002:4:a: b\n");
    assert_int_equal(gx_log_get_form(log), GX_LOG_MILLION);
    expect(log, "20001", "obama family tree");
    expect(log, "20002", "a: b");
    expect_end(log);
    log = open_bytes("1:2\n2:1:b\n", 10, GX_LOG_MILLION, GX_LOG_AUTO);
    expect_refusal(log, ":1:", "number:priority:text");
    expect(log, "2", "b");
    expect_end(log);
}

static void documents_and_smart_are_logs_too(void **state)
{
    (void)state;
    gx_log *log = open_text("<DOC>\n<DOCNO> 1 </DOCNO>\n\n\n What is TSS, an\noperating \xe9?\n \n</DOC>\n"
                            "<DOC>\n<DOCNO> 2 </DOCNO>\n Prieve\n</DOC>\n");
    gx_log_query q;
    gx_error err = {0};
    bool more;
    assert_int_equal(gx_log_get_form(log), GX_LOG_DOCS);
    assert_int_equal(gx_log_next(log, &q, &more, &err), GX_OK);
    assert_string_equal(q.id, "1");
    assert_non_null(strstr(q.text, "What is TSS, an operating \xc3\xa9?"));
    assert_int_equal(gx_log_next(log, &q, &more, &err), GX_OK);
    assert_string_equal(q.id, "2");
    assert_int_equal(q.line, 9);
    assert_int_equal(gx_log_get_counts(log).latin1, 1);
    expect_end(log);
    log = open_text(".I 001\n.W\nwhat similarity\nlaws .\n.I 4\n.A\nSalton\n.W\n.W is text, too\n.N\nnot this\n");
    assert_int_equal(gx_log_get_form(log), GX_LOG_SMART);
    expect(log, "001", "what similarity laws .");
    expect(log, "4", "Salton .W is text, too");
    expect_end(log);
}

static gx_log *open_with(const char *text, const gx_log_options *opt)
{
    gx_log *log;
    gx_error err = {0};
    gx_log_close(open_text(text));
    if (gx_log_open(&log, log_path(), opt, &err) != GX_OK)
        fail_msg("%s", err.text);
    return log;
}

static void columns_are_named_by_a_header_or_by_options(void **state)
{
    (void)state;
    gx_log *log = open_text("url\tquery\tqid\nx\tland rover\t17\n");
    expect(log, "17", "land rover");
    assert_int_equal(gx_log_get_counts(log).header, 1);
    expect_end(log);
    log = open_with("qid\tquery\tmore\n17\tland\trover\tx\n", &(gx_log_options){.columns = "id,text,text"});
    expect(log, "17", "land rover");
    assert_int_equal(gx_log_get_counts(log).header, 1);
    expect_end(log);
    log = open_with("a\tb\tc\nd\te\n", &(gx_log_options){.columns = "-,text,id"});
    expect(log, "c", "b");
    expect_refusal(log, ":2:", "too few columns");
    expect_end(log);
    /* Exports of web search logs: a head that names no id. */
    static const char *const heads[] = {"Query\tUrl\tCount\nskip\tx\t3\n", "Timestamp\tUser\tQuery\nx\tu1\tskip\n",
                                        "AnonID\tQuery\tQueryTime\n142\tskip\tx\n"};
    static const char *const columns[] = {"text,id", "-,id,text", "id,text,-"}, *const ids[] = {"x", "u1", "142"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; ++i) {
        gx_log_query q;
        gx_error err = {0};
        bool more;
        log = open_text(heads[i]);
        assert_int_equal(gx_log_next(log, &q, &more, &err), GX_EUSAGE);
        assert_non_null(strstr(err.text, ":1: this line names a column of texts, but none of ids"));
        gx_log_close(log);
        log = open_with(heads[i], &(gx_log_options){.columns = columns[i]});
        expect(log, ids[i], "skip");
        assert_int_equal(gx_log_get_counts(log).header, 1);
        expect_end(log);
    }
    log = open_text("1\tquery\n2\ttext\n");
    expect(log, "1", "query");
    expect(log, "2", "text");
    expect_end(log);
    log = open_text("1136962\tquery\tD1\turl\n");
    expect(log, "1136962", "query");
    expect_end(log);
    static const char *const bad[] = {"id", "-", "id,text,url", "id,id,text", "id,text,filter,filter", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        gx_error err = {0};
        assert_int_equal(gx_log_open(&log, log_path(), &(gx_log_options){.columns = bad[i]}, &err), GX_EUSAGE);
    }
}

static void expect_filter(gx_log *log, const char *text, const char *filter)
{
    gx_log_query q;
    bool more;
    gx_error err = {0};
    if (gx_log_next(log, &q, &more, &err) != GX_OK)
        fail_msg("%s", err.text);
    assert_true(more);
    assert_int_equal(q.len, strlen(text));
    assert_memory_equal(q.text, text, q.len);
    assert_int_equal(q.filter_len, strlen(filter));
    assert_memory_equal(q.filter_len ? q.filter : "", filter, q.filter_len);
}

static void a_query_may_have_a_filter(void **state)
{
    (void)state;
    gx_log *log =
        open_text("qid\tquery\tfilter\n1\tland\tyear:[1 TO 2]\n2\trover\t \n3\tseries\n4\tx\ta:\"b c\"\tmore\n");
    expect_filter(log, "land", "year:[1 TO 2]");
    expect_filter(log, "rover", "");
    expect_filter(log, "series", "");
    expect_filter(log, "x", "a:\"b c\"");
    assert_int_equal(gx_log_get_counts(log).filtered, 2);
    assert_int_equal(gx_log_get_counts(log).more_columns, 1);
    expect_end(log);
    log = open_with("y:1\t7\tland\n", &(gx_log_options){.columns = "filter,id,text"});
    expect_filter(log, "land", "y:1");
    expect_end(log);
    log =
        open_text("{\"query\": \"a\", \"filter\": \"y:1\"}\n{\"query\": \"b\"}\n{\"query\": \"c\", \"filter\": null}\n"
                  "{\"query\": \"d\", \"filter\": 3}\n");
    expect_filter(log, "a", "y:1");
    expect_filter(log, "b", "");
    expect_filter(log, "c", "");
    expect_refusal(log, ":4:", "filter is no string");
    expect_end(log);
}

static void comments_are_passed_over(void **state)
{
    (void)state;
    gx_log *log = open_text("#qid text\n1\ta\n#2\tb\n");
    expect(log, "1", "a");
    expect_end(log);
    log = open_text("# by hand\n#\n#1 hits\nb\n");
    expect(log, "3", "#1 hits");
    expect(log, "4", "b");
    assert_int_equal(gx_log_get_counts(log).comments, 2);
    expect_end(log);
}

static void ids_may_be_asked_to_be_unique(void **state)
{
    (void)state;
    static char text[1 << 17];
    size_t n = 0;
    for (unsigned i = 0; i < 9000; ++i)
        n += (size_t)snprintf(text + n, sizeof text - n, "%u\tx\n", i == 8999 ? 7 : i);
    gx_log *log = open_with(text, &(gx_log_options){.unique = true});
    gx_log_query q;
    gx_error err = {0};
    bool more;
    for (unsigned i = 0; i < 8999; ++i)
        assert_int_equal(gx_log_next(log, &q, &more, &err), GX_OK);
    expect_refusal(log, ":9000:", "an earlier query has the same id");
    expect_end(log);
    log = open_text("1\ta\n1\tb\n");
    expect(log, "1", "a");
    expect(log, "1", "b");
    assert_int_equal(gx_log_get_counts(log).repeated_ids, 1);
    expect_end(log);
}

/* Of ids that follow the first GX_LOG_KEPT_IDS, those are counted that are among these. */
static void repeated_ids_are_counted(void **state)
{
    (void)state;
    const uint32_t n = 3 * GX_LOG_KEPT_IDS;
    char *text = malloc(n * 16ull);
    size_t len = 0;
    uint64_t seed = 65536, want = 0;
    bool *kept = calloc(n, sizeof *kept);
    print_message("seed %" PRIu64 "\n", seed);
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t id = (uint32_t)(gx_random_next(&seed) % n);
        want += kept[id];
        kept[id] |= i < GX_LOG_KEPT_IDS;
        len += (size_t)sprintf(text + len, "%u:x\n", id);
    }
    gx_log *log = open_text(text);
    gx_log_query q;
    gx_error err = {0};
    for (bool more = true; more;)
        assert_int_equal(gx_log_next(log, &q, &more, &err), GX_OK);
    assert_int_equal(gx_log_get_counts(log).queries, n);
    assert_int_equal(gx_log_get_counts(log).repeated_ids, want);
    gx_log_close(log);
    free(text);
    free(kept);
}

static void fields_of_topics_are_chosen(void **state)
{
    (void)state;
    static const char text[] = "<top>\n<num> Number: 701\n\n<title> U.S. oil\n\n<desc> Description:\nDescribe\n"
                               "the history\n\n<narr> Narrative: Relevant\n</top>\n<top><num>2<title>b</top>\n";
    gx_log *log = open_with(text, &(gx_log_options){.topic_fields = "narr,title"});
    expect(log, "701", "Relevant U.S. oil");
    expect(log, "2", "b");
    expect_end(log);
    log = open_with(text, &(gx_log_options){.topic_fields = "desc"});
    expect(log, "701", "Describe the history");
    expect_refusal(log, ":12:", "the topic has no <desc>");
    expect_end(log);
    gx_error err = {0};
    assert_int_equal(gx_log_open(&log, log_path(), &(gx_log_options){.topic_fields = "title,title"}, &err), GX_EUSAGE);
    assert_int_equal(gx_log_open(&log, log_path(), &(gx_log_options){.topic_fields = "num"}, &err), GX_EUSAGE);
}

static void tabs_part_id_and_text(void **state)
{
    (void)state;
    gx_log *log = open_text("q-1\tland rover\ttd5\r\n\r\n7 \t\r\n");
    assert_int_equal(gx_log_get_form(log), GX_LOG_TSV);
    expect(log, "q-1", "land rover");
    expect(log, "7", "");
    assert_int_equal(gx_log_get_counts(log).more_columns, 1);
    assert_int_equal(gx_log_get_counts(log).empty, 1);
    assert_int_equal(gx_log_get_counts(log).blank, 1);
    expect_end(log);
}

static void objects_name_their_fields_in_several_ways(void **state)
{
    (void)state;
    gx_log *log = open_text("{\"id\": 12, \"query\": \"land rover\"}\n"
                            "\n"
                            "{\"_id\": \"a\", \"text\": \"caf\\u00e9\\u0000bar\", \"metadata\": {}}\n"
                            "{\"title\": \"no id\"}\n");
    assert_int_equal(gx_log_get_form(log), GX_LOG_JSONL);
    expect(log, "12", "land rover");
    expect(log, "a", "caf\xc3\xa9 bar");
    expect(log, "4", "no id");
    expect_end(log);
}

static void topics_give_number_and_title(void **state)
{
    (void)state;
    gx_log *log = open_text("<top>\n<num> Number: 751\n\n<title> Scrabble Players\n\n<desc> "
                            "Description:\nGive.\n</top>\n"
                            "\n<top>\n<num> Number: 052\n<title> Topic:\nDam removal,\n  a < b\n<desc> Description: "
                            "x\n</top>\n"
                            "<TOP><num>3</num><title>on one line</title></TOP>\n");
    assert_int_equal(gx_log_get_form(log), GX_LOG_TOPICS);
    expect(log, "751", "Scrabble Players");
    expect(log, "052", "Dam removal, a < b");
    expect(log, "3", "on one line");
    expect_end(log);
}

static void broken_topics_are_refused_and_the_next_is_read(void **state)
{
    (void)state;
    gx_log *log = open_text("<top>\n<title> no number\n</top>\n<top>\n<num> 2\n</top>\n<top>\n<num> 3 <title> lost\n"
                            "<top>\n<num> 4\n<title> good\n</top>\n<top>\n<num> 5\n");
    expect_refusal(log, ":1:", "<num>");
    expect_refusal(log, ":4:", "<title>");
    expect_refusal(log, ":7:", "</top>");
    expect(log, "4", "good");
    expect_refusal(log, ":13:", "</top>");
    assert_int_equal(gx_log_get_counts(log).bad, 4);
    expect_end(log);
}

static void bad_lines_are_refused_by_name_and_the_next_is_read(void **state)
{
    (void)state;
    static const char text[] = "1:a\nb\n :c\nx y:d\n5:e\n";
    gx_log *log = open_bytes(text, strlen(text), GX_LOG_EFFICIENCY, GX_LOG_AUTO);
    expect(log, "1", "a");
    expect_refusal(log, ":2:", "\":\"");
    expect_refusal(log, ":3:", "empty");
    expect_refusal(log, ":4:", "white space");
    expect(log, "5", "e");
    expect_end(log);
    log = open_text("{\"query\": \"a\"}\n{\"query\": \n{\"id\": \"x\"}\n{\"id\": [], \"query\": \"a\"}\n[1]\n");
    expect(log, "1", "a");
    expect_refusal(log, ":2:", "JSON");
    expect_refusal(log, ":3:", "query");
    expect_refusal(log, ":4:", "id");
    expect_refusal(log, ":5:", "query");
    expect_end(log);
}

static void lines_that_are_not_utf8_are_latin1(void **state)
{
    (void)state;
    static const char text[] = "d\xed"
                               "a de los\ncaf\xc3\xa9\nit\x92s\n";
    gx_log *log = open_text(text);
    expect(log, "1",
           "d\xc3\xad"
           "a de los");
    expect(log, "2", "caf\xc3\xa9");
    expect(log, "3", "it\xe2\x80\x99s");
    assert_int_equal(gx_log_get_counts(log).latin1, 2);
    expect_end(log);
    log = open_bytes(text, strlen(text), GX_LOG_GUESS, GX_LOG_LATIN1);
    expect(log, "1",
           "d\xc3\xad"
           "a de los");
    expect(log, "2", "caf\xc3\x83\xc2\xa9");
    gx_log_close(log);
    log = open_bytes(text, strlen(text), GX_LOG_GUESS, GX_LOG_UTF8);
    expect(log, "1",
           "d\xef\xbf\xbd"
           "a de los");
    expect(log, "2", "caf\xc3\xa9");
    assert_int_equal(gx_log_get_counts(log).invalid, 1);
    gx_log_close(log);
}

static void a_mark_nuls_and_a_missing_newline_do_no_harm(void **state)
{
    (void)state;
    gx_log *log = open_bytes("\xef\xbb\xbf"
                             "1:a\0b\r\n2:c",
                             13, GX_LOG_GUESS, GX_LOG_AUTO);
    expect(log, "1", "a b");
    expect(log, "2", "c");
    assert_int_equal(gx_log_get_counts(log).nuls, 1);
    expect_end(log);
    expect_end(open_text(""));
    expect_end(open_text("\xef\xbb\xbf"));
}

static void long_queries_pass_and_longer_ones_are_refused(void **state)
{
    (void)state;
    const size_t lens[] = {64u << 10, GX_LOG_MAX_LINE - 2, GX_LOG_MAX_LINE + 1};
    for (size_t i = 0; i < 3; ++i) {
        char *text = malloc(lens[i] + 8);
        assert_non_null(text);
        memcpy(text, "1:", 2);
        memset(text + 2, 'x', lens[i]);
        memcpy(text + 2 + lens[i], "\n2:b\n", 5);
        gx_log *log = open_bytes(text, lens[i] + 7, GX_LOG_GUESS, GX_LOG_AUTO);
        gx_log_query q;
        gx_error err = {0};
        bool more;
        const gx_status st = gx_log_next(log, &q, &more, &err);
        assert_int_equal(st, i < 2 ? GX_OK : GX_EINPUT);
        if (i < 2)
            assert_int_equal(q.len, lens[i]);
        else
            assert_non_null(strstr(err.text, ":1:"));
        if (i == 2)
            assert_null(strstr(err.text, "--"));
        expect(log, "2", "b");
        expect_end(log);
        free(text);
    }
}

static void a_missing_file_is_not_found(void **state)
{
    (void)state;
    gx_log *log;
    gx_error err = {0};
    assert_int_equal(gx_log_open(&log, "/nonexistent/log", NULL, &err), GX_ENOTFOUND);
    assert_null(log);
    assert_int_equal(gx_log_open(&log, "/", NULL, &err), GX_EIO);
    FILE *f = fopen(log_path(), "wb");
    fwrite("\xff\xfe"
           "a\0",
           1, 4, f);
    fclose(f);
    assert_int_equal(gx_log_open(&log, log_path(), NULL, &err), GX_EINPUT);
}

static void forms_and_encodings_have_names(void **state)
{
    (void)state;
    gx_log_form form;
    gx_log_encoding encoding;
    assert_true(gx_log_form_find("topics", &form) && form == GX_LOG_TOPICS);
    assert_false(gx_log_form_find("xml", &form));
    assert_string_equal(gx_log_form_name(GX_LOG_EFFICIENCY), "efficiency");
    assert_true(gx_log_encoding_find("latin1", &encoding) && encoding == GX_LOG_LATIN1);
    assert_false(gx_log_encoding_find("ebcdic", &encoding));
}

static int forget_file(void **state)
{
    (void)state;
    return remove(log_path());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbered_queries_are_an_efficiency_log),
        cmocka_unit_test(plain_lines_are_queries_named_by_their_line_and_blank_ones_passed_over),
        cmocka_unit_test(one_line_without_a_number_makes_all_plain),
        cmocka_unit_test(tabs_part_id_and_text),
        cmocka_unit_test(a_log_whose_lines_disagree_is_refused),
        cmocka_unit_test(million_queries_have_a_priority),
        cmocka_unit_test(documents_and_smart_are_logs_too),
        cmocka_unit_test(columns_are_named_by_a_header_or_by_options),
        cmocka_unit_test(a_query_may_have_a_filter),
        cmocka_unit_test(comments_are_passed_over),
        cmocka_unit_test(ids_may_be_asked_to_be_unique),
        cmocka_unit_test(repeated_ids_are_counted),
        cmocka_unit_test(fields_of_topics_are_chosen),
        cmocka_unit_test(objects_name_their_fields_in_several_ways),
        cmocka_unit_test(topics_give_number_and_title),
        cmocka_unit_test(broken_topics_are_refused_and_the_next_is_read),
        cmocka_unit_test(bad_lines_are_refused_by_name_and_the_next_is_read),
        cmocka_unit_test(lines_that_are_not_utf8_are_latin1),
        cmocka_unit_test(a_mark_nuls_and_a_missing_newline_do_no_harm),
        cmocka_unit_test(long_queries_pass_and_longer_ones_are_refused),
        cmocka_unit_test(a_missing_file_is_not_found),
        cmocka_unit_test(forms_and_encodings_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, forget_file);
}
