/* The fold "unicode": what it makes one, what stays two, and that
 * terms still point into the text. */
#include "index/analysis/fold.h"

#include <unistd.h>
#include <utf8proc.h>

#include "engine/api/gpuidx_advanced.h"
#include "index/analysis/analyzer.h"
#include "index/write/writer.h"
#include "tests/support/test.h"

static char path[64];

static gx_analyzer *open_as(const char *name, const char *stemmer, const char *stopwords, const char *fold)
{
    gx_analyzer *an;
    gx_error err = {0};
    if (gx_analyzer_open(&an, &(gx_analyzer_options){name, stemmer, stopwords, fold}, &err) != GX_OK)
        fail_msg("%s", err.text);
    return an;
}

typedef struct stream {
    char text[8192];
    size_t len;
    size_t begin[64], end[64], n;
} stream;

static bool take_term(void *user, const gx_found_term *found)
{
    stream *s = user;
    assert_true(s->len + found->len + 2 < sizeof s->text && s->n < 64);
    memcpy(s->text + s->len, found->term, found->len);
    s->len += found->len;
    s->text[s->len++] = '|';
    s->begin[s->n] = found->begin;
    s->end[s->n++] = found->end;
    return true;
}

/* The terms of a text, each followed by a bar. */
static stream terms_of(const gx_analyzer *an, const char *text)
{
    stream s = {0};
    assert_int_equal(gx_analyze(an, text, strlen(text), take_term, &s), GX_OK);
    s.text[s.len] = 0;
    return s;
}

static void check(const gx_analyzer *an, const char *text, const char *want)
{
    assert_string_equal(terms_of(an, text).text, want);
}

static const char *const alike[][2] = {
    {"caf\u00e9", "cafe\u0301"},                                                /* composed, decomposed */
    {"caf\u00e9", "cafe"},                                                      /* with and without accent */
    {"\u00c9TUDE", "e\u0301tude"},                                              /* and capitals */
    {"o\ufb03ce", "office"},                                                    /* ligature */
    {"\uff21\uff22\uff11", "ab1"},                                              /* full width */
    {"\uff8a\uff9f\uff9d", "\u30d1\u30f3"},                                     /* half width, voiced */
    {"\u30cf\u309a\u30f3", "\u30d1\u30f3"},                                     /* kana and its voicing, apart */
    {"\u1fb3", "\u03b1"},                                                       /* iota below the line */
    {"Stra\u00dfe", "STRASSE"},                                                 /* full case folding */
    {"\u1e9e", "ss"},                                                           /* capital sharp s */
    {"\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c2"},                   /* final sigma */
    {"\u1f84", "\u03b1"},                                                       /* three marks on an alpha */
    {"soft\u00adhyphen", "softhyphen"},                                         /* */
    {"zero\u200dwidth", "zerowidth"},                                           /* joiner */
    {"zero\u200cwidth", "zerowidth"},                                           /* non-joiner */
    {"word\ufeffjoined", "wordjoined"},                                         /* byte order mark within */
    {"x\u00b2", "x2"},                                                          /* superscript */
    {"\u2460", "1"},                                                            /* circled */
    {"\U0001d400\U0001d41b", "ab"},                                             /* mathematical letters */
    {"\u212b", "\u00e5"},                                                       /* angstrom sign */
    {"\u1100\u1161\u11a8", "\uac01"},                                           /* jamo, syllable */
    {"\uffa1\uffc2", "\uac00"},                                                 /* half-width jamo */
    {"don\u2019t", "don't"},                                                    /* apostrophes */
    {"don\uff07t", "don't"},                                                    /* */
    {"d\u02bcarc", "d'arc"},                                                    /* */
    {"\u0415\u0308\u043b\u043a\u0430", "\u0435\u043b\u043a\u0430"},             /* yo without its points */
    {"\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd", "\u05e9\u05dc\u05d5\u05dd"}, /* points of Hebrew */
    {"\u0643\u064e\u062a\u064e\u0628", "\u0643\u062a\u0628"},                   /* vowel marks of Arabic */
    {"\u1e69", "s\u0307\u0323"},                                                /* marks in another order */
    {"\u0130stanbul", "istanbul"},                                              /* capital i with dot */
    {"no\u00a0break", "no break"},                                              /* */
    {"\u3000wide\u3000space", "wide space"},                                    /* */
    {"\u0958\u093f", "\u0915\u093c\u093f"}, /* a composition exclusion of Devanagari */
    {"\u01c4", "dz"},                       /* digraph with caron */
};

