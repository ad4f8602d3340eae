#include "tools/cli/output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli.h"
#include "tools/cli/progress.h"

enum { LEFT = 6 };

/* ---- bytes ---- */

void out_put_clean(FILE *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        const size_t n = gx_utf8_length(text + i, len - i);
        if (n == 0 || gx_utf8_turns(text + i, n))
            fputs("\xef\xbf\xbd", out);
        else if (gx_utf8_is_control(text + i, n))
            putc(' ', out);
        else
            fwrite(text + i, 1, n, out);
        i += n ? n : 1;
    }
}

/* Write a text that the library has made, and free it. */
static void put_text(FILE *out, gx_text *t)
{
    if (t->failed)
        exit(cli_fail(GX_ENOMEM, "no memory for the output"));
    fwrite(t->bytes, 1, t->len, out);
    free(t->bytes);
}

void out_put_json(FILE *out, const char *text, size_t len)
{
    gx_text t = {0};
    gx_text_add_json(&t, text, len);
    put_text(out, &t);
}

/* Print a field of a format whose fields end at white space; blanks would split it. */
static void put_word(FILE *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; ++i)
        putc((unsigned char)text[i] <= ' ' ? '_' : text[i], out);
}

/* Print a field that ends at a tab or at a line's end. */
static void put_field(FILE *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; ++i)
        putc(text[i] == '\t' || text[i] == '\n' || text[i] == '\r' ? ' ' : text[i], out);
}

static bool is_number(const char *text, size_t len)
{
    const size_t sign = len > 0 && (text[0] == '-' || text[0] == '+');
    size_t i = sign;
    while (i < len && strchr("0123456789.", text[i]))
        ++i;
    return i == len && i > sign;
}

/* Whether a spreadsheet would take the text for a formula. */
static bool is_formula(const char *text, size_t len)
{
    static const char *const wide[] = {"\uff1d", "\uff0b", "\uff0d", "\uff20"}; /* = + - @ in full width */
    for (int i = 0; i < 4; ++i)
        if (len >= 3 && memcmp(text, wide[i], 3) == 0)
            return true;
    return len > 0 && text[0] && strchr("=+-@\t\r", text[0]) && !is_number(text, len);
}

/* A character of a field, as the bytes text[0, n): control characters become blanks, but for those of lines. */
static void put_csv_character(FILE *out, const char *text, size_t n)
{
    if (n == 1 && *text == '"')
        fputs("\"\"", out);
    else if (n && gx_utf8_is_control(text, n) && !(n == 1 && *text && strchr("\t\r\n", *text)))
        putc(' ', out);
    else
        fwrite(text, 1, n ? n : 1, out);
}

static void put_csv(FILE *out, const char *text, size_t len)
{
    const bool formula = is_formula(text, len);
    bool plain = !formula;
    for (size_t i = 0; i < len && plain; ++i)
        plain = text[i] == '\t' || !(strchr(",\"", text[i]) || gx_utf8_is_control(text + i, 1) ||
                                     (i + 1 < len && gx_utf8_is_control(text + i, 2)));
    if (plain) {
        if (len)
            fwrite(text, 1, len, out);
        return;
    }
    fputs(formula ? "\"'" : "\"", out);
    for (size_t i = 0, n; i < len; i += n ? n : 1)
        put_csv_character(out, text + i, n = gx_utf8_length(text + i, len - i));
    putc('"', out);
}

const char *out_score(char text[32], double score)
{
    snprintf(text, 32, "%.11g", score);
    return text;
}

/* ---- formats for programs ---- */

static unsigned long long rank_of(const out_answer *a, uint32_t i)
{
    return (unsigned long long)a->found.first + i + 1;
}

static void put_trec(FILE *out, const out_answer *a)
{
    char score[32];
    for (uint32_t i = 0; i < a->found.n_hits; ++i) {
        size_t len;
        const char *id = gx_index_doc_id(a->found.ix, a->found.docids[i], &len);
        put_word(out, a->found.qid, a->found.qid_len);
        fputs(" Q0 ", out);
        put_word(out, id, len);
        fprintf(out, " %llu %s ", rank_of(a, i), out_score(score, a->found.scores[i]));
        put_word(out, a->tag, strlen(a->tag));
        putc('\n', out);
    }
}

