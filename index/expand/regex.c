/* regex.c: regular expressions as automata. The text becomes a program of few instructions (Thompson, 1968), and sets
 * of them become the states of a deterministic automaton, made when a word first leads there. Nothing is tried twice:
 * a word takes a step a character. What could take long is bounded: instructions, states, and the work to make them. */
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/expand/walk.h"

#define MAX_CODE 4096u   /* instructions */
#define MAX_ATOMS 65536u /* that are read, those again that are repeated */
#define MAX_DEPTH 64u    /* of parentheses */
#define MAX_REPEATS 1000u
#define MAX_STATES 10000u
#define MAX_TRANSITIONS (1u << 21) /* states times classes of characters */
#define MAX_WORK (1u << 25)        /* instructions that are looked at to make states */
#define MAX_EVERYTHING 64u         /* states that are looked at to see whether every word matches */
#define NONE UINT32_MAX
#define DEAD 0u      /* the state that nothing leads out of */
#define UNKNOWN NONE /* a transition that is not made yet */

typedef enum opcode { TAKE, SPLIT, JUMP, ACCEPT } opcode;

typedef struct instruction {
    opcode op;
    bool negated;  /* TAKE: characters that are not in the ranges */
    uint32_t x, y; /* TAKE: ranges [x, y); SPLIT: both are next; JUMP: x is next */
} instruction;

typedef struct range {
    uint32_t low, high; /* characters from low to high */
} range;

typedef struct dfa_state {
    uint32_t begin, n; /* sets[begin, begin + n): TAKE and ACCEPT instructions, rising */
    bool accepts;
} dfa_state;

struct gx_regex {
    const gx_index *ix;
    bool as_is;
    instruction code[MAX_CODE];
    uint32_t n_code;
    range *ranges;
    size_t n_ranges, max_ranges;
    uint32_t *bounds; /* [n_bounds] rising: class i is the characters from bounds[i] to below the next */
    uint32_t n_bounds;
    uint16_t ascii[128];
    /* the automaton */
    dfa_state *states;
    size_t max_states;
    uint32_t n_states;
    uint32_t *next; /* [n_states][n_bounds] */
    size_t max_next;
    uint32_t *sets;
    size_t n_sets, max_sets;
    uint32_t *table; /* [2^15] numbers of states + 1 by hash; 0: none */
    uint32_t work;
    uint32_t marks[MAX_CODE], mark; /* instructions that the set under way has */
    uint32_t set[MAX_CODE], n_set, stack[MAX_CODE];
    gx_status st;
    uint32_t path[GX_WALK_DEPTH + 1]; /* states of the walk */
    gx_walk walk;
};

#define TABLE_SIZE (1u << 15)

/* ---- parse ---- */

typedef struct parser {
    gx_regex *x;
    const char *text;
    size_t len, at;
    uint32_t depth, n_atoms;
    gx_status st;
    gx_error *err;
} parser;

static bool refuse(parser *p, size_t at, const char *what)
{
    uint32_t column = 1;
    for (size_t i = 0; i < at && i < p->len; ++i)
        column += (p->text[i] & 0xc0) != 0x80;
    if (p->st == GX_OK)
        p->st = gx_fail(p->err, GX_EUSAGE, "character %u of the regular expression: %s", column, what);
    return false;
}

static bool no_memory(parser *p)
{
    if (p->st == GX_OK)
        p->st = gx_fail(p->err, GX_ENOMEM, "no memory for a regular expression");
    return false;
}

#define TOO_LONG "the expression is too long up to here, repetitions written out; shorten it"

static uint32_t emit(parser *p, opcode op, uint32_t x, uint32_t y)
{
    gx_regex *r = p->x;
    if (r->n_code == MAX_CODE) {
        refuse(p, p->at, TOO_LONG);
        return NONE;
    }
    r->code[r->n_code] = (instruction){op, false, x, y};
    return r->n_code++;
}

