/* suggest.c: GET /v1/{index}/suggest: words of an index that complete a prefix, or that may be meant by a word that it
 * lacks. Their dfs count all documents, so that a token with a filter gets none. */
#include <string.h>

#include "tools/serve/protocols.h"

bool suggest_is_allowed(exchange *x)
{
    return !x->who->filter ||
           fault_set(&x->fault, 403, "words are suggested by all documents, which a token with a filter does not see");
}

static gx_status find_words(exchange *x, const char *word, const char *prefix, uint64_t n, gx_expansion **out,
                            gx_error *err)
{
    gx_expand_options opt = GX_EXPAND_OPTIONS;
    opt.max_words = (uint32_t)n;
    return word ? gx_index_suggest(out, x->at->ix, word, strlen(word), (uint32_t)n, err)
                : gx_index_expand(out, x->at->ix, GX_PATTERN_PREFIX, prefix, strlen(prefix), &opt, err);
}

void suggest_words(exchange *x)
{
    static const char *const names[] = {"prefix", "like", "n", NULL};
    const char *prefix = exchange_argument(x, "prefix"), *like = exchange_argument(x, "like");
    uint64_t n = 10;
    gx_error err = {0};
    gx_expansion *e = NULL;
    gx_text *t = &x->reply;
    if (!exchange_open_index(x, x->index) || !exchange_check_arguments(x, names) ||
        !exchange_count_argument(x, "n", 1, 1000, &n) || !suggest_is_allowed(x))
        return;
    if (!prefix == !like) {
        fault_set(&x->fault, 400, "one of the parameters 'prefix' and 'like' is needed");
        return;
    }
    const gx_status st = find_words(x, like, prefix, n, &e, &err);
    if (st != GX_OK) {
        fault_set(&x->fault, http_status(st), "%s", err.text);
        snprintf(x->fault.member, sizeof x->fault.member, "%s", like ? "like" : "prefix");
        return;
    }
    gx_text_add_string(t, "{\"schema\":1,\"words\":[");
    for (uint32_t i = 0; i < e->n; ++i) {
        gx_text_add_string(t, i ? ",{\"term\":" : "{\"term\":");
        gx_text_add_json(t, e->words[i].word, e->words[i].len);
        gx_text_add_format(t, ",\"df\":%llu,\"distance\":%u}", (unsigned long long)e->words[i].df,
                           e->words[i].distance);
    }
    gx_text_add_format(t, "],\"matched\":%llu}\n", (unsigned long long)e->n_matched);
    gx_expansion_free(e);
    exchange_reply(x, 200);
}
