#include "index/analysis/analyzer.h"

#include <errno.h>
#include <libstemmer.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/status.h"
#include "engine/text/json_text.h"
#include "engine/thread_number.h"
#include "index/analysis/fold.h"
#include "index/analysis/language.h"
#include "index/analysis/light.h"
#include "index/analysis/porter.h"
#include "index/analysis/stemmer_print.h"
#include "index/analysis/stop_words.h"
#include "index/analysis/subtokens.h"
#include "index/analysis/tokenizer.h"

#define MAX_TOKEN_BYTES 255u
#define NGRAMS "ngrams:" /* begins the rule of n-grams */
#define POOL_SIZE 64u
#define POOL_LOOKS 8u /* places at which a thread looks that has none of its own, or whose own is taken */

/* A place for an idle workspace, or NULL. A thread has a place of its own as long as there are no more than POOL_SIZE,
 * in a cache line of its own: where many threads plan short queries, they would wait for the line of a shared one. */
typedef struct pool_slot {
    alignas(64) _Atomic(gx_analysis *) idle;
} pool_slot;

/* How tokens are divided further: subtokens.h */
typedef enum division { DIVIDE_NOT, DIVIDE_SCRIPTS, DIVIDE_IDENTIFIERS } division;

struct gx_analyzer {
    gx_tokenizer_mode mode;
    bool lowercase, possessive, fold;
    uint32_t max_token_bytes;
    bool emoji; /* those below U+1F000 are words, too */
    bool light; /* light.h */
    division division;
    bool dictionary; /* with DIVIDE_SCRIPTS: a dictionary finds words */
    char icu[16];    /* its version when the terms were made; "": not recorded */
    gx_grams grams;
    gx_language language; /* whose rules hold, or GX_LANGUAGE_ANY */
    char *stemmer;        /* "none", "porter", or Snowball's name */
    uint64_t print;       /* of the stemmer that the terms of an index were made with; 0: not recorded */
    char unicode[16];     /* Unicode's version of that time; "": not recorded */
    gx_stop_words stops;
    pool_slot *pool; /* [POOL_SIZE] */
};

struct gx_analysis {
    const gx_analyzer *an;
    gx_tokenizer tokenizer;
    gx_fold fold;
    bool folded;                 /* the tokenizer's text is fold's; else it is as it was given */
    struct sb_stemmer *snowball; /* NULL if the stemmer is not one of Snowball's */
    bool porter;
    bool query;                /* the text is a query's */
    gx_dictionary *dictionary; /* NULL: none, or the analyzer asks for none */
    gx_subtokens parts, grams;
    char *term; /* scratch; lower case takes at most three times a token's bytes */
};

/* Lucene's EnglishAnalyzer.ENGLISH_STOP_WORDS_SET */
static const char *const lucene_stop_words[] = {
    "a",   "an",    "and",  "are",   "as",    "at",   "be",   "but", "by",  "for",  "if",
    "in",  "into",  "is",   "it",    "no",    "not",  "of",   "on",  "or",  "such", "that",
    "the", "their", "then", "there", "these", "they", "this", "to",  "was", "will", "with",
};

/* ---- stop words ---- */

static bool add_stop_word(gx_analyzer *an, const char *word, size_t len)
{
    if (!an->fold)
        return gx_stop_words_add(&an->stops, word, len);
    gx_fold folded = {.emoji = an->emoji, .turkish = an->language == GX_LANGUAGE_TURKISH};
    const bool ok =
        gx_fold_text(&folded, word, len) && (folded.n == 0 || gx_stop_words_add(&an->stops, folded.bytes, folded.n));
    gx_fold_free(&folded);
    return ok;
}

static bool is_utf8(const char *p, size_t len)
{
    utf8proc_int32_t c;
    for (size_t i = 0; i < len;) {
        const utf8proc_ssize_t n = (unsigned char)p[i] < 0x80 ? 1
                                                              : utf8proc_iterate((const utf8proc_uint8_t *)p + i,
                                                                                 (utf8proc_ssize_t)(len - i), &c);
        if (n <= 0)
            return false;
        i += (size_t)n;
    }
    return true;
}

static bool is_no_word(const gx_analyzer *an, const char *token, size_t len);
static size_t lower_token(gx_analysis *a, const char *token, size_t len);
static size_t cut_word(const gx_analyzer *an, const char *token, size_t len, char *word, size_t n);

