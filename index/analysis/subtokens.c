#include "index/analysis/subtokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gx_subtokens_free(gx_subtokens *s)
{
    free(s->ranges);
    free(s->positions);
    free(s->names);
    memset(s, 0, sizeof *s);
}

static bool grow(gx_subtokens *s)
{
    const uint64_t max = (uint64_t)s->max + s->max / 2 + 256;
    if (max > UINT32_MAX)
        return false;
    gx_token *ranges = realloc(s->ranges, max * sizeof *ranges);
    if (ranges)
        s->ranges = ranges;
    uint32_t *positions = realloc(s->positions, max * sizeof *positions);
    if (positions)
        s->positions = positions;
    if (!ranges || !positions)
        return false;
    s->max = (uint32_t)max;
    return true;
}

bool gx_subtokens_add(gx_subtokens *s, uint32_t begin, uint32_t end, uint32_t position)
{
    if (s->n == s->max && !grow(s))
        return false;
    s->ranges[s->n] = (gx_token){begin, end};
    s->positions[s->n++] = position;
    return true;
}

/* ---- n-grams ---- */

/* A number of 1 to GX_MAX_GRAM at *p, which moves behind it; 0: there is none. */
static uint32_t read_length(const char **p)
{
    uint32_t n = 0;
    const char *const from = *p;
    while (**p >= '0' && **p <= '9' && n <= GX_MAX_GRAM)
        n = 10 * n + (uint32_t)(*(*p)++ - '0');
    return n <= GX_MAX_GRAM && *from != '0' ? n : 0;
}

bool gx_grams_read(gx_grams *out, const char *text)
{
    gx_grams g = {0};
    if (strcmp(text, "none") == 0) {
        *out = g;
        return true;
    }
    g.edge = strncmp(text, "edge:", 5) == 0;
    const char *p = text + (g.edge ? 5 : 0);
    g.least = g.most = read_length(&p);
    if (g.edge) {
        if (*p++ != '-')
            return false;
        g.most = read_length(&p);
    }
    if (*p || !g.least || g.least > g.most)
        return false;
    *out = g;
    return true;
}

void gx_grams_write(const gx_grams *g, char out[static 32])
{
    if (g->edge)
        snprintf(out, 32, "edge:%u-%u", g->least, g->most);
    else if (g->most)
        snprintf(out, 32, "%u", g->most);
    else
        snprintf(out, 32, "none");
}

/* Behind the character at p; a byte that is not UTF-8 is a character. Bytes behind the token are readable. */
static uint32_t behind_character(const char *bytes, uint32_t at, uint32_t end)
{
    for (++at; at < end && ((unsigned char)bytes[at] & 0xC0) == 0x80; ++at)
        ;
    return at;
}

/* Behind n characters; 0: there are fewer. */
static uint32_t behind_characters(const char *bytes, uint32_t at, uint32_t end, uint32_t n)
{
    for (; n && at < end; --n)
        at = behind_character(bytes, at, end);
    return n ? 0 : at;
}

static bool add_edges(gx_subtokens *s, const gx_grams *g, const char *bytes, gx_token t, uint32_t position, bool query)
{
    uint32_t end = behind_characters(bytes, t.begin, t.end, g->least);
    if (!end)
        return gx_subtokens_add(s, t.begin, t.end, position);
    for (uint32_t n = g->least;; ++n) {
        const bool last = n == g->most || end == t.end;
        if ((last || !query) && !gx_subtokens_add(s, t.begin, end, position))
            return false;
        if (last)
            return true;
        end = behind_character(bytes, end, t.end);
    }
}

/* Add the n-grams of a token, at positions from `position` on; *next is behind them. */
static bool add_inner(gx_subtokens *s, uint32_t length, const char *bytes, gx_token t, uint32_t position,
                      uint32_t *next)
{
    uint32_t begin = t.begin, end = behind_characters(bytes, t.begin, t.end, length);
    *next = position + 1;
    if (!end)
        return gx_subtokens_add(s, t.begin, t.end, position);
    for (;; ++position) {
        if (!gx_subtokens_add(s, begin, end, position))
            return false;
        if (end == t.end)
            break;
        begin = behind_character(bytes, begin, t.end);
        end = behind_character(bytes, end, t.end);
    }
    *next = position + 1;
    return true;
}

bool gx_divide_grams(gx_subtokens *s, const gx_grams *grams, const char *bytes, const gx_token *tokens,
                     const uint32_t *positions, uint32_t n, uint32_t most_bytes, bool query)
{
    uint32_t next = 0;
    bool ok = true;
    s->n = s->n_positions = 0;
    for (uint32_t i = 0; i < n && ok; ++i) {
        const gx_token t = tokens[i];
        const uint32_t position = grams->edge && positions ? positions[i] : grams->edge ? i : next;
        next = position + 1;
        if (t.end - t.begin > most_bytes)
            ok = gx_subtokens_add(s, t.begin, t.end, position); /* which analysis drops and counts */
        else if (grams->edge)
            ok = add_edges(s, grams, bytes, t, position, query);
        else
            ok = add_inner(s, grams->most, bytes, t, position, &next);
    }
    s->n_positions = next;
    return ok;
}