static void put_tsv(FILE *out, const out_answer *a)
{
    for (uint32_t i = 0; i < a->found.n_hits; ++i) {
        size_t len;
        const char *id = gx_index_doc_id(a->found.ix, a->found.docids[i], &len);
        put_field(out, a->found.qid, a->found.qid_len);
        putc('\t', out);
        put_field(out, id, len);
        fprintf(out, "\t%llu\n", rank_of(a, i));
    }
}

/* What an index has of an attribute: of this, its name and type. */
static gx_attribute_info attribute_info(const gx_index *ix, uint32_t number)
{
    gx_attribute_info info = {.size = sizeof info};
    (void)gx_index_get_attribute(ix, number, &info);
    return info;
}

/* The values of a document as text, with `between` between them. *t is overwritten. */
static gx_status values_text(gx_text *t, gx_values *v, const gx_index *ix, uint32_t attribute, uint64_t docid,
                             const char *between, gx_error *err)
{
    t->len = 0;
    const gx_status st = gx_index_values(ix, attribute, &docid, 1, v, err);
    for (uint64_t i = 0; st == GX_OK && i < v->starts[1]; ++i) {
        gx_text_add_string(t, i ? between : "");
        gx_text_add_value(t, v->type, &v->values[i]);
    }
    return st;
}

/* The values that csv shows of one document, a field an attribute. */
static gx_status put_csv_values(FILE *out, const out_answer *a, uint64_t docid, gx_error *err)
{
    gx_text t = {0};
    gx_values v = {0};
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < a->found.n_shown && st == GX_OK; ++i) {
        st = values_text(&t, &v, a->found.ix, a->found.shown[i], docid, ",", err);
        putc(',', out);
        put_csv(out, t.bytes, t.len);
    }
    free(t.bytes);
    gx_values_free(&v);
    return st;
}

/* A group's value as text; *t is overwritten. */
static void group_text(gx_text *t, const gx_groups *groups, const gx_group *g)
{
    t->len = 0;
    if (!g->missing)
        gx_text_add_value(t, groups->type, &g->value);
}

/* The row of a document of the i-th result. */
static gx_status put_csv_row(FILE *out, const out_answer *a, uint32_t i, uint64_t docid, double score_of, gx_text *t,
                             gx_error *err)
{
    char score[32];
    size_t id_len, title_len;
    const char *id = gx_index_doc_id(a->found.ix, docid, &id_len);
    const char *title = gx_index_doc_title(a->found.ix, docid, &title_len);
    put_csv(out, a->found.qid, a->found.qid_len);
    fprintf(out, ",%llu,", rank_of(a, i));
    put_csv(out, id, id_len);
    fprintf(out, ",%s,", out_score(score, score_of));
    put_csv(out, title, title_len);
    const gx_status st = put_csv_values(out, a, docid, err);
    if (a->found.groups) {
        const gx_group *g = &a->found.groups->groups[i];
        group_text(t, a->found.groups, g);
        putc(',', out);
        put_csv(out, t->bytes, t->len);
        fprintf(out, ",%llu", (unsigned long long)g->n_matches);
    }
    putc('\n', out);
    return st;
}

static gx_status put_csv_answer(FILE *out, const out_answer *a, gx_error *err)
{
    const gx_groups *groups = a->found.groups;
    gx_text t = {0};
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < a->found.n_hits && st == GX_OK; ++i) {
        st = put_csv_row(out, a, i, a->found.docids[i], a->found.scores[i], &t, err);
        for (uint32_t j = 1; groups && j < groups->groups[i].n && st == GX_OK; ++j)
            st = put_csv_row(out, a, i, groups->groups[i].docids[j], groups->groups[i].scores[j], &t, err);
    }
    free(t.bytes);
    return st;
}

static gx_status put_jsonl(FILE *out, const out_answer *a, gx_error *err)
{
    gx_text t = {0};
    const gx_status st = gx_answer_write_json(&t, &a->found, err);
    if (st) {
        free(t.bytes);
        return st;
    }
    gx_text_add(&t, "\n", 1);
    put_text(out, &t);
    return GX_OK;
}

/* ---- for people ---- */

/* Print a text with `on` before each run of marked bytes and `off` behind it. */
typedef struct marked_text {
    const char *text;
    const gx_snippet *marks;
    const char *on, *off;
    uint32_t m; /* the first mark that may lie in what comes next */
} marked_text;

