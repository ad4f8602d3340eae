#include "index/analysis/tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "index/analysis/emoji.h"
#include "index/analysis/scripts.h"

char *gx_tokenizer_buffer(gx_tokenizer *s, size_t len)
{
    if (len > s->max_bytes || !s->bytes) {
        const size_t max = len + len / 2 + 1024;
        char *p = malloc(max + GX_TOKENIZER_SLACK);
        if (!p)
            return NULL;
        free(s->bytes);
        s->bytes = p;
        s->max_bytes = max;
    }
    return s->bytes;
}

void gx_tokenizer_free(gx_tokenizer *s)
{
    free(s->bytes);
    free(s->tokens);
    free(s->runs);
    memset(s, 0, sizeof *s);
}

static bool is_space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

size_t gx_safe_split(const char *text, size_t len)
{
    const size_t piece = 32u << 10, most = 64u << 20;
    if (len <= piece)
        return len;
    size_t i = piece;
    while (i < len && i < most && !is_space((unsigned char)text[i]))
        ++i;
    while (i < len && i > most - 4 && ((unsigned char)text[i] & 0xC0) == 0x80) /* do not split a character */
        --i;
    return i;
}

/* ---- 64 bytes to masks ---- */

/* Of 64 bytes at p. With `lower`, ASCII capitals become lower case. */
typedef struct masks {
    uint64_t word; /* ASCII letters, digits, underscore; with GX_TOKENIZER_SPACES all but white space */
    uint64_t high; /* bytes >= 0x80 */
    uint64_t mid;  /* ' " . : , ; */
} masks;

#ifdef __x86_64__
static inline __m128i in_range(__m128i c, char first, char last)
{
    const __m128i d = _mm_sub_epi8(c, _mm_set1_epi8(first)), w = _mm_set1_epi8((char)(last - first));
    return _mm_cmpeq_epi8(_mm_min_epu8(d, w), d);
}

static inline __m128i equal(__m128i c, char x)
{
    return _mm_cmpeq_epi8(c, _mm_set1_epi8(x));
}

static inline uint64_t bits(__m128i m)
{
    return (uint64_t)(uint32_t)_mm_movemask_epi8(m);
}

static inline masks classify_words(char *p, bool lower)
{
    const __m128i lower_bit = _mm_set1_epi8(lower ? 0x20 : 0);
    masks m = {0, 0, 0};
    for (unsigned i = 0; i < 64; i += 16) {
        const __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        const __m128i letter = in_range(_mm_or_si128(c, _mm_set1_epi8(0x20)), 'a', 'z');
        const __m128i word = _mm_or_si128(_mm_or_si128(letter, in_range(c, '0', '9')), equal(c, '_'));
        const __m128i mid =
            _mm_or_si128(_mm_or_si128(in_range(c, ':', ';'), _mm_or_si128(equal(c, '\''), equal(c, '"'))),
                         _mm_or_si128(equal(c, ','), equal(c, '.')));
        _mm_storeu_si128((__m128i *)(void *)(p + i), _mm_or_si128(c, _mm_and_si128(letter, lower_bit)));
        m.word |= bits(word) << i;
        m.high |= bits(c) << i;
        m.mid |= bits(mid) << i;
    }
    return m;
}

static inline masks classify_spaces(char *p, bool lower)
{
    const __m128i lower_bit = _mm_set1_epi8(lower ? 0x20 : 0);
    masks m = {0, 0, 0};
    for (unsigned i = 0; i < 64; i += 16) {
        const __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        const __m128i letter = in_range(c, 'A', 'Z');
        _mm_storeu_si128((__m128i *)(void *)(p + i), _mm_or_si128(c, _mm_and_si128(letter, lower_bit)));
        m.word |= (~bits(_mm_or_si128(in_range(c, '\t', '\r'), equal(c, ' '))) & 0xFFFF) << i;
    }
    return m;
}

/* The class of an ASCII character is an AND of two bytes, one for each half of its code: the upper and the lower four
 * bits. The classes of letters are above those of other word characters, and these above the classes of ' " . : , ;
 * of which no two kinds have a bit together. */
enum {
    MID_2x = 1,
    MID_3x = 2,
    DIGIT = 8,
    LINE = 16,
    LETTER_4x = 32,
    LETTER_5x = 64,
    LEAST_WORD = 8,
    LEAST_LETTER = 32
};

#define BOTH_LANES(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

