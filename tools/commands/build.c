/* build.c: gpuidx build: a corpus becomes an index. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/attribute_list.h"
#include "tools/cli/cli.h"
#include "tools/cli/corpus.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/cli/signals.h"
#include "tools/commands/reorder.h"

enum { MAX_REPORTS = 20 }; /* bad documents that are shown one by one */

typedef struct build {
    const cli_args *args;
    gx_source *source;
    gx_builder *builder;
    progress bar;
    uint64_t limit, skipped;
    bool skip;
    attribute_list attributes;
    field_list fields;
    double order_seconds;
    double began, read_seconds; /* of the monotonic clock; that reading took, summed over threads */
} build;

/* ---- bad documents ---- */

/* Count and show a bad document. false: it ends the build. */
static bool meet_bad_document(void *user, const gx_error *err)
{
    build *b = user;
    if (b->skip && b->skipped++ < MAX_REPORTS) {
        progress_end(&b->bar);
        b->bar.off = cli_quiet();
        cli_warn("%s; skipped", err->text);
    }
    return b->skip;
}

/* ---- the corpus ---- */

static void show_progress(void *user)
{
    build *b = user;
    const gx_source_counts in = gx_source_get_counts(b->source);
    gx_builder_counts out = {.size = sizeof out};
    gx_builder_get_counts(b->builder, &out);
    progress_show(&b->bar, in.documents, in.bytes, in.raw_bytes, out.memory_bytes);
}

static int add_documents(build *b)
{
    gx_error err = {0};
    gx_feed_options opt = GX_FEED_OPTIONS;
    opt.limit = b->limit;
    opt.bad = meet_bad_document;
    opt.progress = show_progress;
    opt.user = b;
    const gx_status st = gx_builder_add_source(b->builder, b->source, &opt, &err);
    if (st == GX_OK || st == GX_ECANCELLED) /* stop_die tells the latter */
        return gx_status_exit(st);
    progress_end(&b->bar);
    const int code = cli_fail_error(&err);
    if (st == GX_EINPUT)
        cli_note("nothing was written; --on-error=skip goes on without such documents%s",
                 gx_source_get_counts(b->source).too_long ? ", --max-record takes longer ones" : "");
    return code;
}

/* ---- the summary ---- */

static void add_part(char *line, size_t room, uint64_t n, const char *what)
{
    const size_t used = strlen(line);
    if (n)
        snprintf(line + used, room - used, "%s%s %s", used ? ", " : "", show_count(n), what);
}

static void summarize(const build *b, const gx_source_counts *in, const gx_builder_counts *out,
                      const gx_index_stats *ix, double bits, double total)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    cli_note("%s: %s document%s, %s term%s, %s posting%s, %s (lists: %.2f bits a posting)", cli_text(b->args, "output"),
             show_count(ix->n_docs), ix->n_docs == 1 ? "" : "s", show_count(ix->n_terms), ix->n_terms == 1 ? "" : "s",
             show_count(ix->n_postings), ix->n_postings == 1 ? "" : "s", show_bytes(ix->file_bytes), bits);
    cli_note("read %s%s%s from %s file%s in %.1f s, %.1f MB/s, with %s of memory at most", show_bytes(in->bytes),
             in->files ? " of " : "", in->files ? gx_source_format_name(in->format) : "", show_count(in->files),
             in->files == 1 ? "" : "s", total, total > 0 ? (double)in->bytes / total / 1e6 : 0.0,
             show_bytes((uint64_t)usage.ru_maxrss << 10));
    cli_note("seconds: read %.2f, analyse %.2f, invert %.2f, merge %.2f, lists %.2f, documents %.2f, order %.2f",
             b->read_seconds, out->seconds[GX_STAGE_ANALYSE], out->seconds[GX_STAGE_INVERT],
             out->seconds[GX_STAGE_MERGE], out->seconds[GX_STAGE_LISTS], out->seconds[GX_STAGE_DOCUMENTS],
             b->order_seconds);
    char odd[400] = "";
    add_part(odd, sizeof odd, b->skipped, "bad documents skipped");
    add_part(odd, sizeof odd, out->duplicates,
             cli_choice(b->args, "duplicates") == GX_DUPLICATES_LAST ? "documents replaced by later ones of the same id"
                                                                     : "documents skipped, their ids being taken");
    add_part(odd, sizeof odd, out->empty, "documents without a term");
    add_part(odd, sizeof odd, out->dropped_tokens, "tokens too long, dropped");
    add_part(odd, sizeof odd, in->replaced + out->replaced_bytes, "byte sequences that are not UTF-8, replaced");
    add_part(odd, sizeof odd, in->nul_bytes, "NUL bytes read as spaces");
    if (*odd)
        cli_note("%s", odd);
    if (b->skipped > MAX_REPORTS)
        cli_warn("%s bad documents were skipped; the first %d are shown", show_count(b->skipped), MAX_REPORTS);
    if (in->too_long)
        cli_note("%s document%s too long; --max-record takes longer ones", show_count(in->too_long),
                 in->too_long == 1 ? " was" : "s were");
    if (cli_given(b->args, "columns") && in->files && in->format != GX_SOURCE_TSV && in->format != GX_SOURCE_CSV)
        cli_warn("--columns means nothing to %s", gx_source_format_name(in->format));
    if (cli_given(b->args, "members") && in->files && in->format != GX_SOURCE_JSONL && in->format != GX_SOURCE_VECTORS)
        cli_warn("--members means nothing to %s", gx_source_format_name(in->format));
    corpus_tell_notes(b->source);
    if (ix->n_docs == 0)
        cli_warn("the corpus holds no documents; the index is empty");
}