static const char *const apart[][2] = {
    {"\u0939\u093f\u0928\u094d\u0926\u0940", "\u0939\u0928\u0926"}, /* vowel signs of Devanagari */
    {"\u30d1\u30f3", "\u30cf\u30f3"},                               /* voiced kana */
    {"\u0e19\u0e49\u0e33", "\u0e19\u0e32"},                         /* Thai's tone mark */
    {"s\u00f8r", "sor"},                                            /* o with stroke */
    {"\u0142uk", "luk"},                                            /* l with stroke */
    {"\u0131", "i"},                                                /* dotless i */
    {"\u0430", "a"},                                                /* Cyrillic a */
    {"\u03bf", "o"},                                                /* Greek o */
    {"\u3042", "\u30a2"},                                           /* Hiragana and Katakana */
    {"a\u200bb", "ab"},                                             /* a space without width */
    {"\u00e6on", "aon"},                                            /* ae is a letter */
    {"well-known", "wellknown"},                                    /* */
};

static void spellings_of_a_word_become_one(void **state)
{
    (void)state;
    gx_analyzer *folded = open_as("simple", NULL, NULL, "unicode"), *plain = open_as("simple", NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof alike / sizeof *alike; ++i) {
        const stream a = terms_of(folded, alike[i][0]), b = terms_of(folded, alike[i][1]);
        if (strcmp(a.text, b.text) != 0 || a.len < 2)
            fail_msg("%s makes %s, and %s makes %s", alike[i][0], a.text, alike[i][1], b.text);
    }
    assert_string_not_equal(terms_of(plain, alike[0][0]).text, terms_of(plain, alike[0][1]).text);
    gx_analyzer_close(folded);
    folded = open_as("whitespace", NULL, NULL, "unicode");
    check(folded, "\uff21\u3000B\u00a0\u00c9,", "a|b|e,|");
    gx_analyzer_close(folded);
    gx_analyzer_close(plain);
}

static void different_words_stay_apart(void **state)
{
    (void)state;
    gx_analyzer *an = open_as("simple", NULL, NULL, "unicode");
    for (size_t i = 0; i < sizeof apart / sizeof *apart; ++i) {
        const stream a = terms_of(an, apart[i][0]), b = terms_of(an, apart[i][1]);
        if (strcmp(a.text, b.text) == 0 || !a.len || !b.len)
            fail_msg("%s and %s make %s", apart[i][0], apart[i][1], a.text);
    }
    gx_analyzer_close(an);
}

static void connectors_alone_are_no_terms(void **state)
{
    (void)state;
    static const char *const text = "? \u202f \u203f \u2040 \uff3f _ \u2040_ \ufe33 a\u203fb";
    gx_analyzer *an = open_as("simple", NULL, NULL, "unicode");
    check(an, text, "a\u203fb|");
    gx_analyzer_close(an);
    an = open_as("simple", NULL, NULL, NULL); /* as it always was */
    check(an, text, "\u202f|\u203f|\u2040|\uff3f|\u2040_|\ufe33|a\u203fb|");
    gx_analyzer_close(an);
}

/* Each term's bytes of the text are those of its word, with the marks that stand behind it. */
static void terms_point_into_the_text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words[4];
    } cases[] = {
        {"The CAFE\u0301, o\ufb03ce", {"The", "CAFE\u0301", "o\ufb03ce"}},
        {"\u00c9t\u00e9 soft\u00adhyphen x", {"\u00c9t\u00e9", "soft\u00adhyphen", "x"}},
        {"\u6f22\u5b57 \uff21\uff22", {"\u6f22", "\u5b57", "\uff21\uff22"}},
        {"\u1100\u1161\u11a8 a\u0301\u0323\u034f\u0300", {"\u1100\u1161\u11a8", "a\u0301\u0323\u034f\u0300"}},
        {"x\u2100y", {"x\u2100", "\u2100y"}}, /* x a/c y: both have a part of U+2100 */
        {"\u0301\u0302 a \xff\xc3 \u00e4", {"a", "\u00e4"}},
        {"plain words", {"plain", "words"}},
    };
    gx_analyzer *an = open_as("simple", NULL, NULL, "unicode");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const stream s = terms_of(an, cases[i].text);
        size_t n = 0;
        for (; n < 4 && cases[i].words[n]; ++n) {
            assert_true(n < s.n);
            assert_int_equal(s.end[n] - s.begin[n], strlen(cases[i].words[n]));
            assert_memory_equal(cases[i].text + s.begin[n], cases[i].words[n], s.end[n] - s.begin[n]);
        }
        assert_int_equal(s.n, n);
    }
    gx_analyzer_close(an);
}