/* What analysis, but for the stemmer, makes of a line of a stop word file; a gx_stop_word_fn. */
static gx_status make_stop_word(void *user, const char *line, size_t len, const char **word, size_t *n,
                                gx_stop_word_kind *kind)
{
    gx_analysis *a = user;
    gx_tokens t;
    char *p = gx_analysis_buffer(a, len);
    *word = NULL;
    if (!p)
        return GX_ENOMEM;
    memcpy(p, line, len);
    const gx_status st = gx_analysis_tokenize(a, len, &t);
    if (st != GX_OK || t.n != 1)
        return st;
    const char *const token = t.bytes + t.ranges[0].begin;
    size_t begin = t.ranges[0].begin, end = t.ranges[0].end;
    const size_t token_len = end - begin;
    gx_analysis_range(a, &begin, &end);
    if (token_len > a->an->max_token_bytes || is_no_word(a->an, token, token_len))
        return GX_OK;
    const size_t whole = lower_token(a, token, token_len);
    *n = cut_word(a->an, token, token_len, a->term, whole);
    *word = a->term;
    *kind = begin > 0 || end < len ? GX_STOP_WORD_OTHER : *n == whole ? GX_STOP_WORD_SAME : GX_STOP_WORD_CUT;
    return GX_OK;
}

static gx_status choose_stop_words(gx_analyzer *an, const char *name, gx_error *err)
{
    gx_analysis *a;
    if (strcmp(name, "none") == 0)
        return GX_OK;
    if (strcmp(name, "lucene") != 0) {
        gx_status st = gx_analysis_open(&a, an, err);
        if (st != GX_OK)
            return st;
        st = gx_stop_words_read(&an->stops, name, an->mode == GX_TOKENIZER_SPACES, make_stop_word, a, err);
        gx_analysis_close(a);
        return st;
    }
    for (size_t i = 0; i < sizeof lucene_stop_words / sizeof *lucene_stop_words; ++i)
        if (!add_stop_word(an, lucene_stop_words[i], strlen(lucene_stop_words[i])))
            return gx_fail(err, GX_ENOMEM, "out of memory for stop words");
    return GX_OK;
}

/* ---- opening and describing ---- */

static gx_status choose_fold(gx_analyzer *an, const char *name, gx_error *err)
{
    an->fold = strcmp(name, "unicode") == 0;
    if (!an->fold && strcmp(name, "none") != 0)
        return gx_fail(err, GX_EUSAGE, "no fold is called \"%s\"; there are: none, unicode", name);
    return GX_OK;
}

/* Names of Snowball's stemmers, but for "porter", behind others. */
static void list_languages(char *out, size_t room)
{
    size_t n = 0;
    for (const char **l = sb_stemmer_list(); *l && n + 32 < room; ++l)
        if (strcmp(*l, "porter") != 0)
            n += (size_t)snprintf(out + n, room - n, ", %s", *l);
}

static gx_status choose_stemmer(gx_analyzer *an, const char *name, gx_error *err)
{
    if (strcmp(name, "none") != 0 && strcmp(name, "porter") != 0) {
        errno = 0;
        struct sb_stemmer *s = sb_stemmer_new(name, "UTF_8");
        if (!s && errno == ENOMEM)
            return gx_fail(err, GX_ENOMEM, "out of memory for the stemmer %s", name);
        if (!s) {
            char known[512] = "";
            list_languages(known, sizeof known);
            return gx_fail(err, GX_EUSAGE, "no stemmer is called \"%s\"; there are: none, porter%s", name, known);
        }
        sb_stemmer_delete(s);
    }
    an->stemmer = strdup(name);
    return an->stemmer ? GX_OK : gx_fail(err, GX_ENOMEM, "out of memory for an analyzer");
}

/* What a name stands for. */
typedef struct preset {
    const char *name, *stemmer, *stopwords, *fold; /* stemmer NULL: Snowball's of that name */
    bool whitespace, english;
    division division;
} preset;

static const preset presets[] = {
    {"english", "porter", "lucene", "none", .english = true},
    {"simple", "none", "none", "none", false, false, DIVIDE_NOT},
    {"whitespace", "none", "none", "none", .whitespace = true},
    {"multilingual", "none", "none", "unicode", .division = DIVIDE_SCRIPTS},
    {"code", "none", "none", "none", .division = DIVIDE_IDENTIFIERS},
};
static const preset of_language = {NULL, NULL, "none", "none", false, false, DIVIDE_NOT};

static const preset *find_preset(const char *name, gx_error *err)
{
    char languages[512] = "";
    for (size_t i = 0; i < sizeof presets / sizeof *presets; ++i)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    const char *const full = gx_stemmer_full_name(name);
    for (const char **l = sb_stemmer_list(); *l; ++l)
        if (strcmp(*l, full) == 0 && strcmp(full, "porter") != 0 && strcmp(full, "english") != 0)
            return &of_language;
    list_languages(languages, sizeof languages);
    gx_fail(err, GX_EUSAGE,
            "no analyzer is called \"%s\"; there are: english, simple, whitespace, multilingual, code, and those of "
            "languages%s",
            name, languages + (*languages != 0));
    return NULL;
}

