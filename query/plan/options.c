/* options.c: the table of a search's options: their names, what their values look like, and where they go. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "engine/text/ascii.h"
#include "engine/text/c_locale.h"

void gx_search_setup_init(gx_search_setup *s, size_t size)
{
    const gx_search_setup defaults = {
        .size = sizeof *s, .kind = GX_QUERY_TEXT, .options = GX_QUERY_OPTIONS, .rm3 = {.size = sizeof(gx_rm3_options)}};
    gx_sized_init(s, size, &defaults, sizeof defaults);
}

/* ---- the table ---- */

typedef enum option_id {
    K,
    OP,
    SYNTAX,
    QUOTES,
    SDM,
    SCORER,
    K1,
    B,
    RM3,
    TIMEOUT,
    PRUNE,
    ALGORITHM,
    APPROXIMATE,
    PRIOR,
    MAX_EXPANSIONS,
    FUZZY_PREFIX,
    EXPANSION_SCORING,
    QUERY_K1,
    QUERY_B,
    N_OPTIONS
} option_id;

static const gx_search_option options[N_OPTIONS] = {
    [K] = {"k", GX_OPTION_COUNT, NULL, 1, UINT32_MAX, "the most results of a query"},
    [OP] = {"op", GX_OPTION_CHOICE, GX_OP_WORDS, 0, 0,
            "which documents match: those with any of the query's words, with all, or with all where that gives k "
            "results"},
    [SYNTAX] = {"syntax", GX_OPTION_CHOICE, GX_SYNTAX_WORDS, 0, 0,
                "how queries are read: every word is searched for, or +must -not (a OR b) term^2.5 year:2019"},
    [QUOTES] = {"quotes", GX_OPTION_CHOICE, GX_QUOTES_WORDS_LIST, 0, 0,
                "what quotes mean in plain queries, of an index with positions: a phrase, or nothing"},
    [SDM] = {"sdm", GX_OPTION_TEXT, NULL, 0, 0,
             "weights of the words of plain queries, of pairs of them in a row, and within 8 places in any order: "
             "WORDS,ORDERED,UNORDERED; on is 0.85,0.1,0.05; or off"},
    [SCORER] = {"scorer", GX_OPTION_CHOICE, GX_PRESET_WORDS, 0, 0, "the formula of the scores"},
    [K1] = {"k1", GX_OPTION_NUMBER, NULL, 0, 3.4e38, "BM25's k1 instead of the scorer's own"},
    [B] = {"b", GX_OPTION_NUMBER, NULL, 0, 1, "BM25's b instead of the scorer's own"},
    [RM3] = {"rm3", GX_OPTION_TEXT, NULL, 0, 0,
             "expand each query by terms of its best documents: DOCS,TERMS,WEIGHT; on is 10,10,0.5; or off"},
    [TIMEOUT] = {"timeout", GX_OPTION_NUMBER, NULL, 0, 1e6, "the most seconds that a search may take; 0: no limit"},
    [PRUNE] = {"prune", GX_OPTION_SWITCH, NULL, 0, 0, "skip postings that cannot change the results"},
    [ALGORITHM] = {"algorithm", GX_OPTION_CHOICE, GX_ALGORITHM_WORDS, 0, 0,
                   "how the results are found; they are always the same"},
    [APPROXIMATE] = {"approximate", GX_OPTION_TEXT, NULL, 0, 0,
                     "give up exactness for speed: terms:X and blocks:N with a comma between; 0: exact"},
    [PRIOR] = {"prior", GX_OPTION_TEXT, NULL, 0, 0,
               "add a number of each document to its score: NAME:w=X,form=F, F log, sat or linear; or off"},
    [MAX_EXPANSIONS] = {"max-expansions", GX_OPTION_COUNT, NULL, 1, GX_MAX_TERMS,
                        "the most words that a word with * or ? or ~ or /.../ of the boolean syntax stands for"},
    [FUZZY_PREFIX] = {"fuzzy-prefix", GX_OPTION_COUNT, NULL, 0, GX_MAX_FUZZY_CHARACTERS,
                      "so many characters at the beginning of word~ have no typing errors"},
    [EXPANSION_SCORING] = {"expansion-scoring", GX_OPTION_CHOICE, GX_EXPANSION_SCORING_WORDS, 0, 0,
                           "how words with * or ? or ~ or /.../ score: each word that they stand for, all as one, or a "
                           "constant"},
    [QUERY_K1] = {"query-k1", GX_OPTION_NUMBER, NULL, 0, 3.4e38,
                  "weigh the words of a plain query by BM25, too, with this k1: for long queries"},
    [QUERY_B] = {"query-b", GX_OPTION_NUMBER, NULL, 0, 1, "the b of query-k1"},
};

