#include <stdlib.h>
#include <unicode/ubrk.h>
#include <unicode/utf16.h>
#include <unicode/utf8.h>
#include <unicode/uversion.h>

#include "index/analysis/dictionary.h"

/* ICU takes UTF-16: its dictionaries leave short texts whole, and the length of UTF-8 is another. */
struct gx_dictionary {
    UBreakIterator *words;
    UChar *text;  /* [n], room for max */
    uint32_t *at; /* [n + 1] the byte of each unit */
    uint32_t max;
};

const char *gx_dictionary_version(void)
{
    return U_ICU_VERSION;
}

gx_dictionary *gx_dictionary_open(void)
{
    return calloc(1, sizeof(gx_dictionary)); /* ICU is opened by the first text that needs it */
}

void gx_dictionary_close(gx_dictionary *d)
{
    if (!d)
        return;
    if (d->words)
        ubrk_close(d->words);
    free(d->text);
    free(d->at);
    free(d);
}

static bool reserve(gx_dictionary *d, uint32_t n)
{
    if (n < d->max)
        return true;
    const size_t max = (size_t)n + n / 2 + 64;
    UChar *text = realloc(d->text, max * sizeof *text);
    if (text)
        d->text = text;
    uint32_t *at = realloc(d->at, max * sizeof *at);
    if (at)
        d->at = at;
    if (text && at)
        d->max = (uint32_t)max;
    return text && at;
}

bool gx_dictionary_begin(gx_dictionary *d, const char *text, uint32_t len)
{
    UErrorCode st = U_ZERO_ERROR;
    if (!d->words)
        d->words = ubrk_open(UBRK_WORD, "en", NULL, 0, &st); /* the dictionary follows from the script */
    if (U_FAILURE(st) || !reserve(d, len))
        return false;
    uint32_t n = 0;
    for (uint32_t i = 0; i < len;) {
        const uint32_t from = i;
        UChar32 c;
        U8_NEXT_OR_FFFD(text, i, len, c);
        d->at[n] = from;
        if (c > 0xFFFF) {
            d->text[n++] = U16_LEAD(c);
            d->at[n] = from;
            c = U16_TRAIL(c);
        }
        d->text[n++] = (UChar)c;
    }
    d->at[n] = len;
    ubrk_setText(d->words, d->text, (int32_t)n, &st);
    return U_SUCCESS(st) && ubrk_first(d->words) == 0;
}

uint32_t gx_dictionary_next(gx_dictionary *d)
{
    const int32_t end = ubrk_next(d->words);
    return end == UBRK_DONE ? 0 : d->at[end];
}
