#include "tools/serve/access.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/ascii.h"

typedef struct token {
    char *secret;
    size_t len;
    identity who;
} token;

/* One reading of the file. A later one does not free it: requests may still hold its identities. */
typedef struct token_list {
    token *all;
    size_t n;
    struct token_list *before;
} token_list;

struct tokens {
    char *path;
    _Atomic(token_list *) now;
};

/* ---- the file ---- */

static bool read_text(reader *r, const json_t *value, const char **out)
{
    const char *text;
    size_t len;
    if (!reader_string(r, value, &text, &len))
        return false;
    if (len == 0)
        return reader_fail(r, "it is empty");
    *out = strdup(text);
    return *out || reader_fail(r, "no memory");
}

static bool read_name(reader *r, const json_t *value, void *to)
{
    return read_text(r, value, &((token *)to)->who.name);
}

static bool read_secret(reader *r, const json_t *value, void *to)
{
    token *t = to;
    const char *secret = NULL;
    if (!read_text(r, value, &secret))
        return false;
    t->secret = (char *)secret;
    t->len = strlen(secret);
    return t->len >= 16 || reader_fail(r, "a token has at least 16 characters; make one by 'openssl rand -hex 32'");
}

static bool read_filter(reader *r, const json_t *value, void *to)
{
    return read_text(r, value, &((token *)to)->who.filter);
}

static bool read_level(reader *r, const json_t *value, void *to)
{
    const char *text;
    size_t len;
    if (!reader_string(r, value, &text, &len))
        return false;
    const int i = gx_word_index("read|write", text, len);
    ((token *)to)->who.level = i == 1 ? ACCESS_WRITE : ACCESS_READ;
    return i >= 0 || reader_fail(r, "'%.40s' is neither read nor write", text);
}

static bool read_index(reader *r, const json_t *value, void *to)
{
    token *t = to;
    const char *name = NULL;
    const char **names = realloc((void *)t->who.indexes, (t->who.n_indexes + 1) * sizeof *names);
    if (names)
        t->who.indexes = names;
    if (!names || !read_text(r, value, &name))
        return false;
    names[t->who.n_indexes++] = name;
    return true;
}

static bool read_indexes(reader *r, const json_t *value, void *to)
{
    return reader_array(r, value, read_index, to) &&
           (((token *)to)->who.n_indexes || reader_fail(r, "it is empty; leave it out for all indexes"));
}

static bool read_token(reader *r, const json_t *value, void *to)
{
    static const member members[] = {{"name", read_name},
                                     {"token", read_secret},
                                     {"indexes", read_indexes},
                                     {"access", read_level},
                                     {"filter", read_filter}};
    token_list *l = to;
    token *all = realloc(l->all, (l->n + 1) * sizeof *all);
    if (!all)
        return reader_fail(r, "no memory");
    l->all = all;
    token *t = &all[l->n++];
    *t = (token){.who = {.level = ACCESS_READ}};
    if (!reader_object(r, value, members, sizeof members / sizeof *members, t))
        return false;
    if (!t->secret || !t->who.name)
        return reader_fail(r, "a token has 'name' and 'token'");
    if (t->who.level == ACCESS_WRITE && t->who.filter)
        return reader_fail(r, "a token with a filter cannot write: what it wrote would not be held to the filter");
    for (size_t i = 0; i + 1 < l->n; ++i)
        if (strcmp(all[i].secret, t->secret) == 0)
            return reader_fail(r, "the token is there twice");
    return true;
}

static bool read_tokens(reader *r, const json_t *value, void *to)
{
    return reader_array(r, value, read_token, to);
}

static void free_list(token_list *l)
{
    for (size_t i = 0; l && i < l->n; ++i) {
        token *t = &l->all[i];
        for (uint32_t k = 0; k < t->who.n_indexes; ++k)
            free((void *)t->who.indexes[k]);
        free((void *)t->who.indexes);
        free((void *)t->who.name);
        free((void *)t->who.filter);
        free(t->secret);
    }
    if (l)
        free(l->all);
    free(l);
}

static char *read_file(const char *path, size_t *len)
{
    enum { MOST = 16 << 20 };
    FILE *f = fopen(path, "rb");
    char *bytes = f ? malloc(MOST) : NULL;
    *len = bytes ? fread(bytes, 1, MOST, f) : 0;
    if (bytes && ferror(f)) {
        free(bytes);
        bytes = NULL;
    }
    if (f)
        fclose(f);
    return bytes;
}

static gx_status read_list(token_list **out, const char *path, gx_error *err)
{
    static const member members[] = {{"tokens", read_tokens}};
    fault f = {0};
    reader r = {0};
    size_t len;
    token_list *l = calloc(1, sizeof *l);
    char *bytes = read_file(path, &len);
    gx_status st = GX_OK;
    if (!l || !bytes) {
        st = errno == ENOENT ? GX_ENOTFOUND : GX_EIO;
        snprintf(err->text, sizeof err->text, "%s: cannot read the file of tokens: %s", path, strerror(errno));
    } else if (!reader_open(&r, &f, bytes, len, 8) || !reader_object(&r, r.root, members, 1, l)) {
        st = GX_EINPUT;
        snprintf(err->text, sizeof err->text, "%s:%u:%u: %s%s%s", path, f.line, f.column, f.member,
                 f.member[0] ? ": " : "", f.text);
    }
    reader_close(&r);
    free(bytes);
    err->status = st;
    if (st != GX_OK)
        free_list(l);
    else
        *out = l;
    return st;
}