const gx_search_option *gx_search_options(size_t *n)
{
    *n = N_OPTIONS;
    return options;
}

const gx_search_option *gx_search_option_find(const char *name, size_t len)
{
    for (size_t i = 0; i < N_OPTIONS; ++i)
        if (strlen(options[i].name) == len && memcmp(options[i].name, name, len) == 0)
            return &options[i];
    return NULL;
}

int gx_word_index(const char *words, const char *word, size_t len)
{
    for (int i = 0; words; ++i) {
        const size_t n = strcspn(words, "|");
        if (n == len && memcmp(words, word, n) == 0)
            return i;
        words = words[n] ? words + n + 1 : NULL;
    }
    return -1;
}

/* ---- values ---- */

/* A value as the table reads it. */
typedef struct value {
    const char *text; /* [len], a 0 behind it */
    double number;    /* of counts, numbers, choices and switches */
} value;

static bool read_number(double *out, const char *text)
{
    char *end;
    if (!gx_is_digit(text[strspn(text, "+-.")]) || text[strspn(text, "0123456789.eE+-")])
        return false;
    *out = gx_strtod(text, &end);
    return *end == 0 && isfinite(*out);
}

/* Read a number; messages begin with `what`. */
static gx_status read_in_range(value *v, const gx_search_option *o, const char *what, gx_error *err)
{
    const bool whole = o->kind == GX_OPTION_COUNT;
    if (!read_number(&v->number, v->text) || (whole && strspn(v->text, "0123456789") != strlen(v->text)))
        return gx_fail(err, GX_EUSAGE, "%s'%.80s' is not a %snumber", what, v->text, whole ? "whole " : "");
    if (v->number < o->min)
        return gx_fail(err, GX_EUSAGE, "%s'%.80s' is less than %.10g", what, v->text, o->min);
    if (v->number > o->max)
        return gx_fail(err, GX_EUSAGE, "%s'%.80s' is more than %.10g", what, v->text, o->max);
    return GX_OK;
}

static gx_status read_value(value *v, const gx_search_option *o, gx_error *err)
{
    const size_t len = strlen(v->text);
    if (o->kind == GX_OPTION_TEXT)
        return GX_OK;
    if (o->kind == GX_OPTION_COUNT || o->kind == GX_OPTION_NUMBER)
        return read_in_range(v, o, "", err);
    if (o->kind == GX_OPTION_CHOICE) {
        v->number = gx_word_index(o->words, v->text, len);
        return v->number >= 0 ? GX_OK : gx_fail(err, GX_EUSAGE, "'%.80s' is not one of %s", v->text, o->words);
    }
    const int i = gx_word_index("off|on|false|true", v->text, len);
    v->number = i % 2;
    return i >= 0 ? GX_OK : gx_fail(err, GX_EUSAGE, "'%.80s' is neither on nor off", v->text);
}

/* Read "DOCS,TERMS,WEIGHT", "on" or "off". */
static gx_status read_rm3(gx_rm3_options *out, const char *text, gx_error *err)
{
    static const gx_search_option parts[3] = {
        {"docs", GX_OPTION_COUNT, NULL, 1, GX_RM3_MAX_DOCS, "feedback documents: "},
        {"terms", GX_OPTION_COUNT, NULL, 1, GX_MAX_TERMS, "feedback terms: "},
        {"weight", GX_OPTION_NUMBER, NULL, 0, 1, "weight: "},
    };
    value parsed[3] = {0};
    char part[32];
    *out = (gx_rm3_options){.size = sizeof *out};
    if (strcmp(text, "off") == 0)
        return GX_OK;
    if (strcmp(text, "on") == 0)
        text = "10,10,0.5";
    for (int i = 0; i < 3; ++i) {
        const size_t len = strcspn(text, ",");
        if (len == 0 || len >= sizeof part || (i < 2) != (text[len] == ','))
            return gx_fail(err, GX_EUSAGE, "it has the form DOCS,TERMS,WEIGHT, such as 10,10,0.5");
        memcpy(part, text, len);
        part[len] = 0;
        parsed[i].text = part;
        const gx_status st = read_in_range(&parsed[i], &parts[i], parts[i].help, err);
        if (st != GX_OK)
            return st;
        text += len + (i < 2);
    }
    *out = (gx_rm3_options){sizeof *out, (uint32_t)parsed[0].number, (uint32_t)parsed[1].number, parsed[2].number};
    return GX_OK;
}

