/* other_stemmer.c: for LD_PRELOAD: libstemmer and utf8proc of other versions. The stemmers keep the word "system"
 * whole,
 * as German's does since Snowball 3; with GX_TEST_UNICODE set, that is Unicode's version. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SEEN __attribute__((visibility("default")))

static bool whole;

SEEN const unsigned char *sb_stemmer_stem(void *stemmer, const unsigned char *word, int n)
{
    const unsigned char *(*next)(void *, const unsigned char *, int);
    *(void **)&next = dlsym(RTLD_NEXT, "sb_stemmer_stem");
    const unsigned char *stem = next(stemmer, word, n);
    whole = !getenv("GX_TEST_UNICODE") && n == 6 && memcmp(word, "system", 6) == 0;
    return whole ? (const unsigned char *)"system" : stem;
}

SEEN int sb_stemmer_length(void *stemmer)
{
    int (*next)(void *);
    *(void **)&next = dlsym(RTLD_NEXT, "sb_stemmer_length");
    return whole ? 6 : next(stemmer);
}

SEEN const char *utf8proc_unicode_version(void)
{
    const char *(*next)(void);
    *(void **)&next = dlsym(RTLD_NEXT, "utf8proc_unicode_version");
    const char *set = getenv("GX_TEST_UNICODE");
    return set ? set : next();
}
