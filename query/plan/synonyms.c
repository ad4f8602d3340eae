#include "query/plan/synonyms.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/analysis/analyzer.h"
#include "index/read/characters.h"
#include "index/positions.h"
#include "query/syntax/scanner.h"

#define MAX_ENTRY_TERMS 1000u /* as of a phrase */
#define MAX_SIDE 1000u        /* entries of a side of a rule */
#define MAX_RULES_BYTES (64u << 20)

/* An entry as it is read: terms [first, first + n) of reading.terms. */
typedef struct read_entry {
    uint32_t first, n;
    uint32_t line, column;
} read_entry;

/* One entry becomes another. */
typedef struct link {
    uint32_t from, to; /* entries */
    bool turns;        /* of a rule with =>, which does not keep the entry */
} link;

typedef struct read_term {
    size_t at, len; /* bytes[at, at + len) */
    uint32_t offset;
} read_term;

typedef struct reading {
    const gx_index *ix;
    gx_error *err;
    gx_status st;
    bool positions;
    uint32_t line;
    read_entry *entries;
    read_term *terms;
    link *links;
    char *bytes;
    size_t n_entries, max_entries, n_terms, max_terms, n_links, max_links, n_bytes, max_bytes;
    char *word; /* [max_word] of the entry under way, without backslashes */
    size_t max_word;
} reading;

struct gx_synonyms {
    char *analyzer; /* the analysis */
    char *bytes;
    gx_synonym_term *terms;
    gx_synonym_entry *entries; /* what groups are replaced by */
    gx_synonym_group *groups;  /* [n] by their terms */
    uint32_t n, most_terms;    /* of an entry that is replaced */
    bool phrases;              /* some replacement has several words */
};

/* ---- messages ---- */

static gx_status refuse(reading *r, uint32_t line, uint32_t column, const char *what)
{
    if (r->st == GX_OK)
        r->st = gx_fail(r->err, GX_EINPUT, "line %u, column %u: %s", line, column, what);
    return r->st;
}

static void fail_memory(reading *r)
{
    if (r->st == GX_OK)
        r->st = gx_fail(r->err, GX_ENOMEM, "no memory for synonyms");
}

/* ---- entries ---- */

static bool take_term(void *user, const gx_found_term *t)
{
    reading *r = user;
    if (!gx_reserve(&r->terms, &r->max_terms, r->n_terms + 1, sizeof *r->terms) ||
        !gx_reserve(&r->bytes, &r->max_bytes, r->n_bytes + t->len + 1, 1)) {
        fail_memory(r);
        return false;
    }
    memcpy(r->bytes + r->n_bytes, t->term, t->len);
    r->terms[r->n_terms++] = (read_term){r->n_bytes, t->len, t->position};
    r->n_bytes += t->len;
    return true;
}

/* Analyse the entry text[len] that begins in this column. */
static void add_entry(reading *r, const char *text, size_t len, uint32_t column)
{
    const size_t first = r->n_terms;
    if (r->st != GX_OK)
        return;
    if (!gx_reserve(&r->entries, &r->max_entries, r->n_entries + 1, sizeof *r->entries)) {
        fail_memory(r);
        return;
    }
    const gx_status st = gx_analyze_query(r->ix->analyzer, text, len, take_term, r);
    if (st != GX_OK)
        r->st = gx_fail(r->err, st, "cannot analyse an entry of %zu bytes: %s", len, gx_status_name(st));
    const size_t n = r->n_terms - first;
    if (r->st == GX_OK && n == 0)
        refuse(r, r->line, column,
               len ? "analysis leaves nothing of this entry; is it a stop word?" : "a word is expected here");
    if (n > MAX_ENTRY_TERMS)
        refuse(r, r->line, column, "this entry has too many words");
    for (size_t i = n; i-- > 0;)
        r->terms[first + i].offset -= r->terms[first].offset;
    if (r->st == GX_OK)
        r->entries[r->n_entries++] = (read_entry){(uint32_t)first, (uint32_t)n, r->line, column};
}