static bool add_range(parser *p, uint32_t low, uint32_t high)
{
    gx_regex *r = p->x;
    if (!gx_reserve(&r->ranges, &r->max_ranges, r->n_ranges + 1, sizeof *r->ranges))
        return no_memory(p);
    r->ranges[r->n_ranges++] = (range){low, high};
    return true;
}

static bool peek(const parser *p, char c)
{
    return p->at < p->len && p->text[p->at] == c;
}

static uint32_t next_character(parser *p)
{
    uint32_t used;
    const uint32_t c = gx_first_character(p->text + p->at, p->len - p->at, true, &used);
    if (c >= GX_LONE_BYTE)
        refuse(p, p->at, "this is not UTF-8");
    p->at += used;
    return c;
}

/* The ranges of \d, \w, \s and their opposites, which are written out. false: c is none of these. */
static bool add_class(parser *p, uint32_t c)
{
    static const range digit[] = {{'0', '9'}}, not_digit[] = {{0, '0' - 1}, {'9' + 1, GX_END_OF_CHARACTERS - 1}};
    static const range word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}, {0x80, GX_LONE_BYTE - 1}};
    static const range not_word[] = {{0, '0' - 1}, {'9' + 1, 'A' - 1}, {'Z' + 1, '_' - 1},
                                     {'`', '`'},   {'z' + 1, 0x7f},    {GX_LONE_BYTE, GX_END_OF_CHARACTERS - 1}};
    static const range space[] = {{'\t', '\r'}, {' ', ' '}};
    static const range not_space[] = {{0, '\t' - 1}, {'\r' + 1, ' ' - 1}, {' ' + 1, GX_END_OF_CHARACTERS - 1}};
    static const struct {
        uint32_t name, n;
        const range *ranges;
    } classes[] = {{'d', 1, digit},    {'D', 2, not_digit}, {'w', 5, word},
                   {'W', 6, not_word}, {'s', 2, space},     {'S', 3, not_space}};
    for (uint32_t i = 0; i < sizeof classes / sizeof *classes; ++i) {
        for (uint32_t j = 0; classes[i].name == c && j < classes[i].n; ++j)
            add_range(p, classes[i].ranges[j].low, classes[i].ranges[j].high);
        if (classes[i].name == c)
            return true;
    }
    return false;
}

/* Behind a backslash: a sign. Letters and digits are none. */
static uint32_t escaped(parser *p)
{
    const size_t at = p->at - 1;
    const char c = p->at < p->len ? p->text[p->at] : 0;
    if (p->at == p->len)
        refuse(p, at, "a sign is expected behind the backslash");
    else if (c >= '0' && c <= '9')
        refuse(p, at, "back references cannot be searched");
    else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        refuse(p, at, "no such class: \\d, \\w, \\s, \\D, \\W and \\S are known");
    return p->st == GX_OK ? next_character(p) : 0;
}

/* One end of a range in brackets. *class: it was a class, whose ranges are added. */
static uint32_t bracket_item(parser *p, bool *class)
{
    *class = false;
    if (!peek(p, '\\'))
        return next_character(p);
    ++p->at;
    if (p->at < p->len && add_class(p, (unsigned char)p->text[p->at])) {
        *class = true;
        ++p->at;
        return 0;
    }
    return escaped(p);
}

static bool bracket_range(parser *p)
{
    const size_t at = p->at;
    bool class;
    uint32_t low = bracket_item(p, &class), high = low, letters[GX_LETTER_MAX];
    if (class || p->st != GX_OK)
        return p->st == GX_OK;
    if (peek(p, '-') && p->at + 1 < p->len && p->text[p->at + 1] != ']') {
        ++p->at;
        high = bracket_item(p, &class);
        if (class || (p->st == GX_OK && high < low))
            return refuse(p, at, "the range's end comes before its beginning");
    } else if (gx_pattern_letters(p->x->ix, p->x->as_is, low, letters) == 1) {
        low = high = letters[0];
    }
    return p->st == GX_OK && add_range(p, low, high);
}

