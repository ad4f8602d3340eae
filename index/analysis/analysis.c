/* analysis.c: texts to terms: workspaces, tokens, their division, and what becomes of each. */
#include <libstemmer.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/status.h"
#include "engine/thread_number.h"
#include "index/analysis/analysis_state.h"
#include "index/analysis/light.h"
#include "index/analysis/porter.h"

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

bool gx_token_is_no_word(const gx_analyzer *an, const char *token, size_t len)
{
    return an->mode == GX_TOKENIZER_WORDS && (an->fold ? only_connectors : only_underscores)(token, len);
}

size_t gx_token_lower(gx_analysis *a, const char *token, size_t len)
{
    const gx_analyzer *an = a->an;
    if (an->language == GX_LANGUAGE_TURKISH)
        return gx_lowercase_turkish(a->term, token, len);
    if (an->lowercase && !an->fold && !all_ascii(token, len)) /* the tokenizer has already lowered ASCII */
        return gx_lowercase_utf8(a->term, token, len);
    memcpy(a->term, token, len);
    return an->light ? gx_light(a->term, len) : len;
}

size_t gx_word_cut(const gx_analyzer *an, const char *token, size_t len, char *word, size_t n)
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
    if (gx_token_is_no_word(an, token, len))
        return GX_TOKEN_STOPPED;
    size_t n = gx_word_cut(an, token, len, a->term, gx_token_lower(a, token, len));
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
