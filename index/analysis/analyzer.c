#include "index/analysis/analyzer.h"

#include <errno.h>
#include <libstemmer.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/text/json_text.h"
#include "engine/status.h"
#include "engine/thread_number.h"
#include "index/analysis/fold.h"
#include "index/analysis/porter.h"
#include "index/analysis/tokenizer.h"

#define MAX_TOKEN_BYTES 255u
#define POOL_SIZE 64u
#define POOL_LOOKS 8u /* places at which a thread looks that has none of its own, or whose own is taken */

typedef struct stop_word {
    char *bytes;
    size_t len;
} stop_word;

/* A place for an idle workspace, or NULL. A thread has a place of its own as long as there are no more than POOL_SIZE,
 * in a cache line of its own: where many threads plan short queries, they would wait for the line of a shared one. */
typedef struct pool_slot {
    alignas(64) _Atomic(gx_analysis *) idle;
} pool_slot;

struct gx_analyzer {
    gx_tokenizer_mode mode;
    bool lowercase, possessive, fold;
    uint32_t max_token_bytes;
    char *stemmer;    /* "none", "porter", or Snowball's name */
    stop_word *stops; /* [n_stops], sorted by bytes, no duplicates */
    size_t n_stops, max_stops, longest_stop;
    pool_slot *pool; /* [POOL_SIZE] */
};

struct gx_analysis {
    const gx_analyzer *an;
    gx_tokenizer tokenizer;
    gx_fold fold;
    bool folded;                 /* the tokenizer's text is fold's; else it is as it was given */
    struct sb_stemmer *snowball; /* NULL if the stemmer is not one of Snowball's */
    bool porter;
    char *term; /* scratch; lower case takes at most three times a token's bytes */
};

/* Lucene's EnglishAnalyzer.ENGLISH_STOP_WORDS_SET */
static const char *const lucene_stop_words[] = {
    "a",   "an",    "and",  "are",   "as",    "at",   "be",   "but", "by",  "for",  "if",
    "in",  "into",  "is",   "it",    "no",    "not",  "of",   "on",  "or",  "such", "that",
    "the", "their", "then", "there", "these", "they", "this", "to",  "was", "will", "with",
};

/* ---- stop words ---- */

static int compare_stop_words(const void *pa, const void *pb)
{
    const stop_word *a = pa, *b = pb;
    const int c = memcmp(a->bytes, b->bytes, a->len < b->len ? a->len : b->len);
    return c ? c : (a->len > b->len) - (a->len < b->len);
}

static bool keep_stop_word(gx_analyzer *an, const char *word, size_t len)
{
    if (an->n_stops == an->max_stops) {
        const size_t max = an->max_stops ? 2 * an->max_stops : 64;
        stop_word *p = realloc(an->stops, max * sizeof *p);
        if (!p)
            return false;
        an->stops = p;
        an->max_stops = max;
    }
    char *copy = malloc(len + 1);
    if (!copy)
        return false;
    memcpy(copy, word, len);
    copy[len] = 0;
    an->stops[an->n_stops++] = (stop_word){copy, len};
    an->longest_stop = len > an->longest_stop ? len : an->longest_stop;
    return true;
}

static bool add_stop_word(gx_analyzer *an, const char *word, size_t len)
{
    if (!an->fold)
        return keep_stop_word(an, word, len);
    gx_fold folded = {0};
    const bool ok = gx_fold_text(&folded, word, len) && (folded.n == 0 || keep_stop_word(an, folded.bytes, folded.n));
    gx_fold_free(&folded);
    return ok;
}

static void sort_stop_words(gx_analyzer *an)
{
    if (an->n_stops == 0)
        return;
    qsort(an->stops, an->n_stops, sizeof *an->stops, compare_stop_words);
    size_t n = 1;
    for (size_t i = 1; i < an->n_stops; ++i) {
        if (compare_stop_words(&an->stops[i], &an->stops[n - 1]) == 0)
            free(an->stops[i].bytes);
        else
            an->stops[n++] = an->stops[i];
    }
    an->n_stops = n;
}

static bool is_stop_word(const gx_analyzer *an, const char *word, size_t len)
{
    const stop_word key = {(char *)(uintptr_t)word, len};
    return len <= an->longest_stop && bsearch(&key, an->stops, an->n_stops, sizeof key, compare_stop_words);
}

/* Writes the lower case of UTF-8 text to out, which has room for 3 len bytes. Copies bytes that are
 * not UTF-8. Returns the length. */
static size_t lowercase_utf8(char *out, const char *in, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        const unsigned char b = (unsigned char)in[i];
        utf8proc_int32_t c;
        utf8proc_ssize_t taken;
        if (b < 0x80) {
            out[n++] = (char)(b >= 'A' && b <= 'Z' ? b | 0x20 : b);
            ++i;
        } else if ((taken = utf8proc_iterate((const utf8proc_uint8_t *)in + i, (utf8proc_ssize_t)(len - i), &c)) <= 0) {
            out[n++] = in[i++];
        } else {
            n += (size_t)utf8proc_encode_char(utf8proc_tolower(c), (utf8proc_uint8_t *)out + n);
            i += (size_t)taken;
        }
    }
    return n;
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

