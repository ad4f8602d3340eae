/* view_phrases.c: phrases as terms of a view: named, numbered behind all lists of words, and kept. */
#include "index/fields/view_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hash.h"
#include "engine/status.h"

#define HEAD 7u                          /* bytes of a name before its words: mark, field, kind, slop */
#define SLOTS (2 * GX_MAX_VIEW_PHRASES) /* a power of 2 */

typedef struct kept_phrase {
    char *name; /* [len], and behind it the phrase as a query says it, [n_shown] */
    size_t len, n_shown;
} kept_phrase;

struct gx_view_phrases {
    pthread_mutex_t lock;
    uint32_t n;
    kept_phrase phrases[GX_MAX_VIEW_PHRASES];
    uint32_t slots[SLOTS]; /* 1 more than a phrase's number; 0: free */
};

struct gx_view_phrases *gx_view_phrases_open(void)
{
    struct gx_view_phrases *p = calloc(1, sizeof *p);
    if (p)
        pthread_mutex_init(&p->lock, NULL);
    return p;
}

void gx_view_phrases_close(struct gx_view_phrases *p)
{
    for (uint32_t i = 0; p && i < p->n; ++i)
        free(p->phrases[i].name);
    if (p)
        pthread_mutex_destroy(&p->lock);
    free(p);
}

/* ---- names ---- */

static uint32_t read_u32(const char *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

size_t gx_phrase_name_bytes(const gx_phrase_name_word *words, uint32_t n)
{
    size_t bytes = HEAD;
    for (uint32_t i = 0; i < n; ++i)
        bytes += 2 * sizeof(uint32_t) + words[i].len;
    return bytes;
}

void gx_phrase_name_write(char *to, const gx_phrase_name *p, const gx_phrase_name_word *words, uint32_t n)
{
    to[0] = GX_PHRASE_MARK;
    to[1] = (char)p->field;
    to[2] = (char)p->kind;
    memcpy(to + 3, &p->slop, sizeof p->slop);
    to += HEAD;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t len = (uint32_t)words[i].len;
        memcpy(to, &words[i].offset, sizeof len);
        memcpy(to + sizeof len, &len, sizeof len);
        if (len)
            memcpy(to + 2 * sizeof len, words[i].term, len);
        to += 2 * sizeof len + len;
    }
}

bool gx_phrase_name_read(gx_phrase_name *p, const char *name, size_t len)
{
    if (len < HEAD || name[0] != GX_PHRASE_MARK)
        return false;
    *p = (gx_phrase_name){
        .field = (uint8_t)name[1], .kind = (uint8_t)name[2], .slop = read_u32(name + 3), .at = HEAD};
    size_t at = HEAD;
    while (len - at >= 2 * sizeof(uint32_t) && read_u32(name + at + 4) <= len - at - 8) {
        at += 8 + read_u32(name + at + 4);
        ++p->n;
    }
    return at == len && p->n;
}

bool gx_phrase_name_next(gx_phrase_name *p, const char *name, size_t len, gx_phrase_name_word *word)
{
    if (p->at == len)
        return false;
    *word = (gx_phrase_name_word){name + p->at + 8, read_u32(name + p->at + 4), read_u32(name + p->at)};
    p->at += 8 + word->len;
    return true;
}

/* ---- numbers ---- */

bool gx_view_takes_phrases(const gx_index *ix)
{
    const uint32_t n = ix->parts ? ix->parts->n : 1;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_index *file = ix->parts ? ix->parts->parts[i].ix : ix;
        if (file->n_docs && (!file->view || !file->view->phrases || file->view->image))
            return false;
    }
    return true;
}

/* Whether the file has all words of the phrase. */
static bool has_words(const gx_index *base, const char *name, size_t len)
{
    gx_phrase_name p = {0};
    gx_phrase_name_word w;
    if (!gx_phrase_name_read(&p, name, len) || p.field > base->fields->n)
        return false;
    while (gx_phrase_name_next(&p, name, len, &w))
        if (gx_index_find_term(base, w.term, w.len) == UINT32_MAX)
            return false;
    return true;
}

