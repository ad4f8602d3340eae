#include "query/syntax/parse.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/query_tree_text.h"
#include "tests/support/test.h"

/* What a query is read as, written with all parentheses. */
static const struct {
    const char *text, *read;
} good[] = {
    {"", ""},
    {"  a\tb ", "a b"},
    {"+a -b c", "+a -b c"},
    {"a OR b c", "(a OR b) c"},
    {"a AND b OR c AND d", "((a AND b) OR (c AND d))"},
    {"a AND NOT b", "(a AND NOT b)"},
    {"a OR -b", "(a OR NOT b)"},
    {"NOT a", "-a"},
    {"a^2.5 b^1e1", "a^2.5 b^10"},
    {"(a b)^2 c", "(a b)^2 c"},
    {"((a))", "a"},
    {"+(a OR b)", "+(a OR b)"},
    {"-(a b)", "-(a b)"},
    {"\"a\"", "a"},
    {"\"a b\" +\" c  d \"~3^2", "\"a b\" +\"c d\"~3^2"},
    {"\"a b\"~0 -\"NOT \\\"x (y)\"", "\"a b\" -\"\\NOT \\\"x \\(y\\)\""},
    {"NEAR/3(b a) OR ONEAR/1( a b )^.5", "(NEAR/3(b a) OR ONEAR/1(a b)^0.5)"},
    {"NEAR NEAR\\/3 NEARBY", "NEAR NEAR\\/3 NEARBY"},
    {"\"a\\* b\"", "\"a\\* b\""},
    {"well-known c++", "well\\-known c\\+\\+"},
    {"and or not", "and or not"},
    {" * ", "*"},
    {"\\AND \\( a\\:b", "\\AND \\( a\\:b"},
    {"ANDROID ORACLE", "ANDROID ORACLE"},
    {"a\\: \\:b", "a\\: \\:b"},
    {"NOT NOT a", "-NOT a"},
    {"b --a", "b -NOT a"},
    {"b ---a", "b -NOT NOT a"},
    {"-NOT -a", "-NOT NOT a"},
    {"b AND --a", "(b AND NOT NOT a)"},
    {"b --(c d)", "b -NOT (c d)"},
    {"-(-a) b", "-(-a) b"},
    {"+(-a)", "+(-a)"},
    {"+\\-a +\"-a\"", "+\\-a +\\-a"},
    {"--y:1", "-NOT y:\"1\""},
    /* words that stand for several */
    {"neutrin* +n?t*o -a* (b*)^2", "neutrin* +n?t*o -a* b*^2"},
    {"\xc3\xa4* \\+a\\** what is this?", "\xc3\xa4* \\+a\\** what is this?"},
    {"a~ +b~0 c~1^2 NOT d~2 \\*a~1", "a~ +b~0 c~1^2 -d~2 \\*a~1"},
    {"/a b/ -/(a|b)+\\./ /a\\/b/^2 /\"^[a-z]/", "/a b/ -/(a|b)+\\./ /a\\/b/^2 /\"^[a-z]/"},
    /* signs that are part of a word */
    {"Yahoo! a/b R&D arr[0] f{x} C# #tag", "Yahoo\\! a\\/b R\\&D arr\\[0] f\\{x} C\\# \\#tag"},
    {"a\xe2\x80\x93 it\xe2\x80\x99s", "a\\\xe2\x80\x93 it\xe2\x80\x99s"},
    {"\"!a\" \"b*\" \"/re/\" \"a=b\" \"\xe2\x80\x93\"", "\\!a b\\* \\/re\\/ a\\=b \\\xe2\x80\x93"},
    {"\\!a b\\* \\~c \\?", "\\!a b\\* \\~c \\?"},
    {"cat:\"a*\" cat:a\\* y:[* TO 5] id:@a*", "cat:\"a*\" cat:\"a*\" y:[* TO \"5\"] id:@\"a*\""},
    {"a year:2016 b", "a year:\"2016\" b"},
    {"a AND year:[ 2015 TO\t2019 } OR -b", "((a AND year:[\"2015\" TO \"2019\"}) OR NOT b)"},
    {"+a -cat:cs.IR", "+a -cat:\"cs.IR\""},
    {"+price:<=20 x:>3", "+price:<=\"20\" x:>\"3\""},
    {"(year:{* TO \"*\"])", "year:{* TO \"*\"]"},
    {"(year:1)^2 (year:1)", "(year:\"1\")^2 year:\"1\""},
    {"(a year:1)^2", "(a year:\"1\")^2"},
    {"NOT has:doi", "-has:doi"},
    {"id:x id:@\"a b\"", "id:\"x\" id:@\"a b\""},
    {"cat:\"a \\\" b\"c", "cat:\"a \\\" b\" c"},
    {"year\\:2016 \"year:2016\"", "year\\:2016 year\\:2016"},
    {"a:b:c", "a:\"b:c\""},
    {"cat:cs.* cat:\"cs.*\"", "cat:cs\\.* cat:\"cs.*\""},
};

