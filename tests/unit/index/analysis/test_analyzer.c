#include "index/analysis/analyzer.h"

#include <ctype.h>
#include <libstemmer.h>
#include <pthread.h>
#include <unistd.h>
#include <utf8proc.h>

#include "engine/random.h"
#include "index/analysis/emoji.h"
#include "index/analysis/language.h"
#include "index/analysis/porter.h"
#include "index/analysis/stemmer_print.h"
#include "index/analysis/tokenizer.h"
#include "tests/support/test.h"

/* Terms of a text, each followed by a bar. */
typedef struct stream {
    char *text;
    size_t len, max;
    size_t begin[64], end[64], n;
} stream;

static bool take_term(void *user, const gx_found_term *found)
{
    stream *s = user;
    if (s->len + found->len + 2 > s->max) {
        s->max = 2 * (s->len + found->len + 2);
        s->text = realloc(s->text, s->max);
        assert_non_null(s->text);
    }
    memcpy(s->text + s->len, found->term, found->len);
    s->len += found->len;
    s->text[s->len++] = '|';
    s->text[s->len] = 0;
    if (s->n < 64) {
        s->begin[s->n] = found->begin;
        s->end[s->n] = found->end;
    }
    ++s->n;
    return true;
}

static gx_analyzer *open_as(const char *name, const char *stemmer, const char *stopwords)
{
    gx_analyzer *an;
    gx_error err = {0};
    if (gx_analyzer_open(&an, &(gx_analyzer_options){name, stemmer, stopwords}, &err) != GX_OK)
        fail_msg("%s", err.text);
    return an;
}

static void check_n(const gx_analyzer *an, const char *text, size_t len, const char *want)
{
    stream s = {0};
    assert_int_equal(gx_analyze(an, text, len, take_term, &s), GX_OK);
    assert_string_equal(s.text ? s.text : "", want);
    free(s.text);
}

static void check(const char *name, const char *text, const char *want)
{
    gx_analyzer *an = open_as(name, NULL, NULL);
    check_n(an, text, strlen(text), want);
    gx_analyzer_close(an);
}

static void english_drops_stop_words_and_possessives_and_stems(void **state)
{
    (void)state;
    check("english", "The Cat's whiskers and the DOGS\xE2\x80\x99S running.", "cat|whisker|dog|run|");
    check("english", "", "");
    check("english", "the of AND a", "");
    check("english", "Psychology possibly of THESE relations", "psycholog|possibl|relat|");
}

static void simple_only_lowers(void **state)
{
    (void)state;
    check("simple", "The Cat's WHISKERS", "the|cat's|whiskers|");
}

static void punctuation_joins_as_in_word_segmentation(void **state)
{
    (void)state;
    check("simple", "don't can't. 'quoted' o'clock'", "don't|can't|quoted|o'clock|");
    check("simple", "3.14 1,000,000.5 1;2 3:4 1'2", "3.14|1,000,000.5|1;2|3|4|1'2|");
    check("simple", "e.g. U.S.A. www.example.com a:b a,b a;b", "e.g|u.s.a|www.example.com|a:b|a|b|a|b|");
    check("simple", "aleph_2 _x y_ __ _ a_.b", "aleph_2|_x|y_|a_|b|");
    check("simple", "x2.y a1,2b 1.a a.1 a..b 1,,2 -5 c++ $x^{2}$", "x2|y|a1,2b|1|a|a|1|a|b|1|2|5|c|x|2|");
    check("simple", "a'", "a|");
    check("simple", "'a", "a|");
}

static void joins_work_at_every_offset_of_the_64_byte_window(void **state)
{
    (void)state;
    gx_analyzer *an = open_as("simple", NULL, NULL);
    for (size_t pad = 0; pad < 200; ++pad) {
        char text[320], want[64];
        memset(text, ' ', pad);
        strcpy(text + pad, "isn't 1,5 x y.z,w caf\xC3\xA9's end.");
        snprintf(want, sizeof want, "isn't|1,5|x|y.z|w|caf\xC3\xA9's|end|");
        check_n(an, text, strlen(text), want);
    }
    for (size_t len = 1; len < 200; ++len) { /* a word that fills windows */
        char text[256], want[256];
        memset(text, 'a', len);
        memset(want, 'a', len);
        strcpy(want + len, "|");
        check_n(an, text, len, want);
    }
    gx_analyzer_close(an);
}