static void print_json(const build *b, const gx_source_counts *in, const gx_builder_counts *out,
                       const gx_index_stats *ix, double total)
{
    const char *path = cli_text(b->args, "output");
    fputs("{\"schema\":1,\"index\":", stdout);
    out_put_json(stdout, path, strlen(path));
    printf(",\"documents\":%" PRIu32 ",\"terms\":%" PRIu32 ",\"postings\":%" PRIu64 ",\"tokens\":%" PRIu64
           ",\"file_bytes\":%" PRIu64 ",\"device_bytes\":%" PRIu64,
           ix->n_docs, ix->n_terms, ix->n_postings, ix->n_tokens, ix->file_bytes, ix->device_bytes);
    printf(",\"format\":\"%s\",\"files\":%" PRIu64 ",\"bytes_read\":%" PRIu64 ",\"text_bytes\":%" PRIu64
           ",\"skipped\":%" PRIu64 ",\"duplicates\":%" PRIu64 ",\"empty\":%" PRIu64 ",\"dropped_tokens\":%" PRIu64
           ",\"replaced\":%" PRIu64 ",\"nul_bytes\":%" PRIu64 ",\"broken_links\":%" PRIu64,
           gx_source_format_name(in->format), in->files, in->bytes, out->text_bytes, b->skipped, out->duplicates,
           out->empty, out->dropped_tokens, in->replaced + out->replaced_bytes, in->nul_bytes, in->broken_links);
    corpus_print_notes(b->source);
    printf(",\"seconds\":{\"total\":%.3f,\"read\":%.3f,\"analyse\":%.3f,\"invert\":%.3f,\"merge\":%.3f,\"lists\":%.3f,"
           "\"documents\":%.3f,\"order\":%.3f}}\n",
           total, b->read_seconds, out->seconds[GX_STAGE_ANALYSE], out->seconds[GX_STAGE_INVERT],
           out->seconds[GX_STAGE_MERGE], out->seconds[GX_STAGE_LISTS], out->seconds[GX_STAGE_DOCUMENTS],
           b->order_seconds);
}

/* ---- the command ---- */

/* The corpus path that is the same file as the output, which --force would destroy. NULL: none. */
static const char *find_itself(const cli_args *a, const char *output)
{
    for (int i = 0; i < a->argc; ++i)
        if (cli_same_file(a->argv[i], output))
            return a->argv[i];
    return NULL;
}

static bool is_of_vectors(const cli_args *a)
{
    const char *format = cli_given(a, "format") ? cli_text(a, "format") : "";
    return strcmp(format, "vectors") == 0 || strcmp(format, "csr") == 0;
}

/* 0: one a processor. */
static uint32_t threads_of(const cli_args *a)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t given = (uint32_t)cli_count(a, "threads");
    return given ? given : cores > 0 ? (uint32_t)cores : 1;
}

/* Warn of an attribute or field that no document has: its name may be misspelt. */
static void warn_of_missing_attributes(const gx_index *ix)
{
    gx_attribute_info info = {.size = sizeof info};
    for (uint32_t i = 0; gx_index_get_attribute(ix, i, &info) == GX_OK; ++i)
        if (info.n_present == 0)
            cli_warn("no document has a value of the attribute %.*s", (int)info.name_len, info.name);
    uint64_t n_tokens;
    const char *field;
    for (uint32_t i = 0; (field = gx_index_field(ix, i, &n_tokens)); ++i)
        if (n_tokens == 0)
            cli_warn("no document has a word in the field %s", field);
}

