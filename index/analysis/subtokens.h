/* subtokens.h: tokens divided further, each with its position.
 *
 *   scripts       runs of Han, Hiragana, Katakana and Hangul: each two neighbours are a token (a bigram), and each
 *                 character is one, too; both stand at the position of the first character:
 *                     text        A B C          (characters of these scripts)
 *                     tokens      A AB B BC C
 *                     positions   0 0  1 1  2
 *                 The text of a query has the bigrams alone, and the character of a run of one: AB BC. They are those
 *                 of Lucene's CJKBigramFilter with outputUnigrams; letters and digits that touch Hangul are divided
 *                 from it. Thai, Lao, Khmer and Burmese are cut into words by a dictionary (dictionary.h), and other
 *                 scripts of South-East Asia, or all where there is no dictionary, into bigrams of letters with their
 *                 marks. Two regional indicators that touch are a flag, which is a token.
 *
 *   identifiers   names of programs at capitals, underscores, digits, hyphens and dots:
 *                     text        os.getUserId
 *                     tokens      os.getUserId  os  getUserId  get  User  Id
 *                     positions   0             0   1          1    2     3
 *                 The parts have positions of their own; what is whole shares that of its first part.
 *
 *   n-grams       `edge:A-B`: the first A, A + 1, ... B characters of a token, all at its position; in a query the
 *                 first B alone. `N`: all substrings of N characters, each at a position of its own. A token of fewer
 *                 than A or N characters stays whole.
 */
#ifndef GX_INDEX_ANALYSIS_SUBTOKENS_H
#define GX_INDEX_ANALYSIS_SUBTOKENS_H

#include "index/analysis/dictionary.h"
#include "index/analysis/tokenizer.h"

#define GX_MAX_GRAM 64u /* characters */

typedef struct gx_grams {
    uint32_t least, most; /* characters; most 0: no n-grams */
    bool edge;
} gx_grams;

/* Read "none", "3" or "edge:2-15". false: the text is none of these, or not in 1 to GX_MAX_GRAM. */
bool gx_grams_read(gx_grams *out, const char *text);
void gx_grams_write(const gx_grams *g, char out[static 32]); /* the same form */

/* All zero before the first use. */
typedef struct gx_subtokens {
    gx_token *ranges;    /* [n] */
    uint32_t *positions; /* [n] */
    uint32_t n, max, n_positions;
    gx_token *names; /* [max_names] scratch */
    uint32_t max_names;
} gx_subtokens;

void gx_subtokens_free(gx_subtokens *s);

/* Make a token of bytes [begin, end) at a position. false: no memory. */
bool gx_subtokens_add(gx_subtokens *s, uint32_t begin, uint32_t end, uint32_t position);

/* Each of these divides the n tokens of the word tokenizer, which are byte ranges of `bytes`, into *s, whose content
 * it replaces. false: no memory. */

/* words: NULL if there is no dictionary. */
bool gx_divide_scripts(gx_subtokens *s, gx_dictionary *words, const char *bytes, const gx_token *tokens, uint32_t n,
                       bool query);

/* What is whole and longer than most_bytes is left out if it has parts. */
bool gx_divide_identifiers(gx_subtokens *s, const char *bytes, const gx_token *tokens, uint32_t n, uint32_t most_bytes);

/* positions: [n] as in gx_tokens, or NULL. Tokens longer than most_bytes stay whole. */
bool gx_divide_grams(gx_subtokens *s, const gx_grams *grams, const char *bytes, const gx_token *tokens,
                     const uint32_t *positions, uint32_t n, uint32_t most_bytes, bool query);

#endif
