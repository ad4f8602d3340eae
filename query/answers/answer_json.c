/* answer_json.c: the answer to a query as one JSON object. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/status.h"
#include "engine/text/seconds.h"

/* Add a literal: of a size that the compiler knows, where there is room. */
static inline void put(gx_text *t, const char *literal, size_t len)
{
    char *const to = t->bytes && t->cap - t->len >= len ? t->bytes + t->len : gx_text_room(t, len);
    if (to && !t->failed) {
        memcpy(to, literal, len);
        t->len += len;
    }
}
#define PUT(t, literal) put(t, literal, sizeof(literal) - 1)

static void put_fields(gx_text *t, const gx_explanation *e)
{
    const bool best = e->field_scoring == GX_FIELDS_BEST;
    if (e->n_fields)
        gx_text_add_format(t, ",\"field_scoring\":\"%s\"", gx_field_scoring_name(e->field_scoring));
    if (e->n_fields && best)
        gx_text_add_format(t, ",\"best_field\":\"%s\"", e->fields[e->best_field].name);
    for (uint32_t f = 0; f < e->n_fields; ++f) {
        const gx_explain_field *x = &e->fields[f];
        gx_text_add_string(t, f ? ",{\"name\":" : ",\"fields\":[{\"name\":");
        gx_text_add_json(t, x->name, strlen(x->name));
        gx_text_add_format(t, ",\"used\":%s,\"weight\":%.9g,\"b\":%.9g,\"len\":%u,\"avglen\":%.17g",
                           x->used ? "true" : "false", x->weight, x->b, x->len, x->avglen);
        if (best)
            gx_text_add_format(t, ",\"sum\":%u", x->sum);
        gx_text_add_string(t, "}");
    }
    gx_text_add_string(t, e->n_fields ? "]" : "");
}

static void put_explanation(gx_text *t, const gx_explanation *e)
{
    gx_text_add_format(t,
                       ",\"explain\":{\"scorer\":\"%s\",\"formula\":\"%s\",\"k1\":%.7g,\"b\":%.7g,\"n_docs\":%llu,"
                       "\"dl\":%u,\"avgdl\":%.17g,\"k\":%.9g,\"exponent\":%d,\"sum\":%u,\"terms\":[",
                       e->preset, e->formula, e->k1, e->b, (unsigned long long)e->n_docs, e->dl, e->avgdl, e->K,
                       e->exponent, e->sum);
    for (uint32_t i = 0; i < e->n_terms; ++i) {
        const gx_explain_term *term = &e->terms[i];
        gx_text_add_string(t, i ? ",{\"term\":" : "{\"term\":");
        gx_text_add_json(t, term->term, term->term_len);
        gx_text_add_format(
            t, ",\"qtf\":%.9g,\"df\":%llu,\"tf\":%u,\"idf\":%.17g,\"unit\":%.17g,\"weight\":%.17g,\"impact\":%u",
            term->qtf, (unsigned long long)term->df, term->tf, term->idf, term->unit, term->weight, term->impact);
        gx_text_add_string(t, ",\"score\":");
        gx_text_add_score(t, ldexp(term->impact, -e->exponent));
        for (uint32_t f = 0; f < e->n_fields; ++f)
            gx_text_add_format(t, "%s%u", f ? "," : ",\"field_tfs\":[", term->field_tfs[f]);
        for (uint32_t f = 0; f < e->n_fields && term->field_dfs; ++f)
            gx_text_add_format(t, "%s%llu", f ? "," : "],\"field_dfs\":[", (unsigned long long)term->field_dfs[f]);
        gx_text_add_string(t, e->n_fields ? "]}" : "}");
    }
    gx_text_add_string(t, "]");
    put_fields(t, e);
    if (e->prior.weight != 0) {
        char text[GX_PRIOR_BYTES];
        const gx_value x = {.real = e->prior_value};
        gx_prior_write(&e->prior, text);
        gx_text_add_string(t, ",\"prior\":{\"text\":");
        gx_text_add_json(t, text, strlen(text));
        gx_text_add_string(t, ",\"value\":");
        if (e->has_prior)
            gx_text_add_value(t, GX_ATTRIBUTE_FLOAT, &x);
        else
            gx_text_add_string(t, "null");
        gx_text_add_format(t, ",\"impact\":%llu,\"score\":", (unsigned long long)e->prior_impact);
        gx_text_add_score(t, ldexp((double)e->prior_impact, -e->exponent));
        gx_text_add_string(t, "}");
    }
    gx_text_add_string(t, "}");
}

