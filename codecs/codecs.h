/* codecs.h: the list of codecs: enum gx_codec_id, the registry, and what the GPU knows come from
 * it.
 *
 * To add a codec:
 *
 *   codecs/NAME.c     const gx_codec gx_codec_NAME (codec.h): encode, decode, what a block's
 *                     structure is
 *   codecs/NAME.cuh   gx::NAME<LDG> (decode.cuh), the decoder that kernels of queries fuse;
 *                     included by decoders.cuh
 *   codecs/NAME.cu    gx::whole_list_NAME() (tools/bench/kernels/list_kernels.cuh):
 *                     of_blocks<NAME<true>>() to begin with
 *   a row below, the .c and .cu file in meson.build, the layout in index/FORMAT.md
 *
 * Then --codec takes it, `bench codecs` measures it, and the tests, fuzzers included, go through
 * its blocks; they ask for its golden bytes (tests/support/golden_codecs.h) and for its decoder in
 * tests/second_reader.py. For --codec=auto to consider it, see auto_codec.h.
 *
 * X(ID, id, name), by rising id: GX_CODEC_ID stands for id in files, never 0, never another codec's
 * again.
 */
#ifndef GX_CODECS_CODECS_H
#define GX_CODECS_CODECS_H

#define GX_CODECS(X)                                                                                                   \
    X(RAW, 1, raw)                                                                                                     \
    X(GPUBP128, 2, gpubp128)                                                                                           \
    X(GPUBP256, 3, gpubp256)                                                                                           \
    X(GPUVBYTE128, 4, gpuvbyte128)                                                                                     \
    X(GPUVBYTE1024, 5, gpuvbyte1024)                                                                                   \
    X(LANE1024, 6, lane1024)                                                                                           \
    X(GPUPFD128, 7, gpupfd128)                                                                                         \
    X(SIMPLE9, 16, simple9)                                                                                            \
    X(SIMPLE16, 17, simple16)                                                                                          \
    X(SIMPLE8B, 18, simple8b)                                                                                          \
    X(ELIASFANO, 19, ef128)                                                                                            \
    X(VARINTSU, 24, varintsu)                                                                                          \
    X(VARINTPU, 25, varintpu)                                                                                          \
    X(VARINTG8IU, 26, varintg8iu)                                                                                      \
    X(VARINTG8CU, 27, varintg8cu)                                                                                      \
    X(VARINTPB, 28, varintpb)                                                                                          \
    X(VARINTGB, 29, varintgb)                                                                                          \
    X(RICE, 32, rice)                                                                                                  \
    X(PFORDELTA, 33, pfordelta)

#endif