/* Bytes [i, end) of the text. */
static void put_marked(FILE *out, marked_text *t, size_t i, size_t end)
{
    const gx_snippet *const s = t->marks;
    while (i < end) { /* up to the next change between marked and not */
        while (t->m < s->n_marks && s->marks[t->m].end <= i)
            ++t->m;
        const bool marked = t->m < s->n_marks && s->marks[t->m].begin <= i;
        size_t stop = end;
        if (t->m < s->n_marks)
            stop = marked ? s->marks[t->m].end : s->marks[t->m].begin;
        if (stop > end)
            stop = end;
        fputs(marked ? t->on : "", out);
        out_put_clean(out, t->text + i, stop - i);
        fputs(marked ? t->off : "", out);
        i = stop;
    }
}

/* The columns that text for people takes at most. */
static size_t text_width(FILE *out)
{
    return cli_columns(out) < 100 ? cli_columns(out) : 100;
}

static size_t count_characters(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; ++i)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

/* Bytes [i, end) of the text from a column on: white space made one blank, words that go past the width on a new
 * line. `style` holds for all of it, up to each line's end. */
static void put_wrapped(FILE *out, marked_text *t, size_t i, size_t end, size_t column, const char *style)
{
    const size_t width = text_width(out);
    const char *plain = *style ? cli_paint(out, CLI_PLAIN) : "";
    bool blank = false;
    fputs(style, out);
    while (i < end) {
        size_t stop = i;
        while (stop < end && t->text[stop] && !strchr(" \t\n\v\f\r", t->text[stop]))
            ++stop;
        if (stop == i) { /* white space, or a NUL */
            blank = true;
            ++i;
            continue;
        }
        const size_t shown = count_characters(t->text + i, stop - i);
        if (column > LEFT && column + blank + shown > width) {
            fprintf(out, "%s\n%*s%s", plain, LEFT, "", style);
            column = LEFT;
        } else if (column > LEFT && blank) {
            putc(' ', out);
            ++column;
        }
        column += shown;
        blank = false;
        put_marked(out, t, i, stop);
        i = stop;
    }
    fputs(plain, out);
}

static void put_snippet(FILE *out, const char *text, size_t len, const gx_snippet *s)
{
    marked_text marked = {text, s, cli_paint(out, CLI_BOLD), cli_paint(out, CLI_PLAIN), 0};
    fprintf(out, "%*s%s", LEFT, "", s->begin > 0 ? "... " : "");
    put_wrapped(out, &marked, s->begin, s->end, s->begin > 0 ? LEFT + 4 : LEFT, "");
    fputs(s->end < len ? " ...\n" : "\n", out);
}

/* The formula of a view of fields, and a line for each. */
static void put_fields(FILE *out, const gx_explanation *e, const char *indent)
{
    static const char *const formulas[GX_N_FIELD_SCORINGS] = {
        "sum over terms of idf%s * tf' / (tf' + k1), tf' = sum over fields of weight * tf / norm",
        "the greatest over fields of weight * (sum over terms of idf%s * x / (x + k1)), x = tf / norm",
        "sum over fields of weight * (sum over terms of idf%s * x / (x + k1)), x = tf / norm"};
    char formula[160], score[32];
    snprintf(formula, sizeof formula, formulas[e->field_scoring], e->times_k1 ? " * (k1 + 1)" : "");
    fprintf(out, "%s%s by fields (%s): score = %s\n", indent, e->preset, gx_field_scoring_name(e->field_scoring),
            formula);
    fprintf(out, "%snorm = 1 - b + b * len / avglen, N = %llu, k1 = %.6g\n", indent, (unsigned long long)e->n_docs,
            e->k1);
    for (uint32_t f = 0; f < e->n_fields; ++f) {
        const gx_explain_field *x = &e->fields[f];
        if (!x->used)
            continue;
        fprintf(out, "%s  %s: weight = %.7g, b = %.6g, len = %u, avglen = %.6g", indent, x->name, x->weight, x->b,
                x->len, x->avglen);
        if (e->field_scoring == GX_FIELDS_BEST)
            fprintf(out, ", score = %s%s", out_score(score, ldexp(x->sum, -e->exponent)),
                    f == e->best_field ? ", the greatest" : "");
        fputs("\n", out);
    }
}