/* A bound of a group; a float as a filter reads it. */
static void put_bound(gx_text *t, const char *name, const gx_facet_answer *f, int64_t number, double x)
{
    const gx_value v = {.real = x};
    gx_text_add_format(t, "\"%s\":", name);
    if (f->type == GX_ATTRIBUTE_FLOAT)
        gx_text_add_value(t, f->type, &v);
    else
        gx_text_add_format(t, "%lld", (long long)number);
    gx_text_add_string(t, ",");
}

/* The figures of a group, by attribute. */
static void put_figures(gx_text *t, const gx_facet_answer *f, uint32_t group)
{
    const gx_figures *figures;
    for (uint32_t i = 0; (figures = gx_facet_figures(f, group, i)); ++i) {
        gx_text_add_string(t, i ? "," : ",\"sums\":{");
        gx_text_add_json(t, figures->name, figures->name_len);
        gx_text_add_string(t, ":");
        gx_text_add_json_figures(t, figures);
    }
    gx_text_add_string(t, f->n_sums ? "}" : "");
}

static void put_facet(gx_text *t, const gx_facet_answer *f)
{
    const bool numbers = f->type != GX_ATTRIBUTE_KEYWORD && f->type != GX_ATTRIBUTE_KEYWORDS;
    gx_text_add_string(t, "{\"attribute\":");
    gx_text_add_json(t, f->name, f->name_len);
    gx_text_add_format(t, ",\"type\":\"%s\",\"present\":%llu,\"missing\":%llu,\"n_groups\":%llu,\"groups\":[",
                       gx_attribute_type_name(f->type), (unsigned long long)f->n_present,
                       (unsigned long long)f->n_missing, (unsigned long long)f->n_groups);
    for (uint32_t i = 0; i < f->n; ++i) {
        const gx_facet_group *g = &f->groups[i];
        gx_text_add_string(t, i ? ",{\"value\":" : "{\"value\":");
        gx_text_add_json(t, g->text, g->len);
        gx_text_add_string(t, ",");
        if (numbers) {
            put_bound(t, "from", f, g->first, g->low);
            put_bound(t, "to", f, g->last, g->high);
        }
        gx_text_add_format(t, "\"count\":%llu", (unsigned long long)g->count);
        put_figures(t, f, i);
        const gx_facet_answer *inner = gx_facet_inner(f, i);
        gx_text_add_string(t, inner ? ",\"facet\":" : "");
        if (inner)
            put_facet(t, inner);
        gx_text_add_string(t, "}");
    }
    gx_text_add_string(t, "]}");
}

static void put_facets(gx_text *t, const gx_answer *a)
{
    const gx_facet_answer *of_all = NULL; /* what has no name */
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_facets; ++i) {
        const gx_facet_answer *f = gx_facets_get(a->facets, i);
        if (f->name_len) {
            gx_text_add_string(t, n++ ? "," : ",\"facets\":[");
            put_facet(t, f);
        } else {
            of_all = f;
        }
    }
    gx_text_add_string(t, n ? "]" : "");
    if (of_all)
        put_figures(t, of_all, 0);
}

static void put_words(gx_text *t, const gx_expansion *e)
{
    for (uint32_t j = 0; j < e->n; ++j) {
        gx_text_add_string(t, j ? ",{\"term\":" : "{\"term\":");
        gx_text_add_json(t, e->words[j].word, e->words[j].len);
        gx_text_add_format(t, ",\"df\":%llu,\"distance\":%u}", (unsigned long long)e->words[j].df,
                           e->words[j].distance);
    }
}

/* What may be meant by the n unknown terms. */
static void put_suggestions(gx_text *t, const gx_answer *a, uint32_t n)
{
    uint32_t n_shown = 0;
    for (uint32_t i = 0; i < n && i < 16 && a->n_suggested; ++i) {
        const char *term = gx_highlighter_unknown(a->marks, i);
        gx_expansion *e;
        if (gx_highlighter_suggest(&e, a->marks, i, a->n_suggested, NULL) != GX_OK)
            continue;
        if (e->n) {
            gx_text_add_string(t, n_shown++ ? ",{\"for\":" : ",\"suggestions\":[{\"for\":");
            gx_text_add_json(t, term, strlen(term));
            gx_text_add_string(t, ",\"words\":[");
            put_words(t, e);
            gx_text_add_string(t, "]}");
        }
        gx_expansion_free(e);
    }
    gx_text_add_string(t, n_shown ? "]" : "");
}