/* The phrase as a query says it, at most max bytes. */
static size_t show(const gx_fields *fields, const char *name, size_t len, char *to, size_t max)
{
    gx_phrase_name p = {0};
    gx_phrase_name_word w;
    char number[16];
    size_t n = 0;
    uint32_t before = 0;
    bool first = true;
#define ADD(bytes, m)                                                                                                 \
    do {                                                                                                              \
        const size_t some = (m) < max - n ? (m) : max - n;                                                            \
        memcpy(to + n, bytes, some);                                                                                  \
        n += some;                                                                                                    \
    } while (0)
    gx_phrase_name_read(&p, name, len);
    if (p.field) {
        const char *field = fields->names[p.field - 1];
        ADD(field, strlen(field));
        ADD(":", 1);
    }
    const char *const kind = p.kind == 0 ? "\"" : p.kind == 1 ? "NEAR/" : "ONEAR/";
    snprintf(number, sizeof number, "%u", p.slop);
    ADD(kind, strlen(kind));
    if (p.kind) {
        ADD(number, strlen(number));
        ADD("(", 1);
    }
    for (; gx_phrase_name_next(&p, name, len, &w); first = false) {
        if (!first)
            ADD(" ", 1);
        if (!first && p.kind == 0 && w.offset > before + 1)
            ADD("_ ", 2);
        ADD(w.term, w.len);
        before = w.offset;
    }
    ADD(p.kind ? ")" : "\"", 1);
    if (p.kind == 0 && p.slop) {
        ADD("~", 1);
        ADD(number, strlen(number));
    }
#undef ADD
    return n;
}

static uint32_t add_phrase(const gx_view *v, const char *name, size_t len, uint32_t *slot)
{
    struct gx_view_phrases *p = v->phrases;
    const size_t max = len + 100; /* a word of the name has 8 bytes of its own, more than signs between words */
    char *own = p->n < GX_MAX_VIEW_PHRASES ? malloc(len + max) : NULL;
    if (!own)
        return UINT32_MAX;
    memcpy(own, name, len);
    p->phrases[p->n] = (kept_phrase){own, len, show(v->base->fields, name, len, own + len, max)};
    *slot = p->n + 1;
    return p->n++;
}

uint32_t gx_view_find_phrase(const gx_index *ix, const char *name, size_t len)
{
    gx_view *v = ix->view;
    struct gx_view_phrases *p = v->phrases;
    uint32_t found = UINT32_MAX;
    if (!p || v->image || !has_words(v->base, name, len))
        return UINT32_MAX;
    pthread_mutex_lock(&p->lock);
    for (uint64_t slot = gx_hash(name, len) % SLOTS; found == UINT32_MAX; slot = (slot + 1) % SLOTS) {
        const uint32_t x = p->slots[slot];
        if (x && (p->phrases[x - 1].len != len || memcmp(p->phrases[x - 1].name, name, len) != 0))
            continue;
        found = x ? x - 1 : add_phrase(v, name, len, &p->slots[slot]);
        break;
    }
    const bool full = p->n == GX_MAX_VIEW_PHRASES;
    pthread_mutex_unlock(&p->lock);
    if (found == UINT32_MAX) {
        atomic_store(&v->failed, (int)(full ? GX_EUSAGE : GX_ENOMEM));
        return UINT32_MAX;
    }
    found += v->n_word_lists;
    return gx_view_prepare(ix, found) ? found : UINT32_MAX;
}

/* The phrase of a list; its name is NULL where the list is a word's. */
static kept_phrase phrase_of(const gx_index *ix, uint32_t list)
{
    struct gx_view_phrases *p = ix->view->phrases;
    if (list < ix->view->n_word_lists)
        return (kept_phrase){0};
    pthread_mutex_lock(&p->lock);
    const kept_phrase found = p->phrases[list - ix->view->n_word_lists];
    pthread_mutex_unlock(&p->lock);
    return found;
}

