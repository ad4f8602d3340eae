#include <string.h>
#include <utf8proc.h>

#include "index/analysis/scripts.h"
#include "index/analysis/subtokens.h"

typedef enum kind {
    CONNECTING, /* joins other characters; alone it is no word */
    LETTERS,    /* of scripts with spaces between words, and digits */
    MARK,       /* belongs to the character before */
    PAIRED,     /* Han, Hiragana, Katakana, Hangul */
    FOUND       /* a script of South-East Asia */
} kind;

/* The state of a division. A run is made of characters that touch, of which the last is not yet written. */
typedef struct division {
    gx_subtokens *out;
    gx_dictionary *words;
    const char *bytes;
    bool query;
    uint32_t position; /* of the next token */
    uint32_t run;      /* characters of the open run */
    gx_token last;     /* of the run */
    gx_token flag;     /* the first half of a flag, the token written last; else empty */
} division;

static kind kind_of(const char *bytes, uint32_t at, uint32_t end, uint32_t *behind)
{
    utf8proc_int32_t c = (unsigned char)bytes[at];
    *behind = at + 1;
    if (c < 0x80)
        return gx_code_within(c | 0x20, 'a', 'z') || gx_code_within(c, '0', '9') ? LETTERS : CONNECTING;
    const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)bytes + at, (utf8proc_ssize_t)(end - at), &c);
    if (n <= 0)
        return CONNECTING;
    *behind = at + (uint32_t)n;
    if (gx_is_han(c) || gx_is_hiragana(c) || gx_is_katakana(c) || gx_is_hangul(c))
        return PAIRED;
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return gx_is_south_east_asian(c) ? FOUND : MARK;
    case UTF8PROC_CATEGORY_CF:
        return MARK;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PO:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
        return CONNECTING;
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_LM:
        return gx_is_south_east_asian(c) ? FOUND : LETTERS;
    default:
        return c == 0xFF9E || c == 0xFF9F ? MARK : LETTERS;
    }
}

static bool add(division *d, uint32_t begin, uint32_t end)
{
    d->flag = (gx_token){0, 0};
    return gx_subtokens_add(d->out, begin, end, d->position++);
}

/* Write the run's last character. A character that touches it makes a bigram with it; touching NULL: the run ends. */
static bool write_last(division *d, const gx_token *touching)
{
    if (!d->run)
        return true;
    const bool alone = d->run == 1 && !touching;
    d->flag = (gx_token){0, 0};
    if ((alone || !d->query) && !gx_subtokens_add(d->out, d->last.begin, d->last.end, d->position))
        return false;
    if (touching && !gx_subtokens_add(d->out, d->last.begin, touching->end, d->position))
        return false;
    ++d->position;
    return true;
}

static bool end_run(division *d)
{
    const bool ok = write_last(d, NULL);
    d->run = 0;
    return ok;
}

/* Add a character to the run, or begin a new run where it does not touch. */
static bool add_to_run(division *d, gx_token c)
{
    if (d->run && d->last.end == c.begin) {
        if (!write_last(d, &c))
            return false;
    } else if (!end_run(d)) {
        return false;
    }
    ++d->run;
    d->last = c;
    return true;
}

/* The end of the character at `at` with the marks behind it. */
static uint32_t behind_marks(const char *bytes, uint32_t at, uint32_t end)
{
    utf8proc_int32_t c;
    uint32_t behind;
    kind_of(bytes, at, end, &behind);
    while (behind < end) {
        const utf8proc_ssize_t n =
            utf8proc_iterate((const utf8proc_uint8_t *)bytes + behind, (utf8proc_ssize_t)(end - behind), &c);
        const utf8proc_category_t k = n > 0 ? utf8proc_category(c) : UTF8PROC_CATEGORY_CN;
        if (k != UTF8PROC_CATEGORY_MN && k != UTF8PROC_CATEGORY_MC && k != UTF8PROC_CATEGORY_ME &&
            k != UTF8PROC_CATEGORY_CF)
            break;
        behind += (uint32_t)n;
    }
    return behind;
}

