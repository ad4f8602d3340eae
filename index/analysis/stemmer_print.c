#include "index/analysis/stemmer_print.h"

#include <libstemmer.h>
#include <string.h>

#include "engine/hash.h"

const char *gx_stemmer_full_name(const char *name)
{
    /* ISO 639's codes, which libstemmer knows as well */
    static const char *const names[][4] = {
        {"arabic", "ar", "ara"},        {"armenian", "hy", "hye", "arm"}, {"basque", "eu", "eus", "baq"},
        {"catalan", "ca", "cat"},       {"danish", "da", "dan"},          {"dutch", "nl", "nld", "dut"},
        {"english", "en", "eng"},       {"finnish", "fi", "fin"},         {"french", "fr", "fra", "fre"},
        {"german", "de", "deu", "ger"}, {"greek", "el", "ell", "gre"},    {"hindi", "hi", "hin"},
        {"hungarian", "hu", "hun"},     {"indonesian", "id", "ind"},      {"irish", "ga", "gle"},
        {"italian", "it", "ita"},       {"lithuanian", "lt", "lit"},      {"nepali", "ne", "nep"},
        {"norwegian", "no", "nor"},     {"portuguese", "pt", "por"},      {"romanian", "ro", "ron", "rum"},
        {"russian", "ru", "rus"},       {"serbian", "sr", "srp"},         {"spanish", "es", "spa", "esl"},
        {"swedish", "sv", "swe"},       {"tamil", "ta", "tam"},           {"turkish", "tr", "tur"},
        {"yiddish", "yi", "yid"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        for (unsigned j = 1; j < 4 && names[i][j]; ++j)
            if (strcmp(name, names[i][j]) == 0)
                return names[i][0];
    return name;
}

/* The hash of the stems of a line's words, and of the hash so far. */
static uint64_t add_line(struct sb_stemmer *s, const char *p, const char *end, uint64_t hash)
{
    while (p < end) {
        const char *stop = memchr(p, ' ', (size_t)(end - p));
        const size_t n = (size_t)((stop ? stop : end) - p);
        const sb_symbol *stem = n ? sb_stemmer_stem(s, (const sb_symbol *)p, (int)n) : NULL;
        const uint64_t both[2] = {hash, stem ? gx_hash(stem, (size_t)sb_stemmer_length(s)) : n};
        hash = gx_hash(both, sizeof both);
        p = stop ? stop + 1 : end;
    }
    return hash;
}

bool gx_stemmer_print(const char *name, uint64_t *print)
{
    const char *const full = gx_stemmer_full_name(name);
    const size_t len = strlen(full);
    struct sb_stemmer *s = sb_stemmer_new(name, "UTF_8");
    if (!s)
        return false;
    uint64_t hash = 0;
    for (const char *p = gx_stemmer_words, *end; *p; p = end + 1) {
        end = strchr(p, '\n');
        if (*p == '*' || (!strncmp(p, full, len) && p[len] == ':'))
            hash = add_line(s, strchr(p, ':') + 2, end, hash);
    }
    sb_stemmer_delete(s);
    *print = hash ? hash : 1;
    return true;
}
