/* Words of any kind into every decoder and validator. Byte 0 is the codec's id (or, where there is
 * none, any number that chooses one), bytes 1 and 2 the number of integers less one, byte 3 the
 * parameter; the words follow. From 255 down byte 0 is one of the baselines
 * (tools/bench/codecs/baseline_codecs.h), byte 1 tells how many steps, and its bytes follow.
 *
 * As a program it replays files, tests/data/fuzz-codecs in the ordinary tests, and blocks that
 * every codec of the registry and every baseline makes of random integers, each as it is and
 * damaged at seeded random; -o FOLDER keeps those blocks. With -DGX_FUZZER it is libFuzzer's
 * target:
 *
 *   clang -g -O1 -march=native -fsanitize=fuzzer,address,undefined -DGX_FUZZER -D_GNU_SOURCE -I.
 *   tests/fuzz/fuzz_codecs.c \
 *         $(ls codecs/[a-z]*.c | grep -Ev 'bench|synthetic') engine/{isa,status}.c
 *         -DGX_VERSION='"fuzz"' -lm
 *
 * What must hold: nothing is read past the words and GX_READ_SLACK, nothing written past the
 * integers (rounded up to 32); what any words decode to, encoded again, is accepted, decodes to the
 * same, and is the words where they are accepted, nowhere else; at, decode_docids and next_geq
 * agree with decode where the words are valid. A baseline reads no more than it may write, and its
 * integers, encoded again, decode to the same, as integers and summed up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/decode.h"
#include "tests/fuzz/fuzz.h"
#include "tools/bench/codecs/baseline_codecs.h"

static uint32_t *allocate(size_t words)
{
    uint32_t *const p = malloc(words * sizeof *p);
    must(p);
    return p;
}

/* in [n], decoded from source, goes through the codec and comes back the same; its words are
 * source's if that is accepted. */
static void round_trip(const gx_codec *c, const uint32_t *in, uint32_t n, uint8_t param, const uint32_t *source,
                       uint32_t n_source)
{
    const uint32_t max = c->max_words(n);
    uint32_t *const words = allocate(max + GX_READ_SLACK / 4), *const out = allocate((n + 31) / 32 * 32);
    const uint32_t n_words = c->encode(in, n, param, words);
    must(n_words <= max && gx_codec_block_valid(c, words, n_words, n, param));
    const bool same = n_words == n_source && memcmp(words, source, n_words * sizeof *words) == 0;
    must(same == gx_codec_block_valid(c, source, n_source, n, param));
    memset(words + n_words, 0xa5, GX_READ_SLACK);
    c->decode(words, n_words, n, param, out);
    must(memcmp(in, out, n * sizeof *in) == 0);
    free(words);
    free(out);
}

/* next_geq finds what a walk over the block's docids, from 7 on, finds. */
static void find(const gx_codec *c, const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param,
                 const uint32_t *docids, bool valid)
{
    bool rise = valid && docids[0] >= 7;
    for (uint32_t i = 1; i < n; ++i)
        rise = rise && docids[i] > docids[i - 1];
    for (uint32_t i = 0; c->next_geq && i <= n; i += 1 + n / 16) {
        const uint32_t docid = i == n ? 0 : docids[i];
        for (uint32_t d = docid - (docid > 0); d - docid + 1 <= 2; ++d) {
            uint32_t found = 0, want = 0;
            const uint32_t at = c->next_geq(words, n_words, n, param, 7, d, &found);
            must(at <= n);
            while (want < n && docids[want] < d)
                ++want;
            must(!rise || (at == want && (at == n || found == docids[at])));
        }
    }
}

static void decode(const gx_codec *c, const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)
{
    uint32_t *const out = allocate((n + 31) / 32 * 32), *const docids = allocate((n + 31) / 32 * 32);
    c->decode(words, n_words, n, param, out);
    gx_decode_docids(c, words, n_words, n, param, 7, docids);
    if (c->valid(words, n_words, n, param)) {
        uint32_t docid = 6;
        for (uint32_t i = 0; i < n; ++i)
            must(docids[i] == (docid += out[i] + 1));
    }
    round_trip(c, out, n, param, words, n_words);
    const bool valid = c->valid(words, n_words, n, param);
    for (uint32_t i = 0; c->at && i < n; i += valid ? 1 : 1 + n / 16) {
        const uint32_t x = c->at(words, n_words, n, param, i);
        must(!valid || x == out[i]);
    }
    find(c, words, n_words, n, param, docids, valid);
    free(out);
    free(docids);
}

/* n integers of a baseline's bytes; docids: summed up. */
static uint32_t *decode_steps(const gx_baseline *b, const uint8_t *bytes, uint32_t n, bool docids)
{
    uint32_t *const out = allocate(n);
    gx_cursor cursor = b->open(bytes, n);
    for (uint32_t i = 0; i < n; i += GX_STEP)
        b->step(&cursor, out + i, docids);
    return out;
}

static void decode_baseline(const gx_baseline *b, const uint8_t *bytes, size_t size, uint32_t n)
{
    uint8_t *const all = malloc(8 * n + 64);
    must(all);
    memset(all, 0xa5, 8 * n + 64);
    memcpy(all, bytes, size < 8 * n ? size : 8 * n);
    uint32_t *const in = decode_steps(b, all, n, false), *const docids = decode_steps(b, all, n, true), sum = 0;
    for (uint32_t i = 0; i < n; ++i)
        must(docids[i] == (sum += in[i]));
    must(b->encode(in, n, all) <= 8 * n);
    uint32_t *const again = decode_steps(b, all, n, false);
    must(memcmp(in, again, n * sizeof *in) == 0);
    free(all);
    free(in);
    free(docids);
    free(again);
}