static void unicode_words_are_found_and_lowered(void **state)
{
    (void)state;
    check("simple",
          "\xC3\x89t\xC3\xA9 na\xC3\xAFve STRASSE Stra\xC3\x9F"
          "e",
          "\xC3\xA9t\xC3\xA9|na\xC3\xAFve|strasse|stra\xC3\x9F"
          "e|");
    check("simple", "\xCE\x91\xCE\x92\xCE\x93 \xD0\x9F\xD0\xA0\xD0\x98",
          "\xCE\xB1\xCE\xB2\xCE\xB3|\xD0\xBF\xD1\x80\xD0\xB8|");
    check("simple", "l\xE2\x80\x99\xC3\xA9t\xC3\xA9", "l\xE2\x80\x99\xC3\xA9t\xC3\xA9|");
    check("simple", "x\xE2\x80\x94y \xE2\x80\x9Cquoted\xE2\x80\x9D", "x|y|quoted|");
    check("simple", "e\xCC\x81t\xC3\xA9", "e\xCC\x81t\xC3\xA9|"); /* a combining mark */
    check("simple", "soft\xC2\xADhyphen", "soft\xC2\xADhyphen|"); /* a format character */
    check("simple",
          "no\xC2\xA0"
          "break",
          "no|break|");
    check("simple", "\xEF\xBB\xBFword", "word|");                             /* byte order mark */
    check("simple", "x\xC2\xB2 \xC2\xBD", "x|");                              /* superscripts and fractions */
    check("simple", "\xD9\xA1\xD9\xAB\xD9\xA2", "\xD9\xA1\xD9\xAB\xD9\xA2|"); /* Arabic digits and decimal sign */
}

static void asian_scripts_are_cut_as_lucene_cuts_them(void **state)
{
    (void)state;
    /* Han Han ab Hiragana Katakana x2 */
    check("simple",
          "\xE6\xBC\xA2\xE5\xAD\x97"
          "ab\xE3\x81\xB2\xE3\x82\xAB\xE3\x82\xBF",
          "\xE6\xBC\xA2|\xE5\xAD\x97|ab|\xE3\x81\xB2|\xE3\x82\xAB\xE3\x82\xBF|");
    check("simple", "\xED\x95\x9C\xEA\xB5\xAD \xEC\x96\xB4", "\xED\x95\x9C\xEA\xB5\xAD|\xEC\x96\xB4|"); /* Hangul */
    check("simple",
          "\xE0\xB8\x81\xE0\xB8\xB2\xE0\xB8\xA3"
          "x",
          "\xE0\xB8\x81\xE0\xB8\xB2\xE0\xB8\xA3|x|");                             /* Thai */
    check("simple", "\xD7\xA6\xD7\x94\"\xD7\x9C", "\xD7\xA6\xD7\x94\"\xD7\x9C|"); /* Hebrew */
    /* pictographs */
    check("simple", "\xF0\x9F\x98\x80\xF0\x9F\x98\x81", "\xF0\x9F\x98\x80|\xF0\x9F\x98\x81|");
}

static void bytes_that_are_not_utf8_separate_and_are_counted(void **state)
{
    (void)state;
    check("simple",
          "ab\xFF"
          "cd \xC3 e\xE2\x82",
          "ab|cd|e|");
    gx_analyzer *an = open_as("simple", NULL, NULL);
    gx_analysis *a;
    assert_int_equal(gx_analysis_open(&a, an, NULL), GX_OK);
    const char text[] = "ab\xFF"
                        "cd \xC3 e\xE2\x82 \xED\xA0\x80 \xC0\x80 ok \xC3\xA9";
    memcpy(gx_analysis_buffer(a, sizeof text - 1), text, sizeof text - 1);
    gx_tokens t;
    assert_int_equal(gx_analysis_tokenize(a, sizeof text - 1, &t), GX_OK);
    assert_int_equal(t.replaced, 1 + 1 + 2 + 3 + 2);
    assert_int_equal(t.n, 5);
    gx_analysis_close(a);
    gx_analyzer_close(an);
}

static void nul_bytes_separate(void **state)
{
    (void)state;
    gx_analyzer *an = open_as("simple", NULL, NULL);
    check_n(an, "a\0b\0\0cd", 7, "a|b|cd|");
    gx_analyzer_close(an);
}