/* ", title tf = 1, text tf = 3: 2.1 * 0.65 = 1.365 (impact 1234)" */
static void put_field_term(FILE *out, const gx_explanation *e, const gx_explain_term *t)
{
    const bool best = e->field_scoring == GX_FIELDS_BEST;
    char score[32];
    for (uint32_t f = 0; f < e->n_fields; ++f) {
        if (!t->field_tfs[f] || (best && f != e->best_field))
            continue;
        fprintf(out, ", %s tf = %u", e->fields[f].name, t->field_tfs[f]);
        if (t->field_dfs)
            fprintf(out, " (df = %llu)", (unsigned long long)t->field_dfs[f]);
    }
    const double unit = t->field_dfs ? 0x1p-23 : t->unit;
    fprintf(out, ": %.7g * %.7g = %s (impact %u)\n", t->weight / unit, t->tf * unit,
            out_score(score, ldexp(t->impact, -e->exponent)), t->impact);
}

void out_put_explanation(FILE *out, const gx_explanation *e, const char *indent)
{
    char score[32];
    if (e->n_fields)
        put_fields(out, e, indent);
    else
        fprintf(out, "%s%s: score = sum over terms of %s\n", indent, e->preset, e->formula);
    if (!e->linear && !e->n_fields) {
        fprintf(out, "%sN = %llu, dl = %u", indent, (unsigned long long)e->n_docs, e->dl);
        if (e->counted_dl != e->dl)
            fprintf(out, " (counted as %u)", e->counted_dl);
        fprintf(out, ", avgdl = %.6g, k1 = %.6g, b = %.6g, K = k1 * (1 - b + b * dl / avgdl) = %.7g\n", e->avgdl, e->k1,
                e->b, e->K);
    }
    for (uint32_t i = 0; i < e->n_terms; ++i) {
        const gx_explain_term *t = &e->terms[i];
        fprintf(out, "%s  ", indent);
        out_put_clean(out, t->term, t->term_len);
        if (t->tf == 0) {
            fprintf(out, ": not in this document (df = %llu)\n", (unsigned long long)t->df);
            continue;
        }
        fprintf(out, ": df = %llu", (unsigned long long)t->df);
        if (!e->linear && !t->field_dfs)
            fprintf(out, memchr(t->term, ' ', t->term_len) ? ", idf of its words = %.7g" : ", idf = %.7g", t->idf);
        if (e->times_k1 && !t->field_dfs)
            fprintf(out, ", times k1 + 1 = %.6g", e->k1 + 1);
        if (t->qtf != 1)
            fprintf(out, ", times %.9g in the query", t->qtf);
        if (e->n_fields) {
            put_field_term(out, e, t);
            continue;
        }
        if (t->unit != 1)
            fprintf(out, ", unit of impacts = %.9g", t->unit);
        if (e->linear)
            fprintf(out, ", tf = %u: %.7g * %u = %s (impact %u)\n", t->tf, t->weight, t->tf,
                    out_score(score, ldexp(t->impact, -e->exponent)), t->impact);
        else
            fprintf(out, ", tf = %u: %.7g * %u / (%u + %.7g) = %s (impact %u)\n", t->tf, t->weight, t->tf, t->tf, e->K,
                    out_score(score, ldexp(t->impact, -e->exponent)), t->impact);
    }
    if (e->n_unknown)
        fprintf(out, "%s  %u of the query's terms %s not in the index\n", indent, e->n_unknown,
                e->n_unknown == 1 ? "is" : "are");
    if (e->prior.weight != 0) {
        static const char *const formulas[] = {"ln(1 + x)", "x / (x + half)", "x"};
        gx_text x = {0};
        gx_text_add_value(&x, GX_ATTRIBUTE_FLOAT, &(gx_value){.real = e->prior_value});
        fprintf(out, "%s  prior %s: ", indent, e->prior.name);
        if (e->has_prior && !x.failed)
            fprintf(out, "x = %.*s, %.9g * %s", (int)x.len, x.bytes, e->prior.weight, formulas[e->prior.form]);
        else
            fputs("no value", out);
        fprintf(out, " = %s (impact %llu)\n", out_score(score, ldexp((double)e->prior_impact, -e->exponent)),
                (unsigned long long)e->prior_impact);
        free(x.bytes);
    }
    const unsigned long long sum = e->sum + e->prior_impact;
    fprintf(out, "%ssum of impacts = %llu, times 2^%d = %s\n", indent, sum, -e->exponent,
            out_score(score, ldexp((double)sum, -e->exponent)));
}