static const struct {
    const char *text, *says;
} bad[] = {
    {"a \"b* c\" d", "column 5: * stands for letters in the last word of a phrase alone"},
    {"\"a b*\"~2", "column 7: ~ and * do not go together in a phrase"},
    {"\"a b", "column 1: this quote is not closed"},
    {"a \"b c", "column 3: this quote is not closed"},
    {"\"a b\"~", "column 7: a whole number from 0 to 10000 is expected after ~"},
    {"\"a b\"~10001", "column 7: a whole number from 0 to 10000"},
    {"\"a b\"~99999999999", "column 7: a whole number from 0 to 10000"},
    {"\"a b\"~-1", "column 7: a whole number from 0 to 10000"},
    {"NEAR/0(a b)", "column 6: a whole number from 1 to 10000 is expected after NEAR/"},
    {"c ONEAR/x(a b)", "column 9: a whole number from 1 to 10000 is expected after ONEAR/"},
    {"NEAR/3 (a b)", "column 7: ( and words are expected, as in NEAR/5(new york)"},
    {"NEAR/3(a b", "column 7: this ( is not closed"},
    {"NEAR/3(a)", "column 9: a window needs at least two words"},
    {"NEAR/3()", "column 8: a window needs at least two words"},
    {"NEAR/3(a \"b c\")", "column 10: only words stand in a window, not \""},
    {"NEAR/3(a -b)", "column 10: only words stand in a window, not -"},
    {"NEAR/3(a (b))", "column 10: only words stand in a window, not ("},
    {"NEAR/3(a b*)", "column 10: a word in a window stands for itself"},
    {"NEAR/3(a year:1)", "column 10: only words stand in a window, no conditions"},
    {"a b\\-c:d", "column 3: fields cannot be searched; write \\: for a colon in a word"},
    {"year:2016^2", "column 10: a condition adds nothing to the score, and has no weight"},
    {"a year:[2015 TO", "column 16: a bound, or *, is expected"},
    {"a year:[2015 2019]", "column 14: TO is expected, as in [2015 TO 2019]"},
    {"a year:[2015 TO 2019)", "column 21: ] or } is expected, which ends the range"},
    {"a year:\"2015", "column 8: a quote is opened and never closed"},
    {"year:(2015)", "column 6: a value is expected"},
    {"id:@", "column 5: the name of a file is expected"},
    {"+year:1 OR a", "column 1: + cannot be combined with AND and OR"},
    {"(a", "column 1: this ( is not closed; ) is expected"},
    {"a )", "column 3: a word or ( is expected, not )"},
    {"\xc3\xa4\xc3\xb6 )", "column 4: a word or ( is expected, not )"},
    {"a \"b", "column 3: this quote is not closed"},
    {"a \"\"", "column 3: a word is expected between the quotes"},
    {"a AND", "column 6: a word or ( is expected, and the query ends"},
    {"OR a", "column 1: a word or ( is expected before OR"},
    {"a OR AND b", "column 6: a word or ( is expected before AND"},
    {"a ^2", "column 3: a word or ( is expected, not ^"},
    {"a^", "column 3: a finite number above 0 is expected after ^"},
    {"a^0", "column 3: a finite number above 0"},
    {"a^-1", "column 3: a finite number above 0"},
    {"a^inf", "column 3: a finite number above 0"},
    {"a^1e99", "column 3: a finite number above 0"},
    {"a^2^3", "column 4: a blank is expected after the weight"},
    {"()", "column 2: a word is expected between the parentheses"},
    {"a + b", "column 3: a word or ( is expected right after +"},
    {"a - b", "column 3: a word or ( is expected right after -"},
    {"+a OR b", "column 1: + cannot be combined with AND and OR"},
    {"a\\", "column 2: a character is expected after the backslash"},
};