static void tokens_above_the_limit_are_dropped(void **state)
{
    (void)state;
    gx_analyzer *an = open_as("simple", NULL, NULL);
    static char text[10u << 20], want[300];
    memset(text, 'x', 255);
    memset(want, 'x', 255);
    strcpy(want + 255, "|");
    check_n(an, text, 255, want);
    text[255] = 'x';
    check_n(an, text, 256, "");
    memset(text, 'y', sizeof text);
    memcpy(text + sizeof text - 3, " zz", 3);
    check_n(an, text, sizeof text, "zz|");
    gx_analysis *a;
    assert_int_equal(gx_analysis_open(&a, an, NULL), GX_OK);
    const char *term;
    size_t n;
    assert_int_equal(gx_analysis_term(a, text, 256, &term, &n), GX_TOKEN_TOO_LONG);
    assert_int_equal(gx_analysis_term(a, "__", 2, &term, &n), GX_TOKEN_STOPPED);
    gx_analysis_close(a);
    gx_analyzer_close(an);
}

static void whitespace_changes_nothing(void **state)
{
    (void)state;
    check("whitespace", " The  Cat's\tdon't, U.S.\r\n\v\fEnd\xFF. ", "The|Cat's|don't,|U.S.|End\xFF.|");
    gx_analyzer *an = open_as("whitespace", NULL, NULL);
    stream s = {0};
    assert_int_equal(gx_analyze(an, "a\0b c", 5, take_term, &s), GX_OK);
    assert_int_equal(s.len, 6);
    assert_memory_equal(s.text, "a\0b|c|", 6);
    free(s.text);
    gx_analyzer_close(an);
}

static void ranges_are_those_of_the_text(void **state)
{
    (void)state;
    gx_analyzer *an = open_as("english", NULL, NULL);
    stream s = {0};
    const char *text = "The Caf\xC3\xA9's cats, running";
    assert_int_equal(gx_analyze(an, text, strlen(text), take_term, &s), GX_OK);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.begin[0], 4);
    assert_int_equal(s.end[0], 11);
    assert_int_equal(s.begin[1], 12);
    assert_int_equal(s.end[1], 16);
    assert_int_equal(s.begin[2], 18);
    assert_int_equal(s.end[2], 25);
    free(s.text);
    gx_analyzer_close(an);
}

static bool only_two(void *user, const gx_found_term *found)
{
    (void)found;
    return ++*(int *)user < 2;
}

static void emit_can_stop(void **state)
{
    (void)state;
    gx_analyzer *an = open_as("simple", NULL, NULL);
    int n = 0;
    assert_int_equal(gx_analyze(an, "a b c d", 7, only_two, &n), GX_OK);
    assert_int_equal(n, 2);
    gx_analyzer_close(an);
}

static void long_texts_are_cut_between_tokens(void **state)
{
    (void)state;
    gx_analyzer *an = open_as("simple", NULL, NULL);
    const size_t len = 300000;
    char *text = malloc(len);
    assert_non_null(text);
    for (size_t i = 0; i < len; ++i)
        text[i] = i % 7 == 6 ? (i % 3 ? ' ' : '-') : (char)('a' + i % 5);
    stream s = {0};
    assert_int_equal(gx_analyze(an, text, len, take_term, &s), GX_OK);
    assert_int_equal(s.n, (len + 6) / 7);
    for (size_t i = 0; i < s.len; ++i)
        assert_true(s.text[i] == '|' || s.text[i] == text[i]);
    free(s.text);
    free(text);
    gx_analyzer_close(an);
}