/* A text of several pieces: offsets count from its beginning, not from that of a piece. */
static void offsets_hold_in_a_long_text(void **state)
{
    (void)state;
    const size_t len = 100000;
    char *text = malloc(len + 1);
    gx_error err = {0};
    gx_text_term *terms;
    size_t n;
    assert_non_null(text);
    for (size_t i = 0; i < len; i += 10)
        memcpy(text + i, i / 10 % 2 ? "cafe\u0301 ab " : "\u00c9t\u00e9 plain", 10 + (i + 10 == len));
    assert_int_equal(gx_analyze_text("simple", NULL, NULL, "unicode", NULL, text, len, &terms, &n, &err), GX_OK);
    assert_true(n > 10000);
    for (size_t i = 0; i < n; ++i) {
        const size_t word = terms[i].end - terms[i].begin;
        const char *at = text + terms[i].begin;
        assert_true(terms[i].end <= len);
        if (strncmp(terms[i].term, "cafe", 4) == 0)
            assert_memory_equal(at, "cafe\u0301", 6);
        else if (strcmp(terms[i].term, "ete") == 0)
            assert_memory_equal(at, "\u00c9t\u00e9", word);
        else
            assert_memory_equal(at, terms[i].term, word < terms[i].len ? word : terms[i].len);
    }
    free(terms);
    free(text);
}

static void bytes_that_are_not_utf8_separate_and_are_counted(void **state)
{
    (void)state;
    static const char text[] = "ab\xff"
                               "cd \xc3\u00ad\xa9 e\xe2\x82 \xed\xa0\x80 ok";
    gx_analyzer *an = open_as("simple", NULL, NULL, "unicode");
    check(an, text, "ab|cd|e|ok|");
    gx_analysis *a;
    gx_tokens t;
    assert_int_equal(gx_analysis_open(&a, an, NULL), GX_OK);
    memcpy(gx_analysis_buffer(a, sizeof text - 1), text, sizeof text - 1);
    assert_int_equal(gx_analysis_tokenize(a, sizeof text - 1, &t), GX_OK);
    assert_int_equal(t.replaced, 1 + 1 + 1 + 2 + 3);
    memcpy(gx_analysis_buffer(a, 2), "ok", 2);
    assert_int_equal(gx_analysis_tokenize(a, 2, &t), GX_OK);
    assert_int_equal(t.replaced, 0);
    gx_analysis_close(a);
    gx_analyzer_close(an);
}

static void stop_words_are_folded_and_stems_made_of_folded_words(void **state)
{
    (void)state;
    char file[sizeof path + 8];
    snprintf(file, sizeof file, "%s.stop", path);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs("\u00e0\n\u00ad\nE\u0301TE\u0301\n", f);
    fclose(f);
    gx_analyzer *an = open_as("simple", NULL, file, "unicode"), *again;
    check(an, "A \u00e0 \u00e9t\u00e9 ete etc", "etc|");
    char *json = gx_analyzer_json(an);
    assert_int_equal(gx_analyzer_open_json(&again, json, strlen(json), NULL), GX_OK);
    check(again, "A \u00e0 \u00e9t\u00e9 ete etc", "etc|");
    free(json);
    gx_analyzer_close(again);
    gx_analyzer_close(an);
    unlink(file);
    an = open_as("english", NULL, NULL, "unicode");
    check(an, "T\u0301he \uff32unning CAT\u2019S", "run|cat|");
    gx_analyzer_close(an);
}

static void a_description_names_the_fold(void **state)
{
    (void)state;
    static const char start[] =
        "{\"tokenizer\":\"word\",\"lowercase\":true,\"possessive\":true,\"max_token_bytes\":255,"
        "\"stopwords\":[],\"stemmer\":\"none\"";
    char text[512];
    gx_analyzer *an;
    gx_error err = {0};
    snprintf(text, sizeof text, "%s}", start);
    assert_int_equal(gx_analyzer_open_json(&an, text, strlen(text), &err), GX_OK);
    check(an, "caf\u00e9", "caf\u00e9|");
    char *json = gx_analyzer_json(an);
    assert_string_equal(json, text); /* without a word of the fold */
    free(json);
    gx_analyzer_close(an);
    snprintf(text, sizeof text, "%s,\"fold\":\"unicode\"}", start);
    assert_int_equal(gx_analyzer_open_json(&an, text, strlen(text), &err), GX_OK);
    check(an, "caf\u00e9", "cafe|");
    json = gx_analyzer_json(an);
    assert_string_equal(json, text);
    free(json);
    gx_analyzer_close(an);
    snprintf(text, sizeof text, "%s,\"fold\":\"latin\"}", start);
    assert_int_equal(gx_analyzer_open_json(&an, text, strlen(text), &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "no fold is called \"latin\"; there are: none, unicode"));
    snprintf(text, sizeof text, "%s,\"fold\":1}", start);
    assert_int_equal(gx_analyzer_open_json(&an, text, strlen(text), &err), GX_ECORRUPT);
    assert_int_equal(gx_analyzer_open(&an, &(gx_analyzer_options){.fold = "latin"}, &err), GX_EUSAGE);
    assert_null(an);
}