/* Behind [. */
static bool parse_bracket(parser *p)
{
    const size_t open = p->at - 1;
    const uint32_t take = emit(p, TAKE, (uint32_t)p->x->n_ranges, 0);
    const bool negated = peek(p, '^');
    p->at += negated;
    bool first = true;
    while (p->st == GX_OK && p->at < p->len && (first || !peek(p, ']'))) {
        bracket_range(p);
        first = false;
    }
    if (p->st == GX_OK && !peek(p, ']'))
        return refuse(p, open, "this [ is not closed");
    if (p->st != GX_OK)
        return false;
    ++p->at;
    p->x->code[take].negated = negated;
    p->x->code[take].y = (uint32_t)p->x->n_ranges;
    return true;
}

static bool take_ranges(parser *p, uint32_t first)
{
    return emit(p, TAKE, first, (uint32_t)p->x->n_ranges) != NONE && p->st == GX_OK;
}

static bool take_character(parser *p, uint32_t c, bool letter)
{
    uint32_t letters[GX_LETTER_MAX] = {c}, n = letter ? gx_pattern_letters(p->x->ix, p->x->as_is, c, letters) : 1;
    for (uint32_t i = 0; i < n && p->st == GX_OK; ++i) {
        const uint32_t first = (uint32_t)p->x->n_ranges;
        if (add_range(p, letters[i], letters[i]))
            take_ranges(p, first);
    }
    return p->st == GX_OK;
}

static bool parse_alternatives(parser *p);

static bool parse_group(parser *p)
{
    const size_t open = p->at - 1;
    if (peek(p, '?'))
        return refuse(p, p->at, "(? ... is not known: groups are plain, without look-around and names");
    if (++p->depth > MAX_DEPTH)
        return refuse(p, open, "the parentheses are nested too deep");
    if (!parse_alternatives(p))
        return false;
    --p->depth;
    if (!peek(p, ')'))
        return refuse(p, open, "this ( is not closed");
    ++p->at;
    return true;
}

static bool parse_atom(parser *p)
{
    const size_t at = p->at;
    const uint32_t first = (uint32_t)p->x->n_ranges, c = next_character(p);
    if (++p->n_atoms > MAX_ATOMS)
        return refuse(p, at, TOO_LONG);
    switch (c) {
    case '(':
        return parse_group(p);
    case '[':
        return parse_bracket(p);
    case '.':
        return add_range(p, 0, GX_END_OF_CHARACTERS - 1) && take_ranges(p, first);
    case '*':
    case '+':
    case '?':
    case '{':
        return refuse(p, at, "there is nothing before it that could be repeated");
    case '^':
    case '$':
        return refuse(p, at, "leave ^ and $ out: a regular expression matches whole words");
    case '\\':
        if (p->at < p->len && add_class(p, (unsigned char)p->text[p->at])) {
            ++p->at;
            return take_ranges(p, first);
        }
        return take_character(p, escaped(p), true);
    default:
        return p->st == GX_OK && take_character(p, c, true);
    }
}

static bool parse_number(parser *p, uint32_t *n)
{
    const size_t at = p->at;
    for (*n = 0; p->at < p->len && p->text[p->at] >= '0' && p->text[p->at] <= '9' && *n <= MAX_REPEATS; ++p->at)
        *n = *n * 10 + (uint32_t)(p->text[p->at] - '0');
    return p->at > at && (*n <= MAX_REPEATS || refuse(p, at, "at most 1,000 repetitions are possible"));
}

/* {2} {2,} {2,4}: *most NONE is any number. */
static bool parse_counts(parser *p, uint32_t *least, uint32_t *most)
{
    const size_t at = p->at;
    ++p->at;
    bool good = parse_number(p, least);
    *most = *least;
    if (good && peek(p, ',')) {
        ++p->at;
        *most = NONE;
        good = peek(p, '}') || parse_number(p, most);
    }
    if (!good || !peek(p, '}') || *most < *least)
        return refuse(p, at, "a number of repetitions is expected, as in {2}, {2,} or {2,4}; write \\{ for the sign");
    ++p->at;
    return true;
}

