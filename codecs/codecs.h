/* codecs.h: the list of codecs. The enum gx_codec_id, the registry and the GPU's table come from
 * it.
 *
 * To add a codec:
 *
 *   codecs/NAME.c     defines const gx_codec gx_codec_NAME (codec.h): encode, decode, valid, ...
 *   codecs/NAME.cuh   defines gx::NAME<LDG> (decode.cuh), the decoder that query kernels fuse;
 *                     query/gpu/kernels/decoders.cuh includes it
 *   tools/bench/kernels/NAME.cu   defines gx::list_kernels_NAME() (list_kernels.cuh), which `bench
 *                     codecs` measures; begin with of_blocks<NAME<true>>()
 *   a row below; the .c file in codecs/meson.build, the .cu file in tools/bench/meson.build; the
 *   layout in index/FORMAT.md
 *
 * --codec then takes it, `bench codecs` measures it, and the tests and fuzzers go through its
 * blocks. They ask for golden bytes (tests/support/golden_codecs.h) and for a decoder in
 * tests/second_reader.py. auto_codec.h tells how --codec=auto considers it.
 *
 * X(ID, id, name), by rising id. id is GX_CODEC_ID's value in files. It is never 0, and the id of a
 * removed codec is never used again.
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