static gx_status choose_grams(gx_analyzer *an, const char *text, gx_error *err)
{
    if (!gx_grams_read(&an->grams, text))
        return gx_fail(err, GX_EUSAGE,
                       "\"%s\" are no n-grams; give a length, such as 3, or edge:2-15, of 1 to %u characters", text,
                       GX_MAX_GRAM);
    if (!an->grams.most)
        return GX_OK;
    if (strcmp(an->stemmer, "none") != 0 || an->stops.n)
        return gx_fail(err, GX_EUSAGE,
                       "n-grams are made of whole words: give an analyzer without a stemmer and stop words, such as "
                       "simple");
    if (!an->grams.edge && an->division)
        return gx_fail(err, GX_EUSAGE,
                       "this analyzer divides words already, and has n-grams of their edges alone; give edge:2-15, or "
                       "the analyzer simple");
    return GX_OK;
}

static bool is_snowball(const gx_analyzer *an)
{
    return strcmp(an->stemmer, "none") != 0 && strcmp(an->stemmer, "porter") != 0;
}

/* Choose the rules that analyzers made today have, and those of earlier versions lack: of emoji, but for "english",
 * and of the stemmer's language. Record which stemmer and which Unicode will make the terms. */
static gx_status choose_rules(gx_analyzer *an, const preset *p, gx_error *err)
{
    if (an->mode == GX_TOKENIZER_WORDS) {
        an->emoji = !p->english;
        an->language = gx_language_of_stemmer(an->stemmer);
    }
    an->division = p->division;
    if (an->division == DIVIDE_SCRIPTS) {
        an->light = an->fold;
        an->dictionary = *gx_dictionary_version();
        snprintf(an->icu, sizeof an->icu, "%s", gx_dictionary_version());
    }
    if (an->emoji || an->fold)
        snprintf(an->unicode, sizeof an->unicode, "%s", utf8proc_unicode_version());
    if (is_snowball(an) && !gx_stemmer_print(an->stemmer, &an->print))
        return gx_fail(err, GX_ENOMEM, "out of memory for the stemmer %s", an->stemmer);
    return GX_OK;
}

static gx_analyzer *new_analyzer(void)
{
    gx_analyzer *an = calloc(1, sizeof *an);
    if (an && !(an->pool = aligned_alloc(alignof(pool_slot), POOL_SIZE * sizeof *an->pool))) {
        free(an);
        an = NULL;
    }
    if (an)
        memset(an->pool, 0, POOL_SIZE * sizeof *an->pool);
    return an;
}

gx_status gx_analyzer_open(gx_analyzer **out, const gx_analyzer_options *opt, gx_error *err)
{
    *out = NULL;
    const char *name = opt && opt->name ? opt->name : "english";
    const preset *const p = find_preset(name, err);
    if (!p)
        return GX_EUSAGE;
    gx_analyzer *an = new_analyzer();
    if (!an)
        return gx_fail(err, GX_ENOMEM, "out of memory for an analyzer");
    an->mode = p->whitespace ? GX_TOKENIZER_SPACES : GX_TOKENIZER_WORDS;
    an->lowercase = !p->whitespace;
    an->possessive = p->english;
    an->max_token_bytes = MAX_TOKEN_BYTES;
    gx_status st = choose_fold(an, opt && opt->fold ? opt->fold : p->fold, err);
    if (st == GX_OK && an->fold && p->division == DIVIDE_IDENTIFIERS)
        st = gx_fail(err, GX_EUSAGE, "the analyzer code divides names at capitals, which a fold takes from them");
    if (st == GX_OK)
        st = choose_stemmer(an,
                            opt && opt->stemmer ? gx_stemmer_full_name(opt->stemmer)
                            : p->stemmer        ? p->stemmer
                                                : gx_stemmer_full_name(name),
                            err);
    if (st == GX_OK)
        st = choose_rules(an, p, err);
    if (st == GX_OK)
        st = choose_stop_words(an, opt && opt->stopwords ? opt->stopwords : p->stopwords, err);
    if (st == GX_OK)
        st = choose_grams(an, opt && opt->ngrams ? opt->ngrams : "none", err);
    if (st != GX_OK) {
        gx_analyzer_close(an);
        return st;
    }
    gx_stop_words_sort(&an->stops);
    *out = an;
    return GX_OK;
}