static void porter_agrees_with_the_published_examples(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"caresses", "caress"},
        {"ponies", "poni"},
        {"ties", "ti"},
        {"caress", "caress"},
        {"cats", "cat"},
        {"feed", "feed"},
        {"agreed", "agre"},
        {"plastered", "plaster"},
        {"bled", "bled"},
        {"motoring", "motor"},
        {"sing", "sing"},
        {"conflated", "conflat"},
        {"troubled", "troubl"},
        {"sized", "size"},
        {"hopping", "hop"},
        {"tanned", "tan"},
        {"falling", "fall"},
        {"hissing", "hiss"},
        {"fizzed", "fizz"},
        {"failing", "fail"},
        {"filing", "file"},
        {"happy", "happi"},
        {"sky", "sky"},
        {"relational", "relat"},
        {"conditional", "condit"},
        {"rational", "ration"},
        {"valenci", "valenc"},
        {"hesitanci", "hesit"},
        {"digitizer", "digit"},
        {"conformabli", "conform"},
        {"radicalli", "radic"},
        {"differentli", "differ"},
        {"vileli", "vile"},
        {"analogousli", "analog"},
        {"vietnamization", "vietnam"},
        {"predication", "predic"},
        {"operator", "oper"},
        {"feudalism", "feudal"},
        {"decisiveness", "decis"},
        {"hopefulness", "hope"},
        {"callousness", "callous"},
        {"formaliti", "formal"},
        {"sensitiviti", "sensit"},
        {"sensibiliti", "sensibl"},
        {"triplicate", "triplic"},
        {"formative", "form"},
        {"formalize", "formal"},
        {"electriciti", "electr"},
        {"electrical", "electr"},
        {"hopeful", "hope"},
        {"goodness", "good"},
        {"revival", "reviv"},
        {"allowance", "allow"},
        {"inference", "infer"},
        {"airliner", "airlin"},
        {"gyroscopic", "gyroscop"},
        {"adjustable", "adjust"},
        {"defensible", "defens"},
        {"irritant", "irrit"},
        {"replacement", "replac"},
        {"adjustment", "adjust"},
        {"dependent", "depend"},
        {"adoption", "adopt"},
        {"homologou", "homolog"},
        {"communism", "commun"},
        {"activate", "activ"},
        {"angulariti", "angular"},
        {"homologous", "homolog"},
        {"effective", "effect"},
        {"bowdlerize", "bowdler"},
        {"probate", "probat"},
        {"rate", "rate"},
        {"cease", "ceas"},
        {"controll", "control"},
        {"roll", "roll"},
        {"generalizations", "gener"},
        {"oscillators", "oscil"},
        {"psychology", "psycholog"},
        {"biology", "biologi"},
        {"trekking", "trek"},
        {"possibly", "possibl"},
        {"is", "is"},
        {"as", "as"},
        {"by", "by"},
        {"s", "s"},
        {"yyy", "yyi"},
        {"sss", "sss"},
        {"ing", "ing"},
        {"ed", "ed"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
        char word[64];
        strcpy(word, pairs[i][0]);
        word[gx_porter(word, strlen(word))] = 0;
        assert_string_equal(word, pairs[i][1]);
    }
}

static void porter_agrees_with_snowball_but_for_the_known_differences(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "a",     "e",     "i",     "o",       "u",     "y",       "b",      "c",       "d",       "g",       "l",
        "m",     "n",     "r",     "s",       "t",     "w",       "x",      "z",       "st",      "tr",      "qu",
        "ing",   "ed",    "eed",   "at",      "iz",    "ational", "tional", "enci",    "anci",    "izer",    "alli",
        "entli", "eli",   "ousli", "ization", "ation", "ator",    "alism",  "iveness", "fulness", "ousness", "aliti",
        "iviti", "icate", "ative", "alize",   "iciti", "ical",    "ful",    "ness",    "al",      "ance",    "ence",
        "er",    "ic",    "able",  "ible",    "ant",   "ement",   "ment",   "ent",     "sion",    "ou",      "ism",
        "ate",   "iti",   "ous",   "ive",     "ize",   "ll",      "sses",   "ies",     "ss"};
    struct sb_stemmer *sb = sb_stemmer_new("porter", "UTF_8");
    assert_non_null(sb);
    uint64_t seed = 20090426, compared = 0;
    for (int round = 0; round < 300000; ++round) {
        char word[128] = "", ours[128];
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const unsigned n = 1 + (unsigned)(seed >> 60) % 6;
        for (unsigned i = 0; i < n; ++i) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            strcat(word, parts[(seed >> 33) % (sizeof parts / sizeof *parts)]);
        }
        if (strlen(word) <= 2 || strstr(word, "bl") || strstr(word, "log") || strstr(word, "cc") ||
            strstr(word, "ww") || strstr(word, "xx") || strstr(word, "yy"))
            continue;
        const sb_symbol *want = sb_stemmer_stem(sb, (const sb_symbol *)word, (int)strlen(word));
        strcpy(ours, word);
        const size_t len = gx_porter(ours, strlen(ours));
        ours[len] = 0;
        if (len != (size_t)sb_stemmer_length(sb) || memcmp(ours, want, len) != 0)
            fail_msg("%s: %s, Snowball says %.*s", word, ours, sb_stemmer_length(sb), (const char *)want);
        ++compared;
    }
    assert_true(compared > 200000);
    sb_stemmer_delete(sb);
}

static void snowball_stemmers_go_by_name(void **state)
{
    (void)state;
    gx_analyzer *an = open_as("english", "english", "none");
    check_n(an, "the generously skies dying", 26, "the|generous|sky|die|");
    gx_analyzer_close(an);
    an = open_as("simple", "german", NULL);
    check_n(an, "H\xC3\xA4user Katzen", 13, "haus|katz|");
    gx_analyzer_close(an);
    gx_error err = {0};
    assert_int_equal(gx_analyzer_open(&an, &(gx_analyzer_options){.stemmer = "klingon"}, &err), GX_EUSAGE);
    assert_null(an);
    assert_non_null(strstr(err.text, "klingon"));
    assert_non_null(strstr(err.text, "french"));
    assert_int_equal(gx_analyzer_open(&an, &(gx_analyzer_options){.name = "latin"}, &err), GX_EUSAGE);
}

