/* tokenizer.h: bytes to raw tokens.
 *
 *   text, copied into the tokenizer's buffer -> tokens as byte ranges [begin[i], end[i]) of that
 *   buffer
 *
 * GX_TOKENIZER_WORDS follows the word boundaries of UAX #29 the way that Lucene's StandardTokenizer
 * does: runs of letters, digits and underscores are a word; ' . : join letters and ' . , ; join
 * digits where they stand between two of them; marks and format characters stay with what they
 * follow; a Han or Hiragana character is a word; Katakana joins Katakana; a run of Thai, Lao, Khmer
 * or Myanmar is a word; so is a pictograph from U+1F000. All else separates. A byte that is not
 * UTF-8 separates, as U+FFFD does, and is counted. ASCII is classified 64 bytes at a time into bit
 * masks and words are read off the masks; only a run that holds a byte >= 0x80 is looked at
 * character by character. GX_TOKENIZER_SPACES splits at ASCII white space and nothing else.
 */
#ifndef GX_INDEX_ANALYSIS_TOKENIZER_H
#define GX_INDEX_ANALYSIS_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GX_TOKENIZER_SLACK 128u /* bytes behind the text in the buffer; zero after gx_tokenize */

typedef enum gx_tokenizer_mode { GX_TOKENIZER_WORDS, GX_TOKENIZER_SPACES } gx_tokenizer_mode;

/* Begin with all zero. */
typedef struct gx_tokenizer {
    char *bytes; /* room for max_bytes, and the slack */
    size_t max_bytes;
    uint32_t *begin, *end; /* [n] */
    uint32_t n, max_tokens;
    uint64_t replaced; /* bytes that were not UTF-8, ever */
    uint32_t *runs;    /* scratch */
    uint32_t max_runs;
} gx_tokenizer;

/* Where the caller puts len bytes of text before gx_tokenize; len < 2^31. NULL: no memory. */
char *gx_tokenizer_buffer(gx_tokenizer *s, size_t len);

/* Find the tokens of bytes[len]. lower: ASCII capitals in the buffer become small letters. false:
 * no memory. */
bool gx_tokenize(gx_tokenizer *s, gx_tokenizer_mode mode, bool lower, size_t len);

void gx_tokenizer_free(gx_tokenizer *s);

/* How many of text's first bytes to tokenize at once so that no token is cut: all of a short text,
 * else up to a white space after some 32 KiB. Text without any white space is cut after 64 MiB. */
size_t gx_safe_split(const char *text, size_t len);

#endif