/* A rule of a description that is not a language's name. false: there is none of that name. */
static bool read_rule(gx_analyzer *an, const char *name)
{
    const bool words = an->mode == GX_TOKENIZER_WORDS;
    if (strncmp(name, NGRAMS, strlen(NGRAMS)) == 0)
        return gx_grams_read(&an->grams, name + strlen(NGRAMS)) && an->grams.most;
    if (words && strcmp(name, "emoji") == 0)
        an->emoji = true;
    else if (words && strcmp(name, "scripts") == 0 && !an->division)
        an->division = DIVIDE_SCRIPTS;
    else if (words && strcmp(name, "identifiers") == 0 && !an->division)
        an->division = DIVIDE_IDENTIFIERS;
    else if (words && strcmp(name, "dictionary") == 0)
        an->dictionary = true;
    else if (words && strcmp(name, "light") == 0)
        an->light = true;
    else
        return false;
    return true;
}

/* The rules of a description: those of read_rule, and a language's name. */
static gx_status read_rules(gx_analyzer *an, json_t *rules, gx_error *err)
{
    size_t i;
    json_t *rule;
    if (rules && !json_is_array(rules))
        return gx_fail(err, GX_ECORRUPT, "the analyzer's rules are not an array");
    json_array_foreach(rules, i, rule)
    {
        const char *name = json_is_string(rule) ? json_string_value(rule) : "";
        const gx_language language = gx_language_of_stemmer(name);
        if (an->mode == GX_TOKENIZER_WORDS && language)
            an->language = language;
        else if (!read_rule(an, name))
            return gx_fail(err, GX_EUSAGE, "no rule of an analyzer is called \"%.40s\"", name);
    }
    return GX_OK;
}

/* What the description says of the stemmer and of Unicode when the terms were made. */
static gx_status read_record(gx_analyzer *an, const char *print, const char *unicode, const char *icu, gx_error *err)
{
    char *end = NULL;
    if (print)
        an->print = strtoull(print, &end, 16);
    if (print && (!end || *end || strlen(print) != 16))
        return gx_fail(err, GX_ECORRUPT, "the analyzer's stemmer_print is not 16 hexadecimal digits");
    if (unicode)
        snprintf(an->unicode, sizeof an->unicode, "%s", unicode);
    if (icu)
        snprintf(an->icu, sizeof an->icu, "%s", icu);
    return GX_OK;
}

static gx_status from_json(gx_analyzer *an, json_t *root, gx_error *err)
{
    const char *tokenizer = NULL, *stemmer = NULL, *fold = "none", *print = NULL, *unicode = NULL, *icu = NULL;
    int lowercase = 0, possessive = 0;
    json_int_t max_bytes = 0;
    json_t *stops = NULL, *rules = NULL;
    json_error_t why;
    if (json_unpack_ex(root, &why, 0, "{s:s, s:b, s:b, s:I, s:o, s:s, s?s, s?o, s?s, s?s, s?s}", "tokenizer",
                       &tokenizer, "lowercase", &lowercase, "possessive", &possessive, "max_token_bytes", &max_bytes,
                       "stopwords", &stops, "stemmer", &stemmer, "fold", &fold, "rules", &rules, "stemmer_print",
                       &print, "unicode", &unicode, "icu", &icu))
        return gx_fail(err, GX_ECORRUPT, "the analyzer's description is not understood: %s", why.text);
    const bool whitespace = strcmp(tokenizer, "whitespace") == 0;
    if (!whitespace && strcmp(tokenizer, "word") != 0)
        return gx_fail(err, GX_ECORRUPT, "the analyzer's tokenizer \"%s\" is neither \"word\" nor \"whitespace\"",
                       tokenizer);
    if (max_bytes < 1 || max_bytes > 65535)
        return gx_fail(err, GX_ECORRUPT, "the analyzer's max_token_bytes is not in 1 to 65535");
    if (!json_is_array(stops))
        return gx_fail(err, GX_ECORRUPT, "the analyzer's stopwords are not an array");
    an->mode = whitespace ? GX_TOKENIZER_SPACES : GX_TOKENIZER_WORDS;
    an->lowercase = lowercase;
    an->possessive = possessive;
    an->max_token_bytes = (uint32_t)max_bytes;
    gx_status st = choose_fold(an, fold, err);
    if (st == GX_OK)
        st = read_rules(an, rules, err);
    if (st == GX_OK)
        st = read_record(an, print, unicode, icu, err);
    if (st != GX_OK)
        return st;
    size_t i;
    json_t *word;
    json_array_foreach(stops, i, word)
    {
        if (!json_is_string(word))
            return gx_fail(err, GX_ECORRUPT, "the analyzer's stop word %zu is not a string", i);
        if (!add_stop_word(an, json_string_value(word), json_string_length(word)))
            return gx_fail(err, GX_ENOMEM, "out of memory for stop words");
    }
    gx_stop_words_sort(&an->stops);
    return choose_stemmer(an, stemmer, err);
}

