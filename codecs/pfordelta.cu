/* Whole lists of PForDelta. */
#include "codecs/pfordelta.cuh"
#include "codecs/whole_list.cuh"

namespace gx {

bool whole_list_pfordelta(uint8_t id, whole_list_codec *out)
{
    if (id != GX_CODEC_PFORDELTA)
        return false;
    *out = of_groups<decoder_groups<pfordelta, 1024, 12, 4>, decoder_groups<pfordelta, 1024, 12, 4>>(id);
    return true;
}

} // namespace gx
