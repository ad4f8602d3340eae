/* info.c: `gpuidx info`: what an index holds and where its bytes go. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"
#include "tools/cli/lookup.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"

static void uuid_text(char text[37], const uint8_t uuid[16])
{
    char *p = text;
    for (int i = 0; i < 16; ++i)
        p += sprintf(p, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
}

/* ---- JSON ---- */

static json_t *json_of_sections(const gx_index_sizes *s)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->n_sections; ++i)
        json_array_append_new(list,
                              json_pack("{s:s, s:I, s:I, s:b, s:b}", "name", s->sections[i].name, "offset",
                                        (json_int_t)s->sections[i].offset, "bytes", (json_int_t)s->sections[i].bytes,
                                        "device", (int)s->sections[i].device, "known", (int)s->sections[i].known));
    return list;
}

static json_t *json_of_codings(const gx_index_sizes *s)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->n_codings; ++i) {
        const gx_coding_size *c = &s->codings[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "docids", c->docid_codec, "tfs",
                                        c->tf_codec, "lists", (json_int_t)c->n_lists, "postings",
                                        (json_int_t)c->n_postings, "blocks", (json_int_t)c->n_blocks, "docid_bytes",
                                        (json_int_t)c->docid_bytes, "tf_bytes", (json_int_t)c->tf_bytes));
    }
    return list;
}

static json_t *json_of_meta(const gx_index *ix)
{
    size_t len;
    const char *meta = gx_index_meta(ix, &len);
    return json_loadb(meta, len, 0, NULL);
}

/* The least and the greatest value as JSON, null where there are none.
 * Dates are seconds since 1970. */
static json_t *json_of_attributes(const gx_index *ix)
{
    json_t *list = json_array();
    gx_attribute_info a = {.size = sizeof a};
    for (uint32_t i = 0; i < gx_index_n_attributes(ix); ++i) {
        if (gx_index_get_attribute(ix, i, &a) != GX_OK) { /* no memory: rather no list than one that lacks some */
            json_decref(list);
            return NULL;
        }
        json_t *o = json_pack("{s:s%, s:s, s:I, s:I, s:I}", "name", a.name, a.name_len, "type",
                              gx_attribute_type_name(a.type), "documents", (json_int_t)a.n_documents, "values",
                              (json_int_t)a.n_values, "bytes", (json_int_t)a.bytes);
        if (a.type == GX_ATTRIBUTE_KEYWORD || a.type == GX_ATTRIBUTE_KEYWORDS) {
            json_object_set_new(o, "distinct", json_integer(a.n_distinct));
        } else if (a.n_present) {
            const bool real = a.type == GX_ATTRIBUTE_FLOAT;
            json_object_set_new(o, "min", real ? json_real(a.min_float) : json_integer(a.min_int));
            json_object_set_new(o, "max", real ? json_real(a.max_float) : json_integer(a.max_int));
        }
        if (a.encoding != GX_BITMAPS_NONE)
            json_object_set_new(o, "bitmaps",
                                json_pack("{s:s, s:I, s:I}", "encoding", gx_bitmap_encoding_name(a.encoding), "bins",
                                          (json_int_t)a.n_bins, "bytes", (json_int_t)a.bitmap_bytes));
        json_array_append_new(list, o);
    }
    return list;
}