/* What other engines read: a sign for the column and the first words of the message. */
static const struct {
    const char *text, *says;
} elsewhere[] = {
    {"+-a", "column 2: a word or ( is expected right after +, not -"},
    {"b +-a", "column 4: a word or ( is expected right after +, not -"},
    {"+-(a b)", "column 2: a word or ( is expected right after +, not -"},
    {"+-a^2", "column 2: a word or ( is expected right after +, not -"},
    {"+-\"a\"", "column 2: a word or ( is expected right after +, not -"},
    {"+--a", "column 2: a word or ( is expected right after +, not -"},
    {"+-(y:1)", "column 2: a word or ( is expected right after +, not -"},
    {"+-y:1", "column 2: a word or ( is expected right after +, not -"},
    {"(+-a b)", "column 3: a word or ( is expected right after +, not -"},
    {"c -(+-b)", "column 6: a word or ( is expected right after +, not -"},
    {"++a", "column 2: a word or ( is expected, not +"},
    {"-+a", "column 2: a word or ( is expected, not +"},
    {"--+a", "column 3: a word or ( is expected, not +"},
    {"NOT +a", "column 5: a word or ( is expected, not +"},
    {"b -- a", "column 4: a word or ( is expected right after -"},
    {"!a", "column 1: ! is no operator"},
    {"b !a", "column 3: ! is no operator"},
    {"b -!a", "column 4: ! is no operator"},
    {"!(a b)", "column 1: ! is no operator"},
    {"!\"a\"", "column 1: ! is no operator"},
    {"!y:1", "column 1: ! is no operator"},
    {"a ! b", "column 3: ! is no operator"},
    {"a && b", "column 3: & is no operator: write AND"},
    {"a & b", "column 3: & is no operator: write AND"},
    {"a&&b", "column 3: & is no operator: write AND"},
    {"a || b", "column 3: | is no operator: write OR"},
    {"a|b", "column 2: | is no operator: write OR"},
    {"(a | b)", "column 4: | is no operator: write OR"},
    {"b \"a\"*", "column 6: * stands alone"},
    {"* *", "column 1: * stands alone"},
    {"(*)", "column 2: * stands alone"},
    {"+*", "column 2: * stands alone"},
    {"a *", "column 3: * stands alone"},
    {"*:*", "column 1: the name of an attribute has no *, ? or ~"},
    {"a n?:b", "column 4: the name of an attribute has no *, ? or ~"},
    {"?", "column 1: ? stands for a letter of a word"},
    {"a~0.8 b", "column 2: 0, 1 or 2 is expected behind ~"},
    {"a~3", "column 2: 0, 1 or 2 is expected"},
    {"a~b", "column 2: 0, 1 or 2 is expected"},
    {"a~1~2", "column 2: 0, 1 or 2 is expected"},
    {"~a", "column 1: a word is expected right before ~"},
    {"~", "column 1: a word is expected right before ~"},
    {"a*b~1", "column 4: ~ is for words without"},
    {"b ?", "column 3: ? stands for a letter of a word"},
    {"a^2~1", "column 3: a finite number above 0"},
    {"\"a\"~2", "column 4: ~ needs a phrase of at least two words before it"},
    {"-/a", "column 2: a second / is expected"},
    {"b //", "column 3: a regular expression is expected"},
    {"/usr/bin", "column 6: a blank is expected behind the regular expression"},
    {"[a TO b]", "column 1: a range follows the name of an attribute and a colon"},
    {"{a TO b}", "column 1: a range follows the name of an attribute and a colon"},
    {"b -[a TO *}", "column 4: a range follows the name of an attribute and a colon"},
    {"y: 1", "column 3: a value is expected right behind the colon"},
    {"a y: 1", "column 5: a value is expected right behind the colon"},
    {"+a +y: 1", "column 7: a value is expected right behind the colon"},
    {"y:", "column 3: a value is expected right behind the colon"},
    {"y:\t[1 TO 2]", "column 3: a value is expected right behind the colon"},
    {"y :1", "column 3: the name of an attribute is expected right before the colon"},
    {"y : 1", "column 3: the name of an attribute is expected right before the colon"},
    {":", "column 1: the name of an attribute is expected right before the colon"},
    {"y>1", "column 2: a comparison follows the name of an attribute and a colon"},
    {"y<=1", "column 2: a comparison follows the name of an attribute and a colon"},
    {"y=1", "column 2: a comparison follows the name of an attribute and a colon"},
    {"y!=1", "column 3: a comparison follows the name of an attribute and a colon"},
    {"y > 1", "column 3: a comparison follows the name of an attribute and a colon"},
    {"a -y>1", "column 5: a comparison follows the name of an attribute and a colon"},
    {"y>1:2", "column 2: a comparison follows the name of an attribute and a colon"},
    {"y:> 1", "column 4: a value is expected"},
    {"#combine(a b)", "column 1: # is no operator"},
    {"#1(a b)", "column 1: # is no operator"},
    {"b \xe2\x80\x93"
     "a",
     "column 3: this dash is no minus sign"},
    {"b \xe2\x88\x92"
     "a",
     "column 3: this dash is no minus sign"},
    {"\xe2\x80\x9c"
     "a b\xe2\x80\x9d",
     "column 1: this is no quote that the syntax knows"},
    {"cat:a*b", "column 6: * stands for letters at the end of a keyword alone"},
    {"cat:a**", "column 6: * stands for letters at the end"},
    {"cat:>a*", "column 7: * stands for letters at the end"},
    {"cat:*", "column 5: * is no value; has:cat selects"},
    {"+cat:*a", "column 6: * stands for letters at the end"},
    {"y:[a* TO b]", "column 5: * stands for letters at the end"},
    {"y:>*", "column 4: * is no value; has:y selects"},
    {"id:a*", "column 5: * stands for letters at the end"},
    {"id:*", "column 4: * is no id"},
};

