/* Tags, comments and entities out of pages. */
#include "index/corpus/formats/html.h"

#include "engine/random.h"
#include "tests/support/test.h"

/* The text of a page; its title, if html, goes to *title. Both live until the next call. */
static const char *text_of(const char *page, bool html, const char **title)
{
    static char text[1 << 12], heading[1 << 12];
    gx_scratch words = {0};
    gx_span span = {text, strlen(page)};
    assert_true(span.n < sizeof text);
    memcpy(text, page, span.n);
    assert_true(gx_html_to_text(&span, html ? &words : NULL, html));
    assert_ptr_equal(span.p, text); /* in place, and never longer */
    assert_true(span.n <= strlen(page));
    text[span.n] = 0;
    if (html) {
        if (words.n)
            memcpy(heading, words.p, words.n);
        heading[words.n] = 0;
    }
    free(words.p);
    if (title)
        *title = heading;
    return text;
}

static void a_tag_becomes_a_space(void **state)
{
    (void)state;
    assert_string_equal(text_of("one<p>two</p>three", true, NULL), "one two three");
    assert_string_equal(text_of("a<br/>b<HR class=x>c", true, NULL), "a b c");
    assert_string_equal(text_of("a<!DOCTYPE html>b<?xml version='1.0'?>c", true, NULL), "abc");
    assert_string_equal(text_of("a<!DOCTYPE doc>b<?xml version='1.0'?>c", false, NULL), "a b c");
    assert_string_equal(text_of("", true, NULL), "");
}

static void an_inline_tag_does_not_cut_a_word(void **state)
{
    (void)state;
    assert_string_equal(text_of("H<sub>2</sub>O and w<B>or</B>d", true, NULL), "H2O and word");
    assert_string_equal(text_of("H<sub>2</sub>O", false, NULL), "H 2 O"); /* SGML has no inline tags */
    assert_string_equal(text_of("a<bold>b<b-x>c<bdi x=1>d</bdi>", true, NULL), "a b cd");
    assert_string_equal(text_of("x<time>y</time>z<mark>a</mark> <label>re</label>set", true, NULL), "xyza reset");
}

static void scripts_styles_and_comments_are_left_out(void **state)
{
    (void)state;
    assert_string_equal(text_of("a<script>if (x<y) z();</script>b", true, NULL), "a  b");
    assert_string_equal(text_of("a<STYLE>p > q {}</sTyLe>b", true, NULL), "a  b");
    assert_string_equal(text_of("a<!-- <p>x</p> -->b", true, NULL), "ab");
    assert_string_equal(text_of("a<!-- <p>x</p> -->b", false, NULL), "a b");
    assert_string_equal(text_of("a<script>never closed", true, NULL), "a ");
    assert_string_equal(text_of("a<script>x</script>b", false, NULL), "a x b");
}

static void the_first_title_is_apart(void **state)
{
    (void)state;
    const char *title;
    assert_string_equal(text_of("<title> Of\n mice &amp;  men </title>text<title>two</title>", true, &title),
                        "  text two ");
    assert_string_equal(title, "Of mice & men");
    text_of("no title", true, &title);
    assert_string_equal(title, "");
    text_of("<title>never closed", true, &title);
    assert_string_equal(title, "never closed");
}

static void entities_become_characters(void **state)
{
    (void)state;
    assert_string_equal(text_of("caf&eacute; &#233; &#xE9; &#XE9;", true, NULL), "caf\u00e9 \u00e9 \u00e9 \u00e9");
    assert_string_equal(text_of("&lt;p&gt; &amp;amp; &#x20AC;", true, NULL), "<p> &amp; \u20ac");
    assert_string_equal(text_of("a&nbsp;b&#160;c", true, NULL), "a b c");
    assert_string_equal(text_of("&lt 1 &#65 2", true, NULL), "< 1 A 2"); /* without a semicolon */
    assert_int_equal(gx_html_entity("eacute", 6), 0xe9);
    assert_int_equal(gx_html_entity("Eacute", 6), 0xc9);
    assert_int_equal(gx_html_entity("eacut", 5), 0);
    assert_int_equal(gx_html_entity("", 0), 0);
}