gx_status tokens_open(tokens **out, const char *path, gx_error *err)
{
    tokens *t = calloc(1, sizeof *t);
    token_list *l = NULL;
    if (!t || !(t->path = strdup(path))) {
        free(t);
        *err = (gx_error){GX_ENOMEM, "no memory for tokens"};
        return GX_ENOMEM;
    }
    const gx_status st = read_list(&l, path, err);
    atomic_init(&t->now, l);
    if (st != GX_OK)
        tokens_close(t);
    else
        *out = t;
    return st;
}

gx_status tokens_reload(tokens *t, gx_error *err)
{
    token_list *l = NULL;
    const gx_status st = read_list(&l, t->path, err);
    if (st == GX_OK) {
        l->before = atomic_load(&t->now);
        atomic_store(&t->now, l);
    }
    return st;
}

void tokens_close(tokens *t)
{
    if (!t)
        return;
    for (token_list *l = atomic_load(&t->now), *before; l; l = before) {
        before = l->before;
        free_list(l);
    }
    free(t->path);
    free(t);
}

/* ---- tokens of requests ---- */

/* Takes as long for a wrong secret as for the right one. */
static bool is_equal(const token *t, const char *secret, size_t len)
{
    unsigned char differ = t->len != len;
    for (size_t i = 0; i < len; ++i)
        differ |= (unsigned char)(t->secret[i % t->len] ^ secret[i]);
    return differ == 0;
}

static const identity *find_identity(tokens *t, const char *secret, size_t len)
{
    const token_list *l = atomic_load(&t->now);
    const identity *found = NULL;
    for (size_t i = 0; i < l->n; ++i)
        if (is_equal(&l->all[i], secret, len))
            found = &l->all[i].who;
    return found;
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decode base64 into to[size]; the number of bytes, at most size. */
static size_t decode_base64(const char *text, char *to, size_t size)
{
    uint32_t bits = 0, n_bits = 0;
    size_t n = 0;
    for (; *text && *text != '=' && n < size; ++text) {
        const int value = base64_value(*text);
        if (value < 0)
            return 0;
        bits = bits << 6 | (uint32_t)value;
        n_bits += 6;
        if (n_bits >= 8)
            to[n++] = (char)(bits >> (n_bits -= 8));
    }
    return n;
}

/* "Bearer TOKEN", "ApiKey TOKEN", or "Basic ..." whose password is the token. */
static const identity *identify(exchange *x, const char *authorization)
{
    tokens *t = x->sv->tokens;
    if (gx_same_start(authorization, "Bearer ", 7) || gx_same_start(authorization, "ApiKey ", 7))
        return find_identity(t, authorization + 7, strlen(authorization + 7));
    if (!gx_same_start(authorization, "Basic ", 6))
        return NULL;
    char pair[512];
    const size_t len = decode_base64(authorization + 6, pair, sizeof pair);
    const char *colon = memchr(pair, ':', len);
    return colon ? find_identity(t, colon + 1, (size_t)(pair + len - colon) - 1) : NULL;
}

static void check_token(exchange *x)
{
    x->who = &x->sv->anybody;
    if (!x->sv->tokens || x->route->level == ACCESS_NONE)
        return;
    const char *authorization = exchange_header(x, "Authorization");
    x->who = authorization ? identify(x, authorization) : NULL;
    if (!x->who)
        fault_set(&x->fault, 401,
                  authorization ? "the token is not known" : "a token is needed: Authorization: Bearer ...");
    else if (x->who->level < x->route->level)
        fault_set(&x->fault, 403, "the token may read, and not write");
}

bool access_to(const identity *who, const char *index)
{
    for (uint32_t i = 0; i < who->n_indexes; ++i)
        if (strcmp(who->indexes[i], index) == 0)
            return true;
    return who->n_indexes == 0;
}

/* ---- names of the server ---- */

/* The host's name without its port; false: it is too long. */
static bool host_name(const char *host, char name[256])
{
    const size_t len = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    if (len >= 256 || len > strlen(host))
        return false;
    memcpy(name, host, len);
    name[len] = 0;
    return true;
}

static bool is_among(const char *name, const char *const *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i)
        if (gx_same_text(name, names[i]))
            return true;
    return false;
}

/* A page of another site must not reach a server on this machine by a name of its own. */
static bool is_own_host(const server *sv, const char *host)
{
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]", ""};
    char name[256];
    if (!host_name(host, name))
        return false;
    if (is_among(name, sv->hosts, sv->n_hosts) || is_among(host, sv->hosts, sv->n_hosts))
        return true;
    return sv->loopback ? is_among(name, own, sizeof own / sizeof *own) : sv->n_hosts == 0;
}

/* An Origin is the server itself, or one that the command line names. */
static bool is_own_origin(const server *sv, const char *origin, const char *host)
{
    const char *slashes = strstr(origin, "://");
    if (is_among(origin, sv->origins, sv->n_origins))
        return true;
    return slashes && host && gx_same_text(slashes + 3, host);
}

void access_check(exchange *x)
{
    const char *host = exchange_header(x, "Host"), *origin = exchange_header(x, "Origin");
    if (x->connection && host && !is_own_host(x->sv, host)) {
        fault_set(&x->fault, 403, "the server is not called '%.100s'; --allow-host adds a name", host);
        return;
    }
    if (origin && !is_own_origin(x->sv, origin, host)) {
        fault_set(&x->fault, 403, "pages of '%.100s' may not ask this server; --allow-origin adds one", origin);
        return;
    }
    if (origin && is_among(origin, x->sv->origins, x->sv->n_origins))
        exchange_add_header(x, "Access-Control-Allow-Origin", "%.140s", origin);
    check_token(x);
}