static void stop_words_come_from_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/gx-stops-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    const char words[] = "Foo\r\n\n  bar \nfoo\n\xC3\x89t\xC3\xA9";
    assert_int_equal(write(fd, words, sizeof words - 1), sizeof words - 1);
    gx_analyzer *an = open_as("simple", NULL, path);
    check_n(an, "foo BAR the \xC3\xA9t\xC3\xA9", 17, "the|");
    gx_analyzer_close(an);
    assert_int_equal(write(fd, "\n\xFF\n", 3), 3);
    gx_error err = {0};
    assert_int_equal(gx_analyzer_open(&an, &(gx_analyzer_options){.stopwords = path}, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, ":6:") ? err.text : strstr(err.text, ":5:"));
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, "foo\nbar\0\n", 9, 0), 9); /* at the end, too, where white space is cut off */
    assert_int_equal(gx_analyzer_open(&an, &(gx_analyzer_options){.stopwords = path}, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, ":2: the line holds a NUL byte"));
    close(fd);
    unlink(path);
    assert_int_equal(gx_analyzer_open(&an, &(gx_analyzer_options){.stopwords = path}, &err), GX_ENOTFOUND);
}

static size_t count_terms(const gx_analyzer *an, const char *text)
{
    stream s = {0};
    assert_int_equal(gx_analyze(an, text, strlen(text), take_term, &s), GX_OK);
    free(s.text);
    return s.n;
}

static void every_emoji_is_a_term_between_words(void **state)
{
    (void)state;
    gx_analyzer *simple = open_as("simple", NULL, NULL), *english = open_as("english", NULL, NULL), *folded;
    const gx_analyzer_options options = {.name = "simple", .fold = "unicode"};
    assert_int_equal(gx_analyzer_open(&folded, &options, NULL), GX_OK);
    unsigned n_presented = 0, n_text = 0;
    for (int32_t c = 0x80; c < 0x1FB00; ++c) {
        const gx_emoji kind = gx_emoji_of(c);
        char text[32] = "ox ";
        utf8proc_uint8_t *end = (utf8proc_uint8_t *)text + 3;
        end += c >= 0x1F3FB && c <= 0x1F3FF ? 0 : utf8proc_encode_char(c, end); /* but for skin tones */
        if (!kind || end == (utf8proc_uint8_t *)text + 3)
            continue;
        n_presented += kind == GX_EMOJI_PRESENTED && c < 0x1F000;
        n_text += kind == GX_EMOJI_TEXT;
        strcpy((char *)end, " fox");
        const bool word = c == 0x2139 || c == 0x24C2; /* letters, in any case */
        assert_int_equal(count_terms(simple, text), kind == GX_EMOJI_PRESENTED || word ? 3 : 2);
        if (kind == GX_EMOJI_PRESENTED && c < 0x1F000)
            assert_int_equal(count_terms(english, text), 2);
        strcpy((char *)end, "\xEF\xB8\x8F"
                            "fox");
        assert_int_equal(count_terms(simple, text), word ? 2 : 3);
        const bool other = c == 0x203C || c == 0x2049; /* which the fold makes !! and !? */
        if (c < 0x1F000 && !word && !other && c != 0x2122)
            assert_int_equal(count_terms(folded, text), 3);
    }
    assert_int_equal(n_presented, 60);
    assert_int_equal(n_text, 110);
    gx_analyzer_close(simple);
    gx_analyzer_close(english);
    gx_analyzer_close(folded);
}

static void keys_are_terms_even_of_signs(void **state)
{
    (void)state;
    check("simple",
          "x 1\xEF\xB8\x8F\xE2\x83\xA3"
          "2\xE2\x83\xA3y",
          "x|1\xEF\xB8\x8F\xE2\x83\xA3|2\xE2\x83\xA3|y|");
    check("simple", "#\xEF\xB8\x8F\xE2\x83\xA3*\xE2\x83\xA3#", "#\xEF\xB8\x8F\xE2\x83\xA3|*\xE2\x83\xA3|");
    check("simple",
          "a#\xEF\xB8\x8F\xE2\x83\xA3"
          "b",
          "a|#\xEF\xB8\x8F\xE2\x83\xA3|b|");
    check("simple", "\xEF\xB8\x8F\xE2\x83\xA3 \xE2\x83\xA3", "");
    check("english", "1\xEF\xB8\x8F\xE2\x83\xA3 #\xEF\xB8\x8F\xE2\x83\xA3", "1\xEF\xB8\x8F\xE2\x83\xA3|");
}