/* Reads a line of a stop word file. */
static gx_status read_stop_word(gx_analyzer *an, const char *line, size_t len, const char *path, size_t line_no,
                                gx_error *err)
{
    size_t begin = 0;
    if (memchr(line, 0, len))
        return gx_fail(err, GX_EINPUT, "%s:%zu: the line holds a NUL byte, which no term does; it must be UTF-8 text",
                       path, line_no);
    while (len && strchr(" \t\r\n", line[len - 1]))
        --len;
    while (begin < len && (line[begin] == ' ' || line[begin] == '\t'))
        ++begin;
    if (begin == len)
        return GX_OK;
    if (!is_utf8(line + begin, len - begin))
        return gx_fail(err, GX_EINPUT, "%s:%zu: the stop word is not UTF-8; convert the file, with iconv for example",
                       path, line_no);
    char *low = malloc(3 * (len - begin) + 4);
    const size_t n = !low            ? 0
                     : an->lowercase ? lowercase_utf8(low, line + begin, len - begin)
                                     : (memcpy(low, line + begin, len - begin), len - begin);
    const bool ok = low && add_stop_word(an, low, n);
    free(low);
    return ok ? GX_OK : gx_fail(err, GX_ENOMEM, "out of memory while reading the stop word file %s", path);
}

static gx_status read_stop_words(gx_analyzer *an, const char *path, gx_error *err)
{
    gx_status st = GX_OK;
    char *line = NULL;
    size_t cap = 0, line_no = 0;
    ssize_t n;
    FILE *f = fopen(path, "rb");
    if (!f)
        return gx_fail(err, gx_status_of_errno(errno),
                       "cannot open the stop word file %s: %s; stop words are \"none\", \"lucene\" or a file with a "
                       "word a line",
                       path, strerror(errno));
    while (st == GX_OK && (errno = 0, n = getline(&line, &cap, f)) >= 0)
        st = read_stop_word(an, line, (size_t)n, path, ++line_no, err);
    if (st == GX_OK && errno == ENOMEM) /* which sets no error on the stream */
        st = gx_fail(err, GX_ENOMEM, "out of memory while reading the stop word file %s", path);
    else if (st == GX_OK && ferror(f))
        st = gx_fail(err, GX_EIO, "cannot read the stop word file %s: %s", path, strerror(errno));
    free(line);
    fclose(f);
    return st;
}