static int open_all(build *b)
{
    const cli_args *a = b->args;
    gx_error err = {0};
    char from[512];
    gx_source_options in = {.size = sizeof in,
                            .columns = cli_text(a, "columns"),
                            .members = cli_text(a, "members"),
                            .max_record = cli_count(a, "max-record"),
                            .latin1 = cli_choice(a, "encoding") == 1,
                            .file_id = (gx_file_id)cli_choice(a, "id"),
                            .cancel = is_stopped};
    if (cli_given(a, "format"))
        gx_source_format_find(cli_text(a, "format"), &in.format);
    int code = attribute_list_read(&b->attributes, a);
    if (code || (code = field_list_read(&b->fields, a)))
        return code;
    in.attributes = b->attributes.attributes;
    in.n_attributes = b->attributes.n;
    in.fields = b->fields.names;
    in.n_fields = b->fields.n;
    if (gx_source_open(&b->source, (const char *const *)a->argv, (size_t)a->argc, &in, &err))
        return cli_fail_error(&err);
    if (a->argc == 1)
        snprintf(from, sizeof from, "%s", a->argv[0]);
    else
        snprintf(from, sizeof from, "%.400s and %d more", a->argv[0], a->argc - 1);
    gx_builder_options out = GX_BUILDER_OPTIONS;
    out.path = cli_text(a, "output");
    out.force = cli_switch(a, "force");
    out.duplicates = (gx_duplicates)cli_choice(a, "duplicates");
    out.docid_codec = cli_text(a, "codec");
    out.tf_codec = cli_text(a, "tf-codec");
    out.vector_bits = in.format == GX_SOURCE_VECTORS || in.format == GX_SOURCE_CSR ? (uint32_t)cli_count(a, "bits") : 0;
    out.list_units = cli_choice(a, "scale") == 1;
    if ((code = cli_read_unit(a, &out.unit)))
        return code;
    out.analyzer = out.vector_bits && !cli_given(a, "analyzer") ? NULL : cli_text(a, "analyzer");
    out.stemmer = cli_text(a, "stemmer");
    out.stopwords = cli_text(a, "stopwords");
    out.fold = cli_text(a, "fold");
    out.ngrams = cli_text(a, "ngrams");
    out.store_titles = cli_choice(a, "store") >= 1;
    out.store_text = cli_choice(a, "store") == 2;
    out.positions = cli_switch(a, "positions");
    out.memory = cli_count(a, "memory");
    out.threads = threads_of(a);
    out.source = from;
    out.attributes = b->attributes.attributes;
    out.n_attributes = b->attributes.n;
    out.bitmaps = b->attributes.bitmaps;
    out.fields = b->fields.fields;
    out.n_fields = b->fields.n;
    out.fixed_weights = b->fields.fixed;
    if (gx_builder_open(&b->builder, &out, &err))
        return cli_fail_error(&err);
    if (cli_choice(a, "order")) /* the index of the documents as they come is only read, by put_in_order */
        gx_builder_keep_unnamed(b->builder);
    return 0;
}

/* Write the builder's index to the output, with its documents in the order asked for. */
static gx_status put_in_order(build *b, gx_error *err)
{
    const cli_args *a = b->args;
    const gx_index_options light = {sizeof light, GX_CHECK_STRUCTURE};
    reordering r = {.order = GX_ORDER_OPTIONS, .rewrite = GX_REWRITE_OPTIONS, .cancel = is_stopped};
    gx_index *ix = NULL;
    const double began = progress_clock();
    char *unordered = gx_builder_unnamed_path(b->builder);
    *err = (gx_error){.status = GX_ENOMEM};
    gx_status st = unordered ? gx_index_open(&ix, unordered, &light, err) : GX_ENOMEM;
    free(unordered);
    if (st)
        return st;
    stop_on_signals();
    r.order.kind = cli_choice(a, "order") == 1 ? GX_ORDER_RANDOM : GX_ORDER_BP;
    r.order.seed = cli_count(a, "seed");
    r.order.threads = threads_of(a);
    r.rewrite.force = cli_switch(a, "force");
    r.rewrite.docid_codec = cli_text(a, "codec");
    r.rewrite.tf_codec = cli_text(a, "tf-codec");
    st = reorder(ix, cli_text(a, "output"), &r, err);
    stop_no_more();
    gx_index_close(ix);
    b->order_seconds = progress_clock() - began;
    return st;
}

