#include "tools/bench/codecs/codec_report.h"

#include <string.h>

#include "tools/bench/common.h"
#include "tools/bench/kernels/list_kernels.h"

const char *codec_data_name(codec_data data)
{
    static const char *const names[] = {"uniform", "clustered", "docids", "tfs"};
    return names[data];
}

const codec_row *codec_row_find(const codec_report *r, const char *method, codec_data data, uint32_t log2n)
{
    for (size_t i = 0; i < r->n_rows; ++i) {
        const codec_row *row = &r->rows[i];
        if (row->data == data && row->log2n == log2n && strcmp(row->method->name, method) == 0)
            return row;
    }
    return NULL;
}

bool codec_on_gpu(const codec_method *m)
{
#ifdef GX_CUDA
    return m->codec && gx_codec_on_gpu(m->codec);
#else
    (void)m;
    return false;
#endif
}

/* A number, or a dash where nothing was measured. */
static void print_number(double x, int width, int digits)
{
    if (x > 0)
        printf(" %*.*f", width, digits, x);
    else
        printf(" %*s", width, "-");
}

/* The same in CSV, behind a comma: empty where nothing was measured. */
static void print_value(double x, int digits)
{
    x > 0 ? printf(",%.*f", digits, x) : putchar(',');
}

static void print_millions(double speed, int width)
{
    print_number(speed / 1e6, width, 0);
}

/* So many integers, in four places: 9999, 10K, 1M. */
static void print_length(uint64_t n)
{
    if (n < 10000)
        printf("%4u", (unsigned)n);
    else if (n < 999500)
        printf("%3.0fK", (double)n / 1e3);
    else
        printf("%3.0fM", (double)n / 1e6);
}

void codec_print_setup(const codec_report *r)
{
    bench_print_machine(r->seed);
    if (r->gpu)
        printf("%s; memory: read %.0f GB/s, copy %.0f GB/s, read 1 : write 4 %.0f GB/s\n", r->gpu_name, r->read_gbs,
               r->copy_gbs, r->mixed_gbs);
    if (r->log)
        printf("%s, the %u lists of %u queries of %s\n", r->index, r->n_lists, r->n_queries, r->log);
    else if (r->index)
        printf("%s, %u lists\n", r->index, r->n_lists);
}

/* ---- the registry ---- */

/* What one core decodes: integers, all of them; docids in one go; the first docid from some docid
 * on without the block's others. */
static const char *cpu_decoders(const codec_method *m)
{
    if (m->paper)
        return "no";
    const bool docids = m->codec && m->codec->decode_docids, find = m->codec && m->codec->next_geq;
    return docids ? find ? "docids+find" : "docids" : find ? "find" : "yes";
}

/* Where a codec of whole bytes stands in the taxonomy of Stepanov et al. (CIKM 2011): where the bits lie that tell an
 * integer's length, and how they tell it; and what else it is called. SB, split and binary, is of no use: it has no
 * codec. */
typedef struct taxon {
    const char *name, *arrangement, *length, *names;
} taxon;

static const taxon *taxon_of(const codec_method *m)
{
    static const taxon taxa[] = {
        {"varint-su", "split", "unary", "v-byte, vbyte, VB, varint, VInt"},
        {"varint-pu", "packed", "unary", "none before Stepanov et al."},
        {"varint-g8iu", "group", "unary", "varint-GU, integers of one block alone (incomplete)"},
        {"varint-g8cu", "group", "unary", "varint-GU, integers across blocks (complete)"},
        {"varint-pb", "packed", "binary", "BA, varint30"},
        {"varint-gb", "group", "binary", "group varint, k-wise null suppression (k=4)"},
        {"varintgb", "group", "binary", "group varint, k-wise null suppression (k=4)"},
        {"streamvbyte", "group", "binary", "Stream VByte: all descriptors first"},
        {"gpuvbyte128", "group", "binary", "GPU-VByte: 128 descriptors first"},
        {"gpuvbyte1024", "group", "binary", "GPU-VByte: 1,024 descriptors first"},
    };
    for (size_t i = 0; i < sizeof taxa / sizeof *taxa; ++i)
        if (!m->paper && strcmp(taxa[i].name, m->name) == 0)
            return &taxa[i];
    return NULL;
}

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static int print_list_json(const codec_report *r)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->n_methods; ++i) {
        const codec_method *m = &r->methods[i];
        json_t *o = json_pack("{s:s, s:s, s:b, s:s, s:b, s:s}", "name", m->name, "title", m->title, "random_access",
                              m->codec && !m->paper && m->codec->random_access, "cpu", cpu_decoders(m),
                              "gpu_this_build", codec_on_gpu(m), "source", m->source);
        json_object_set_new(o, "id", m->codec && !m->paper ? json_integer(m->codec->id) : json_null());
        json_object_set_new(o, "block_len", m->codec ? json_integer(m->codec->block_len) : json_null());
        const taxon *t = taxon_of(m);
        json_object_set_new(o, "arrangement", text_or_null(t ? t->arrangement : NULL));
        json_object_set_new(o, "length_encoding", text_or_null(t ? t->length : NULL));
        json_object_set_new(o, "names", text_or_null(t ? t->names : NULL));
        json_object_set_new(o, "slack_bits", m->codec ? json_integer(8 * GX_READ_SLACK) : json_null());
        json_array_append_new(list, o);
    }
    return bench_print_json(json_pack("{s:i, s:o}", "schema", 1, "codecs", list));
}