/* ---- lines ---- */

/* Characters of text[0, n), the first of which is column 1. */
static uint32_t column_of(const char *text, size_t n)
{
    uint32_t column = 1;
    for (size_t i = 0; i < n; ++i)
        column += ((unsigned char)text[i] & 0xc0) != 0x80;
    return column;
}

static void check_line(reading *r, const char *line, size_t len)
{
    for (size_t at = 0; at < len && r->st == GX_OK;) {
        uint32_t used;
        if (gx_first_character(line + at, len - at, true, &used) >= GX_LONE_BYTE)
            refuse(r, r->line, column_of(line, at), "this is not UTF-8");
        else if (line[at] == 0)
            refuse(r, r->line, column_of(line, at), "this is a byte of 0");
        at += used;
    }
}

/* Read entries up to => or the line's end, from *at on. Returns their number. */
static size_t read_side(reading *r, const char *line, size_t len, size_t *at)
{
    const size_t before = r->n_entries;
    bool more = true;
    while (more && r->st == GX_OK) {
        while (*at < len && gx_is_blank(line[*at]))
            ++*at;
        const size_t begin = *at;
        size_t n = 0, kept = 0; /* kept: without blanks at the end */
        for (; *at < len && line[*at] != ',' && !(line[*at] == '=' && *at + 1 < len && line[*at + 1] == '>'); ++*at) {
            if (line[*at] == '\\' && *at + 1 < len)
                ++*at;
            r->word[n++] = line[*at];
            kept = gx_is_blank(line[*at]) && line[*at - 1] != '\\' ? kept : n;
        }
        more = *at < len && line[*at] == ',';
        add_entry(r, r->word, kept, column_of(line, begin));
        *at += more;
    }
    if (r->n_entries - before > MAX_SIDE)
        refuse(r, r->line, 1, "this rule has too many entries on one side");
    return r->n_entries - before;
}

static void add_link(reading *r, size_t from, size_t to, bool turns)
{
    if (r->st != GX_OK || gx_reserve(&r->links, &r->max_links, r->n_links + 1, sizeof *r->links)) {
        if (r->st == GX_OK)
            r->links[r->n_links++] = (link){(uint32_t)from, (uint32_t)to, turns};
        return;
    }
    fail_memory(r);
}

static bool same_entry(const reading *r, uint32_t a, uint32_t b)
{
    const read_entry *x = &r->entries[a], *y = &r->entries[b];
    bool same = x->n == y->n;
    for (uint32_t i = 0; i < x->n && same; ++i) {
        const read_term *s = &r->terms[x->first + i], *t = &r->terms[y->first + i];
        same = s->len == t->len && memcmp(r->bytes + s->at, r->bytes + t->at, s->len) == 0;
    }
    return same;
}

/* A phrase that is to be searched for needs positions. */
static void check_positions(reading *r, size_t first, size_t end)
{
    for (size_t i = first; i < end && r->st == GX_OK && !r->positions; ++i)
        if (r->entries[i].n > 1)
            refuse(r, r->entries[i].line, r->entries[i].column,
                   "several words are a phrase, which needs positions, and the index has none; build it with "
                   "--positions");
}

static void read_rule(reading *r, const char *line, size_t len)
{
    size_t at = 0;
    const size_t begin = r->n_entries;
    check_line(r, line, len);
    const size_t n_left = r->st == GX_OK ? read_side(r, line, len, &at) : 0, middle = r->n_entries;
    if (r->st != GX_OK)
        return;
    if (at == len) {
        if (n_left == 1)
            refuse(r, r->line, column_of(line, len), "one entry alone has no synonym; write a, b or a => b");
        check_positions(r, begin, middle);
        for (size_t i = begin; i < middle; ++i)
            for (size_t k = begin; k < middle; ++k)
                add_link(r, i, k, false);
        return;
    }
    at += 2;
    read_side(r, line, len, &at);
    if (r->st == GX_OK && at < len)
        refuse(r, r->line, column_of(line, at), "a second => in one rule");
    if (r->st != GX_OK)
        return;
    check_positions(r, middle, r->n_entries);
    for (size_t i = begin; i < middle; ++i) {
        bool kept = false;
        for (size_t k = middle; k < r->n_entries; ++k)
            kept = kept || same_entry(r, (uint32_t)i, (uint32_t)k);
        for (size_t k = middle; k < r->n_entries; ++k)
            add_link(r, i, k, !kept);
    }
}

