/* Bytes of any kind into the parser of boolean queries.
 *
 * As a program it reads the files of a folder, as they are and with bytes changed, left out and
 * doubled. With -DGX_FUZZER it is libFuzzer's target:
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -DGX_FUZZER -D_GNU_SOURCE -I.
 *   tests/fuzz/fuzz_parse.c build/libgpuidx.a -lzstd -ljansson -lutf8proc -lstemmer -larchive -lm
 *
 * What must hold: it ends; a query is a tree of less than the most nodes, or an error that names a
 * column; a tree as text is read as the same text again.
 */
#include <string.h>

#include "query/syntax/parse.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/query_tree_text.h"

static void check_tree(const gx_query_tree *t)
{
    must(t->n_nodes <= GX_PARSE_MAX_NODES && t->root < t->n_nodes);
    for (uint32_t i = 0; i < t->n_nodes; ++i) {
        const gx_node *n = &t->nodes[i];
        must(n->boost > 0 && n->column > 0);
        must(n->next == GX_NO_NODE || n->next < t->n_nodes);
        must(n->first == GX_NO_NODE || n->first < t->n_nodes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    gx_query_tree tree;
    gx_error err = {0};
    size_t len, again;
    if (gx_query_parse(&tree, NULL, (const char *)bytes, n, &err) != GX_OK) {
        must(err.status == GX_EUSAGE && strncmp(err.text, "column ", 7) == 0);
        return 0;
    }
    check_tree(&tree);
    char *text = query_tree_text(&tree, &len);
    gx_query_tree_free(&tree);
    must(text && gx_query_parse(&tree, NULL, text, len, &err) == GX_OK);
    char *twice = query_tree_text(&tree, &again);
    must(twice && again == len && memcmp(text, twice, len) == 0);
    gx_query_tree_free(&tree);
    free(text);
    free(twice);
    return 0;
}

#ifndef GX_FUZZER

static void vary(const uint8_t *bytes, size_t n)
{
    static const char signs[] = "()\"^+-:\\[]{}<=>*?~!&|/#@ aN1.\0\xc3\xa4\xe2\x80\x93";
    fuzz_expression(bytes, n, signs, sizeof signs - 1, 6);
}

int main(int argc, char **argv)
{
    must(argc == 2 && fuzz_folder(argv[1], vary) > 0);
    return 0;
}

#endif