static bool parse_repeats(parser *p, uint32_t *least, uint32_t *most)
{
    *least = *most = 1;
    if (p->at == p->len || !strchr("*+?{", p->text[p->at]) || p->text[p->at] == 0)
        return true;
    const char sign = p->text[p->at];
    if (sign == '{')
        parse_counts(p, least, most);
    else
        ++p->at;
    *least = sign == '+' ? 1 : sign == '{' ? *least : 0;
    *most = sign == '?' ? 1 : sign == '{' ? *most : NONE;
    if (p->st == GX_OK && p->at < p->len && p->text[p->at] && strchr("*+?{", p->text[p->at]))
        return refuse(p, p->at, "one sign of repetition is enough; put parentheses around what is repeated again");
    return p->st == GX_OK;
}

/* Read the atom that begins at `at` once more. */
static bool repeat_atom(parser *p, size_t at)
{
    const size_t behind = p->at;
    p->at = at;
    const bool good = parse_atom(p);
    p->at = behind;
    return good;
}

/* A part that may be left out: SPLIT to it and behind it; with `loop` the part leads back to the SPLIT. */
static bool parse_optional(parser *p, size_t at, bool loop)
{
    const uint32_t split = emit(p, SPLIT, 0, 0);
    if (split == NONE || !repeat_atom(p, at) || (loop && emit(p, JUMP, split, 0) == NONE))
        return false;
    p->x->code[split].x = split + 1;
    p->x->code[split].y = p->x->n_code;
    return true;
}

static bool parse_piece(parser *p)
{
    const size_t at = p->at;
    const uint32_t n_code = p->x->n_code;
    const size_t n_ranges = p->x->n_ranges;
    uint32_t least, most;
    if (!parse_atom(p) || !parse_repeats(p, &least, &most))
        return false;
    if (least == 1 && most == 1)
        return true;
    p->x->n_code = n_code; /* written again, as often as it is needed */
    p->x->n_ranges = n_ranges;
    for (uint32_t i = 0; i < least && p->st == GX_OK; ++i)
        repeat_atom(p, at);
    for (uint32_t i = least; most != NONE && i < most && p->st == GX_OK; ++i)
        parse_optional(p, at, false);
    if (most == NONE && p->st == GX_OK)
        parse_optional(p, at, true);
    return p->st == GX_OK;
}

/* Room for an instruction before those that begin at `at`. */
static bool insert(parser *p, uint32_t at)
{
    gx_regex *r = p->x;
    if (emit(p, JUMP, 0, 0) == NONE)
        return false;
    memmove(r->code + at + 1, r->code + at, (r->n_code - 1 - at) * sizeof *r->code);
    for (uint32_t i = at + 1; i < r->n_code; ++i) {
        if (r->code[i].op == SPLIT)
            ++r->code[i].y;
        if (r->code[i].op == SPLIT || r->code[i].op == JUMP)
            ++r->code[i].x;
    }
    return true;
}

static bool parse_alternatives(parser *p)
{
    const uint32_t begin = p->x->n_code;
    for (;;) {
        while (p->at < p->len && !peek(p, '|') && !peek(p, ')')) {
            if (!parse_piece(p))
                return false;
        }
        if (!peek(p, '|'))
            return true;
        ++p->at;
        if (!insert(p, begin)) /* SPLIT; all alternatives so far; JUMP behind; the next one */
            return false;
        const uint32_t jump = emit(p, JUMP, 0, 0);
        if (jump == NONE)
            return false;
        p->x->code[begin] = (instruction){SPLIT, false, begin + 1, p->x->n_code};
        while (p->at < p->len && !peek(p, '|') && !peek(p, ')')) {
            if (!parse_piece(p))
                return false;
        }
        p->x->code[jump].x = p->x->n_code;
    }
}

