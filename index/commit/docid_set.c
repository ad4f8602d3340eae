#include "index/commit/docid_set.h"

#include <stdlib.h>
#include <string.h>

bool gx_docid_set_add(gx_docid_set *s, uint32_t docid)
{
    const size_t at = docid / 64;
    if (at >= s->n_words) {
        const size_t n = at + at / 2 + 64;
        uint64_t *words = realloc(s->words, n * sizeof *words);
        if (!words)
            return false;
        memset(words + s->n_words, 0, (n - s->n_words) * sizeof *words);
        s->words = words;
        s->n_words = n;
    }
    s->words[at] |= UINT64_C(1) << docid % 64;
    ++s->n;
    return true;
}

bool gx_docid_set_cover(gx_docid_set *s, uint32_t n_docs)
{
    const size_t n = (size_t)n_docs / 64 + 1;
    if (s->n_words >= n)
        return true;
    uint64_t *words = realloc(s->words, n * sizeof *words);
    if (!words)
        return false;
    memset(words + s->n_words, 0, (n - s->n_words) * sizeof *words);
    s->words = words;
    s->n_words = n;
    return true;
}

void gx_docid_set_clear(gx_docid_set *s)
{
    free(s->words);
    *s = (gx_docid_set){0};
}
