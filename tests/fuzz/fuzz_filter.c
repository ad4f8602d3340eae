/* Bytes of any kind into the parser of filters.
 *
 * As a program it reads an index with attributes and the files of a folder, as they are and with
 * bytes changed, left out and doubled. With -DGX_FUZZER it is libFuzzer's target, which takes the
 * index from the environment variable GX_FUZZ_INDEX:
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -DGX_FUZZER -D_GNU_SOURCE -I.
 *   tests/fuzz/fuzz_filter.c build/libgpuidx.a -lzstd -ljansson -lutf8proc -lstemmer -larchive -lm
 *
 * What must hold: it ends; a filter is evaluated, or the error names a column; a filter as text is
 * read as the same text again, and selects the same documents.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "tests/fuzz/fuzz.h"

static gx_index *ix;
static uint64_t *words, *again;

static void open_index(const char *path)
{
    gx_index_stats st = {.size = sizeof st};
    must(gx_index_open(&ix, path, NULL, NULL) == GX_OK);
    gx_index_get_stats(ix, &st);
    words = calloc(st.n_docs / 64 + 1, sizeof *words);
    again = calloc(st.n_docs / 64 + 1, sizeof *again);
    must(words && again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    gx_filter *f, *g;
    gx_error err = {0};
    uint32_t n_first, n_second;
    size_t len, len_again;
    if (!ix)
        open_index(getenv("GX_FUZZ_INDEX"));
    if (gx_filter_open(&f, ix, (const char *)bytes, n, NULL, &err) != GX_OK) {
        must(err.status == GX_EUSAGE && strncmp(err.text, "filter, column ", 15) == 0);
        return 0;
    }
    const char *text = gx_filter_text(f, &len);
    must(gx_filter_evaluate(f, words, &n_first, &err) == GX_OK);
    must(gx_filter_open(&g, ix, text, len, NULL, &err) == GX_OK);
    const char *twice = gx_filter_text(g, &len_again);
    must(len == len_again && memcmp(text, twice, len) == 0);
    must(gx_filter_evaluate(g, again, &n_second, &err) == GX_OK && n_first == n_second);
    gx_index_stats st = {.size = sizeof st};
    gx_index_get_stats(ix, &st);
    must(memcmp(words, again, ((size_t)st.n_docs + 63) / 64 * sizeof *words) == 0);
    gx_filter_close(f);
    gx_filter_close(g);
    return 0;
}

#ifndef GX_FUZZER

static void vary(const uint8_t *bytes, size_t n)
{
    static const char signs[] = "()[]{}\"\\:<>=*@- aN1.\0\xc3\xa4";
    fuzz_expression(bytes, n, signs, sizeof signs - 1, 4);
}

int main(int argc, char **argv)
{
    must(argc == 3);
    open_index(argv[2]);
    must(fuzz_folder(argv[1], vary) > 0);
    gx_index_close(ix);
    free(words);
    free(again);
    return 0;
}

#endif