/* The same as classify_words. */
__attribute__((target("avx2"))) static inline masks classify_words_avx2(char *p, bool lower)
{
    enum { A = LETTER_4x, B = LETTER_5x, D = DIGIT };
    const __m256i of_upper = BOTH_LANES(0, 0, MID_2x, D | MID_3x, A, B | LINE, A, B, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i of_lower =
        BOTH_LANES(B | D, A | B | D, A | B | D | MID_2x, A | B | D, A | B | D, A | B | D, A | B | D, A | B | D | MID_2x,
                   A | B | D, A | B | D, A | B | MID_3x, A | MID_3x, A | MID_2x, A, A | MID_2x, A | LINE);
    const __m256i lower_bit = _mm256_set1_epi8(lower ? 0x20 : 0);
    masks m = {0, 0, 0};
    for (unsigned i = 0; i < 64; i += 32) {
        const __m256i c = _mm256_loadu_si256((const __m256i *)(const void *)(p + i));
        const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(c, 4), _mm256_set1_epi8(0xF));
        const __m256i class = /* 0 of a byte >= 0x80, as the shuffle by c makes it */
            _mm256_and_si256(_mm256_shuffle_epi8(of_upper, upper), _mm256_shuffle_epi8(of_lower, c));
        const __m256i letter = _mm256_cmpgt_epi8(class, _mm256_set1_epi8(LEAST_LETTER - 1));
        const uint32_t word =
            (uint32_t)_mm256_movemask_epi8(_mm256_add_epi8(class, _mm256_set1_epi8(0x80 - LEAST_WORD)));
        const uint32_t any = (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(class, _mm256_setzero_si256()));
        _mm256_storeu_si256((__m256i *)(void *)(p + i), _mm256_or_si256(c, _mm256_and_si256(letter, lower_bit)));
        m.word |= (uint64_t)word << i;
        m.high |= (uint64_t)(uint32_t)_mm256_movemask_epi8(c) << i;
        m.mid |= (uint64_t)(any & ~word) << i;
    }
    return m;
}
#else
static bool is_upper(unsigned char c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool is_word(unsigned char c)
{
    return is_upper(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static inline masks classify_words(char *p, bool lower)
{
    const char lower_bit = lower ? 0x20 : 0;
    masks m = {0, 0, 0};
    for (unsigned i = 0; i < 64; ++i) {
        const unsigned char c = (unsigned char)p[i];
        m.word |= (uint64_t)is_word(c) << i;
        m.high |= (uint64_t)(c >> 7) << i;
        m.mid |= (uint64_t)(c == '\'' || c == ',' || c == '.' || c == ':' || c == ';' || c == '"') << i;
        if (is_upper(c))
            p[i] |= lower_bit;
    }
    return m;
}

static inline masks classify_spaces(char *p, bool lower)
{
    const char lower_bit = lower ? 0x20 : 0;
    masks m = {0, 0, 0};
    for (unsigned i = 0; i < 64; ++i) {
        m.word |= (uint64_t)!is_space((unsigned char)p[i]) << i;
        if (is_upper((unsigned char)p[i]))
            p[i] |= lower_bit;
    }
    return m;
}
#endif

static inline bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static inline bool is_letter(unsigned char c)
{
    return (unsigned char)((c | 0x20) - 'a') < 26;
}

/* Whether the mid character at *p joins its neighbours to one word. Returns true if a neighbour is
 * not ASCII: the run is then kept whole and tokenize_non_ascii_run decides. */
static bool mid_joins(const char *p)
{
    const unsigned char a = (unsigned char)p[-1], b = (unsigned char)p[1];
    if (*p == '"') /* joins Hebrew letters only */
        return (a & b) >= 0x80;
    if ((a | b) >= 0x80)
        return true;
    if (is_letter(a) && is_letter(b))
        return *p == '\'' || *p == '.' || *p == ':';
    return is_digit(a) && is_digit(b) && *p != ':';
}

static uint64_t joining_mids(const char *base, uint64_t mid)
{
    uint64_t out = 0;
    for (; mid; mid &= mid - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(mid);
        if (mid_joins(base + i))
            out |= 1ull << i;
    }
    return out;
}

/* Room for n tokens in *a of *max; false: no memory. */
static bool grow_tokens(gx_token **a, uint32_t *max, uint64_t n)
{
    if (n <= *max)
        return true;
    n += n / 2 + 64;
    gx_token *p = n <= UINT32_MAX ? realloc(*a, n * sizeof *p) : NULL;
    if (!p)
        return false;
    *a = p;
    *max = (uint32_t)n;
    return true;
}

static bool reserve_tokens(gx_tokenizer *s, uint64_t n)
{
    return grow_tokens(&s->tokens, &s->max_tokens, n);
}

#define POSITIONS_AT_ONCE 8u

/* Writes the positions of the set bits, in groups, behind the last of which there is room for a group. Words are
 * short, so the number of iterations is easy for the CPU to predict. */
static inline __attribute__((always_inline)) uint32_t *write_bit_positions(uint32_t *out, uint64_t set, uint32_t base)
{
    uint32_t *const last = out + __builtin_popcountll(set);
    while (set) {
        for (unsigned i = 0; i < POSITIONS_AT_ONCE; ++i) {
            out[i] = base + (set ? (uint32_t)__builtin_ctzll(set) : 64);
            set &= set - 1;
        }
        out += POSITIONS_AT_ONCE;
    }
    return last;
}

/* ---- runs that are not ASCII ---- */

typedef enum word_break {
    OTHER,
    LETTER,
    HEBREW,
    NUMBER,
    CONNECTOR,
    MID_LETTER,
    MID_NUMBER,
    MID_BOTH,
    SINGLE_QUOTE,
    DOUBLE_QUOTE,
    KATAKANA,
    IDEOGRAPHIC /* each is a word */,
    COMPLEX_CONTEXT /* South-East Asian scripts; a run is not divided into words */,
    EXTEND
} word_break;

static word_break listed_break_class(utf8proc_int32_t c)
{
    switch (c) {
    case '\'':
    case 0xFF07:
        return c == '\'' ? SINGLE_QUOTE : MID_BOTH;
    case '"':
        return DOUBLE_QUOTE;
    case '.':
    case 0x2018:
    case 0x2019:
    case 0x2024:
    case 0xFE52:
    case 0xFF0E:
        return MID_BOTH;
    case ':':
    case 0xB7:
    case 0x0387:
    case 0x055F:
    case 0x05F4:
    case 0x2027:
    case 0xFE13:
    case 0xFE55:
    case 0xFF1A:
        return MID_LETTER;
    case ',':
    case ';':
    case 0x037E:
    case 0x0589:
    case 0x060C:
    case 0x060D:
    case 0x066C:
    case 0x07F8:
    case 0x2044:
    case 0xFE10:
    case 0xFE14:
    case 0xFE50:
    case 0xFE54:
    case 0xFF0C:
    case 0xFF1B:
        return MID_NUMBER;
    case 0x066B:
        return NUMBER;
    case 0x202F:
        return CONNECTOR;
    case 0x05F3:
    case 0x055A:
    case 0x055B:
    case 0x055C:
    case 0x055E:
    case 0x058A:
        return LETTER;
    case 0xFF9E:
    case 0xFF9F:
        return EXTEND;
    default:
        return OTHER;
    }
}

static word_break break_class(utf8proc_int32_t c)
{
    const word_break named = listed_break_class(c);
    if (named != OTHER)
        return named;
    if (gx_is_han(c) || gx_is_hiragana(c))
        return IDEOGRAPHIC;
    if (gx_is_katakana(c))
        return KATAKANA;
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
        if (gx_is_south_east_asian(c))
            return COMPLEX_CONTEXT;
        return gx_code_within(c, 0x05D0, 0x05F2) || gx_code_within(c, 0xFB1D, 0xFB4F) ? HEBREW : LETTER;
    case UTF8PROC_CATEGORY_ND:
        return NUMBER;
    case UTF8PROC_CATEGORY_PC:
        return CONNECTOR;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return gx_is_south_east_asian(c) ? COMPLEX_CONTEXT : EXTEND;
    case UTF8PROC_CATEGORY_CF:
        return c == 0x200B ? OTHER : EXTEND;
    case UTF8PROC_CATEGORY_SO:
        if (gx_code_within(c, 0x24B6, 0x24E9)) /* circled letters */
            return LETTER;
        return c >= 0x1F000 ? IDEOGRAPHIC : OTHER;
    case UTF8PROC_CATEGORY_SK:
        if (gx_code_within(c, 0x1F3FB, 0x1F3FF)) /* skin tones */
            return EXTEND;
        return gx_code_within(c, 0x02C2, 0x02FF) && !gx_code_within(c, 0x02D8, 0x02DD) ? LETTER : OTHER;
    default:
        return OTHER;
    }
}

static bool is_emoji(utf8proc_int32_t c, const char *behind, size_t n)
{
    const gx_emoji kind = gx_emoji_of(c);
    return kind == GX_EMOJI_PRESENTED || (kind == GX_EMOJI_TEXT && gx_emoji_is_marked(behind, n));
}

/* The class of the character at *at. Moves *at behind it. */
static word_break next_break_class(gx_tokenizer *s, uint32_t *at, uint32_t end, bool count)
{
    utf8proc_int32_t c = (unsigned char)s->bytes[*at];
    if (c < 0x80) {
        ++*at;
        return is_letter((unsigned char)c)  ? LETTER
               : is_digit((unsigned char)c) ? NUMBER
               : c == '_'                   ? CONNECTOR
                                            : listed_break_class(c);
    }
    const utf8proc_ssize_t n =
        utf8proc_iterate((const utf8proc_uint8_t *)s->bytes + *at, (utf8proc_ssize_t)(end - *at), &c);
    if (n <= 0) {
        ++*at;
        s->replaced += count;
        return OTHER;
    }
    *at += (uint32_t)n;
    const word_break class = break_class(c);
    return class == OTHER && s->emoji && is_emoji(c, s->bytes + *at, end - *at) ? IDEOGRAPHIC : class;
}

static word_break peek_break_class(gx_tokenizer *s, uint32_t at, uint32_t end)
{
    while (at < end) {
        const word_break c = next_break_class(s, &at, end, false);
        if (c != EXTEND)
            return c;
    }
    return OTHER;
}

static bool is_letter_class(word_break c)
{
    return c == LETTER || c == HEBREW;
}

/* Whether there is no word boundary between a and b (rules WB5 to WB13b). next is the class after
 * b. */
static bool forbids_break(word_break a, word_break b, word_break next)
{
    switch (b) {
    case LETTER:
    case HEBREW:
    case NUMBER:
        return is_letter_class(a) || a == NUMBER || a == CONNECTOR;
    case KATAKANA:
        return a == KATAKANA || a == CONNECTOR;
    case CONNECTOR:
        return is_letter_class(a) || a == NUMBER || a == KATAKANA || a == CONNECTOR;
    case COMPLEX_CONTEXT:
        return a == COMPLEX_CONTEXT;
    case MID_LETTER:
        return is_letter_class(a) && is_letter_class(next);
    case MID_NUMBER:
        return a == NUMBER && next == NUMBER;
    case MID_BOTH:
        return (is_letter_class(a) && is_letter_class(next)) || (a == NUMBER && next == NUMBER);
    case SINGLE_QUOTE:
        return a == HEBREW || (is_letter_class(a) && is_letter_class(next)) || (a == NUMBER && next == NUMBER);
    case DOUBLE_QUOTE:
        return a == HEBREW && next == HEBREW;
    default:
        return false;
    }
}

static bool starts_word(word_break c)
{
    return is_letter_class(c) || c == NUMBER || c == CONNECTOR || c == KATAKANA || c == IDEOGRAPHIC ||
           c == COMPLEX_CONTEXT;
}

static bool is_mid(word_break c)
{
    return c >= MID_LETTER && c <= DOUBLE_QUOTE;
}

/* A key, such as # U+FE0F U+20E3, which begins at bytes[at] or, where the run begins with its marks, one byte before.
 * */
static bool find_key(const gx_tokenizer *s, uint32_t at, uint32_t begin, uint32_t end, gx_token *key)
{
    const char c = s->bytes[at], before = at == begin && at > 0 ? s->bytes[at - 1] : 0;
    const bool outside = before == '#' || before == '*';
    if (!outside && !is_digit((unsigned char)c))
        return false;
    const uint32_t marks = at + !outside;
    const size_t n = gx_emoji_key_marks(s->bytes + marks, end - marks);
    *key = (gx_token){marks - 1, marks + (uint32_t)n};
    return n > 0;
}

/* Adds the words of bytes[at, end) to the tokens. */
static bool tokenize_non_ascii_run(gx_tokenizer *s, uint32_t at, uint32_t end)
{
    if (!reserve_tokens(s, (uint64_t)s->n + (end - at)))
        return false;
    const uint32_t begin = at;
    gx_token key;
    word_break last = OTHER; /* class of the open word's last character */
    bool open = false;
    while (at < end) {
        if (s->emoji && find_key(s, at, begin, end, &key)) {
            s->n += open;
            s->tokens[s->n++] = key;
            at = key.end;
            open = false;
            continue;
        }
        const uint32_t from = at;
        const word_break c = next_break_class(s, &at, end, true);
        if (c == EXTEND) {
            if (open)
                s->tokens[s->n].end = at;
            continue;
        }
        const word_break next = is_mid(c) ? peek_break_class(s, at, end) : OTHER;
        if (open && (is_mid(last) ? is_letter_class(c) || c == NUMBER : forbids_break(last, c, next))) {
            s->tokens[s->n].end = at;
            last = c;
            continue;
        }
        s->n += open;
        open = starts_word(c);
        if (open) {
            s->tokens[s->n] = (gx_token){from, at};
            last = c;
        }
    }
    s->n += open;
    return true;
}

/* Divides the runs that have a byte >= 0x80 anew, by Unicode's rules. */
static bool tokenize_non_ascii_runs(gx_tokenizer *s)
{
    const uint32_t n = s->n;
    if (!grow_tokens(&s->runs, &s->max_runs, n))
        return false;
    if (n)
        memcpy(s->runs, s->tokens, n * sizeof *s->runs);
    s->n = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_token run = s->runs[i];
        unsigned char any = 0;
        for (uint32_t j = run.begin; j < run.end; ++j)
            any |= (unsigned char)s->bytes[j];
        if (any >= 0x80) {
            if (!tokenize_non_ascii_run(s, run.begin, run.end))
                return false;
            continue;
        }
        if (!reserve_tokens(s, (uint64_t)s->n + 1))
            return false;
        s->tokens[s->n++] = run;
    }
    return true;
}

typedef masks classify_fn(char *p, bool lower);

/* Write where runs begin and end, by turns, over the tokens. */
static inline __attribute__((always_inline)) bool tokenize_masks(gx_tokenizer *s, gx_tokenizer_mode mode,
                                                                 classify_fn *classify, bool lower, size_t len)
{
    memset(s->bytes + len, 0, GX_TOKENIZER_SLACK);
    if (!reserve_tokens(s, len / 2 + 72))
        return false;
    uint32_t *const first = &s->tokens->begin, *out = first;
    /* inside, before: 1 if the byte before these 64 was in a token, with and without joined mid
     * characters. */
    uint64_t inside = 0, before = 0, high = 0;
    for (size_t base = 0; base <= len; base += 64) { /* the slack has at least one byte that ends the last token */
        char *const p = s->bytes + base;
        const masks m = classify(p, lower);
        uint64_t in = m.word | m.high;
        if (mode == GX_TOKENIZER_SPACES && base + 64 > len)
            in &= (1ull << (len - base)) - 1; /* NUL is not white space, but bytes past len are not text */
        const unsigned char after = (unsigned char)p[64];
        const uint64_t next = is_letter(after) || is_digit(after) || after == '_' || after >= 0x80;
        const uint64_t mid = m.mid & (in << 1 | before) & (in >> 1 | next << 63);
        before = in >> 63;
        if (mid)
            in |= joining_mids(p, mid);
        out = write_bit_positions(out, in ^ (in << 1 | inside), (uint32_t)base);
        inside = in >> 63;
        high |= m.high;
    }
    s->n = (uint32_t)(out - first) / 2;
    s->high = high != 0;
    return high ? tokenize_non_ascii_runs(s) : true;
}

#ifdef __x86_64__
/* The same, compiled with AVX2 and the instructions for bit masks (BMI, BMI2, POPCNT) that CPUs have since 2013. */
__attribute__((target("popcnt,bmi,bmi2,avx2"))) static bool tokenize_avx2(gx_tokenizer *s, gx_tokenizer_mode mode,
                                                                          bool lower, size_t len)
{
    return mode == GX_TOKENIZER_WORDS ? tokenize_masks(s, GX_TOKENIZER_WORDS, classify_words_avx2, lower, len)
                                      : tokenize_masks(s, GX_TOKENIZER_SPACES, classify_spaces, lower, len);
}
#endif

bool gx_tokenize(gx_tokenizer *s, gx_tokenizer_mode mode, bool lower, size_t len)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
        __builtin_cpu_supports("popcnt"))
        return tokenize_avx2(s, mode, lower, len);
#endif
    return mode == GX_TOKENIZER_WORDS ? tokenize_masks(s, GX_TOKENIZER_WORDS, classify_words, lower, len)
                                      : tokenize_masks(s, GX_TOKENIZER_SPACES, classify_spaces, lower, len);
}