gx_status gx_analyzer_open_json(gx_analyzer **out, const char *json, size_t len, gx_error *err)
{
    *out = NULL;
    json_error_t why;
    errno = 0; /* jansson does not tell, but malloc does, if memory is short */
    json_t *root = gx_json_load(json, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!root && errno == ENOMEM)
        return gx_fail(err, GX_ENOMEM, "out of memory for an analyzer");
    if (!root)
        return gx_fail(err, GX_ECORRUPT, "the analyzer's description is not JSON: %s", why.text);
    gx_analyzer *an = new_analyzer();
    gx_status st = an ? from_json(an, root, err) : gx_fail(err, GX_ENOMEM, "out of memory for an analyzer");
    json_decref(root);
    if (st != GX_OK)
        gx_analyzer_close(an);
    else
        *out = an;
    return st;
}

void gx_analyzer_close(gx_analyzer *an)
{
    if (!an)
        return;
    for (unsigned i = 0; i < POOL_SIZE; ++i)
        gx_analysis_close(atomic_load(&an->pool[i].idle));
    free(an->pool);
    gx_stop_words_free(&an->stops);
    free(an->stemmer);
    free(an);
}

static bool add_rules(const gx_analyzer *an, json_t *root)
{
    char grams[sizeof NGRAMS + 32] = NGRAMS;
    gx_grams_write(&an->grams, grams + strlen(NGRAMS));
    const struct {
        bool holds;
        const char *name;
    } rules[] = {
        {an->emoji, "emoji"},
        {an->language, gx_language_name(an->language)},
        {an->division == DIVIDE_SCRIPTS, "scripts"},
        {an->division == DIVIDE_IDENTIFIERS, "identifiers"},
        {an->dictionary, "dictionary"},
        {an->light, "light"},
        {an->grams.most, grams},
    };
    json_t *list = json_array();
    bool ok = list;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i)
        if (rules[i].holds)
            ok = json_array_append_new(list, json_string(rules[i].name)) == 0 && ok;
    if (json_array_size(list))
        ok = json_object_set(root, "rules", list) == 0 && ok;
    json_decref(list);
    return ok;
}

/* Add the members that descriptions do not always have. With `record` false, those are left out that say nothing of
 * what analysis does. */
static bool add_optional(const gx_analyzer *an, bool record, json_t *root)
{
    char print[24];
    bool ok = !an->fold || json_object_set_new(root, "fold", json_string("unicode")) == 0;
    ok = add_rules(an, root) && ok;
    snprintf(print, sizeof print, "%016llx", (unsigned long long)an->print);
    if (record && an->print)
        ok = json_object_set_new(root, "stemmer_print", json_string(print)) == 0 && ok;
    if (record && *an->unicode)
        ok = json_object_set_new(root, "unicode", json_string(an->unicode)) == 0 && ok;
    if (record && *an->icu)
        ok = json_object_set_new(root, "icu", json_string(an->icu)) == 0 && ok;
    return ok;
}

static char *describe(const gx_analyzer *an, bool record)
{
    char *text = NULL;
    json_t *stops = json_array();
    bool ok = stops;
    for (size_t i = 0; ok && i < an->stops.n; ++i)
        ok = json_array_append_new(stops, json_stringn(an->stops.words[i].bytes, an->stops.words[i].len)) == 0;
    json_t *root = ok ? json_pack("{s:s, s:b, s:b, s:I, s:O, s:s}", "tokenizer",
                                  an->mode == GX_TOKENIZER_SPACES ? "whitespace" : "word", "lowercase", an->lowercase,
                                  "possessive", an->possessive, "max_token_bytes", (json_int_t)an->max_token_bytes,
                                  "stopwords", stops, "stemmer", an->stemmer)
                      : NULL;
    if (root && add_optional(an, record, root))
        text = gx_json_dump(root, JSON_COMPACT);
    json_decref(root);
    json_decref(stops);
    return text;
}

char *gx_analyzer_json(const gx_analyzer *an)
{
    return describe(an, true);
}

gx_status gx_analyzers_agree(const gx_analyzer *a, const gx_analyzer *b, gx_analyzers_differ *how)
{
    char *x = describe(a, false), *y = describe(b, false);
    const bool read = x && y, same = read && strcmp(x, y) == 0;
    free(x);
    free(y);
    *how = !same                                          ? GX_ANALYZERS_OTHER
           : a->print && b->print && a->print != b->print ? GX_ANALYZERS_STEMMER
                                                          : GX_ANALYZERS_SAME;
    return read ? GX_OK : GX_ENOMEM;
}

bool gx_analyzer_is_recorded(const gx_analyzer *an)
{
    return an->print || *an->unicode;
}