static void put_unknown(gx_text *t, const gx_answer *a)
{
    const uint32_t n = a->marks ? gx_highlighter_n_unknown(a->marks) : 0;
    for (uint32_t i = 0; i < n; ++i) {
        const char *term = gx_highlighter_unknown(a->marks, i);
        gx_text_add_string(t, i ? "," : ",\"unknown\":[");
        gx_text_add_json(t, term, strlen(term));
    }
    gx_text_add_string(t, n ? "]" : "");
    put_suggestions(t, a, n);
}

static void put_patterns(gx_text *t, const gx_answer *a)
{
    const uint32_t n = a->marks ? gx_highlighter_n_patterns(a->marks) : 0;
    for (uint32_t i = 0; i < n; ++i) {
        gx_text pattern = {0};
        const gx_expansion *e = gx_highlighter_pattern(a->marks, i, &pattern);
        gx_text_add_string(t, i ? ",{\"pattern\":" : ",\"patterns\":[{\"pattern\":");
        gx_text_add_json(t, pattern.bytes ? pattern.bytes : "", pattern.len);
        gx_text_add_format(t, ",\"matched\":%llu,\"words\":[", (unsigned long long)e->n_matched);
        put_words(t, e);
        gx_text_add_string(t, "]}");
        free(pattern.bytes);
    }
    gx_text_add_string(t, n ? "]" : "");
}

static void put_expanded(gx_text *t, const gx_answer *a)
{
    for (uint32_t i = 0; i < a->n_expanded; ++i) {
        gx_text_add_string(t, i ? ",{\"term\":" : ",\"expanded\":[{\"term\":");
        gx_text_add_json(t, a->expanded[i].term, a->expanded[i].len);
        gx_text_add_string(t, ",\"weight\":");
        gx_text_add_score(t, a->expanded[i].weight);
        gx_text_add_string(t, "}");
    }
    gx_text_add_string(t, a->n_expanded ? "]" : "");
}

static void put_head(gx_text *t, const gx_answer *a)
{
    PUT(t, "{\"schema\":1,\"qid\":");
    gx_text_add_json(t, a->qid, a->qid_len);
    PUT(t, ",\"query\":");
    gx_text_add_json(t, a->query, a->query_len);
    PUT(t, ",\"engine\":\"");
    gx_text_add_string(t, a->engine);
    PUT(t, "\",\"seconds\":");
    gx_text_add_seconds(t, a->seconds);
    if (a->counted)
        gx_text_add_format(t, ",\"matches\":%llu", (unsigned long long)a->n_matches);
    if (a->cursor) {
        gx_text_add_string(t, ",\"cursor\":");
        gx_text_add_json(t, a->cursor, a->cursor_len);
    }
    gx_text_add_string(t, a->moved ? ",\"moved\":true" : "");
    if (a->groups) {
        gx_attribute_info by = {.size = sizeof by};
        (void)gx_index_get_attribute(a->ix, a->groups->attribute, &by);
        gx_text_add_string(t, ",\"collapse\":");
        gx_text_add_json(t, by.name, by.name_len);
    }
    put_facets(t, a);
    put_unknown(t, a);
    put_patterns(t, a);
    put_expanded(t, a);
}

static bool has_texts(const gx_index *ix)
{
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_quick_stats(ix, &stats);
    return stats.texts;
}

gx_status gx_answer_snippet(const gx_answer *a, uint64_t docid, char **text, size_t *cap, size_t *len,
                            gx_snippet *snippet, gx_error *err)
{
    *len = 0;
    if (!a->snippets || !a->marks || !has_texts(a->ix))
        return GX_OK;
    const gx_status st = gx_index_doc_text(a->ix, docid, text, cap, len, err);
    return st ? st : gx_highlighter_snippet(a->marks, *text, *len, GX_SNIPPET_WORDS, snippet, err);
}

/* What a hit's members are made with: the stored text of the last one. */
typedef struct hit_text {
    char *bytes;
    size_t cap, len;
    gx_values values;
} hit_text;

/* The number of characters of text[begin, end), invalid bytes counted one each, as gx_text_add_json writes them. */
static size_t count_characters(const char *text, size_t begin, size_t end)
{
    size_t n = 0;
    for (size_t i = begin; i < end; ++n) {
        const size_t bytes = gx_utf8_length(text + i, end - i);
        i += bytes ? bytes : 1;
    }
    return n;
}

/* The marked words of a snippet: [begin, end) in its characters. */
static void put_marks(gx_text *t, const char *text, const gx_snippet *s)
{
    size_t at = s->begin, characters = 0;
    gx_text_add_string(t, ",\"marks\":[");
    for (uint32_t i = 0; i < s->n_marks; ++i) {
        characters += count_characters(text, at, s->marks[i].begin);
        gx_text_add_string(t, i ? ",[" : "[");
        gx_text_add_number(t, characters);
        characters += count_characters(text, s->marks[i].begin, s->marks[i].end);
        at = s->marks[i].end;
        gx_text_add_string(t, ",");
        gx_text_add_number(t, characters);
        gx_text_add_string(t, "]");
    }
    gx_text_add_string(t, "]");
}