static void an_index_with_an_unknown_fold_is_refused(void **state)
{
    (void)state;
    gx_writer_options opt = GX_WRITER_OPTIONS;
    gx_error err = {0};
    gx_writer *w;
    gx_index *ix;
    opt.docids = gx_codecs[0];
    opt.force = true;
    assert_int_equal(gx_writer_open(&w, path, &opt, &err), GX_OK);
    assert_int_equal(gx_writer_finish(w,
                                      "{\"analyzer\":{\"tokenizer\":\"word\",\"lowercase\":true,\"possessive\":false,"
                                      "\"max_token_bytes\":255,\"stopwords\":[],\"stemmer\":\"none\","
                                      "\"fold\":\"latin\"}}",
                                      &err),
                     GX_OK);
    gx_writer_close(w);
    assert_int_equal(gx_index_open(&ix, path, NULL, &err), GX_ECORRUPT);
    assert_non_null(strstr(err.text, "META"));
    assert_non_null(strstr(err.text, "no fold is called \"latin\""));
    unlink(path);
}

/* ---- laws, over all characters and over random texts ---- */

static void check_laws(gx_fold *once, gx_fold *twice, const char *text, size_t len)
{
    assert_true(gx_fold_text(once, text, len));
    assert_true(gx_fold_text(twice, once->bytes, once->n));
    if (twice->n != once->n || (once->n && memcmp(twice->bytes, once->bytes, once->n) != 0))
        fail_msg("the fold of %.*s is %.*s, whose fold is %.*s", (int)len, text, (int)once->n, once->bytes,
                 (int)twice->n, twice->bytes);
    assert_int_equal(twice->replaced, 0);
    size_t last_begin = 0, last_end = 0;
    for (size_t i = 0; i < once->n; ++i) {
        size_t begin = i, end = i + 1;
        gx_fold_range(once, &begin, &end);
        assert_true(begin < end && end <= len && begin >= last_begin && end >= last_end);
        last_begin = begin;
        last_end = end;
    }
}

static void folding_again_changes_no_character(void **state)
{
    (void)state;
    gx_fold once = {0}, twice = {0};
    for (utf8proc_int32_t c = 0; c < 0x110000; ++c) {
        char text[8] = "a";
        if (!utf8proc_codepoint_valid(c))
            continue;
        const size_t n = 1 + (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)text + 1);
        check_laws(&once, &twice, text, n);
        check_laws(&once, &twice, text + 1, n - 1);
    }
    gx_fold_free(&once);
    gx_fold_free(&twice);
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Characters that decompose, combine, fold or disappear, between others. */
static size_t random_text(char *out, size_t chars, uint64_t *seed)
{
    static const utf8proc_int32_t first[][2] = {
        {0x20, 0x7E},     {0xA0, 0x17F},    {0x300, 0x345},   {0x370, 0x3FF},   {0x400, 0x45F},   {0x591, 0x5F4},
        {0x621, 0x65F},   {0x900, 0x97F},   {0x9BE, 0x9D7},   {0xE01, 0xE4E},   {0x1100, 0x11FF}, {0x1E00, 0x1FFE},
        {0x2000, 0x206F}, {0x2100, 0x218B}, {0x2460, 0x24FF}, {0x3041, 0x30FF}, {0x3131, 0x3243}, {0x3300, 0x33FF},
        {0x4E00, 0x4E20}, {0xAC00, 0xAD00}, {0xF900, 0xFA6D}, {0xFB00, 0xFDFB}, {0xFF01, 0xFFDC}, {0x1D400, 0x1D7FF},
        {0xA640, 0xA69F}, {0x13A0, 0x13F5}, {0xAB70, 0xABBF}, {0x20D0, 0x20F0}, {0x3099, 0x309C}, {0xAD, 0xAD},
    };
    size_t n = 0;
    for (size_t i = 0; i < chars; ++i) {
        const utf8proc_int32_t *r = first[next_random(seed) % (sizeof first / sizeof *first)];
        const utf8proc_int32_t c = r[0] + (utf8proc_int32_t)(next_random(seed) % (uint64_t)(r[1] - r[0] + 1));
        n += (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)out + n);
    }
    return n;
}