/* A number, or a dash in a table and nothing in CSV. */
static void put_count(codec_format format, int width, bool known, uint32_t n)
{
    if (format == FORMAT_CSV)
        known ? printf(",%u", n) : printf(",");
    else
        known ? printf(" %*u", width, n) : printf(" %*s", width, "-");
}

static void put_method(const codec_method *m, codec_format format)
{
    const bool csv = format == FORMAT_CSV, of_index = m->codec && !m->paper;
    const taxon none = {"", csv ? "" : "-", csv ? "" : "-", csv ? "" : "-"}, *t = taxon_of(m);
    const char *const random = of_index && m->codec->random_access ? "yes" : "no", *const gpu =
                                                                                       codec_on_gpu(m) ? "yes" : "no";
    t = t ? t : &none;
    printf(csv ? "%s,%s" : "%-18s %-14s", m->name, m->title);
    put_count(format, 3, of_index, of_index ? m->codec->id : 0);
    put_count(format, 6, of_index, of_index ? m->codec->block_len : 0);
    put_count(format, 10, of_index, 8 * GX_READ_SLACK);
    printf(csv ? ",%s,%s,%s,%s,%s,\"%s\",\"%s\"\n" : " %7s %-11s %16s  %-11s %-7s %-52s %s\n", random, cpu_decoders(m),
           gpu, t->arrangement, t->length, t->names, m->source);
}

int codec_print_list(const codec_report *r, codec_format format)
{
    if (format == FORMAT_JSON)
        return print_list_json(r);
    if (format == FORMAT_CSV)
        puts("name,title,id,block_len,slack_bits,random_access,cpu,gpu_this_build,arrangement,length_encoding,names,"
             "source");
    else
        printf("%-18s %-14s %3s %6s %10s %7s %-11s %16s  %-11s %-7s %-52s %s\n", "name", "title", "id", "block",
               "slack bits", "random", "CPU", "GPU (this build)", "arrangement", "length", "names in the literature",
               "source");
    for (uint32_t i = 0; i < r->n_methods; ++i)
        put_method(&r->methods[i], format);
    return 0;
}

/* ---- rows ---- */

/* Eight speeds: to memory and kept, cold and in L2, integers before docids. */
static void gpu_speeds(const gx_codec_speed *s, double out[8])
{
    const double all[] = {s->gpu_integers.memory,  s->gpu_docids.memory,      s->gpu_integers.kept,
                          s->gpu_docids.kept,      s->gpu_integers.memory_l2, s->gpu_docids.memory_l2,
                          s->gpu_integers.kept_l2, s->gpu_docids.kept_l2};
    memcpy(out, all, sizeof all);
}

/* GB/s of what a row's lists are for: docids where they are, else integers. */
static double gpu_gbs(const gx_codec_speed *s)
{
    return (s->gpu_docids.bytes > 0 ? s->gpu_docids.bytes : s->gpu_integers.bytes) / 1e9;
}