static void elisions_are_cut_once_and_only_articles(void **state)
{
    (void)state;
    static const struct {
        gx_language language;
        const char *word, *cut;
    } words[] = {
        {GX_LANGUAGE_FRENCH, "l'avion", "avion"},
        {GX_LANGUAGE_FRENCH,
         "jusqu\xCA\xBC"
         "ici",
         "ici"},
        {GX_LANGUAGE_FRENCH, "aujourd'hui", NULL},
        {GX_LANGUAGE_FRENCH, "d'l'eau", "l'eau"},
        {GX_LANGUAGE_FRENCH, "l'", NULL},
        {GX_LANGUAGE_FRENCH, "'avion", NULL},
        {GX_LANGUAGE_ITALIAN, "sugl'altri", "altri"},
        {GX_LANGUAGE_ITALIAN, "qu'elle", NULL},
        {GX_LANGUAGE_CATALAN, "s'ha", "ha"},
        {GX_LANGUAGE_CATALAN, "qu'elle", NULL},
        {GX_LANGUAGE_TURKISH, "ankara'ya'", "ankara"},
        {GX_LANGUAGE_TURKISH, "ankara", NULL},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
        char text[32];
        strcpy(text, words[i].word);
        text[gx_language_cut(words[i].language, text, strlen(text))] = 0;
        assert_string_equal(text, words[i].cut ? words[i].cut : words[i].word);
    }
}

static void stemmers_have_fingerprints(void **state)
{
    (void)state;
    uint64_t print, again, seen[64];
    size_t n = 0;
    for (const char **l = sb_stemmer_list(); *l && n < 64; ++l) {
        assert_true(gx_stemmer_print(*l, &print));
        assert_true(print != 0);
        for (size_t i = 0; i < n; ++i)
            assert_true(seen[i] != print);
        seen[n++] = print;
        assert_string_equal(gx_stemmer_full_name(*l), *l);
    }
    assert_true(gx_stemmer_print("german", &print) && gx_stemmer_print("de", &again));
    assert_true(print == again);
    assert_false(gx_stemmer_print("klingon", &print));
}

/* The description of an analyzer with these members behind the usual ones. */
static gx_status open_described(gx_analyzer **an, const char *more, gx_error *err)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"tokenizer\":\"word\",\"lowercase\":true,\"possessive\":false,\"max_token_bytes\":255,"
             "\"stopwords\":[],\"stemmer\":\"french\"%s}",
             more);
    return gx_analyzer_open_json(an, text, strlen(text), err);
}

static void descriptions_without_rules_have_none(void **state)
{
    (void)state;
    gx_analyzer *an, *now = open_as("simple", "fr", NULL), *english = open_as("english", NULL, NULL);
    gx_analyzers_differ how;
    gx_error err = {0};
    assert_int_equal(open_described(&an, "", &err), GX_OK);
    check_n(an, "l'avion \xE2\xAD\x90", 11, "l'avion|");
    assert_false(gx_analyzer_is_recorded(an));
    assert_int_equal(gx_analyzer_change(an, &err), GX_ANALYSIS_SAME);
    assert_int_equal(gx_analyzers_agree(an, now, &how), GX_OK);
    assert_int_equal(how, GX_ANALYZERS_OTHER);
    gx_analyzer_close(an);
    assert_int_equal(open_described(&an, ",\"rules\":[\"emoji\",\"french\"]", &err), GX_OK);
    check_n(an, "l'avion \xE2\xAD\x90", 11, "avion|\xE2\xAD\x90|");
    assert_int_equal(gx_analyzers_agree(an, now, &how), GX_OK);
    assert_int_equal(how, GX_ANALYZERS_SAME); /* what one has not recorded is the same */
    gx_analyzer_close(an);
    assert_int_equal(
        open_described(&an, ",\"rules\":[\"emoji\",\"french\"],\"stemmer_print\":\"00000000000000ff\"", &err), GX_OK);
    assert_int_equal(gx_analyzer_change(an, &err), GX_ANALYSIS_STEMMER);
    assert_non_null(strstr(err.text, "stemmer french"));
    assert_int_equal(gx_analyzers_agree(an, now, &how), GX_OK);
    assert_int_equal(how, GX_ANALYZERS_STEMMER);
    gx_analyzer_close(an);
    assert_int_equal(open_described(&an, ",\"unicode\":\"1.0.0\"", &err), GX_OK);
    assert_int_equal(gx_analyzer_change(an, &err), GX_ANALYSIS_UNICODE);
    gx_analyzer_close(an);
    assert_int_equal(open_described(&an, ",\"rules\":[\"emoji\",\"klingon\"]", &err), GX_EUSAGE);
    assert_int_equal(open_described(&an, ",\"rules\":\"emoji\"", &err), GX_ECORRUPT);
    assert_int_equal(open_described(&an, ",\"stemmer_print\":\"xyz\"", &err), GX_ECORRUPT);
    assert_int_equal(gx_analyzer_change(now, &err), GX_ANALYSIS_SAME);
    assert_true(gx_analyzer_is_recorded(now));
    assert_false(gx_analyzer_is_recorded(english)); /* its description is what it was */
    gx_analyzer_close(now);
    gx_analyzer_close(english);
}

