/* Bytes of any kind into the readers of query logs, qrels and runs. The first byte chooses the
 * reader.
 *
 * As a program it reads its seeds with bytes changed, left out and doubled at seeded random. With
 * -DGX_FUZZER it is libFuzzer's target:
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -DGX_FUZZER -D_GNU_SOURCE -I.
 *   tests/fuzz/fuzz_log.c query/{log,trec}.c \
 *         index/{input,inflate}.c engine/status.c -DGX_VERSION='"fuzz"' -larchive -lutf8proc
 *         -ljansson -lz
 *
 * What must hold: it ends; a query's text is UTF-8 without NULs, its id too and without white
 * space; lines do not run backwards; counts add up. Rows of qrels and runs rise by query and
 * document, and topics cover them all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utf8proc.h>

#include "query/log/query_log.h"
#include "query/measures/trec.h"

#define check(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))

static void check_string(const char *p, size_t n)
{
    check(strlen(p) == n);
    for (size_t i = 0; i < n;) {
        utf8proc_int32_t c;
        const utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)p + i, (utf8proc_ssize_t)(n - i), &c);
        check(len > 0);
        i += (size_t)len;
    }
}

static void read_log(const char *path, gx_log_form form, gx_log_encoding encoding)
{
    gx_log *log;
    gx_error err = {0};
    uint64_t good = 0, bad = 0, line = 0;
    bool more = true;
    const gx_log_options opt = {.form = form, .encoding = encoding, .topic_fields = "desc,title", .unique = true};
    if (gx_log_open(&log, path, &opt, &err))
        return;
    while (more) {
        gx_log_query q;
        const gx_status st = gx_log_next(log, &q, &more, &err);
        check(st == GX_OK || st == GX_EINPUT || st == GX_EUSAGE);
        if (st == GX_EUSAGE) /* the columns must be given */
            break;
        bad += st == GX_EINPUT;
        if (st || !more)
            continue;
        ++good;
        check_string(q.id, q.id_len);
        check_string(q.text, q.len);
        check(q.id_len && q.id_len <= GX_LOG_MAX_ID && strcspn(q.id, " \t\r\n\f\v") == q.id_len);
        check(q.line >= line);
        line = q.line;
    }
    const gx_log_counts counts = gx_log_get_counts(log);
    check(counts.queries == good && counts.bad == bad && counts.empty <= good);
    gx_log_close(log);
}

static void read_table(const char *path, gx_trec_kind kind)
{
    gx_trec_table t;
    gx_error err = {0};
    if (gx_trec_read(&t, path, kind, &err))
        return;
    size_t next = 0;
    for (size_t i = 0; i < t.n_topics; ++i) {
        const gx_trec_topic *topic = &t.topics[i];
        check(topic->n && topic->first == next);
        check(gx_trec_find(&t, topic->qid) == topic);
        check(i == 0 || strcmp(topic[-1].qid, topic->qid) < 0);
        for (size_t j = topic->first; j < topic->first + topic->n; ++j) {
            check(!strcmp(t.rows[j].qid, topic->qid));
            check(j == topic->first || strcmp(t.rows[j - 1].docno, t.rows[j].docno) < 0);
            check(t.rows[j].value == t.rows[j].value);
        }
        next += topic->n;
    }
    check(next == t.n_rows);
    gx_trec_free(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[32];
    if (n == 0)
        return 0;
    const int fd = memfd_create("fuzz", 0);
    check(fd >= 0 && write(fd, data + 1, n - 1) == (ssize_t)(n - 1));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const unsigned reader = data[0] % 20;
    if (reader < 18)
        read_log(path, (gx_log_form)(reader % GX_LOG_N_FORMS), (gx_log_encoding)(reader / GX_LOG_N_FORMS));
    else
        read_table(path, reader == 18 ? GX_TREC_QRELS : GX_TREC_RUN);
    close(fd);
    return 0;
}

#ifndef GX_FUZZER

static const char *const seeds[] = {
    "1:land rover\n2:d\xed"
    "a de los\n3:\n",
    "q1\tland rover\r\n\r\nq2\ttab\tinside\n",
    "qid;query\r\n7;\"land, \"\"rover\"\"\nseries\"\r\n8;{\"\"a\"\": 1}\r\n",
    "\"7\",\"land, rover\"\n\"8\",\"{\"\"tok\"\": 1.5}\"\n",
    "q0\t{\"tok1\": 1.2, \"tok2\": 1e3}\nq1\t{}\n",
    "land rover\n\xef\xbb\xbfplain \xe2\x82\xac\n\n",
    "{\"id\": 1, \"query\": \"a\\u0000b\"}\n{\"_id\": \"x\", \"text\": \"caf\\u00e9\"}\n{\"title\": \"t\"}\n",
    "<top>\n<num> Number: 7\n<title> Topic: two\n  lines\n<desc> d\n</top>\n<TOP><num>8<title>x</title></TOP>\n",
    "1 0 a 1\n1 0 b 0\n2\t0\ta\t-1\r\n",
    "1 Q0 a 1 2.5 t\n1 Q0 b 2 1e-3 t\n2 Q0 a 1 inf t\n",
};

static uint64_t random_state = 88172645463325252u;

static uint32_t below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % n;
}

int main(void)
{
    static const char breaks[] = "\0\n\r\t :<>{}\"\\\xff\x80\xc3/0-";
    for (uint32_t i = 0; i < 40000; ++i) {
        uint8_t bytes[512];
        const char *seed = seeds[below(sizeof seeds / sizeof *seeds)];
        size_t n = strlen(seed);
        bytes[0] = (uint8_t)(i % 20);
        memcpy(bytes + 1, seed, n);
        for (uint32_t changes = below(6); changes && n > 1; --changes) {
            const size_t at = 1 + below((uint32_t)n), rest = n + 1 - at;
            switch (below(3)) {
            case 0:
                bytes[at] = (uint8_t)breaks[below(sizeof breaks - 1)];
                break;
            case 1:
                memmove(bytes + at, bytes + at + 1, rest - 1);
                --n;
                break;
            default: { /* a piece twice */
                const size_t len = 1 + below((uint32_t)(rest < 40 ? rest : 40));
                memmove(bytes + at + len, bytes + at, rest);
                n += len;
            }
            }
        }
        LLVMFuzzerTestOneInput(bytes, n + 1);
    }
    return 0;
}

#endif