static gx_status choose_stop_words(gx_analyzer *an, const char *name, gx_error *err)
{
    if (strcmp(name, "none") == 0)
        return GX_OK;
    if (strcmp(name, "lucene") != 0)
        return read_stop_words(an, name, err);
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

static gx_status choose_stemmer(gx_analyzer *an, const char *name, gx_error *err)
{
    if (strcmp(name, "none") != 0 && strcmp(name, "porter") != 0) {
        errno = 0;
        struct sb_stemmer *s = sb_stemmer_new(name, "UTF_8");
        if (!s && errno == ENOMEM)
            return gx_fail(err, GX_ENOMEM, "out of memory for the stemmer %s", name);
        if (!s) {
            char known[512] = "";
            size_t n = 0;
            for (const char **l = sb_stemmer_list(); *l && n < sizeof known - 32; ++l)
                if (strcmp(*l, "porter") != 0)
                    n += (size_t)snprintf(known + n, sizeof known - n, ", %s", *l);
            return gx_fail(err, GX_EUSAGE, "no stemmer is called \"%s\"; there are: none, porter%s", name, known);
        }
        sb_stemmer_delete(s);
    }
    an->stemmer = strdup(name);
    return an->stemmer ? GX_OK : gx_fail(err, GX_ENOMEM, "out of memory for an analyzer");
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
    const bool english = strcmp(name, "english") == 0, whitespace = strcmp(name, "whitespace") == 0;
    if (!english && !whitespace && strcmp(name, "simple") != 0)
        return gx_fail(err, GX_EUSAGE, "no analyzer is called \"%s\"; there are: english, simple, whitespace", name);
    gx_analyzer *an = new_analyzer();
    if (!an)
        return gx_fail(err, GX_ENOMEM, "out of memory for an analyzer");
    an->mode = whitespace ? GX_TOKENIZER_SPACES : GX_TOKENIZER_WORDS;
    an->lowercase = !whitespace;
    an->possessive = english;
    an->max_token_bytes = MAX_TOKEN_BYTES;
    gx_status st = choose_fold(an, opt && opt->fold ? opt->fold : "none", err);
    if (st == GX_OK)
        st = choose_stemmer(an, opt && opt->stemmer ? opt->stemmer : english ? "porter" : "none", err);
    if (st == GX_OK)
        st = choose_stop_words(an, opt && opt->stopwords ? opt->stopwords : english ? "lucene" : "none", err);
    if (st != GX_OK) {
        gx_analyzer_close(an);
        return st;
    }
    sort_stop_words(an);
    *out = an;
    return GX_OK;
}

static gx_status from_json(gx_analyzer *an, json_t *root, gx_error *err)
{
    const char *tokenizer = NULL, *stemmer = NULL, *fold = "none";
    int lowercase = 0, possessive = 0;
    json_int_t max_bytes = 0;
    json_t *stops = NULL;
    json_error_t why;
    if (json_unpack_ex(root, &why, 0, "{s:s, s:b, s:b, s:I, s:o, s:s, s?s}", "tokenizer", &tokenizer, "lowercase",
                       &lowercase, "possessive", &possessive, "max_token_bytes", &max_bytes, "stopwords", &stops,
                       "stemmer", &stemmer, "fold", &fold))
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
    const gx_status st = choose_fold(an, fold, err);
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
    sort_stop_words(an);
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
    for (size_t i = 0; i < an->n_stops; ++i)
        free(an->stops[i].bytes);
    free(an->stops);
    free(an->stemmer);
    free(an);
}

char *gx_analyzer_json(const gx_analyzer *an)
{
    char *text = NULL;
    json_t *stops = json_array();
    bool ok = stops;
    for (size_t i = 0; ok && i < an->n_stops; ++i)
        ok = json_array_append_new(stops, json_stringn(an->stops[i].bytes, an->stops[i].len)) == 0;
    json_t *root = ok ? json_pack("{s:s, s:b, s:b, s:I, s:O, s:s}", "tokenizer",
                                  an->mode == GX_TOKENIZER_SPACES ? "whitespace" : "word", "lowercase", an->lowercase,
                                  "possessive", an->possessive, "max_token_bytes", (json_int_t)an->max_token_bytes,
                                  "stopwords", stops, "stemmer", an->stemmer)
                      : NULL;
    if (root && an->fold && json_object_set_new(root, "fold", json_string("unicode"))) {
        json_decref(root);
        root = NULL;
    }
    if (root)
        text = gx_json_dump(root, JSON_COMPACT);
    json_decref(root);
    json_decref(stops);
    return text;
}

/* ---- workspaces ---- */

gx_status gx_analysis_open(gx_analysis **out, const gx_analyzer *an, gx_error *err)
{
    *out = NULL;
    gx_analysis *a = calloc(1, sizeof *a);
    if (!a)
        goto fail;
    a->an = an;
    a->porter = strcmp(an->stemmer, "porter") == 0;
    if (!a->porter && strcmp(an->stemmer, "none") != 0 && !(a->snowball = sb_stemmer_new(an->stemmer, "UTF_8")))
        goto fail;
    if (!(a->term = malloc(3 * (size_t)an->max_token_bytes + 4)))
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

gx_status gx_analysis_tokenize(gx_analysis *a, size_t len, gx_tokens *out)
{
    gx_tokenizer *s = &a->tokenizer;
    const uint64_t replaced = s->replaced;
    if (a->an->fold && (len = fold_buffer(a, len)) == SIZE_MAX)
        return GX_ENOMEM;
    if (!gx_tokenize(s, a->an->mode, a->an->lowercase || a->an->fold, len))
        return GX_ENOMEM;
    *out = (gx_tokens){s->bytes, s->tokens, s->n, (uint32_t)(s->replaced - replaced)};
    if (a->folded)
        out->replaced += a->fold.replaced;
    return GX_OK;
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

gx_token_kind gx_analysis_term(gx_analysis *a, const char *token, size_t len, const char **term, size_t *term_len)
{
    const gx_analyzer *an = a->an;
    if (len > an->max_token_bytes)
        return GX_TOKEN_TOO_LONG;
    if (an->mode == GX_TOKENIZER_WORDS && (an->fold ? only_connectors : only_underscores)(token, len))
        return GX_TOKEN_STOPPED;
    size_t n = an->possessive ? without_possessive(token, len) : len;
    if (!an->lowercase || an->fold || all_ascii(token, n)) /* the tokenizer has already lowered ASCII */
        memcpy(a->term, token, n);
    else
        n = lowercase_utf8(a->term, token, n);
    if (n == 0 || is_stop_word(an, a->term, n))
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
            if (!emit(user, term, n, at + begin, at + end))
                return GX_OK;
        }
        at += piece;
    }
    return GX_OK;
}

gx_status gx_analyze(const gx_analyzer *an, const char *text, size_t len, gx_term_fn *emit, void *user)
{
    gx_analysis *a = acquire_workspace(an);
    if (!a)
        return GX_ENOMEM;
    const gx_status st = analyze(a, text, len, emit, user);
    release_workspace(an, a);
    return st;
}
