#include <stdlib.h>
#include <utf8proc.h>

#include "index/analysis/subtokens.h"

typedef enum letter {
    NONE /* no part of a name */,
    UNDERSCORE,
    DIGIT,
    CAPITAL,
    SMALL,
    SAME /* as the one before */
} letter;

/* Of the character at `at`. *behind is behind it. */
static letter letter_at(const char *bytes, uint32_t at, uint32_t end, uint32_t *behind)
{
    utf8proc_int32_t c = (unsigned char)bytes[at];
    *behind = at + 1;
    if (c < 0x80)
        return c >= 'a' && c <= 'z'   ? SMALL
               : c >= 'A' && c <= 'Z' ? CAPITAL
               : c >= '0' && c <= '9' ? DIGIT
               : c == '_'             ? UNDERSCORE
                                      : NONE;
    const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)bytes + at, (utf8proc_ssize_t)(end - at), &c);
    if (n <= 0)
        return NONE;
    *behind = at + (uint32_t)n;
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
        return CAPITAL;
    case UTF8PROC_CATEGORY_ND:
        return DIGIT;
    case UTF8PROC_CATEGORY_PC:
        return UNDERSCORE;
    case UTF8PROC_CATEGORY_PO:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
        return NONE;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
        return SAME;
    default:
        return SMALL;
    }
}

/* The part of a name[from, end) that begins first. false: there is none. */
static bool next_part(const char *bytes, uint32_t from, uint32_t end, gx_token *part)
{
    uint32_t behind, before = 0; /* where the last character begins */
    letter last = NONE;
    bool open = false;
    for (uint32_t at = from; at < end; at = behind) {
        letter l = letter_at(bytes, at, end, &behind);
        if (l == SAME)
            l = open ? last : UNDERSCORE;
        if (!open && (l == UNDERSCORE || l == NONE))
            continue;
        if (!open) {
            *part = (gx_token){at, end};
            open = true;
        } else if (l == UNDERSCORE || l == NONE || (l == DIGIT) != (last == DIGIT) || (l == CAPITAL && last == SMALL)) {
            part->end = at;
            return true;
        } else if (l == SMALL && last == CAPITAL && before > part->begin) {
            part->end = before; /* HTTPServer: the last capital begins the next part */
            return true;
        }
        if (letter_at(bytes, at, end, &behind) != SAME)
            before = at;
        last = l;
    }
    return open;
}

typedef struct division {
    gx_subtokens *out;
    const char *bytes;
    uint32_t position, n_names, most_bytes;
} division;

/* Write a name, whole and in parts. */
static bool write_name(division *d, gx_token name)
{
    gx_token part;
    if (!next_part(d->bytes, name.begin, name.end, &part))
        return true; /* underscores alone */
    const bool divided = part.begin != name.begin || part.end != name.end;
    if (divided && name.end - name.begin <= d->most_bytes &&
        !gx_subtokens_add(d->out, name.begin, name.end, d->position))
        return false;
    do {
        if (!gx_subtokens_add(d->out, part.begin, part.end, d->position++))
            return false;
    } while (next_part(d->bytes, part.end, name.end, &part));
    return true;
}

/* Write the names that hyphens and dots join, whole and each. */
static bool write_names(division *d)
{
    const gx_token *const names = d->out->names;
    if (d->n_names > 1) {
        const uint32_t begin = names[0].begin, end = names[d->n_names - 1].end;
        if (end - begin <= d->most_bytes && !gx_subtokens_add(d->out, begin, end, d->position))
            return false;
    }
    for (uint32_t i = 0; i < d->n_names; ++i)
        if (!write_name(d, names[i]))
            return false;
    d->n_names = 0;
    return true;
}

static bool add_name(division *d, gx_token name)
{
    gx_subtokens *const s = d->out;
    if (d->n_names) {
        const uint32_t end = s->names[d->n_names - 1].end;
        const char between = d->bytes[end];
        if ((name.begin != end + 1 || (between != '.' && between != '-')) && !write_names(d))
            return false;
    }
    if (d->n_names == s->max_names) {
        const uint32_t max = s->max_names + s->max_names / 2 + 16;
        gx_token *p = realloc(s->names, max * sizeof *p);
        if (!p)
            return false;
        s->names = p;
        s->max_names = max;
    }
    s->names[d->n_names++] = name;
    return true;
}

bool gx_divide_identifiers(gx_subtokens *s, const char *bytes, const gx_token *tokens, uint32_t n, uint32_t most_bytes)
{
    division d = {.out = s, .bytes = bytes, .most_bytes = most_bytes};
    s->n = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_token t = tokens[i];
        if (bytes[t.begin] == '#' || bytes[t.begin] == '*') { /* an emoji that is a key */
            if (!write_names(&d) || !gx_subtokens_add(s, t.begin, t.end, d.position++))
                return false;
            continue;
        }
        for (uint32_t at = t.begin, begin, behind; at < t.end;) {
            begin = at;
            while (at < t.end && letter_at(bytes, at, t.end, &behind) != NONE)
                at = behind;
            if (at > begin && !add_name(&d, (gx_token){begin, at}))
                return false;
            while (at < t.end && letter_at(bytes, at, t.end, &behind) == NONE)
                at = behind;
        }
    }
    const bool ok = write_names(&d);
    s->n_positions = d.position;
    return ok;
}