static gx_status assign(gx_search_setup *s, option_id id, const value *v, gx_error *err)
{
    gx_query_options *const o = &s->options;
    switch (id) {
    case K:
        o->k = (uint32_t)v->number;
        break;
    case OP:
        o->op = (gx_op)v->number;
        break;
    case SYNTAX:
        s->kind = v->number == 0 ? GX_QUERY_TEXT : GX_QUERY_BOOLEAN;
        break;
    case QUOTES:
        o->quotes = (gx_quotes)v->number;
        break;
    case SDM:
        return gx_sdm_read(&o->sdm, v->text, err);
    case SCORER:
        o->preset = (gx_preset)v->number;
        s->scorer_given = true;
        break;
    case K1:
        o->k1 = (float)v->number;
        break;
    case B:
        o->b = (float)v->number;
        break;
    case RM3:
        return read_rm3(&s->rm3, v->text, err);
    case TIMEOUT:
        o->seconds = v->number;
        break;
    case PRUNE:
        o->prune = v->number != 0;
        break;
    case ALGORITHM:
        o->algorithm = (gx_algorithm)v->number;
        break;
    case APPROXIMATE:
        return gx_approximate_read(o, v->text, err);
    case PRIOR:
        if (strcmp(v->text, "off") != 0)
            return gx_prior_read(&o->prior, v->text, err);
        o->prior.weight = 0;
        break;
    case MAX_EXPANSIONS:
        o->expansion.max_words = (uint32_t)v->number;
        break;
    case FUZZY_PREFIX:
        o->expansion.fixed_prefix = (uint32_t)v->number;
        break;
    case EXPANSION_SCORING:
        o->expansion.scoring = (gx_expansion_scoring)v->number;
        break;
    case QUERY_K1:
        o->query_k1 = (float)v->number;
        break;
    case QUERY_B:
        o->query_b = (float)v->number;
        break;
    case N_OPTIONS:
        break;
    }
    return GX_OK;
}

static bool has_default(option_id id)
{
    return id == K1 || id == B || id == QUERY_K1 || id == QUERY_B;
}

/* ---- setting and telling ---- */

static gx_status set(gx_search_setup *s, option_id id, const char *text, gx_error *err)
{
    gx_search_setup changed = *s;
    value v = {.text = text};
    gx_status st = GX_OK;
    if (has_default(id) && strcmp(text, "default") == 0)
        v.number = NAN;
    else
        st = read_value(&v, &options[id], err);
    if (st == GX_OK)
        st = assign(&changed, id, &v, err);
    if (st == GX_OK)
        *s = changed;
    return st;
}

enum { MAX_VALUE = 255 };

gx_status gx_search_setup_set(gx_search_setup *s, const char *name, size_t name_len, const char *text, size_t len,
                              gx_error *err)
{
    const gx_search_option *o = gx_search_option_find(name, name_len);
    char copy[MAX_VALUE + 1];
    gx_status st = gx_sized_check(s->size, sizeof *s, "gx_search_setup", err);
    if (st != GX_OK)
        return st;
    if (!o)
        return gx_fail(err, GX_ENOTFOUND, "there is no option '%.*s'", name_len < 80 ? (int)name_len : 80, name);
    if (len > MAX_VALUE || memchr(text, 0, len))
        return gx_fail(err, GX_EUSAGE, "this is no value of %s", o->name);
    memcpy(copy, text, len);
    copy[len] = 0;
    return set(s, (option_id)(o - options), copy, err);
}

gx_status gx_search_setup_read(gx_search_setup *s, const char *text, gx_error *err)
{
    static const char blanks[] = " \t\r\n";
    gx_search_setup changed = *s;
    for (text += strspn(text, blanks); *text; text += strspn(text, blanks)) {
        const size_t len = strcspn(text, blanks);
        const char *equals = memchr(text, '=', len);
        if (!equals)
            return gx_fail(err, GX_EUSAGE, "'%.*s' has no value; write NAME=VALUE", len < 80 ? (int)len : 80, text);
        const size_t name = (size_t)(equals - text);
        gx_error why = {0};
        const gx_status st = gx_search_setup_set(&changed, text, name, equals + 1, len - name - 1, &why);
        if (st == GX_EUSAGE)
            return gx_fail(err, st, "%.*s: %.900s", (int)(name < 80 ? name : 80), text, why.text);
        if (st != GX_OK)
            return gx_fail(err, st, "%.900s", why.text);
        text += len;
    }
    *s = changed;
    return GX_OK;
}