static char *read_back(const char *text, size_t len, size_t *n)
{
    gx_query_tree tree;
    gx_error err = {0};
    if (gx_query_parse(&tree, NULL, text, len, &err) != GX_OK)
        fail_msg("'%s': %s", text, err.text);
    char *read = query_tree_text(&tree, n);
    assert_non_null(read);
    gx_query_tree_free(&tree);
    return read;
}

static void queries_are_read_as_the_grammar_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; ++i) {
        size_t n, again;
        char *read = read_back(good[i].text, strlen(good[i].text), &n), *twice = read_back(read, n, &again);
        assert_string_equal(read, good[i].read);
        assert_string_equal(twice, read);
        free(read);
        free(twice);
    }
}

static void mistakes_are_refused_with_their_column(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        gx_query_tree tree;
        gx_error err = {0};
        if (gx_query_parse(&tree, NULL, bad[i].text, strlen(bad[i].text), &err) != GX_EUSAGE)
            fail_msg("'%s' is accepted", bad[i].text);
        if (strncmp(err.text, bad[i].says, strlen(bad[i].says)) != 0)
            fail_msg("'%s': '%s', not '%s'", bad[i].text, err.text, bad[i].says);
    }
}

static void signs_of_other_engines_are_refused_with_their_column(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; ++i) {
        gx_query_tree tree;
        gx_error err = {0};
        if (gx_query_parse(&tree, NULL, elsewhere[i].text, strlen(elsewhere[i].text), &err) != GX_EUSAGE)
            fail_msg("'%s' is accepted", elsewhere[i].text);
        if (strncmp(err.text, elsewhere[i].says, strlen(elsewhere[i].says)) != 0)
            fail_msg("'%s': '%s', not '%s'", elsewhere[i].text, err.text, elsewhere[i].says);
    }
}