gx_analysis_change gx_analyzer_change(const gx_analyzer *an, gx_error *what)
{
    uint64_t print = 0;
    gx_clear_error(what);
    if (an->print && gx_stemmer_print(an->stemmer, &print) && print != an->print) {
        gx_fail(what, GX_EUSAGE,
                "its terms were made by another version of the stemmer %s than this program has: words whose stems "
                "differ are not found; build it anew",
                an->stemmer);
        return GX_ANALYSIS_STEMMER;
    }
    if (an->dictionary && !*gx_dictionary_version()) {
        gx_fail(what, GX_EUSAGE,
                "its words of Thai, Lao, Khmer and Burmese were found by the dictionary of ICU %s, which this program "
                "lacks: they are not found; ask with a build that has ICU",
                an->icu);
        return GX_ANALYSIS_DICTIONARY;
    }
    if (an->dictionary && *an->icu && strcmp(an->icu, gx_dictionary_version()) != 0) {
        gx_fail(what, GX_EUSAGE,
                "its words of Thai, Lao, Khmer and Burmese were found by ICU %s, and this program has %s: some may not "
                "be found",
                an->icu, gx_dictionary_version());
        return GX_ANALYSIS_UNICODE;
    }
    if (*an->unicode && strcmp(an->unicode, utf8proc_unicode_version()) != 0) {
        gx_fail(what, GX_EUSAGE,
                "its terms were made with Unicode %s, and this program has %s: words with characters that are new in "
                "one of them may not be found",
                an->unicode, utf8proc_unicode_version());
        return GX_ANALYSIS_UNICODE;
    }
    return GX_ANALYSIS_SAME;
}

/* ---- workspaces ---- */

gx_status gx_analysis_open(gx_analysis **out, const gx_analyzer *an, gx_error *err)
{
    *out = NULL;
    gx_analysis *a = calloc(1, sizeof *a);
    if (!a)
        goto fail;
    a->an = an;
    a->tokenizer.emoji = an->emoji;
    a->fold = (gx_fold){.emoji = an->emoji, .turkish = an->language == GX_LANGUAGE_TURKISH};
    a->porter = strcmp(an->stemmer, "porter") == 0;
    if (!a->porter && strcmp(an->stemmer, "none") != 0 && !(a->snowball = sb_stemmer_new(an->stemmer, "UTF_8")))
        goto fail;
    if (!(a->term = malloc(3 * (size_t)an->max_token_bytes + 4)))
        goto fail;
    if (an->dictionary && *gx_dictionary_version() && !(a->dictionary = gx_dictionary_open()))
        goto fail;
    *out = a;
    return GX_OK;
fail:
    gx_analysis_close(a);
    return gx_fail(err, GX_ENOMEM, "out of memory for an analyzer's workspace");
}

void gx_analysis_close(gx_analysis *a)
{
    if (!a)
        return;
    gx_tokenizer_free(&a->tokenizer);
    gx_fold_free(&a->fold);
    gx_dictionary_close(a->dictionary);
    gx_subtokens_free(&a->parts);
    gx_subtokens_free(&a->grams);
    if (a->snowball)
        sb_stemmer_delete(a->snowball);
    free(a->term);
    free(a);
}

char *gx_analysis_buffer(gx_analysis *a, size_t len)
{
    return gx_tokenizer_buffer(&a->tokenizer, len);
}

static bool all_ascii(const char *p, size_t len)
{
    unsigned char any = 0;
    for (size_t i = 0; i < len; ++i)
        any |= (unsigned char)p[i];
    return any < 0x80;
}

/* Put the fold of the len bytes in the buffer in their place. Returns its length; SIZE_MAX: no
 * memory. */
static size_t fold_buffer(gx_analysis *a, size_t len)
{
    a->folded = !all_ascii(a->tokenizer.bytes, len); /* the tokenizer folds ASCII: by lower case */
    if (a->an->language == GX_LANGUAGE_TURKISH)
        a->folded |= memchr(a->tokenizer.bytes, 'I', len) != NULL;
    if (!a->folded)
        return len;
    if (!gx_fold_text(&a->fold, a->tokenizer.bytes, len))
        return SIZE_MAX;
    char *p = gx_tokenizer_buffer(&a->tokenizer, a->fold.n);
    if (!p)
        return SIZE_MAX;
    if (a->fold.n)
        memcpy(p, a->fold.bytes, a->fold.n);
    return a->fold.n;
}

static void lower_ascii(char *p, size_t len)
{
    for (size_t i = 0; i < len; ++i)
        p[i] |= (char)((unsigned char)(p[i] - 'A') < 26 ? 0x20 : 0);
}

