/* Whole lists of Rice. */
#include "codecs/rice.cuh"
#include "codecs/whole_list.cuh"

namespace gx {

bool whole_list_rice(uint8_t id, whole_list_codec *out)
{
    if (id != GX_CODEC_RICE)
        return false;
    *out = of_groups<decoder_groups<rice, 1024, 12, 4>, decoder_groups<rice, 1024, 12, 4>>(id);
    return true;
}

} // namespace gx