static void print_rows_table(const codec_report *r)
{
    codec_print_setup(r);
    if (r->gpu)
        printf("%66s%-32s%-33s\n", "", "GPU: to memory    kept", " in L2: to memory    kept");
    printf("%-14s %-9s %4s %6s %8s %8s %8s", "millions/s", "lists", "n", "bits", "encode", "integers", "docids");
    if (r->gpu) {
        for (int k = 0; k < 8; ++k)
            printf(" %7s", k % 2 ? "docid" : "integer");
        printf(" %5s %5s", "GB/s", "copy");
    }
    putchar('\n');
    for (size_t i = 0; i < r->n_rows; ++i) {
        const codec_row *row = &r->rows[i];
        const gx_codec_speed *s = &row->speed;
        double speeds[8];
        printf("%-14s %-9s ", row->method->title, codec_data_name(row->data));
        row->log2n ? (void)printf("2^%-2u", row->log2n) : print_length(s->n);
        print_number(s->bits, 6, 2);
        print_millions(s->encode, 8);
        print_millions(s->integers, 8);
        print_millions(s->docids, 8);
        gpu_speeds(s, speeds);
        for (int k = 0; k < 8 && r->gpu; ++k)
            print_millions(speeds[k], 7);
        if (r->gpu) {
            print_number(gpu_gbs(s), 5, 0);
            print_number(r->copy_gbs, 5, 0);
        }
        putchar('\n');
    }
}

static const char *const gpu_names[] = {"gpu_integers",         "gpu_docids",        "gpu_integers_kept",
                                        "gpu_docids_kept",      "gpu_integers_l2",   "gpu_docids_l2",
                                        "gpu_integers_kept_l2", "gpu_docids_kept_l2"};

static void print_rows_csv(const codec_report *r)
{
    printf("method,lists,log2n,n,bits,docid_bits,encode,integers,docids");
    for (int k = 0; k < 8; ++k)
        printf(",%s", gpu_names[k]);
    puts(",gpu_integers_gbs,gpu_docids_gbs,copy_gbs");
    for (size_t i = 0; i < r->n_rows; ++i) {
        const codec_row *row = &r->rows[i];
        const gx_codec_speed *s = &row->speed;
        double speeds[8];
        printf("%s,%s,", row->method->title, codec_data_name(row->data));
        if (row->log2n)
            printf("%u", row->log2n);
        printf(",%llu", (unsigned long long)s->n);
        print_value(s->bits, 4);
        print_value(s->docid_bits, 4);
        print_value(s->encode, 0);
        print_value(s->integers, 0);
        print_value(s->docids, 0);
        gpu_speeds(s, speeds);
        for (int k = 0; k < 8; ++k)
            print_value(speeds[k], 0);
        print_value(s->gpu_integers.bytes / 1e9, 1);
        print_value(s->gpu_docids.bytes / 1e9, 1);
        print_value(r->copy_gbs, 1);
        putchar('\n');
    }
}

static int print_rows_json(const codec_report *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_rows; ++i) {
        const codec_row *row = &r->rows[i];
        const gx_codec_speed *s = &row->speed;
        double speeds[8];
        json_t *o = json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "codec", row->method->name,
                              "method", row->method->title, "lists", codec_data_name(row->data), "n", (json_int_t)s->n,
                              "bits", bench_json(s->bits), "paper_bits", bench_json(s->paper_bits), "docid_bits",
                              bench_json(s->docid_bits), "encode", bench_json(s->encode), "integers",
                              bench_json(s->integers), "docids", bench_json(s->docids));
        if (row->log2n)
            json_object_set_new(o, "log2n", json_integer(row->log2n));
        gpu_speeds(s, speeds);
        for (int k = 0; k < 8 && codec_on_gpu(row->method) && r->gpu; ++k)
            json_object_set_new(o, gpu_names[k], bench_json(speeds[k]));
        if (codec_on_gpu(row->method) && r->gpu) {
            json_object_set_new(o, "gpu_integers_gbs", bench_json(s->gpu_integers.bytes / 1e9));
            json_object_set_new(o, "gpu_docids_gbs", bench_json(s->gpu_docids.bytes / 1e9));
        }
        json_array_append_new(list, o);
    }
    json_t *root = json_pack("{s:i, s:s*, s:s*, s:s*, s:i, s:i, s:o, s:o, s:o, s:o}", "schema", 3, "gpu",
                             r->gpu ? r->gpu_name : NULL, "index", r->index, "log", r->log, "queries",
                             (int)r->n_queries, "lists", (int)r->n_lists, "read_gbs", bench_json(r->read_gbs),
                             "copy_gbs", bench_json(r->copy_gbs), "mixed_gbs", bench_json(r->mixed_gbs), "rows", list);
    bench_put_machine(root, r->seed);
    return bench_print_json(root);
}