static int seal(build *b)
{
    gx_error err = {0};
    gx_index *ix;
    gx_index_sizes sizes;
    gx_index_stats stats = {.size = sizeof stats};
    gx_builder_counts out = {.size = sizeof out};
    gx_builder_get_counts(b->builder, &out);
    b->read_seconds = out.reading;
    progress_phase(&b->bar, "writing the index");
    gx_status st = gx_builder_finish(b->builder, &err);
    if (st == GX_OK && cli_choice(b->args, "order")) {
        progress_end(&b->bar);
        st = put_in_order(b, &err);
    }
    if (st == GX_ECANCELLED)
        return gx_status_exit(st); /* run tells it */
    const double total = progress_clock() - b->began;
    progress_end(&b->bar);
    if (st)
        return cli_fail_error(&err);
    const gx_index_options light = {sizeof light, GX_CHECK_STRUCTURE};
    cli_json_memory_may_fail();
    if (gx_index_open(&ix, cli_text(b->args, "output"), &light, &err))
        return cli_fail(GX_EIO, "%s is in place, but its summary cannot be made: %s", cli_text(b->args, "output"),
                        err.text);
    gx_index_get_stats(ix, &stats);
    gx_index_measure(ix, &sizes);
    if (stats.n_docs)
        warn_of_missing_attributes(ix);
    gx_index_close(ix);
    gx_builder_get_counts(b->builder, &out);
    const gx_source_counts in = gx_source_get_counts(b->source);
    summarize(b, &in, &out, &stats, show_bits(&sizes), total);
    if (cli_switch(b->args, "json"))
        print_json(b, &in, &out, &stats, total);
    return 0;
}

static int run(const cli_args *a)
{
    build b = {.args = a, .limit = cli_count(a, "limit"), .skip = cli_choice(a, "on-error") == 1};
    const char *path = cli_text(a, "output");
    if (!path)
        return cli_usage(a, "no output: say where the index goes with -o FILE");
    if (strcmp(path, "-") == 0)
        return cli_usage(a, "-o -: an index cannot go to stdout, it is a file that is mapped");
    if ((cli_given(a, "bits") || cli_given(a, "scale") || cli_given(a, "unit")) && !is_of_vectors(a))
        return cli_usage(a, "--%s is of vectors: give --format=vectors or csr",
                         cli_given(a, "bits")    ? "bits"
                         : cli_given(a, "scale") ? "scale"
                                                 : "unit");
    if (cli_given(a, "unit") && cli_choice(a, "scale") == 1)
        return cli_usage(a, "--unit is of all terms: leave out --scale=list");
    if (find_itself(a, path))
        return cli_usage(a, "-o %s: it is the corpus %s, which the index would replace; give another name", path,
                         find_itself(a, path));
    for (int i = 0; i < a->argc; ++i)
        if (cli_is_index(a->argv[i]))
            return cli_fail(GX_EINPUT, "%s is an index already; search it with 'gpuidx query'", a->argv[i]);
    b.began = progress_clock();
    int code = open_all(&b);
    if (!code) {
        b.bar = progress_begin("documents", gx_source_get_counts(b.source).raw_total);
        stop_on_signals();
        code = add_documents(&b);
        stop_no_more(); /* a kill may come at any time: the handler removes what has a temporary name */
        progress_end(&b.bar);
        b.bar.off = cli_quiet();
        if (!code && is_stopped(NULL))
            code = gx_status_exit(GX_ECANCELLED);
        if (!code)
            code = seal(&b);
    }
    gx_builder_abort(b.builder);
    gx_source_close(b.source);
    attribute_list_free(&b.attributes);
    field_list_free(&b.fields);
    if (code == gx_status_exit(GX_ECANCELLED))
        stop_die("nothing was written");
    return code ? code : stop_done(path);
}

