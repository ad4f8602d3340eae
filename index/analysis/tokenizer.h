/* tokenizer.h: split text into raw tokens.
 *
 * The caller puts the text into the tokenizer's buffer. A token is a byte range of the buffer.
 *
 * GX_TOKENIZER_SPACES splits at ASCII white space and nothing else. GX_TOKENIZER_WORDS follows the
 * word boundaries of UAX #29 in the way of Lucene's StandardTokenizer:
 *
 *   letters, digits, underscores         a run of them is a word
 *   ' . :                                join two letters between which they stand
 *   ' . , ;                              join two digits between which they stand
 *   marks, format characters             belong to the character that they follow
 *   Han, Hiragana                        each character is a word
 *   Katakana                             a run is a word
 *   Thai, Lao, Khmer, Myanmar            a run is a word
 *   pictographs from U+1F000             each is a word
 *   other emoji, if the caller asks      each is a word: see emoji.h; keys such as 1 U+FE0F U+20E3 are emoji
 *   a byte that is not UTF-8             separates words, as U+FFFD does, and is counted
 *   every other character                separates words
 *
 * The tokenizer classifies ASCII 64 bytes at a time into bit masks and reads the words off the
 * masks. It looks character by character only at runs that hold a byte >= 0x80.
 */
#ifndef GX_INDEX_ANALYSIS_TOKENIZER_H
#define GX_INDEX_ANALYSIS_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GX_TOKENIZER_SLACK 128u /* bytes behind the text in the buffer; gx_tokenize sets them to zero */

typedef enum gx_tokenizer_mode { GX_TOKENIZER_WORDS, GX_TOKENIZER_SPACES } gx_tokenizer_mode;

/* Bytes [begin, end) of the buffer. */
typedef struct gx_token {
    uint32_t begin, end;
} gx_token;

/* All zero before the first use. */
typedef struct gx_tokenizer {
    char *bytes; /* [max_bytes + GX_TOKENIZER_SLACK] */
    size_t max_bytes;
    gx_token *tokens; /* [n] */
    uint32_t n, max_tokens;
    bool emoji;        /* set by the caller */
    bool high;         /* the text of the last call has bytes >= 0x80 */
    uint64_t replaced; /* bytes that were not UTF-8, over all calls of gx_tokenize */
    gx_token *runs;    /* [max_runs] scratch */
    uint32_t max_runs;
} gx_tokenizer;

/* The buffer, into which the caller puts len < 2^31 bytes of text before gx_tokenize. NULL: no
 * memory. */
char *gx_tokenizer_buffer(gx_tokenizer *s, size_t len);

/* Find the tokens of bytes[len]. With lower true, ASCII capitals in the buffer become lower case.
 * false: no memory. */
bool gx_tokenize(gx_tokenizer *s, gx_tokenizer_mode mode, bool lower, size_t len);

void gx_tokenizer_free(gx_tokenizer *s);

/* The number of bytes at the front of text[len] to tokenize at once so that no token is cut: len up
 * to 32 KiB, else the bytes up to the first white space behind 32 KiB. Text without white space is
 * cut after 64 MiB. */
size_t gx_safe_split(const char *text, size_t len);

#endif