/* ---- classes of characters ---- */

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint32_t class_of(const gx_regex *x, uint32_t c)
{
    uint32_t low = 0, high = x->n_bounds;
    while (low + 1 < high) {
        const uint32_t mid = low + (high - low) / 2;
        *(x->bounds[mid] <= c ? &low : &high) = mid;
    }
    return low;
}

static bool make_classes(gx_regex *x)
{
    uint32_t n = 0;
    if (!(x->bounds = malloc((2 * x->n_ranges + 1) * sizeof *x->bounds)))
        return false;
    x->bounds[n++] = 0;
    for (size_t i = 0; i < x->n_ranges; ++i) {
        x->bounds[n++] = x->ranges[i].low;
        x->bounds[n++] = x->ranges[i].high + 1;
    }
    qsort(x->bounds, n, sizeof *x->bounds, by_number);
    for (uint32_t i = 0; i < n; ++i) {
        if (x->bounds[i] < GX_END_OF_CHARACTERS && (x->n_bounds == 0 || x->bounds[x->n_bounds - 1] != x->bounds[i]))
            x->bounds[x->n_bounds++] = x->bounds[i];
    }
    for (uint32_t c = 0; c < 128; ++c)
        x->ascii[c] = (uint16_t)class_of(x, c);
    return true;
}

/* ---- states ---- */

static bool takes(const gx_regex *x, const instruction *i, uint32_t c)
{
    bool in = false;
    for (uint32_t r = i->x; r < i->y && !in; ++r)
        in = c >= x->ranges[r].low && c <= x->ranges[r].high;
    return in != i->negated;
}

/* Add to the set what is reached from an instruction without a character. */
static void add_reached(gx_regex *x, uint32_t from)
{
    uint32_t n = 0;
    if (x->marks[from] != x->mark) {
        x->marks[from] = x->mark;
        x->stack[n++] = from;
    }
    while (n) {
        const uint32_t at = x->stack[--n];
        const instruction *i = &x->code[at];
        const uint32_t next[2] = {i->x, i->y};
        ++x->work;
        if (i->op == TAKE || i->op == ACCEPT)
            x->set[x->n_set++] = at;
        for (uint32_t j = 0; j < (i->op == SPLIT ? 2u : i->op == JUMP); ++j) {
            if (x->marks[next[j]] == x->mark)
                continue;
            x->marks[next[j]] = x->mark;
            x->stack[n++] = next[j];
        }
    }
}

static uint32_t too_large(gx_regex *x, gx_status st)
{
    x->st = st;
    return DEAD;
}

/* The state of the set. */
static uint32_t keep_state(gx_regex *x)
{
    uint32_t hash = 2166136261u;
    if (x->n_set == 0)
        return DEAD;
    qsort(x->set, x->n_set, sizeof *x->set, by_number);
    for (uint32_t i = 0; i < x->n_set; ++i)
        hash = (hash ^ x->set[i]) * 16777619u;
    uint32_t slot = (hash ^ hash >> 15) % TABLE_SIZE;
    for (; x->table[slot]; slot = (slot + 1) % TABLE_SIZE) {
        const dfa_state *s = &x->states[x->table[slot] - 1];
        if (s->n == x->n_set && memcmp(x->sets + s->begin, x->set, x->n_set * sizeof *x->set) == 0)
            return x->table[slot] - 1;
    }
    if (x->n_states == MAX_STATES || (x->n_states + 1ull) * x->n_bounds > MAX_TRANSITIONS || x->work > MAX_WORK)
        return too_large(x, GX_EUSAGE);
    if (!gx_reserve(&x->states, &x->max_states, x->n_states + 1ull, sizeof *x->states) ||
        !gx_reserve(&x->next, &x->max_next, (x->n_states + 1ull) * x->n_bounds, sizeof *x->next) ||
        !gx_reserve(&x->sets, &x->max_sets, x->n_sets + x->n_set, sizeof *x->sets))
        return too_large(x, GX_ENOMEM);
    memcpy(x->sets + x->n_sets, x->set, x->n_set * sizeof *x->set);
    x->states[x->n_states] = (dfa_state){(uint32_t)x->n_sets, x->n_set, x->code[x->set[x->n_set - 1]].op == ACCEPT};
    x->n_sets += x->n_set;
    for (uint32_t i = 0; i < x->n_bounds; ++i)
        x->next[(size_t)x->n_states * x->n_bounds + i] = UNKNOWN;
    x->table[slot] = ++x->n_states;
    return x->n_states - 1;
}