/* "price: 12 values, min 1, max 9, sum 55, avg 4.5833333, 50%: 4" */
static void put_human_figures(FILE *out, const gx_figures *f)
{
    static const char *const names[] = {"min", "max", "sum", "avg", "distinct"};
    const gx_value *const extremes[] = {&f->least, &f->greatest};
    const bool date = f->type == GX_ATTRIBUTE_DATE;
    const gx_value average = {.number = date ? (int64_t)floor(f->average) : 0, .real = f->average},
                   sum = {.real = f->sum};
    gx_text t = {0};
    gx_text_add_format(&t, ": %s value%s", show_count(f->n), plural(f->n));
    for (int i = 0; i < 5 && f->n; ++i) {
        if (!(f->figures >> i & 1))
            continue;
        gx_text_add_format(&t, ", %s ", names[i]);
        if (i < 2)
            gx_text_add_value(&t, f->type, extremes[i]);
        else if (i == 2 && f->type == GX_ATTRIBUTE_INT)
            gx_text_add_wide(&t, f->sum_high, f->sum_low);
        else if (i == 2)
            gx_text_add_value(&t, GX_ATTRIBUTE_FLOAT, &sum);
        else if (i == 3)
            gx_text_add_value(&t, date ? f->type : GX_ATTRIBUTE_FLOAT, &average);
        else
            gx_text_add_string(&t, show_count(f->distinct));
    }
    for (uint32_t i = 0; i < f->n_percentiles && f->n; ++i) {
        const gx_value percent = {.real = f->asked[i]};
        gx_text_add_string(&t, ", p");
        gx_text_add_value(&t, GX_ATTRIBUTE_FLOAT, &percent);
        gx_text_add_string(&t, " ");
        gx_text_add_value(&t, f->type, &f->percentiles[i]);
    }
    out_put_clean(out, f->name, f->name_len);
    if (!t.failed)
        fwrite(t.bytes, 1, t.len, out);
    putc('\n', out);
    free(t.bytes);
}

/* The figures of all matches, a line an attribute. */
static void put_human_sums(FILE *out, const gx_facet_answer *f)
{
    const gx_figures *figures;
    for (uint32_t i = 0; (figures = gx_facet_figures(f, 0, i)); ++i)
        put_human_figures(out, figures);
}

/* "category: 172 values", and a line a group, the count first. */
static void put_human_facet(FILE *out, const gx_facet_answer *f, int indent)
{
    const gx_figures *figures;
    fprintf(out, "%*s", indent, "");
    fputs(cli_paint(out, CLI_BOLD), out);
    out_put_clean(out, f->name, f->name_len);
    fprintf(out, "%s%s: ", cli_paint(out, CLI_PLAIN), cli_paint(out, CLI_DIM));
    if (f->n < f->n_groups)
        fprintf(out, "%s of ", show_count(f->n));
    fprintf(out, "%s group%s", show_count(f->n_groups), plural(f->n_groups));
    if (f->n_missing)
        fprintf(out, "; %s match%s without a value", show_count(f->n_missing), f->n_missing == 1 ? "" : "es");
    fprintf(out, "%s\n", cli_paint(out, CLI_PLAIN));
    for (uint32_t i = 0; i < f->n; ++i) {
        fprintf(out, "%*s  ", 13 + indent, show_count(f->groups[i].count));
        out_put_clean(out, f->groups[i].text, f->groups[i].len);
        putc('\n', out);
        for (uint32_t s = 0; (figures = gx_facet_figures(f, i, s)); ++s) {
            fprintf(out, "%*s", 17 + indent, "");
            put_human_figures(out, figures);
        }
        const gx_facet_answer *inner = gx_facet_inner(f, i);
        if (inner)
            put_human_facet(out, inner, indent + 17);
    }
}

static void put_human_summary(FILE *out, const out_answer *a)
{
    fputs(cli_paint(out, CLI_DIM), out);
    if (a->found.counted)
        fprintf(out, "%s %s", show_count(a->found.n_matches), a->found.n_matches == 1 ? "match" : "matches");
    else
        fprintf(out, "%s %s", show_count(a->found.n_hits), a->found.n_hits == 1 ? "result" : "results");
    if (a->timing && a->found.seconds < 1)
        fprintf(out, " in %.2f ms on the %s", a->found.seconds * 1e3,
                strcmp(a->found.engine, "gpu") == 0 ? "GPU" : "CPU");
    else if (a->timing)
        fprintf(out, " in %.2f s on the %s", a->found.seconds, strcmp(a->found.engine, "gpu") == 0 ? "GPU" : "CPU");
    fprintf(out, "%s\n", cli_paint(out, CLI_PLAIN));
}