static void numbers_stand_for_characters_as_the_standard_has_it(void **state)
{
    (void)state;
    assert_string_equal(text_of("a&#0;b&#xD800;c&#x110000;d", true, NULL), "a\ufffdb\ufffdc\ufffdd");
    assert_string_equal(text_of("&#1114111;&#99999999999999999999;", true, NULL), "\U0010ffff\ufffd");
    assert_string_equal(text_of("caf&#0000000000233; &#x00000000EF;", true, NULL), "caf\u00e9 \u00ef");
    assert_string_equal(text_of("can&#146;t &#x80;&#129;", true, NULL), "can\u2019t \u20ac\xc2\x81");
}

static void what_is_neither_tag_nor_entity_stays(void **state)
{
    (void)state;
    static const char *const as_they_are[] = {
        "a < b", "1<2", "AT&T", "&unknown;", "&", "&;", "&#;", "&#x;", "<", "a<", "<>", "x &#y; z", "a</",
    };
    for (size_t i = 0; i < sizeof as_they_are / sizeof *as_they_are; ++i) {
        assert_string_equal(text_of(as_they_are[i], true, NULL), as_they_are[i]);
        assert_string_equal(text_of(as_they_are[i], false, NULL), as_they_are[i]);
    }
    assert_string_equal(text_of("</> if (a<b && c <p", false, NULL), "</> if (a<b && c <p");
    assert_string_equal(text_of("a</>b<p", true, NULL), "ab"); /* HTML's tokenizer drops both */
}

static void a_quoted_attribute_may_hold_the_end_of_a_tag(void **state)
{
    (void)state;
    assert_string_equal(text_of("a<p title=\"x>y\">b", true, NULL), "a b");
    assert_string_equal(text_of("a<p title='x>y' id=z>b", true, NULL), "a b");
    assert_string_equal(text_of("a<p title=\"x>b", false, NULL), "a b"); /* never closed: quotes nothing */
    assert_string_equal(text_of("a<p title=\"x>b", true, NULL), "a");    /* the page ends in the tag */
    assert_string_equal(text_of("a<p title = \"x>y\" b>c", false, NULL), "a c");
}