static void put_word(char *text, const char *words, int i)
{
    for (; i > 0; --i)
        words += strcspn(words, "|") + 1;
    snprintf(text, GX_OPTION_VALUE_BYTES, "%.*s", (int)strcspn(words, "|"), words);
}

static void put_number(char *text, double x)
{
    if (isnan(x))
        snprintf(text, GX_OPTION_VALUE_BYTES, "default");
    else
        gx_print(text, GX_OPTION_VALUE_BYTES, "%.9g", x);
}

void gx_search_setup_get(const gx_search_setup *s, const gx_search_option *option, char *text)
{
    const gx_query_options *const o = &s->options;
    switch ((option_id)(option - options)) {
    case K:
        snprintf(text, GX_OPTION_VALUE_BYTES, "%u", o->k);
        break;
    case OP:
        put_word(text, GX_OP_WORDS, (int)o->op);
        break;
    case SYNTAX:
        put_word(text, GX_SYNTAX_WORDS, s->kind == GX_QUERY_BOOLEAN);
        break;
    case QUOTES:
        put_word(text, GX_QUOTES_WORDS_LIST, (int)o->quotes);
        break;
    case SDM:
        gx_sdm_write(&o->sdm, text);
        break;
    case SCORER:
        put_word(text, GX_PRESET_WORDS, (int)o->preset);
        break;
    case K1:
        put_number(text, o->k1);
        break;
    case B:
        put_number(text, o->b);
        break;
    case RM3:
        if (s->rm3.fb_docs)
            gx_print(text, GX_OPTION_VALUE_BYTES, "%u,%u,%.9g", s->rm3.fb_docs, s->rm3.fb_terms, s->rm3.weight);
        else
            snprintf(text, GX_OPTION_VALUE_BYTES, "off");
        break;
    case TIMEOUT:
        put_number(text, o->seconds);
        break;
    case PRUNE:
        snprintf(text, GX_OPTION_VALUE_BYTES, "%s", o->prune ? "on" : "off");
        break;
    case ALGORITHM:
        put_word(text, GX_ALGORITHM_WORDS, (int)o->algorithm);
        break;
    case APPROXIMATE:
        gx_approximate_write(o, text);
        break;
    case PRIOR:
        gx_prior_write(&o->prior, text);
        break;
    case MAX_EXPANSIONS:
        snprintf(text, GX_OPTION_VALUE_BYTES, "%u", o->expansion.max_words);
        break;
    case FUZZY_PREFIX:
        snprintf(text, GX_OPTION_VALUE_BYTES, "%u", o->expansion.fixed_prefix);
        break;
    case EXPANSION_SCORING:
        put_word(text, GX_EXPANSION_SCORING_WORDS, (int)o->expansion.scoring);
        break;
    case QUERY_K1:
        put_number(text, o->query_k1);
        break;
    case QUERY_B:
        put_number(text, o->query_b);
        break;
    case N_OPTIONS:
        break;
    }
}

gx_status gx_search_setup_settle(gx_search_setup *s, const gx_index *ix, gx_error *err)
{
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_quick_stats(ix, &stats);
    if (stats.impacts && !s->scorer_given)
        s->options.preset = GX_IMPACT;
    if (s->rm3.fb_docs && s->kind == GX_QUERY_BOOLEAN)
        return gx_fail(err, GX_EUSAGE, "rm3 expands plain queries, not those of the boolean syntax");
    if (s->options.sdm.words > 0 && s->kind == GX_QUERY_BOOLEAN)
        return gx_fail(err, GX_EUSAGE, "sdm weighs pairs of plain queries, not those of the boolean syntax");
    if (s->options.sdm.words > 0 && s->rm3.fb_docs)
        return gx_fail(err, GX_EUSAGE, "sdm and rm3: one of them");
    if (s->rm3.fb_docs && !stats.texts)
        return gx_fail(err, GX_ENOTFOUND,
                       "rm3: the index stores no texts, of which feedback terms are taken; build it with --store=text");
    return GX_OK;
}