static void decomposed_and_composed_texts_fold_alike(void **state)
{
    (void)state;
    static const utf8proc_option_t forms[] = {UTF8PROC_DECOMPOSE, UTF8PROC_COMPOSE,
                                              UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, UTF8PROC_COMPOSE | UTF8PROC_COMPAT};
    gx_fold once = {0}, twice = {0}, other = {0};
    uint64_t seed = 20090426;
    for (int round = 0; round < 20000; ++round) {
        char text[128];
        const size_t len = random_text(text, 1 + next_random(&seed) % 24, &seed);
        check_laws(&once, &twice, text, len);
        for (size_t i = 0; i < sizeof forms / sizeof *forms; ++i) {
            utf8proc_uint8_t *form;
            const utf8proc_ssize_t n =
                utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)len, &form, forms[i] | UTF8PROC_STABLE);
            assert_true(n >= 0);
            assert_true(gx_fold_text(&other, (const char *)form, (size_t)n));
            if (other.n != once.n || (once.n && memcmp(other.bytes, once.bytes, once.n) != 0))
                fail_msg("round %d: %.*s folds to %.*s, in form %zu to %.*s", round, (int)len, text, (int)once.n,
                         once.bytes, i, (int)other.n, other.bytes);
            free(form);
        }
    }
    for (int round = 0; round < 20000; ++round) { /* bytes */
        char text[64];
        const size_t len = next_random(&seed) % sizeof text;
        for (size_t i = 0; i < len; ++i)
            text[i] = (char)(next_random(&seed) % 3 ? "a\xC3\xA9\xCC\x81\xEF\xAC"[next_random(&seed) % 7]
                                                    : (char)next_random(&seed));
        check_laws(&once, &twice, text, len);
    }
    gx_fold_free(&once);
    gx_fold_free(&twice);
    gx_fold_free(&other);
}

/* A row of marks without end is cut, not sorted in quadratic time. */
static void a_million_marks_fold_at_once(void **state)
{
    (void)state;
    enum { MARKS = 1000000 };
    char *text = malloc(3 * MARKS + 1);
    gx_fold f = {0};
    assert_non_null(text);
    text[0] = 'a';
    for (size_t i = 0; i < MARKS; ++i) /* kana's voicing and a nukta: of different classes, and kept */
        memcpy(text + 1 + 3 * i, i % 2 ? "\u3099" : "\u093c", 3);
    assert_true(gx_fold_text(&f, text, 3 * MARKS + 1));
    assert_int_equal(f.n, 3 * MARKS + 1);
    gx_fold_free(&f);
    free(text);
}

/* ---- in an index ---- */

enum { DOCS = 300, QUERIES = 300 };

static char *in_form(const char *text, utf8proc_option_t form)
{
    utf8proc_uint8_t *out;
    assert_true(utf8proc_map((const utf8proc_uint8_t *)text, 0, &out, form | UTF8PROC_STABLE | UTF8PROC_NULLTERM) >= 0);
    return (char *)out;
}

/* Words of two or three syllables, some with accents, ligatures and wide letters. */
static void random_words(char *out, size_t words, uint64_t *seed)
{
    static const char *const syllables[] = {"caf\u00e9", "\u00fcb", "\u00f1o",      "\ufb01x",      "\uff21b",
                                            "\u00e5s",   "\u1e69",  "\u0439\u0451", "\u30d1",       "\uac01",
                                            "plain",     "word",    "\u00dfe",      "\u1f84\u03c2", "so\u00adft"};
    out[0] = 0;
    for (size_t i = 0; i < words; ++i) {
        for (uint64_t n = 1 + next_random(seed) % 2; n > 0; --n)
            strcat(out, syllables[next_random(seed) % (sizeof syllables / sizeof *syllables)]);
        strcat(out, " ");
    }
}