static uint32_t make_transition(gx_regex *x, uint32_t state, uint32_t class)
{
    const dfa_state s = x->states[state];
    if (x->st != GX_OK)
        return DEAD;
    ++x->mark;
    x->n_set = 0;
    for (uint32_t i = 0; i < s.n; ++i) {
        const uint32_t at = x->sets[s.begin + i];
        x->work += 1 + x->code[at].y - x->code[at].x;
        if (x->code[at].op == TAKE && takes(x, &x->code[at], x->bounds[class]))
            add_reached(x, at + 1);
    }
    const uint32_t to = keep_state(x);
    return x->st == GX_OK ? x->next[(size_t)state * x->n_bounds + class] = to : DEAD;
}

static inline uint32_t next_state(gx_regex *x, uint32_t state, uint32_t class)
{
    const uint32_t next = x->next[(size_t)state * x->n_bounds + class];
    return next != UNKNOWN ? next : make_transition(x, state, class);
}

/* State 0 is dead, state 1 the first. false: no memory. */
static bool make_automaton(gx_regex *x)
{
    x->table = calloc(TABLE_SIZE, sizeof *x->table);
    if (!x->table || !gx_reserve(&x->states, &x->max_states, 1, sizeof *x->states) ||
        !gx_reserve(&x->next, &x->max_next, x->n_bounds, sizeof *x->next))
        return false;
    memset(x->next, 0, x->n_bounds * sizeof *x->next);
    x->states[0] = (dfa_state){0};
    x->n_states = 1;
    ++x->mark;
    x->n_set = 0;
    add_reached(x, 0);
    keep_state(x);
    return x->st != GX_ENOMEM;
}

/* The states that are one step from those of in[n] go to out[*n_out]. false: they are too many. */
static bool step_all(gx_regex *x, const uint32_t *in, uint32_t n, uint32_t *out, uint32_t *n_out)
{
    for (uint32_t i = 0; i < n; ++i)
        for (uint32_t c = 0; c < x->n_bounds; ++c) {
            const uint32_t to = next_state(x, in[i], c);
            uint32_t j = 0;
            while (j < *n_out && out[j] != to)
                ++j;
            if (j == MAX_EVERYTHING || x->st != GX_OK)
                return false;
            *n_out += j == *n_out;
            out[j] = to;
        }
    return true;
}

/* Whether all states accept that can be reached from those of from[n]. */
static bool all_accept(gx_regex *x, const uint32_t *from, uint32_t n)
{
    uint32_t reached[MAX_EVERYTHING + 1], n_reached = n;
    memcpy(reached, from, n * sizeof *from);
    for (uint32_t i = 0; i < n_reached; ++i) {
        if (!x->states[reached[i]].accepts || !step_all(x, reached + i, 1, reached, &n_reached))
            return false;
    }
    return true;
}

/* Whether every word of k or more characters matches, k at most 8. */
static bool is_everything(gx_regex *x)
{
    uint32_t at[2][MAX_EVERYTHING + 1] = {{1}}, n = 1;
    for (uint32_t k = 0; k <= 8; ++k) {
        uint32_t n_next = 0;
        if (all_accept(x, at[k % 2], n))
            return true;
        if (!step_all(x, at[k % 2], n, at[(k + 1) % 2], &n_next))
            return false;
        n = n_next;
    }
    return false;
}

/* ---- the pattern ---- */

