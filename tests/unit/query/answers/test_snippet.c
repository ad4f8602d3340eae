/* Snippets: the right stretch of a text, and the query's words marked in it. */
#include "engine/api/gpuidx_advanced.h"

#include <unistd.h>

#include "index/analysis/analyzer.h"
#include "index/write/writer.h"
#include "tests/support/test.h"

static char path[64];

/* An index with the default analyzer in which "block" is common and "skip" and "posting" are rare.
 * */
static int open_index(void **state)
{
    const uint32_t all[] = {0, 1, 2, 3}, one[] = {2}, tfs[] = {1, 1, 1, 1};
    gx_writer_options options = GX_WRITER_OPTIONS;
    gx_analyzer_options english = {0};
    gx_analyzer *analyzer;
    gx_writer *w;
    gx_error err = {0};
    char meta[4096], *json;
    static gx_index *ix;
    options.force = true;
    options.docids = gx_codecs[0];
    if (gx_analyzer_open(&analyzer, &english, &err) || gx_writer_open(&w, path, &options, &err))
        return -1;
    for (int d = 0; d < 4; ++d)
        gx_writer_add_document(w, &(gx_document){.id = (const char[]){(char)('a' + d)}, .id_len = 1}, d == 2 ? 3 : 1,
                               &err);
    json = gx_analyzer_json(analyzer);
    snprintf(meta, sizeof meta, "{\"analyzer\":%s}", json);
    if (gx_writer_add_list(w, "block", 5, 4, all, tfs, &err) || gx_writer_add_list(w, "post", 4, 1, one, tfs, &err) ||
        gx_writer_add_list(w, "skip", 4, 1, one, tfs, &err) || gx_writer_finish(w, meta, &err) ||
        gx_index_open(&ix, path, NULL, &err)) {
        print_error("%s\n", err.text);
        return -1;
    }
    gx_writer_close(w);
    gx_analyzer_close(analyzer);
    free(json);
    *state = ix;
    return 0;
}

static int close_index(void **state)
{
    gx_index_close(*state);
    unlink(path);
    return 0;
}

/* The snippet with its marks in brackets. */
static const char *snippet_of(const gx_index *ix, const char *query, const char *text, size_t len, uint32_t max_words)
{
    static char out[4096];
    gx_highlighter *h;
    gx_snippet s;
    const gx_query q = GX_TEXT_QUERY(query, strlen(query));
    assert_int_equal(gx_highlighter_open(&h, ix, &q, NULL), GX_OK);
    assert_int_equal(gx_highlighter_snippet(h, text, len, max_words, &s, NULL), GX_OK);
    gx_highlighter_close(h);
    assert_true(s.begin <= s.end && s.end <= len);
    char *p = out;
    size_t at = s.begin;
    for (uint32_t i = 0; i < s.n_marks; ++i) {
        assert_true(s.marks[i].begin >= at && s.marks[i].begin < s.marks[i].end && s.marks[i].end <= s.end);
        p += sprintf(p, "%.*s[%.*s]", (int)(s.marks[i].begin - at), text + at, (int)(s.marks[i].end - s.marks[i].begin),
                     text + s.marks[i].begin);
        at = s.marks[i].end;
    }
    sprintf(p, "%.*s", (int)(s.end - at), text + at);
    return out;
}

#define SNIPPET(query, text, max_words) snippet_of(*state, query, text, strlen(text), max_words)

static void a_short_text_is_shown_whole(void **state)
{
    assert_string_equal(SNIPPET("skipping blocks", "Skip the block's head.", 30), "[Skip] the [block's] head.");
}

static void words_are_marked_as_the_analyzer_sees_them(void **state)
{
    assert_string_equal(SNIPPET("posting", "POSTINGS, (posted) and post-box", 30), "[POSTINGS], ([posted]) and "
                                                                                   "[post]-box");
}

static void without_a_match_the_text_begins(void **state)
{
    assert_string_equal(SNIPPET("skip", "  one two three four", 3), "one two three");
    assert_string_equal(SNIPPET("", "one two three four", 2), "one two");
    assert_string_equal(SNIPPET("skip", "", 2), "");
    assert_string_equal(SNIPPET("skip", " \n ", 2), "");
}

static void the_window_with_most_different_terms_wins(void **state)
{
    assert_string_equal(SNIPPET("skip posting", "skip skip skip a b c d e f g h i j posting x skip", 3),
                        "[posting] x [skip]");
}

static void a_rare_term_outweighs_a_common_one(void **state)
{
    assert_string_equal(SNIPPET("block skip", "a block b c d e f g skip h", 1), "[skip]");
}

static void the_earliest_of_equal_windows_wins(void **state)
{
    assert_string_equal(SNIPPET("skip", "a b c skip one d e f g skip two", 2), "[skip] one");
}

