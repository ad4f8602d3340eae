#include <stdlib.h>
#include <unicode/ubrk.h>
#include <unicode/utext.h>
#include <unicode/uversion.h>

#include "index/analysis/dictionary.h"

struct gx_dictionary {
    UBreakIterator *words;
    UText *text;
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
    utext_close(d->text);
    free(d);
}

bool gx_dictionary_begin(gx_dictionary *d, const char *text, uint32_t len)
{
    UErrorCode st = U_ZERO_ERROR;
    if (!d->words)
        d->words = ubrk_open(UBRK_WORD, "en", NULL, 0, &st); /* the dictionary follows from the script */
    if (U_FAILURE(st))
        return false;
    d->text = utext_openUTF8(d->text, text, len, &st);
    ubrk_setUText(d->words, d->text, &st);
    return U_SUCCESS(st) && ubrk_first(d->words) == 0;
}

uint32_t gx_dictionary_next(gx_dictionary *d)
{
    const int32_t end = ubrk_next(d->words);
    return end == UBRK_DONE ? 0 : (uint32_t)end;
}