/* A title stands bold, matched words in it underlined; on a terminal it is wrapped, from a column on. */
static void put_title(FILE *out, gx_highlighter *h, const char *title, size_t len, size_t column)
{
    const char *bold = cli_paint(out, CLI_BOLD), *mark = cli_paint(out, CLI_UNDERLINE);
    gx_snippet s = {0};
    if (!*bold || gx_highlighter_snippet(h, title, len, UINT32_MAX, &s, NULL) || s.begin > 0 || s.end < len)
        s.n_marks = 0; /* nothing to mark with, or too long to look through */
    marked_text marked = {title, &s, mark, "\033[24m", 0};
    fputs("  ", out);
    if (cli_is_terminal(out)) {
        put_wrapped(out, &marked, 0, len, column + 2, bold);
        return;
    }
    fputs(bold, out);
    put_marked(out, &marked, 0, len);
    fputs(cli_paint(out, CLI_PLAIN), out);
}

/* "price: 12  tags: a, b" on a line of its own; nothing where the document has no values. numbers NULL: the first n. */
static gx_status put_human_values(FILE *out, const gx_index *ix, uint64_t docid, const uint32_t *numbers, uint32_t n,
                                  const char *indent, gx_error *err)
{
    gx_text t = {0};
    gx_values v = {0};
    gx_status st = GX_OK;
    bool any = false;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        const uint32_t attribute = numbers ? numbers[i] : i;
        if ((st = values_text(&t, &v, ix, attribute, docid, ", ", err)) || v.starts[1] == 0)
            continue;
        const gx_attribute_info info = attribute_info(ix, attribute);
        fprintf(out, "%s%s%.*s:%s ", any ? "  " : indent, cli_paint(out, CLI_DIM), (int)info.name_len, info.name,
                cli_paint(out, CLI_PLAIN));
        out_put_clean(out, t.bytes, t.len);
        any = true;
    }
    if (any)
        putc('\n', out);
    free(t.bytes);
    gx_values_free(&v);
    return st;
}

/* Score, id and title of a document, from a column on. */
static void put_human_line(FILE *out, const out_answer *a, uint64_t docid, double score, size_t column)
{
    size_t id_len, title_len;
    const char *id = gx_index_doc_id(a->found.ix, docid, &id_len);
    const char *title = gx_index_doc_title(a->found.ix, docid, &title_len);
    fputs(cli_paint(out, CLI_DIM), out);
    column += (size_t)fprintf(out, "%.4f", score);
    fprintf(out, "%s  %s", cli_paint(out, CLI_PLAIN), cli_paint(out, CLI_GREEN));
    out_put_clean(out, id, id_len);
    column += 2 + count_characters(id, id_len);
    fputs(cli_paint(out, CLI_PLAIN), out);
    if (title_len)
        put_title(out, a->found.marks, title, title_len, column);
    putc('\n', out);
}

/* "brand: acme, 12 matches", and a line for each other document of the group. */
static gx_status put_human_group(FILE *out, const out_answer *a, uint32_t i, gx_error *err)
{
    const gx_groups *groups = a->found.groups;
    const gx_group *g = &groups->groups[i];
    const gx_attribute_info info = attribute_info(a->found.ix, groups->attribute);
    gx_text t = {0};
    gx_status st = GX_OK;
    group_text(&t, groups, g);
    fprintf(out, "      %s%.*s:%s ", cli_paint(out, CLI_DIM), (int)info.name_len, info.name, cli_paint(out, CLI_PLAIN));
    if (g->missing)
        fputs("(no value)", out);
    else
        out_put_clean(out, t.bytes, t.len);
    fprintf(out, "%s, %s match%s%s\n", cli_paint(out, CLI_DIM), show_count(g->n_matches), g->n_matches == 1 ? "" : "es",
            cli_paint(out, CLI_PLAIN));
    for (uint32_t j = 1; j < g->n && st == GX_OK; ++j) {
        put_human_line(out, a, g->docids[j], g->scores[j], (size_t)fprintf(out, "        "));
        st = put_human_values(out, a->found.ix, g->docids[j], a->found.shown, a->found.n_shown, "            ", err);
    }
    free(t.bytes);
    return st;
}

