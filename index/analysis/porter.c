#include "index/analysis/porter.h"

#include <stdbool.h>
#include <string.h>

/* The word is w[0, n). While a rule is tried, its stem is w[0, stem). */
typedef struct word {
    char *w;
    size_t n, stem;
} word;

static bool consonant(const word *x, size_t i)
{
    switch (x->w[i]) {
    case 'a':
    case 'e':
    case 'i':
    case 'o':
    case 'u':
        return false;
    case 'y': /* y is a vowel after a consonant, so that the letters of "yyy" alternate */
        return i == 0 || !consonant(x, i - 1);
    default:
        return true;
    }
}

/* The paper's measure m of the stem: the number of times that a run of vowels is followed by a run
 * of consonants. Counting stops at 2, because no rule asks for more. */
static unsigned measure(const word *x)
{
    unsigned m = 0;
    bool after_vowel = false, cons = false;
    for (size_t i = 0; i < x->stem && m < 2; ++i) {
        cons = x->w[i] == 'y' ? i == 0 || !cons : consonant(x, i);
        if (cons && after_vowel)
            ++m;
        after_vowel = !cons;
    }
    return m;
}

static bool has_vowel(const word *x)
{
    bool cons = false;
    for (size_t i = 0; i < x->stem; ++i) {
        cons = x->w[i] == 'y' ? i == 0 || !cons : consonant(x, i);
        if (!cons)
            return true;
    }
    return false;
}

static bool double_consonant(const word *x, size_t n)
{
    return n >= 2 && x->w[n - 1] == x->w[n - 2] && (unsigned char)x->w[n - 1] < 0x80 && consonant(x, n - 1);
}

/* The paper's condition *o: w[0, n) ends with consonant, vowel, consonant, the last not w, x or
 * y. */
static bool short_end(const word *x, size_t n)
{
    if (n < 3 || !consonant(x, n - 1) || consonant(x, n - 2) || !consonant(x, n - 3))
        return false;
    const char c = x->w[n - 1];
    return c != 'w' && c != 'x' && c != 'y';
}

/* Whether the word ends with the suffix. If it does, set stem to the length of what lies before it,
 * which may be 0. */
static bool ends(word *x, const char *suffix, size_t len)
{
    if (len > x->n || memcmp(x->w + x->n - len, suffix, len) != 0)
        return false;
    x->stem = x->n - len;
    return true;
}
#define ENDS(s) ends(x, s, sizeof s - 1)

/* Replace what follows the stem by `to`. No rule makes a word longer than it was at first. */
static void replace_suffix(word *x, const char *to, size_t len)
{
    memcpy(x->w + x->stem, to, len);
    x->n = x->stem + len;
}

/* One rule of steps 2 and 3. The step ends at the first suffix that the word has, even if the stem
 * is too short for the rule. */
#define RULE(from, to)                                                                                                 \
    if (ENDS(from)) {                                                                                                  \
        if (measure(x) > 0)                                                                                            \
            replace_suffix(x, to, sizeof to - 1);                                                                      \
        return;                                                                                                        \
    }

static void plurals(word *x) /* step 1a */
{
    if (x->w[x->n - 1] != 's')
        return;
    if (ENDS("sses") || ENDS("ies"))
        x->n -= 2;
    else if (x->n >= 2 && x->w[x->n - 2] != 's')
        x->n -= 1;
}

static void past_and_gerund(word *x) /* step 1b */
{
    if (ENDS("eed")) {
        if (measure(x) > 0)
            x->n -= 1;
        return;
    }
    if (!(ENDS("ed") || ENDS("ing")) || !has_vowel(x))
        return;
    x->n = x->stem;
    if (ENDS("at"))
        replace_suffix(x, "ate", 3);
    else if (ENDS("bl"))
        replace_suffix(x, "ble", 3);
    else if (ENDS("iz"))
        replace_suffix(x, "ize", 3);
    else if (double_consonant(x, x->n)) {
        const char c = x->w[x->n - 1];
        if (c != 'l' && c != 's' && c != 'z')
            x->n -= 1;
    } else {
        x->stem = x->n;
        if (measure(x) == 1 && short_end(x, x->n))
            replace_suffix(x, "e", 1);
    }
}