/* Divide the tokens of bytes[len] further, as the analyzer says. */
static gx_status divide(gx_analysis *a, size_t len, gx_tokens *t)
{
    const gx_analyzer *an = a->an;
    const uint32_t most = an->max_token_bytes;
    gx_subtokens *s = &a->parts;
    bool ok = true;
    if (an->division == DIVIDE_SCRIPTS && a->tokenizer.high) {
        ok = gx_divide_scripts(s, a->dictionary, t->bytes, t->ranges, t->n, a->query);
    } else if (an->division == DIVIDE_IDENTIFIERS) {
        ok = gx_divide_identifiers(s, t->bytes, t->ranges, t->n, most);
        if (an->language != GX_LANGUAGE_TURKISH)
            lower_ascii(a->tokenizer.bytes, len);
    } else {
        s = NULL;
    }
    if (s && ok)
        t->ranges = s->ranges, t->positions = s->positions, t->n = s->n, t->n_positions = s->n_positions;
    if (!ok || !an->grams.most)
        return ok ? GX_OK : GX_ENOMEM;
    s = &a->grams;
    if (!gx_divide_grams(s, &an->grams, t->bytes, t->ranges, t->positions, t->n, most, a->query))
        return GX_ENOMEM;
    t->ranges = s->ranges, t->positions = s->positions, t->n = s->n, t->n_positions = s->n_positions;
    return GX_OK;
}

gx_status gx_analysis_tokenize(gx_analysis *a, size_t len, gx_tokens *out)
{
    gx_tokenizer *s = &a->tokenizer;
    const uint64_t replaced = s->replaced;
    if (a->an->fold && (len = fold_buffer(a, len)) == SIZE_MAX)
        return GX_ENOMEM;
    /* Turkish has two letters I, which gx_analysis_term tells apart, and names are divided at capitals */
    const bool lower = (a->an->lowercase || a->an->fold) && a->an->language != GX_LANGUAGE_TURKISH &&
                       a->an->division != DIVIDE_IDENTIFIERS;
    if (!gx_tokenize(s, a->an->mode, lower, len))
        return GX_ENOMEM;
    *out = (gx_tokens){s->bytes, s->tokens, s->n, (uint32_t)(s->replaced - replaced), NULL, s->n};
    if (a->folded)
        out->replaced += a->fold.replaced;
    return a->an->division || a->an->grams.most ? divide(a, len, out) : GX_OK;
}

void gx_analysis_range(const gx_analysis *a, size_t *begin, size_t *end)
{
    if (a->folded)
        gx_fold_range(&a->fold, begin, end);
}

uint32_t gx_analysis_max_token(const gx_analysis *a)
{
    return a->an->max_token_bytes;
}

static bool only_underscores(const char *p, size_t len)
{
    for (size_t i = 0; i < len; ++i)
        if (p[i] != '_')
            return false;
    return true;
}

/* Whether UTF-8 has nothing but underscores and other characters that connect words. */
static bool only_connectors(const char *p, size_t len)
{
    utf8proc_int32_t c;
    for (size_t i = 0; i < len;) {
        const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)p + i, (utf8proc_ssize_t)(len - i), &c);
        if (n <= 0 || utf8proc_category(c) != UTF8PROC_CATEGORY_PC)
            return false;
        i += (size_t)n;
    }
    return true;
}

static size_t without_possessive(const char *p, size_t len)
{
    if (len < 2 || (p[len - 1] | 0x20) != 's')
        return len;
    if (p[len - 2] == '\'')
        return len - 2;
    if (len >= 4 && (memcmp(p + len - 4, "\xE2\x80\x99", 3) == 0 || memcmp(p + len - 4, "\xEF\xBC\x87", 3) == 0))
        return len - 4;
    return len;
}

/* Whether the token is none that can be a term: it has nothing but underscores or connectors. */
static bool is_no_word(const gx_analyzer *an, const char *token, size_t len)
{
    return an->mode == GX_TOKENIZER_WORDS && (an->fold ? only_connectors : only_underscores)(token, len);
}

/* Write the token in lower case, if the analyzer has that, to a->term. Returns its length. */
static size_t lower_token(gx_analysis *a, const char *token, size_t len)
{
    const gx_analyzer *an = a->an;
    if (an->language == GX_LANGUAGE_TURKISH)
        return gx_lowercase_turkish(a->term, token, len);
    if (an->lowercase && !an->fold && !all_ascii(token, len)) /* the tokenizer has already lowered ASCII */
        return gx_lowercase_utf8(a->term, token, len);
    memcpy(a->term, token, len);
    return an->light ? gx_light(a->term, len) : len;
}

/* Cut off what is no part of the word[n] that lower_token has made of the token. Returns its length. */
static size_t cut_word(const gx_analyzer *an, const char *token, size_t len, char *word, size_t n)
{
    if (an->possessive)
        n -= len - without_possessive(token, len);
    return an->language ? gx_language_cut(an->language, word, n) : n;
}