static void read_rules(reading *r, const char *rules, size_t len)
{
    const bool has_mark = len >= 3 && memcmp(rules, "\xef\xbb\xbf", 3) == 0; /* of byte order */
    for (size_t at = has_mark ? 3 : 0; at < len && r->st == GX_OK;) {
        const char *end = memchr(rules + at, '\n', len - at);
        const size_t n = end ? (size_t)(end - rules) - at : len - at;
        const char *line = rules + at;
        size_t blank = 0, kept = n;
        ++r->line;
        at += n + 1;
        while (blank < kept && gx_is_blank(line[blank]))
            ++blank;
        while (kept > blank && gx_is_blank(line[kept - 1]) && !(kept > 1 && line[kept - 2] == '\\'))
            --kept;
        if (blank == kept || line[blank] == '#')
            continue;
        if (!gx_reserve(&r->word, &r->max_word, kept + 1, 1))
            fail_memory(r);
        else
            read_rule(r, line, kept);
    }
}

/* ---- the table ---- */

static int compare_terms(const gx_synonym_term *x, const gx_synonym_term *y)
{
    const size_t len = x->len < y->len ? x->len : y->len;
    const int order = memcmp(x->term, y->term, len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* Of entries: by their terms, a beginning before what goes on. */
static int compare_entries(const gx_synonym_entry *x, const gx_synonym_entry *y)
{
    int order = 0;
    for (uint32_t i = 0; i < x->n && i < y->n && !order; ++i)
        order = compare_terms(&x->terms[i], &y->terms[i]);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

typedef struct pair {
    gx_synonym_entry from, to;
    uint32_t number; /* in the order of the rules */
} pair;

static int by_entries(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    const int order = compare_entries(&x->from, &y->from);
    if (order)
        return order;
    if ((x->to.n > 1) != (y->to.n > 1))
        return x->to.n > 1 ? 1 : -1;
    const int to = compare_entries(&x->to, &y->to);
    return to ? to : (x->number > y->number) - (x->number < y->number);
}

static gx_synonym_entry entry_of(const gx_synonyms *s, const reading *r, uint32_t entry)
{
    return (gx_synonym_entry){s->terms + r->entries[entry].first, r->entries[entry].n};
}

/* Make groups of pairs[n], which are sorted. */
static void group_pairs(gx_synonyms *s, const pair *pairs, size_t n)
{
    size_t n_entries = 0;
    for (size_t i = 0; i < n; ++i) {
        const bool same = i && compare_entries(&pairs[i - 1].from, &pairs[i].from) == 0;
        if (!same) {
            s->groups[s->n++] = (gx_synonym_group){pairs[i].from, s->entries + n_entries, 0, 0};
            s->most_terms = pairs[i].from.n > s->most_terms ? pairs[i].from.n : s->most_terms;
        } else if (compare_entries(&pairs[i - 1].to, &pairs[i].to) == 0) {
            continue;
        }
        gx_synonym_group *g = &s->groups[s->n - 1];
        s->entries[n_entries++] = pairs[i].to;
        ++g->n;
        g->n_single += pairs[i].to.n == 1;
        s->phrases = s->phrases || pairs[i].to.n > 1;
    }
}

static gx_synonyms *make_table(const reading *r)
{
    gx_synonyms *s = calloc(1, sizeof *s);
    pair *pairs = malloc((r->n_links + 1) * sizeof *pairs);
    if (s) {
        s->analyzer = strdup(r->ix->analyzer_text ? r->ix->analyzer_text : "");
        s->bytes = malloc(r->n_bytes + 1);
        s->terms = malloc((r->n_terms + 1) * sizeof *s->terms);
        s->entries = malloc((r->n_links + 1) * sizeof *s->entries);
        s->groups = malloc((r->n_links + 1) * sizeof *s->groups);
    }
    if (!s || !pairs || !s->analyzer || !s->bytes || !s->terms || !s->entries || !s->groups) {
        gx_synonyms_close(s);
        free(pairs);
        return NULL;
    }
    if (r->n_bytes)
        memcpy(s->bytes, r->bytes, r->n_bytes);
    for (size_t i = 0; i < r->n_terms; ++i)
        s->terms[i] = (gx_synonym_term){s->bytes + r->terms[i].at, r->terms[i].len, r->terms[i].offset};
    for (size_t i = 0; i < r->n_links; ++i)
        pairs[i] = (pair){entry_of(s, r, r->links[i].from), entry_of(s, r, r->links[i].to), (uint32_t)i};
    qsort(pairs, r->n_links, sizeof *pairs, by_entries);
    group_pairs(s, pairs, r->n_links);
    free(pairs);
    return s;
}

/* ---- circles ---- */

/* Links of rules that turn one entry into others: whoever follows them must not come back. */
typedef struct turn {
    gx_synonym_entry from, to;
    uint32_t link;
} turn;

static int by_from(const void *a, const void *b)
{
    const turn *x = a, *y = b;
    const int order = compare_entries(&x->from, &y->from);
    return order ? order : (x->link > y->link) - (x->link < y->link);
}

/* The first of turns[n] from the entry, or n. */
static size_t first_from(const turn *turns, size_t n, const gx_synonym_entry *e)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (compare_entries(&turns[mid].from, e) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && compare_entries(&turns[lo].from, e) == 0 ? lo : n;
}

/* Walk from turn `start` in depth; state[i]: 1 on the way, 2 done. Returns the turn that closes a circle, or n. */
static size_t find_circle(const turn *turns, size_t n, size_t start, uint8_t *state, size_t *stack)
{
    size_t depth = 0;
    stack[depth++] = start;
    while (depth) {
        const size_t at = stack[depth - 1];
        if (state[at]) { /* back from below */
            state[at] = 2;
            --depth;
            if (at + 1 < n && compare_entries(&turns[at].from, &turns[at + 1].from) == 0 && state[at + 1] == 0 && depth)
                stack[depth++] = at + 1;
            continue;
        }
        state[at] = 1;
        const size_t next = first_from(turns, n, &turns[at].to);
        if (next == n)
            continue;
        for (size_t i = 0; i < depth; ++i)
            if (compare_entries(&turns[stack[i]].from, &turns[next].from) == 0)
                return at;
        if (state[next] == 0)
            stack[depth++] = next;
    }
    return n;
}

static void check_circles(reading *r, const gx_synonyms *s)
{
    size_t n = 0;
    turn *turns = malloc((r->n_links + 1) * sizeof *turns);
    size_t *stack = malloc((r->n_links + 2) * sizeof *stack);
    uint8_t *state = calloc(r->n_links + 1, 1);
    for (size_t i = 0; turns && i < r->n_links; ++i)
        if (r->links[i].turns)
            turns[n++] = (turn){entry_of(s, r, r->links[i].from), entry_of(s, r, r->links[i].to), (uint32_t)i};
    if (!turns || !stack || !state)
        fail_memory(r);
    else
        qsort(turns, n, sizeof *turns, by_from);
    for (size_t i = 0, at; i < n && r->st == GX_OK; ++i) {
        if (state[i] || (at = find_circle(turns, n, i, state, stack)) == n)
            continue;
        const read_entry *from = &r->entries[r->links[turns[at].link].from];
        refuse(r, from->line, from->column,
               "this entry is turned into another, which rules turn back into it: a circle");
    }
    free(turns);
    free(stack);
    free(state);
}

/* ---- open and close ---- */

gx_status gx_synonyms_open(gx_synonyms **out, const gx_index *ix, const char *rules, size_t len, gx_error *err)
{
    reading r = {.ix = ix, .err = err, .st = GX_OK, .positions = gx_index_has_positions(ix)};
    gx_synonyms *s = NULL;
    *out = NULL;
    if (len > MAX_RULES_BYTES)
        return gx_fail(err, GX_EINPUT, "the rules have %zu bytes; at most %u are possible", len, MAX_RULES_BYTES);
    read_rules(&r, rules, len);
    if (r.st == GX_OK && !(s = make_table(&r)))
        fail_memory(&r);
    if (r.st == GX_OK)
        check_circles(&r, s);
    free(r.entries);
    free(r.terms);
    free(r.links);
    free(r.bytes);
    free(r.word);
    if (r.st == GX_OK)
        *out = s;
    else
        gx_synonyms_close(s);
    return r.st;
}

gx_status gx_synonyms_read(gx_synonyms **out, const gx_index *ix, const char *path, gx_error *err)
{
    FILE *f = fopen(path, "rb");
    char *rules = NULL;
    size_t n = 0, max = 0;
    gx_error why = {0};
    *out = NULL;
    if (!f)
        return gx_fail(err, errno == ENOENT ? GX_ENOTFOUND : GX_EIO, "%s: %s", path, strerror(errno));
    bool good = true;
    for (size_t got = 1; good && got && n <= MAX_RULES_BYTES; n += got)
        if ((good = gx_reserve(&rules, &max, n + 65536, 1)))
            got = fread(rules + n, 1, 65536, f);
    const bool failed = ferror(f);
    fclose(f);
    gx_status st = !good    ? gx_fail(err, GX_ENOMEM, "%s: no memory to read it", path)
                   : failed ? gx_fail(err, GX_EIO, "%s: %s", path, strerror(errno))
                            : gx_synonyms_open(out, ix, rules, n, &why);
    if (good && !failed && st != GX_OK)
        gx_fail(err, st, "%s: %.900s", path, why.text);
    free(rules);
    return st;
}

void gx_synonyms_close(gx_synonyms *s)
{
    if (!s)
        return;
    free(s->analyzer);
    free(s->bytes);
    free(s->terms);
    free(s->entries);
    free(s->groups);
    free(s);
}

uint32_t gx_synonyms_n(const gx_synonyms *s)
{
    return s->n;
}

/* ---- look-ups ---- */

const gx_synonym_group *gx_synonyms_find(const gx_synonyms *s, const gx_synonym_term *terms, uint32_t n, bool whole)
{
    uint32_t len = n < s->most_terms ? n : s->most_terms;
    if (whole && len < n)
        return NULL;
    for (; len; --len) {
        const gx_synonym_entry e = {terms, len};
        uint32_t lo = 0, hi = s->n;
        while (lo < hi) {
            const uint32_t mid = lo + (hi - lo) / 2;
            if (compare_entries(&s->groups[mid].from, &e) < 0)
                lo = mid + 1;
            else
                hi = mid;
        }
        if (lo < s->n && compare_entries(&s->groups[lo].from, &e) == 0)
            return &s->groups[lo];
        if (whole)
            return NULL;
    }
    return NULL;
}

gx_status gx_synonyms_check(const gx_synonyms *s, const gx_index *ix, gx_error *err)
{
    if (strcmp(s->analyzer, ix->analyzer_text ? ix->analyzer_text : "") != 0)
        return gx_fail(err, GX_EUSAGE, "the synonyms were read for an index of another analysis than that of %s",
                       ix->path);
    if (s->phrases && !gx_index_has_positions(ix))
        return gx_fail(err, GX_EUSAGE, "some synonyms are phrases, which need positions, and %s has none", ix->path);
    return GX_OK;
}