static void a_description_makes_the_same_analyzer(void **state)
{
    (void)state;
    static const char *const makes[][3] = {{"english", NULL, NULL},
                                           {"simple", NULL, NULL},
                                           {"whitespace", NULL, NULL},
                                           {"english", "english", "none"},
                                           {"simple", "french", "lucene"}};
    const char *text = "The Running cat's d\xC3\xA9j\xC3\xA0 of it, 3.14 NATIONS";
    for (size_t i = 0; i < sizeof makes / sizeof *makes; ++i) {
        gx_analyzer *an = open_as(makes[i][0], makes[i][1], makes[i][2]), *again;
        char *json = gx_analyzer_json(an);
        assert_non_null(json);
        assert_int_equal(gx_analyzer_open_json(&again, json, strlen(json), NULL), GX_OK);
        stream s = {0};
        assert_int_equal(gx_analyze(an, text, strlen(text), take_term, &s), GX_OK);
        check_n(again, text, strlen(text), s.text);
        char *json2 = gx_analyzer_json(again);
        assert_string_equal(json, json2);
        free(json);
        free(json2);
        free(s.text);
        gx_analyzer_close(an);
        gx_analyzer_close(again);
    }
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"tokenizer\":\"word\"}",
        "{\"tokenizer\":\"x\",\"lowercase\":true,\"possessive\":true,\"max_token_bytes\":255,"
        "\"stopwords\":[],\"stemmer\":\"none\"}",
        "{\"tokenizer\":\"word\",\"lowercase\":true,\"possessive\":true,\"max_token_bytes\":0,"
        "\"stopwords\":[],\"stemmer\":\"none\"}",
        "{\"tokenizer\":\"word\",\"lowercase\":true,\"possessive\":true,\"max_token_bytes\":255,"
        "\"stopwords\":[1],\"stemmer\":\"none\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        gx_analyzer *an;
        gx_error err = {0};
        assert_int_equal(gx_analyzer_open_json(&an, bad[i], strlen(bad[i]), &err), GX_ECORRUPT);
        assert_null(an);
        assert_true(err.text[0]);
    }
}

static void *analyse_often(void *user)
{
    const gx_analyzer *an = user;
    for (int i = 0; i < 500; ++i)
        check_n(an, "Running the generously skies", 28, "run|generous|sky|");
    return NULL;
}

static void threads_share_an_analyzer(void **state)
{
    (void)state;
    gx_analyzer *an = open_as("english", "english", NULL);
    enum { N = 150 }; /* more than have a workspace of their own */
    pthread_t threads[N];
    for (int i = 0; i < N; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, analyse_often, an), 0);
    for (int i = 0; i < N; ++i)
        pthread_join(threads[i], NULL);
    gx_analyzer_close(an);
}

static void random_bytes_give_ordered_ranges(void **state)
{
    (void)state;
    gx_analyzer *an = open_as("simple", NULL, NULL);
    gx_analysis *a;
    assert_int_equal(gx_analysis_open(&a, an, NULL), GX_OK);
    uint64_t seed = 7;
    static const unsigned char common[] = "ab'1., _\xC3\xA9\xE6\xBC\xA2\xE2\x80\x99\xD7\xA6\"\xCC\x81";
    for (int round = 0; round < 20000; ++round) {
        char *p = gx_analysis_buffer(a, 300);
        const size_t len = (size_t)(seed >> 40) % 300;
        for (size_t i = 0; i < len; ++i) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            p[i] = (char)(seed >> 62 ? common[(seed >> 33) % (sizeof common - 1)] : (unsigned char)(seed >> 33));
        }
        gx_tokens t;
        assert_int_equal(gx_analysis_tokenize(a, len, &t), GX_OK);
        uint32_t at = 0;
        for (uint32_t i = 0; i < t.n; ++i) {
            const gx_token k = t.ranges[i];
            assert_true(k.begin >= at && k.begin < k.end && k.end <= len);
            at = k.end;
        }
    }
    gx_analysis_close(a);
    gx_analyzer_close(an);
}

