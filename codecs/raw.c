/* Each integer is stored as a word: the baseline for all other codecs. */
#include <string.h>

#include "codecs/codec.h"

static uint32_t max_words(uint32_t n)
{
    return n;
}

static uint32_t raw_encode(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    memcpy(out, in, n * sizeof *in);
    return n;
}

static bool raw_valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)
{
    (void)words, (void)param;
    return n_words == n;
}

static void raw_decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    const uint32_t there = n_words < n ? n_words : n;
    memcpy(out, words, there * sizeof *out);
    memset(out + there, 0, (n - there) * sizeof *out);
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i)
{
    (void)n, (void)param;
    return i < n_words ? words[i] : 0;
}

const gx_codec gx_codec_raw = {"raw",      "raw",     "32-bit words", GX_CODEC_RAW, 128,  true, NULL,    max_words,
                               raw_encode, raw_valid, raw_decode,     at,           NULL, NULL, {14, 28}};
