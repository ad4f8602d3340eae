/* phrase.h: phrases and windows: what words must stand near each other in a document, and how often they do.
 *
 * Word i of a phrase stands at offset o[i]; p[i] is a position of it in a document. Each word of a match stands at a
 * position of its own, and all of them in the title or all in the text, or in one field.
 *
 *   "a b c"          the words in a row: all p[i] - o[i] are equal
 *   "a b c"~n        all p[i] - o[i] lie in a range of n + 1: the greatest less the least is at most n
 *   NEAR/n(a b c)    all p[i] lie in a range of n, in any order: Indri's #uwn
 *   ONEAR/n(a b c)   p[0] < p[1] < ..., each at most n behind the one before: Indri's #n
 *
 * The tf of a phrase is the number of places at which a match begins: the different values of p[0] for ONEAR, else
 * the different values of the least p[i] - o[i]. Matches may overlap: "a a" is found twice in a a a.
 *
 * A phrase is scored as a term of that tf; its weight is the sum of its words' idf.
 *
 * A place of a phrase in a row may have several words, one of which stands there: "new yor*". It is searched as one
 * word with the positions of all; its idf is that of its greatest df.
 *
 * A group of words is one that stands wherever one of them does, by no positions:
 *
 *   GX_PHRASE_ANY       its tf is the sum of the words' tfs, its idf that of the greatest df
 *   GX_PHRASE_CONSTANT  it adds its weight, whatever the tf and the document's length
 */
#ifndef GX_QUERY_PHRASE_PHRASE_H
#define GX_QUERY_PHRASE_PHRASE_H

#include "engine/api/gpuidx.h"

#define GX_MAX_PHRASE_WORDS 1000u
#define GX_MAX_SLOP 10000u       /* the n of ~n, NEAR/n and ONEAR/n, at most */
#define GX_MAX_OFFSET (1u << 20) /* of a phrase's last word */

typedef enum gx_phrase_kind {
    GX_PHRASE_WORDS,
    GX_PHRASE_NEAR,
    GX_PHRASE_ONEAR,
    GX_PHRASE_ANY,
    GX_PHRASE_CONSTANT
} gx_phrase_kind;

static inline bool gx_phrase_is_group(gx_phrase_kind kind)
{
    return kind == GX_PHRASE_ANY || kind == GX_PHRASE_CONSTANT;
}

typedef struct gx_phrase_word {
    uint32_t list;   /* term id; UINT32_MAX: the index lacks it, and nothing matches */
    uint32_t offset; /* rising; of NEAR and groups 0. Of ONEAR only the order counts */
    bool other;      /* another word of the place that the word before has; of groups it counts for nothing */
} gx_phrase_word;

typedef struct gx_phrase {
    gx_phrase_kind kind;
    uint32_t slop;               /* n; 0 of a phrase in a row */
    uint32_t n;                  /* >= 1 */
    const gx_phrase_word *words; /* [n] */
} gx_phrase;

/* Where a word of a phrase stands in a document. */
typedef struct gx_word_places {
    const uint32_t *positions; /* [n], rising */
    uint32_t n, offset;
    uint32_t list; /* words with the same one are the same word */
} gx_word_places;

/* Added to all positions behind the title, or once more behind each field, so that no match has words on both sides. */
#define GX_TITLE_GAP (1u << 22)

/* The tf of a phrase with its words in these places, [p->n]. scratch has room for p->n values, and for
 * twice as many as the word with the most places has. */
uint32_t gx_phrase_tf(const gx_phrase *p, const gx_word_places *words, uint32_t *scratch);

/* Tell which places take part in a match: mark(user, w, i) is called of place i of word w, perhaps several times.
 * scratch has room for p->n values, and for one a place. */
void gx_phrase_mark_places(const gx_phrase *p, const gx_word_places *words, uint32_t *scratch,
                           void (*mark)(void *user, uint32_t word, uint32_t place), void *user);

/* The most that the tf can be, by the words' tfs[p->n]. */
uint32_t gx_phrase_most_tf(const gx_phrase *p, const uint32_t *tfs);

#endif