int codec_print_rows(const codec_report *r, codec_format format)
{
    if (format == FORMAT_JSON)
        return print_rows_json(r);
    if (format == FORMAT_CSV)
        print_rows_csv(r);
    else
        print_rows_table(r);
    return 0;
}

/* ---- the paper's tables ---- */

/* Table 1: bits an integer, as the paper's encoder packs them; sparse 2^16, dense 2^25. */
void codec_print_table1(const codec_report *r, codec_format format)
{
    if (format != FORMAT_CSV)
        codec_print_setup(r);
    puts(format == FORMAT_CSV ? "method,uniform_sparse,uniform_dense,clustered_sparse,clustered_dense"
                              : "bits an integer   uniform           clustered\n"
                                "                  sparse   dense    sparse   dense");
    for (uint32_t i = 0; i < r->n_methods; ++i) {
        if (r->methods[i].paper) /* it packs nothing of its own */
            continue;
        printf(format == FORMAT_CSV ? "%s" : "%-16s", r->methods[i].title);
        for (int k = 0; k < 4; ++k) {
            const codec_row *row =
                codec_row_find(r, r->methods[i].name, k < 2 ? DATA_UNIFORM : DATA_CLUSTERED, k % 2 ? 25 : 16);
            printf(format == FORMAT_CSV ? ",%.2f" : " %8.2f", row ? row->speed.paper_bits : 0.0);
        }
        putchar('\n');
    }
}

/* Table 2: bits an integer of an index's lists as we pack them, d-gaps and term frequencies; and of
 * docids with their heads. */
void codec_print_table2(const codec_report *r, codec_format format)
{
    if (format == FORMAT_CSV) {
        puts("method,docids,freqs,docids_with_heads");
    } else {
        codec_print_setup(r);
        printf("%-16s %8s %8s %18s\n", "bits an integer", "docids", "freqs", "docids with heads");
    }
    for (uint32_t i = 0; i < r->n_methods; ++i) {
        const codec_row *docids = codec_row_find(r, r->methods[i].name, DATA_DOCIDS, 0),
                        *tfs = codec_row_find(r, r->methods[i].name, DATA_TFS, 0);
        if (!docids || !tfs || r->methods[i].paper)
            continue;
        printf(format == FORMAT_CSV ? "%s,%.2f,%.2f," : "%-16s %8.2f %8.2f", r->methods[i].title, docids->speed.bits,
               tfs->speed.bits);
        if (format == FORMAT_CSV)
            printf(docids->speed.docid_bits > 0 ? "%.2f" : "", docids->speed.docid_bits);
        else
            print_number(docids->speed.docid_bits, 18, 2);
        putchar('\n');
    }
}

/* Table 3: how many times faster the GPU is than one core, by length; d-gaps, Uniform. */
void codec_print_table3(const codec_report *r, codec_format format, uint32_t from, uint32_t to)
{
    static const char *const against[] = {"bp32", "varintgb", "simdbp128", "streamvbyte"};
    static const char *const gpu[] = {"gpubp128", "gpubp256", "gpuvbyte128", "gpuvbyte1024"};
    if (format != FORMAT_CSV)
        codec_print_setup(r);
    printf(format == FORMAT_CSV ? "against,method" : "%-12s %-14s", "against", "method");
    for (uint32_t k = from; k <= to; ++k)
        printf(format == FORMAT_CSV ? ",2^%u" : "    2^%-2u", k);
    putchar('\n');
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 2; ++j) {
            const char *const name = gpu[i % 2 * 2 + j];
            const codec_row *first = codec_row_find(r, against[i], DATA_UNIFORM, from),
                            *second = codec_row_find(r, name, DATA_UNIFORM, from);
            if (!first || !second)
                continue;
            printf(format == FORMAT_CSV ? "%s,%s" : "%-12s %-14s", first->method->title, second->method->title);
            for (uint32_t k = from; k <= to; ++k) {
                const double slow = codec_row_find(r, against[i], DATA_UNIFORM, k)->speed.integers;
                const double fast = codec_row_find(r, name, DATA_UNIFORM, k)->speed.gpu_integers.memory;
                if (format == FORMAT_CSV)
                    print_value(slow > 0 ? fast / slow : 0, 2);
                else
                    print_number(slow > 0 ? fast / slow : 0, 7, 2);
            }
            putchar('\n');
        }
    }
}