static int print_json(const char *path, const gx_index *ix, const gx_index_stats *st, const gx_index_sizes *s)
{
    char uuid[37];
    uuid_text(uuid, st->uuid);
    json_t *meta = json_of_meta(ix);
    json_t *root = json_pack(
        "{s:i, s:s, s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:b, s:b, s:b, s:b, s:f, s:o*, s:o, "
        "s:o, s:o, "
        "s:{s:f, s:f, s:f, s:f, s:f}}",
        "schema", 1, "file", path, "version", (int)st->version, "uuid", uuid, "n_docs", (json_int_t)st->n_documents,
        "n_terms", (json_int_t)st->n_terms, "n_postings", (json_int_t)st->n_postings, "n_tokens",
        (json_int_t)st->n_tokens, "block_len", (json_int_t)st->block_len, "avgdl", st->avgdl, "min_doc_len",
        (json_int_t)st->min_doc_len, "max_doc_len", (json_int_t)st->max_doc_len, "file_bytes",
        (json_int_t)st->file_bytes, "device_bytes", (json_int_t)st->device_bytes, "titles", st->titles, "text",
        st->texts, "positions", st->positions, "impacts", st->impacts, "impact_unit", st->impact_unit, "meta", meta,
        "sections", json_of_sections(s), "codings", json_of_codings(s), "attributes", json_of_attributes(ix),
        "bits_per_posting", "docids", s->docid_bits, "tfs", s->tf_bits, "heads", s->head_bits, "ends", s->end_bits,
        "directory", s->list_bits);
    uint64_t n;
    json_t *fields = root ? json_array() : NULL;
    for (uint32_t i = 0; fields && gx_index_field(ix, i, &n); ++i)
        json_array_append_new(fields,
                              json_pack("{s:s, s:I}", "name", gx_index_field(ix, i, NULL), "tokens", (json_int_t)n));
    if (fields)
        json_object_set_new(root, "fields", fields);
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(root);
    if (!text)
        return cli_fail(GX_ENOMEM, "%s: no memory for its description", path);
    puts(text);
    free(text);
    return 0;
}

/* ---- for people ---- */

static void print_bytes(const char *name, uint64_t bytes)
{
    printf("%-12s %s\n", name, show_bytes(bytes));
}

/* The analyzer of META in words. False if it is none that this program knows. */
static bool print_analyzer(json_t *analyzer)
{
    const char *stemmer = json_string_value(json_object_get(analyzer, "stemmer"));
    const char *tokenizer = json_string_value(json_object_get(analyzer, "tokenizer"));
    const size_t n_stops = json_array_size(json_object_get(analyzer, "stopwords"));
    if (!stemmer || !tokenizer)
        return false;
    printf("%-12s %s, %s%s, %s%s%s%s", "analyzer",
           strcmp(tokenizer, "word") == 0 ? "Unicode words" : "words between white space",
           json_is_true(json_object_get(analyzer, "lowercase")) ? "in lower case" : "in upper and lower case",
           json_is_true(json_object_get(analyzer, "possessive")) ? " without a final 's" : "",
           strcmp(stemmer, "none") == 0 ? "not stemmed" : "stemmed (", strcmp(stemmer, "none") == 0 ? "" : stemmer,
           strcmp(stemmer, "none") == 0 ? "" : ")", n_stops ? "; " : "; no stop words");
    if (n_stops)
        printf("%s stop word%s left out", show_count(n_stops), n_stops == 1 ? "" : "s");
    if (json_object_get(analyzer, "fold"))
        printf("; folded (%s)", json_string_value(json_object_get(analyzer, "fold")));
    const json_t *rules = json_object_get(analyzer, "rules");
    for (size_t i = 0; i < json_array_size(rules); ++i)
        printf("%s%s", i ? ", " : "; rules: ", json_string_value(json_array_get(rules, i)));
    if (json_object_get(analyzer, "icu"))
        printf(" (ICU %s)", json_string_value(json_object_get(analyzer, "icu")));
    putchar('\n');
    return true;
}

static int print_meta(const gx_index *ix)
{
    const char *key;
    json_t *value, *meta = json_of_meta(ix);
    json_object_foreach(meta, key, value)
    {
        if (strcmp(key, "fields") == 0) /* print_fields tells */
            continue;
        if (strcmp(key, "analyzer") == 0 && print_analyzer(value))
            continue;
        char *text = json_is_string(value) ? strdup(json_string_value(value))
                                           : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        if (!text) {
            json_decref(meta);
            return cli_fail(GX_ENOMEM, "no memory for the description");
        }
        printf("%-12s ", key);
        out_put_clean(stdout, text, strlen(text));
        putchar('\n');
        free(text);
    }
    json_decref(meta);
    return 0;
}

