/* decoders.cuh: every decoder on the device, for kernels that choose among them as they run. */
#ifndef GX_DECODERS_CUH
#define GX_DECODERS_CUH

#include "codecs/eliasfano.cuh"
#include "codecs/gpupfd.cuh"
#include "codecs/pfordelta.cuh"
#include "codecs/rice.cuh"
#include "codecs/simple.cuh"
#include "codecs/varint.cuh"

/* X(ID, DECODER) for each codec: gx::DECODER<LDG> decodes GX_CODEC_ID. */
#define GX_DEVICE_CODECS(X)      \
    X(RAW, raw)                  \
    X(GPUBP128, gpubp128)        \
    X(GPUBP256, gpubp256)        \
    X(GPUVBYTE128, gpuvbyte128)  \
    X(GPUVBYTE1024, gpuvbyte1024) \
    X(LANE1024, lane1024)        \
    X(GPUPFD128, gpupfd128)      \
    X(RICE, rice)                \
    X(PFORDELTA, pfordelta)      \
    X(SIMPLE9, simple9)          \
    X(SIMPLE16, simple16)        \
    X(SIMPLE8B, simple8b)        \
    X(ELIASFANO, ef128)          \
    X(VARINTSU, varintsu)        \
    X(VARINTPU, varintpu)        \
    X(VARINTG8IU, varintg8iu)    \
    X(VARINTG8CU, varintg8cu)    \
    X(VARINTPB, varintpb)        \
    X(VARINTGB, varintgb)

#endif
