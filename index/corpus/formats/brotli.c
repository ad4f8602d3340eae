#include "index/corpus/formats/brotli.h"

#include <brotli/decode.h>

const bool gx_has_brotli = true;

gx_brotli *gx_brotli_open(void)
{
    return (gx_brotli *)BrotliDecoderCreateInstance(NULL, NULL, NULL);
}

void gx_brotli_close(gx_brotli *z)
{
    if (z)
        BrotliDecoderDestroyInstance((BrotliDecoderState *)z);
}

bool gx_brotli_read(gx_brotli *z, gx_span *in, char *to, size_t *n, bool *more)
{
    const uint8_t *from = (const uint8_t *)in->p;
    size_t left = in->n, room = *n;
    uint8_t *out = (uint8_t *)to;
    const BrotliDecoderResult rc =
        BrotliDecoderDecompressStream((BrotliDecoderState *)z, &left, &from, &room, &out, NULL);
    in->p += in->n - left;
    in->n = left;
    *n -= room;
    *more = rc == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
    return *more || rc == BROTLI_DECODER_RESULT_SUCCESS;
}