gx_token_kind gx_analysis_term(gx_analysis *a, const char *token, size_t len, const char **term, size_t *term_len)
{
    const gx_analyzer *an = a->an;
    if (len > an->max_token_bytes)
        return GX_TOKEN_TOO_LONG;
    if (is_no_word(an, token, len))
        return GX_TOKEN_STOPPED;
    size_t n = cut_word(an, token, len, a->term, lower_token(a, token, len));
    if (n == 0 || gx_stop_words_has(&an->stops, a->term, n))
        return GX_TOKEN_STOPPED;
    *term = a->term;
    if (a->porter) {
        n = gx_porter(a->term, n);
    } else if (a->snowball && is_utf8(a->term, n)) {
        const sb_symbol *stem = sb_stemmer_stem(a->snowball, (const sb_symbol *)a->term, (int)n);
        if (stem) {
            *term = (const char *)stem;
            n = (size_t)sb_stemmer_length(a->snowball);
        }
    }
    *term_len = n;
    return n ? GX_TOKEN_TERM : GX_TOKEN_STOPPED;
}

/* ---- analysis by several threads ---- */

static gx_analysis *acquire_workspace(const gx_analyzer *an)
{
    const uint32_t number = gx_thread_number(), n = number < POOL_SIZE ? 1 : POOL_LOOKS;
    gx_analysis *a = NULL;
    for (uint32_t i = 0; i < n; ++i) {
        _Atomic(gx_analysis *) *slot = &an->pool[(number + i) % POOL_SIZE].idle;
        if (atomic_load_explicit(slot, memory_order_relaxed) && (a = atomic_exchange(slot, NULL)))
            return a;
    }
    return gx_analysis_open(&a, an, NULL) == GX_OK ? a : NULL;
}

static void release_workspace(const gx_analyzer *an, gx_analysis *a)
{
    const uint32_t number = gx_thread_number();
    for (uint32_t i = 0; i < POOL_LOOKS; ++i) {
        gx_analysis *none = NULL;
        if (atomic_compare_exchange_strong(&an->pool[(number + i) % POOL_SIZE].idle, &none, a))
            return;
    }
    gx_analysis_close(a);
}

static gx_status analyze(gx_analysis *a, const char *text, size_t len, gx_term_fn *emit, void *user)
{
    uint32_t position = 0; /* of the piece's first token */
    for (size_t at = 0; at < len;) {
        const size_t piece = gx_safe_split(text + at, len - at);
        char *p = gx_analysis_buffer(a, piece);
        if (!p)
            return GX_ENOMEM;
        memcpy(p, text + at, piece);
        gx_tokens t;
        if (gx_analysis_tokenize(a, piece, &t) != GX_OK)
            return GX_ENOMEM;
        for (uint32_t i = 0; i < t.n; ++i) {
            const char *term;
            size_t n, begin = t.ranges[i].begin, end = t.ranges[i].end;
            if (gx_analysis_term(a, t.bytes + begin, end - begin, &term, &n) != GX_TOKEN_TERM)
                continue;
            gx_analysis_range(a, &begin, &end);
            const gx_found_term found = {term, n, at + begin, at + end, position + (t.positions ? t.positions[i] : i)};
            if (!emit(user, &found))
                return GX_OK;
        }
        position += t.n_positions;
        at += piece;
    }
    return GX_OK;
}

static gx_status analyze_as(const gx_analyzer *an, bool query, const char *text, size_t len, gx_term_fn *emit,
                            void *user)
{
    gx_analysis *a = acquire_workspace(an);
    if (!a)
        return GX_ENOMEM;
    a->query = query;
    const gx_status st = analyze(a, text, len, emit, user);
    release_workspace(an, a);
    return st;
}

gx_status gx_analyze(const gx_analyzer *an, const char *text, size_t len, gx_term_fn *emit, void *user)
{
    return analyze_as(an, false, text, len, emit, user);
}

gx_status gx_analyze_query(const gx_analyzer *an, const char *text, size_t len, gx_term_fn *emit, void *user)
{
    return analyze_as(an, true, text, len, emit, user);
}

size_t gx_analyzer_letters(const gx_analyzer *an, const char *text, size_t len, char *out, size_t max)
{
    gx_analysis *a = acquire_workspace(an);
    size_t n = len;
    char *p = a ? gx_analysis_buffer(a, len) : NULL;
    if (p) {
        memcpy(p, text, len);
        n = an->fold ? fold_buffer(a, len) : len;
        p = a->tokenizer.bytes;
    }
    const bool lower = an->lowercase || an->fold;
    if (p && n <= max / 3 && n <= an->max_token_bytes) {
        if (an->language == GX_LANGUAGE_TURKISH)
            n = gx_lowercase_turkish(out, p, n);
        else if (lower)
            n = gx_lowercase_utf8(out, p, n);
        else
            memcpy(out, p, n);
    } else {
        n = 0;
    }
    if (a)
        release_workspace(an, a);
    return n;
}
