/* phrase_program.h: how an engine's AND search finds phrases: it looks for documents that hold all words, and tests
 * those that could be answers by positions.
 *
 * The plan's terms are the lists: first n_required that a document must hold, by rising df, then others that it may
 * hold. Each phrase has terms of its own. That of its rarest word has the phrase's weight, and a little more, so that
 * the sum of a document's impacts is not below its score; the weights of its other terms are 0. `words` tells the
 * engine what to test, and how the score follows from that sum:
 *
 *   n_required | number of phrases, of places, of other words | the term of each place | the term of each other word
 *   then for each phrase: weight (the bits of a float) | number of words | for each word: place | offset << PLACE_BITS
 *
 * A place is a list of a phrase; places are numbered as the words come. Phrases are exact: slop 0.
 */
#ifndef GX_QUERY_PLAN_PHRASE_PROGRAM_H
#define GX_QUERY_PLAN_PHRASE_PROGRAM_H

#include "query/plan/plan.h"

#define GX_PLACE_BITS 5u
#define GX_MAX_PLACES (1u << GX_PLACE_BITS)
#define GX_MAX_PROGRAM_WORDS 1024u
/* where in `words`: */
#define GX_PROGRAM_PHRASES 1u
#define GX_PROGRAM_PLACES 2u
#define GX_PROGRAM_WORDS 3u
#define GX_PROGRAM_TERMS 4u

typedef struct gx_phrase_program {
    uint32_t n_words;
    uint32_t words[]; /* [n_words] */
} gx_phrase_program;

/* Whether an engine can find the plan's phrases by a program: exact ones, within the limits above. */
bool gx_plan_suits_program(const gx_plan *plan);

/* Make the plan that finds the documents that match all phrases of `plan`, and hold its words, or with words_optional
 * may hold them: an AND without phrases, with a program. gx_program_plan_free frees what it has of its own.
 * GX_ENOMEM. */
gx_status gx_program_plan_make(gx_plan *out, const struct gx_index *ix, const gx_plan *plan, bool words_optional,
                               gx_error *err);
void gx_program_plan_free(gx_plan *plan); /* accepts one that is all 0 */

#endif
