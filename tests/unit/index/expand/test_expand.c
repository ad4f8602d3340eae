/* Words that a pattern stands for, against every word tried by the plainest means: a table of distances, a recursion
 * over the pattern.
 *
 *   GX_EXPAND_PATTERNS=N   patterns to try instead of a few
 *   GX_EXPAND_INDEX=FILE   words of an index file, instead of random ones */
#include "engine/api/gpuidx_advanced.h"
#include "engine/random.h"
#include "tests/support/scratch.h"

enum { MOST_CHARACTERS = 24, N_LETTERS = 8 };

static const char *const letters[N_LETTERS] = {"a", "b", "c", "d", "1", "\u00e9", "\u4e2d", "\U0001f600"};

typedef struct word {
    char *bytes;
    size_t len;
    uint64_t df;
    uint32_t n, characters[256]; /* the bytes' characters */
} word;

typedef struct words {
    word *all;
    uint32_t n;
} words;

/* ---- the witness ---- */

/* Terms of these tests are UTF-8. */
static uint32_t read_characters(const char *p, size_t len, uint32_t *out, uint32_t max)
{
    uint32_t n = 0;
    for (size_t i = 0; i < len && n < max; ++n) {
        const unsigned char b = (unsigned char)p[i];
        const int more = b < 0x80 ? 0 : b < 0xe0 ? 1 : b < 0xf0 ? 2 : 3;
        uint32_t c = more ? b & (0x3f >> more) : b;
        for (int j = 1; j <= more; ++j)
            c = c << 6 | ((unsigned char)p[i + (size_t)j] & 0x3f);
        out[n] = c;
        i += 1 + (size_t)more;
    }
    return n;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t distance_of(const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m)
{
    static uint32_t d[300][300];
    for (uint32_t i = 0; i <= n; ++i)
        for (uint32_t j = 0; j <= m; ++j) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

static bool wildcard_matches(const uint32_t *p, uint32_t n, const uint32_t *w, uint32_t m)
{
    if (n == 0)
        return m == 0;
    if (*p == '*')
        return wildcard_matches(p + 1, n - 1, w, m) || (m && wildcard_matches(p, n, w + 1, m - 1));
    return m && (*p == '?' || *p == *w) && wildcard_matches(p + 1, n - 1, w + 1, m - 1);
}

/* A regular expression as a tree: the places where a match that begins at one of `from` may end. */
typedef enum tree_kind { LETTER, ANY, SET, SERIES, EITHER, REPEAT } tree_kind;
typedef struct tree {
    tree_kind kind;
    uint32_t mask, a, b; /* letters of LETTER and SET, by number; REPEAT: from a to b times, b 99: any number */
    bool negated;
    struct tree *left, *right;
} tree;

static bool places_after(const tree *t, const uint32_t *w, uint32_t n, const bool *from, bool *to);

static void repeat(const tree *t, const uint32_t *w, uint32_t n, const bool *from, bool *to)
{
    bool at[MOST_CHARACTERS + 300], next[MOST_CHARACTERS + 300];
    memcpy(at, from, n + 1);
    const uint32_t most = t->b == 99 ? n + t->a + 1 : t->b;
    for (uint32_t i = 0; i <= most; ++i) {
        for (uint32_t j = 0; j <= n && i >= t->a; ++j)
            to[j] = to[j] || at[j];
        memset(next, 0, n + 1);
        places_after(t->left, w, n, at, next);
        memcpy(at, next, n + 1);
    }
}

static bool takes(const tree *t, uint32_t c)
{
    uint32_t number = 0, letter[4];
    for (; number < N_LETTERS; ++number) {
        read_characters(letters[number], strlen(letters[number]), letter, 4);
        if (letter[0] == c)
            break;
    }
    const bool in = number < N_LETTERS && (t->mask >> number & 1);
    return t->kind == ANY || in != t->negated;
}

static bool places_after(const tree *t, const uint32_t *w, uint32_t n, const bool *from, bool *to)
{
    bool middle[MOST_CHARACTERS + 300] = {0};
    switch (t->kind) {
    case SERIES:
        places_after(t->left, w, n, from, middle);
        return places_after(t->right, w, n, middle, to);
    case EITHER:
        places_after(t->left, w, n, from, to);
        return places_after(t->right, w, n, from, to);
    case REPEAT:
        repeat(t, w, n, from, to);
        return true;
    default:
        for (uint32_t i = 0; i < n; ++i)
            to[i + 1] = to[i + 1] || (from[i] && takes(t, w[i]));
        return true;
    }
}

static bool regex_matches(const tree *t, const uint32_t *w, uint32_t n)
{
    bool from[MOST_CHARACTERS + 300] = {true}, to[MOST_CHARACTERS + 300] = {false};
    places_after(t, w, n, from, to);
    return to[n];
}

/* ---- patterns ---- */

static uint64_t seed = 20261128;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(gx_random_next(&seed) % n);
}

static tree pool[200];
static uint32_t n_pool;

static tree *random_tree(uint32_t depth, char *text)
{
    tree *t = &pool[n_pool++];
    char left[2000], right[2000];
    *t = (tree){.kind = depth ? (tree_kind)below(6) : (tree_kind)below(3)};
    switch (t->kind) {
    case LETTER:
        t->a = below(N_LETTERS);
        t->mask = 1u << t->a;
        strcpy(text, letters[t->a]);
        break;
    case ANY:
        strcpy(text, ".");
        break;
    case SET:
        t->mask = 1 + below(255);
        t->negated = below(2);
        sprintf(text, "[%s", t->negated ? "^" : "");
        for (uint32_t i = 0; i < N_LETTERS; ++i)
            strcat(text, t->mask >> i & 1 ? letters[i] : "");
        strcat(text, "]");
        break;
    case SERIES:
    case EITHER:
        t->left = random_tree(depth - 1, left);
        t->right = random_tree(depth - 1, right);
        sprintf(text, t->kind == SERIES ? "%s%s" : "(%s|%s)", left, right);
        break;
    case REPEAT:
        t->left = random_tree(depth - 1, left);
        t->a = below(3);
        t->b = below(2) ? 99 : t->a + below(3);
        if (t->a == 0 && t->b == 99)
            sprintf(text, "(%s)*", left);
        else if (t->a == 1 && t->b == 99)
            sprintf(text, "(%s)+", left);
        else if (t->a == 0 && t->b == 1)
            sprintf(text, "(%s)?", left);
        else if (t->b == 99)
            sprintf(text, "(%s){%u,}", left, t->a);
        else
            sprintf(text, "(%s){%u,%u}", left, t->a, t->b);
        break;
    }
    return t;
}

typedef struct pattern {
    gx_pattern_kind kind;
    char text[4000];
    uint32_t distance, fixed, n, characters[300];
    const tree *regex;
} pattern;

/* Letters of a word, some changed. */
static void vary(const word *w, char *out)
{
    out[0] = 0;
    for (uint32_t i = 0, at = 0; i < w->n && i < 40; ++i) {
        uint32_t next = at + 1;
        while (next < w->len && ((unsigned char)w->bytes[next] & 0xc0) == 0x80)
            ++next;
        const uint32_t what = below(12);
        if (what != 0)
            strncat(out, w->bytes + at, next - at);
        if (what <= 1)
            strcat(out, letters[below(N_LETTERS)]);
        at = next;
    }
    if (!out[0])
        strcpy(out, "a");
}

static void random_wildcard(const word *w, char *out)
{
    char changed[600];
    vary(w, changed);
    out[0] = 0;
    for (const char *p = changed; *p;) {
        size_t n = 1;
        while (((unsigned char)p[n] & 0xc0) == 0x80)
            ++n;
        const uint32_t what = below(6);
        if (what == 0)
            strcat(out, "?");
        else if (what == 1)
            strcat(out, "*");
        else if (what != 2 || !strchr(out, '*'))
            strncat(out, p, n);
        p += n;
    }
    if (below(3) == 0)
        strcat(out, "*");
    if (strspn(out, "*?") == strlen(out))
        strcat(out, "a");
}

static void random_pattern(pattern *p, const words *all)
{
    const word *w = &all->all[below(all->n)];
    *p = (pattern){.kind = (gx_pattern_kind)below(4), .distance = below(3), .fixed = below(3) ? 0 : below(4)};
    n_pool = 0;
    switch (p->kind) {
    case GX_PATTERN_PREFIX:
        vary(w, p->text);
        p->text[0] && below(2) ? (void)0 : (void)strcpy(p->text, letters[below(N_LETTERS)]);
        break;
    case GX_PATTERN_WILDCARD:
        random_wildcard(w, p->text);
        break;
    case GX_PATTERN_FUZZY:
        vary(w, p->text);
        break;
    case GX_PATTERN_REGEX:
        p->regex = random_tree(1 + below(4), p->text);
        break;
    }
    p->n = read_characters(p->text, strlen(p->text), p->characters, 300);
}

static bool matches(const pattern *p, const word *w, uint32_t *distance)
{
    *distance = 0;
    switch (p->kind) {
    case GX_PATTERN_PREFIX:
        return w->len >= strlen(p->text) && memcmp(w->bytes, p->text, strlen(p->text)) == 0;
    case GX_PATTERN_WILDCARD:
        return wildcard_matches(p->characters, p->n, w->characters, w->n);
    case GX_PATTERN_REGEX:
        return regex_matches(p->regex, w->characters, w->n);
    default:
        break;
    }
    const uint32_t same = least(p->fixed, p->n);
    if (w->n < same || memcmp(p->characters, w->characters, same * sizeof *w->characters) != 0 || w->n + 2 < p->n ||
        p->n + 2 < w->n)
        return false;
    *distance = distance_of(p->characters + same, p->n - same, w->characters + same, w->n - same);
    return *distance <= p->distance;
}

/* ---- comparisons ---- */

static const words *sorted;
static const uint32_t *distances;
static bool by_nearness;

static int by_order(const void *a, const void *b)
{
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    if (by_nearness && distances[i] != distances[j])
        return distances[i] < distances[j] ? -1 : 1;
    if (sorted->all[i].df != sorted->all[j].df)
        return sorted->all[i].df > sorted->all[j].df ? -1 : 1;
    return (i > j) - (i < j);
}

static void check(const gx_index *ix, const words *all, const pattern *p)
{
    uint32_t *found = malloc((all->n + 1) * sizeof *found), *far = malloc((all->n + 1) * sizeof *far), n = 0;
    for (uint32_t i = 0; i < all->n; ++i) {
        if (all->all[i].df && matches(p, &all->all[i], &far[i]))
            found[n++] = i;
    }
    gx_expand_options opt = GX_EXPAND_OPTIONS;
    opt.distance = p->distance;
    opt.fixed_prefix = p->fixed;
    opt.nearest = by_nearness = below(2);
    opt.max_words = below(2) ? 1 + below(8) : GX_MAX_EXPANSIONS;
    sorted = all;
    distances = far;
    qsort(found, n, sizeof *found, by_order);
    gx_expansion *e;
    gx_error err = {0};
    const gx_status st = gx_index_expand(&e, ix, p->kind, p->text, strlen(p->text), &opt, &err);
    if (st == GX_EUSAGE && p->kind == GX_PATTERN_REGEX && strstr(err.text, "every word")) {
        for (uint32_t i = 0, k = 0; i < all->n; ++i) { /* all words of 9 characters or more at least */
            k += k < n && all->all[i].df && matches(p, &all->all[i], &far[0]);
            if (all->all[i].n > 8 && all->all[i].df)
                assert_true(matches(p, &all->all[i], &far[0]));
        }
        free(found);
        free(far);
        return;
    }
    if (st != GX_OK)
        fail_msg("seed %llu, '%s': %s", (unsigned long long)seed, p->text, err.text);
    if (e->n_matched != n || e->n != least(n, opt.max_words))
        fail_msg("kind %d '%s' ~%u: %llu words, not %u", (int)p->kind, p->text, p->distance,
                 (unsigned long long)e->n_matched, n);
    for (uint32_t i = 0; i < e->n; ++i) {
        const word *w = &all->all[found[i]];
        if (e->words[i].len != w->len || memcmp(e->words[i].word, w->bytes, w->len) != 0 || e->words[i].df != w->df ||
            e->words[i].distance != far[found[i]])
            fail_msg("kind %d '%s': word %u is %s, not %s", (int)p->kind, p->text, i, e->words[i].word, w->bytes);
    }
    gx_expansion_free(e);
    free(found);
    free(far);
}

/* The terms of an index, or of a collection. */
static words read_words(const gx_index *ix)
{
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_stats(ix, &stats);
    words all = {malloc((stats.n_terms + 1ull) * sizeof(word)), 0};
    for (uint32_t i = 0; i < stats.n_terms; ++i) {
        size_t len;
        const char *p = gx_index_term(ix, i, &len);
        word *w = &all.all[all.n++];
        *w = (word){.bytes = malloc(len + 1), .len = len, .df = gx_index_df(ix, i)};
        memcpy(w->bytes, p, len);
        w->bytes[len] = 0;
        w->n = read_characters(p, len, w->characters, 256);
    }
    return all;
}

static void free_words(words *all)
{
    for (uint32_t i = 0; i < all->n; ++i)
        free(all->all[i].bytes);
    free(all->all);
}

static uint32_t n_patterns(uint32_t usual)
{
    const char *n = getenv("GX_EXPAND_PATTERNS");
    return n ? (uint32_t)strtoul(n, NULL, 10) : usual;
}

static void check_patterns(const gx_index *ix, uint32_t n)
{
    words all = read_words(ix);
    static pattern p;
    printf("seed %llu, %u words, %u patterns\n", (unsigned long long)seed, all.n, n);
    for (uint32_t i = 0; i < n; ++i) {
        random_pattern(&p, &all);
        check(ix, &all, &p);
    }
    free_words(&all);
}

/* ---- indexes ---- */

static void random_document(char *text, uint32_t n_words)
{
    text[0] = 0;
    for (uint32_t i = 0; i < n_words; ++i) {
        const uint32_t few = below(4) ? 3 : N_LETTERS, n = below(20) ? 1 + below(7) : 1 + below(MOST_CHARACTERS);
        for (uint32_t j = 0; j < n; ++j)
            strcat(text, letters[below(few)]);
        strcat(text, " ");
    }
}

static void build(const char *path, uint32_t first, uint32_t n)
{
    gx_builder_options opt;
    gx_builder *b;
    gx_error err = {0};
    char text[20000], id[20];
    gx_builder_options_init(&opt, sizeof opt);
    opt.path = path;
    opt.analyzer = "whitespace";
    assert_int_equal(gx_builder_open(&b, &opt, &err), GX_OK);
    for (uint32_t i = 0; i < n; ++i) {
        snprintf(id, sizeof id, "d%u", first + i);
        random_document(text, 100);
        const gx_document d = {
            .size = sizeof d, .id = id, .id_len = strlen(id), .text = text, .text_len = strlen(text)};
        assert_int_equal(gx_builder_add(b, &d, &err), GX_OK);
    }
    assert_int_equal(gx_builder_finish(b, &err), GX_OK);
}

static gx_index *open_any(const char *path)
{
    gx_index *ix;
    gx_error err = {0};
    if (gx_index_open(&ix, path, NULL, &err) != GX_OK)
        fail_msg("%s", err.text);
    return ix;
}

static void finds_the_words_of_a_file(void **state)
{
    (void)state;
    const char *given = getenv("GX_EXPAND_INDEX");
    if (!given)
        build(in_dir("a.gx"), 0, 60);
    gx_index *ix = open_any(given ? given : in_dir("a.gx"));
    check_patterns(ix, n_patterns(800));
    gx_index_close(ix);
}

static void finds_the_words_of_a_collection(void **state)
{
    (void)state;
    char paths[3][300];
    const char *files[3];
    gx_error err = {0};
    gx_collection *c;
    for (uint32_t i = 0; i < 3; ++i) {
        snprintf(paths[i], sizeof paths[i], "%s", in_dir((const char *[]){"p0.gx", "p1.gx", "p2.gx"}[i]));
        build(paths[i], 100 * i, 15 + 10 * i);
        files[i] = paths[i];
    }
    char folder[300];
    snprintf(folder, sizeof folder, "%s/.many", scratch_dir);
    assert_int_equal(gx_collect(folder, files, 3, &err), GX_OK);
    assert_int_equal(gx_collection_open(&c, folder, NULL, &err), GX_OK);
    for (uint32_t i = 0; i < 20; ++i) {
        char id[20];
        bool found;
        snprintf(id, sizeof id, "d%u", 100 * below(3) + below(15));
        assert_int_equal(gx_collection_delete(c, id, strlen(id), &found, &err), GX_OK);
    }
    assert_int_equal(gx_collection_commit(c, &err), GX_OK);
    gx_collection_close(c);
    gx_index *ix = open_any(folder);
    check_patterns(ix, n_patterns(400));
    gx_index_close(ix);
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* ---- bad input ---- */

static void assert_refused(const gx_index *ix, gx_pattern_kind kind, const char *text, size_t len, const char *why)
{
    gx_expansion *e;
    gx_error err = {0};
    const gx_status st = gx_index_expand(&e, ix, kind, text, len, NULL, &err);
    if (st != GX_EUSAGE || !strstr(err.text, why))
        fail_msg("'%.60s': %s, where '%s' is expected", text, err.text, why);
    assert_null(e);
}

static void patterns_that_match_everything_are_refused(void **state)
{
    (void)state;
    static const char *const regexes[] = {".*",       ".+",      "..*",   "(.*)*",        ".*.*",        "(a|.)*",
                                          "[^a]*|.*", "(.|..)+", ".{2,}", "(a|b|[^ab])*", "\\w*\\W*|.*", ""};
    gx_index *ix = open_any(in_dir("a.gx"));
    for (size_t i = 0; i < sizeof regexes / sizeof *regexes; ++i)
        assert_refused(ix, GX_PATTERN_REGEX, regexes[i], strlen(regexes[i]), regexes[i][0] ? "every word" : "empty");
    assert_refused(ix, GX_PATTERN_WILDCARD, "*", 1, "every word");
    assert_refused(ix, GX_PATTERN_WILDCARD, "?*", 2, "every word");
    assert_refused(ix, GX_PATTERN_WILDCARD, "**??*", 5, "every word");
    assert_refused(ix, GX_PATTERN_WILDCARD, "", 0, "empty");
    assert_refused(ix, GX_PATTERN_PREFIX, "", 0, "every word");
    assert_refused(ix, GX_PATTERN_FUZZY, "", 0, "empty");
    gx_index_close(ix);
}

static void patterns_that_are_wrong_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {{"(a", "character 1"},
                                           {"a)", "character 2"},
                                           {"[a", "character 1"},
                                           {"a**", "character 3"},
                                           {"*a", "character 1"},
                                           {"a|*", "character 3"},
                                           {"a{", "character 2"},
                                           {"a{2", "character 2"},
                                           {"a{3,2}", "character 2"},
                                           {"a{9999}", "1,000"},
                                           {"^a", "^ and $"},
                                           {"a$", "^ and $"},
                                           {"(?:a)", "look-around"},
                                           {"\\1", "back ref"},
                                           {"\\b", "class"},
                                           {"a\\", "backslash"},
                                           {"[b-a]", "comes before"},
                                           {"a\xff", "UTF-8"},
                                           {"[\xc3]", "UTF-8"},
                                           {"\u00e9(", "character 2"},
                                           {"((a{1000}){1000}){1000}", "too long"},
                                           {"((((){1000}){1000}){1000}){1000}", "too long"},
                                           {"(a|b)*a(a|b){13}", "too large"},
                                           {"[ab]*a[ab]{40}c", "too large"}};
    gx_index *ix = open_any(in_dir("a.gx"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        if (strcmp(wrong[i][1], "too large") != 0)
            assert_refused(ix, GX_PATTERN_REGEX, wrong[i][0], strlen(wrong[i][0]), wrong[i][1]);
        gx_expansion *e = NULL; /* ends soon, whatever it says */
        gx_index_expand(&e, ix, GX_PATTERN_REGEX, wrong[i][0], strlen(wrong[i][0]), NULL, NULL);
        gx_expansion_free(e);
    }
    assert_refused(ix, GX_PATTERN_WILDCARD, "a\xff*", 3, "UTF-8");
    assert_refused(ix, GX_PATTERN_PREFIX, "\xed\xa0\x80", 3, "UTF-8");
    assert_refused(ix, GX_PATTERN_FUZZY, "\xff", 1, "UTF-8");
    gx_index_close(ix);
}

static void long_patterns_are_refused_at_once(void **state)
{
    (void)state;
    static const char parts[][8] = {"a",  "(",    "a*",     "[",  "(a|",   "?",     "*",
                                    "a?", "(a)*", "{1000}", "\\", "[^a]*", "\u4e2d"};
    gx_index *ix = open_any(in_dir("a.gx"));
    char *text = malloc(900001);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
        size_t len = 0;
        for (uint32_t j = 0; j < 100000; ++j, len += strlen(parts[i]))
            strcpy(text + len, parts[i]);
        for (int kind = 0; kind < 4; ++kind) {
            gx_expansion *e;
            const gx_status st = gx_index_expand(&e, ix, (gx_pattern_kind)kind, text, len, NULL, NULL);
            assert_int_equal(st, GX_EUSAGE);
        }
    }
    free(text);
    gx_index_close(ix);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    gx_index *ix = open_any(in_dir("a.gx"));
    gx_expansion *e;
    gx_expand_options opt = GX_EXPAND_OPTIONS;
    opt.max_words = 0;
    assert_int_equal(gx_index_expand(&e, ix, GX_PATTERN_PREFIX, "a", 1, &opt, NULL), GX_EUSAGE);
    opt.max_words = GX_MAX_EXPANSIONS + 1;
    assert_int_equal(gx_index_expand(&e, ix, GX_PATTERN_PREFIX, "a", 1, &opt, NULL), GX_EUSAGE);
    opt.max_words = 1;
    opt.distance = 4;
    assert_int_equal(gx_index_expand(&e, ix, GX_PATTERN_FUZZY, "a", 1, &opt, NULL), GX_EUSAGE);
    opt.size = 3;
    assert_int_equal(gx_index_expand(&e, ix, GX_PATTERN_FUZZY, "a", 1, &opt, NULL), GX_EUSAGE);
    assert_int_equal(gx_index_expand(&e, ix, (gx_pattern_kind)4, "a", 1, NULL, NULL), GX_EUSAGE);
    assert_int_equal(gx_index_suggest(&e, ix, "a", 1, 0, NULL), GX_EUSAGE);
    gx_index_close(ix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_words_of_a_file),
        cmocka_unit_test(finds_the_words_of_a_collection),
        cmocka_unit_test(patterns_that_match_everything_are_refused),
        cmocka_unit_test(patterns_that_are_wrong_are_refused),
        cmocka_unit_test(long_patterns_are_refused_at_once),
        cmocka_unit_test(bad_options_are_refused),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