/* The words of ASCII text, character by character. Returns their number. */
static uint32_t plain_words(const char *p, size_t len, gx_token *words)
{
    uint32_t n = 0;
    bool open = false;
    for (size_t i = 0; i < len; ++i) {
        const int before = i ? (unsigned char)p[i - 1] : 0, after = i + 1 < len ? (unsigned char)p[i + 1] : 0;
        bool in = isalnum((unsigned char)p[i]) || p[i] == '_';
        if (!in && p[i])
            in = (isalpha(before) && isalpha(after) && strchr("'.:", p[i])) ||
                 (isdigit(before) && isdigit(after) && strchr("'.,;", p[i]));
        if (in && !open)
            words[n].begin = (uint32_t)i;
        if (!in && open)
            words[n++].end = (uint32_t)i;
        open = in;
    }
    if (open)
        words[n++].end = (uint32_t)len;
    return n;
}

static void ascii_is_divided_as_character_by_character(void **state)
{
    (void)state;
    uint64_t seed = 20261126;
    gx_tokenizer s = {0};
    for (int round = 0; round < 20000; ++round) {
        char text[400];
        gx_token want[400];
        const size_t len = gx_random_next(&seed) % (round % 2 ? 400 : 70);
        const bool lower = gx_random_next(&seed) % 2;
        const int likes = (int)(gx_random_next(&seed) % 3);
        static const char joined[] = "aZ0_'\".:,;9 z@[`{/";
        for (size_t i = 0; i < len; ++i) {
            const uint64_t r = gx_random_next(&seed);
            text[i] = likes && r % 8 ? joined[(r >> 8) % (sizeof joined - 1)] : (char)(r >> 8 & 127);
        }
        char *p = gx_tokenizer_buffer(&s, len);
        assert_non_null(p);
        memcpy(p, text, len);
        assert_true(gx_tokenize(&s, GX_TOKENIZER_WORDS, lower, len));
        const uint32_t n = plain_words(text, len, want);
        if (s.n != n || memcmp(s.tokens, want, n * sizeof *want))
            fail_msg("seed 20261126, round %d: the words of \"%.*s\" differ", round, (int)len, text);
        for (size_t i = 0; i < len; ++i)
            assert_int_equal(p[i], lower ? tolower(text[i]) : text[i]);
    }
    gx_tokenizer_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(english_drops_stop_words_and_possessives_and_stems),
        cmocka_unit_test(simple_only_lowers),
        cmocka_unit_test(punctuation_joins_as_in_word_segmentation),
        cmocka_unit_test(joins_work_at_every_offset_of_the_64_byte_window),
        cmocka_unit_test(unicode_words_are_found_and_lowered),
        cmocka_unit_test(asian_scripts_are_cut_as_lucene_cuts_them),
        cmocka_unit_test(bytes_that_are_not_utf8_separate_and_are_counted),
        cmocka_unit_test(nul_bytes_separate),
        cmocka_unit_test(tokens_above_the_limit_are_dropped),
        cmocka_unit_test(whitespace_changes_nothing),
        cmocka_unit_test(ranges_are_those_of_the_text),
        cmocka_unit_test(emit_can_stop),
        cmocka_unit_test(long_texts_are_cut_between_tokens),
        cmocka_unit_test(porter_agrees_with_the_published_examples),
        cmocka_unit_test(porter_agrees_with_snowball_but_for_the_known_differences),
        cmocka_unit_test(snowball_stemmers_go_by_name),
        cmocka_unit_test(stop_words_come_from_a_file),
        cmocka_unit_test(every_emoji_is_a_term_between_words),
        cmocka_unit_test(keys_are_terms_even_of_signs),
        cmocka_unit_test(elisions_are_cut_once_and_only_articles),
        cmocka_unit_test(stemmers_have_fingerprints),
        cmocka_unit_test(descriptions_without_rules_have_none),
        cmocka_unit_test(a_description_makes_the_same_analyzer),
        cmocka_unit_test(threads_share_an_analyzer),
        cmocka_unit_test(random_bytes_give_ordered_ranges),
        cmocka_unit_test(ascii_is_divided_as_character_by_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