/* The snippet of a document, and its text, where they are shown. */
static gx_status put_texts(gx_text *t, const gx_answer *a, uint64_t docid, hit_text *text, gx_error *err)
{
    gx_snippet snippet;
    gx_status st = gx_answer_snippet(a, docid, &text->bytes, &text->cap, &text->len, &snippet, err);
    if (st == GX_OK && text->len) {
        gx_text_add_string(t, ",\"snippet\":");
        gx_text_add_json(t, text->bytes + snippet.begin, snippet.end - snippet.begin);
        if (a->marked)
            put_marks(t, text->bytes, &snippet);
    }
    if (st || !a->texts || !has_texts(a->ix))
        return st;
    st = text->len ? GX_OK : gx_index_doc_text(a->ix, docid, &text->bytes, &text->cap, &text->len, err);
    gx_text_add_string(t, ",\"text\":");
    gx_text_add_json(t, text->bytes, text->len);
    return st;
}

/* The members of a document that is found, from docid on. */
static gx_status put_document(gx_text *t, const gx_answer *a, uint64_t docid, double score, hit_text *text,
                              gx_error *err)
{
    size_t len;
    const char *id = gx_index_doc_id(a->ix, docid, &len);
    PUT(t, "\"docid\":");
    gx_text_add_number(t, docid);
    PUT(t, ",\"id\":");
    gx_text_add_json(t, id, len);
    PUT(t, ",\"score\":");
    gx_text_add_score(t, score);
    const char *title = gx_index_doc_title(a->ix, docid, &len);
    if (len) {
        PUT(t, ",\"title\":");
        gx_text_add_json(t, title, len);
    }
    const gx_status st = put_texts(t, a, docid, text, err);
    if (st || !a->n_shown)
        return st;
    PUT(t, ",\"attributes\":");
    return gx_text_add_attributes(t, a->ix, docid, a->shown, a->n_shown, &text->values, err);
}

/* ,"group":{"value":"acme","matches":12,"hits":[{"docid":...}]}; hits where more than one document of a group was
 * asked for. */
static gx_status put_group(gx_text *t, const gx_answer *a, uint32_t i, hit_text *text, gx_error *err)
{
    const gx_group *g = &a->groups->groups[i];
    gx_status st = GX_OK;
    gx_text_add_string(t, ",\"group\":{\"value\":");
    if (g->missing)
        gx_text_add_string(t, "null");
    else
        gx_text_add_json_value(t, a->groups->type, &g->value);
    gx_text_add_format(t, ",\"matches\":%llu", (unsigned long long)g->n_matches);
    for (uint32_t j = 0; a->groups->most > 1 && j < g->n && st == GX_OK; ++j) {
        gx_text_add_string(t, j ? ",{" : ",\"hits\":[{");
        st = put_document(t, a, g->docids[j], g->scores[j], text, err);
        gx_text_add_string(t, "}");
    }
    gx_text_add_string(t, a->groups->most > 1 ? "]}" : "}");
    return st;
}

static gx_status put_hit(gx_text *t, const gx_answer *a, uint32_t i, hit_text *text, gx_error *err)
{
    if (i)
        PUT(t, ",");
    PUT(t, "{\"rank\":");
    gx_text_add_number(t, a->first + i + 1);
    PUT(t, ",");
    gx_status st = put_document(t, a, a->docids[i], a->scores[i], text, err);
    if (st == GX_OK && a->groups)
        st = put_group(t, a, i, text, err);
    if (a->explanations)
        put_explanation(t, &a->explanations[i]);
    PUT(t, "}");
    return st;
}

gx_status gx_answer_write_json(gx_text *t, const gx_answer *a, gx_error *err)
{
    hit_text text = {0};
    gx_status st = GX_OK;
    put_head(t, a);
    gx_text_add_string(t, ",\"hits\":[");
    for (uint32_t i = 0; i < a->n_hits && st == GX_OK; ++i)
        st = put_hit(t, a, i, &text, err);
    gx_text_add_string(t, "]}");
    free(text.bytes);
    gx_values_free(&text.values);
    if (st == GX_OK && t->failed)
        return gx_fail(err, GX_ENOMEM, "no memory for an answer of %u results", a->n_hits);
    return st;
}