static const cli_flag flags[] = {
    {"output", 'o', CLI_TEXT, "FILE", NULL, "the index file to make"},
    {"format", 'f', CLI_CHOICE, "jsonl|tsv|csv|trectext|trecweb|smart|warc|plain|files|vectors|csr", NULL,
     "the format of the corpus, see Corpora; without it, the format is guessed from file names and first bytes. Give "
     "it where the guess is wrong"},
    {"columns", 0, CLI_TEXT, "LIST", NULL,
     "what each column of TSV or CSV holds, from left to right, such as `id,-,-,title,text`; `title` and `text` may be "
     "repeated, `-` is left out; the name of an attribute (`--attr`) makes a column its value"},
    {"members", 0, CLI_TEXT, "LIST", NULL,
     "which members of JSONL hold id, title and text, such as `id=docno,text=content,title`; `title` and `text` may be "
     "repeated; of vectors also which holds the weights: `id=docno,vector=weights`"},
    {"attr", 0, CLI_LIST, "NAME:TYPE", NULL,
     "keep the field or column `NAME` of each document as an attribute, by which `query --filter` selects documents; "
     "may be given several times. `TYPE`: `int`, `float`, `date`, `keyword`, `keywords` or `bool`, see Attributes; "
     "behind it may stand `:bins=N` and more, see Bitmap columns"},
    {"field", 0, CLI_LIST, "NAME", NULL,
     "index these parts of a document as fields, which `query --fields` weighs one by one: `--field=title,text`. "
     "`title` and `text` are the document's own, any other name is a member of JSONL, a column of TSV or "
     "CSV, or an element of TREC text, `headline`. `NAME:w=3`: a weight that is fixed now; see Text fields"},
    {"bits", 0, CLI_COUNT, "N", "8",
     "of vectors: weights are kept as whole numbers of `N` bits, 4 to 16; more bits, finer scores, a larger index",
     .min = 4, .max = 16},
    {"scale", 0, CLI_CHOICE, "collection|list", "collection",
     "of vectors: what the greatest whole number stands for. `collection`: the greatest weight of all; `list`: for "
     "each term its own greatest weight, which is finer where terms weigh differently"},
    CLI_UNIT_FLAG("of vectors: ", "otherwise the greatest weight decides"),
    {"id", 0, CLI_CHOICE, "path|name|stem", "path",
     "of `-f files`: a document's id is its file's path below the directory or in the archive (`html/a.html`), its "
     "name (`a.html`), or this without the ending (`a`)"},
    {"encoding", 0, CLI_CHOICE, "utf-8|latin1", "utf-8",
     "how the corpus writes its characters; give `latin1` for old Western European text. Of HTML and WARC, `utf-8` is "
     "what is assumed where neither the server nor the page names a character set"},
    {"analyzer", 0, CLI_TEXT, "NAME", "english",
     "how text becomes terms; the index keeps it, and its queries are analysed alike. `english`: words in lower case, "
     "Porter's stemmer, without Lucene's 33 stop words; best for English text. It keeps emoji from U+1F000 on and "
     "drops those below, such as U+2B50. `simple`: words in lower case, all of them and all emoji, unstemmed; for "
     "other languages or exact words. `whitespace`: what stands between white space, as it is; for text that is "
     "analysed already. `multilingual`: text of any scripts, folded, unstemmed; see Analyzers. `code`: programs; names "
     "are found by their parts; see Analyzers. The name of a language, such as `french`: as `simple`, with that "
     "language's stemmer and rules"},
    CLI_WORD_FLAGS,
    {"fold", 0, CLI_CHOICE, "none|unicode", NULL,
     "`unicode`: one term for what is written in several ways: composed and decomposed characters, ligatures, full and "
     "half width and other compatibility forms (NFKC), capitals (Unicode's full case folding), letters with and "
     "without accents, soft hyphens and zero-width joiners, apostrophes. Queries are folded, too. Vowel signs, the "
     "voicing of kana and letters such as o with stroke stay. A stemmer sees words without accents. `none`: only what "
     "the analyzer does; then U+202F, U+203F, U+2040 and U+FF3F are terms where they stand alone. Without this flag "
     "`unicode` with `--analyzer=multilingual`, else `none`"},
    {"ngrams", 0, CLI_TEXT, "LENGTHS", NULL,
     "divide words into n-grams of characters, at most 64 long. `edge:2-15`: the first 2, 3, ... 15 of each word, so "
     "that a query finds words by their beginnings, as one types; of a word of a query the first 15 count. `3`: all "
     "three that stand side by side, so that a query with `--op=and` finds what stands inside words. Shorter words "
     "stay whole. Not with a stemmer or stop words; the analyzers `multilingual` and `code` take `edge:` alone. The "
     "index is several times as large"},
    CLI_CODEC_FLAGS,
    {"store", 0, CLI_CHOICE, "none|title|text", "title",
     "what is kept besides ids; `text` keeps titles and texts, "
     "for snippets"},
    {"positions", 0, CLI_SWITCH, NULL, NULL,
     "keep where each word stands in each document, which phrases need: about a byte a word more; not of vectors"},
    {"order", 0, CLI_CHOICE, "input|random|bp", "input",
     "the order of docids: as documents come, random, or by recursive graph bisection, for a smaller index, which "
     "takes 8 bytes of memory a posting; see `gpuidx help reorder`"},
    {"seed", 0, CLI_COUNT, "N", "1", "of `--order=random`: another seed, another order"},
    {"memory", 'm', CLI_BYTES, "SIZE", "512M",
     "memory for the inversion; what does not fit goes through temporary files in the directory of the output",
     .min = 1 << 20},
    {"threads", 'j', CLI_COUNT, "N", "1",
     "use at most `N` threads; 0: one a processor. The index is the same for any number. See Threads", .max = 1024},
    {"on-error", 0, CLI_CHOICE, "fail|skip", "fail",
     "what a bad document does: `fail` ends the build and writes nothing; `skip` leaves the document out"},
    {"duplicates", 0, CLI_CHOICE, "fail|first|last", "fail",
     "an id that comes again: `fail` ends the build; `first` keeps the earlier document, `last` the later"},
    {"max-record", 0, CLI_BYTES, "SIZE", "64M", "a line or document of more bytes than this is bad", .min = 1,
     .max = 1 << 30},
    {"limit", 0, CLI_COUNT, "N", NULL, "read the first `N` documents only", .min = 1},
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace the index if it exists"},
    {"json", 0, CLI_SWITCH, NULL, NULL, "print the summary on stdout as a JSON object with \"schema\": 1"},
    {NULL},
};