static gx_status regex_status(const gx_regex *x, gx_error *err)
{
    return x->st == GX_EUSAGE ? gx_fail(err, GX_EUSAGE, "the regular expression is too large an automaton; simplify it")
           : x->st            ? gx_fail(err, x->st, "no memory for a regular expression")
                              : GX_OK;
}

static gx_status compile(gx_regex *x, const char *text, size_t len, gx_error *err)
{
    parser p = {x, text, len, .err = err};
    uint32_t n = 0;
    for (size_t i = 0; i < len; ++i)
        n += (text[i] & 0xc0) != 0x80;
    if (n > GX_MAX_PATTERN_CHARACTERS)
        return gx_fail(err, GX_EUSAGE, "the pattern has more than %u characters", GX_MAX_PATTERN_CHARACTERS);
    if (len == 0)
        return gx_fail(err, GX_EUSAGE, "the pattern is empty");
    parse_alternatives(&p);
    if (p.st == GX_OK && p.at < len)
        refuse(&p, p.at, "this ) closes nothing; write \\) for the sign");
    if (p.st == GX_OK)
        emit(&p, ACCEPT, 0, 0);
    if (p.st != GX_OK)
        return p.st;
    if (!make_classes(x) || !make_automaton(x))
        return gx_fail(err, GX_ENOMEM, "no memory for a regular expression");
    if (is_everything(x))
        return gx_fail(err, GX_EUSAGE, "the pattern matches every word; it needs a letter or digit");
    return regex_status(x, err);
}

gx_status gx_regex_compile(gx_regex **out, const gx_index *ix, const char *text, size_t len, bool as_is, gx_error *err)
{
    gx_regex *x = calloc(1, sizeof *x);
    *out = NULL;
    if (!x)
        return gx_fail(err, GX_ENOMEM, "no memory for a regular expression");
    x->ix = ix;
    x->as_is = as_is;
    const gx_status st = compile(x, text, len, err);
    if (st != GX_OK)
        gx_regex_free(x);
    else
        *out = x;
    return st;
}

void gx_regex_free(gx_regex *x)
{
    if (!x)
        return;
    free(x->ranges);
    free(x->bounds);
    free(x->states);
    free(x->next);
    free(x->sets);
    free(x->table);
    free(x);
}

static inline bool step(void *user, uint32_t k, uint32_t c)
{
    gx_regex *x = user;
    x->path[k + 1] = next_state(x, x->path[k], c < 128 ? x->ascii[c] : class_of(x, c));
    return x->path[k + 1] != DEAD;
}

static inline uint32_t accept(const void *user, uint32_t k)
{
    const gx_regex *x = user;
    return x->states[x->path[k]].accepts ? 0 : GX_NO_MATCH;
}

static inline bool leads(const void *user, uint32_t k, uint32_t c)
{
    (void)user, (void)k, (void)c;
    return true;
}

static inline void leaf(gx_walk *w, uint32_t first, uint32_t end, uint32_t depth)
{
    gx_walk_terms(w, first, end, depth, step, accept);
}

gx_status gx_regex_find(gx_regex *x, gx_found *f, gx_error *err)
{
    x->walk.automaton = x;
    x->walk.found = f;
    x->walk.k = x->walk.read = 0;
    x->walk.least_bytes = 0;
    x->walk.most_bytes = SIZE_MAX;
    x->path[0] = 1;
    if (gx_walk_all(&x->walk, step, leads, leaf) != GX_OK)
        return gx_fail(err, GX_ENOMEM, "no memory for the words that match a pattern");
    return regex_status(x, err);
}

gx_status gx_regex_matches(gx_regex *x, const char *word, size_t len, bool *matches, gx_error *err)
{
    uint32_t state = 1, used;
    for (size_t at = 0; at < len && state != DEAD; at += used) {
        const uint32_t c = gx_first_character(word + at, len - at, true, &used);
        state = next_state(x, state, c < 128 ? x->ascii[c] : class_of(x, c));
    }
    *matches = x->states[state].accepts;
    return regex_status(x, err);
}