/* Bytes of signs, letters and blanks by chance: whatever is read is read as the same from its text. */
static void random_signs_are_read_as_the_text_says(void **state)
{
    static const char bytes[] = "ab1!&|*?~/[]{}<>=#:+-()\"^\\ \xe2\x80\x93\xc3\xa4";
    (void)state;
    uint64_t x = 88172645463325252u;
    uint32_t n_read = 0;
    for (uint32_t i = 0; i < 300000; ++i) {
        char text[12];
        gx_query_tree tree;
        gx_error err = {0};
        size_t len = 1 + (x >> 20) % sizeof text, n, again;
        for (size_t j = 0; j < len; ++j) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            text[j] = bytes[(x >> 30) % (sizeof bytes - 1)];
        }
        if (gx_query_parse(&tree, NULL, text, len, &err) != GX_OK) {
            assert_int_equal(strncmp(err.text, "column ", 7), 0);
            continue;
        }
        gx_query_tree_free(&tree);
        char *read = read_back(text, len, &n), *twice = read_back(read, n, &again);
        assert_string_equal(twice, read);
        free(read);
        free(twice);
        ++n_read;
    }
    assert_true(n_read > 10000);
}

static void refuse_repeated(const char *piece, size_t n, const char *says)
{
    const size_t len = strlen(piece);
    char *text = malloc(n * len + 1);
    gx_query_tree tree;
    gx_error err = {0};
    assert_non_null(text);
    for (size_t i = 0; i < n; ++i)
        memcpy(text + i * len, piece, len);
    assert_int_equal(gx_query_parse(&tree, NULL, text, n * len, &err), GX_EUSAGE);
    if (!strstr(err.text, says))
        fail_msg("'%s' repeated: '%s', not '%s'", piece, err.text, says);
    free(text);
}

static void hostile_queries_are_refused(void **state)
{
    (void)state;
    refuse_repeated("(", 10000, "column 65: the query is nested deeper than 64 levels");
    refuse_repeated("NOT ", 10000, "nested deeper");
    refuse_repeated("-", 10000, "nested deeper");
    refuse_repeated("+(", 1 << 19, "nested deeper");
    refuse_repeated("a ", 1 << 19, "more than 8192 words");
    refuse_repeated("a OR ", 200000, "more than 8192 words");
    refuse_repeated("a^1", 1 << 18, "a finite number");
    refuse_repeated("a:b ", 1 << 18, "more than 8192 words");
    refuse_repeated("a:[* TO *]", 1 << 17, "more than 8192 words");
    refuse_repeated("NOT (a:1 OR ", 10000, "nested deeper");
    refuse_repeated("a:[", 1 << 18, "TO is expected");
    refuse_repeated("a:\"", 1 << 18, "more than 8192 words");
}

/* A megabyte of one letter, with `second` in its second place, is read as so many bytes. */
static void read_megabyte(char second, size_t n_read)
{
    const size_t len = 1 << 20;
    size_t n;
    char *text = malloc(len + 1);
    assert_non_null(text);
    memset(text, 'a', len);
    text[1] = second;
    text[len] = 0;
    char *read = read_back(text, len, &n);
    assert_int_equal(n, n_read);
    free(read);
    free(text);
}

static void a_word_of_a_megabyte_is_a_word(void **state)
{
    (void)state;
    read_megabyte('a', 1 << 20);
}

static void a_value_of_a_megabyte_is_a_value(void **state)
{
    (void)state;
    read_megabyte(':', (1 << 20) + 2); /* in quotes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_are_read_as_the_grammar_says),
        cmocka_unit_test(mistakes_are_refused_with_their_column),
        cmocka_unit_test(signs_of_other_engines_are_refused_with_their_column),
        cmocka_unit_test(random_signs_are_read_as_the_text_says),
        cmocka_unit_test(hostile_queries_are_refused),
        cmocka_unit_test(a_word_of_a_megabyte_is_a_word),
        cmocka_unit_test(a_value_of_a_megabyte_is_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