static const cli_section sections[] = {
    {"Corpora",
     "A corpus is a file, a directory (all files in it, in the order of their names; hidden ones are left out; "
     "symbolic links are followed, out of the directory too) or `-`, standard input; several are read one after "
     "another. gzip, bzip2, xz and zstd are unpacked as they are read. An archive, tar (also compressed) or zip, is "
     "read as a directory is, without its symbolic links and names with `..`; its hard links come last. What is passed "
     "over is told and counted by kind.\n"
     "\n"
     "  jsonl     an object a line: id, _id or docid; title; text, contents\n"
     "            or content; or as --members says\n"
     "  tsv, csv  id,text or id,title,text, or what --columns or a header line says\n"
     "  trectext  <DOC> <DOCNO>id</DOCNO> ... </DOC>, or <DOC id=...>: <TITLE>,\n"
     "            <HEADLINE>; <TEXT>\n"
     "  trecweb   the same with HTML pages behind <DOCHDR> (GOV2)\n"
     "  smart     .I id, .T title, .A authors, .W words (Cranfield)\n"
     "  warc      WARC 1: responses, resources and conversions (WET) of HTML or\n"
     "            plain text; the id is WARC-TREC-ID, else WARC-Record-ID\n"
     "  plain     a document a line; its id is its number, from 1\n"
     "  files     a document a file; its id as --id says; HTML is stripped\n"
     "  vectors   an object a line: id, \"vector\": {term: weight}; see Vectors\n"
     "  csr       a sparse matrix, a row a document; see Vectors"},
    {"Vectors",
     "A vector is a document as a model makes it (SPLADE, uniCOIL, DeepImpact): terms with weights, which are not "
     "analysed. Anserini, Pyserini, Seismic and JASS write it so:\n"
     "\n"
     "  {\"id\": \"d1\", \"contents\": \"...\", \"vector\": {\"index\": 1.27, \"##ing\": 0.4}}\n"
     "\n"
     "title, and text, contents or content, may be there; `--store` keeps them, and they are not searched. `csr` is "
     "the matrix of Big-ANN's sparse track, uncompressed and from a file: three numbers of 64 bits (rows, columns, "
     "values), the rows' offsets (64 bits), the values' columns (32 bits) and the values (floats). A document's id is "
     "its row, and a term is the number of its column, both from 0.\n"
     "\n"
     "The index holds impacts and is searched with `--scorer=impact`, its default: the sum over the query's terms of "
     "weight times query weight. If all weights are whole numbers below 2^bits, they are kept. Otherwise each is "
     "divided by a unit, (greatest weight) / (2^bits - 1), and rounded, to at least 1; scores are told in the "
     "weights' own measure, and `gpuidx info` tells the unit. The unit is known when all documents have been read, "
     "so a pipe will do. Queries: `gpuidx replay --format=vectors` or `csr`, or text in the boolean syntax: "
     "index^1.27 \\#\\#ing^0.4. Text queries are split at white space, unless --analyzer says otherwise; a term "
     "that stands twice weighs twice.\n"
     "\n"
     "A weight that is negative, 0, below 1.4e-45, not finite or above 7.9e28 makes a document bad, and so does a term "
     "that is empty, longer than 65,535 bytes, or there twice. A 0 that a matrix stores is left out. {} is a document "
     "without terms."},
    {"Attributes",
     "An attribute is a typed value of a document. `--attr year:int` reads it from the member `year` of JSON objects, "
     "or from the column that --columns or a header line calls `year`.\n"
     "\n"
     "  int       a whole number of 64 bits\n"
     "  float     a number such as 3.5 or -1e9\n"
     "  date      ISO 8601: 2019, 2019-05, 2019-05-31, 2019-05-31T12:30:00Z or\n"
     "            with +02:00; kept in seconds, as the first second of the\n"
     "            year, month or day\n"
     "  keyword   a string; upper and lower case differ\n"
     "  keywords  any number of strings\n"
     "  bool      true, false, 1 or 0\n"
     "\n"
     "Of every type but `keyword` a document can have several values: a JSON array, or a column with commas between "
     "them (so that 1,000 in a column is 1 and 0). Equal ones count once. A filter selects the document if any of its "
     "values meets the condition. A document without the field, or with null or nothing in it, has no value. A "
     "document with a value that is not of the attribute's type is a bad document. The names id, title, text, has, "
     "AND, OR, NOT and TO are not for attributes. `gpuidx export --attributes` writes them beside CIFF."},
    {"Text fields",
     "With `--field` the index knows in which field a word stands, and how long each field is. `query --fields` then "
     "weighs the fields by BM25F, with weights and b chosen at query time; without `--fields` they are searched as one "
     "text. The index grows by a few percent. JSONL needs neither title nor text then; a field that is an array is its "
     "strings. All fields are analysed alike. With `--positions` the words of a phrase stand in one field. Vectors "
     "have no fields.\n"
     "\n"
     "`--field=title:w=3,text:w=1` fixes the weights: a word of the title counts 3 times, in its tf and in the "
     "document's length, and the index has no fields. That is BM25F with one b, on all engines, at the speed of any "
     "index. Weights are whole numbers from 1 to 1,000."},
    {"Bitmap columns",
     "Beside an attribute's values the index can hold columns of a bit a document, from which a filter is answered "
     "without a look at all values. They change no answer. By default an attribute has them where they are small: "
     "lists of the documents of each keyword where they take at most 12 bits a value, and bins of numbers and dates "
     "where they take at most a quarter of the values' bytes, which is so where documents come in about the order of "
     "the values. An index of fewer than 16,384 documents has none by default. Options stand behind the type, as in "
     "`price:float:bins=25:by=lloyd`:\n"
     "\n"
     "  bitmaps=auto      columns where they are small\n"
     "  bitmaps=none      no columns\n"
     "  bitmaps=equality  a column for each bin, or for each keyword\n"
     "  bitmaps=range     a column for each bin and all below it, so that two\n"
     "                    columns answer any range; not for keywords. Where a\n"
     "                    document has several values, equality is taken\n"
     "  bins=N            at most N bins, 1 to 4,096; with it `bitmaps` is range\n"
     "                    unless given. By default a value has its own bin where\n"
     "                    there are at most 256 different ones; else there are 256\n"
     "  by=quantiles      bins of about as many documents each\n"
     "  by=width          bins of equal width\n"
     "  by=lloyd          bins by Lloyd's algorithm: values near each other\n"
     "\n"
     "`recode`, `reorder` and `add` keep the options. `gpuidx info` shows the columns and what they take."},
    {"Bad documents",
     "A document is bad if its line or record is malformed, has no id, or has one with white space or control "
     "characters (which would break TREC runs), or if its id has been seen and --duplicates=fail. With "
     "--on-error=fail the first one ends the build with exit code 3, and nothing is written. With --on-error=skip "
     "each is left out and counted, the first 20 shown with file and line. Byte order marks and CRLF do no harm; "
     "NUL bytes are read as spaces, bytes that are not UTF-8 as U+FFFD, and both are counted. A document whose "
     "text is empty is indexed; a JSONL object that has neither text nor title, or the same field twice, is bad."},
    {"Threads",
     "All threads of -j split records to documents and analyse them, of all formats but smart and csr, which are read "
     "by one thread and analysed by the others. One thread moves the bytes, and finds where records of csv and warc "
     "end; a large uncompressed file is read by all, unless it is of these two. The order of documents and messages "
     "does not depend on threads.\n"
     "\n"
     "Idle threads unpack what will be read next: further files (those in a directory if they are called .gz, .bz2, "
     ".xz, .zst, .tgz), and further members of the same file, as bgzip, pzstd, pbzip2 or `cat` leave them; blocks of "
     "xz -T by the library's own threads. A file of one member is unpacked by one thread, and what is unpacked of "
     "later files waits in memory: a larger --memory lets more long files be unpacked at once."},
    {"Memory and disk",
     "Besides --memory a build of several threads takes up to a quarter of it for what is unpacked ahead. Every build "
     "takes up to 64 bytes a document, for its id, and at the end up to 24 bytes a term and 16 bytes a posting of the "
     "longest list and 4 MB, for each thread. The directory of the output needs room for the index and for temporary "
     "files without a name, which are gone when the build ends: together from a third of the "
     "text, for English prose, to four times the text, where most terms are rare. --store=text adds twice what the "
     "compressed texts take. A little --memory makes the build slower, not larger."},
    {"Analyzers",
     "An index keeps its analyzer, and what is added and asked later is analysed alike; `gpuidx analyze` shows what "
     "becomes of a text.\n"
     "\n"
     "`multilingual` takes texts of all scripts, mixed ones too. Words of scripts with spaces are words in lower case, "
     "without accents and points (`--fold=unicode`). Of Han, Hiragana, Katakana and Hangul each two neighbours are a "
     "term, and each character is one, too; a query has the pairs alone, or a character that stands alone. Thai, Lao, "
     "Khmer and Burmese are cut into words by ICU's dictionaries, or into pairs where the program has no ICU; "
     "`gpuidx info` tells which. An emoji is a term, a flag too. Light normalisation: Arabic yeh, kaf and heh have one "
     "form each, and no tatweel; Hebrew geresh and gershayim are ' and \"; Indic nukta is dropped; digits of all "
     "scripts are 0 to 9.\n"
     "\n"
     "`code` divides names at capitals, underscores, digits, hyphens and dots, and keeps them whole, too: "
     "`os.getUserId` is the terms `os.getuserid`, `os`, `getuserid`, `get`, `user` and `id`. A query is divided "
     "alike: `user` finds the name, and `getUserId` with `--op=and` finds this name alone, in "
     "any capitals that divide it alike.\n"
     "\n"
     "A language (arabic, armenian, basque, catalan, danish, dutch, finnish, french, german, greek, hindi, hungarian, "
     "indonesian, irish, italian, lithuanian, nepali, norwegian, portuguese, romanian, russian, serbian, spanish, "
     "swedish, tamil, turkish, yiddish, as this build's libstemmer has them) is `simple` with the language's stemmer. "
     "French, Italian, Catalan and Irish lose elisions; Turkish has two letters I, and cuts a name's suffix behind an "
     "apostrophe; German writes umlauts as vowels, and so ae, oe and ue. Stop words come by `--stopwords`."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx build corpus.jsonl.xz -o corpus.gx", "The usual analysis: English, Porter's stemmer, Lucene's stop "
                                                  "words."},
    {"gpuidx build arxiv.tsv --columns=id,-,-,title,text --store=text -o arxiv.gx", "Five columns, and texts for "
                                                                                    "snippets."},
    {"gpuidx build papers.jsonl --attr year:int --attr venue:keyword -o papers.gx",
     "Two attributes, for `gpuidx query papers.gx --filter 'year:>=2015'`."},
    {"gpuidx build -f vectors splade/*.jsonl.gz -o splade.gx", "Learned sparse vectors, 8 bits a weight."},
    {"gpuidx build -f files --analyzer=code /usr/include -o include.gx",
     "Header files, whose names are found by parts."},
    {"zcat logs.gz | gpuidx build -f plain --analyzer=whitespace - -o logs.gx", "Pretokenised lines from a pipe."},
    {NULL},
};

const cli_command cmd_build = {
    .name = "build",
    .summary = "make an index of a corpus",
    .synopsis = "[OPTIONS] CORPUS... -o INDEX",
    .description = "Reads documents, analyses them, and writes one index file, which holds all that a query needs: "
                   "analyzer, statistics, lists, ids. The file appears whole or not at all.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .common = "output format columns members attr field positions analyzer stemmer store threads memory on-error force",
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