/* What a section holds. */
static const char *section_words(const char *name)
{
    static const struct {
        const char *name, *words;
    } rows[] = {
        {"LIST", "where each term's list is"},
        {"HEAD", "the first document of each block"},
        {"PAYL", "the compressed lists"},
        {"DEND", "where each block of docids ends"},
        {"TEND", "where each block of term frequencies ends"},
        {"THSH", "the table in which terms are looked up"},
        {"DLEN", "document lengths"},
        {"META", "how text was made into terms"},
        {"TERM", "the terms"},
        {"UNIT", "each list's unit of impacts"},
        {"FLDS", "words and lengths by field"},
        {"DIDS", "document ids"},
        {"TITL", "titles"},
        {"POSN", "the positions of words in documents"},
        {"PEND", "where each block of positions ends"},
        {"PLEN", "the positions that titles take"},
        {"TEXT", "texts, compressed"},
        {"ATTR", "the attributes of documents"},
        {"ATTV", "the values of attributes"},
        {"ATTS", "the names and strings of attributes"},
        {"ATTB", "bitmap columns of attributes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].words;
    return "";
}

/* Seconds since 1970 as a day, or as a moment of one. */
static const char *moment(char text[64], int64_t seconds)
{
    struct tm tm;
    const time_t t = (time_t)seconds;
    if (!gmtime_r(&t, &tm))
        snprintf(text, 64, "%lld s", (long long)seconds);
    else
        strftime(text, 64, seconds % 86400 ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%d", &tm);
    return text;
}

static gx_status print_bitmaps(const gx_index *ix)
{
    gx_attribute_info a = {.size = sizeof a};
    bool any = false;
    for (uint32_t i = 0; i < gx_index_n_attributes(ix); ++i) {
        const gx_status st = gx_index_get_attribute(ix, i, &a);
        if (st != GX_OK)
            return st;
        if (a.encoding == GX_BITMAPS_NONE)
            continue;
        if (!any)
            printf("\n%-20s %-8s %11s %12s  %s\n", "bitmap columns", "encoding", "bins", "bytes", "bits a value");
        any = true;
        printf("%-20.*s %-8s %11u %12llu  %.4g\n", (int)a.name_len, a.name, gx_bitmap_encoding_name(a.encoding),
               a.n_bins, (unsigned long long)a.bitmap_bytes,
               a.n_values ? 8.0 * (double)a.bitmap_bytes / (double)a.n_values : 0);
    }
    return GX_OK;
}

/* The least and the greatest value, but of keywords. */
static void print_extremes(const gx_attribute_info *a)
{
    char least[64], most[64];
    if (a->type == GX_ATTRIBUTE_KEYWORD || a->type == GX_ATTRIBUTE_KEYWORDS)
        return;
    if (a->n_present == 0)
        printf("none");
    else if (a->type == GX_ATTRIBUTE_FLOAT)
        printf("%g to %g", a->min_float, a->max_float);
    else if (a->type == GX_ATTRIBUTE_DATE)
        printf("%s to %s", moment(least, a->min_int), moment(most, a->max_int));
    else if (a->type == GX_ATTRIBUTE_BOOL)
        printf("%s", a->min_int == a->max_int ? a->min_int ? "true" : "false" : "false and true");
    else
        printf("%lld to %lld", (long long)a->min_int, (long long)a->max_int);
}

static gx_status print_attributes(const gx_index *ix)
{
    gx_attribute_info a = {.size = sizeof a};
    if (gx_index_n_attributes(ix))
        printf("\n%-20s %-8s %11s %12s  %s\n", "attribute", "type", "documents", "bytes", "values");
    for (uint32_t i = 0; i < gx_index_n_attributes(ix); ++i) {
        const gx_status st = gx_index_get_attribute(ix, i, &a);
        if (st != GX_OK)
            return st;
        printf("%-20.*s %-8s %11llu %12llu  ", (int)a.name_len, a.name, gx_attribute_type_name(a.type),
               (unsigned long long)a.n_documents, (unsigned long long)a.bytes);
        if (a.type == GX_ATTRIBUTE_KEYWORD || a.type == GX_ATTRIBUTE_KEYWORDS)
            printf("%llu, %u different", (unsigned long long)a.n_values, a.n_distinct);
        else if (a.n_values > a.n_documents) /* documents have several */
            printf("%llu, ", (unsigned long long)a.n_values);
        print_extremes(&a);
        putchar('\n');
    }
    return print_bitmaps(ix);
}

static void print_sizes(const gx_index_stats *st, const gx_index_sizes *s)
{
    printf("\n%-10s %18s  %6s\n", "section", "bytes", "share");
    for (uint32_t i = 0; i < s->n_sections; ++i)
        printf("%-10s %18s  %5.1f%%  %s%s\n", s->sections[i].name, show_count(s->sections[i].bytes),
               100.0 * (double)s->sections[i].bytes / (double)st->file_bytes,
               s->sections[i].known ? section_words(s->sections[i].name) : "(unknown, skipped)",
               s->sections[i].device ? "; on the GPU too" : "");
    printf("%-10s %18s  %5.1f%%\n", "the rest", show_count(s->header_bytes + s->padding_bytes),
           100.0 * (double)(s->header_bytes + s->padding_bytes) / (double)st->file_bytes);

    printf("\n%-14s %-14s %14s %18s  %s\n", "docids", "tfs", "lists", "postings", "bits a posting: docids, tfs");
    for (uint32_t i = 0; i < s->n_codings; ++i) {
        const gx_coding_size *c = &s->codings[i];
        const double n = c->n_postings ? (double)c->n_postings : 1;
        printf("%-14s %-14s %14s %18s  %.2f, %.2f\n", c->docid_codec, c->tf_codec, show_count(c->n_lists),
               show_count(c->n_postings), 8.0 * (double)c->docid_bytes / n, 8.0 * (double)c->tf_bytes / n);
    }
    printf("\nbits a posting: docids %.2f, tfs %.2f, heads %.2f, ends %.2f, directory %.2f; together %.2f\n",
           s->docid_bits, s->tf_bits, s->head_bits, s->end_bits, s->list_bits, show_bits(s));
}

/* What an engine copies to a GPU; the lists' payload, named PAYL, may stay behind. */
static void print_gpu_memory(const gx_index_stats *st, const gx_index_sizes *s)
{
    uint64_t lists = 0;
    for (uint32_t i = 0; i < s->n_sections; ++i)
        lists += strcmp(s->sections[i].name, "PAYL") == 0 ? s->sections[i].bytes : 0;
    print_bytes("GPU memory", st->device_bytes);
    if (lists && lists < st->device_bytes)
        print_bytes("  at least", st->device_bytes - lists);
}

static void print_fields(const gx_index *ix, const gx_index_stats *st)
{
    uint64_t n;
    const char *name;
    for (uint32_t i = 0; (name = gx_index_field(ix, i, &n)); ++i)
        printf("%-12s %s, %s word%s, %.1f on average\n", i ? "" : "fields", name, show_count(n), plural(n),
               st->n_documents ? (double)n / (double)st->n_documents : 0.0);
}

/* Bytes of the positions and of their blocks' ends. */
static uint64_t position_bytes(const gx_index_sizes *s)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->n_sections; ++i)
        if (strcmp(s->sections[i].name, "POSN") == 0 || strcmp(s->sections[i].name, "PEND") == 0)
            bytes += s->sections[i].bytes;
    return bytes;
}

static int print_human(const char *path, const gx_index *ix, const gx_index_stats *st, const gx_index_sizes *s)
{
    char uuid[37];
    uuid_text(uuid, st->uuid);
    printf("%-12s %s\n", "file", path);
    printf("%-12s %u, uuid %s\n", "version", st->version, uuid);
    print_bytes("size", st->file_bytes);
    print_gpu_memory(st, s);
    printf("%-12s %s%s%s\n", "documents", show_count(st->n_documents), st->titles ? ", with titles" : "",
           st->texts ? ", with texts" : "");
    printf("%-12s %s different word%s, after analysis\n", "terms", show_count(st->n_terms), plural(st->n_terms));
    printf("%-12s %s pairs of a term and a document that has it; compressed in blocks of %u%s\n", "postings",
           show_count(st->n_postings), st->block_len, st->impacts ? "; with impacts instead of term frequencies" : "");
    if (st->impacts && st->impact_unit == 0)
        printf("%-12s one for each list: a score is the sum of impact times unit times the query's weight\n", "unit");
    else if (st->impacts && st->impact_unit != 1)
        printf("%-12s %.9g: a score is this times the sum of impact times the query's weight\n", "unit",
               st->impact_unit);
    if (st->positions)
        printf("%-12s of each word in each document, for phrases; %.2f bits each\n", "positions",
               8.0 * (double)position_bytes(s) / (double)(st->n_tokens ? st->n_tokens : 1));
    printf("%-12s %s word%s in all; a document has %s to %s, %.1f on average\n", "tokens", show_count(st->n_tokens),
           plural(st->n_tokens), show_count(st->min_doc_len), show_count(st->max_doc_len), st->avgdl);
    print_fields(ix, st);
    int code = print_meta(ix);
    if (!code && print_attributes(ix) != GX_OK)
        code = cli_fail(GX_ENOMEM, "%s: no memory for the attributes' description", path);
    if (!code)
        print_sizes(st, s);
    return code;
}

static int run(const cli_args *a)
{
    gx_index *ix;
    gx_index_sizes *sizes;
    gx_error err = {0};
    gx_index_options options = GX_INDEX_OPTIONS;
    gx_index_stats stats = {.size = sizeof stats};
    int code = 0;
    options.check = GX_CHECK_STRUCTURE;
    if (gx_index_open(&ix, a->argv[0], &options, &err))
        return cli_fail_error(&err);
    lookup_tell_analysis(ix, a->argv[0]);
    if (!(sizes = malloc(sizeof *sizes))) {
        code = cli_fail(GX_ENOMEM, "%s: no memory for its description", a->argv[0]);
    } else {
        gx_index_get_stats(ix, &stats);
        gx_index_measure(ix, sizes);
        if (cli_switch(a, "json"))
            code = print_json(a->argv[0], ix, &stats, sizes);
        else
            code = print_human(a->argv[0], ix, &stats, sizes);
    }
    free(sizes);
    gx_index_close(ix);
    return code;
}

static const cli_flag flags[] = {
    {"json", 0, CLI_SWITCH, NULL, NULL, "print one JSON object instead, for programs; its \"schema\" is 1"},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx info corpus.gx", "Documents, terms, the analysis of text, and bytes by section and codec."},
    {"gpuidx info --json corpus.gx | jq .n_docs", "One of these numbers, for a script."},
    {NULL},
};

const cli_command cmd_info = {
    .name = "info",
    .summary = "say what an index holds",
    .synopsis = "[--json] INDEX",
    .description =
        "Prints how many documents, terms and postings an index has, how long the documents are, how its text "
        "was made into terms, which attributes it keeps, and how many bytes each section of the file and each "
        "codec takes. A posting is the number of a document and how often that document contains a term; the "
        "size of the lists is told in bits for each posting. `GPU memory` is what an engine on a GPU copies there, "
        "`at least` the same without the lists, which may stay in host memory (`replay --resident`); sessions and "
        "tables come on top. The file's structure is verified, its checksums "
        "are not: that is what `gpuidx check` is for.",
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
