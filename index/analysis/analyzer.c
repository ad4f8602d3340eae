#include "index/analysis/analysis_state.h"

#include <errno.h>
#include <libstemmer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/status.h"
#include "engine/text/json_text.h"
#include "index/analysis/stemmer_print.h"

#define MAX_TOKEN_BYTES 255u
#define NGRAMS "ngrams:" /* begins the rule of n-grams */
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
    if (token_len > a->an->max_token_bytes || gx_token_is_no_word(a->an, token, token_len))
        return GX_OK;
    const size_t whole = gx_token_lower(a, token, token_len);
    *n = gx_word_cut(a->an, token, token_len, a->term, whole);
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