/* Words of a run of South-East Asian letters, or bigrams of its letters. */
static bool add_found(division *d, uint32_t begin, uint32_t end)
{
    if (!end_run(d))
        return false;
    if (!d->words) {
        for (uint32_t at = begin, behind; at < end; at = behind) {
            behind = behind_marks(d->bytes, at, end);
            if (!add_to_run(d, (gx_token){at, behind}))
                return false;
        }
        return end_run(d);
    }
    if (!gx_dictionary_begin(d->words, d->bytes + begin, end - begin))
        return false;
    for (uint32_t at = 0, behind; (behind = gx_dictionary_next(d->words)) != 0; at = behind)
        if (!add(d, begin + at, begin + behind))
            return false;
    return true;
}

/* Letters and digits [begin, end), perhaps with what connects them, of which the ends are cut off. */
static bool add_letters(division *d, uint32_t begin, uint32_t end)
{
    return end_run(d) && (begin == end || add(d, begin, end));
}

static bool is_regional(const char *bytes, gx_token t)
{
    return t.end - t.begin >= 4 && memcmp(bytes + t.begin, "\xF0\x9F\x87", 3) == 0 &&
           (unsigned char)bytes[t.begin + 3] >= 0xA6 && (unsigned char)bytes[t.begin + 3] <= 0xBF;
}

/* A regional indicator makes a flag with the one before it. */
static bool add_regional(division *d, gx_token t)
{
    if (!end_run(d))
        return false;
    if (d->flag.end && d->flag.end == t.begin) {
        d->out->ranges[d->out->n - 1].end = t.end;
        d->flag = (gx_token){0, 0};
        return true;
    }
    if (!add(d, t.begin, t.end))
        return false;
    d->flag = t;
    return true;
}

/* Divide a token with characters that are not ASCII where the kinds of its characters change. */
static bool divide_token(division *d, gx_token t)
{
    if (is_regional(d->bytes, t))
        return add_regional(d, t);
    for (uint32_t at = t.begin, behind; at < t.end;) {
        const kind first = kind_of(d->bytes, at, t.end, &behind);
        uint32_t end = behind, next;
        gx_token trimmed = {at, behind}; /* without what connects, at both ends */
        if (first == CONNECTING)
            trimmed.begin = trimmed.end = behind;
        if (first == PAIRED) {
            for (; end < t.end && kind_of(d->bytes, end, t.end, &next) == MARK; end = next)
                ;
            if (!add_to_run(d, (gx_token){at, end}))
                return false;
            at = end;
            continue;
        }
        for (kind k, last = first; end < t.end; end = next, last = k) {
            k = kind_of(d->bytes, end, t.end, &next);
            if (k == PAIRED || (k == FOUND) != (first == FOUND)) {
                if (k != MARK)
                    break;
            }
            if (k == MARK && last == CONNECTING)
                k = CONNECTING;
            if (k != CONNECTING)
                trimmed.end = next;
            else if (trimmed.begin == end)
                trimmed = (gx_token){next, next};
        }
        /* what connects is cut off on the side where the token was divided */
        if (trimmed.begin < trimmed.end || (at == t.begin && end == t.end))
            trimmed = (gx_token){at == t.begin ? at : trimmed.begin, end == t.end ? end : trimmed.end};
        if (first == FOUND ? !add_found(d, at, end) : !add_letters(d, trimmed.begin, trimmed.end))
            return false;
        at = end;
    }
    return true;
}

static bool is_ascii(const char *p, const char *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        if (word & 0x8080808080808080u)
            return false;
    }
    for (; p < end; ++p)
        if ((unsigned char)*p >= 0x80)
            return false;
    return true;
}

bool gx_divide_scripts(gx_subtokens *s, gx_dictionary *words, const char *bytes, const gx_token *tokens, uint32_t n,
                       bool query)
{
    division d = {.out = s, .words = words, .bytes = bytes, .query = query};
    s->n = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_token t = tokens[i];
        if (is_ascii(bytes + t.begin, bytes + t.end) ? !end_run(&d) || !add(&d, t.begin, t.end) : !divide_token(&d, t))
            return false;
    }
    const bool ok = end_run(&d);
    s->n_positions = d.position;
    return ok;
}
