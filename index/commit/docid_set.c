#include "index/commit/docid_set.h"

#include <stdlib.h>
#include <string.h>

/* Room for n words, those that are new without docids. false: no memory. */
static bool grow(gx_docid_set *s, size_t n)
{
    uint64_t *words = realloc(s->words, n * sizeof *words);
    if (!words)
        return false;
    memset(words + s->n_words, 0, (n - s->n_words) * sizeof *words);
    s->words = words;
    s->n_words = n;
    return true;
}

bool gx_docid_set_add(gx_docid_set *s, uint32_t docid)
{
    const size_t at = docid / 64;
    if (at >= s->n_words && !grow(s, at + at / 2 + 64))
        return false;
    s->words[at] |= UINT64_C(1) << docid % 64;
    ++s->n;
    return true;
}

bool gx_docid_set_cover(gx_docid_set *s, uint32_t n_docs)
{
    const size_t n = (size_t)n_docs / 64 + 1;
    return s->n_words >= n || grow(s, n);
}

void gx_docid_set_clear(gx_docid_set *s)
{
    free(s->words);
    *s = (gx_docid_set){0};
}