static void html_is_read_by_the_rules_of_its_tokenizer(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        /* attributes */
        {"<p title = \"gt > lt\" class=x>a", " a"},
        {"<p a=b\"c>d", " d"},
        {"<p a=\"b\"c='>'/d>e", " e"},
        {"<p =\">\">a", " \">a"},
        {"<p a =>b", " b"},
        {"<p/a='>'/>b", " b"},
        {"<p\ta\n=\f'>'>b", " b"},
        {"<p a=b/>c", " c"},
        {"<p a=>b", " b"},
        /* comments and what is taken for one */
        {"a<!-->b<!--->c<!---->d", "abcd"},
        {"a<!--x--!>b<!--y-->c", "abc"},
        {"a<!--!>b-->c<!---!>d-->e", "ace"},
        {"a<!-- x ---->b<!--x--y-->c", "abc"},
        {"a<!x>b<!>c</ x>d</3>e<?x?>f", "abcdef"},
        {"a<![CDATA[b>c]]>d", "ac]]>d"},
        {"a<!--b", "a"},
        {"a<!doctype html \">\">b", "a\">b"},
        /* scripts and other text */
        {"<script>a</scripts>b</script >c", "  c"},
        {"<script><!--<script>a</script>b--></script>c", "  c"},
        {"<script><!--<script>a</script>b</script>c", "  c"},
        {"<script><!--<scripts>a</script>c", "  c"},
        {"<script><!--></script>c", "  c"},
        {"<script><!--<script>--></script>c", "  c"},
        {"<style><!--</style>c", "  c"},
        {"<textarea>a<b>&amp;</textarea>c", " a<b>& c"},
        {"<xmp>a<b>&amp;</xmp>c", " a<b>&amp; c"},
        {"<plaintext>a<b>&amp;</plaintext>", " a<b>&amp;</plaintext>"},
        /* svg and math */
        {"<svg><![CDATA[a<b>]]></svg><![CDATA[c]]>", " a<b> "},
        {"<svg><style>x</style><title>t</title></svg>", "    t  "},
        {"<svg><foreignObject><![CDATA[a]]>b</svg>", "  b "},
        {"<svg><p><![CDATA[a]]>b", "  b"},
        /* references */
        {"&notit; &notin; caf&eacutes &copy2024", "\u00acit; \u2209 caf\u00e9s \u00a92024"},
        {"R&AMP;D 1&LT;2 &alpha &alpha;", "R&D 1<2 &alpha \u03b1"},
        {"&CounterClockwiseContourIntegral;&nGt;&bne;&Afr;", "\u2233\u226b=\u20e5\U0001d504"},
        {"&Ccaron;esk&yacute; &inodot;", "\u010cesk\u00fd \u0131"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        assert_string_equal(text_of(cases[i][0], true, NULL), cases[i][1]);
}

static void cdata_of_sgml_is_text(void **state)
{
    (void)state;
    assert_string_equal(text_of("a<![CDATA[b <c> &amp; ]] d]]>e", false, NULL), "ab <c> &amp; ]] de");
    assert_string_equal(text_of("<![CDATA[]]><![CDATA[a]]>", false, NULL), "a");
    assert_string_equal(text_of("a<![CDATA[b>c", false, NULL), "a c"); /* never closed */
    assert_string_equal(text_of("&alpha b&alphabet", false, NULL), "\u03b1 b&alphabet");
}

/* ---- against an oracle ---- */

/* The words of a page that was made of words, plain tags and comments, by a parser of one rule. */
static void naive_text(const char *page, bool html, char *to)
{
    for (; *page; ++page) {
        if (strncmp(page, "<!--", 4) == 0) {
            page = strstr(page, "-->") + 2;
            if (!html)
                *to++ = ' ';
        } else if (*page == '<') {
            page = strchr(page, '>');
            *to++ = ' ';
        } else {
            *to++ = *page;
        }
    }
    *to = 0;
}

static void random_pages_lose_their_tags_and_nothing_else(void **state)
{
    (void)state;
    static const char *const parts[] = {"word", " ",  "<p>",  "</p>",           "<!-- > -->", "<td>",
                                        "7",    "\n", "<h1>", "<!-- <p> x -->", "caf\u00e9",  "<div id=a>"};
    uint64_t seed = 20091101;
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t run = 0; run < 3000; ++run) {
        char page[1024] = "", want[1024];
        for (uint64_t n = gx_random_next(&seed) % 40; n > 0; --n)
            strcat(page, parts[gx_random_next(&seed) % (sizeof parts / sizeof *parts)]);
        naive_text(page, true, want);
        assert_string_equal(text_of(page, true, NULL), want);
        naive_text(page, false, want);
        assert_string_equal(text_of(page, false, NULL), want);
    }
}

/* Bytes that the reader may meet: it must stay inside them, never write more than it reads, and end
 * soon. */
static void random_bytes_are_read_within_their_bounds(void **state)
{
    (void)state;
    static const char alphabet[] = "<>!-/&#;x19abtitlescriptGvg[='\" \n\xc3\xa9";
    uint64_t seed = 5;
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t run = 0; run < 20000; ++run) {
        const size_t n = gx_random_next(&seed) % 64;
        char *const page = malloc(n ? n : 1); /* of this size, so that a sanitizer sees what is beyond */
        gx_scratch title = {0};
        gx_span text = {page, n};
        for (size_t i = 0; i < n; ++i)
            page[i] = alphabet[gx_random_next(&seed) % (sizeof alphabet - 1)];
        assert_true(gx_html_to_text(&text, run % 4 ? &title : NULL, run % 4));
        assert_true(text.n <= n && title.n <= n);
        free(title.p);
        free(page);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tag_becomes_a_space),
        cmocka_unit_test(an_inline_tag_does_not_cut_a_word),
        cmocka_unit_test(scripts_styles_and_comments_are_left_out),
        cmocka_unit_test(the_first_title_is_apart),
        cmocka_unit_test(entities_become_characters),
        cmocka_unit_test(numbers_stand_for_characters_as_the_standard_has_it),
        cmocka_unit_test(what_is_neither_tag_nor_entity_stays),
        cmocka_unit_test(a_quoted_attribute_may_hold_the_end_of_a_tag),
        cmocka_unit_test(html_is_read_by_the_rules_of_its_tokenizer),
        cmocka_unit_test(cdata_of_sgml_is_text),
        cmocka_unit_test(random_pages_lose_their_tags_and_nothing_else),
        cmocka_unit_test(random_bytes_are_read_within_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