const char *gx_view_phrase_of(const gx_index *ix, uint32_t list, size_t *len)
{
    const kept_phrase found = phrase_of(ix, list);
    *len = found.len;
    return found.name;
}

const char *gx_view_phrase_text(const gx_index *ix, uint32_t list, size_t *len)
{
    const kept_phrase found = phrase_of(ix, list);
    *len = found.n_shown;
    return found.name ? found.name + found.len : NULL;
}

bool gx_view_is_worn(const gx_index *ix)
{
    const uint32_t n = ix->parts ? ix->parts->n : 1;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_index *file = ix->parts ? ix->parts->parts[i].ix : ix;
        struct gx_view_phrases *p = file->view ? file->view->phrases : NULL;
        if (!p)
            continue;
        pthread_mutex_lock(&p->lock);
        const bool worn = p->n >= GX_MAX_VIEW_PHRASES / 2;
        pthread_mutex_unlock(&p->lock);
        if (worn)
            return true;
    }
    return false;
}

uint32_t gx_view_phrase_in_field(const gx_index *ix, uint32_t list, uint32_t field)
{
    size_t len;
    const char *name = gx_view_phrase_of(ix, list, &len);
    if (name[1] ? (uint8_t)name[1] - 1u != field : !ix->view->profile.fields[field].used)
        return UINT32_MAX;
    if (name[1])
        return gx_view_prepare(ix, list) ? list : UINT32_MAX;
    char *own = malloc(len);
    if (!own) {
        atomic_store(&ix->view->failed, (int)GX_ENOMEM);
        return UINT32_MAX;
    }
    memcpy(own, name, len);
    own[1] = (char)(field + 1);
    const uint32_t found = gx_view_find_phrase(ix, own, len);
    free(own);
    return found;
}

/* ---- statistics ---- */

double gx_view_phrase_idf(const char *name, size_t len, double (*idf)(double n_docs, double df), double n_docs,
                          uint64_t (*df)(void *user, const char *term, size_t len), void *user)
{
    gx_phrase_name p = {0};
    gx_phrase_name_word w;
    double sum = 0;
    char few[256];
    gx_phrase_name_read(&p, name, len);
    while (gx_phrase_name_next(&p, name, len, &w)) {
        char *in_field = w.len + 2 <= sizeof few ? few : p.field ? malloc(w.len + 2) : NULL;
        if (p.field && in_field) {
            in_field[0] = GX_FIELD_MARK;
            in_field[1] = (char)p.field;
            memcpy(in_field + 2, w.term, w.len);
            sum += idf(n_docs, (double)df(user, in_field, w.len + 2));
        } else {
            sum += idf(n_docs, (double)df(user, w.term, w.len));
        }
        if (in_field != few)
            free(in_field);
    }
    return sum;
}

gx_status gx_view_phrase_dfs(const gx_view *v, const char *name, size_t len, uint64_t *dfs, double *idfs)
{
    const uint32_t n = v->base->fields->n;
    uint64_t of_word[GX_MAX_FIELDS];
    gx_phrase_name p = {0};
    gx_phrase_name_word w;
    gx_status st = GX_OK;
    gx_phrase_name_read(&p, name, len);
    for (uint32_t f = 0; f < n; ++f) {
        dfs[f] = UINT64_MAX;
        idfs[f] = 0;
    }
    while (st == GX_OK && gx_phrase_name_next(&p, name, len, &w)) {
        st = gx_view_counts_get(v->counts, w.term, w.len, of_word);
        for (uint32_t f = 0; f < n && st == GX_OK; ++f) {
            dfs[f] = of_word[f] < dfs[f] ? of_word[f] : dfs[f];
            idfs[f] += of_word[f] ? v->profile.idf(v->profile.n_docs, (double)of_word[f]) : 0;
        }
    }
    return st;
}