static void composed_and_decomposed_queries_find_the_same(void **state)
{
    (void)state;
    gx_builder_options build = GX_BUILDER_OPTIONS;
    gx_engine_options cpu = GX_ENGINE_OPTIONS;
    gx_error err = {0};
    gx_builder *b;
    gx_index *ix;
    gx_engine *en;
    gx_session *session;
    uint64_t seed = 4711, found = 0;
    char text[1024];
    build.path = path;
    build.force = true;
    build.analyzer = "simple";
    build.fold = "unicode";
    build.store_text = true;
    cpu.kind = GX_ENGINE_CPU;
    assert_int_equal(gx_builder_open(&b, &build, &err), GX_OK);
    for (int d = 0; d < DOCS; ++d) {
        char id[16];
        random_words(text, 1 + next_random(&seed) % 12, &seed);
        char *form = in_form(text, d % 2 ? UTF8PROC_DECOMPOSE : UTF8PROC_COMPOSE);
        const gx_document doc = {sizeof doc, id,          NULL, form, (size_t)snprintf(id, sizeof id, "d%d", d),
                                 0,          strlen(form)};
        assert_int_equal(gx_builder_add(b, &doc, &err), GX_OK);
        free(form);
    }
    assert_int_equal(gx_builder_finish(b, &err), GX_OK);
    gx_builder_abort(b);
    if (gx_index_open(&ix, path, NULL, &err) || gx_engine_open(&en, ix, &cpu, &err) ||
        gx_session_open(&session, en, &err))
        fail_msg("%s", err.text);
    for (int q = 0; q < QUERIES; ++q) {
        static const utf8proc_option_t forms[] = {UTF8PROC_COMPOSE, UTF8PROC_DECOMPOSE,
                                                  UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_IGNORE};
        uint32_t docids[3][10], n[3];
        float scores[3][10];
        random_words(text, 1 + next_random(&seed) % 3, &seed);
        for (int i = 0; i < 3; ++i) {
            char *form = in_form(text, forms[i]);
            const gx_query query = GX_TEXT_QUERY(form, strlen(form));
            const gx_query_options options = GX_QUERY_OPTIONS;
            gx_results results = {sizeof results, docids[i], scores[i], &n[i], NULL};
            assert_int_equal(gx_search(session, &query, 1, &options, &results, &err), GX_OK);
            free(form);
            assert_int_equal(n[i], n[0]);
            assert_memory_equal(docids[i], docids[0], n[0] * sizeof **docids);
            assert_memory_equal(scores[i], scores[0], n[0] * sizeof **scores);
        }
        found += n[0];
    }
    assert_true(found > QUERIES);
    gx_session_close(session);
    gx_engine_close(en);

    /* Marks of a snippet: whole characters, and none twice. */
    const char *const shown = "x\u2100y has cafe\u0301 and \ufb01x";
    const gx_query query = GX_TEXT_QUERY("XA CY caf\u00e9 fix", sizeof "XA CY caf\u00e9 fix" - 1);
    gx_highlighter *h;
    gx_snippet s;
    static const char *const marked[] = {"x\u2100", "y", "cafe\u0301", "\ufb01x"};
    assert_int_equal(gx_highlighter_open(&h, ix, &query, &err), GX_OK);
    assert_int_equal(gx_highlighter_snippet(h, shown, strlen(shown), 30, &s, &err), GX_OK);
    assert_int_equal(s.n_marks, 4);
    for (uint32_t i = 0; i < s.n_marks; ++i) {
        assert_int_equal(s.marks[i].end - s.marks[i].begin, strlen(marked[i]));
        assert_memory_equal(shown + s.marks[i].begin, marked[i], strlen(marked[i]));
    }
    gx_highlighter_close(h);
    gx_index_close(ix);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings_of_a_word_become_one),
        cmocka_unit_test(different_words_stay_apart),
        cmocka_unit_test(connectors_alone_are_no_terms),
        cmocka_unit_test(terms_point_into_the_text),
        cmocka_unit_test(offsets_hold_in_a_long_text),
        cmocka_unit_test(bytes_that_are_not_utf8_separate_and_are_counted),
        cmocka_unit_test(stop_words_are_folded_and_stems_made_of_folded_words),
        cmocka_unit_test(a_description_names_the_fold),
        cmocka_unit_test(an_index_with_an_unknown_fold_is_refused),
        cmocka_unit_test(folding_again_changes_no_character),
        cmocka_unit_test(decomposed_and_composed_texts_fold_alike),
        cmocka_unit_test(a_million_marks_fold_at_once),
        cmocka_unit_test(composed_and_decomposed_queries_find_the_same),
    };
    snprintf(path, sizeof path, "test-fold-%d.gx", (int)getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