static void final_y(word *x) /* step 1c */
{
    if (ENDS("y") && has_vowel(x))
        x->w[x->n - 1] = 'i';
}

static void double_suffixes(word *x) /* step 2 */
{
    if (x->n < 3)
        return;
    switch (x->w[x->n - 2]) {
    case 'a':
        RULE("ational", "ate")
        RULE("tional", "tion")
        break;
    case 'c':
        RULE("enci", "ence")
        RULE("anci", "ance")
        break;
    case 'e':
        RULE("izer", "ize")
        break;
    case 'l':
        RULE("bli", "ble") /* departure */
        RULE("alli", "al")
        RULE("entli", "ent")
        RULE("eli", "e")
        RULE("ousli", "ous")
        break;
    case 'o':
        RULE("ization", "ize")
        RULE("ation", "ate")
        RULE("ator", "ate")
        break;
    case 's':
        RULE("alism", "al")
        RULE("iveness", "ive")
        RULE("fulness", "ful")
        RULE("ousness", "ous")
        break;
    case 't':
        RULE("aliti", "al")
        RULE("iviti", "ive")
        RULE("biliti", "ble")
        break;
    case 'g':
        RULE("logi", "log") /* departure */
        break;
    default:
        break;
    }
}

static void adjective_suffixes(word *x) /* step 3 */
{
    RULE("icate", "ic")
    RULE("ative", "")
    RULE("alize", "al")
    RULE("iciti", "ic")
    RULE("ical", "ic")
    RULE("ful", "")
    RULE("ness", "")
}

static bool residual(word *x) /* whether step 4 has a suffix for the word; the stem is set */
{
    if (x->n < 2)
        return false;
    switch (x->w[x->n - 2]) {
    case 'a':
        return ENDS("al");
    case 'c':
        return ENDS("ance") || ENDS("ence");
    case 'e':
        return ENDS("er");
    case 'i':
        return ENDS("ic");
    case 'l':
        return ENDS("able") || ENDS("ible");
    case 'n':
        return ENDS("ant") || ENDS("ement") || ENDS("ment") || ENDS("ent");
    case 'o':
        if (ENDS("ion"))
            return x->stem > 0 && (x->w[x->stem - 1] == 's' || x->w[x->stem - 1] == 't');
        return ENDS("ou");
    case 's':
        return ENDS("ism");
    case 't':
        return ENDS("ate") || ENDS("iti");
    case 'u':
        return ENDS("ous");
    case 'v':
        return ENDS("ive");
    case 'z':
        return ENDS("ize");
    default:
        return false;
    }
}

static void final_e_and_l(word *x) /* steps 5a and 5b */
{
    if (x->w[x->n - 1] == 'e') {
        x->stem = x->n - 1;
        const unsigned m = measure(x);
        if (m > 1 || (m == 1 && !short_end(x, x->n - 1)))
            x->n -= 1;
    }
    if (x->w[x->n - 1] == 'l' && double_consonant(x, x->n)) {
        x->stem = x->n;
        if (measure(x) > 1)
            x->n -= 1;
    }
}

static size_t characters(const char *w, size_t n)
{
    size_t c = 0;
    for (size_t i = 0; i < n; ++i)
        c += ((unsigned char)w[i] & 0xC0) != 0x80;
    return c;
}

size_t gx_porter(char *w, size_t len)
{
    if (len <= 2 || characters(w, len) <= 2)
        return len;
    word it = {w, len, 0}, *x = &it;
    plurals(x);
    past_and_gerund(x);
    final_y(x);
    double_suffixes(x);
    adjective_suffixes(x);
    if (residual(x) && measure(x) > 1)
        x->n = x->stem;
    final_e_and_l(x);
    return x->n;
}