/* "(x  12.34)", or a dash. */
static void print_times(double x)
{
    if (x > 0)
        printf(" (x%6.2f)", x);
    else
        printf(" %9s", "-");
}

/* Table 4's factors are against VarintGB for codes of bytes, against BP32 for all others. */
static const char *compared_with(const codec_method *m)
{
    return strstr(m->name, "vbyte") || strstr(m->name, "varint") ? "varintgb" : "bp32";
}

static double times(const codec_report *r, const codec_row *row, double speed)
{
    const codec_row *base = codec_row_find(r, compared_with(row->method), row->data, 0);
    return base && base->speed.integers > 0 ? speed / base->speed.integers : 0;
}

/* Table 4: decoding speed of an index's lists, d-gaps and term frequencies, a row where a codec is
 * decoded; and docids. */
void codec_print_table4(const codec_report *r, codec_format format)
{
    if (format == FORMAT_CSV) {
        puts("method,where,docids,docids_times,freqs,freqs_times,docids_summed,gbs,copy_gbs");
    } else {
        codec_print_setup(r);
        printf("%-14s %-4s %8s %9s %8s %9s %9s %6s %6s\n", "millions/s", "on", "docids", "", "freqs", "", "summed up",
               "GB/s", "copy");
    }
    for (uint32_t i = 0; i < r->n_methods; ++i) {
        const codec_row *docids = codec_row_find(r, r->methods[i].name, DATA_DOCIDS, 0),
                        *tfs = codec_row_find(r, r->methods[i].name, DATA_TFS, 0);
        for (int on_gpu = r->methods[i].paper; docids && tfs && on_gpu <= (r->gpu && codec_on_gpu(&r->methods[i]));
             ++on_gpu) {
            const gx_codec_speed *d = &docids->speed, *t = &tfs->speed;
            const double gaps = on_gpu ? d->gpu_integers.memory : d->integers,
                         freqs = on_gpu ? t->gpu_integers.memory : t->integers;
            const double summed = on_gpu ? d->gpu_docids.memory : d->docids,
                         gbs = on_gpu ? d->gpu_integers.bytes / 1e9 : 0;
            if (format == FORMAT_CSV) {
                printf("%s,%s", r->methods[i].title, on_gpu ? "gpu" : "cpu");
                print_value(gaps / 1e6, 1);
                print_value(times(r, docids, gaps), 2);
                print_value(freqs / 1e6, 1);
                print_value(times(r, tfs, freqs), 2);
                print_value(summed / 1e6, 1);
                print_value(gbs, 1);
                print_value(on_gpu ? r->copy_gbs : 0, 1);
                putchar('\n');
                continue;
            }
            printf("%-14s %-4s %8.0f", r->methods[i].title, on_gpu ? "GPU" : "CPU", gaps / 1e6);
            print_times(times(r, docids, gaps));
            printf(" %8.0f", freqs / 1e6);
            print_times(times(r, tfs, freqs));
            print_millions(summed, 9);
            print_number(gbs, 6, 0);
            print_number(on_gpu ? r->copy_gbs : 0, 6, 0);
            putchar('\n');
        }
    }
}

/* Figure 3: decoding speed, d-gaps, in millions of integers a second, by length; GPU codecs on the
 * GPU where there is one. */
void codec_print_figure3(const codec_report *r)
{
    puts("method,model,log2n,where,millions_a_second");
    for (size_t i = 0; i < r->n_rows; ++i) {
        const codec_row *row = &r->rows[i];
        const double gpu = row->speed.gpu_integers.memory;
        printf("%s,%s,%u,%s,%.1f\n", row->method->title, codec_data_name(row->data), row->log2n,
               gpu > 0 ? "gpu" : "cpu", (gpu > 0 ? gpu : row->speed.integers) / 1e6);
    }
}