static gx_status put_human(FILE *out, const out_answer *a, gx_error *err)
{
    char *buf = NULL;
    size_t cap = 0;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < a->found.n_hits && st == GX_OK && !(a->stop && a->stop(NULL)); ++i) {
        size_t text_len;
        gx_snippet snippet;
        put_human_line(out, a, a->found.docids[i], a->found.scores[i], (size_t)fprintf(out, "%3llu.  ", rank_of(a, i)));
        st = put_human_values(out, a->found.ix, a->found.docids[i], a->found.shown, a->found.n_shown, "      ", err);
        if (st == GX_OK)
            st = gx_answer_snippet(&a->found, a->found.docids[i], &buf, &cap, &text_len, &snippet, err);
        if (st == GX_OK && text_len && snippet.end > snippet.begin)
            put_snippet(out, buf, text_len, &snippet);
        if (a->found.explanations)
            out_put_explanation(out, &a->found.explanations[i], "      ");
        if (st == GX_OK && a->found.groups)
            st = put_human_group(out, a, i, err);
    }
    free(buf);
    for (uint32_t i = 0; i < a->found.n_facets && st == GX_OK; ++i) {
        const gx_facet_answer *f = gx_facets_get(a->found.facets, i);
        if (f->name_len)
            put_human_facet(out, f, 0);
        else
            put_human_sums(out, f);
    }
    if (st == GX_OK)
        put_human_summary(out, a);
    return st;
}

static bool has_texts(const gx_index *ix)
{
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_quick_stats(ix, &stats);
    return stats.texts;
}

gx_status out_put_document(FILE *out, const gx_index *ix, uint64_t docid, gx_error *err)
{
    size_t len;
    char *buf = NULL;
    size_t cap = 0;
    gx_status st = GX_OK;
    const char *id = gx_index_doc_id(ix, docid, &len);
    fputs(cli_paint(out, CLI_GREEN), out);
    out_put_clean(out, id, len);
    const uint32_t n_terms = gx_index_doc_len(ix, docid);
    fprintf(out, "%s  (docid %llu, %u term%s)\n", cli_paint(out, CLI_PLAIN), (unsigned long long)docid, n_terms,
            plural(n_terms));
    const char *title = gx_index_doc_title(ix, docid, &len);
    if (len) {
        fputs(cli_paint(out, CLI_BOLD), out);
        out_put_clean(out, title, len);
        fprintf(out, "%s\n", cli_paint(out, CLI_PLAIN));
    }
    if ((st = put_human_values(out, ix, docid, NULL, gx_index_n_attributes(ix), "", err)))
        return st;
    if (!has_texts(ix)) {
        fputs("(its text is not stored: gpuidx build --store=text)\n", out);
        return GX_OK;
    }
    if ((st = gx_index_doc_text(ix, docid, &buf, &cap, &len, err)) == GX_OK) {
        for (size_t i = 0; i < len;) { /* its lines stay lines */
            const char *end = memchr(buf + i, '\n', len - i);
            const size_t n = end ? (size_t)(end - buf) - i : len - i;
            out_put_clean(out, buf + i, n);
            putc('\n', out);
            i += n + 1;
        }
    }
    free(buf);
    return st;
}

/* ---- */

void out_head(FILE *out, out_format format, const gx_index *ix, const uint32_t *shown, uint32_t n_shown, bool grouped)
{
    if (format != OUT_CSV)
        return;
    fputs("qid,rank,id,score,title", out);
    for (uint32_t i = 0; i < n_shown; ++i) {
        const gx_attribute_info info = attribute_info(ix, shown[i]);
        putc(',', out);
        put_csv(out, info.name, info.name_len);
    }
    fputs(grouped ? ",group,group_matches\n" : "\n", out);
}

gx_status out_put_answer(FILE *out, out_format format, const out_answer *a, gx_error *err)
{
    switch (format) {
    case OUT_HUMAN:
        return put_human(out, a, err);
    case OUT_JSONL:
        return put_jsonl(out, a, err);
    case OUT_TREC:
        put_trec(out, a);
        break;
    case OUT_TSV:
        put_tsv(out, a);
        break;
    case OUT_CSV:
        return put_csv_answer(out, a, err);
    }
    return GX_OK;
}