static void words_before_are_shown_but_not_another_sentence(void **state)
{
    assert_string_equal(SNIPPET("skip", "Some other sentence. We now skip over all that follows here", 5),
                        "We now [skip] over all");
    assert_string_equal(SNIPPET("skip", "There is no other sentence yet skip over all that", 5), "sentence yet "
                                                                                                 "[skip] over all");
}

static void text_without_blanks_is_cut_between_characters(void **state)
{
    char text[6001];
    for (int i = 0; i < 2000; ++i)
        memcpy(text + 3 * i, "\xe4\xb8\xad", 4);
    const char *s = snippet_of(*state, "skip", text, 6000, 30);
    assert_true(strlen(s) > 0 && strlen(s) <= GX_SNIPPET_BYTES);
    assert_int_equal(strlen(s) % 3, 0);
    memcpy(text + 3000, " skip ", 6); /* replaces two characters */
    s = snippet_of(*state, "skip", text, 6000, 30);
    assert_non_null(strstr(s, "[skip]"));
    assert_int_equal((strlen(s) - 8) % 3, 0);
}

static void bytes_that_are_not_text_do_no_harm(void **state)
{
    const char text[] = "\xff\xfe\0\0 skip \x80\x80\x80";
    assert_non_null(strstr(snippet_of(*state, "skip", text + 4, sizeof text - 5, 30), "[skip]"));
    snippet_of(*state, "\xff\xfe\x80", text, sizeof text - 1, 1);
}

static void terms_are_counted_once_and_unknown_ones_named(void **state)
{
    gx_highlighter *h;
    const char query[] = "skip skipping of the unheard block Unheard";
    const gx_query q = GX_TEXT_QUERY(query, strlen(query));
    assert_int_equal(gx_highlighter_open(&h, *state, &q, NULL), GX_OK);
    assert_int_equal(gx_highlighter_n_terms(h), 3);
    assert_int_equal(gx_highlighter_n_unknown(h), 1);
    assert_string_equal(gx_highlighter_unknown(h, 0), "unheard");
    gx_highlighter_close(h);
}

static void queries_of_every_kind_are_marked(void **state)
{
    const char text[] = "Skipping blocks", boolean[] = "skip OR (unheard -block)", wrong[] = "(skip";
    const gx_weighted_term terms[] = {{"skip", 4, 2.0f}, {"Block", 5, 1.0f}};
    gx_query queries[] = {GX_TEXT_QUERY(boolean, sizeof boolean - 1), GX_TEXT_QUERY(NULL, 0)};
    queries[0].kind = GX_QUERY_BOOLEAN;
    queries[1].kind = GX_QUERY_TERMS;
    queries[1].terms = terms; /* as they are: the index has no "Block" */
    queries[1].n_terms = 2;
    gx_highlighter *h;
    gx_error err = {0};
    for (int i = 0; i < 2; ++i) {
        gx_snippet s;
        assert_int_equal(gx_highlighter_open(&h, *state, &queries[i], &err), GX_OK);
        assert_int_equal(gx_highlighter_n_terms(h), 2);
        assert_string_equal(gx_highlighter_unknown(h, 0), i ? "Block" : "unheard");
        assert_int_equal(gx_highlighter_snippet(h, text, sizeof text - 1, 30, &s, &err), GX_OK);
        assert_int_equal(s.n_marks, 1);
        assert_int_equal(s.marks[0].end, 8);
        gx_highlighter_close(h);
    }
    queries[0].text = wrong;
    queries[0].len = sizeof wrong - 1;
    assert_int_equal(gx_highlighter_open(&h, *state, &queries[0], &err), GX_EUSAGE);
    assert_null(h);
}

static void a_text_full_of_matches_stays_within_bounds(void **state)
{
    char *text = malloc(5 * 100000 + 1);
    for (int i = 0; i < 100000; ++i)
        memcpy(text + 5 * i, "skip ", 6);
    const char *s = snippet_of(*state, "skip", text, 5 * 100000, 80);
    assert_memory_equal(s, "[skip] [skip] ", 14);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_text_is_shown_whole),
        cmocka_unit_test(words_are_marked_as_the_analyzer_sees_them),
        cmocka_unit_test(without_a_match_the_text_begins),
        cmocka_unit_test(the_window_with_most_different_terms_wins),
        cmocka_unit_test(a_rare_term_outweighs_a_common_one),
        cmocka_unit_test(the_earliest_of_equal_windows_wins),
        cmocka_unit_test(words_before_are_shown_but_not_another_sentence),
        cmocka_unit_test(text_without_blanks_is_cut_between_characters),
        cmocka_unit_test(bytes_that_are_not_text_do_no_harm),
        cmocka_unit_test(terms_are_counted_once_and_unknown_ones_named),
        cmocka_unit_test(queries_of_every_kind_are_marked),
        cmocka_unit_test(a_text_full_of_matches_stays_within_bounds),
    };
    snprintf(path, sizeof path, "/tmp/gx-test-snippet-%d.gx", (int)getpid());
    return cmocka_run_group_tests(tests, open_index, close_index);
}