/* The baseline that byte 0 names, or NULL. */
static const gx_baseline *baseline_of(uint8_t byte)
{
    for (uint32_t i = 0; gx_baselines[i]; ++i) {
        if (byte == 255 - i)
            return gx_baselines[i];
    }
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint32_t n_codecs = 0;
    while (gx_codecs[n_codecs])
        ++n_codecs;
    if (size < 4)
        return 0;
    const gx_baseline *const baseline = baseline_of(bytes[0]);
    if (baseline) {
        decode_baseline(baseline, bytes + 4, size - 4, GX_STEP * (1 + bytes[1] % 3u));
        return 0;
    }
    const gx_codec *const known = gx_codec_by_id(bytes[0]), *const c = known ? known : gx_codecs[bytes[0] % n_codecs];
    const uint32_t n = 1 + (bytes[1] | (uint32_t)bytes[2] << 8) % c->block_len, n_words = (uint32_t)(size - 4) / 4;
    uint32_t *const words = allocate(n_words + GX_READ_SLACK / 4);
    memcpy(words, bytes + 4, n_words * sizeof *words);
    memset(words + n_words, 0xa5, GX_READ_SLACK);
    decode(c, words, n_words, n, c->param ? bytes[3] : 0);
    free(words);
    return 0;
}

#ifndef GX_FUZZER

/* Some of the file's bytes changed, words left out or doubled, the end cut off. */
static void mutate(const uint8_t *bytes, size_t size)
{
    uint8_t *const copy = malloc(size + 4);
    must(copy);
    for (unsigned i = 0; i < 3000; ++i) {
        const size_t at = draw((uint32_t)size), word = size >= 8 ? 4 + draw((uint32_t)(size - 4) / 4) * 4 : 4;
        size_t m = size;
        memcpy(copy, bytes, size);
        switch (draw(6)) {
        case 0:
            copy[at] = (uint8_t)draw(256);
            break;
        case 1:
            copy[at] ^= (uint8_t)(1u << draw(8));
            break;
        case 2:
            memset(copy + at, draw(2) ? 0xff : 0, size - at < 4 ? size - at : 4);
            break;
        case 3:
            memmove(copy + word, copy + word + 4, size - word >= 4 ? (m -= 4) - word : 0);
            break;
        case 4:
            memmove(copy + word + 4, copy + word, (m += 4) - word - 4);
            break;
        default:
            m = at;
        }
        LLVMFuzzerTestOneInput(copy, m);
    }
    free(copy);
}

/* Integers of all widths; most narrow, some wide; rising slowly. */
static uint32_t random_integer(unsigned kind, uint32_t i)
{
    switch (kind) {
    case 0:
        return draw(1u << draw(24)) << draw(9);
    case 1:
        return draw(10) ? draw(16) : draw(1u << 24);
    default:
        return i / 8 + draw(4);
    }
}

/* As it is and damaged; kept as FOLDER/NAME-K unless the folder is NULL. */
static void run_variants(const uint8_t *bytes, size_t size, const char *folder, const char *name, unsigned k)
{
    LLVMFuzzerTestOneInput(bytes, size);
    mutate(bytes, size);
    if (folder) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s-%u", folder, name, k);
        FILE *const f = fopen(path, "wb");
        must(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0);
    }
}

/* The codec's own blocks: full and short ones, of integers of every kind. keep: a folder, or NULL.
 * */
static void run_encoded_blocks(const gx_codec *c, const char *keep)
{
    static uint32_t in[GX_MAX_BLOCK];
    for (unsigned k = 0; k < 6; ++k) {
        const uint32_t n = k < 3 ? c->block_len : 1 + draw(c->block_len);
        for (uint32_t i = 0; i < n; ++i)
            in[i] = random_integer(k % 3, i);
        uint8_t *const bytes = malloc(4 + c->max_words(n) * sizeof *in);
        must(bytes);
        const uint8_t param = c->param ? c->param(in, n) : 0,
                      front[4] = {c->id, (uint8_t)(n - 1), (uint8_t)((n - 1) >> 8), param};
        memcpy(bytes, front, sizeof front);
        run_variants(bytes, 4 + c->encode(in, n, param, (uint32_t *)(void *)(bytes + 4)) * sizeof *in,
                     k < 4 ? keep : NULL, c->name, k);
        free(bytes);
    }
}

/* Baseline i's own bytes, one step and two. */
static void run_encoded_steps(uint8_t i, const char *keep)
{
    static uint32_t in[2 * GX_STEP];
    for (unsigned k = 0; k < 6; ++k) {
        const uint32_t n = k < 3 ? GX_STEP : 2 * GX_STEP;
        for (uint32_t j = 0; j < n; ++j)
            in[j] = random_integer(k % 3, j);
        uint8_t *const bytes = malloc(4 + 8 * n + 64);
        must(bytes);
        const uint8_t front[4] = {(uint8_t)(255 - i), (uint8_t)(n / GX_STEP - 1)};
        memcpy(bytes, front, sizeof front);
        run_variants(bytes, 4 + gx_baselines[i]->encode(in, n, bytes + 4), k == 1 ? keep : NULL, gx_baselines[i]->name,
                     k);
        free(bytes);
    }
}

int main(int argc, char **argv)
{
    const char *const keep = argc == 3 && strcmp(argv[1], "-o") == 0 ? argv[2] : NULL;
    for (int i = 1; i < argc && !keep; ++i) {
        const unsigned files = fuzz_folder(argv[i], mutate);
        printf("%s: %u files\n", argv[i], files);
        must(files > 0);
    }
    for (const gx_codec *const *c = gx_codecs; *c; ++c)
        run_encoded_blocks(*c, keep);
    for (uint8_t i = 0; gx_baselines[i]; ++i)
        run_encoded_steps(i, keep);
    return argc < 2;
}

#endif
